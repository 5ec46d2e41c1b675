"""Kernels of exact and smoothed average precision over tiles: ranks, gradient, Hessian.

They stand in one file because numba recompiles a kernel only when its own file changes. Parts are inlined: a call
hands over each array as seven numbers or more, on the stack, and such calls took a tenth of the time.

Legend. s fused score; b sharpness (beta, and the powers of two taken out of scores and weights); for relevant
document j and document d: g = sigmoid(b (s_d - s_j)), w = g (1 - g), h = w (1 - 2 g); R_j smoothed rank, Eq.
(5); J_j position among the relevant documents; C_j = J_j / R_j^2; W_j sum of w over d.

Fused scores are summed from the first ranker to the last without contraction, as `weighted_sum` does, so that
documents that are tied in a run are tied here to the last bit.

Relevant documents are in falling order of s, so those that a tile concerns are a range, cut in three:

    cuts[0]:cuts[1]   b (s_j - s_d) > NEAR for the whole tile: a series in exp(-b (s_j - s_d))
    cuts[1]:cuts[2]   pair by pair
    cuts[2]:cuts[3]   b (s_d - s_j) > NEAR for the whole tile: a series in exp(-b (s_d - s_j))

Before cuts[0] all g are 0, from cuts[3] on they are 1, and a tile with nothing in between is not even read. With
E = exp(b (s_d - m)) and V = exp(b (s_j - m)), m the middle of the tile, a pair is g = E / (E + V): one
exponential per document, one division per pair. The series sum_i (-1)^(i+1) (E / V)^i, i from 1 to 4, needs sums
of powers of E over the tile instead of pairs. Tiles too wide for E to fit (cuts[4] = 1) take an exponential per
pair.

A tile's sums times powers of V are those that the nearest relevant document of the range sees. The one before it
sees them times powers of exp(-b (s_j - s_next)), and so on. So a tile adds to one place alone: above[c] takes what
is for the documents before c, below[c] what is for c and those after it. At the end of the query one sum from
document to document gives every document its series. Derivatives go the same way back: a tile reads the sum of C_j
and powers over its range in one place. What a range passes on includes what lies beyond its far end: less than
exp(-37).

Gradient (Eq. 16) and Hessian (Eq. 37). Derivatives here leave out the factor b. X are scores less the mean of
the query's relevant documents: ranks do not see a shift, and sums of small numbers keep their digits. The gradient
sums plain scores and takes the mean away at the end of the query; the Hessian sums products of X. Sums over
pairs are turned around where they can be: what document d adds, summed over the relevant documents, is one
number u_d, so that the K scores of a document are read once and not once per pair. For the Hessian X has a last
column of ones, so that sums weighted by X contain the plain sums.

Algorithm 2 of the paper counts a pair in the derivatives only while |b (s_j - s_d)| < WINDOW (`windowed_range`).

Smoothed position: J_j = 1 + sum of g over the other relevant documents (Qin, Liu and Li, 2010). Its kernels add
to what the kernels for the sorted position have left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import LOG2_E, STEEPEST, TAIL, exp2, exponential
from genm._math.lanes import (
    WIDE,
    Lanes,
    fill,
    first,
    higher,
    highest,
    load,
    load_wide,
    lower,
    lowest,
    prefetch,
    store,
    total,
    totals,
    twice,
)
from genm._math.parallel import kernel, part
from genm._math.sorting import sort_downwards
from genm._typing import Codes, Floats, Ints

NEAR = 8.0
"""Where the series starts: four terms leave out exp(-32), relative to what they sum."""
WIDEST = 100.0
"""Half the width of a tile, times b, up to which E and its fourth power fit."""

FARTHEST = -1000.0
"""Exponents of two are cut here: 2^-1000 still fits float64."""
GREATEST = float(np.finfo(np.float64).max)

WINDOW = 2.0

ROUNDING = 2.0**-48
"""The rounding of bounds and fused scores, per ranker, relative to weights times scores: 2^-53, some 16 times."""
LEAST = 1e-300
"""More than the rounding of numbers too small to have all their digits."""

AHEAD = 2048
"""Scores between the ones that a kernel computes with and the ones that it asks for."""

TOGETHER = 4
"""Queries that are evaluated under several weights before the next ones."""

RANKS, GRADIENTS, IN_BLOCKS = 1, 2, 4
"""The steps of `smooth_range`; the last lets every query have its own places in `Ranks`."""
IN_EIGHTS = 8
"""With the steps of `sum_gradients`: how gradients are added."""


@part(inline=True)
def clear(numbers: Floats, begin: int, end: int) -> None:
    """Set these numbers of an array's memory to 0; there are a multiple of eight."""
    for at in range(begin, end, 8):
        store(numbers, at, fill(0.0))


@part(inline=True)
def fuse_tile(scores: NDArray[np.floating], tile: int, weights: Floats, s: Floats) -> None:
    """Set s to the fused scores of 64 documents."""
    weight, begins = weights[0], 64 * len(weights) * tile
    for d in range(0, 64, 8):
        store(s, d, weight * load(scores, begins + d))
    for k in range(1, len(weights)):
        weight, begins = weights[k], begins + 64
        for d in range(0, 64, 8):
            store(s, d, load(s, d) + weight * load(scores, begins + d))


@part(inline=True)
def range_of(s: Floats) -> tuple[float, float]:
    """Return the least and greatest of 64 numbers, none NaN."""
    least, greatest = load(s, 0), load(s, 0)
    for d in range(8, 64, 8):
        x = load(s, d)
        least, greatest = lower(least, x), higher(greatest, x)
    return lowest(least), highest(greatest)


@part(inline=True)
def prefetch_quarter(scores: NDArray[np.floating], tile: int, quarter: int) -> None:
    """Ask for as many scores as a quarter of a tile has, so that they are in the cache when they are fused.

    A core can wait for a dozen lines of memory at a time, and stands still when it is asked for more: quarters
    leave it work in between. Eight numbers are a line of float64 and half a line of float32.
    """
    n = 16 * scores.shape[1]
    begins = (4 * tile + quarter) * n + AHEAD
    for at in range(begins, begins + n, 8):
        prefetch(scores, at)


@part(inline=True)
def order_relevant(
    scores: NDArray[np.floating], first: int, n: int, weights: Floats, s: Floats, order: Ints, at: int
) -> None:
    """Fuse the relevant documents first:first+n and sort them: s downwards, then position upwards.

    Scores and order go to the places from `at` on.
    """
    for j in range(n):
        total = weights[0] * scores[first + j, 0]
        for k in range(1, len(weights)):
            total += weights[k] * scores[first + j, k]
        s[at + j] = total
        order[at + j] = j
    sort_downwards(s, order, at, n)


@part(inline=True)
def first_below(s: Floats, j: int, low: int, high: int, b: float, x: float, distance: float) -> int:
    """Return the first j in low:high (s falling) with b (x - s_j) > distance, or high.

    Walks there from the given j, usually the answer for the tile before, which is close.
    """
    if j < low:
        j = low
    if j > high:
        j = high
    while j < high and not b * (x - s[j]) > distance:
        j += 1
    while j > low and b * (x - s[j - 1]) > distance:
        j -= 1
    return j


class Store(NamedTuple):
    """The arrays of `Tiles` that these kernels read."""

    scores: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    sizes: Ints
    position: Codes
    tile_spans: Ints
    relevant: NDArray[np.floating]
    relevant_position: Codes
    relevant_tile: Ints
    relevant_spans: Ints
    n_relevant: Ints
    sums: Floats
    """(tiles, 2), or (0, 2) where they are not known."""
    greatest: float
    """The greatest size of any score."""
    divisors: Floats
    """What each query's sum of smoothed terms is divided by: the number of relevant documents, at least 1."""


class Bounds(NamedTuple):
    """What bounds the fused scores of a tile without reading it.

    Documents are sorted by the sum of their scores, so that a tile's sums lie close together and the scores of each
    ranker do not. Weights are cut into a level that all of them share, times the sum, and the rest, times scores.
    """

    low: NDArray[np.floating]
    high: NDArray[np.floating]
    sums: Floats
    weights: Floats
    """What each weight is above the level."""
    level: float
    slack: float
    """More than all roundings of the bounds and of the fused scores together."""


@part(inline=True)
def level_weights(store: Store, weights: Floats, above: Floats) -> tuple[float, float]:
    """Return level and slack of `Bounds`, and set what each weight is above the level.

    The level is the one from which the weights differ least, or 0 where sums are not known.
    """
    level, slack, n_rankers = 0.0, 0.0, len(weights)
    size, least = 0.0, np.inf
    for k in range(n_rankers):
        size += abs(weights[k])
    for k in range(n_rankers if len(store.sums) == len(store.low) else 0):
        apart = 0.0
        for other in range(n_rankers):
            apart += abs(weights[other] - weights[k])
        if apart < least and weights[k] > 0.0:
            level, least = weights[k], apart
    if level > 0.0:
        slack = (n_rankers + 2) * (ROUNDING * size * store.greatest + LEAST)
    for k in range(n_rankers):
        above[k] = weights[k] - level
    return level, slack


@part(inline=True)
def bound_tile(bounds: Bounds, tile: int) -> tuple[float, float]:
    """Return numbers between which all fused scores of the tile lie.

    Without a level there is no slack: rounding never turns an order around, and the sum runs as in `fuse_tile`.
    """
    low, high, sums, weights, level, slack = bounds
    least, greatest = -slack, slack
    if level > 0.0:
        least += level * sums[tile, 0]
        greatest += level * sums[tile, 1]
    for k in range(len(weights)):
        weight = weights[k]
        if weight >= 0.0:
            least += weight * low[tile, k]
            greatest += weight * high[tile, k]
        else:
            least += weight * high[tile, k]
            greatest += weight * low[tile, k]
    return least, greatest


class Ranks(NamedTuple):
    """What the ranks leave for the derivatives: a query, or a block of queries one after the other."""

    order: Ints
    """Relevant documents in falling order, as places in their query's list."""
    s: Floats
    J: Floats
    R: Floats
    W: Floats
    fall: Floats
    """exp(-b (s_before - s_j)) of each relevant document and the one before it; 0 for a query's first, and past its
    last."""
    above: Floats
    """(n, 8) at place c four sums of what tiles add for the documents before c, twice.

    The gradient replaces them by sums over these documents j of C_j times powers of exp(-b (s_j - s_(c-1)))."""
    below: Floats
    """(n, 8) the same for document c and those after it."""
    pairs: Floats
    """(n, 16) sums of g, and of its squares, over the pairs of a relevant document, eight of each."""
    E: Floats
    """(tiles, 64): E, or s for a tile that is too wide."""
    middles: Floats
    """(tiles,): m."""
    cuts: Ints
    """(tiles, 5)."""
    G: Floats
    """(rows, 64): g of the pairs and 1 / E of the tiles, in the order in which the kernels come to them.

    Derivatives read them again instead of dividing again. What has no row left goes to the last one and is computed
    anew; with a single row nothing is kept."""
    V: Floats
    """V of the relevant documents of each tile's pairs and of the nearest of its series; 1 / V of the one above.

    What has no room left goes to the last places, which are as many as s has, and is computed anew."""


class Memory(NamedTuple):
    """Working memory for one query after another."""

    x: Floats
    """(64,)."""
    u: Floats
    """(64,)."""
    dots: Floats
    """(K + 1, 8)."""
    C: Floats
    shift: Floats
    """(K,)."""
    above: Floats
    """(K,) of `Bounds.weights`."""


class Place(NamedTuple):
    """Where a query begins in the arrays of `Ranks`."""

    at: int
    """Its first relevant document in s."""
    tile: int
    row: int
    """Its first row of G."""
    v: int
    """Its first place in V."""


@part(inline=True)
def pair_by_ratio(E: Floats, t: int, V: float, G: Floats, row: int) -> None:
    """Set a row of G to g of one relevant document and the 64 of tile t; 0 past the tile's end, where E is."""
    for d in range(0, 64, 8):
        x = load(E, 64 * t + d)
        store(G, 64 * row + d, x / (x + V))


@part(inline=True)
def pair_by_score(E: Floats, t: int, size: int, b: float, s_j: float, G: Floats, row: int) -> None:
    """Set a row of G to g of one relevant document and the 64 of tile t, which is too wide for ratios."""
    for d in range(0, 64, 8):
        x = (load(E, 64 * t + d) - s_j) * b
        x = exponential(higher(lower(x, fill(STEEPEST)), fill(-STEEPEST)))
        store(G, 64 * row + d, first(x / (x + 1.0), size - d))


@part(inline=True)
def pair_again(
    E: Floats, t: int, size: int, b: float, s_j: float, V: float, wide: int, G: Floats, row: int
) -> None:
    """Set a row of G to g as `_rank_query` did."""
    if wide:
        pair_by_score(E, t, size, b, s_j, G, row)
    else:
        pair_by_ratio(E, t, V, G, row)


@part(inline=True)
def invert_tile(E: Floats, t: int, size: int, G: Floats, row: int) -> None:
    """Set a row of G to 1 / E, 0 past the tile's end: for relevant documents that stand below it."""
    for d in range(0, 64, 8):
        store(G, 64 * row + d, first(1.0 / load(E, 64 * t + d), size - d))


@part(inline=True)
def in_twos(b: float) -> float:
    """Return b for powers of two instead of e."""
    return min(b * LOG2_E, GREATEST)


@part(inline=True)
def _raise_tile(s: Floats, size: int, b: float, middle: float, E: Floats, t: int) -> None:
    """Set E of tile t from its fused scores; b is that of `in_twos`."""
    for d in range(0, 64, WIDE):
        store(E, 64 * t + d, exp2((load_wide(s, d) - middle) * b))
    for d in range(size, 64):
        E[t, d] = 0.0


@part(inline=True)
def place_in(V: Floats, v: int, n: int, room: int) -> int:
    """Return where n numbers go that come at v: there, or to the last `room` places where that is too far."""
    return v if v + n <= len(V) - room else len(V) - room


@part(inline=True)
def raise_relevant(
    s: Floats, b: float, middle: float, begin: int, above: int, stop: int, V: Floats, place: int
) -> None:
    """Set V_j to exp(b (m - s_j)) for the relevant documents begin:above, and to exp(b (s_j - m)) for above:stop.

    Document `begin` goes to `place`; b is that of `in_twos`. Eight at a time, so up to seven places after `stop`
    are read and written too; arrays have room for them.
    """
    for j in range(begin, stop, 8):
        x = (load(s, j) - middle) * b
        store(V, place + j - begin, exp2(x - first(2.0 * x, above - j)))


@part(inline=True)
def _relate_relevant(s: Floats, at: int, end: int, b: float, fall: Floats) -> None:
    """Set what one relevant document after another falls by; b is that of `in_twos`."""
    for j in range(at + 1, end, 8):
        store(fall, j, exp2(higher((load(s, j) - load(s, j - 1)) * b, fill(FARTHEST))))
    fall[at], fall[end] = 0.0, 0.0


@part(inline=True)
def _powers(r: float) -> Lanes:
    """Return r, r^2, r^3 and r^4, twice."""
    r2 = r * r
    return twice(r, r2, r2 * r, r2 * r2)


@part(inline=True)
def _add_series(E: Floats, begins: int, v: float, sums: Floats, place: int) -> None:
    """Add v^i times the sum of E^i over a tile, whose E lie at `begins`, to the four sums of this place."""
    l1, l2, l3, l4 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for d in range(0, 64, 8):
        x = load(E, begins + d)
        x2 = x * x
        l1 += x
        l2 += x2
        l3 += x2 * x
        l4 += x2 * x2
    store(sums, 8 * place, load(sums, 8 * place) + _powers(v) * totals(l1, l2, l3, l4))


@part(inline=True)
def _close_pairs(pairs: Floats, R: Floats, W: Floats, at: int, end: int) -> None:
    """Set R and W of a query's documents to the sums of g and of w over pairs."""
    for j in range(at, end):
        R[j] = total(load(pairs, 16 * j))
        W[j] = R[j] - total(load(pairs, 16 * j + 8))


@part(inline=True)
def _close_series(fall: Floats, above: Floats, below: Floats, R: Floats, W: Floats, at: int, end: int) -> None:
    """Add the series of all tiles to R and W: of those below each document, then of those above it."""
    for_rank, for_slope = twice(1.0, -1.0, 1.0, -1.0), twice(1.0, -2.0, 3.0, -4.0)
    sums = fill(0.0)
    for j in range(end - 1, at - 1, -1):
        sums = sums * _powers(fall[j + 1]) + load(above, 8 * (j + 1))
        R[j] += total(first(sums * for_rank, 4))
        W[j] += total(first(sums * for_slope, 4))
    sums = fill(0.0)
    for j in range(at, end):
        sums = sums * _powers(fall[j]) + load(below, 8 * j)
        R[j] -= total(first(sums * for_rank, 4))
        W[j] += total(first(sums * for_slope, 4))


@part(inline=True)
def _carry_sums(fall: Floats, C: Floats, above: Floats, below: Floats, at: int, end: int) -> None:
    """Set the sums of C_j and powers over the documents before each place in `above`, and from it on in `below`."""
    sums = fill(0.0)
    for j in range(at, end):
        sums = sums * _powers(fall[j]) + C[j]
        store(above, 8 * (j + 1), sums)
    sums = fill(0.0)
    for j in range(end - 1, at - 1, -1):
        sums = sums * _powers(fall[j + 1]) + C[j]
        store(below, 8 * j, sums)


@part(inline=True)
def _add_pairs_of(G: Floats, row: int, pairs: Floats, j: int) -> None:
    """Add a row of g, and their squares, to the lanes of a relevant document."""
    sum_g, squares = load(pairs, 16 * j), load(pairs, 16 * j + 8)
    for d in range(0, 64, 8):
        x = load(G, 64 * row + d)
        sum_g += x
        squares += x * x
    store(pairs, 16 * j, sum_g)
    store(pairs, 16 * j + 8, squares)


@part(inline=True)
def _rank_query(
    q: int,
    place: Place,
    store: Store,
    weights: Floats,
    b: float,
    window: float,
    ranks: Ranks,
    values: Floats,
    bounds: Bounds,
    memory: Memory,
) -> Place:
    """Fill the ranks of a query, and its value; return where the next query begins."""
    x = memory.x
    order, s, J, R, W, fall, above, below, pairs, E, middles, cuts, G, V = ranks
    scores, sizes, spans, tile_spans = store.scores, store.sizes, store.relevant_spans, store.tile_spans
    has_series = window >= TAIL  # else what is further than the window must not count, and all goes pair by pair
    near = NEAR if has_series else window
    twos = in_twos(b)
    at, t, rows, used = place
    last, room = len(G) - 1, len(s)
    n = spans[q, 1] - spans[q, 0]
    end = at + n
    order_relevant(store.relevant, spans[q, 0], n, weights, s, order, at)
    _relate_relevant(s, at, end, twos, fall)
    for j in range(at, end + 1):  # one more than there are: for what no relevant document stands below
        J[j] = 0.0
    if has_series:
        clear(above, 8 * at, 8 * end + 8)
        clear(below, 8 * at, 8 * end + 8)
    clear(pairs, 16 * at, 16 * end)
    c0, c1, c2, c3 = at, at, at, at
    inside = False  # what follows a tile that concerns relevant documents nearly always does so too: skip bounds
    least, greatest = 0.0, 0.0
    for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
        size = sizes[tile]
        if not inside:
            least, greatest = bound_tile(bounds, tile)
            c0 = first_below(s, c0, at, end, b, greatest, -window)
            c3 = first_below(s, c3, at, end, b, least, window)
        if inside or c0 < c3:
            fuse_tile(scores, tile, weights, x)
            least, greatest = range_of(x)
            c0 = first_below(s, c0, at, end, b, greatest, -window)
            c3 = first_below(s, c3, at, end, b, least, window)
            prefetch_quarter(scores, tile, 0)
        inside, wide = c0 < c3, 0
        if inside:
            middle = 0.5 * least + 0.5 * greatest
            middles[t] = middle
            v = 0
            if b * (greatest - middle) > WIDEST:
                wide, c1, c2 = 1, c0, c3
                for d in range(64):
                    E[t, d] = x[d]
            else:
                _raise_tile(x, size, twos, middle, E, t)
                c1 = first_below(s, c1, c0, c3, b, greatest, -near)
                c2 = first_below(s, c2, c1, c3, b, least, near)
                low, high = c1 - (c0 < c1), c2 + (c2 < c3)
                v = place_in(V, used, high - low, room) - low
                used += high - low
                raise_relevant(s, twos, middle, low, c1, high, V, v + low)
            prefetch_quarter(scores, tile, 1)
            if c0 < c1:
                _add_series(E, 64 * t, V[v + c1 - 1], above, c1)
            prefetch_quarter(scores, tile, 2)
            if c2 < c3:
                row = min(rows, last)
                rows += 1
                invert_tile(E, t, size, G, row)
                _add_series(G, 64 * row, V[v + c2], below, c2)
            prefetch_quarter(scores, tile, 3)
            for j in range(c1, c2):
                row = min(rows, last)
                rows += 1
                if wide:
                    pair_by_score(E, t, size, b, s[j], G, row)
                else:
                    pair_by_ratio(E, t, V[v + j], G, row)
                _add_pairs_of(G, row, pairs, j)
            J[c2] += size
        else:
            J[c3] += size
        cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3], cuts[t, 4] = c0, c1, c2, c3, wide
        t += 1
    _close_pairs(pairs, R, W, at, end)
    if has_series:
        _close_series(fall, above, below, R, W, at, end)
    before, mean = 0.0, 0.0
    for j in range(at, end):
        before += J[j]
        R[j] += 0.5 + before  # 1, less the half that a document counts against itself
        J[j] = 1.0 + j - at
        mean += J[j] / R[j]
    values[q] = mean / store.divisors[q]
    return Place(end, t, rows, used)


@part(inline=True)
def _count_before(s: Floats, s_j: float) -> tuple[int, int]:
    """Return how many of 64 scores are greater than s_j, and how many equal it."""
    greater, equal = 0, 0
    for d in range(64):
        greater += s[d] > s_j
        equal += s[d] == s_j
    return greater, equal


@part(inline=True)
def _count_ties(s: Floats, s_j: float, position: Codes, tile: int, place: int) -> int:
    """Return how many of 64 documents equal s_j and stand in an earlier row."""
    earlier = 0
    for d in range(64):
        earlier += s[d] == s_j and position[tile, d] < place
    return earlier


class Counts(NamedTuple):
    """Working memory for the exact ranks of one query."""

    above: Floats
    """(K,) of `Bounds.weights`."""
    s: Floats
    order: Ints
    before: Ints
    """Of each relevant document, those before it in tiles that were read."""
    below: Ints
    """Documents of tiles that stand above this relevant document and below the one before it."""
    x: Floats
    """(64,)."""


@kernel(makes_arrays=True)
def exact_range(
    low: int, high: int, store: Store, weights: Floats, values: Floats, starts: Ints, ranks: Ints
) -> None:
    """Fill the (W, Q) values of the queries low:high under each of (W, K) weights; the last ones leave their ranks.

    A few queries are evaluated under all weights before the next: their scores stay in the cache.
    """
    most, spans = 0, store.relevant_spans
    for q in range(low, high):
        n = spans[q, 1] - spans[q, 0]
        most = n if n > most else most
    before, below = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    own, order = np.empty(most), np.empty(most, np.int64)
    counts = Counts(np.empty(weights.shape[1]), own, order, before, below, np.empty(64))
    _rank_queries(low, high, store, weights, values, starts, ranks, counts)


@part()
def _rank_queries(
    low: int, high: int, store: Store, weights: Floats, values: Floats, starts: Ints, ranks: Ints, counts: Counts
) -> None:
    together = TOGETHER if len(weights) > 1 else max(high - low, 1)
    for begin in range(low, high, together):
        for w in range(len(weights)):
            level, slack = level_weights(store, weights[w], counts.above)
            bounds = Bounds(store.low, store.high, store.sums, counts.above, level, slack)
            for q in range(begin, min(begin + together, high)):
                values[w, q] = _rank_exactly(q, store, weights[w], bounds, counts, starts, ranks)


@part(inline=True)
def _rank_exactly(
    q: int, store: Store, weights: Floats, bounds: Bounds, counts: Counts, starts: Ints, ranks: Ints
) -> float:
    """Fill the ranks of a query's relevant documents; return its average precision."""
    _, s, order, before, below, x = counts
    scores, sizes, position, tile_spans = store.scores, store.sizes, store.position, store.tile_spans
    first, n = store.relevant_spans[q, 0], store.relevant_spans[q, 1] - store.relevant_spans[q, 0]
    zero = q - q  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    if n == 0:
        return 0.0
    order_relevant(store.relevant, first, n, weights, s, order, zero)
    for j in range(n + 1):
        before[j], below[j] = 0, 0
    c0, c3 = zero, zero
    for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
        least, greatest = bound_tile(bounds, tile)
        c0 = first_below(s, c0, zero, n, 1.0, greatest, 0.0)
        while c0 > 0 and s[c0 - 1] == greatest:  # ties with the tile's best have to be looked at
            c0 -= 1
        c3 = first_below(s, c3, zero, n, 1.0, least, 0.0)
        if c0 >= c3:
            below[c3] += sizes[tile]
            continue
        fuse_tile(scores, tile, weights, x)
        least, greatest = range_of(x)  # which leaves fewer relevant documents open than the bounds
        begin, stop = c0, first_below(s, c3, c0, c3, 1.0, least, 0.0)
        while begin < stop and s[begin] > greatest:
            begin += 1
        below[stop] += sizes[tile]
        for d in range(sizes[tile], 64):
            x[d] = -np.inf
        for j in range(begin, stop):
            greater, equal = _count_before(x, s[j])
            itself = store.relevant_tile[first + order[j]] == tile
            if equal > itself:
                greater += _count_ties(x, s[j], position, tile, store.relevant_position[first + order[j]])
            before[j] += greater
    above, total = zero, 0.0
    for j in range(n):
        above += below[j]
        rank = 1 + above + before[j]
        ranks[starts[q] + j] = rank
        total += (j + 1.0) / rank
    return float(total / store.n_relevant[q])


@kernel(makes_arrays=True)
def top_range(low: int, high: int, store: Store, weights: Floats, found: Codes) -> None:
    """Write the positions of each query's best documents, as many as `found` has columns; -1 where it has fewer.

    By fused score downwards, ties by position upwards. A tile is read only if its bound reaches the last of them.
    """
    most = found.shape[1]
    memory = np.empty(64), np.empty(most), np.empty(most, np.int32), np.empty(len(weights))
    _find_top(low, high, store, weights, found, memory)


@part()
def _find_top(
    low: int,
    high: int,
    store: Store,
    weights: Floats,
    found: Codes,
    memory: tuple[Floats, Floats, Codes, Floats],
) -> None:
    x, best, place, above = memory
    level, slack = level_weights(store, weights, above)
    bounds = Bounds(store.low, store.high, store.sums, above, level, slack)
    scores, sizes = store.scores, store.sizes
    position, tile_spans, most = store.position, store.tile_spans, found.shape[1]
    for q in range(low, high):
        n = 0
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            _, greatest = bound_tile(bounds, tile)
            if n == most and greatest < best[n - 1]:
                continue
            fuse_tile(scores, tile, weights, x)
            for d in range(sizes[tile]):
                score, own = x[d], position[tile, d]
                if n == most and (score < best[n - 1] or (score == best[n - 1] and own > place[n - 1])):
                    continue
                n = n + 1 if n < most else n
                at = n - 1
                while at > 0 and (best[at - 1] < score or (best[at - 1] == score and place[at - 1] > own)):
                    best[at], place[at] = best[at - 1], place[at - 1]
                    at -= 1
                best[at], place[at] = score, own
        for i in range(most):
            found[q, i] = place[i] if i < n else -1


@part(inline=True)
def _spread_series(E: Floats, begins: int, v: float, sums: Floats, place: int, u: Floats) -> None:
    """Add the series of sum_j C_j w to u, from the sums of this place and the V of its nearest document.

    The tile's E lie at `begins`.
    """
    v2 = v * v
    a1, a2 = v * sums[place, 0], 2.0 * v2 * sums[place, 1]
    a3, a4 = 3.0 * (v2 * v) * sums[place, 2], 4.0 * (v2 * v2) * sums[place, 3]
    spread_powers(E, begins, a1, a2, a3, a4, u)


@part(inline=True)
def spread_powers(E: Floats, begins: int, a1: float, a2: float, a3: float, a4: float, u: Floats) -> None:
    """Add a1 E - a2 E^2 + a3 E^3 - a4 E^4 to u for 64 documents."""
    for d in range(0, 64, 8):
        x = load(E, begins + d)
        store(u, d, load(u, d) + x * (a1 - x * (a2 - x * (a3 - x * a4))))


@part(inline=True)
def _add_slope(G: Floats, row: int, c: float, u: Floats) -> None:
    """Add c w to u for 64 documents."""
    for d in range(0, 64, 8):
        x = load(G, 64 * row + d)
        store(u, d, load(u, d) + c * (x - x * x))


@part(inline=True)
def _add_dots(u: Floats, X: NDArray[np.floating], begins: int, n_rows: int, dots: Floats, place: int) -> None:
    """Add the products of 64 numbers u and of rows of X, from `begins` on, to eight numbers for each row."""
    u0, u1, u2, u3 = load(u, 0), load(u, 8), load(u, 16), load(u, 24)
    u4, u5, u6, u7 = load(u, 32), load(u, 40), load(u, 48), load(u, 56)
    for k in range(n_rows):
        at, to = begins + 64 * k, 8 * (place + k)
        low = (u0 * load(X, at) + u1 * load(X, at + 8)) + (u2 * load(X, at + 16) + u3 * load(X, at + 24))
        high = (u4 * load(X, at + 32) + u5 * load(X, at + 40)) + (u6 * load(X, at + 48) + u7 * load(X, at + 56))
        store(dots, to, load(dots, to) + (low + high))


@part(inline=True)
def _add_whole(u: Floats, dots: Floats, place: int) -> None:
    """Add 64 numbers u to eight."""
    whole = load(dots, 8 * place)
    for d in range(0, 64, 8):
        whole += load(u, d)
    store(dots, 8 * place, whole)


@part(inline=True)
def mean_relevant(relevant: NDArray[np.floating], begin: int, n: int, shift: Floats) -> None:
    """Set shift to the mean scores of the relevant documents begin:begin+n."""
    for k in range(len(shift)):
        shift[k] = 0.0
    for j in range(begin, begin + n):
        for k in range(len(shift)):
            shift[k] += relevant[j, k]
    for k in range(len(shift)):
        shift[k] = shift[k] / n if n > 0 else 0.0


@part(inline=True)
def _differentiate_query(
    q: int,
    place: Place,
    store: Store,
    ranks: Ranks,
    b: float,
    gradients: Floats,
    memory: Memory,
) -> Place:
    """Fill the gradient of a query, sum_j C_j sum_d w (X_j - X_d) / n_relevant; return where the next begins."""
    u, dots, C, shift = memory.u, memory.dots, memory.C, memory.shift
    order, s, J, R, W, fall, above, below, _, E, middles, cuts, G, V = ranks
    scores, sizes, tile_spans, relevant, spans = (
        store.scores,
        store.sizes,
        store.tile_spans,
        store.relevant,
        store.relevant_spans,
    )
    twos = in_twos(b)
    at, t, rows, used = place
    last, room = len(G) - 1, len(s)
    first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
    mean_relevant(relevant, first, n, shift)
    clear(dots, 0, dots.size)
    for j in range(at, at + n):
        C[j] = J[j] / (R[j] * R[j])
    _carry_sums(fall, C, above, below, at, at + n)
    for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
        c0, c1, c2, c3, wide = cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3], cuts[t, 4]
        if c0 < c3:
            size = sizes[tile]
            clear(u, 0, 64)
            v = 0
            if not wide:
                begin, stop = c1 - (c0 < c1), c2 + (c2 < c3)
                v = place_in(V, used, stop - begin, room) - begin
                if v + begin == len(V) - room:
                    raise_relevant(s, twos, middles[t], begin, c1, stop, V, v + begin)
                used += stop - begin
            if c0 < c1:
                _spread_series(E, 64 * t, V[v + c1 - 1], above, c1, u)
            if c2 < c3:
                row = min(rows, last)
                rows += 1
                if row == last:
                    invert_tile(E, t, size, G, row)
                _spread_series(G, 64 * row, V[v + c2], below, c2, u)
            for j in range(c1, c2):
                row = min(rows, last)
                rows += 1
                if row == last:
                    pair_again(E, t, size, b, s[j], V[v + j], wide, G, row)
                _add_slope(G, row, C[j], u)
            _add_dots(u, scores, 64 * len(shift) * tile, len(shift), dots, 0)
            _add_whole(u, dots, len(shift))
        t += 1
    whole = total(load(dots, 8 * len(shift)))
    for k in range(len(shift)):
        gradients[q, k] = shift[k] * whole - total(load(dots, 8 * k))
    for j in range(at, at + n):
        c = W[j] * C[j]
        for k in range(len(shift)):
            gradients[q, k] += c * (relevant[first + order[j], k] - shift[k])
    for k in range(len(shift)):
        gradients[q, k] /= store.divisors[q]
    return Place(at + n, t, rows, used)


@kernel(makes_arrays=True)
def smooth_range(
    low: int,
    high: int,
    store: Store,
    weights: Floats,
    b: float,
    window: float,
    ranks: Ranks,
    values: Floats,
    gradients: Floats,
    steps: int,
) -> None:
    """Fill what `steps` asks for of the queries low:high: RANKS and values, GRADIENTS from ranks, or both.

    A query takes the places of the one before, and its scores are still in the cache when its gradient needs them.
    IN_BLOCKS, all of them stay in `ranks` for another kernel, or came from there.
    """
    n_rankers = len(weights)
    dots, C = np.empty((n_rankers + 1, 8)), np.empty(len(ranks.s))
    memory = Memory(np.empty(64), np.empty(64), dots, C, np.empty(n_rankers), np.empty(n_rankers))
    _smooth_queries(low, high, store, weights, b, window, ranks, values, gradients, steps, memory)


@part()
def _smooth_queries(
    low: int,
    high: int,
    store: Store,
    weights: Floats,
    b: float,
    window: float,
    ranks: Ranks,
    values: Floats,
    gradients: Floats,
    steps: int,
    memory: Memory,
) -> None:
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    level, slack = level_weights(store, weights, memory.above)
    bounds = Bounds(store.low, store.high, store.sums, memory.above, level, slack)
    place = Place(zero, zero, zero, zero)
    for q in range(low, high):
        after = place
        if steps & RANKS:
            after = _rank_query(q, place, store, weights, b, window, ranks, values, bounds, memory)
        if steps & GRADIENTS:
            after = _differentiate_query(q, place, store, ranks, b, gradients, memory)
        if steps & IN_BLOCKS:
            place = after


@part(inline=True)
def _sum_in_eights(x: Floats) -> float:
    """Return the sum of up to 128 numbers in numpy's order: one by one up to seven, else in eight sums."""
    n = len(x)
    whole = n - n % 8
    value = 0.0
    if n >= 8:
        a, b, c, d, e, f, g, h = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
        for i in range(8, whole, 8):
            a += x[i]
            b += x[i + 1]
            c += x[i + 2]
            d += x[i + 3]
            e += x[i + 4]
            f += x[i + 5]
            g += x[i + 6]
            h += x[i + 7]
        value = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(whole, n):
        value += x[i]
    return value


@kernel(makes_arrays=True)
def sum_gradients(
    store: Store,
    query_weights: Floats,
    weights: Floats,
    b: float,
    window: float,
    ranks: Ranks,
    steps: int,
    sums: Floats,
) -> None:
    """Set sums to the sums over all queries of their weight times the gradient, and then times the value.

    `steps` are those of `smooth_range`. Gradients are added one by one or IN_EIGHTS, values always in eights: the
    order in which numpy adds the rows of a matrix, those of a matrix stored by columns, and a vector.
    """
    n_queries, n_rankers = len(query_weights), len(weights)
    values, gradients, terms = np.empty(n_queries), np.empty((n_queries, n_rankers)), np.empty(n_queries)
    zero = n_queries - n_queries  # an integer like any other, as in `smooth_range`
    smooth_range(zero, n_queries, store, weights, b, window, ranks, values, gradients, steps)
    for k in range(n_rankers):
        value = 0.0
        for q in range(n_queries):
            terms[q] = query_weights[q] * (gradients[q, k] * b)
            value += terms[q]
        sums[k] = _sum_in_eights(terms) if steps & IN_EIGHTS else value
    for q in range(n_queries):
        terms[q] = query_weights[q] * values[q]
    sums[n_rankers] = _sum_in_eights(terms)


@part(inline=True)
def _spread_curvature(E: Floats, begins: int, v: float, sign: float, sums: Floats, place: int, u: Floats) -> None:
    """Add the series of sum_j C_j h to u, as `_spread_series` adds that of w."""
    v2 = v * v
    a1, a2 = sign * v * sums[place, 0], 4.0 * sign * v2 * sums[place, 1]
    a3, a4 = 9.0 * sign * (v2 * v) * sums[place, 2], 16.0 * sign * (v2 * v2) * sums[place, 3]
    spread_powers(E, begins, a1, a2, a3, a4, u)


class HessianSums(NamedTuple):
    """Weighted sums of Hessians over chunks of queries; the chunks never depend on the number of threads."""

    hessians: Floats
    """(chunks, K, K) lower triangles."""
    query_weights: Floats
    chunks: Ints
    """(Q,) the chunk each query belongs to."""


@part(inline=True)
def _sum_moments(E: Floats, begins: int, X: Floats, moments: Floats) -> None:
    """Set moments[k, i] to the sum over the tile's documents of E^(i+1) X_k; its E lie at `begins`."""
    for k in range(len(X)):
        m1, m2, m3, m4 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for d in range(0, 64, 8):
            e = load(E, begins + d)
            x = e * load(X, 64 * k + d)
            m1 += x
            x *= e
            m2 += x
            x *= e
            m3 += x
            m4 += x * e
        store(moments, 4 * k, totals(m1, m2, m3, m4))  # and four numbers after them, which the next ones replace


@part(inline=True)
def _add_moments(v: float, moments: Floats, sums: Floats, place: int) -> None:
    """Add v^i times the i-th moments to those of this place."""
    powers = _powers(v)
    for at in range(0, moments.size, 8):
        to = moments.size * place + at
        store(sums, to, load(sums, to) + powers * load(moments, at))


@part(inline=True)
def _pass_moments(r: float, sums: Floats, place: int, moments: Floats) -> None:
    """Lower what the nearest document sees to what the next one sees, and add the sums of its place."""
    powers = _powers(r)
    for at in range(0, moments.size, 8):
        store(moments, at, powers * load(moments, at) + load(sums, moments.size * place + at))


@part(inline=True)
def _take_series(moments: Floats, sign: float, P: Floats, T: Floats, j: int) -> None:
    """Add the series of sum_d w X to P_j and of sum_d h X to T_j."""
    for k in range(P.shape[1]):
        m1, m2, m3, m4 = moments[k, 0], moments[k, 1], moments[k, 2], moments[k, 3]
        P[j, k] += (m1 - 2.0 * m2) + (3.0 * m3 - 4.0 * m4)
        T[j, k] += sign * ((m1 - 4.0 * m2) + (9.0 * m3 - 16.0 * m4))


@part(inline=True)
def _close_moments(
    fall: Floats, above: Floats, below: Floats, moments: Floats, P: Floats, T: Floats, at: int, n: int
) -> None:
    """Add the series of all tiles to P and T of a query, as `_close_series` does to R and W."""
    clear(moments, 0, moments.size)
    for j in range(n - 1, -1, -1):
        _pass_moments(fall[at + j + 1], above, j + 1, moments)
        _take_series(moments, 1.0, P, T, at + j)
    clear(moments, 0, moments.size)
    for j in range(n):
        _pass_moments(fall[at + j], below, j, moments)
        _take_series(moments, -1.0, P, T, at + j)


@part(inline=True)
def _add_pairs(
    G: Floats, row: int, w: Floats, h: Floats, c: float, X: Floats, P: Floats, T: Floats, j: int, u: Floats
) -> None:
    """Add sum_d w X to P_j, sum_d h X to T_j and c h to u; w and h are working memory."""
    for d in range(0, 64, 8):
        x = load(G, 64 * row + d)
        slope = x - x * x
        bend = slope - 2.0 * slope * x
        store(u, d, load(u, d) + c * bend)
        store(h, d, bend)
        store(w, d, slope)
    for k in range(len(X)):
        sum_w, sum_h = fill(0.0), fill(0.0)
        for d in range(0, 64, 8):
            x = load(X, 64 * k + d)
            sum_w += load(w, d) * x
            sum_h += load(h, d) * x
        P[j, k] += total(sum_w)
        T[j, k] += total(sum_h)


@part(inline=True)
def _centre(scores: NDArray[np.floating], tile: int, shift: Floats, X: Floats) -> None:
    """Set X to the tile's scores less shift; its last row stays."""
    for k in range(len(shift)):
        x, begins = shift[k], 64 * (len(shift) * tile + k)
        for d in range(0, 64, 8):
            store(X, 64 * k + d, load(scores, begins + d) - x)


@part(inline=True)
def _add_squares(u: Floats, X: Floats, ux: Floats, squares: Floats) -> None:
    """Add sum_d u X X' to eight numbers for each place of the lower triangle, row by row."""
    place = 0
    for k in range(len(X) - 1):
        for d in range(0, 64, 8):
            store(ux, d, load(u, d) * load(X, 64 * k + d))
        _add_dots(ux, X, 0, k + 1, squares, place)
        place += k + 1


@part(inline=True)
def _close_hessian(x: Floats, C: float, D: float, P: Floats, T: Floats, j: int, H: Floats) -> None:
    """Turn P_j into dR_j; add to H what is left of D_j dR_j dR_j' - C_j ddR_j, for a document with scores x."""
    n_rankers = len(x)
    for k in range(n_rankers):
        P[j, k] -= P[j, n_rankers] * x[k]
    for k in range(n_rankers):
        for other in range(k + 1):
            mixed = T[j, k] * x[other] + x[k] * T[j, other] - T[j, n_rankers] * x[k] * x[other]
            H[k, other] += D * P[j, k] * P[j, other] + C * mixed


class HessianMemory(NamedTuple):
    """Working memory for the Hessian of one query after another."""

    w: Floats
    h: Floats
    u: Floats
    X: Floats
    """(K + 1, 64) scores of a tile less `shift`; the last row is 1."""
    moments: Floats
    above: Floats
    """(n + 1, K + 1 and more, 4) what tiles add to the moments of documents, as to `Ranks.above`."""
    below: Floats
    squares: Floats
    shift: Floats
    x: Floats
    H: Floats
    T: Floats
    C: Floats


@kernel(makes_arrays=True)
def hessian_range(
    low: int, high: int, store: Store, ranks: Ranks, b: float, gradients: Floats, dR: Floats, sums: HessianSums
) -> None:
    """Fill the gradients of the queries low:high and the dR_j of the block; add Hessians to the sums.

    Rows of dR hold K + 1 numbers and are as long as a multiple of eight.
    """
    n_rankers, width, spans, most = gradients.shape[1], dR.shape[1], store.relevant_spans, 0
    for q in range(low, high):
        n = spans[q, 1] - spans[q, 0]
        most = n if n > most else most
    w, h, u = np.empty(64), np.empty(64), np.empty(64)
    moments, shape = np.zeros((width + 2, 4)), (most + 1, width + 2, 4)  # `_sum_moments` writes a row too many
    squares, H = np.empty(4 * n_rankers * (n_rankers + 1)), np.empty((n_rankers, n_rankers))
    shift, x, T, C = np.empty(n_rankers), np.empty(n_rankers), np.empty(dR.shape), np.empty(len(ranks.s))
    X = np.ones((n_rankers + 1, 64))
    memory = HessianMemory(w, h, u, X, moments, np.empty(shape), np.empty(shape), squares, shift, x, H, T, C)
    _hessian_of_queries(low, high, store, ranks, b, gradients, dR, sums, memory)


@part()
def _hessian_of_queries(
    low: int,
    high: int,
    store: Store,
    ranks: Ranks,
    b: float,
    gradients: Floats,
    P: Floats,
    sums: HessianSums,
    memory: HessianMemory,
) -> None:
    w, h, u, X, moments, moments_above, moments_below, squares, shift, x, H, T, C = memory
    order, s, J, R, _, fall, above, below, _, E, middles, cuts, G, V = ranks
    hessians, query_weights, chunks = sums
    scores, sizes, tile_spans = store.scores, store.sizes, store.tile_spans
    relevant, spans = store.relevant, store.relevant_spans
    n_rankers, width, twos, room = gradients.shape[1], P.shape[1], in_twos(b), len(s)
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    at, t, rows, used, last = zero, zero, zero, zero, len(G) - 1
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        mean_relevant(relevant, first, n, shift)
        clear(squares, 0, squares.size)
        for j in range(at, at + n):
            C[j] = J[j] / (R[j] * R[j])
            for k in range(width):
                P[j, k], T[j, k] = 0.0, 0.0
        _carry_sums(fall, C, above, below, at, at + n)
        clear(moments_above, 0, (n + 1) * moments.size)
        clear(moments_below, 0, (n + 1) * moments.size)
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            c0, c1, c2, c3 = cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3]
            if c0 < c3:
                size = sizes[tile]
                _centre(scores, tile, shift, X)
                v = 0
                if not cuts[t, 4]:
                    begin, stop = c1 - (c0 < c1), c2 + (c2 < c3)
                    v = place_in(V, used, stop - begin, room) - begin
                    if v + begin == len(V) - room:
                        raise_relevant(s, twos, middles[t], begin, c1, stop, V, v + begin)
                    used += stop - begin
                clear(u, 0, 64)
                if c0 < c1:
                    y = V[v + c1 - 1]
                    _sum_moments(E, 64 * t, X, moments)
                    _add_moments(y, moments, moments_above, c1 - at)
                    _spread_curvature(E, 64 * t, y, 1.0, above, c1, u)
                if c2 < c3:
                    row, y = min(rows, last), V[v + c2]
                    rows += 1
                    if row == last:
                        invert_tile(E, t, size, G, row)
                    _sum_moments(G, 64 * row, X, moments)
                    _add_moments(y, moments, moments_below, c2 - at)
                    _spread_curvature(G, 64 * row, y, -1.0, below, c2, u)
                for j in range(c1, c2):
                    row = min(rows, last)
                    rows += 1
                    if row == last:
                        pair_again(E, t, size, b, s[j], V[v + j], cuts[t, 4], G, row)
                    _add_pairs(G, row, w, h, C[j], X, P, T, j, u)
                _add_squares(u, X, h, squares)
            t += 1
        _close_moments(fall, moments_above, moments_below, moments, P, T, at, n)
        place = zero
        for k in range(n_rankers):
            gradients[q, k] = 0.0
            for other in range(k + 1):
                H[k, other] = -total(load(squares, 8 * place))
                place += 1
        for j in range(at, at + n):
            for k in range(n_rankers):
                x[k] = relevant[first + order[j], k] - shift[k]
            _close_hessian(x, C[j], 2.0 * C[j] / R[j], P, T, j, H)
            for k in range(n_rankers):
                gradients[q, k] -= C[j] * P[j, k]
        divisor, chunk = store.divisors[q], chunks[q]
        for k in range(n_rankers):
            gradients[q, k] /= divisor
            for other in range(k + 1):
                hessians[chunk, k, other] += query_weights[q] * (H[k, other] / divisor)
        at += n


@part(inline=True)
def _sigmoid(b: float, s_i: float, s_j: float) -> float:
    x = exponential(min(max(b * (s_i - s_j), -STEEPEST), STEEPEST))
    return x / (1.0 + x)


@kernel
def position_range(low: int, high: int, store: Store, ranks: Ranks, b: float, values: Floats) -> None:
    """Put the smoothed position in place of the sorted one, and set the values of the queries low:high again."""
    s, J, R = ranks.s, ranks.J, ranks.R
    at = 0
    for q in range(low, high):
        end = at + store.relevant_spans[q, 1] - store.relevant_spans[q, 0]
        total = 0.0
        for j in range(at, end):
            J[j] = 0.5  # 1, less the half that a document counts against itself
            for i in range(at, end):
                J[j] += _sigmoid(b, s[i], s[j])
            total += J[j] / R[j]
        values[q] = total / store.divisors[q]
        at = end


@kernel
def position_gradient_range(low: int, high: int, store: Store, ranks: Ranks, b: float, gradients: Floats) -> None:
    """Add sum_j dJ_j / (R_j n_relevant) to the gradients of the queries low:high."""
    order, s, R = ranks.order, ranks.s, ranks.R
    relevant, spans = store.relevant, store.relevant_spans
    at = 0
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        for j in range(at, at + n):
            for i in range(at, j):
                g = _sigmoid(b, s[i], s[j])
                c = g * (1.0 - g) * (1.0 / R[j] - 1.0 / R[i]) / store.divisors[q]
                for k in range(gradients.shape[1]):
                    apart = np.float64(relevant[first + order[i], k]) - np.float64(relevant[first + order[j], k])
                    gradients[q, k] += c * apart
        at += n


@kernel(makes_arrays=True)
def position_hessian_range(
    low: int, high: int, store: Store, ranks: Ranks, b: float, dR: Floats, sums: HessianSums
) -> None:
    """Add sum_j (ddJ_j / R_j - (dJ_j dR_j' + dR_j dJ_j') / R_j^2) / n_relevant to the Hessians of the chunks."""
    order, s, R = ranks.order, ranks.s, ranks.R
    relevant, spans = store.relevant, store.relevant_spans
    hessians, query_weights, chunks = sums
    n_rankers = hessians.shape[1]
    dJ, x = np.empty(n_rankers), np.empty(n_rankers)
    at = 0
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        scale, chunk = query_weights[q] / store.divisors[q], chunks[q]
        for j in range(at, at + n):
            for k in range(n_rankers):
                dJ[k] = 0.0
            for i in range(at, at + n):
                g = _sigmoid(b, s[i], s[j])
                w = g * (1.0 - g)
                for k in range(n_rankers):
                    x[k] = np.float64(relevant[first + order[i], k]) - np.float64(relevant[first + order[j], k])
                    dJ[k] += w * x[k]
                if i < j:  # the reversed pair has the same x x' and the opposite second derivative
                    c = scale * w * (1.0 - 2.0 * g) * (1.0 / R[j] - 1.0 / R[i])
                    for k in range(n_rankers):
                        for other in range(k + 1):
                            hessians[chunk, k, other] += c * x[k] * x[other]
            c = scale / (R[j] * R[j])
            for k in range(n_rankers):
                for other in range(k + 1):
                    hessians[chunk, k, other] -= c * (dJ[k] * dR[j, other] + dR[j, k] * dJ[other])
        at += n


@kernel(makes_arrays=True)
def windowed_range(
    low: int, high: int, store: Store, weights: Floats, b: float, ranks: Ranks, gradients: Floats, hessians: Floats
) -> None:
    """Add what the queries low:high give; their ranks are there already."""
    K, n = len(weights), len(ranks.s)
    memory = np.empty(64), np.empty(K), np.empty(K), np.empty((n, 2, K)), np.empty((n, K, K))
    _differentiate_in_window(low, high, store, weights, b, ranks, gradients, hessians, memory)


@part()
def _differentiate_in_window(
    low: int,
    high: int,
    store: Store,
    weights: Floats,
    b: float,
    ranks: Ranks,
    gradients: Floats,
    hessians: Floats,
    memory: tuple[Floats, Floats, Floats, Floats, Floats],
) -> None:
    x, D, above, G_k, G_kl = memory
    level, slack = level_weights(store, weights, above)
    bounds = Bounds(store.low, store.high, store.sums, above, level, slack)
    scores, sizes = store.scores, store.sizes
    relevant, spans, tile_spans = store.relevant, store.relevant_spans, store.tile_spans
    K = len(weights)
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    at = zero
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        end = at + n
        G_k[at:end] = 0.0
        G_kl[at:end] = 0.0
        c0, c3 = at, at
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            least, greatest = bound_tile(bounds, tile)
            c0 = first_below(ranks.s, c0, at, end, b, greatest, -WINDOW)
            c3 = first_below(ranks.s, c3, at, end, b, least, WINDOW)
            if c0 >= c3:
                continue
            fuse_tile(scores, tile, weights, x)
            for j in range(c0, c3):
                for d in range(sizes[tile]):
                    apart = b * (ranks.s[j] - x[d])
                    if not abs(apart) < WINDOW:
                        continue
                    g = 1.0 / (1.0 + exponential(apart))
                    slope = g * (1.0 - g)
                    for k in range(K):
                        D[k] = b * (relevant[first + ranks.order[j], k] - scores[tile, k, d])
                    for k in range(K):
                        G_k[j, 0, k] += D[k]
                        G_k[j, 1, k] -= slope * D[k]
                        for i in range(K):
                            G_kl[j, k, i] += slope * (1.0 - 2.0 * g) * D[k] * D[i]
        for j in range(at, end):
            place, R = ranks.J[j] / store.divisors[q], ranks.R[j]
            for k in range(K):
                for v in range(2):
                    gradients[q, v, k] -= place * G_k[j, v, k] / R**2
                for i in range(K):
                    bend = -G_kl[j, k, i] * R**2
                    printed = bend + 2.0 * G_k[j, 0, k] * G_k[j, 0, i] * R
                    true = bend + 2.0 * G_k[j, 1, k] * G_k[j, 1, i] * R
                    hessians[q, 0, k, i] += place * printed / R**2
                    hessians[q, 1, k, i] += place * true / R**2
                    hessians[q, 2, k, i] += place * true / R**4
        at = end
