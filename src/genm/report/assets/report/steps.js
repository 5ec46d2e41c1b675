// The measure along one weight, with every step.

import {h, isolate} from "./dom.js";
import {TIP, draw, rankerLook} from "./looks.js";
import {decimals, measureName} from "./numbers.js";

/** An interval of weights; one too short to see is a point. */
function span([low, high]) {
  const [from, to] = [decimals(low), decimals(high)];
  return from === to ? from : `${from} to ${to}`;
}

/** The measure along one weight: its exact steps, the best interval, the learned weight. */
export function lineChart(report, line, width, domain) {
  const name = measureName(report.measure);
  const steps = line.values.map((value, i) => ({low: line.points[i], high: line.points[i + 1], value}));
  const path = [
    ...steps.map(({low, value}) => ({x: low, value})),
    {x: line.points.at(-1), value: line.values.at(-1)},
  ];
  const k = report.rankers.indexOf(line.ranker);
  const drawing = draw({
    width,
    height: 210,
    marginLeft: 48,
    marginRight: 12,
    ariaLabel: `${name} along the weight of ${isolate(line.ranker, 40)}`,
    ariaDescription:
      `Learned weight ${decimals(line.weight)} with ${name} ${decimals(line.value)}; best at ` +
      `${span(line.best)} with ${decimals(line.best[2])}.`,
    x: {domain: line.weight < 0 ? [-1, 0] : [0, 1], label: "Weight", ticks: 5},
    y: {domain, label: name, grid: true, ticks: 5, nice: true},
    marks: [
      Plot.ruleX([line.weight], {stroke: "var(--muted)", strokeDasharray: "3 3"}),
      Plot.line(path, {
        x: "x",
        y: "value",
        curve: "step-after",
        stroke: k < 0 ? "var(--accent)" : rankerLook(k).color,
        strokeWidth: 1.6,
      }),
      Plot.ruleY([line.best], {
        y: (best) => best[2],
        x1: (best) => best[0],
        x2: (best) => best[1],
        stroke: "var(--good)",
        strokeWidth: 4,
      }),
      Plot.dot([line.best], {
        x: (best) => (best[0] + best[1]) / 2,
        y: (best) => best[2],
        symbol: "triangle",
        r: 4.5,
        dy: -7,
        rotate: 180,
        fill: "var(--good)",
      }),
      Plot.dot([line], {
        x: "weight",
        y: "value",
        symbol: "diamond",
        r: 6,
        fill: "var(--text)",
        stroke: "var(--bg)",
      }),
      Plot.ruleX(
        steps,
        Plot.pointerX({
          px: (step) => (step.low + step.high) / 2,
          x: (step) => (step.low + step.high) / 2,
          stroke: "var(--muted)",
        }),
      ),
      Plot.tip(
        steps,
        Plot.pointerX({
          x: (step) => (step.low + step.high) / 2,
          y: "value",
          ...TIP,
          title: (step) =>
            `${name} ${decimals(step.value)}\nweight ${decimals(step.low)} to ${decimals(step.high)}`,
        }),
      ),
    ],
  });
  const heading = h("h3", null, h("bdi", null, line.ranker));
  const note = h(
    "figcaption",
    null,
    `Diamond: learned, ${decimals(line.weight)} (${decimals(line.value)}). Triangle: best, ${span(line.best)} (${decimals(line.best[2])}).`,
  );
  return h("figure", {class: "chart"}, heading, drawing, note);
}
