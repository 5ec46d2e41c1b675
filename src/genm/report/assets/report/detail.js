// One query opened: what each ranker and the fusion put on top, side by side.

import {bar, foreign, h, spoken, svg} from "./dom.js";
import {decimals} from "./numbers.js";

const TITLE_LENGTH = 220;

/** The sign of a judgment: shape first, colour second, and a word for screen readers. */
export function mark(state) {
  const [sign, word] = {
    relevant: ["\u25cf", "relevant"],
    not: ["\u25cb", "judged not relevant"],
    unjudged: ["?", "not judged"],
  }[state];
  return h(
    "span",
    {class: `mark ${state}`, title: word},
    h("span", {"aria-hidden": "true"}, sign),
    spoken(word + ": "),
  );
}

/** What the signs mean, with the rankers' colours when contributions are shown. */
export function marksLegend(rankers) {
  const items = ["relevant", "not", "unjudged"].map((state) =>
    h(
      "li",
      null,
      mark(state),
      h(
        "span",
        {"aria-hidden": "true"},
        {relevant: "relevant", not: "judged not relevant", unjudged: "not judged"}[state],
      ),
    ),
  );
  const colours = rankers.map((ranker, k) =>
    h(
      "li",
      null,
      svg(
        "svg",
        {width: 14, height: 10, "aria-hidden": "true"},
        svg("rect", {class: piece(k), width: 14, height: 10}),
      ),
      " ",
      foreign(ranker),
    ),
  );
  return h("ul", {class: "legend"}, items, colours);
}

function piece(k, negative = false) {
  return `c${k % 8}${k >= 8 ? " again" : ""}${negative ? " negative" : ""}`;
}

const stateOf = (doc) => (doc.relevant ? "relevant" : doc.grade === null ? "unjudged" : "not");

/** Each ranker's part of a fused score, as one bar; parts below zero hang to the left. */
function contributions(doc, rankers, scale) {
  const below = doc.contributions.reduce((sum, part) => sum - Math.min(part, 0), 0);
  const whole = scale.above + scale.below || 1;
  const parts = doc.contributions.map((part, k) => ({part, k}));
  const pieces = [{kind: "blank", share: (scale.below - below) / whole}];
  for (const {part, k} of [...parts.filter((one) => one.part < 0), ...parts.filter((one) => one.part > 0)]) {
    pieces.push({
      kind: piece(k, part < 0),
      share: Math.abs(part) / whole,
      label: `${rankers[k]}: ${decimals(part)}`,
    });
  }
  const told = parts.map(({part, k}) => `${rankers[k]} ${decimals(part)}`).join(", ");
  return bar(pieces, `Score ${decimals(doc.score)}: ${told}`);
}

function entry(detail, position, second) {
  const doc = detail.docs[position];
  const grade =
    doc.grade === null || doc.grade === (doc.relevant ? 1 : 0)
      ? null
      : h("span", {class: "kind"}, ` grade ${doc.grade}`);
  const text = doc.text
    ? h("div", {class: "text", title: doc.text.slice(0, TITLE_LENGTH)}, foreign(doc.text))
    : null;
  return h(
    "li",
    {"data-doc": position, class: stateOf(doc)},
    h("div", {class: "name"}, mark(stateOf(doc)), h("span", null, foreign(doc.id), grade)),
    text,
    second(doc),
  );
}

function list(title, kind, detail, positions, second) {
  const hits = positions.filter((position) => detail.docs[position].relevant).length;
  const heading = h("h3", null, title, h("span", {class: "kind"}, ` ${hits} of ${positions.length} relevant`));
  const body = positions.length
    ? h(
        "ol",
        null,
        positions.map((position) => entry(detail, position, second)),
      )
    : h("p", {class: "note"}, "Returned nothing.");
  return h("div", {class: `list ${kind}`}, heading, body);
}

/** The lists of one query; a document lights up in all of them when one is pointed at. */
export function queryLists(report, detail) {
  const rankers = report.rankers;
  const top = detail.fused.map((position) => detail.docs[position]);
  const scale = {
    above: Math.max(0, ...top.map((doc) => doc.contributions.reduce((sum, part) => sum + Math.max(part, 0), 0))),
    below: Math.max(0, ...top.map((doc) => doc.contributions.reduce((sum, part) => sum - Math.min(part, 0), 0))),
  };
  const fused = list("Fusion", "fused", detail, detail.fused, (doc) =>
    h(
      "div",
      {class: "parts"},
      contributions(doc, rankers, scale),
      h("span", {class: "note", "aria-hidden": "true"}, decimals(doc.score, 3)),
    ),
  );
  const own = rankers.map((ranker, k) =>
    list(foreign(ranker), "own", detail, detail.rankers[k], (doc) =>
      h(
        "div",
        {class: "note"},
        `${doc.raw[k] === null ? "" : `score ${Number(doc.raw[k].toPrecision(4))}, `}fused #${doc.fused_rank}`,
      ),
    ),
  );
  const lists = h(
    "div",
    {class: "lists", tabindex: "0", role: "group", "aria-label": "Top documents of the fusion and of each ranker"},
    fused,
    own,
  );
  const light = (event) => {
    const item = event.target.closest("li[data-doc]");
    for (const other of lists.querySelectorAll("li[data-doc]")) {
      other.classList.toggle("same", item !== null && other.dataset.doc === item.dataset.doc);
    }
  };
  lists.addEventListener("mouseover", light);
  lists.addEventListener("mouseleave", light);
  return [marksLegend(rankers), lists];
}
