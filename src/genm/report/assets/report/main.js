// Puts the page together: reads the data, draws the charts, wires table and sliders.

import {curvesChart, learningChart, weightsChart} from "./charts.js";
import {settled} from "./dom.js";
import {showDownloads} from "./downloads.js";
import {inflate} from "./numbers.js";
import {QueryTable} from "./queries.js";
import {Sliders} from "./sliders.js";
import {lineChart} from "./steps.js";
import {stripChart} from "./strip.js";
import {ternaryMap} from "./ternary.js";

const GAP = 24; // between the charts of a grid, as in the style

const find = (selector) => document.querySelector(selector);

/** The width that a drawing may take in its figure. */
const widthOf = (node) => Math.max(260, Math.floor(node.getBoundingClientRect().width));

class Page {
  constructor(report) {
    this.report = report;
    this.queryTable = report.queries.query_ids.length ? new QueryTable(report, find("#query-table")) : null;
    this.map = null;
    this.sliders = null;
    this.draw();
    showDownloads(report, find("#take"));
    if (report.sliders && report.sliders.queries.shape[0] > 0) this.#showSliders();
    this.#followWidth();
  }

  draw() {
    const {report} = this;
    const charts = [
      ["#chart-weights", report.spread.rows.length > 0, (width) => weightsChart(report, width)],
      ["#curves .chart", report.curves.length > 0, (width) => curvesChart(report, width)],
      [
        "#learning .chart",
        report.learning && report.learning.points.length > 0,
        (width) => learningChart(report, width),
      ],
      [
        "#queries .chart",
        report.queries.delta.length > 0,
        (width) => stripChart(report, width, (i) => this.queryTable.reveal(i)),
      ],
      ["#ternary .chart", report.ternary !== null, (width) => this.#drawMap(width)],
    ];
    for (const [selector, wanted, chart] of charts) {
      const figure = find(selector);
      if (figure && wanted) figure.replaceChildren(...chart(widthOf(figure)));
    }
    this.#drawLines();
  }

  #drawMap(width) {
    this.map = ternaryMap(this.report, width, (weights) => this.sliders && this.sliders.set(weights));
    if (this.sliders) this.map.move(this.sliders.weights);
    return this.map.nodes;
  }

  /** One small chart per ranker; all have the same scale, so that they can be compared. */
  #drawLines() {
    const grid = find("#lines .grid");
    const {lines} = this.report;
    if (!grid || !lines.length) return;
    let [low, high] = [Infinity, -Infinity];
    for (const {values} of lines) {
      for (const value of values) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const width = Math.floor((widthOf(grid) - GAP * (columns - 1)) / columns);
    grid.replaceChildren(...lines.map((line) => lineChart(this.report, line, width, [low, high])));
  }

  #showSliders() {
    find("#try").hidden = false;
    find('nav a[href="#try"]').hidden = false;
    this.sliders = new Sliders(this.report, find("#try-place"), (weights) => this.map && this.map.move(weights));
  }

  /** Draw anew when the page gets wider or narrower, but not for paper: a drawing scales. */
  #followWidth() {
    let width = document.documentElement.clientWidth;
    addEventListener(
      "resize",
      settled(150, () => {
        if (document.documentElement.clientWidth === width || matchMedia("print").matches) return;
        width = document.documentElement.clientWidth;
        this.draw();
      }),
    );
  }
}

// On paper everything that is folded lies open.
const unfolded = new Set();
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) {
    part.open = true;
    unfolded.add(part);
  }
});
addEventListener("afterprint", () => {
  for (const part of unfolded) part.open = false;
  unfolded.clear();
});

// Without DecompressionStream (browsers before 2023) the page stays as it is without scripts.
if (typeof DecompressionStream === "function") {
  const {deflated} = JSON.parse(document.getElementById("page-data").textContent);
  inflate(deflated).then((report) => {
    new Page(report);
    document.documentElement.dataset.ready = "";
  });
}
