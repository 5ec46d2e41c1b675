"""Kernels of smoothed average precision over tiles: the smoothed ranks, from which the derivatives follow.

Legend. s fused score; b sharpness (beta, and the powers of two taken out of scores and weights); for relevant
document j and document d: g = sigmoid(b (s_d - s_j)), w = g (1 - g), h = w (1 - 2 g); R_j smoothed rank, Eq. (5);
J_j position among the relevant documents; C_j = J_j / R_j^2; W_j sum of w over d.

Relevant documents are in falling order of s, so those that a tile concerns are a range, cut in three:

    cuts[0]:cuts[1]   b (s_j - s_d) > NEAR for the whole tile: a series in exp(-b (s_j - s_d))
    cuts[1]:cuts[2]   pair by pair
    cuts[2]:cuts[3]   b (s_d - s_j) > NEAR for the whole tile: a series in exp(-b (s_d - s_j))

Before cuts[0] all g are 0, from cuts[3] on they are 1, and a tile with nothing in between is not even read.
With E = exp(b (s_d - m)) and V = exp(b (s_j - m)), m the middle of the tile, a pair is g = E / (E + V): one
exponential per document, one division per pair. The series sum_i (-1)^(i+1) (E / V)^i needs sums of powers of E
over the tile instead of pairs. Tiles too wide for E to fit (cuts[4] = 1) take an exponential per pair.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import STEEPEST, exponential
from genm._math.lanes import fill, first, higher, load, lower, store, total
from genm._math.parallel import kernel
from genm._math.parts import part
from genm._math.tile_kernels import Array, bound_tile, first_below, fuse_tile, order_relevant, range_of

NEAR = 8.0
"""Where the series starts: four terms leave out exp(-32), relative to what they sum."""
WIDEST = 100.0
"""Half the width of a tile, times b, up to which E and its fourth power fit."""


class Store(NamedTuple):
    """The arrays of `Tiles` that these kernels read."""

    scores: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    sizes: NDArray[np.int64]
    tile_spans: NDArray[np.int64]
    relevant: NDArray[np.floating]
    relevant_spans: NDArray[np.int64]
    divisors: Array
    """What each query's sum over relevant documents is divided by: their number, at least 1."""


class Ranks(NamedTuple):
    """What `rank_range` leaves for the derivatives: a block of queries, one after the other."""

    order: NDArray[np.int64]
    """Relevant documents in falling order, as places in their query's list."""
    s: Array
    J: Array
    R: Array
    W: Array
    E: Array
    """(tiles, 65): E, or s for a tile that is too wide; the last place is the middle m."""
    cuts: NDArray[np.int64]
    """(tiles, 5)."""


@part()
def pair_by_ratio(E: Array, t: int, V: float, g: Array) -> None:
    """Set g for one relevant document and the 64 of tile t; 0 past the tile's end, where E is."""
    for d in range(0, 64, 8):
        x = load(E, 65 * t + d)
        store(g, d, x / (x + V))


@part()
def pair_by_score(E: Array, t: int, size: int, b: float, s_j: float, g: Array) -> None:
    """Set g for one relevant document and the 64 of tile t, which is too wide for ratios."""
    for d in range(0, 64, 8):
        x = (load(E, 65 * t + d) - s_j) * b
        x = exponential(higher(lower(x, fill(STEEPEST)), fill(-STEEPEST)))
        store(g, d, first(x / (x + 1.0), size - d))


@part()
def invert_tile(E: Array, t: int, size: int, e: Array) -> None:
    """Set e[0] to 1 / E, 0 past the tile's end: for relevant documents that stand below it."""
    for d in range(0, 64, 8):
        store(e, d, first(1.0 / load(E, 65 * t + d), size - d))


@part()
def _raise_tile(s: Array, size: int, b: float, E: Array, t: int) -> None:
    """Set E of tile t from its fused scores; its middle is there already."""
    middle = E[t, 64]
    for d in range(0, 64, 8):
        store(E, 65 * t + d, first(exponential((load(s, d) - middle) * b), size - d))


@part()
def _add_series(
    E: Array, begins: int, sign: float, b: float, middle: float, s: Array, R: Array, W: Array, begin: int, stop: int
) -> None:
    """Add the series of sum_d g to R and of sum_d w to W, for the relevant documents begin:stop of one side.

    Sign 1 and E: they stand above the tile. Sign -1 and 1 / E: below it. `begins` is where the tile's E lie.
    """
    l1, l2, l3, l4 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for d in range(0, 64, 8):
        x = load(E, begins + d)
        x2 = x * x
        l1 += x
        l2 += x2
        l3 += x2 * x
        l4 += x2 * x2
    m1, m2, m3, m4 = total(l1), total(l2), total(l3), total(l4)
    for j in range(begin, stop):
        v = exponential(sign * b * (middle - s[j]))
        R[j] += sign * v * (m1 - v * (m2 - v * (m3 - v * m4)))
        W[j] += v * (m1 - v * (2.0 * m2 - v * (3.0 * m3 - v * (4.0 * m4))))


@part()
def _sums(g: Array) -> tuple[float, float]:
    """Return the sums of g and of w over 64 documents."""
    sum_g, sum_w = fill(0.0), fill(0.0)
    for d in range(0, 64, 8):
        x = load(g, d)
        sum_g += x
        sum_w += x - x * x
    return total(sum_g), total(sum_w)


@kernel
def rank_range(
    low: int, high: int, store: Store, weights: Array, b: float, window: float, ranks: Ranks, values: Array
) -> None:
    """Fill the block of ranks for the queries low:high, and their values."""
    order, s, J, R, W, E, cuts = ranks
    scores, tile_low, tile_high, sizes, tile_spans, relevant, spans, divisors = store
    g, inverse = np.empty(64), np.empty((1, 64))
    near = NEAR if window > NEAR else window
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    at, t = zero, zero
    for q in range(low, high):
        begin, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        end = at + n
        order_relevant(relevant, begin, n, weights, s, order, at)
        for j in range(at, end + 1):  # one more than there are: for what no relevant document stands below
            R[j], J[j], W[j] = 0.0, 0.0, 0.0
        c0, c1, c2, c3 = at, at, at, at
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            size = sizes[tile]
            least, greatest = bound_tile(tile_low, tile_high, tile, weights)
            c0 = first_below(s, c0, at, end, b, greatest, -window)
            c3 = first_below(s, c3, at, end, b, least, window)
            if c0 < c3:
                fuse_tile(scores, tile, weights, g)
                least, greatest = range_of(g)
                c0 = first_below(s, c0, at, end, b, greatest, -window)
                c3 = first_below(s, c3, at, end, b, least, window)
            J[c3] += size
            wide = 0
            if c0 < c3:
                middle = 0.5 * least + 0.5 * greatest
                E[t, 64] = middle
                if b * (greatest - middle) > WIDEST:
                    wide, c1, c2 = 1, c0, c3
                    for d in range(64):
                        E[t, d] = g[d]
                else:
                    _raise_tile(g, size, b, E, t)
                    c1 = first_below(s, c1, c0, c3, b, greatest, -near)
                    c2 = first_below(s, c2, c1, c3, b, least, near)
                if c0 < c1:
                    _add_series(E, 65 * t, 1.0, b, middle, s, R, W, c0, c1)
                if c2 < c3:
                    invert_tile(E, t, size, inverse)
                    _add_series(inverse, zero, -1.0, b, middle, s, R, W, c2, c3)
                    for j in range(c2, c3):
                        R[j] += size
                for j in range(c1, c2):
                    if wide:
                        pair_by_score(E, t, size, b, s[j], g)
                    else:
                        pair_by_ratio(E, t, exponential(b * (s[j] - middle)), g)
                    sum_g, sum_w = _sums(g)
                    R[j] += sum_g
                    W[j] += sum_w
            cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3], cuts[t, 4] = c0, c1, c2, c3, wide
            t += 1
        above, mean = 0.0, 0.0
        for j in range(at, end):
            above += J[j]
            R[j] += 0.5 + above  # 1, less the half that a document counts against itself
            J[j] = 1.0 + j - at
            mean += J[j] / R[j]
        values[q] = mean / divisors[q]
        at = end
