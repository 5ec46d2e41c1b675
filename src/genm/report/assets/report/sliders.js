// Sliders for the weights: moving one keeps the others in proportion; the rankings and their AP follow at once.

import {marksLegend, mark} from "./detail.js";
import {foreign, h, settled} from "./dom.js";
import {copyButton, weightsJson} from "./downloads.js";
import {count, decimals, measureName, signed} from "./numbers.js";
import {Ranking} from "./ranking.js";

const STEP = 0.005;
const TOP = 10;
const STATES = ["unjudged", "not", "relevant"];
const HASH = "#try="; // the weights in the page's address, every digit: "#try=0.25,0.75"
const LONGEST_TEXT = 80;

/** The weights that the page's address holds, or null where it holds none that fit. */
function weightsInAddress(n) {
  if (!location.hash.startsWith(HASH)) return null;
  const weights = location.hash.slice(HASH.length).split(",").map(Number);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const fits = weights.length === n && weights.every((weight) => weight >= 0 && weight <= 1) && sum > 0;
  if (!fits) return null;
  return Math.abs(sum - 1) < 1e-9 ? weights : weights.map((weight) => weight / sum);
}

export class Sliders {
  /** `moved` is called with the weights after every change. */
  constructor(report, place, moved) {
    this.report = report;
    this.data = report.sliders;
    this.moved = moved;
    this.learned = report.weights;
    this.weights = this.learned.slice();
    this.shape = this.weights.slice(); // proportions to return to when one weight comes back from 1
    this.ranking = new Ranking(this.data, report.rankers.length);
    this.name = measureName(this.data.measure);
    this.ranking.rank(this.learned);
    this.learnedMean = this.data.map; // Python's own sum, the figure that the text above prints
    this.learnedAp = this.ranking.ap.slice();
    this.learnedTop = this.ranking.queries.length
      ? Array.from(this.ranking.queries, (_, q) => this.ranking.top(q, TOP))
      : [];
    this.frame = 0;
    this.say = settled(500, (text) => {
      this.spoken.textContent = text;
    });
    this.remember = settled(300, () => this.#writeAddress());
    this.#build(place);
    this.#followAddress();
    this.#show();
    addEventListener("hashchange", () => this.#followAddress());
  }

  /** Take the weights of the address, and show them. */
  #followAddress() {
    const weights = weightsInAddress(this.learned.length);
    if (!weights || weights.every((weight, k) => weight === this.weights[k])) return;
    this.set(weights);
    document.getElementById("try").scrollIntoView();
  }

  /** Keep the weights in the address, without a new entry in the history; the learned ones need none. */
  #writeAddress() {
    const learned = this.weights.every((weight, k) => weight === this.learned[k]);
    if (learned && !location.hash.startsWith(HASH)) return;
    history.replaceState(null, "", learned ? "#try" : HASH + this.weights.join(","));
  }

  #build(place) {
    this.rows = this.report.rankers.map((ranker, k) => {
      const input = h("input", {
        type: "range",
        id: `weight-${k}`,
        min: 0,
        max: 1,
        step: STEP,
        on: {input: () => this.#slide(k, Number(input.value))},
      });
      const output = h("output", {for: `weight-${k}`});
      return {
        input,
        output,
        row: h(
          "div",
          {class: "slider"},
          h("label", {for: `weight-${k}`, title: ranker}, foreign(ranker)),
          input,
          output,
        ),
      };
    });
    this.mean = h("strong", {class: "figure", id: "slider-mean"});
    this.against = h("span", {id: "slider-against"});
    this.moves = h("p", {class: "note", id: "slider-moves"});
    this.spoken = h("p", {class: "hidden-text", role: "status", "aria-live": "polite", id: "slider-spoken"});
    this.reset = h(
      "button",
      {type: "button", id: "slider-reset", on: {click: () => this.set(this.learned)}},
      "Back to the learned weights",
    );
    const equal = h(
      "button",
      {type: "button", on: {click: () => this.set(this.learned.map(() => 1 / this.learned.length))}},
      "Equal weights",
    );
    this.chosen = h(
      "select",
      {id: "slider-query", on: {change: () => this.#show()}},
      Array.from(this.ranking.queries, (query, q) => h("option", {value: q}, this.#named(query))),
    );
    const n = this.ranking.queries.length;
    const all = this.report.n_queries;
    this.where = n < all ? ` on these ${count(n)} of ${count(all)} queries` : ` on all ${count(n)} queries`;
    const [copyThem, copied] = copyButton("Copy these weights", () =>
      weightsJson(this.report.rankers, this.weights),
    );
    this.queryAp = h("p", {id: "slider-query-ap"});
    this.lists = h("div", {class: "lists two"});
    place.append(
      h(
        "div",
        {class: "try"},
        h(
          "div",
          {class: "sliders", role: "group", "aria-label": "Weights"},
          this.rows.map(({row}) => row),
          h("p", {class: "take"}, this.reset, equal, copyThem, copied),
        ),
        h(
          "div",
          {class: "card result"},
          h("h3", null, `${this.name} at these weights${this.where}`),
          h("p", null, this.mean),
          h("p", null, this.against),
          this.moves,
          this.spoken,
        ),
      ),
      h("div", {class: "controls"}, h("label", {for: "slider-query"}, "Top 10 of query ", this.chosen)),
      this.queryAp,
      marksLegend([]),
      this.lists,
    );
  }

  /** A query by its id and the beginning of its text; the table of queries may be a sample without it. */
  #named(query) {
    const {query_ids: ids, texts} = this.report.queries;
    if (query < 0) return "a query outside the table";
    const text = texts && texts[query];
    return text ? `${ids[query]}: ${text.slice(0, LONGEST_TEXT)}` : ids[query];
  }

  #slide(k, value) {
    const others = this.weights.reduce((sum, weight, j) => (j === k ? sum : sum + weight), 0);
    const base = others > 0 ? this.weights : this.shape;
    const whole = others > 0 ? others : base.reduce((sum, weight, j) => (j === k ? sum : sum + weight), 0);
    const rest = this.weights.length - 1;
    const fresh = base.map((weight, j) =>
      j === k ? value : whole > 0 ? (weight * (1 - value)) / whole : (1 - value) / rest,
    );
    if (others > 0) this.shape = this.weights;
    this.weights = fresh;
    this.#schedule();
  }

  /** Take these weights as they are. */
  set(weights) {
    this.weights = weights.slice();
    this.shape = this.weights;
    this.#schedule();
  }

  #schedule() {
    if (this.frame) return; // one ranking per frame, however fast the slider moves
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.#show();
    });
  }

  #show() {
    const {ranking, learnedAp} = this;
    const ranked = ranking.rank(this.weights);
    const learned = this.weights.every((weight, k) => weight === this.learned[k]);
    const mean = learned ? this.learnedMean : ranked;
    this.rows.forEach(({input, output}, k) => {
      const weight = this.weights[k];
      if (document.activeElement !== input || Math.abs(Number(input.value) - weight) > STEP) input.value = weight;
      input.setAttribute("aria-valuetext", decimals(weight, 3));
      output.textContent = decimals(weight, 3);
      output.dataset.weight = weight; // every digit, for whoever wants to compute it elsewhere
    });
    let better = 0;
    let worse = 0;
    for (let q = 0; q < learnedAp.length; q++) {
      better += ranking.ap[q] > learnedAp[q];
      worse += ranking.ap[q] < learnedAp[q];
    }
    this.mean.textContent = decimals(mean);
    this.mean.dataset.value = mean;
    const difference = mean - this.learnedMean;
    this.against.textContent = learned
      ? "These are the learned weights."
      : `${signed(difference)} against ${decimals(this.learnedMean)} at the learned weights${this.where}`;
    this.against.className = difference > 0 ? "gain" : difference < 0 ? "loss" : "";
    const same = learnedAp.length - better - worse;
    this.moves.textContent = learned
      ? ""
      : `${count(better)} queries better, ${count(worse)} worse, ${count(same)} the same.`;
    this.reset.disabled = learned;
    this.say(`${this.name} ${decimals(mean)}, ${signed(difference)} against the learned weights.`);
    if (learnedAp.length) this.#showQuery(Number(this.chosen.value));
    this.moved(this.weights);
    this.remember();
  }

  #showQuery(q) {
    const top = this.ranking.top(q, TOP);
    const now = this.ranking.ap[q];
    const was = this.learnedAp[q];
    const change = now === was ? "as" : `${signed(now - was)} against ${decimals(was)}`;
    this.queryAp.textContent = `AP ${decimals(now)} (${change} at the learned weights)`;
    this.queryAp.dataset.value = now;
    const before = this.learnedTop[q];
    this.lists.replaceChildren(
      this.#list("At the learned weights", before, null),
      this.#list("At these weights", top, before),
    );
  }

  #list(title, rows, before) {
    const items = rows.map((row, i) => {
      const name = this.ranking.names.get(row);
      const was = before ? before.indexOf(row) : i;
      const moved = was === i ? null : was < 0 ? "new" : was > i ? `\u2191${was - i}` : `\u2193${i - was}`;
      return h(
        "li",
        {class: STATES[this.ranking.marks[row]]},
        h(
          "div",
          {class: "name"},
          mark(STATES[this.ranking.marks[row]]),
          h(
            "span",
            null,
            name === undefined ? h("span", {class: "muted"}, "id not kept in the report") : foreign(name),
            moved ? h("span", {class: "kind"}, " " + moved) : null,
          ),
        ),
      );
    });
    return h("div", {class: "list"}, h("h3", null, title), h("ol", null, items));
  }
}
