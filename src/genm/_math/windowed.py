"""Algorithm 2's derivatives over tiles: what `printed` computes pair by pair, as fast as the rest.

Legend as in `smooth_kernels`: a pair counts in the derivatives only while |b (s_j - s_d)| < 2, though every pair
counts in the smoothed ranks. For the reproduction of the paper, nothing else.
"""

from typing import NamedTuple

import numpy as np

from genm._math.average_precision import blocks_of, store_of
from genm._math.average_precision_kernels import Ranks, Store, rank_range
from genm._math.elementary import TAIL, exponential
from genm._math.parallel import kernel, over_ranges
from genm._math.tile_kernels import Array, bound_tile, first_below, fuse_tile
from genm._math.tiles import Tiles, mean
from genm.errors import InputError

WINDOW = 2.0


class Windowed(NamedTuple):
    """Means over the queries with their weights."""

    value: float
    """Objective of P4; every pair counts."""
    gradients: Array
    """(2, K): with G^k as printed, and with the true derivative (Eq. 36)."""
    hessians: Array
    """(3, K, K): G^k as printed over (1 + G)^2 (Eq. 17), the true one over that, and over (1 + G)^4 (Eq. 37)."""


def windowed(tiles: Tiles, weights: Array, beta: float) -> Windowed:
    """Return what Algorithm 2 computes, with and without its misprints (departures 3 and 5)."""
    if tiles.exponent:
        raise InputError("scores: expected cosines or the like; found some above 2^500. Normalise them first.")
    given, n_queries, n_rankers = np.array(weights, np.float64), tiles.n_queries, tiles.n_rankers
    store, value = store_of(tiles), np.empty(n_queries)
    gradients, hessians = np.zeros((n_queries, 2, n_rankers)), np.zeros((n_queries, 3, n_rankers, n_rankers))

    def work(low: int, high: int) -> None:
        blocks, ranks = blocks_of(tiles, low, high)
        for first, last in blocks:
            rank_range(first, last, store, given, beta, TAIL, ranks, value)
            _windowed_range(first, last, store, given, beta, ranks, gradients, hessians)

    over_ranges(work, tiles.costs)
    return Windowed(float(mean(tiles, value)), mean(tiles, gradients), mean(tiles, hessians))


@kernel
def _windowed_range(
    low: int, high: int, store: Store, weights: Array, b: float, ranks: Ranks, gradients: Array, hessians: Array
) -> None:
    """Add what the queries low:high give; their ranks are there already."""
    scores, tile_low, tile_high, sizes = store.scores, store.low, store.high, store.sizes
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
            least, greatest = bound_tile(tile_low, tile_high, tile, weights)
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
