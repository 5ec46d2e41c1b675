// The parts of Observable Plot that the pages draw with; README.md says how plot.min.js is built from this.
export {areaY, axisX, axisY, barX, dot, frame, gridX, gridY, line, plot, pointer, pointerX, rectY, ruleX, ruleY, text, tickX, tip} from "@observablehq/plot";
