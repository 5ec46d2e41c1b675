// Sliders for the weights: moving one keeps the others in proportion; the rankings and their AP follow at once.

import {marksLegend, mark} from "./detail.js";
import {foreign, h, settled} from "./dom.js";
import {count, decimals, measureName, signed} from "./numbers.js";
import {Ranking} from "./ranking.js";

const STEP = 0.005;
const TOP = 10;
const STATES = ["unjudged", "not", "relevant"];

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
    this.learnedMean = this.ranking.rank(this.learned);
    this.learnedAp = this.ranking.ap.slice();
    this.learnedTop = this.ranking.queries.length
      ? Array.from(this.ranking.queries, (_, q) => this.ranking.top(q, TOP))
      : [];
    this.frame = 0;
    this.say = settled(500, (text) => {
      this.spoken.textContent = text;
    });
    this.#build(place);
    this.#show();
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
    const ids = this.report.queries.query_ids;
    this.chosen = h(
      "select",
      {id: "slider-query", on: {change: () => this.#show()}},
      Array.from(this.ranking.queries, (query, q) => h("option", {value: q}, ids[query])),
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
          h("p", null, this.reset, " ", equal),
        ),
        h(
          "div",
          {class: "card result"},
          h("h3", null, `${this.name} at these weights`),
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
    const mean = ranking.rank(this.weights);
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
    const learned = this.weights.every((weight, k) => weight === this.learned[k]);
    this.against.textContent = learned
      ? "These are the learned weights."
      : `${signed(difference)} against ${decimals(this.learnedMean)} at the learned weights`;
    this.against.className = difference > 0 ? "gain" : difference < 0 ? "loss" : "";
    const same = learnedAp.length - better - worse;
    this.moves.textContent = learned
      ? ""
      : `${count(better)} queries better, ${count(worse)} worse, ${count(same)} the same.`;
    this.reset.disabled = learned;
    this.say(`${this.name} ${decimals(mean)}, ${signed(difference)} against the learned weights.`);
    if (learnedAp.length) this.#showQuery(Number(this.chosen.value));
    this.moved(this.weights);
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
