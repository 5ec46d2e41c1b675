// Puts the page together: reads the data, draws the charts, wires table and sliders.

import {curvesChart, learningChart, lineChart, stripChart, weightsChart} from "./charts.js";
import {settled} from "./dom.js";
import {QueryTable} from "./queries.js";
import {Sliders} from "./sliders.js";
import {ternaryMap} from "./ternary.js";

const report = JSON.parse(document.getElementById("page-data").textContent);
const find = (selector) => document.querySelector(selector);

const queryTable = report.queries.query_ids.length ? new QueryTable(report, find("#query-table")) : null;
let map = null;
let sliders = null;

/** Room for a drawing in its figure. */
const room = (node) => Math.max(260, Math.floor(node.getBoundingClientRect().width));

function drawLines() {
  const grid = find("#lines .grid");
  if (!grid || !report.lines.length) return;
  const values = report.lines.flatMap((line) => line.values);
  const domain = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
  const width = Math.floor((room(grid) - 24 * (columns - 1)) / columns);
  grid.replaceChildren(...report.lines.map((line) => lineChart(report, line, width, domain)));
}

function drawAll() {
  const charts = [
    ["#chart-weights", report.spread.rows.length > 0, (width) => weightsChart(report, width)],
    ["#curves .chart", report.curves.length > 0, (width) => curvesChart(report, width)],
    ["#learning .chart", report.learning && report.learning.points.length > 0, (width) => learningChart(report, width)],
    ["#queries .chart", report.queries.delta.length > 0, (width) => stripChart(report, width, (i) => queryTable.reveal(i))],
    ["#ternary .chart", report.ternary !== null, (width) => {
      map = ternaryMap(report, width, (weights) => sliders && sliders.set(weights));
      if (sliders) map.move(sliders.weights);
      return map.nodes;
    }],
  ];
  for (const [selector, wanted, draw] of charts) {
    const figure = find(selector);
    if (figure && wanted) figure.replaceChildren(...draw(room(figure)));
  }
  drawLines();
}

drawAll();
if (report.sliders && report.sliders.queries.shape[0] > 0) {
  const section = find("#try");
  section.hidden = false;
  find('nav a[href="#try"]').hidden = false;
  sliders = new Sliders(report, find("#try-place"), (weights) => map && map.move(weights));
}

// Draw anew when the page gets wider or narrower, but not for paper: a drawing scales.
let width = document.documentElement.clientWidth;
addEventListener("resize", settled(150, () => {
  if (document.documentElement.clientWidth === width || matchMedia("print").matches) return;
  width = document.documentElement.clientWidth;
  drawAll();
}));

// On paper everything that is folded lies open.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of folded) part.open = false;
});
document.documentElement.dataset.ready = "";
