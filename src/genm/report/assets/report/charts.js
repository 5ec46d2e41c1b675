// The charts, drawn with Observable Plot. Colours are the page's variables, so light, dark and paper need no redrawing.

import {h, isolate, svg} from "./dom.js";
import {decimals, measureName, signed} from "./numbers.js";

const TIP = {lineHeight: 1.35};
const DASHES = ["none", "6 3", "2 3", "8 3 2 3", "1 4", "10 4", "4 2 1 2", "12 3"];

/** The look of the k-th ranker: hue, and a dash that differs where hues repeat. */
export function rankerLook(k) {
  return {color: `var(--s${k % 8})`, dash: DASHES[(k + Math.floor(k / 8)) % 8], width: 1.6};
}

/** The look of anything that ranks: rankers by hue, what needs no learning in grey, the fusion in the text's colour. */
export function systemLooks(systems, rankers) {
  let grey = 0;
  return new Map(
    systems.map((system) => {
      const k = rankers.indexOf(system.id);
      if (system.kind === "fused") {
        return [system.id, {color: "var(--text)", dash: system.held_out ? "none" : "2 2", width: system.held_out ? 3 : 1.5}];
      }
      if (system.kind === "ranker" && k >= 0) return [system.id, rankerLook(k)];
      grey += 1;
      return [system.id, {color: "var(--muted)", dash: DASHES[grey % 8], width: 1.6}];
    }),
  );
}

/** A legend of lines: colour and dash beside the name. */
export function legend(entries) {
  const items = entries.map(({label, look}) =>
    h("li", null,
      svg("svg", {viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true"},
        svg("line", {x1: 0, x2: 28, y1: 4, y2: 4, stroke: look.color, "stroke-width": look.width, "stroke-dasharray": look.dash})),
      " ", h("bdi", null, label)),
  );
  return h("ul", {class: "legend"}, items);
}

function draw(options) {
  const drawing = Plot.plot({
    className: "plot",
    style: {background: "transparent", color: "inherit", fontFamily: "inherit", fontSize: "12px", overflow: "visible"},
    marginBottom: 42,
    ...options,
  });
  drawing.setAttribute("role", "img");
  return drawing;
}

/** Weights: the plateau as a band, refits as ticks, 95% and 50% of them as lines, the weight itself as a diamond. */
export function weightsChart(report, width) {
  const {rows, kind} = report.spread;
  const room = Math.min(180, width * 0.3);
  const short = (k) => isolate(rows[k].ranker, Math.floor(room / 8));
  const data = rows.map((row, k) => ({...row, k}));
  const refits = data.flatMap((row) => row.samples.map((value) => ({k: row.k, value})));
  const spread = data.filter((row) => row.quantiles);
  const told = (row) =>
    `${isolate(row.ranker, 40)}\nweight ${decimals(row.weight)}` +
    (row.quantiles ? `\n95% of refits ${decimals(row.quantiles[0], 3)} to ${decimals(row.quantiles.at(-1), 3)}` : "") +
    (row.plateau ? `\nplateau ${decimals(row.plateau[0], 3)} to ${decimals(row.plateau[1], 3)}` : "");
  const drawing = draw({
    width,
    height: 50 + 44 * rows.length,
    marginLeft: room,
    marginRight: 20,
    ariaLabel: "Weights of the rankers with their spread",
    ariaDescription: data.map((row) => `${row.ranker}: ${decimals(row.weight)}`).join("; "),
    x: {domain: [0, 1], label: "Weight", grid: true, ticks: width < 500 ? 5 : 10},
    y: {domain: data.map((row) => row.k), label: null, tickFormat: short, tickSize: 0, tickPadding: 12, padding: 0.25},
    marks: [
      Plot.barX(data.filter((row) => row.plateau), {
        x1: (row) => row.plateau[0], x2: (row) => Math.max(row.plateau[1], row.plateau[0] + 0.002), y: "k",
        fill: "var(--accent-soft)", stroke: "var(--accent)", strokeOpacity: 0.35, rx: 3,
      }),
      Plot.tickX(refits, {x: "value", y: "k", stroke: "var(--muted)", strokeOpacity: refits.length > 400 ? 0.15 : 0.35, inset: 7}),
      Plot.ruleY(spread, {x1: (row) => row.quantiles[0], x2: (row) => row.quantiles.at(-1), y: "k", stroke: "var(--accent)", strokeWidth: 1.5}),
      Plot.ruleY(spread, {x1: (row) => row.quantiles[1], x2: (row) => row.quantiles.at(-2), y: "k", stroke: "var(--accent)", strokeWidth: 5, strokeLinecap: "butt"}),
      Plot.dot(data, {x: "weight", y: "k", symbol: "diamond", r: 7, fill: "var(--text)", stroke: "var(--bg)", strokeWidth: 1.5, title: told, tip: TIP}),
    ],
  });
  const source = {bootstrap: "refits on resampled queries", folds: "folds", none: ""}[kind];
  const parts = ["Diamond: the weight"];
  if (source && refits.length) parts.push(`ticks: ${source}`, "thin line: 95% of them, thick line: the middle half");
  if (data.some((row) => row.plateau)) parts.push("band: the plateau");
  return [drawing, h("figcaption", null, parts.join("; ") + ".")];
}

/** Interpolated precision at eleven levels of recall. */
export function curvesChart(report, width) {
  const systems = report.measures.systems;
  const looks = systemLooks(systems, report.rankers);
  const plain = {color: "var(--muted)", dash: "none", width: 1.5};
  const shown = report.curves.map((curve) => {
    const system = systems.find(({id}) => id === curve.system);
    return {...curve, label: system ? system.label : curve.system, look: looks.get(curve.system) || plain};
  });
  const points = shown.flatMap((curve) => curve.precision.map((precision, i) => ({label: curve.label, recall: i / 10, precision})));
  const drawing = draw({
    width,
    height: Math.max(280, Math.min(420, width * 0.6)),
    marginLeft: 45,
    ariaLabel: "Precision at eleven levels of recall",
    ariaDescription: "One line for each ranker, rule and fusion; the numbers are in the table below.",
    x: {domain: [0, 1], label: "Recall", ticks: 10, grid: true},
    y: {domain: [0, Math.max(0.1, ...points.map((point) => point.precision))], nice: true, label: "Precision", grid: true},
    marks: [
      ...shown.map(({precision, look}) =>
        Plot.line(precision, {x: (_, i) => i / 10, y: (value) => value, stroke: look.color, strokeWidth: look.width, strokeDasharray: look.dash})),
      Plot.dot(points, {
        x: "recall", y: "precision", r: 2, fill: "var(--muted)", fillOpacity: 0, tip: TIP,
        title: (point) => `${isolate(point.label, 40)}\nrecall ${point.recall.toFixed(1)}\nprecision ${decimals(point.precision)}`,
      }),
    ],
  });
  return [drawing, legend(shown)];
}

/** An interval of weights; one too short to see is a point. */
function span([low, high]) {
  const [from, to] = [decimals(low), decimals(high)];
  return from === to ? from : `${from} to ${to}`;
}

/** The measure along one weight: its exact steps, the best interval, the learned weight. */
export function lineChart(report, line, width, domain) {
  const name = measureName(report.measure);
  const steps = line.values.map((value, i) => ({low: line.points[i], high: line.points[i + 1], value}));
  const path = [...steps.map(({low, value}) => ({x: low, value})), {x: line.points.at(-1), value: line.values.at(-1)}];
  const k = report.rankers.indexOf(line.ranker);
  const drawing = draw({
    width,
    height: 210,
    marginLeft: 48,
    marginRight: 12,
    ariaLabel: `${name} along the weight of ${isolate(line.ranker, 40)}`,
    ariaDescription: `Learned weight ${decimals(line.weight)} with ${name} ${decimals(line.value)}; best at ` +
      `${span(line.best)} with ${decimals(line.best[2])}.`,
    x: {domain: [0, 1], label: "Weight", ticks: 5},
    y: {domain, label: name, grid: true, ticks: 5, nice: true},
    marks: [
      Plot.ruleX([line.weight], {stroke: "var(--muted)", strokeDasharray: "3 3"}),
      Plot.line(path, {x: "x", y: "value", curve: "step-after", stroke: k < 0 ? "var(--accent)" : rankerLook(k).color, strokeWidth: 1.6}),
      Plot.ruleY([line.best], {y: (best) => best[2], x1: (best) => best[0], x2: (best) => best[1], stroke: "var(--good)", strokeWidth: 4}),
      Plot.dot([line.best], {x: (best) => (best[0] + best[1]) / 2, y: (best) => best[2], symbol: "triangle", r: 4.5, dy: -7, rotate: 180, fill: "var(--good)"}),
      Plot.dot([line], {x: "weight", y: "value", symbol: "diamond", r: 6, fill: "var(--text)", stroke: "var(--bg)"}),
      Plot.ruleX(steps, Plot.pointerX({px: (step) => (step.low + step.high) / 2, x: (step) => (step.low + step.high) / 2, stroke: "var(--muted)"})),
      Plot.tip(steps, Plot.pointerX({
        x: (step) => (step.low + step.high) / 2, y: "value",
        ...TIP, title: (step) => `${name} ${decimals(step.value)}\nweight ${decimals(step.low)} to ${decimals(step.high)}`,
      })),
    ],
  });
  const heading = h("h3", null, h("bdi", null, line.ranker));
  const note = h("figcaption", null,
    `Diamond: learned, ${decimals(line.weight)} (${decimals(line.value)}). Triangle: best, ${span(line.best)} (${decimals(line.best[2])}).`);
  return h("figure", {class: "chart"}, heading, drawing, note);
}

/** What the same method reaches when it learns from fewer queries, and what needs no learning as level lines. */
export function learningChart(report, width) {
  const {points, rivals} = report.learning;
  const name = measureName(report.measure);
  const levels = Object.entries(rivals).map(([label, value], i) => ({label, value, dash: DASHES[i + 1]}));
  const banded = points.filter((point) => point.low !== null && point.high !== null);
  const last = Math.max(...points.map((point) => point.n_queries));
  const drawing = draw({
    width,
    height: Math.max(260, Math.min(360, width * 0.5)),
    marginLeft: 50,
    marginRight: 20,
    ariaLabel: `Held-out ${name} against the number of queries learned from`,
    ariaDescription: points.map((point) => `${Math.round(point.n_queries)} queries: ${decimals(point.mean)}`).join("; "),
    x: {label: "Queries learned from", domain: [0, last * 1.02], nice: true},
    y: {label: `Held-out ${name}`, grid: true, nice: true},
    marks: [
      Plot.areaY(banded, {x: "n_queries", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.14}),
      ...levels.map((level) => Plot.ruleY([level], {y: "value", stroke: "var(--muted)", strokeWidth: 1.5, strokeDasharray: level.dash})),
      Plot.line(points, {x: "n_queries", y: "mean", stroke: "var(--accent)", strokeWidth: 2.5}),
      Plot.dot(points, {
        x: "n_queries", y: "mean", r: 4, fill: "var(--accent)", stroke: "var(--bg)", tip: TIP,
        title: (point) =>
          `${Math.round(point.n_queries)} queries\n${name} ${decimals(point.mean)}` +
          (point.low === null ? "" : `\ninterval ${decimals(point.low)} to ${decimals(point.high)}`) +
          `\n${signed(point.difference)} against the last`,
      }),
    ],
  });
  const lines = [{label: "learned weights (band: interval)", look: {color: "var(--accent)", dash: "none", width: 2.5}}];
  for (const level of levels) lines.push({label: `${level.label}: ${decimals(level.value)}`, look: {color: "var(--muted)", dash: level.dash, width: 1.5}});
  return [drawing, legend(lines)];
}

/** Bars up for gains and down for losses; where they are thinner than a line, two areas with the same outline. */
function bars(rows, each) {
  const parts = [["var(--good)", (row) => row.delta > 0], ["var(--bad)", (row) => row.delta < 0]];
  return parts.map(([fill, wanted]) => {
    const some = rows.filter(wanted);
    if (each >= 1) {
      const inset = each > 5 ? 1 : 0;
      return Plot.rectY(some, {x1: "i", x2: (row) => row.i + 1, y: "delta", fill, insetLeft: inset, insetRight: inset});
    }
    return Plot.areaY(some, {x: (row) => row.i + 0.5, y: "delta", curve: "step", fill});
  });
}

/** Gains and losses, sorted: one bar per query. `open` is called with the position of the query that was clicked. */
export function stripChart(report, width, open) {
  const {delta, query_ids: ids, rival} = report.queries;
  const order = Array.from(delta.keys()).sort((a, b) => delta[b] - delta[a] || a - b);
  const rows = order.map((query, i) => ({query, i, delta: delta[query]}));
  const better = rows.filter((row) => row.delta > 0).length;
  const worse = rows.filter((row) => row.delta < 0).length;
  const largest = Math.max(...rows.map((row) => Math.abs(row.delta)), 1e-4);
  const places = Math.max(2, Math.min(5, 1 - Math.floor(Math.log10(largest))));
  const drawing = draw({
    width,
    height: 240,
    marginLeft: 48,
    ariaLabel: "Gain or loss of each query, sorted",
    ariaDescription: `${better} queries gain, ${worse} lose, ${rows.length - better - worse} stay; the table below has every value.`,
    x: {domain: [0, Math.max(rows.length, 8)], ticks: [], label: `${rows.length} queries, from the largest gain to the largest loss`, labelAnchor: "left", labelArrow: "none"},
    y: {label: `${report.measure} against the ${rival}`, grid: true, nice: true, tickFormat: (value) => signed(value, places)},
    marks: [
      ...bars(rows, width / rows.length),
      Plot.ruleY([0], {stroke: "var(--text)"}),
      Plot.tip(rows, Plot.pointerX({x: (row) => row.i + 0.5, y: "delta", ...TIP, title: (row) => `${isolate(ids[row.query], 60)}\n${signed(row.delta)}`})),
    ],
  });
  drawing.classList.add("clickable");
  drawing.addEventListener("click", () => {
    if (drawing.value) open(drawing.value.query);
  });
  const note = h("figcaption", null, "Bars upwards: the fusion is better; downwards: worse. Click a bar to open its query.");
  return [drawing, note];
}
