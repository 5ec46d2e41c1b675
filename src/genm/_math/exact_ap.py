"""Exact average precision of every query under given weights (Problem P1), without sorting the documents.

The rank of a relevant document is one more than the number of documents before it: those with a greater fused
score and, among equals, those whose row comes earlier (departure 13: Eq. (1) would give tied documents the best
rank of them all). Counting needs only the tiles whose bounds leave the answer open.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges
from genm._math.parts import part
from genm._math.tile_kernels import Array, bound_tile, first_below, fuse_tile, order_relevant
from genm._math.tiles import Tiles, scale_weights


class _Store(NamedTuple):
    """The arrays of `Tiles` that this kernel reads."""

    scores: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    sizes: NDArray[np.int64]
    position: NDArray[np.int32]
    tile_spans: NDArray[np.int64]
    relevant: NDArray[np.floating]
    relevant_position: NDArray[np.int32]
    relevant_tile: NDArray[np.int64]
    relevant_spans: NDArray[np.int64]
    n_relevant: NDArray[np.int64]


class Ranked(NamedTuple):
    """The fused run of every query, as far as its relevant documents tell."""

    values: Array
    """(Q,) average precision."""
    starts: NDArray[np.int64]
    """(Q + 1,) where each query's ranks lie."""
    ranks: NDArray[np.int64]
    """Ranks of the relevant documents that have a row, from 1, rising within each query."""


def exact_ap(tiles: Tiles, weights: Array) -> Array:
    """Return each query's average precision (P1), as trec_eval gives it for the fused run.

    Equals, to the last bit, sorting the sums of `weighted_sum` downwards with a stable sort. Weights may be any
    finite numbers. A query without a relevant row gets 0.
    """
    return exact_ranks(tiles, weights).values


def exact_ranks(tiles: Tiles, weights: Array) -> Ranked:
    """Return where the relevant documents stand in the fused run: all that most measures look at."""
    scaled, _ = scale_weights(tiles, weights)
    starts = np.zeros(tiles.n_queries + 1, np.int64)
    np.cumsum(tiles.relevant_spans[:, 1] - tiles.relevant_spans[:, 0], out=starts[1:])
    values, ranks = np.empty(tiles.n_queries), np.empty(int(starts[-1]), np.int64)
    store = _Store(
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
    )

    def work(low: int, high: int) -> None:
        _exact_range(low, high, store, scaled, values, starts, ranks)

    over_ranges(work, tiles.costs)
    return Ranked(values, starts, ranks)


@part()
def _count_before(s: Array, s_j: float) -> tuple[int, int]:
    """Return how many of 64 scores are greater than s_j, and how many equal it."""
    greater, equal = 0, 0
    for d in range(64):
        greater += s[d] > s_j
        equal += s[d] == s_j
    return greater, equal


@part()
def _count_ties(s: Array, s_j: float, position: NDArray[np.int32], tile: int, place: int) -> int:
    """Return how many of 64 documents equal s_j and stand in an earlier row."""
    earlier = 0
    for d in range(64):
        earlier += s[d] == s_j and position[tile, d] < place
    return earlier


@kernel
def _exact_range(
    low: int,
    high: int,
    store: _Store,
    weights: Array,
    values: Array,
    starts: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> None:
    """Fill the values and ranks of the queries low:high."""
    scores, tile_low, tile_high, sizes, position, tile_spans = (
        store.scores,
        store.low,
        store.high,
        store.sizes,
        store.position,
        store.tile_spans,
    )
    relevant, relevant_position, relevant_tile, spans = (
        store.relevant,
        store.relevant_position,
        store.relevant_tile,
        store.relevant_spans,
    )
    most = 0
    for q in range(low, high):
        n = spans[q, 1] - spans[q, 0]
        most = n if n > most else most
    s, order, x = np.empty(most), np.empty(most, np.int64), np.empty(64)
    before, below = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        values[q] = 0.0
        if n == 0:
            continue
        order_relevant(relevant, first, n, weights, s, order, zero)
        for j in range(n + 1):
            before[j], below[j] = 0, 0
        c0, c3 = zero, zero
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            least, greatest = bound_tile(tile_low, tile_high, tile, weights)
            c0 = first_below(s, c0, zero, n, 1.0, greatest, 0.0)
            while c0 > 0 and s[c0 - 1] == greatest:  # ties with the tile's best have to be looked at
                c0 -= 1
            c3 = first_below(s, c3, zero, n, 1.0, least, 0.0)
            below[c3] += sizes[tile]
            if c0 >= c3:
                continue
            fuse_tile(scores, tile, weights, x)
            for d in range(sizes[tile], 64):
                x[d] = -np.inf
            for j in range(c0, c3):
                greater, equal = _count_before(x, s[j])
                itself = relevant_tile[first + order[j]] == tile
                if equal > itself:
                    greater += _count_ties(x, s[j], position, tile, relevant_position[first + order[j]])
                before[j] += greater
        above, total = zero, 0.0
        for j in range(n):
            above += below[j]
            rank = 1 + above + before[j]
            ranks[starts[q] + j] = rank
            total += (j + 1.0) / rank
        values[q] = total / store.n_relevant[q]
