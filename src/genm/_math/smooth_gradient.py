"""Kernels of smoothed average precision: gradient (Eq. 16) from the smoothed ranks.

The legend is in `smooth_kernels`. Derivatives here leave out the factor b. X are scores less the mean of the
query's relevant documents: ranks do not see a shift, and sums of small numbers keep their digits. Sums over pairs
are turned around where they can be: what document d adds, summed over the relevant documents, is one number u_d,
so that the K scores of a document are read once and not once per pair.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision_kernels import Ranks, Store, invert_tile, pair_by_ratio, pair_by_score
from genm._math.elementary import exponential
from genm._math.lanes import fill, load, store, total
from genm._math.parallel import kernel
from genm._math.parts import part
from genm._math.tile_kernels import Array


@part()
def _spread_series(
    E: Array, begins: int, sign: float, b: float, middle: float, s: Array, C: Array, begin: int, stop: int, u: Array
) -> None:
    """Add the series of sum_j C_j w to u, for the relevant documents begin:stop; the tile's E lie at `begins`."""
    a1, a2, a3, a4 = 0.0, 0.0, 0.0, 0.0
    for j in range(begin, stop):
        v, c = exponential(sign * b * (middle - s[j])), C[j]
        a1 += c * v
        a2 += 2.0 * c * v * v
        a3 += 3.0 * c * v * v * v
        a4 += 4.0 * c * (v * v) * (v * v)
    spread_powers(E, begins, a1, a2, a3, a4, u)


@part()
def spread_powers(E: Array, begins: int, a1: float, a2: float, a3: float, a4: float, u: Array) -> None:
    """Add a1 E - a2 E^2 + a3 E^3 - a4 E^4 to u for 64 documents."""
    for d in range(0, 64, 8):
        x = load(E, begins + d)
        store(u, d, load(u, d) + x * (a1 - x * (a2 - x * (a3 - x * a4))))


@part()
def _add_slope(g: Array, c: float, u: Array) -> None:
    """Add c w to u for 64 documents."""
    for d in range(0, 64, 8):
        x = load(g, d)
        store(u, d, load(u, d) + c * (x - x * x))


@part()
def _take_dots(u: Array, scores: NDArray[np.floating], tile: int, shift: Array, gradients: Array, q: int) -> None:
    """Take sum_d u X from the gradient."""
    for k in range(len(shift)):
        dot, x, begins = fill(0.0), shift[k], 64 * (len(shift) * tile + k)
        for d in range(0, 64, 8):
            dot += load(u, d) * (load(scores, begins + d) - x)
        gradients[q, k] -= total(dot)


@part()
def mean_relevant(relevant: NDArray[np.floating], begin: int, n: int, shift: Array) -> None:
    """Set shift to the mean scores of the relevant documents begin:begin+n."""
    for k in range(len(shift)):
        shift[k] = 0.0
    for j in range(begin, begin + n):
        for k in range(len(shift)):
            shift[k] += relevant[j, k]
    for k in range(len(shift)):
        shift[k] = shift[k] / n if n > 0 else 0.0


@kernel
def gradient_range(low: int, high: int, store: Store, ranks: Ranks, b: float, gradients: Array) -> None:
    """Fill the gradients of the queries low:high: sum_j C_j sum_d w (X_j - X_d) / n_relevant."""
    g, u, inverse, shift = np.empty(64), np.empty(64), np.empty((1, 64)), np.empty(gradients.shape[1])
    order, s, J, R, W, E, cuts = ranks
    scores, sizes, tile_spans, relevant, spans = (
        store.scores,
        store.sizes,
        store.tile_spans,
        store.relevant,
        store.relevant_spans,
    )
    C = np.empty(len(s))
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    at, t = zero, zero
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        mean_relevant(relevant, first, n, shift)
        for k in range(len(shift)):
            gradients[q, k] = 0.0
        for j in range(at, at + n):
            C[j] = J[j] / (R[j] * R[j])
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            c0, c1, c2, c3 = cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3]
            if c0 < c3:
                size, middle = sizes[tile], E[t, 64]
                for d in range(64):
                    u[d] = 0.0
                if c0 < c1:
                    _spread_series(E, 65 * t, 1.0, b, middle, s, C, c0, c1, u)
                if c2 < c3:
                    invert_tile(E, t, size, inverse)
                    _spread_series(inverse, zero, -1.0, b, middle, s, C, c2, c3, u)
                for j in range(c1, c2):
                    if cuts[t, 4]:
                        pair_by_score(E, t, size, b, s[j], g)
                    else:
                        pair_by_ratio(E, t, exponential(b * (s[j] - middle)), g)
                    _add_slope(g, C[j], u)
                _take_dots(u, scores, tile, shift, gradients, q)
            t += 1
        for j in range(at, at + n):
            c = W[j] * C[j]
            for k in range(len(shift)):
                gradients[q, k] += c * (relevant[first + order[j], k] - shift[k])
        for k in range(len(shift)):
            gradients[q, k] /= store.divisors[q]
        at += n
