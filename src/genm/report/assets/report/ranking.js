// Ranking anew under other weights, quickly enough to follow a slider.
//
// Rows rank by fused score downwards; of equal scores the earlier row comes first. AP needs no sorted list: only
// the relevant rows are sorted (few, and nearly in order since the last time); every other row finds by bisection
// how many of them stand ahead of it. All sums run in the order of Python's, so the results are the same bits.

import {unpack} from "./numbers.js";

export class Ranking {
  constructor(sliders, nRankers) {
    this.nRankers = nRankers;
    this.queries = unpack(sliders.queries);
    this.starts = unpack(sliders.row_starts);
    this.marks = unpack(sliders.marks);
    this.nRelevant = unpack(sliders.n_relevant);
    this.queryWeights = unpack(sliders.query_weights);
    this.nRows = this.marks.length;
    this.columns = this.#columns(sliders);
    this.fused = new Float64Array(this.nRows);
    this.ap = new Float64Array(this.queries.length);
    this.#collectRelevant();
    this.names = new Map();
    unpack(sliders.named_rows).forEach((row, i) => this.names.set(row, sliders.names[i]));
  }

  /** One array of scores per ranker: stored scores where there are, otherwise the query's fill. */
  #columns(sliders) {
    const K = this.nRankers;
    const stored = unpack(sliders.stored);
    const values = unpack(sliders.values);
    const filling = unpack(sliders.fill);
    const columns = Array.from({length: K}, () => new Float64Array(this.nRows));
    let next = 0;
    let bit = 0;
    for (let q = 0; q < this.queries.length; q++) {
      for (let row = this.starts[q]; row < this.starts[q + 1]; row++) {
        for (let k = 0; k < K; k++, bit++) {
          const own = (stored[bit >> 3] >> (7 - (bit & 7))) & 1;
          columns[k][row] = own ? values[next++] : filling[q * K + k];
        }
      }
    }
    return columns;
  }

  #collectRelevant() {
    const rows = [];
    this.relevantStarts = new Int32Array(this.queries.length + 1);
    let most = 0;
    for (let q = 0; q < this.queries.length; q++) {
      for (let row = this.starts[q]; row < this.starts[q + 1]; row++) if (this.marks[row] === 2) rows.push(row);
      this.relevantStarts[q + 1] = rows.length;
      most = Math.max(most, rows.length - this.relevantStarts[q]);
    }
    this.relevant = Int32Array.from(rows); // each query's part stays in the ranking order of the last weights
    this.behind = new Int32Array(most + 1);
    this.scores = new Float64Array(most);
  }

  /** Fuse, rank and measure; returns the mean AP. `ap` and `fused` hold the rest. */
  rank(weights) {
    this.#fuse(weights);
    let sum = 0;
    let total = 0;
    for (let q = 0; q < this.queries.length; q++) {
      this.ap[q] = this.#averagePrecision(q);
      sum += this.queryWeights[q] * this.ap[q];
      total += this.queryWeights[q];
    }
    return total > 0 ? sum / total : 0;
  }

  #fuse(weights) {
    const fused = this.fused.fill(0);
    const n = this.nRows;
    for (let k = 0; k < this.nRankers; k++) {
      const weight = weights[k];
      if (weight === 0) continue; // adds nothing
      const scores = this.columns[k];
      for (let row = 0; row < n; row++) fused[row] += weight * scores[row];
    }
  }

  #averagePrecision(q) {
    if (this.nRelevant[q] === 0) return 0;
    const {fused, marks, relevant, behind, scores} = this;
    const first = this.relevantStarts[q];
    const n = this.relevantStarts[q + 1] - first;
    if (n === 0) return 0;
    for (let i = first + 1; i < first + n; i++) {
      const row = relevant[i];
      const score = fused[row];
      let j = i - 1;
      while (j >= first && (fused[relevant[j]] < score || (fused[relevant[j]] === score && relevant[j] > row))) {
        relevant[j + 1] = relevant[j];
        j--;
      }
      relevant[j + 1] = row;
    }
    for (let j = 0; j < n; j++) {
      scores[j] = fused[relevant[first + j]];
      behind[j] = 0; // how many other rows stand after j relevant ones, just ahead of the next
    }
    const lowest = scores[n - 1];
    const end = this.starts[q + 1];
    for (let row = this.starts[q]; row < end; row++) {
      const score = fused[row];
      if (score < lowest || marks[row] === 2) continue;
      let low = 0;
      let high = n;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (scores[middle] > score || (scores[middle] === score && relevant[first + middle] < row))
          low = middle + 1;
        else high = middle;
      }
      if (low < n) behind[low]++;
    }
    let sum = 0;
    let rank = 0;
    for (let j = 0; j < n; j++) {
      rank += behind[j] + 1;
      sum += (j + 1) / rank;
    }
    return sum / this.nRelevant[q];
  }

  /** The first rows of a query under the last weights. */
  top(q, n) {
    const rows = [];
    const {fused} = this;
    for (let row = this.starts[q]; row < this.starts[q + 1]; row++) {
      if (rows.length === n && fused[row] <= fused[rows[n - 1]]) continue;
      let at = rows.length;
      while (at > 0 && fused[rows[at - 1]] < fused[row]) at--;
      rows.splice(at, 0, row);
      if (rows.length > n) rows.pop();
    }
    return rows;
  }
}
