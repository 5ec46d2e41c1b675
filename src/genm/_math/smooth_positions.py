"""Kernels for the smoothed position: J_j = 1 + sum of g over the other relevant documents (Qin, Liu and Li, 2010).

The legend is in `smooth_kernels`. Each adds to what the kernels for the sorted position have left.
"""

import numpy as np

from genm._math.average_precision_kernels import Ranks, Store
from genm._math.elementary import STEEPEST, exponential
from genm._math.parallel import kernel
from genm._math.parts import part
from genm._math.smooth_hessian import HessianSums
from genm._math.tile_kernels import Array


@part()
def _sigmoid(b: float, s_i: float, s_j: float) -> float:
    x = exponential(min(max(b * (s_i - s_j), -STEEPEST), STEEPEST))
    return x / (1.0 + x)


@kernel
def position_range(low: int, high: int, store: Store, ranks: Ranks, b: float, values: Array) -> None:
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
def position_gradient_range(low: int, high: int, store: Store, ranks: Ranks, b: float, gradients: Array) -> None:
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
    low: int, high: int, store: Store, ranks: Ranks, b: float, dR: Array, sums: HessianSums
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
                if i < j:  # the pair the other way round has the same x x' and the opposite second derivative
                    c = scale * w * (1.0 - 2.0 * g) * (1.0 / R[j] - 1.0 / R[i])
                    for k in range(n_rankers):
                        for other in range(k + 1):
                            hessians[chunk, k, other] += c * x[k] * x[other]
            c = scale / (R[j] * R[j])
            for k in range(n_rankers):
                for other in range(k + 1):
                    hessians[chunk, k, other] -= c * (dJ[k] * dR[j, other] + dR[j, k] * dJ[other])
        at += n
