// The charts of weights, curves and learning. Colours are the page's variables: light, dark, paper need no redrawing.

import {h, isolate} from "./dom.js";
import {DASHES, TIP, draw, legend, systemLooks} from "./looks.js";
import {decimals, measureName, signed} from "./numbers.js";

/** Weights: a dot for each, a line for 95% of the refits; the table has the rest. */
export function weightsChart(report, width) {
  const {rows, kind} = report.spread;
  const margin = Math.min(180, width * 0.3);
  const short = (k) => isolate(rows[k].ranker, Math.floor(margin / 8));
  const verdicts = new Map(report.verdicts.rows.map((row) => [row.ranker, row.verdict]));
  const leaveOut = (row) => ["hurts", "not needed"].includes(verdicts.get(row.ranker));
  const data = rows.map((row, k) => ({...row, k}));
  const spread = data.filter((row) => row.quantiles);
  const source = {bootstrap: "refits on resampled queries", folds: "the folds' weights", none: ""}[kind];
  const least = data.some((row) => row.weight < 0) ? -1 : 0;
  const told = (row) =>
    `${isolate(row.ranker, 40)}\nweight ${decimals(row.weight)}` +
    (row.quantiles
      ? `\n95% of ${source} ${decimals(row.quantiles[0], 3)} to ${decimals(row.quantiles.at(-1), 3)}`
      : "") +
    (row.plateau ? `\nnear-optimal ${decimals(row.plateau[0], 3)} to ${decimals(row.plateau[1], 3)}` : "") +
    (leaveOut(row) ? "\nleave out" : "");
  const drawing = draw({
    width,
    height: 50 + 36 * rows.length,
    marginLeft: margin,
    marginRight: 20,
    ariaLabel: "Weights of the rankers with their spread",
    ariaDescription: data
      .map((row) => `${row.ranker}: ${decimals(row.weight)}${leaveOut(row) ? ", leave out" : ""}`)
      .join("; "),
    x: {domain: [least, 1], label: "Weight", grid: true, ticks: width < 500 ? 5 : 10},
    y: {
      type: "point",
      domain: data.map((row) => row.k),
      label: null,
      tickFormat: short,
      tickSize: 0,
      tickPadding: 12,
      padding: 0.5,
    },
    marks: [
      Plot.ruleY(spread, {
        x1: (row) => row.quantiles[0],
        x2: (row) => row.quantiles.at(-1),
        y: "k",
        stroke: "var(--accent)",
        strokeWidth: 3,
      }),
      Plot.dot(data, {
        x: "weight",
        y: "k",
        r: 6,
        fill: "var(--text)",
        stroke: "var(--bg)",
        strokeWidth: 1.5,
        title: told,
        tip: TIP,
      }),
      Plot.text(data.filter(leaveOut), {
        x: (row) => Math.min(Math.max(row.weight, row.quantiles ? row.quantiles.at(-1) : 0), 0.8),
        y: "k",
        text: () => "leave out",
        textAnchor: "start",
        dx: 12,
        fill: "var(--bad)",
        fontWeight: 600,
      }),
    ],
  });
  const line = spread.length ? `; line: 95% of ${source}` : "";
  return [drawing, h("figcaption", null, `Dot: the weight${line}.`)];
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
  const points = shown.flatMap((curve) =>
    curve.precision.map((precision, i) => ({label: curve.label, recall: i / 10, precision})),
  );
  const drawing = draw({
    width,
    height: Math.max(280, Math.min(420, width * 0.6)),
    marginLeft: 45,
    ariaLabel: "Precision at eleven levels of recall",
    ariaDescription: "One line for each ranker, rule and fusion; the numbers are in the table below.",
    x: {domain: [0, 1], label: "Recall", ticks: 10, grid: true},
    y: {
      domain: [0, Math.max(0.1, ...points.map((point) => point.precision))],
      nice: true,
      label: "Precision",
      grid: true,
    },
    marks: [
      ...shown.map(({precision, look}) =>
        Plot.line(precision, {
          x: (_, i) => i / 10,
          y: (value) => value,
          stroke: look.color,
          strokeWidth: look.width,
          strokeDasharray: look.dash,
        }),
      ),
      Plot.dot(points, {
        x: "recall",
        y: "precision",
        r: 2,
        fill: "var(--muted)",
        fillOpacity: 0,
        tip: TIP,
        title: (point) =>
          `${isolate(point.label, 40)}\nrecall ${point.recall.toFixed(1)}\nprecision ${decimals(point.precision)}`,
      }),
    ],
  });
  return [drawing, legend(shown)];
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
    ariaDescription: points
      .map((point) => `${Math.round(point.n_queries)} queries: ${decimals(point.mean)}`)
      .join("; "),
    x: {label: "Queries learned from", domain: [0, last * 1.02], nice: true},
    y: {label: `Held-out ${name}`, grid: true, nice: true},
    marks: [
      Plot.areaY(banded, {x: "n_queries", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.14}),
      ...levels.map((level) =>
        Plot.ruleY([level], {y: "value", stroke: "var(--muted)", strokeWidth: 1.5, strokeDasharray: level.dash}),
      ),
      Plot.line(points, {x: "n_queries", y: "mean", stroke: "var(--accent)", strokeWidth: 2.5}),
      Plot.dot(points, {
        x: "n_queries",
        y: "mean",
        r: 4,
        fill: "var(--accent)",
        stroke: "var(--bg)",
        tip: TIP,
        title: (point) =>
          `${Math.round(point.n_queries)} queries\n${name} ${decimals(point.mean)}` +
          (point.low === null ? "" : `\ninterval ${decimals(point.low)} to ${decimals(point.high)}`) +
          `\n${signed(point.difference)} against the last`,
      }),
    ],
  });
  const lines = [
    {label: "learned weights (band: interval)", look: {color: "var(--accent)", dash: "none", width: 2.5}},
  ];
  for (const level of levels)
    lines.push({
      label: `${level.label}: ${decimals(level.value)}`,
      look: {color: "var(--muted)", dash: level.dash, width: 1.5},
    });
  return [drawing, legend(lines)];
}
