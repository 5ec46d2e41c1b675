// Numbers, written exactly as Python writes them in the rest of the page, and arrays unpacked.

const MINUS = "\u2212";
const NONE = "\u2013";

/** A number with a fixed number of places. An exact half goes to the even digit, as in Python; toFixed goes up. */
function fixed(value, places) {
  const doubled = value * 2 ** (places + 1); // odd just when the value lies half-way between two writings
  if (Number.isInteger(doubled) && doubled % 2 !== 0) {
    const power = 10 ** places;
    const below = Math.floor(value * power);
    return ((below % 2 === 0 ? below : below + 1) / power).toFixed(places);
  }
  return value.toFixed(places);
}

export function decimals(value, places = 4) {
  return value === null || value === undefined ? NONE : fixed(value, places).replace("-", MINUS);
}

/** A difference, always with its sign; one that is written as zero has none. */
export function signed(value, places = 4) {
  if (value === null || value === undefined) return NONE;
  const text = fixed(Math.abs(value), places);
  return Number(text) === 0 ? text : (value < 0 ? MINUS : "+") + text;
}

/** A number of things, with commas between thousands. */
export function count(n) {
  return n.toLocaleString("en");
}

/** Name the mean of a measure: that of AP is called MAP. */
export function measureName(measure) {
  return /^AP($|[(@])/.test(measure) ? "M" + measure : measure;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The numbers of a packed array; browsers all keep the lowest byte first. */
export function unpack({dtype, base64}) {
  const kinds = {float64: Float64Array, int32: Int32Array, uint8: Uint8Array};
  return new kinds[dtype](bytesOf(base64).buffer);
}

/** The value of JSON that was deflated. */
export async function inflate(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
