// Elements without markup: whatever a file said becomes text, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Make an HTML element: attributes, `on` for listeners, then children (nodes or text). */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Make an SVG element. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Foreign text that cannot turn the direction of the words around it. */
export function foreign(text) {
  return h("bdi", null, text);
}

/** The same for text inside drawings and tool tips, where there are no elements: isolating marks around it. */
export function isolate(text, length = Infinity) {
  const letters = Array.from(text.replace(/[\u0000-\u001f\u2028\u2029]/g, " "));
  if (letters.length <= length) return "\u2068" + letters.join("") + "\u2069";
  const tail = Math.floor((length - 1) * 0.4); // long names often differ at their end
  return (
    "\u2068" +
    letters.slice(0, length - 1 - tail).join("") +
    "\u2026" +
    letters.slice(letters.length - tail).join("") +
    "\u2069"
  );
}

/** Text for screen readers only. */
export function spoken(text) {
  return h("span", {class: "hidden-text"}, text);
}

/** A bar of pieces beside each other; sizes are shares of the whole width. */
export function bar(pieces, title) {
  let x = 0;
  const shapes = pieces.map(({kind, share, label}) => {
    const rect = svg("rect", {class: kind, x: (100 * x).toFixed(2), width: (100 * share).toFixed(2), height: 8});
    if (label) rect.append(svg("title", null, label));
    x += share;
    return rect;
  });
  const hidden = title ? {role: "img", "aria-label": title} : {"aria-hidden": "true"};
  return svg("svg", {class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", ...hidden}, shapes);
}

/** Call once after the calls have stopped for a while. */
export function settled(wait, action) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}
