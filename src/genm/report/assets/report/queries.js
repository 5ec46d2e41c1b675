// The table of queries: sortable, filterable, every row opens.

import {queryLists} from "./detail.js";
import {foreign, h, settled, svg} from "./dom.js";
import {losingCsv, losingQueries, saveButton} from "./downloads.js";
import {count, decimals, signed} from "./numbers.js";

const PAGE = 50;
const MANY = 500; // as many rows as a page takes without a pause
const FUSED = "learned weights";

/** A bar around the middle: to the right a gain, to the left a loss. */
function deltaBar(value, largest) {
  const size = largest > 0 ? (50 * Math.abs(value)) / largest : 0;
  return svg(
    "svg",
    {class: "bar delta", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true"},
    svg("rect", {class: value > 0 ? "good" : "bad", x: value > 0 ? 50 : 50 - size, width: size, height: 8}),
    svg("rect", {class: "axis", x: 49.6, width: 0.8, height: 8}),
  );
}

/** The classes of a column's cells: `spare` ones leave on a tablet, `optional` ones below, `third` ones on a phone. */
function classesOf(column) {
  return [column.text ? "" : "number", ...["optional", "spare", "third"].filter((name) => column[name])]
    .filter(Boolean)
    .join(" ");
}

export class QueryTable {
  constructor(report, place) {
    this.report = report;
    this.table = report.queries;
    const {query_ids: ids, values, delta, delta_rrf: deltaRrf, rival, n_relevant, n_docs} = this.table;
    this.columns = [
      {key: "query", label: "Query", text: true, value: (i) => ids[i]},
      {key: "fusion", label: "Fusion", value: (i) => values[FUSED][i], third: true},
      {
        key: "rival",
        label: (rival[0].toUpperCase() + rival.slice(1)).replace(/ ranker$/, ""),
        value: (i) => values[rival][i],
        optional: true,
      },
      {key: "delta", label: "Difference", value: (i) => delta[i], signed: true},
      {key: "rrf", label: "Against RRF", value: (i) => deltaRrf[i], signed: true, optional: true, spare: true},
      {key: "relevant", label: "Relevant", value: (i) => n_relevant[i], whole: true, optional: true},
      {key: "docs", label: "Documents", value: (i) => n_docs[i], whole: true, optional: true, spare: true},
    ];
    this.sort = {key: "delta", down: false}; // the worst losses first: they are what a reader acts on
    this.limit = PAGE;
    this.opened = new Set();
    this.largest = Math.max(0, ...delta.map(Math.abs));
    this.folded = ids.map((id, i) =>
      (id + " " + ((this.table.texts && this.table.texts[i]) || "")).toLocaleLowerCase(),
    );
    this.#build(place);
    this.#show();
    addEventListener("resize", () => this.#respan());
    addEventListener("beforeprint", () => this.#respan());
  }

  #build(place) {
    this.search = h("input", {
      type: "search",
      id: "query-search",
      placeholder: "id or text",
      autocomplete: "off",
      on: {input: settled(80, () => this.#refilter())},
    });
    this.kind = h(
      "select",
      {id: "query-kind", on: {change: () => this.#refilter()}},
      [
        ["all", "all"],
        ["gain", "gains"],
        ["loss", "losses"],
        ["same", "no change"],
        ["documents", "with documents"],
        ["opened", "opened"],
      ].map(([value, label]) => h("option", {value}, label)),
    );
    this.count = h("p", {class: "note", role: "status", "aria-live": "polite"});
    this.body = h("tbody");
    this.heads = new Map(
      this.columns.map((column) => {
        const button = h(
          "button",
          {type: "button", class: "screen-only", on: {click: () => this.#resort(column)}},
          column.label,
          h("span", {class: "arrow", "aria-hidden": "true"}),
        );
        const kind = classesOf(column) + (column.key === "delta" ? " wide" : "");
        // Browsers leave buttons out of table heads that repeat on the next sheet of paper.
        const printed = h("span", {class: "print-only", "aria-hidden": "true"}, column.label);
        return [column.key, h("th", {scope: "col", class: kind || null}, button, printed)];
      }),
    );
    this.more = h(
      "p",
      {class: "screen-only more"},
      h("button", {type: "button", on: {click: () => this.#extend(PAGE)}}, `Show ${PAGE} more`),
      " ",
      h("button", {type: "button", on: {click: () => this.#extend(MANY)}}, `Show ${MANY} more`),
    );
    const nOpen = this.table.detail.filter((at) => at >= 0).length;
    const marked =
      nOpen < this.table.detail.length
        ? ` ${count(nOpen)} of them show their documents; the others are marked "figures only".`
        : "";
    const caption = h(
      "caption",
      null,
      h("span", null, `Held-out ${this.report.measure}, query by query. Open a query with its button.${marked}`),
    );
    const nLosing = losingQueries(this.table).length;
    const download = nLosing
      ? saveButton(`Download ${count(nLosing)} losing as CSV`, "losing-queries.csv", "text/csv", () =>
          losingCsv(this.report),
        )
      : null;
    const table = h(
      "table",
      {class: "queries"},
      caption,
      h("thead", null, h("tr", null, [...this.heads.values()])),
      this.body,
    );
    place.replaceChildren(
      h(
        "div",
        {class: "controls screen-only"},
        h("label", {for: "query-search"}, "Find ", this.search),
        h("label", {for: "query-kind"}, "Show ", this.kind),
        download,
      ),
      this.count,
      h("div", {class: "scroll"}, table),
      this.more,
    );
  }

  #matching() {
    const words = this.search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const kind = this.kind.value;
    const {delta} = this.table;
    const fits = {
      all: () => true,
      gain: (i) => delta[i] > 0,
      loss: (i) => delta[i] < 0,
      same: (i) => delta[i] === 0,
      documents: (i) => this.table.detail[i] >= 0,
      opened: (i) => this.opened.has(i),
    }[kind];
    const column = this.columns.find(({key}) => key === this.sort.key);
    const order = column.text
      ? (a, b) => this.#collator().compare(column.value(a), column.value(b))
      : (a, b) => column.value(a) - column.value(b);
    const sign = this.sort.down ? -1 : 1;
    return this.folded
      .map((_, i) => i)
      .filter((i) => fits(i) && words.every((word) => this.folded[i].includes(word)))
      .sort((a, b) => sign * order(a, b) || a - b);
  }

  #collator() {
    this.compare ||= new Intl.Collator("en", {numeric: true});
    return this.compare;
  }

  #show() {
    const found = this.#matching();
    const rows = found.slice(0, this.limit);
    this.body.replaceChildren(
      ...rows.flatMap((i) => (this.opened.has(i) ? [this.#row(i), this.#panel(i)] : [this.#row(i)])),
    );
    for (const [key, head] of this.heads) {
      if (key === this.sort.key) head.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    const all = this.folded.length;
    const sampled = this.table.n_all > all ? ` (a sample of ${count(this.table.n_all)})` : "";
    const total = `${count(all)} ${all === 1 ? "query" : "queries"}${sampled}`;
    this.count.textContent =
      (found.length === all ? total : `${count(found.length)} of ${total}`) +
      (rows.length < found.length ? `; the first ${count(rows.length)} are shown.` : ".");
    this.more.hidden = rows.length >= found.length;
  }

  #row(i) {
    const open = this.opened.has(i);
    const text = this.table.texts && this.table.texts[i];
    const button = h(
      "button",
      {
        type: "button",
        class: "open",
        "aria-expanded": String(open),
        "aria-controls": `query-${i}`,
        on: {click: () => this.toggle(i)},
      },
      h("span", {class: "arrow", "aria-hidden": "true"}, open ? "\u25be" : "\u25b8"),
      foreign(this.table.query_ids[i]),
    );
    const bare =
      this.table.detail[i] >= 0
        ? null
        : h("span", {class: "kind bare", title: "The report does not hold this query's documents."}, " figures only");
    const cells = this.columns.slice(1).map((column) => {
      const value = column.value(i);
      const shown = column.whole ? count(value) : column.signed ? signed(value) : decimals(value);
      const sign = column.signed ? (value > 0 ? " gain" : value < 0 ? " loss" : "") : "";
      return h("td", {class: classesOf(column) + sign}, column.key === "delta" ? deltaBar(value, this.largest) : null, shown);
    });
    return h(
      "tr",
      {"data-query": i, class: open ? "opened" : null},
      h("th", {scope: "row"}, button, bare, text ? h("span", {class: "text"}, foreign(text)) : null),
      cells,
    );
  }

  #panel(i) {
    const {values, texts, detail} = this.table;
    const at = detail[i];
    const systems = this.report.measures.systems.filter(({id}) => values[id]);
    const numbers = h(
      "ul",
      {class: "values"},
      h("li", {class: "muted"}, `${this.report.measure}:`),
      systems.map(({id, label}) => h("li", null, foreign(label), " ", h("strong", null, decimals(values[id][i])))),
    );
    const inside =
      at >= 0
        ? queryLists(this.report, this.report.details[at])
        : [
            h(
              "p",
              {class: "note"},
              "The documents of this query are not part of the report: it holds those of a sample of queries.",
            ),
          ];
    const text = texts && texts[i] ? h("p", {class: "full"}, foreign(texts[i])) : null;
    const panel = h(
      "div",
      {class: "panel", role: "group", "aria-label": `Query ${this.table.query_ids[i]}`},
      text,
      numbers,
      inside,
    );
    return h("tr", {class: "detail", id: `query-${i}`}, h("td", {colspan: this.#nColumns()}, panel));
  }

  /** How many columns are shown: a narrow page hides some, and a cell must not span those. */
  #nColumns() {
    return [...this.heads.values()].filter((head) => getComputedStyle(head).display !== "none").length;
  }

  #respan() {
    const n = this.#nColumns();
    for (const cell of this.body.querySelectorAll("tr.detail > td")) cell.colSpan = n;
  }

  #resort(column) {
    const down = this.sort.key === column.key ? !this.sort.down : !column.text;
    this.sort = {key: column.key, down};
    this.#show();
  }

  #refilter() {
    this.limit = PAGE;
    this.#show();
  }

  #extend(by) {
    const first = this.body.querySelectorAll("tr[data-query]").length;
    this.limit += by;
    this.#show();
    const next = this.body.querySelectorAll("tr[data-query] button.open")[first];
    if (next) next.focus(); // where the reader was, not the top of the page
  }

  /** Open or close a query, and keep the keyboard where it is. */
  toggle(i) {
    const row = this.body.querySelector(`tr[data-query="${i}"]`);
    const open = !this.opened.delete(i);
    if (open) this.opened.add(i);
    else row.nextElementSibling.remove();
    const fresh = this.#row(i);
    row.replaceWith(fresh);
    if (open) fresh.after(this.#panel(i));
    fresh.querySelector("button.open").focus();
  }

  /** Bring a query into view, opened, whatever the filter says. */
  reveal(i) {
    if (!this.#matching().slice(0, this.limit).includes(i)) {
      this.search.value = "";
      this.kind.value = "all";
      this.limit = Math.max(this.limit, Math.ceil((this.#matching().indexOf(i) + 1) / PAGE) * PAGE);
      this.#show();
    }
    if (!this.opened.has(i)) this.toggle(i);
    const row = this.body.querySelector(`tr[data-query="${i}"]`);
    row.querySelector("button.open").focus({preventScroll: true});
    row.scrollIntoView({block: "center"});
  }
}
