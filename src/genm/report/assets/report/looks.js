// What all charts share: the looks of rankers and systems, legends, and the frame of a drawing.

import {h, svg} from "./dom.js";

/** How tool tips are set. */
export const TIP = {lineHeight: 1.35};
export const DASHES = ["none", "6 3", "2 3", "8 3 2 3", "1 4", "10 4", "4 2 1 2", "12 3"];

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
        return [
          system.id,
          {color: "var(--text)", dash: system.held_out ? "none" : "2 2", width: system.held_out ? 3 : 1.5},
        ];
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
    h(
      "li",
      null,
      svg(
        "svg",
        {viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true"},
        svg("line", {
          x1: 0,
          x2: 28,
          y1: 4,
          y2: 4,
          stroke: look.color,
          "stroke-width": look.width,
          "stroke-dasharray": look.dash,
        }),
      ),
      " ",
      h("bdi", null, label),
    ),
  );
  return h("ul", {class: "legend"}, items);
}

/** Draw with the page's own fonts and colours, named for screen readers by `ariaLabel`. */
export function draw(options) {
  const drawing = Plot.plot({
    className: "plot",
    style: {
      background: "transparent",
      color: "inherit",
      fontFamily: "inherit",
      fontSize: "12px",
      overflow: "visible",
    },
    marginBottom: 42,
    ...options,
  });
  return asImage(drawing);
}

/** A drawing is one picture with one name: the names that the library gives to its parts are not read out. */
export function asImage(drawing) {
  for (const part of drawing.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  drawing.setAttribute("role", "img");
  return drawing;
}
