"""Kernels of smoothed average precision: gradient and Hessian together (Eq. 16 and Eq. 37).

The legend is in `smooth_kernels`. X are scores less the mean of the query's relevant documents, with a last column
of ones, so that sums weighted by X contain the plain sums. Derivatives here leave out the factors b.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision_kernels import Ranks, Store, invert_tile, pair_by_ratio, pair_by_score
from genm._math.elementary import exponential
from genm._math.lanes import fill, load, store, total
from genm._math.parallel import kernel
from genm._math.parts import part
from genm._math.smooth_gradient import mean_relevant, spread_powers
from genm._math.tile_kernels import Array


class HessianSums(NamedTuple):
    """Weighted sums of Hessians over chunks of queries; the chunks never depend on the number of threads."""

    hessians: Array
    """(chunks, K, K) lower triangles."""
    query_weights: Array
    chunks: NDArray[np.int64]
    """(Q,) the chunk each query belongs to."""


@part()
def _sum_moments(E: Array, begins: int, X: Array, moments: Array) -> None:
    """Set moments[k, i] to the sum over the tile's documents of E^(i+1) X_k; its E lie at `begins`."""
    for k in range(len(X)):
        m1, m2, m3, m4 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for d in range(0, 64, 8):
            e, x = load(E, begins + d), load(X, 64 * k + d)
            e2, ex = e * e, e * x
            m1 += ex
            m2 += e2 * x
            m3 += e2 * ex
            m4 += e2 * (e2 * x)
        moments[k, 0], moments[k, 1], moments[k, 2], moments[k, 3] = total(m1), total(m2), total(m3), total(m4)


@part()
def _add_series(v: float, sign: float, moments: Array, P: Array, T: Array, j: int) -> None:
    """Add the series of sum_d w X to P_j and of sum_d h X to T_j."""
    v2 = v * v
    v3, v4 = v * v2, v2 * v2
    for k in range(len(moments)):
        m1, m2, m3, m4 = v * moments[k, 0], v2 * moments[k, 1], v3 * moments[k, 2], v4 * moments[k, 3]
        P[j, k] += m1 - 2.0 * m2 + 3.0 * m3 - 4.0 * m4
        T[j, k] += sign * (m1 - 4.0 * m2 + 9.0 * m3 - 16.0 * m4)


@part()
def _add_pairs(g: Array, h: Array, c: float, X: Array, P: Array, T: Array, j: int, u: Array) -> None:
    """Add sum_d w X to P_j, sum_d h X to T_j and c h to u; overwrites g."""
    for d in range(0, 64, 8):
        x = load(g, d)
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


@part()
def _centre(scores: NDArray[np.floating], tile: int, shift: Array, X: Array) -> None:
    """Set X to the tile's scores less shift; its last row stays."""
    for k in range(len(shift)):
        x, begins = shift[k], 64 * (len(shift) * tile + k)
        for d in range(0, 64, 8):
            store(X, 64 * k + d, load(scores, begins + d) - x)


@part()
def _take_squares(u: Array, X: Array, ux: Array, H: Array) -> None:
    """Take sum_d u X X' from the lower triangle of H."""
    for k in range(len(H)):
        for d in range(0, 64, 8):
            store(ux, d, load(u, d) * load(X, 64 * k + d))
        for other in range(k + 1):
            dot = fill(0.0)
            for d in range(0, 64, 8):
                dot += load(ux, d) * load(X, 64 * other + d)
            H[k, other] -= total(dot)


@part()
def _close_ranks(x: Array, C: float, D: float, P: Array, T: Array, j: int, H: Array) -> None:
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
    low: int,
    high: int,
    store: Store,
    ranks: Ranks,
    b: float,
    gradients: Array,
    dR: Array,
    sums: HessianSums,
) -> None:
    """Fill the gradients of the queries low:high and the dR_j of the block; add Hessians to the sums."""
    hessians, query_weights, chunks = sums
    P = dR
    order, s, J, R, E, cuts = ranks.order, ranks.s, ranks.J, ranks.R, ranks.E, ranks.cuts
    scores, sizes, tile_spans = store.scores, store.sizes, store.tile_spans
    relevant, spans = store.relevant, store.relevant_spans
    n_rankers = gradients.shape[1]
    g, h, u, inverse = np.empty(64), np.empty(64), np.empty(64), np.empty((1, 64))
    X, moments = np.empty((n_rankers + 1, 64)), np.empty((n_rankers + 1, 4))
    shift, x, H = np.empty(n_rankers), np.empty(n_rankers), np.empty((n_rankers, n_rankers))
    T = np.empty(P.shape)
    for d in range(64):
        X[n_rankers, d] = 1.0
    zero = low - low  # an integer like any other: a plain 0 is a constant, for which callees are compiled again
    at, t = zero, zero
    for q in range(low, high):
        first, n = spans[q, 0], spans[q, 1] - spans[q, 0]
        mean_relevant(relevant, first, n, shift)
        for k in range(n_rankers):
            gradients[q, k] = 0.0
            for other in range(k + 1):
                H[k, other] = 0.0
        for j in range(at, at + n):
            for k in range(n_rankers + 1):
                P[j, k], T[j, k] = 0.0, 0.0
        for tile in range(tile_spans[q, 0], tile_spans[q, 1]):
            c0, c1, c2, c3 = cuts[t, 0], cuts[t, 1], cuts[t, 2], cuts[t, 3]
            if c0 < c3:
                size, middle = sizes[tile], E[t, 64]
                _centre(scores, tile, shift, X)
                for d in range(64):
                    u[d] = 0.0
                for side in range(2):
                    begin, stop, sign = (c2, c3, -1.0) if side else (c0, c1, 1.0)
                    if begin < stop:
                        if side:
                            invert_tile(E, t, size, inverse)
                            _sum_moments(inverse, zero, X, moments)
                        else:
                            _sum_moments(E, 65 * t, X, moments)
                        a1, a2, a3, a4 = 0.0, 0.0, 0.0, 0.0
                        for j in range(begin, stop):
                            v, c = exponential(sign * b * (middle - s[j])), sign * J[j] / (R[j] * R[j])
                            _add_series(v, sign, moments, P, T, j)
                            a1 += c * v
                            a2 += 4.0 * c * v * v
                            a3 += 9.0 * c * v * v * v
                            a4 += 16.0 * c * (v * v) * (v * v)
                        if side:
                            spread_powers(inverse, zero, a1, a2, a3, a4, u)
                        else:
                            spread_powers(E, 65 * t, a1, a2, a3, a4, u)
                for j in range(c1, c2):
                    if cuts[t, 4]:
                        pair_by_score(E, t, size, b, s[j], g)
                    else:
                        pair_by_ratio(E, t, exponential(b * (s[j] - middle)), g)
                    _add_pairs(g, h, J[j] / (R[j] * R[j]), X, P, T, j, u)
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
