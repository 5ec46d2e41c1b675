// The map of all blends of three rankers: a triangle of hexagons, one corner per ranker.

import {h, isolate, svg} from "./dom.js";
import {TIP, asImage, draw} from "./looks.js";
import {decimals, measureName} from "./numbers.js";

const HEIGHT = Math.sqrt(3) / 2;
const across = (weights) => weights[1] + weights[2] / 2;
const up = (weights) => weights[2] * HEIGHT;

/** The colours of the map with their values. */
function scaleOf(drawing, name, width) {
  const scale = asImage(drawing.legend("color", {className: "plot", width}));
  scale.setAttribute("aria-label", `Colours of ${name}`);
  return scale;
}

/** Draw the map; `choose` is called with the weights of a point that was clicked. Returns nodes and `move(weights)`. */
export function ternaryMap(report, fullWidth, choose) {
  const {rankers, step, weights, values, chosen, chosen_value: chosenValue, best} = report.ternary;
  const width = Math.min(fullWidth, 600);
  const name = measureName(report.measure);
  const margin = 36;
  const cell = ((width - 2 * margin) / 1.08) * step;
  const points = weights.map((w, i) => ({w, value: values[i]}));
  const told = (w) => rankers.map((ranker, k) => `${isolate(ranker, 30)} ${decimals(w[k], 3)}`).join("\n");
  const corners = rankers.map((ranker, k) => {
    const w = [0, 0, 0];
    w[k] = 1;
    return {w, label: isolate(ranker, Math.floor(width / 22))};
  });
  const drawing = draw({
    width,
    height: ((width - 2 * margin) * HEIGHT) / 1.08 + 2 * margin,
    margin,
    marginBottom: margin,
    ariaLabel: `${name} over all weights of ${rankers.length} rankers`,
    ariaDescription: `Best point of the grid: ${told(weights[best]).replace(/\n/g, ", ")}: ${decimals(values[best])}.`,
    x: {axis: null, domain: [-0.04, 1.04]},
    y: {axis: null, domain: [-0.04 * HEIGHT, 1.04 * HEIGHT]},
    color: {scheme: "cividis", label: name, tickFormat: ".3f"},
    marks: [
      Plot.dot(points, {
        x: ({w}) => across(w),
        y: ({w}) => up(w),
        symbol: "hexagon",
        r: cell / 2,
        fill: "value",
        stroke: "value",
        strokeWidth: 0.5,
      }),
      ...["start", "end"].map((textAnchor, k) =>
        Plot.text([corners[k]], {
          x: ({w}) => across(w),
          y: ({w}) => up(w),
          text: "label",
          dx: ((k ? 1 : -1) * cell) / 2,
          dy: cell / 2 + 14,
          textAnchor,
          fontWeight: 600,
        }),
      ),
      Plot.text(corners.slice(2), {
        x: ({w}) => across(w),
        y: ({w}) => up(w),
        text: "label",
        dy: -cell / 2 - 12,
        fontWeight: 600,
      }),
      Plot.dot([weights[best]], {x: across, y: up, symbol: "star", r: 7, fill: "#ffffff", stroke: "#000000"}),
      Plot.dot([chosen], {
        x: across,
        y: up,
        symbol: "diamond",
        r: 7,
        fill: "#ffffff",
        stroke: "#000000",
        strokeWidth: 1.5,
      }),
      Plot.tip(
        points,
        Plot.pointer({
          x: ({w}) => across(w),
          y: ({w}) => up(w),
          ...TIP,
          title: ({w, value}) => `${name} ${decimals(value)}\n${told(w)}`,
        }),
      ),
    ],
  });
  drawing.classList.add("clickable");
  drawing.addEventListener("click", () => {
    if (drawing.value) choose(drawing.value.w.slice());
  });
  const x = drawing.scale("x");
  const y = drawing.scale("y");
  const ring = svg("circle", {r: 9, fill: "none", stroke: "#ffffff", "stroke-width": 2.5, visibility: "hidden"});
  const rim = svg("circle", {r: 10.5, fill: "none", stroke: "#000000", "stroke-width": 1, visibility: "hidden"});
  drawing.append(rim, ring);
  const caption = h(
    "figcaption",
    null,
    `Diamond: the learned weights (${decimals(chosenValue)}). Star: best point of the grid (${decimals(values[best])}).`,
    h("span", {class: "screen-only"}, " Click a point to try its weights; the ring shows where the sliders stand."),
  );
  return {
    nodes: [scaleOf(drawing, name, Math.min(260, width)), drawing, caption],
    move(w) {
      for (const circle of [ring, rim]) {
        circle.setAttribute("cx", x.apply(across(w)));
        circle.setAttribute("cy", y.apply(up(w)));
        circle.setAttribute("visibility", "visible");
      }
    },
  };
}
