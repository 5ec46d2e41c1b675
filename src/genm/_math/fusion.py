"""Condorcet's vote over ranked lists: a document goes before another if more lists rank it higher."""

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges


def order_by_majority(ranks: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each row's position (from 0) in its query's majority order.

    ranks is (rows, K), 0 for a document that the list lacks: it loses to every document the list holds.
    A merge sort by pairwise majority, as Condorcet-fuse does it: every document beats or draws with the next
    one. A majority may run in a circle; the rows' order then decides where it is cut, and it settles draws.
    """
    place = np.empty(len(ranks), np.int64)
    lengths = np.diff(starts)
    over_ranges(lambda low, high: _sort_queries(ranks, starts, low, high, place), lengths * ranks.shape[1])
    return place


@kernel
def _majority(ranks: NDArray[np.int32], a: int, b: int) -> int:
    votes = 0
    for k in range(ranks.shape[1]):
        first, second = ranks[a, k], ranks[b, k]
        if first > 0 and (second == 0 or first < second):
            votes += 1
        elif second > 0 and (first == 0 or second < first):
            votes -= 1
    return votes


@kernel
def _sort_queries(
    ranks: NDArray[np.int32], starts: NDArray[np.int64], low: int, high: int, place: NDArray[np.int64]
) -> None:
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
