"""Slow readings of the paper, one query at a time: what the kernels are held to.

S is one query's (documents, rankers) scores, `relevant` a mask of its rows, `n_relevant` the number of relevant
documents with those that have no row, alpha the weights.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._typing import Floats


def average_precision(S, relevant, n_relevant, alpha):
    """P1: sort by fused score, ties by row, and average the precision at the relevant documents."""
    fused = [0.0] * len(S)
    for d, row in enumerate(S.tolist()):
        for weight, score in zip(alpha.tolist(), row, strict=True):
            fused[d] += weight * score
    ranking = sorted(range(len(S)), key=lambda d: (-fused[d], d))
    total, found = 0.0, 0
    for rank, d in enumerate(ranking, start=1):
        if relevant[d]:
            found += 1
            total += found / rank
    return total / n_relevant if n_relevant else 0.0


def rank_as_printed(S, d_j, alpha):
    """Eq. (1): one more than the number of documents with a strictly greater score."""
    s = S @ alpha
    return 1 + sum(s[d_j] - s[d] < 0 for d in range(len(S)) if d != d_j)


def sigmoid(x):
    """Eq. (3): exp(-x) / (1 + exp(-x)), where x = beta s_{dj,d}."""
    return 0.5 - 0.5 * np.tanh(0.5 * x)


def smooth_rank(S, d_j, alpha, beta, among=None):
    """Eq. (5) with its first and second derivatives, Eq. (36) and (38), over the documents `among` (all)."""
    K = len(alpha)
    rank, first, second = 1.0, np.zeros(K), np.zeros((K, K))
    for d in range(len(S)) if among is None else among:
        if d == d_j:
            continue
        s = S[d_j] - S[d]
        g = sigmoid(beta * (S[d_j] @ alpha - S[d] @ alpha))
        rank += g
        dg = -beta * s * g * (1 - g)
        first += dg
        second += np.outer(-beta * s * (1 - 2 * g), dg)
    return rank, first, second


def smooth_ap(S, relevant, n_relevant, alpha, beta, smooth_j=False):
    """A query's summand of P2, P3 or P4 with gradient (Eq. 16) and Hessian (Eq. 37)."""
    K = len(alpha)
    value, gradient, hessian = 0.0, np.zeros(K), np.zeros((K, K))
    rows = np.flatnonzero(relevant)
    s = S @ alpha
    for j, d_j in enumerate(rows[np.argsort(-s[rows], kind="stable")], start=1):
        R, dR, ddR = smooth_rank(S, d_j, alpha, beta)
        J, dJ, ddJ = j, np.zeros(K), np.zeros((K, K))
        if smooth_j:
            J, dJ, ddJ = smooth_rank(S, d_j, alpha, beta, among=rows)
        value += J / R
        gradient += dJ / R - J * dR / R**2
        hessian += ddJ / R - (np.outer(dJ, dR) + np.outer(dR, dJ)) / R**2
        hessian += (-J * ddR * R**2 + 2 * J * np.outer(dR, dR) * R) / R**4
    divisor = max(n_relevant, 1)
    return value / divisor, gradient / divisor, hessian / divisor


def value_and_gradient(S, relevant, n_relevant, alpha, beta):
    """The same value and gradient without loops: what a careful NumPy user would write, for the benchmarks."""
    s = S @ alpha
    rows = np.flatnonzero(relevant)
    rows = rows[np.argsort(-s[rows], kind="stable")]
    j = np.arange(1.0, rows.size + 1.0)
    g = 0.5 - 0.5 * np.tanh(0.5 * beta * (s[rows, None] - s))
    g[np.arange(rows.size), rows] = 0.0  # the sum leaves out d = d_j
    R, slope = 1.0 + g.sum(axis=1), g * (1.0 - g)
    dR = -beta * (slope.sum(axis=1)[:, None] * S[rows] - slope @ S)
    return float((j / R).sum() / n_relevant), -(j / R**2) @ dR / n_relevant


def penalty(queries, alpha, sigma):
    """P8's penalty, sigma divided by L |D| K, for queries that all have the same number of documents."""
    total, L, D, K = 0.0, len(queries), len(queries[0]), len(alpha)
    for S in queries:
        for s_d in S:
            for k in range(K):
                total += (s_d @ alpha - s_d[k]) ** 2
    return -0.5 * sigma / (L * D * K) * total


class Printed(NamedTuple):
    """Objective of P4, and Algorithm 2's gradient and Hessian."""

    value: float
    gradient: Floats
    hessian: Floats


def as_printed(
    starts: NDArray[np.int64],
    scores: Floats,
    relevant: NDArray[np.bool_],
    n_relevant: NDArray[np.int64],
    weights: Floats,
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
