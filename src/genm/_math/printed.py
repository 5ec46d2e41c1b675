"""Derivatives as Algorithm 2 computes them: for the reproduction of the paper, nothing else.

Algorithm 2 counts a pair in the derivatives only while |s_dj - s_d| < 2 / beta; the smoothed ranks themselves use
every pair. `corrected` uses the true derivative there (Eq. 36 and 37); the literal text accumulates
G^k += beta s_{dj,d}(k), which points backwards and is not damped (departure 5), and divides the second derivative
by (1 + G)^2 (Eq. 17, departure 3). Plain NumPy: it is not meant to be fast.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Printed(NamedTuple):
    """Objective of P4, and Algorithm 2's gradient and Hessian."""

    value: float
    gradient: Array
    hessian: Array


def as_printed(
    starts: NDArray[np.int64],
    scores: Array,
    relevant: NDArray[np.bool_],
    n_relevant: NDArray[np.int64],
    weights: Array,
    beta: float,
    *,
    corrected: bool = False,
) -> Printed:
    """Return the mean over queries of what Algorithm 2 computes for (rows, K) scores.

    Queries without a relevant document count as 0.
    """
    n_queries, n_rankers = len(starts) - 1, scores.shape[1]
    value, gradient, hessian = 0.0, np.zeros(n_rankers), np.zeros((n_rankers, n_rankers))
    for q in range(n_queries):
        rows = slice(starts[q], starts[q + 1])
        S, divisor = scores[rows], max(int(n_relevant[q]), 1) * n_queries
        s, marked = S @ weights, np.flatnonzero(relevant[rows])
        marked = marked[np.argsort(-s[marked], kind="stable")]
        for j, d_j in enumerate(marked, start=1):
            apart, difference = s[d_j] - s, S[d_j] - S
            g = 0.5 - 0.5 * np.tanh(0.5 * beta * apart)
            g[d_j] = 0.0
            close = np.abs(beta * apart) < 2.0
            slope = g[close] * (1.0 - g[close])
            D, G = difference[close], 1.0 + g.sum()
            G_k = -beta * slope @ D if corrected else beta * D.sum(axis=0)
            G_kl = beta**2 * (D * (slope * (1.0 - 2.0 * g[close]))[:, None]).T @ D
            numerator = -j * G_kl * G**2 + 2.0 * j * np.outer(G_k, G_k) * G
            value += j / G / divisor
            gradient += -j * G_k / G**2 / divisor
            hessian += numerator / G ** (4 if corrected else 2) / divisor
    return Printed(value, gradient, hessian)
