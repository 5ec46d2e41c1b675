// Buttons that hand out what the page holds: the weights, the engine's text, the queries that lose.

import {h} from "./dom.js";

/** Weights as JSON with every digit, in the rankers' order; an object would put names such as "7" first. */
export function weightsJson(rankers, weights) {
  const rows = rankers.map((name, k) => `  ${JSON.stringify(name)}: ${weights[k]}`);
  return `{\n${rows.join(",\n")}\n}\n`;
}

/** A cell of text. A spreadsheet would run one that begins with a sign of a formula: it gets an apostrophe in front. */
function textCell(text) {
  const line = text.replace(/[\u0000-\u001f\u2028\u2029]+/g, " ");
  const guarded = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(line) ? "'" + line : line;
  return `"${guarded.replaceAll('"', '""')}"`;
}

/** The positions of the queries on which the fusion is worse than the strongest rival, the largest loss first. */
export function losingQueries({delta}) {
  return Array.from(delta.keys())
    .filter((i) => delta[i] < 0)
    .sort((a, b) => delta[a] - delta[b] || a - b);
}

/** Those queries as CSV (RFC 4180). */
export function losingCsv(report) {
  const {query_ids: ids, texts, values, rival, delta, n_relevant, n_docs} = report.queries;
  const head = ["query_id", "text", "learned weights", rival, "difference", "relevant", "documents"];
  const rows = losingQueries(report.queries).map((i) => [
    textCell(ids[i]),
    textCell((texts && texts[i]) || ""),
    values["learned weights"][i],
    values[rival][i],
    delta[i],
    n_relevant[i],
    n_docs[i],
  ]);
  return [head.map(textCell), ...rows].map((row) => row.join(",") + "\r\n").join("");
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  h("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", {class: "hidden-text", "aria-label": "Text to copy"});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy"); // what a page without the newer interface has
    area.remove();
    return done;
  }
}

/** A button that copies what `text` returns, and says so on itself. */
export function copyButton(label, text) {
  const button = h("button", {type: "button"}, label);
  const said = h("span", {class: "note", role: "status"});
  button.addEventListener("click", async () => {
    said.textContent = (await copy(text())) ? " Copied." : " The browser does not allow it: copy by hand.";
    setTimeout(() => said.replaceChildren(), 4000);
  });
  return [button, said];
}

/** A button that saves what `text` returns as a file. */
export function saveButton(label, name, type, text) {
  return h("button", {type: "button", on: {click: () => save(name, type, text())}}, label);
}

/** Fill the place below the weights. */
export function showDownloads(report, place) {
  const weights = () => weightsJson(report.rankers, report.weights);
  const {snippet} = report;
  const parts = [
    copyButton("Copy weights", weights),
    saveButton("Download weights", "weights.json", "application/json", weights),
  ];
  if (snippet) {
    parts.push(
      copyButton(`Copy for ${snippet.engine}`, () => snippet.text),
      saveButton(`Download ${snippet.file_name}`, snippet.file_name, "text/plain", () => snippet.text),
    );
  } else {
    parts.push(h("span", {class: "note"}, "For a search engine: genm export --to ENGINE model.json"));
  }
  place.append(...parts.flat());
  place.hidden = false;
}
