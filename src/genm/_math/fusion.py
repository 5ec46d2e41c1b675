"""Fusion kernels: the weighted sum of K rankers' scores, and Condorcet's vote over their lists.

The weighted sum is the same to the last bit wherever it is computed: each row is summed from the first ranker to
the last, one product at a time, so rows with equal scores stay tied. A matrix product may round the same row
differently depending on where it stands.
"""

import numpy as np

from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Bools, Codes, Floats, Ints

_BLOCK = 4096


def order_by_majority(ranks: Codes, starts: Ints) -> Ints:
    """Return each row's position (from 0) in its query's majority order.

    ranks is (rows, K), 0 for a document that the list lacks: it loses to every document the list holds.
    A merge sort by pairwise majority, as Condorcet-fuse does it: every document beats or draws with the next
    one. A majority may run in a circle; the rows' order then decides where it is cut, and it settles draws.
    """
    place = np.empty(len(ranks), np.int64)
    lengths = np.diff(starts)
    over_ranges(lambda low, high: _sort_queries(ranks, starts, low, high, place), lengths * ranks.shape[1])
    return place


@part()
def _majority(ranks: Codes, a: int, b: int) -> int:
    votes = 0
    for k in range(ranks.shape[1]):
        first, second = ranks[a, k], ranks[b, k]
        if first > 0 and (second == 0 or first < second):
            votes += 1
        elif second > 0 and (first == 0 or second < first):
            votes -= 1
    return votes


@kernel(makes_arrays=True)
def _sort_queries(ranks: Codes, starts: Ints, low: int, high: int, place: Ints) -> None:
    for q in range(low, high):
        begin, n = starts[q], starts[q + 1] - starts[q]
        order, spare = np.arange(begin, begin + n), np.empty(n, np.int64)
        width = 1
        while width < n:
            for left in range(0, n, 2 * width):
                middle, right = min(left + width, n), min(left + 2 * width, n)
                i, j = left, middle
                for at in range(left, right):
                    if j < right and (i >= middle or _majority(ranks, order[j], order[i]) > 0):
                        spare[at] = order[j]
                        j += 1
                    else:
                        spare[at] = order[i]
                        i += 1
            order, spare = spare, order
            width *= 2
        for i in range(n):
            place[order[i]] = i


def weighted_sum(scores: Floats, weights: Floats) -> Floats:
    """Return the sum over k of weights[k] * scores[:, k]."""
    scores = np.require(scores, np.float64, ("C", "W"))
    weights = np.require(weights, np.float64, ("C", "W"))
    fused = np.empty(len(scores))
    n_blocks = -(-len(scores) // _BLOCK)

    def work(low: int, high: int) -> None:
        _sum_rows(low * _BLOCK, min(high * _BLOCK, len(scores)), scores, weights, fused)

    over_ranges(work, np.full(n_blocks, _BLOCK * len(weights), np.int64))
    return fused


@kernel
def _sum_rows(low: int, high: int, scores: Floats, weights: Floats, fused: Floats) -> None:
    for i in range(low, high):
        total = 0.0
        for k in range(len(weights)):
            total += weights[k] * scores[i, k]
        fused[i] = total


def fused_variances(scores: Floats, starts: Ints) -> Floats:
    """Return the variance of each query's fused scores under uniform weights; -1 for fewer than two documents."""
    n_rankers = scores.shape[1]
    fused = weighted_sum(scores, np.full(n_rankers, 1.0 / n_rankers))
    starts = np.require(starts, np.int64, ("C", "W"))
    found = np.empty(len(starts) - 1)
    over_ranges(lambda low, high: _vary_queries(low, high, fused, starts, found), np.diff(starts))
    return found


@kernel
def _vary_queries(low: int, high: int, fused: Floats, starts: Ints, found: Floats) -> None:
    for q in range(low, high):
        begin, end = starts[q], starts[q + 1]
        n, mean, squares = end - begin, 0.0, 0.0
        for i in range(begin, end):
            mean += fused[i]
        mean /= n
        for i in range(begin, end):
            squares += (fused[i] - mean) * (fused[i] - mean)
        found[q] = squares / n if n > 1 else -1.0


def add_by_rank(ranks: Codes, worth: Floats) -> Floats:
    """Return the sum over k of worth[ranks[:, k]]."""
    added = np.empty(len(ranks))
    over_ranges(
        lambda low, high: _add_worth(low * _BLOCK, min(high * _BLOCK, len(ranks)), ranks, worth, added),
        np.full(-(-len(ranks) // _BLOCK), _BLOCK * ranks.shape[1], np.int64),
    )
    return added


@kernel
def _add_worth(low: int, high: int, ranks: Codes, worth: Floats, added: Floats) -> None:
    for i in range(low, high):
        total = 0.0
        for k in range(ranks.shape[1]):
            total += worth[ranks[i, k]]
        added[i] = total


def weighted_sum_by_query(scores: Floats, starts: Ints, weights: Floats) -> Floats:
    """Return the sum over k of weights[q, k] * scores[:, k], q being the row's query.

    The bits are those of `weighted_sum` with the weights of each query.
    """
    scores = np.require(scores, np.float64, ("C", "W"))
    weights = np.require(weights, np.float64, ("C", "W"))
    starts = np.require(starts, np.int64, ("C", "W"))
    fused = np.empty(len(scores))

    def work(low: int, high: int) -> None:
        _sum_queries(low, high, scores, starts, weights, fused)

    over_ranges(work, np.diff(starts) * weights.shape[1])
    return fused


def weighted_sum_without(
    scores: Floats, retrieved: Bools, starts: Ints, weights: Floats, ranker: int
) -> tuple[Floats, Ints]:
    """Return the weighted sum, -inf for documents that only this ranker returned, and how many others a query has.

    The bits are those of `weighted_sum`; the ranker's own weight counts.
    """
    scores, weights = (np.require(array, np.float64, ("C", "W")) for array in (scores, weights))
    retrieved, starts = np.require(retrieved, np.bool_, ("C", "W")), np.require(starts, np.int64, ("C", "W"))
    fused, n_kept = np.empty(len(scores)), np.zeros(len(starts) - 1, np.int64)

    def work(low: int, high: int) -> None:
        _sum_without(low, high, scores, retrieved, starts, weights, ranker, fused, n_kept)

    over_ranges(work, np.diff(starts) * len(weights))
    return fused, n_kept


@kernel
def _sum_without(
    low: int,
    high: int,
    scores: Floats,
    retrieved: Bools,
    starts: Ints,
    weights: Floats,
    ranker: int,
    fused: Floats,
    n_kept: Ints,
) -> None:
    for q in range(low, high):
        n = np.int64(0)
        for i in range(starts[q], starts[q + 1]):
            total, n_others = 0.0, np.int64(0)
            for k in range(len(weights)):
                total += weights[k] * scores[i, k]
                n_others += np.int64(retrieved[i, k])
            kept = n_others > np.int64(retrieved[i, ranker])
            fused[i] = total if kept else -np.inf
            n += np.int64(kept)
        n_kept[q] = n


@kernel
def _sum_queries(low: int, high: int, scores: Floats, starts: Ints, weights: Floats, fused: Floats) -> None:
    for q in range(low, high):
        for i in range(starts[q], starts[q + 1]):
            total = 0.0
            for k in range(weights.shape[1]):
                total += weights[q, k] * scores[i, k]
            fused[i] = total
