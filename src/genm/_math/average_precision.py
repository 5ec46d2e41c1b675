"""Average precision of every query under given weights: exact, and smoothed with gradient and Hessian.

Exact (Problem P1). The rank of a relevant document is one more than the number of documents before it: those
with a greater fused score and, among equals, those whose row comes earlier (departure 13: Eq. (1) would give
tied documents the best rank of them all). Counting needs only the tiles whose bounds leave the answer open.

Smoothed. One function serves Problems P2, P3 and P4, which differ only in where the weights come from: P2 takes
them from the simplex, P3 divides free positive weights by their sum first, P4 takes them free. P4 sees only the
product of beta and the weights, so free ascent has to fix their length (departure 6). j, the position among the
relevant documents, is by fused score and then by row (Eq. 5 and P4): continuous, with kinks where two relevant
documents swap. `smooth_j` replaces it by the sum of the same sigmoids over the relevant documents (Qin, Liu and
Li, 2010), which has no kinks.
"""

import itertools
from typing import NamedTuple

import numpy as np

from genm._math.average_precision_kernels import (
    GRADIENTS,
    GREATEST,
    IN_BLOCKS,
    IN_EIGHTS,
    RANKS,
    HessianSums,
    Ranks,
    Store,
    exact_range,
    hessian_range,
    position_gradient_range,
    position_hessian_range,
    position_range,
    smooth_range,
    sum_gradients,
    top_range,
)
from genm._math.elementary import TAIL
from genm._math.parallel import over_ranges, takes_one_thread
from genm._math.tiles import TILE, Tiles, build_tiles, mean, scale_weights
from genm._typing import Bools, Codes, Floats, Ints
from genm.errors import InputError

_MOST_CHUNKS = 256
_BLOCK_BYTES = 1 << 21
"""Scores that a call of a kernel works on: they stay in the cache, and calls, of 7 microseconds each, are few."""
_ROOM = 9
"""Places after a block's relevant documents: one for those below all of them, and what eight lanes reach."""
_ROWS_PER_TILE = 3
"""Rows of 64 numbers kept for derivatives, on average; two are used for 15 relevant among 7,000 documents."""
_RELEVANT_PER_TILE = 8
"""Exponentials of relevant documents kept for derivatives, on average; seven are used there."""
_NO_CHUNKS: Ints = np.zeros(0, np.int64)
_MOST_SUMMED_AT_ONCE = 128
"""Queries up to which numpy adds in eight sums; it cuts longer rows in two."""
_COST_OF_SMOOTHED = 3
"""What smoothed average precision and its gradient, which costs are of, cost in exact evaluations."""
_TAME = 1e60
"""A beta with which no gradient overflows where scores were not divided: they are at most 2**500, about 3e150."""


class SmoothAP(NamedTuple):
    """What `smooth_ap` found; arrays of derivatives that were not asked for have length 0."""

    value: Floats
    """(Q,) smoothed average precision of each query."""
    gradient: Floats
    """(Q, K) its gradient in the weights (Eq. 16)."""
    hessian: Floats
    """(K, K) Hessian (Eq. 37) of the mean over the queries with their weights, as `tiles.mean` takes it."""


def smooth_ap(
    tiles: Tiles,
    weights: Floats,
    beta: float,
    *,
    order: int = 0,
    smooth_j: bool = False,
    window: float = TAIL,
    total_weight: float | None = None,
) -> SmoothAP:
    """Return each query's smoothed average precision (P2, P3, P4) with derivatives up to `order`, 0 to 2.

    Sigmoids further than `window` from their middle, in units of beta times score, count as 0 or 1; the default
    changes nothing that float64 can show. The Hessian is a mean over the queries; `total_weight` is what it is
    divided by where these queries are a part of all. Queries without a relevant row get 0. Derivatives that
    overflow come out as the greatest float64, never as NaN.
    """
    if order not in (0, 1, 2):
        raise InputError(f"order={order!r}: expected 0 (value), 1 (gradient) or 2 (Hessian).")
    scaled, exponent = scale_weights(tiles, weights)
    if not 0.0 <= beta < np.inf:
        raise InputError(f"beta={beta!r}: expected a finite number, 0 or greater. The paper uses 200.")
    if not window > 0.0:
        raise InputError(f"window={window!r}: expected a number above 0; {TAIL:g} is exact.")
    sharpness = _sharpness(beta, tiles.exponent + exponent)
    reach, n_queries, n_rankers = min(float(window), TAIL), tiles.n_queries, tiles.n_rankers
    store, value = store_of(tiles), np.empty(n_queries)
    gradient = np.empty((n_queries if order else 0, n_rankers))
    starts, chunks = _chunks_of(n_queries) if order == 2 else (_NO_CHUNKS, _NO_CHUNKS)
    sums = HessianSums(np.zeros((max(len(starts) - 1, 0), n_rankers, n_rankers)), tiles.query_weights, chunks)

    def smooth(low: int, high: int, ranks: Ranks, steps: int) -> None:
        smooth_range(low, high, store, scaled, sharpness, reach, ranks, value, gradient, steps)

    def work(low: int, high: int) -> None:
        if order < 2 and not smooth_j:
            smooth(low, high, _memory_of_one(tiles, keep=order > 0), RANKS | GRADIENTS if order else RANKS)
            return
        blocks, ranks = blocks_of(tiles, low, high, keep=order > 0)
        dR = np.empty((len(ranks.s) if order == 2 else 0, -(-(n_rankers + 1) // 8) * 8))
        for first, last in blocks:
            smooth(first, last, ranks, RANKS | IN_BLOCKS)
            if smooth_j:
                position_range(first, last, store, ranks, sharpness, value)
            if order == 1:
                smooth(first, last, ranks, GRADIENTS | IN_BLOCKS)
            if order == 2:
                hessian_range(first, last, store, ranks, sharpness, gradient, dR, sums)
            if smooth_j and order:
                position_gradient_range(first, last, store, ranks, sharpness, gradient)
            if smooth_j and order == 2:
                position_hessian_range(first, last, store, ranks, sharpness, dR, sums)

    def work_on_chunks(low: int, high: int) -> None:
        work(int(starts[low]), int(starts[high]))

    if order < 2:
        over_ranges(work, tiles.costs)
    elif n_queries:
        over_ranges(work_on_chunks, np.add.reduceat(tiles.costs, starts[:-1]))
    gradient = _in_weights(gradient, beta, tiles.exponent)
    total = tiles.total_weight if total_weight is None else total_weight
    hessian = _sum_hessians(sums, total, beta, tiles.exponent) if order == 2 else sums.hessians[:, 0]
    return SmoothAP(value, gradient, hessian)


def smooth_map(
    tiles: Tiles, weights: Floats, beta: float, *, window: float = TAIL, in_eights: bool = False
) -> tuple[float, Floats]:
    """Return the mean of smoothed average precision over the queries, with their weights, and its gradient.

    To the bit the means of what `smooth_ap` returns, as `tiles.mean` takes them; `in_eights` if its gradients were
    stored by columns first. A search over few queries takes most of its time for calls of numpy, so for them one
    kernel does it all.
    """
    n_queries, n_rankers = tiles.n_queries, tiles.n_rankers
    is_small = 0 < n_queries <= _MOST_SUMMED_AT_ONCE and n_rankers > 1 and takes_one_thread(tiles.total_cost)
    if is_small and 0.0 <= beta <= _TAME and window > 0.0 and not tiles.exponent:
        scaled, exponent = scale_weights(tiles, weights)
        if not exponent:
            sums = np.empty(n_rankers + 1)
            ranks = tiles.derived.pop("ranks", None) or _memory_of_one(tiles, keep=True)
            reach, steps = min(float(window), TAIL), RANKS | GRADIENTS | (IN_EIGHTS if in_eights else 0)
            sum_gradients(store_of(tiles), tiles.query_weights, scaled, beta, reach, ranks, steps, sums)
            tiles.derived["ranks"] = ranks  # taken out meanwhile, because another thread may ask, too
            sums /= tiles.total_weight
            return float(sums[-1]), sums[:-1]
    found = smooth_ap(tiles, weights, beta, order=1, window=window)
    gradient = np.asfortranarray(found.gradient) if in_eights else found.gradient
    return float(mean(tiles, found.value)), mean(tiles, gradient)


def smooth_ap_one(
    scores: Floats, relevant: Bools, n_relevant: int, weights: Floats, beta: float, *, smooth_j: bool = False
) -> tuple[float, Floats]:
    """Return smoothed average precision and gradient of one query with (documents, K) scores (Algorithm 3)."""
    starts = np.array([0, len(scores)])
    tiles = build_tiles(starts, scores, relevant, np.array([n_relevant]))
    found = smooth_ap(tiles, weights, beta, order=1, smooth_j=smooth_j)
    return float(found.value[0]), found.gradient[0]


class QueryGradients:
    """Smoothed average precision and gradient of one query after another, under weights that change in between.

    The bits are those of `smooth_ap` on each query alone; what does not depend on the weights is prepared once.
    """

    def __init__(self, tiles: Tiles, beta: float) -> None:
        self._tiles, self._beta, self._store = tiles, beta, store_of(tiles)
        self._ranks = _memory_of_one(tiles, keep=True)
        self._value, self._gradient = np.empty(tiles.n_queries), np.empty((tiles.n_queries, tiles.n_rankers))

    def at(self, q: int, weights: Floats) -> tuple[float, Floats]:
        """Return the value of query q, and its gradient in the weights."""
        scaled, exponent = scale_weights(self._tiles, weights)
        sharpness = _sharpness(self._beta, self._tiles.exponent + exponent)
        found = self._ranks, self._value, self._gradient
        smooth_range(q, q + 1, self._store, scaled, sharpness, TAIL, *found, RANKS | GRADIENTS)
        return float(self._value[q]), _in_weights(self._gradient[q], self._beta, self._tiles.exponent)


def _sum_hessians(sums: HessianSums, total: float, beta: float, exponent: int) -> Floats:
    """Return the mean Hessian with both triangles and both factors b."""
    lower = np.tril(sums.hessians.sum(axis=0) / total)
    return _times(_times(lower + np.tril(lower, -1).T, beta, exponent), beta, exponent)


def store_of(tiles: Tiles) -> Store:
    """Return the arrays that the kernels read."""
    found: Store | None = tiles.derived.get("store")
    if found is not None:
        return found
    tiles.derived["store"] = found = Store(
        tiles.scores,
        tiles.low,
        tiles.high,
        tiles.sizes,
        tiles.position,
        tiles.tile_spans,
        tiles.relevant_scores,
        tiles.relevant_position,
        tiles.relevant_tile,
        tiles.relevant_spans,
        tiles.n_relevant,
        tiles.sums,
        tiles.greatest_score,
        np.maximum(tiles.n_relevant, 1).astype(np.float64),
    )
    return found


def blocks_of(tiles: Tiles, low: int, high: int, *, keep: bool = False) -> tuple[list[tuple[int, int]], Ranks]:
    """Cut the queries low:high into blocks whose scores stay in the cache between ranks and derivatives.

    Also returns working memory for the greatest of them; `keep` gives room to what derivatives read again.
    """
    blocks, n_tiles, n = _known_blocks(tiles, low, high)
    return blocks, _working_memory(n_tiles, n, keep=keep)


def _known_blocks(tiles: Tiles, low: int, high: int) -> tuple[list[tuple[int, int]], int, int]:
    if (low, high) not in tiles.derived:
        tiles.derived[low, high] = _cut_into_blocks(tiles, low, high)
    found: tuple[list[tuple[int, int]], int, int] = tiles.derived[low, high]
    return found


def _memory_of_one(tiles: Tiles, *, keep: bool) -> Ranks:
    """Return working memory for one query at a time, the greatest of all."""
    found: tuple[int, int] | None = tiles.derived.get("greatest")
    if found is None:
        n_tiles, n = (
            int((span[:, 1] - span[:, 0]).max(initial=0)) for span in (tiles.tile_spans, tiles.relevant_spans)
        )
        tiles.derived["greatest"] = found = n_tiles, n
    return _working_memory(*found, keep=keep)


def _working_memory(n_tiles: int, n: int, *, keep: bool) -> Ranks:
    """Return arrays for a block of so many tiles and relevant documents."""
    s, J, R, W, fall = np.empty((5, n + _ROOM))
    above, below = np.empty((2, n + _ROOM, 8))
    pairs = np.empty((n + _ROOM, 16))
    E, middles, cuts = np.empty((n_tiles, TILE)), np.empty(n_tiles), np.empty((n_tiles, 5), np.int64)
    G = np.empty((1 + (_ROWS_PER_TILE * n_tiles if keep else 0), TILE))
    V = np.empty(n + _ROOM + (_RELEVANT_PER_TILE * n_tiles if keep else 0))
    return Ranks(np.empty(n, np.int64), s, J, R, W, fall, above, below, pairs, E, middles, cuts, G, V)


def _cut_into_blocks(tiles: Tiles, low: int, high: int) -> tuple[list[tuple[int, int]], int, int]:
    """Return blocks of queries, and the most tiles and relevant documents of any of them."""
    most = _BLOCK_BYTES // (tiles.scores.itemsize * tiles.n_rankers * TILE)
    n_tiles, n = (
        int(np.add.reduce(span[low:high, 1] - span[low:high, 0]))
        for span in (tiles.tile_spans, tiles.relevant_spans)
    )
    if n_tiles <= most and low < high:
        return [(low, high)], n_tiles, n
    tile_ends = np.concatenate(([0], np.cumsum(tiles.tile_spans[low:high, 1] - tiles.tile_spans[low:high, 0])))
    ends = np.concatenate(([0], np.cumsum(tiles.relevant_spans[low:high, 1] - tiles.relevant_spans[low:high, 0])))
    cuts = [0]
    while cuts[-1] < high - low:
        last = int(np.searchsorted(tile_ends, tile_ends[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(last, cuts[-1] + 1))
    n_tiles, n = int(np.diff(tile_ends[cuts]).max()), int(np.diff(ends[cuts]).max())
    return [(low + a, low + b) for a, b in itertools.pairwise(cuts)], n_tiles, n


def _chunks_of(n_queries: int) -> tuple[Ints, Ints]:
    """Return where the chunks of queries begin, whose Hessians are summed apart, and the chunk of each query."""
    starts = np.linspace(0, n_queries, min(n_queries, _MOST_CHUNKS) + 1).astype(np.int64)
    return starts, np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _sharpness(beta: float, exponent: int) -> float:
    """Return beta * 2**exponent, stopped at the greatest float64."""
    return float(_times(np.float64(beta), 1.0, exponent)) if exponent else float(beta)


def _in_weights(gradient: Floats, beta: float, exponent: int) -> Floats:
    """Return the gradient in beta times the scores, as a kernel gives it, as one in the weights."""
    if not exponent and beta <= _TAME:
        return np.asarray(gradient * beta)
    return _times(gradient, beta, exponent)


def _times(numbers: Floats | np.float64, beta: float, exponent: int) -> Floats:
    """Return numbers * beta * 2**exponent, stopped at the greatest float64."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = numbers * beta
        if exponent:
            scaled = np.ldexp(scaled, exponent)
        return np.asarray(np.minimum(np.maximum(scaled, -GREATEST), GREATEST))


class Ranked(NamedTuple):
    """The fused run of every query, as far as its relevant documents tell."""

    values: Floats
    """(Q,) average precision."""
    starts: Ints
    """(Q + 1,) where each query's ranks lie."""
    ranks: Ints
    """Ranks of the relevant documents that have a row, from 1, rising within each query."""


def exact_ap(tiles: Tiles, weights: Floats) -> Floats:
    """Return each query's average precision (P1), as trec_eval gives it for the fused run.

    Equals, to the last bit, sorting the sums of `weighted_sum` downwards with a stable sort. Weights may be any
    finite numbers. A query without a relevant row gets 0.
    """
    return exact_ranks(tiles, weights).values


def exact_ap_each(tiles: Tiles, weights: Floats) -> Floats:
    """Return (W, Q) what `exact_ap` returns for each of (W, K) weights, to the bit, in half the time.

    Some queries are evaluated under all weights before the next: their scores are read from memory once.
    """
    scaled = [scale_weights(tiles, one)[0] for one in weights]
    return _evaluate(tiles, np.array(scaled).reshape(-1, tiles.n_rankers))[0]


def exact_ranks(tiles: Tiles, weights: Floats) -> Ranked:
    """Return where the relevant documents stand in the fused run: all that most measures look at."""
    values, ranks = _evaluate(tiles, scale_weights(tiles, weights)[0][None])
    return Ranked(values[0], _rank_starts(tiles), ranks)


def _evaluate(tiles: Tiles, scaled: Floats) -> tuple[Floats, Ints]:
    """Return (W, Q) values under each of (W, K) weights, and the ranks under the last of them."""
    starts, store = _rank_starts(tiles), store_of(tiles)
    values, ranks = np.empty((len(scaled), tiles.n_queries)), np.empty(int(starts[-1]), np.int64)

    def work(low: int, high: int) -> None:
        exact_range(low, high, store, scaled, values, starts, ranks)

    total = len(scaled) * tiles.total_cost
    if takes_one_thread(total // _COST_OF_SMOOTHED):
        work(0, tiles.n_queries)
    else:
        over_ranges(work, len(scaled) * tiles.costs, total)
    return values, ranks


def top_positions(tiles: Tiles, weights: Floats, n: int) -> Codes:
    """Return (Q, n) the positions, among its query's rows, of each query's n best documents; -1 past its last."""
    scaled, _ = scale_weights(tiles, weights)
    found, store = np.empty((tiles.n_queries, n), np.int32), store_of(tiles)
    over_ranges(lambda low, high: top_range(low, high, store, scaled, found), tiles.costs)
    return found


def _rank_starts(tiles: Tiles) -> Ints:
    """Return where each query's ranks lie."""
    found: Ints | None = tiles.derived.get("rank_starts")
    if found is None:
        found = np.zeros(tiles.n_queries + 1, np.int64)
        np.cumsum(tiles.relevant_spans[:, 1] - tiles.relevant_spans[:, 0], out=found[1:])
        tiles.derived["rank_starts"] = found
    return found
