"""How alike the rankers rank: correlation of their orders, and what their tops share."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from genm._math.alignment import count_shared
from genm._math.parallel import over_items, threads_for
from genm._math.scaling import rank_lists
from genm._typing import Floats
from genm.align import Aligned

DEPTHS = (10, 100)
ALIKE_ORDER, ALIKE_TOP = 0.9, 0.6
"""Rankers rank almost alike when their orders correlate at least so, and their top 10 overlap at least so."""


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Pairs of rankers, averaged over the queries for which both returned something."""

    rankers: tuple[str, ...]
    correlation: Floats
    """(K, K): Spearman's rank correlation over the documents that both returned, equal scores sharing a rank."""
    depths: tuple[int, ...]
    overlap: Floats
    """(depths, K, K): documents that both returned within that depth over those that either did."""

    def alike(self) -> list[tuple[str, str]]:
        """Return the pairs that rank almost alike: one of the two could stand for both."""
        n = len(self.rankers)
        return [
            (self.rankers[a], self.rankers[b])
            for a in range(n)
            for b in range(a + 1, n)
            if self.correlation[a, b] >= ALIKE_ORDER and self.overlap[0, a, b] >= ALIKE_TOP
        ]


def rank_agreement(aligned: Aligned) -> Agreement:
    """Compare every pair of rankers, query by query."""
    n_rankers, raw, starts = len(aligned.rankers), aligned.raw, aligned.starts
    ranks = rank_lists(raw, aligned.retrieved, starts)
    overlap, unused = np.zeros((len(DEPTHS), n_rankers, n_rankers)), np.zeros((len(DEPTHS), n_rankers))
    count_shared(ranks, np.zeros(len(raw), np.bool_), starts, np.array(DEPTHS), overlap, unused)
    correlation = np.eye(n_rankers)
    complete = aligned.retrieved.all(axis=0)
    full = {k: _shared_ranks(raw[:, k], ranks[:, k], starts) for k in np.flatnonzero(complete).tolist()}

    def correlate(pair: tuple[int, int]) -> float:
        a, b = pair
        if a in full and b in full:
            return _mean_correlation(full[a], full[b], starts)
        common, within = _common_ranks(aligned, a, b)
        return _mean_correlation(*common, within)

    pairs = list(combinations(range(n_rankers), 2))
    with threads_for(raw.size):
        for (a, b), value in zip(pairs, over_items(correlate, pairs), strict=True):
            correlation[a, b] = correlation[b, a] = value
    return Agreement(aligned.rankers, correlation, DEPTHS, overlap)


def _common_ranks(aligned: Aligned, a: int, b: int) -> tuple[tuple[Floats, Floats], NDArray[np.int64]]:
    """Return the two rankers' ranks among the documents that both returned, and where queries start there."""
    rows = np.flatnonzero(aligned.retrieved[:, a] & aligned.retrieved[:, b])
    starts = np.searchsorted(rows, aligned.starts)
    raw = np.stack((aligned.raw[rows, a], aligned.raw[rows, b]), axis=1)
    ranks = rank_lists(raw, np.ones(raw.shape, np.bool_), starts)
    return (_shared_ranks(raw[:, 0], ranks[:, 0], starts), _shared_ranks(raw[:, 1], ranks[:, 1], starts)), starts


def _shared_ranks(raw: Floats, ranks: NDArray[np.int32], starts: NDArray[np.int64]) -> Floats:
    """Return ranks in which documents with equal scores share the middle of their places."""
    n = len(raw)
    if n == 0:
        return np.zeros(0)
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    place = starts[query] + ranks - 1  # where each row would stand if its query were sorted
    sorted_raw, sorted_query = np.empty(n), query
    sorted_raw[place] = raw
    begins = np.ones(n, np.bool_)
    begins[1:] = (sorted_raw[1:] != sorted_raw[:-1]) | (sorted_query[1:] != sorted_query[:-1])
    group = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    last = np.append(first[1:], n) - 1
    return np.asarray(0.5 * (first + last)[group][place] - starts[query] + 1.0)


def _mean_correlation(x: Floats, y: Floats, starts: NDArray[np.int64]) -> float:
    """Return the mean over queries of the correlation of x and y; constant lists have none and do not count."""
    sizes = np.diff(starts)
    query = np.repeat(np.arange(len(sizes)), sizes)
    n = np.maximum(sizes, 1)
    dx = x - (np.bincount(query, x, len(sizes)) / n)[query]
    dy = y - (np.bincount(query, y, len(sizes)) / n)[query]
    xx, yy, xy = (np.bincount(query, v, len(sizes)) for v in (dx * dx, dy * dy, dx * dy))
    counts = (xx > 0.0) & (yy > 0.0)
    return float(np.mean(xy[counts] / np.sqrt(xx[counts] * yy[counts]))) if counts.any() else 0.0
