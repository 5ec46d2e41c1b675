"""Sorting in compiled code: the ranking order of documents, a radix sort, a sort of few rows, buffers that grow.

The ranking order is score downwards, ties by a number upwards, equals in their given order. A query holds from a
handful to some thousands of rows; there a radix sort costs a third of a comparison sort, compiles in a fraction
of the time, and is stable. Lists inside kernels are slow and slice assignments take seconds to compile, so
kernels that collect an unknown number of items use the growing buffers.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from genm._math.lanes import bits_of
from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Codes, Floats, Ints, Words

_SMALL = 12  # pieces up to this size are sorted by insertion before merging

N_COUNTS = 2048
"""Length of the counter that the sort needs."""

Count: TypeAlias = int | np.int64
"""Kernels say np.int64(0) where 0 would do: for a plain constant numba compiles a copy of what they call."""

_SIGN = np.uint64(1 << 63)
_FEW = 24


def rank_order(starts: Ints, score: Floats, tie: Codes) -> Ints:
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


def ranked_as_given(starts: Ints, score: Floats) -> NDArray[np.int8]:
    """Say for each segment whether its scores fall (0), fall with ties (1), or rise somewhere (2)."""
    starts, score = np.require(starts, np.int64, ("C", "W")), np.require(score, np.float64, ("C", "W"))
    state = np.zeros(max(len(starts) - 1, 0), np.int8)
    over_ranges(lambda low, high: _check_segments(starts, score, state, low, high), np.diff(starts))
    return state


def distinct_scores(starts: Ints, score: Floats) -> Floats:
    """Return falling scores of every segment, equal ones lowered by the least amount that tells them apart.

    Each is the largest float that is not above the score itself and below the one before it.
    """
    bits = (np.asarray(score, np.float64) + 0.0).view(np.int64)  # -0.0 and 0.0 are equal
    lowest = np.iinfo(np.int64).min
    keys = np.where(bits < 0, lowest - bits, bits)  # integers that sort as the scores do
    same = np.flatnonzero(keys[1:] == keys[:-1]) + 1
    segment = np.unique(np.searchsorted(starts, same, side="right") - 1)
    for q in segment.tolist():
        rows = slice(int(starts[q]), int(starts[q + 1]))
        place = np.arange(rows.stop - rows.start)
        keys[rows] = np.minimum.accumulate(keys[rows] + place) - place
    keys = np.maximum(keys, -np.array(np.finfo(np.float64).max).view(np.int64))
    return np.where(keys < 0, lowest - keys, keys).view(np.float64)


@kernel
def _check_segments(starts: Ints, score: Floats, state: NDArray[np.int8], low: int, high: int) -> None:
    for q in range(low, high):
        ties = rises = 0
        for i in range(starts[q] + 1, starts[q + 1]):
            ties += score[i] == score[i - 1]
            rises += score[i] > score[i - 1]
        state[q] = 2 if rises else (1 if ties else 0)


@kernel
def _sort_segments(starts: Ints, score: Floats, tie: Codes, spare: Ints, order: Ints, low: int, high: int) -> None:
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


@part()
def sort_pairs(
    keys: Words, items: Codes, n: Count, bits: Count, spare_keys: Words, spare_items: Codes, counts: Ints
) -> None:
    """Sort keys[:n] upwards and take items[:n] along; only the lowest `bits` bits of the keys are in use."""
    if n <= _FEW:
        for i in range(1, n):
            key, item, j = keys[i], items[i], i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1], items[j + 1] = keys[j], items[j]
                j -= 1
            keys[j + 1], items[j + 1] = key, item
        return
    width = 8 if n < 1024 else 11
    mask = np.uint64((1 << width) - 1)
    from_keys, from_items, to_keys, to_items = keys, items, spare_keys, spare_items
    moved = False
    for low in range(0, bits, width):
        shift = np.uint64(low)
        counts[: 1 << width] = 0
        for i in range(n):
            counts[(from_keys[i] >> shift) & mask] += 1
        if counts[(from_keys[0] >> shift) & mask] == n:
            continue
        total = 0
        for digit in range(1 << width):
            count = counts[digit]
            counts[digit] = total
            total += count
        for i in range(n):
            digit = (from_keys[i] >> shift) & mask
            at = counts[digit]
            counts[digit] = at + 1
            to_keys[at], to_items[at] = from_keys[i], from_items[i]
        from_keys, to_keys = to_keys, from_keys
        from_items, to_items = to_items, from_items
        moved = not moved
    if moved:
        for i in range(n):
            keys[i], items[i] = from_keys[i], from_items[i]


@part()
def sort_downwards(values: Floats, items: Ints, begin: Count, n: Count) -> None:
    """Sort n values downwards from `begin` on, equal ones by their items upwards, and take the items along.

    For the few relevant or judged rows of a query: a Shell sort, which needs no second array. It is not stable, so
    the items must differ.
    """
    gap = 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(begin + gap, begin + n):
            value, item, hole = values[i], items[i], i
            while hole >= begin + gap and (
                values[hole - gap] < value or (values[hole - gap] == value and items[hole - gap] > item)
            ):
                values[hole], items[hole] = values[hole - gap], items[hole - gap]
                hole -= gap
            values[hole], items[hole] = value, item


@part()
def downward_keys(values: Floats, n: Count, keys: Words) -> None:
    """Write keys whose upward order is the downward order of values[:n]; both zeros get one key."""
    for i in range(n):
        bits = bits_of(values[i] + 0.0)  # minus zero becomes zero
        keys[i] = bits if bits & _SIGN else ~(bits | _SIGN)


@part()
def longer_ints(array: Any, needed: int) -> Any:
    """Return the array, or a longer copy in which `needed` entries fit; its integers may be of any size."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, len(array) * 3 // 2), array.dtype)
    for e in range(len(array)):
        longer[e] = array[e]
    return longer


@part()
def longer_floats(array: Floats, needed: int) -> Floats:
    """Return the array, or a longer copy in which `needed` entries fit."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, len(array) * 3 // 2))
    for e in range(len(array)):
        longer[e] = array[e]
    return longer
