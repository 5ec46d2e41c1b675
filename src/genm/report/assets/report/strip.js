// Gains and losses of all queries in one row.

import {h, isolate} from "./dom.js";
import {TIP, draw} from "./looks.js";
import {count, signed} from "./numbers.js";

/** Bars up for gains and down for losses; where they are thinner than a line, two areas with the same outline. */
function bars(rows, each) {
  const parts = [
    ["var(--good)", (row) => row.delta > 0],
    ["var(--bad)", (row) => row.delta < 0],
  ];
  return parts.map(([fill, wanted]) => {
    const some = rows.filter(wanted);
    if (each >= 2) {
      const inset = each > 5 ? 1 : 0;
      return Plot.rectY(some, {
        x1: "i",
        x2: (row) => row.i + 1,
        y: "delta",
        fill,
        insetLeft: inset,
        insetRight: inset,
      });
    }
    return Plot.areaY(some, {x: (row) => row.i + 0.5, y: "delta", curve: "step", fill});
  });
}

/** Gains and losses, sorted: one bar per query. `open` is called with the position of the query that was clicked. */
export function stripChart(report, width, open) {
  const {delta, query_ids: ids, texts, rival} = report.queries;
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
    ariaDescription:
      `${count(better)} queries gain, ${count(worse)} lose, ${count(rows.length - better - worse)} stay; ` +
      "the table below has every value.",
    x: {
      domain: [0, Math.max(rows.length, 8)],
      ticks: [],
      label: `${count(rows.length)} queries, from the largest gain to the largest loss`,
      labelAnchor: "left",
      labelArrow: "none",
    },
    y: {
      label: `${report.measure} against the ${rival}`,
      grid: true,
      nice: true,
      tickFormat: (value) => signed(value, places),
    },
    marks: [
      ...bars(rows, width / rows.length),
      Plot.ruleY([0], {stroke: "var(--text)"}),
      Plot.tip(
        rows,
        Plot.pointerX({
          x: (row) => row.i + 0.5,
          y: "delta",
          ...TIP,
          title: (row) =>
            `${isolate(ids[row.query], 60)}\n${signed(row.delta)}` +
            (texts && texts[row.query] ? `\n${isolate(texts[row.query], 60)}` : ""),
        }),
      ),
    ],
  });
  drawing.classList.add("clickable");
  drawing.addEventListener("click", () => {
    if (drawing.value) open(drawing.value.query);
  });
  const note = h(
    "figcaption",
    null,
    "Bars upwards: the fusion is better; downwards: worse. Click a bar to open its query.",
  );
  return [drawing, note];
}
