"""The one ranking order: score downwards, ties settled by a number upwards, equals as they came."""

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges

_SMALL = 12  # pieces up to this size are sorted by insertion before merging


def rank_order(starts: NDArray[np.int64], score: NDArray[np.float64], tie: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the rows of every segment rows[starts[q]:starts[q + 1]] in ranking order.

    By score downwards, then by `tie` upwards; rows equal in both keep their order. Scores hold no NaN.
    """
    starts = np.require(starts, np.int64, ("C", "W"))
    score, tie = np.require(score, np.float64, ("C", "W")), np.require(tie, np.int32, ("C", "W"))
    order = np.arange(len(score), dtype=np.int64)
    sizes = np.diff(starts)

    def sort(low: int, high: int) -> None:
        _sort_segments(starts, score, tie, np.empty(sizes[low:high].max(), np.int64), order, low, high)

    over_ranges(sort, sizes)
    return order


def ranked_as_given(starts: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.int8]:
    """Tell of each segment whether its scores fall (0), fall with ties (1), or rise somewhere (2)."""
    starts, score = np.require(starts, np.int64, ("C", "W")), np.require(score, np.float64, ("C", "W"))
    state = np.zeros(max(len(starts) - 1, 0), np.int8)
    over_ranges(lambda low, high: _check_segments(starts, score, state, low, high), np.diff(starts))
    return state


@kernel
def _check_segments(
    starts: NDArray[np.int64], score: NDArray[np.float64], state: NDArray[np.int8], low: int, high: int
) -> None:
    for q in range(low, high):
        ties = rises = 0
        for i in range(starts[q] + 1, starts[q + 1]):
            ties += score[i] == score[i - 1]
            rises += score[i] > score[i - 1]
        state[q] = 2 if rises else (1 if ties else 0)


@kernel
def _sort_segments(
    starts: NDArray[np.int64],
    score: NDArray[np.float64],
    tie: NDArray[np.int32],
    spare: NDArray[np.int64],
    order: NDArray[np.int64],
    low: int,
    high: int,
) -> None:
    """Merge sort each segment of `order` from the bottom up; pieces already in order cost one look."""
    for q in range(low, high):
        begin, end = starts[q], starts[q + 1]
        for a in range(begin, end, _SMALL):
            for i in range(a + 1, a + _SMALL if a + _SMALL < end else end):
                row, j = order[i], i
                while j > a:
                    other = order[j - 1]
                    if score[row] > score[other] or (score[row] == score[other] and tie[row] < tie[other]):
                        order[j] = other
                        j -= 1
                    else:
                        break
                order[j] = row
        width = _SMALL
        while width < end - begin:
            for a in range(begin, end - width, 2 * width):
                middle, stop = a + width, a + 2 * width if a + 2 * width < end else end
                x, y = order[middle - 1], order[middle]
                if not (score[y] > score[x] or (score[y] == score[x] and tie[y] < tie[x])):
                    continue
                for i in range(width):
                    spare[i] = order[a + i]
                i, j, k = 0, middle, a
                while i < width and j < stop:
                    x, y = spare[i], order[j]
                    if score[y] > score[x] or (score[y] == score[x] and tie[y] < tie[x]):
                        order[k] = y
                        j += 1
                    else:
                        order[k] = x
                        i += 1
                    k += 1
                while i < width:
                    order[k] = spare[i]
                    i += 1
                    k += 1
            width *= 2
