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
exponential per document, one division per pair. The series sum_i (-1)^(i+1) (E / V)^i needs sums of powers of E
over the tile instead of pairs. Tiles too wide for E to fit (cuts[4] = 1) take an exponential per pair.

Gradient (Eq. 16) and Hessian (Eq. 37). Derivatives here leave out the factor b. X are scores less the mean of
the query's relevant documents: ranks do not see a shift, and sums of small numbers keep their digits. Sums over
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

from genm._math.elementary import STEEPEST, exponential
from genm._math.lanes import (
    WIDE,
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
)
from genm._math.parallel import kernel, part
from genm._math.sorting import sort_downwards
from genm._typing import Codes, Floats, Ints

NEAR = 8.0
"""Where the series starts: four terms leave out exp(-32), relative to what they sum."""
WIDEST = 100.0
"""Half the width of a tile, times b, up to which E and its fourth power fit."""

WINDOW = 2.0

ROUNDING = 2.0**-48
"""The rounding of bounds and fused scores, per ranker, relative to weights times scores: 2^-53, some 16 times."""
LEAST = 1e-300
"""More than the rounding of numbers too small to have all their digits."""

AHEAD = 2
"""Tiles between the one that is fused and the one whose scores are asked for."""

TOGETHER = 4
"""Queries that are evaluated under several weights before the next ones."""

RANKS, GRADIENTS, IN_BLOCKS = 1, 2, 4
"""The steps of `smooth_range`; the last lets every query have its own places in `Ranks`."""
IN_EIGHTS = 8
"""With the steps of `sum_gradients`: how gradients are added."""


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
    """Ask for a quarter of a tile's scores, so that they are in the cache when it is fused.

    A core can wait for a dozen lines of memory at a time, and stands still when it is asked for more: quarters
    leave it work in between. Eight numbers are a line of float64 and half a line of float32.
    """
    n = 16 * scores.shape[1]
    begins = (4 * tile + quarter) * n
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
def make_bounds(store: Store, weights: Floats) -> Bounds:
    """Return bounds with the level from which the weights differ least; it is 0 where sums are not known."""
    level, slack, n_rankers = 0.0, 0.0, len(weights)
    above, size, least = np.empty(n_rankers), 0.0, np.inf
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
    return Bounds(store.low, store.high, store.sums, above, level, slack)


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
    """V or 1 / V of the relevant documents that each tile concerns, tile by tile (`raise_relevant`).

    What has no room left goes to the last places, which are as many as s has, and is computed anew."""


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
def _raise_tile(s: Floats, size: int, b: float, middle: float, E: Floats, t: int) -> None:
    """Set E of tile t from its fused scores."""
    for d in range(0, 64, WIDE):
        store(E, 64 * t + d, exponential((load_wide(s, d) - middle) * b))
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

    Document `begin` goes to `place`. Eight at a time, so up to seven places after `stop` are read and written too;
    arrays have room for them.
    """
    for j in range(begin, stop, 8):
        x = (load(s, j) - middle) * b
        store(V, place + j - begin, exponential(x - first(2.0 * x, above - j)))


@part(inline=True)
def _add_series(
    E: Floats, begins: int, sign: float, V: Floats, v: int, R: Floats, W: Floats, begin: int, stop: int
) -> None:
    """Add the series of sum_d g to R and of sum_d w to W, for the relevant documents begin:stop of one side.

    Sign 1 and E: they stand above the tile. Sign -1 and 1 / E: below it. `begins` is where the tile's E lie, v + j
    where V_j does.
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
    for j in range(begin, stop, 8):
        x, n = load(V, v + j), stop - j
        store(R, j, load(R, j) + first(sign * x * (m1 - x * (m2 - x * (m3 - x * m4))), n))
        store(W, j, load(W, j) + first(x * (m1 - x * (2.0 * m2 - x * (3.0 * m3 - x * (4.0 * m4)))), n))


@part(inline=True)
def _sums(G: Floats, row: int) -> tuple[float, float]:
    """Return the sums of g and of w over 64 documents."""
    sum_g, sum_w = fill(0.0), fill(0.0)
    for d in range(0, 64, 8):
        x = load(G, 64 * row + d)
        sum_g += x
        sum_w += x - x * x
    return total(sum_g), total(sum_w)


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
    x: Floats,
) -> Place:
    """Fill the ranks of a query, and its value; return where the next query begins."""
    order, s, J, R, W, E, middles, cuts, G, V = ranks
    scores, sizes, spans, tile_spans = store.scores, store.sizes, store.relevant_spans, store.tile_spans
    near = NEAR if window > NEAR else window
    at, t, rows, used = place
    last, room = len(G) - 1, len(s)
    n = spans[q, 1] - spans[q, 0]
    end = at + n
    order_relevant(store.relevant, spans[q, 0], n, weights, s, order, at)
    for j in range(at, end + 1):  # one more than there are: for what no relevant document stands below
        R[j], J[j], W[j] = 0.0, 0.0, 0.0
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
            prefetch_quarter(scores, tile + AHEAD, 0)
            c0 = first_below(s, c0, at, end, b, greatest, -window)
            c3 = first_below(s, c3, at, end, b, least, window)
        J[c3] += size
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
                _raise_tile(x, size, b, middle, E, t)
                c1 = first_below(s, c1, c0, c3, b, greatest, -near)
                c2 = first_below(s, c2, c1, c3, b, least, near)
                v = place_in(V, used, c3 - c0, room) - c0
                used += c3 - c0
                raise_relevant(s, b, middle, c0, c1, c3, V, v + c0)
            prefetch_quarter(scores, tile + AHEAD, 1)
            if c0 < c1:
                _add_series(E, 64 * t, 1.0, V, v, R, W, c0, c1)
            prefetch_quarter(scores, tile + AHEAD, 2)
            if c2 < c3:
                row = min(rows, last)
                rows += 1
                invert_tile(E, t, size, G, row)
                _add_series(G, 64 * row, -1.0, V, v, R, W, c2, c3)
                for j in range(c2, c3):
                    R[j] += size
            prefetch_quarter(scores, tile + AHEAD, 3)
            for j in range(c1, c2):
                row = min(rows, last)
                rows += 1
                if wide:
                    pair_by_score(E, t, size, b, s[j], G, row)
                else:
                    pair_by_ratio(E, t, V[v + j], G, row)
                sum_g, sum_w = _sums(G, row)
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

    s: Floats
    order: Ints
    before: Ints
    """Of each relevant document, those before it in tiles that were read."""
    below: Ints
    """Documents of tiles that stand above this relevant document and below the one before it."""
    x: Floats
    """(64,)."""


@kernel
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
    counts = Counts(np.empty(most), np.empty(most, np.int64), before, below, np.empty(64))
    together = TOGETHER if len(weights) > 1 else max(high - low, 1)
    for begin in range(low, high, together):
        for w in range(len(weights)):
            bounds = make_bounds(store, weights[w])
            for q in range(begin, min(begin + together, high)):
                values[w, q] = _rank_exactly(q, store, weights[w], bounds, counts, starts, ranks)


@part(inline=True)
def _rank_exactly(
    q: int, store: Store, weights: Floats, bounds: Bounds, counts: Counts, starts: Ints, ranks: Ints
) -> float:
    """Fill the ranks of a query's relevant documents; return its average precision."""
    s, order, before, below, x = counts
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


@kernel
def top_range(low: int, high: int, store: Store, weights: Floats, found: Codes) -> None:
    """Write the positions of each query's best documents, as many as `found` has columns; -1 where it has fewer.

    By fused score downwards, ties by position upwards. A tile is read only if its bound reaches the last of them.
    """
    scores, sizes, bounds = store.scores, store.sizes, make_bounds(store, weights)
    position, tile_spans, most = store.position, store.tile_spans, found.shape[1]
    x, best, place = np.empty(64), np.empty(most), np.empty(most, np.int32)
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
def _spread_series(E: Floats, begins: int, V: Floats, v: int, C: Floats, begin: int, stop: int, u: Floats) -> None:
    """Add the series of sum_j C_j w to u, for the relevant documents begin:stop.

    The tile's E lie at `begins`, V_j at v + j.
    """
    a1, a2, a3, a4 = 0.0, 0.0, 0.0, 0.0
    for j in range(begin, stop):
        x, c = V[v + j], C[j]
        a1 += c * x
        a2 += 2.0 * c * x * x
        a3 += 3.0 * c * x * x * x
        a4 += 4.0 * c * (x * x) * (x * x)
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
def _take_dots(
    u: Floats, scores: NDArray[np.floating], tile: int, shift: Floats, gradients: Floats, q: int
) -> None:
    """Take sum_d u X from the gradient."""
    for k in range(len(shift)):
        dot, x, begins = fill(0.0), shift[k], 64 * (len(shift) * tile + k)
        for d in range(0, 64, 8):
            dot += load(u, d) * (load(scores, begins + d) - x)
        gradients[q, k] -= total(dot)


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
    C: Floats,
    u: Floats,
    shift: Floats,
) -> Place:
    """Fill the gradient of a query, sum_j C_j sum_d w (X_j - X_d) / n_relevant; return where the next begins."""
    order, s, J, R, W, E, middles, cuts, G, V = ranks
    scores, sizes, tile_spans, relevant, spans = (
        store.scores,
        store.sizes,
        store.tile_spans,
        store.relevant,
        store.relevant_spans,
    )
    at, t, rows, used = place
    last, room = len(G) - 1, len(s)
    first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
    mean_relevant(relevant, first, n, shift)
    for k in range(len(shift)):
        gradients[q, k] = 0.0
    for j in range(at, at + n):
        C[j] = J[j] / (R[j] * R[j])
    for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
        c0, c1, c2, c3, wide = cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3], cuts[t, 4]
        if c0 < c3:
            size = sizes[tile]
            for d in range(64):
                u[d] = 0.0
            v = 0
            if not wide:
                v = place_in(V, used, c3 - c0, room) - c0
                if v + c0 == len(V) - room:
                    raise_relevant(s, b, middles[t], c0, c1, c3, V, v + c0)
                used += c3 - c0
            if c0 < c1:
                _spread_series(E, 64 * t, V, v, C, c0, c1, u)
            if c2 < c3:
                row = min(rows, last)
                rows += 1
                if row == last:
                    invert_tile(E, t, size, G, row)
                _spread_series(G, 64 * row, V, v, C, c2, c3, u)
            for j in range(c1, c2):
                row = min(rows, last)
                rows += 1
                if row == last:
                    pair_again(E, t, size, b, s[j], V[v + j], wide, G, row)
                _add_slope(G, row, C[j], u)
            _take_dots(u, scores, tile, shift, gradients, q)
        t += 1
    for j in range(at, at + n):
        c = W[j] * C[j]
        for k in range(len(shift)):
            gradients[q, k] += c * (relevant[first + order[j], k] - shift[k])
    for k in range(len(shift)):
        gradients[q, k] /= store.divisors[q]
    return Place(at + n, t, rows, used)


@kernel
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
    x, u = np.empty(64), np.empty(64)
    C, shift = np.empty(len(ranks.s)), np.empty(len(weights))
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    place, bounds = Place(zero, zero, zero, zero), make_bounds(store, weights)
    for q in range(low, high):
        after = place
        if steps & RANKS:
            after = _rank_query(q, place, store, weights, b, window, ranks, values, bounds, x)
        if steps & GRADIENTS:
            after = _differentiate_query(q, place, store, ranks, b, gradients, C, u, shift)
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


@kernel
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


class HessianSums(NamedTuple):
    """Weighted sums of Hessians over chunks of queries; the chunks never depend on the number of threads."""

    hessians: Floats
    """(chunks, K, K) lower triangles."""
    query_weights: Floats
    chunks: Ints
    """(Q,) the chunk each query belongs to."""


@part(inline=True)
def _sum_moments(E: Floats, begins: int, X: Floats, moments: Floats) -> None:
    """Set moments[i, k] to the sum over the tile's documents of E^(i+1) X_k; its E lie at `begins`."""
    for k in range(len(X)):
        m1, m2, m3, m4 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for d in range(0, 64, 8):
            e, x = load(E, begins + d), load(X, 64 * k + d)
            e2, ex = e * e, e * x
            m1 += ex
            m2 += e2 * x
            m3 += e2 * ex
            m4 += e2 * (e2 * x)
        moments[0, k], moments[1, k], moments[2, k], moments[3, k] = total(m1), total(m2), total(m3), total(m4)


@part(inline=True)
def _add_series_moments(v: float, sign: float, moments: Floats, P: Floats, T: Floats, j: int) -> None:
    """Add the series of sum_d w X to P_j and of sum_d h X to T_j."""
    v2, width = v * v, moments.shape[1]
    v3, v4 = v * v2, v2 * v2
    for k in range(0, width, 8):
        m1, m2 = v * load(moments, k), v2 * load(moments, width + k)
        m3, m4 = v3 * load(moments, 2 * width + k), v4 * load(moments, 3 * width + k)
        at = width * j + k
        store(P, at, load(P, at) + (m1 - 2.0 * m2 + 3.0 * m3 - 4.0 * m4))
        store(T, at, load(T, at) + sign * (m1 - 4.0 * m2 + 9.0 * m3 - 16.0 * m4))


@part(inline=True)
def _add_pairs(
    G: Floats, row: int, g: Floats, h: Floats, c: float, X: Floats, P: Floats, T: Floats, j: int, u: Floats
) -> None:
    """Add sum_d w X to P_j, sum_d h X to T_j and c h to u; g and h are working memory."""
    for d in range(0, 64, 8):
        x = load(G, 64 * row + d)
        w = x - x * x
        bend = w - 2.0 * w * x
        store(u, d, load(u, d) + c * bend)
        store(h, d, bend)
        store(g, d, w)
    for k in range(len(X)):
        sum_w, sum_h = fill(0.0), fill(0.0)
        for d in range(0, 64, 8):
            x = load(X, 64 * k + d)
            sum_w += load(g, d) * x
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
def _take_squares(u: Floats, X: Floats, ux: Floats, H: Floats) -> None:
    """Take sum_d u X X' from the lower triangle of H."""
    for k in range(len(H)):
        for d in range(0, 64, 8):
            store(ux, d, load(u, d) * load(X, 64 * k + d))
        for other in range(k + 1):
            dot = fill(0.0)
            for d in range(0, 64, 8):
                dot += load(ux, d) * load(X, 64 * other + d)
            H[k, other] -= total(dot)


@part(inline=True)
def _close_ranks(x: Floats, C: float, D: float, P: Floats, T: Floats, j: int, H: Floats) -> None:
    """Turn P_j into dR_j; add to H what is left of D_j dR_j dR_j' - C_j ddR_j, for a document with scores x."""
    n_rankers = len(x)
    for k in range(n_rankers):
        P[j, k] -= P[j, n_rankers] * x[k]
    for k in range(n_rankers):
        for other in range(k + 1):
            mixed = T[j, k] * x[other] + x[k] * T[j, other] - T[j, n_rankers] * x[k] * x[other]
            H[k, other] += D * P[j, k] * P[j, other] + C * mixed


@kernel
def hessian_range(
    low: int, high: int, store: Store, ranks: Ranks, b: float, gradients: Floats, dR: Floats, sums: HessianSums
) -> None:
    """Fill the gradients of the queries low:high and the dR_j of the block; add Hessians to the sums.

    Rows of dR hold K + 1 numbers and are as long as a multiple of eight.
    """
    hessians, query_weights, chunks = sums
    P = dR
    order, s, J, R, _, E, middles, cuts, G, V = ranks
    scores, sizes, tile_spans = store.scores, store.sizes, store.tile_spans
    relevant, spans = store.relevant, store.relevant_spans
    n_rankers = gradients.shape[1]
    g, h, u = np.empty(64), np.empty(64), np.empty(64)
    X, moments = np.empty((n_rankers + 1, 64)), np.zeros((4, P.shape[1]))
    shift, x, H = np.empty(n_rankers), np.empty(n_rankers), np.empty((n_rankers, n_rankers))
    T, room = np.empty(P.shape), len(s)
    for d in range(64):
        X[n_rankers, d] = 1.0
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    at, t, rows, used, last = zero, zero, zero, zero, len(G) - 1
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        mean_relevant(relevant, first, n, shift)
        for k in range(n_rankers):
            gradients[q, k] = 0.0
            for other in range(k + 1):
                H[k, other] = 0.0
        for j in range(at, at + n):
            for k in range(P.shape[1]):
                P[j, k], T[j, k] = 0.0, 0.0
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            c0, c1, c2, c3 = cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3]
            if c0 < c3:
                size = sizes[tile]
                _centre(scores, tile, shift, X)
                v = 0
                if not cuts[t, 4]:
                    v = place_in(V, used, c3 - c0, room) - c0
                    if v + c0 == len(V) - room:
                        raise_relevant(s, b, middles[t], c0, c1, c3, V, v + c0)
                    used += c3 - c0
                for d in range(64):
                    u[d] = 0.0
                row = last
                for side in range(2):
                    begin, stop, sign = (c2, c3, -1.0) if side else (c0, c1, 1.0)
                    if begin < stop:
                        if side:
                            row = min(rows, last)
                            rows += 1
                            if row == last:
                                invert_tile(E, t, size, G, row)
                            _sum_moments(G, 64 * row, X, moments)
                        else:
                            _sum_moments(E, 64 * t, X, moments)
                        a1, a2, a3, a4 = 0.0, 0.0, 0.0, 0.0
                        for j in range(begin, stop):
                            y, c = V[v + j], sign * J[j] / (R[j] * R[j])
                            _add_series_moments(y, sign, moments, P, T, j)
                            a1 += c * y
                            a2 += 4.0 * c * y * y
                            a3 += 9.0 * c * y * y * y
                            a4 += 16.0 * c * (y * y) * (y * y)
                        if side:
                            spread_powers(G, 64 * row, a1, a2, a3, a4, u)
                        else:
                            spread_powers(E, 64 * t, a1, a2, a3, a4, u)
                for j in range(c1, c2):
                    row = min(rows, last)
                    rows += 1
                    if row == last:
                        pair_again(E, t, size, b, s[j], V[v + j], cuts[t, 4], G, row)
                    _add_pairs(G, row, g, h, J[j] / (R[j] * R[j]), X, P, T, j, u)
                _take_squares(u, X, h, H)
            t += 1
        for j in range(at, at + n):
            C = J[j] / (R[j] * R[j])
            for k in range(n_rankers):
                x[k] = relevant[first + order[j], k] - shift[k]
            _close_ranks(x, C, 2.0 * C / R[j], P, T, j, H)
            for k in range(n_rankers):
                gradients[q, k] -= C * P[j, k]
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
                    gradients[q, k] += c * (relevant[first + order[i], k] - relevant[first + order[j], k])
        at += n


@kernel
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
                    x[k] = relevant[first + order[i], k] - relevant[first + order[j], k]
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


@kernel
def windowed_range(
    low: int, high: int, store: Store, weights: Floats, b: float, ranks: Ranks, gradients: Floats, hessians: Floats
) -> None:
    """Add what the queries low:high give; their ranks are there already."""
    scores, sizes, bounds = store.scores, store.sizes, make_bounds(store, weights)
    relevant, spans, tile_spans = store.relevant, store.relevant_spans, store.tile_spans
    K = len(weights)
    x, D = np.empty(64), np.empty(K)
    G_k, G_kl = np.empty((len(ranks.s), 2, K)), np.empty((len(ranks.s), K, K))
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
