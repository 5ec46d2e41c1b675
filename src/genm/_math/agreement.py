"""The agreement penalty of Problem P8: how far the ensemble's scores are from each of its rankers'.

P8 subtracts (sigma / 2) sum_i sum_d sum_k (H_d - s_d(k))^2, an unscaled sum beside a mean over queries. Here sigma
is divided by L |D| K (departure 9): the sum is a mean over queries, over a query's documents and over rankers.
It is quadratic in the weights, sum_k (a - e_k)' M (a - e_k) with M the mean of the documents' s s', so M is all
that is needed of the scores. The Hessian has the factor K that the paper leaves out.
"""

from typing import NamedTuple

import numpy as np

from genm._math.linear_algebra import dot, product, row_products
from genm._typing import Floats, Ints
from genm.errors import InputError

_ROWS_AT_ONCE = 1 << 16
_GREATEST = np.finfo(np.float64).max


class Penalty(NamedTuple):
    """What Problem P8 adds to the objective: never above 0."""

    value: float
    gradient: Floats
    hessian: Floats


class Moments(NamedTuple):
    """Mean of the documents' s s' over documents and then over queries, for `agreement_penalty`."""

    matrix: Floats
    """(K, K), divided by 2**(2 * exponent)."""
    exponent: int


def score_moments(starts: Ints, scores: Floats, query_weights: Floats | None = None) -> Moments:
    """Return the moments of (rows, K) scores, rows[starts[q]:starts[q + 1]] for each query.

    Every query counts by its weight, however many documents it has; queries without documents do not count.
    """
    lengths = np.diff(starts)
    weights = np.ones(len(lengths)) if query_weights is None else np.asarray(query_weights, np.float64)
    total = weights[lengths > 0].sum()
    if not np.isfinite(scores).all():
        raise InputError("scores must be finite; found NaN or an infinity.")
    share = np.repeat(weights / np.maximum(lengths, 1) / (total if total > 0 else 1.0), lengths)
    greatest = float(np.abs(scores).max(initial=0.0))
    exponent = int(np.frexp(greatest)[1]) if greatest > 2.0**300 else 0
    matrix = np.zeros((scores.shape[1], scores.shape[1]))
    for low in range(0, len(scores), _ROWS_AT_ONCE):
        block = np.ldexp(scores[low : low + _ROWS_AT_ONCE], -exponent)
        matrix += row_products((share[low : low + _ROWS_AT_ONCE, None] * block).T, block.T)
    return Moments(matrix, exponent)


def agreement_penalty(moments: Moments, weights: Floats, sigma: float) -> Penalty:
    """Return -(sigma / 2) / (L |D| K) sum_i sum_d sum_k (H_d - s_d(k))^2 with gradient and Hessian (P8)."""
    if not 0.0 <= sigma < np.inf:
        raise InputError(f"sigma={sigma!r}: expected a finite number, 0 or greater.")
    M, alpha = moments.matrix, np.asarray(weights, np.float64)
    if alpha.shape != (len(M),) or not np.isfinite(alpha).all():
        raise InputError(f"weights must be {len(M)} finite numbers; found {weights!r}.")
    n, scale, apart = len(M), sigma / len(M), alpha - np.eye(len(M))
    exponent = max(int(np.frexp(np.abs(apart).max())[1]) - 100, 0)  # so that no product below overflows
    apart = np.ldexp(apart, -exponent)
    with np.errstate(over="ignore", under="ignore"):
        moved = product(apart, M)
        value = -0.5 * scale * dot(moved, apart)
        gradient = -scale * moved.sum(axis=0)
        value = np.ldexp(min(value, 0.0), 2 * (moments.exponent + exponent))
        gradient = np.ldexp(gradient, 2 * moments.exponent + exponent)
        hessian = np.ldexp(-scale * n * M, 2 * moments.exponent)
    return Penalty(
        max(float(value), -_GREATEST),
        np.clip(gradient, -_GREATEST, _GREATEST),
        np.clip(hessian, -_GREATEST, _GREATEST),
    )
