"""Paired tests on differences: one row for each query, one column for each pair that is compared.

All tests are two-sided. Differences come rounded (`rounded`), so that floating-point noise neither breaks a tie
nor makes a difference out of none. p-values keep 12 significant digits and intervals 12 decimals: the special
functions behind them differ in the last digit between processors. Without any difference p is 1. One query is no
evidence: p is 1, and the interval of its mean difference is NaN.
"""

import math

import numpy as np
from numpy.typing import NDArray

from genm._math.student import student_quantile, student_tails
from genm._typing import Floats, Ints

_DECIMALS = 12
_FEW = 13
"""Up to this many queries all sign patterns are gone through, whatever was asked for."""
_MANY = 50
"""Up to this many differences of different sizes the distribution of their signed ranks is counted."""
_CELLS = 1 << 22
"""How many resampled cells are held at once."""


def rounded(differences: Floats) -> Floats:
    """Return the differences without what is far below any measure's own steps."""
    return np.round(differences, _DECIMALS) + 0.0


def _settled(p: float) -> float:
    """Return p with 12 significant digits."""
    return float(f"{p:.{_DECIMALS - 1}e}")


def wilcoxon(differences: Floats) -> Floats:
    """Return the p-values of Wilcoxon's signed-rank test; zero differences are dropped, as he did.

    Exact up to 50 differences of different sizes, or 13 of any sizes; beyond that the normal approximation,
    corrected for ties.
    """
    p = np.ones(differences.shape[1])
    for c in range(differences.shape[1]):
        d = differences[:, c]
        d = d[d != 0.0]
        n = len(d)
        if n == 0:
            continue
        _, size, counts = np.unique(np.abs(d), return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - 0.5 * (counts - 1.0))[size]
        above = float(ranks[d > 0.0].sum())
        if len(counts) < n <= _FEW:
            p[c] = _all_signs((np.sign(d) * ranks)[:, None])[0]
        elif n <= _MANY and len(counts) == n:
            p[c] = _settled(_signed_rank_tails(int(above), n))
        else:
            ties = float((counts.astype(np.float64) ** 3 - counts).sum())
            error = math.sqrt((n * (n + 1.0) * (2.0 * n + 1.0) - 0.5 * ties) / 24.0)
            p[c] = _settled(math.erfc(abs(above - 0.25 * n * (n + 1.0)) / error / math.sqrt(2.0)))
    return p


def _signed_rank_tails(statistic: int, n: int) -> float:
    """Return how probable a sum of the positive ranks 1..n as far out is, if all signs are equally likely."""
    patterns = np.zeros(n * (n + 1) // 2 + 1, np.int64)  # how many give each sum: up to 2^50 in all
    patterns[0] = 1
    for rank in range(1, n + 1):
        patterns[rank:] += patterns[:-rank].copy()
    fewest = min(int(patterns[: statistic + 1].sum()), int(patterns[statistic:].sum()))
    return min(1.0, math.ldexp(2.0 * fewest, -n))


def student(differences: Floats) -> Floats:
    """Return the p-values of the paired t-test; equal differences other than 0 give 0."""
    n = len(differences)
    p = np.ones(differences.shape[1])
    if n < 2:
        return p
    moved = np.flatnonzero(differences.any(axis=0))
    equal = np.ptp(differences[:, moved], axis=0) == 0.0
    p[moved[equal]] = 0.0
    rest = moved[~equal]
    d = differences[:, rest]
    mean = d.mean(axis=0)
    t = mean / np.sqrt(((d - mean) ** 2).sum(axis=0) / (n - 1) / n)
    p[rest] = [_settled(student_tails(x, n - 1.0)) for x in t.tolist()]
    return p


def randomization(differences: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Return the p-values of Fisher's randomisation test: how often random signs reach a mean as far from 0.

    All 2^n sign patterns are gone through where they are no more than `n_resamples`; otherwise that many are drawn
    and the observed one counts as one more, so that p is never 0.
    """
    n = len(differences)
    if n < 31 and 2**n <= n_resamples:
        return _all_signs(differences)
    n_extreme = np.zeros(differences.shape[1], np.int64)
    chunk = max(1, _CELLS // n)
    for begin in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - begin)
        bits = np.frombuffer(rng.bytes(size * -(-n // 8)), np.uint8).reshape(size, -1)
        n_extreme += _n_extreme(differences, np.unpackbits(bits, axis=1, count=n))
    return (n_extreme + 1) / (n_resamples + 1)


def _all_signs(differences: Floats) -> Floats:
    """Return the share of all sign patterns that reach a sum as far from 0."""
    n = len(differences)
    n_extreme = np.zeros(differences.shape[1], np.int64)
    chunk = max(1, _CELLS // n)
    for begin in range(0, 2**n, chunk):
        pattern = np.arange(begin, min(begin + chunk, 2**n))
        n_extreme += _n_extreme(differences, (pattern[:, None] >> np.arange(n)) & 1)
    return np.asarray(n_extreme / 2**n, np.float64)


def _n_extreme(differences: Floats, flip: NDArray[np.integer]) -> Ints:
    """Count the rows of `flip` (1 turns a sign round) whose sum is as far from 0 as that of no flip."""
    total = differences.sum(axis=0)
    # sums of the same numbers in another order may differ in the last bits
    reached = np.abs(total) - 1e-12 * np.abs(differences).sum(axis=0)
    sums = total - 2.0 * (flip.astype(np.float64) @ differences)
    return np.asarray((np.abs(sums) >= reached).sum(axis=0), np.int64)


def student_interval(
    differences: Floats, confidence: float, *, further_variance: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Return the ends of Student's confidence intervals of the mean differences.

    `further_variance`, one for all columns or one for each, is what the means vary by beyond the spread of the
    queries, such as the variance of weights that were learned from few queries. Without it an interval leaves out 0
    exactly where `student` gives a p-value below 1 - confidence.
    """
    n, n_columns = differences.shape
    if n < 2:
        return np.full(n_columns, np.nan), np.full(n_columns, np.nan)
    mean = differences.mean(axis=0)
    spread = ((differences - mean) ** 2).sum(axis=0) / (n - 1)
    spread[np.ptp(differences, axis=0) == 0.0] = 0.0  # what rounding the mean leaves is no spread
    half = student_quantile(0.5 + confidence / 2, n - 1.0) * np.sqrt(spread / n + further_variance)
    return rounded(mean - half), rounded(mean + half)


def holm(p: Floats) -> Floats:
    """Return p-values corrected for their number (Holm 1979): the smallest times m, the next times m - 1, ..."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(steps, 1.0)
    return corrected
