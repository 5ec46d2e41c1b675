"""Sorting in compiled code: the ranking order of documents, a radix sort, a sort of few rows, buffers that grow.

The ranking order is score downwards, ties by a number upwards, equals in their given order. A query holds from a
handful to some thousands of rows; there a radix sort costs a third of a comparison sort, compiles in a fraction
of the time, and is stable. Lists inside kernels are slow and slice assignments take seconds to compile, so
kernels that collect an unknown number of items use the growing buffers.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from genm._math.lanes import bits_of
from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Bools, Codes, Floats, Ints, Words

_SMALL = 12  # pieces up to this size are sorted by insertion before merging

N_COUNTS = 2048
"""Length of the counter that the sort needs."""

Count: TypeAlias = int | np.int64
"""Kernels say np.int64(0) where 0 would do: for a plain constant numba compiles a copy of what they call."""

_SORTED_AT_ONCE = 1 << 16
"""Rows of some queries that are sorted in one call, each query taking as many as the longest."""
_MOST_MOVED = 4
"""How many places its rows are moved on average, before a list is sorted by all bits of its values."""

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


def falling_orders(
    values: Floats, held: Bools, starts: Ints, low: int, high: int
) -> Iterator[tuple[int, int, NDArray[np.uint32]]]:
    """Sort every list of the queries low:high: the columns of (rows, K) values, query by query.

    Yields some queries first:last at a time with their orders, (queries, K, rows of the longest): the places of a
    query's rows by value downwards, equal ones in the order of the rows, and those that a list does not hold after
    all others. What stands past a query's last row means nothing.

    numpy sorts integers of 32 bits several times as fast as anything longer. So a value is cut down to the number
    of the cell that it lies in, of some million between the list's ends, and the row's place is put behind it; rows
    that share a cell are put in order afterwards.
    """
    longest = int(np.diff(starts[low : high + 1]).max(initial=1))
    step = max(1, _SORTED_AT_ONCE // longest)
    complete = int(held[starts[low] : starts[high]].all())
    for first in range(low, high, step):
        last = min(first + step, high)
        n = max(int(np.diff(starts[first : last + 1]).max()), 2)
        keys, bits = np.empty((last - first, values.shape[1], n), np.uint32), (n - 1).bit_length()
        _pack_lists(first, last, values, held, complete, starts, bits, keys)
        keys.sort(axis=2)
        _settle_cells(first, last, values, held, starts, bits, keys)
        yield first, last, keys


@kernel(makes_arrays=True)
def _pack_lists(
    low: int,
    high: int,
    values: Floats,
    held: Bools,
    complete: int,
    starts: Ints,
    bits: int,
    keys: NDArray[np.uint32],
) -> None:
    """Write the cell of every value, which rises as values fall, and in the last `bits` bits the row's place."""
    n_lists, shift = values.shape[1], np.uint32(bits)
    nowhere = np.float64((1 << (32 - bits)) - 1)
    greatest, least, scale = np.empty(n_lists), np.empty(n_lists), np.empty(n_lists)
    for q in range(low, high):
        begin, n = starts[q], starts[q + 1] - starts[q]
        for k in range(n_lists):
            greatest[k], least[k] = -np.inf, np.inf
        for row in range(begin, begin + n):
            for k in range(n_lists):
                value = values[row, k]
                if complete or held[row, k]:
                    greatest[k] = value if value > greatest[k] else greatest[k]
                    least[k] = value if value < least[k] else least[k]
        for k in range(n_lists):
            spread = greatest[k] - least[k]
            scale[k] = (nowhere - 1.0) / spread if 0.0 < spread < np.inf else 0.0
            if not 0.0 < scale[k] < np.inf:  # all are equal, or too far apart: one cell for all
                greatest[k], scale[k] = 0.0, 0.0
        for k in range(n_lists):
            highest, factor, own = greatest[k], scale[k], keys[q - low, k]
            for i in range(n):
                cell = (highest - values[begin + i, k]) * factor
                cell = cell if cell < nowhere - 1.0 else nowhere - 1.0
                if not complete:
                    cell = cell if held[begin + i, k] else nowhere
                own[i] = (np.uint32(np.int32(cell)) << shift) | np.uint32(i)
            for i in range(n, len(own)):
                own[i] = 0xFFFFFFFF


@kernel(makes_arrays=True)
def _settle_cells(
    low: int, high: int, values: Floats, held: Bools, starts: Ints, bits: int, keys: NDArray[np.uint32]
) -> None:
    """Put rows of one cell in order, by insertion, and leave the places alone; a list of large cells is sorted."""
    mask, most = np.uint32((1 << bits) - 1), keys.shape[2]
    column, counts = np.empty(most), np.empty(N_COUNTS, np.int64)
    whole, spare = np.empty(most, np.uint64), np.empty(most, np.uint64)
    items, spare_items = np.empty(most, np.int32), np.empty(most, np.int32)
    for q in range(low, high):
        begin, n = starts[q], starts[q + 1] - starts[q]
        for k in range(keys.shape[1]):
            own, n_moved = keys[q - low, k], 0
            for i in range(1, n):
                key, j = own[i], i
                row = begin + np.int64(key & mask)
                if (key ^ own[i - 1]) > mask or not held[row, k]:
                    continue
                while j > 0 and (key ^ own[j - 1]) <= mask:
                    if values[begin + np.int64(own[j - 1] & mask), k] >= values[row, k]:
                        break
                    own[j] = own[j - 1]
                    j -= 1
                own[j] = key
                n_moved += i - j
                if n_moved > _MOST_MOVED * n:
                    break
            if n_moved <= _MOST_MOVED * n:
                for i in range(n):
                    own[i] &= mask
                continue
            n_held, n_others = np.int64(0), np.int64(0)
            for i in range(n):
                if held[begin + i, k]:
                    column[n_held], items[n_held] = values[begin + i, k], i
                    n_held += 1
            downward_keys(column, n_held, whole)
            sort_pairs(whole, items, n_held, np.int64(64), spare, spare_items, counts)
            for i in range(n_held):
                own[i] = items[i]
            for i in range(n):
                if not held[begin + i, k]:
                    own[n_held + n_others] = i
                    n_others += 1


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


@part(makes_arrays=True)
def longer_ints(array: Any, needed: int) -> Any:
    """Return the array, or a longer copy in which `needed` entries fit; its integers may be of any size."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, len(array) * 3 // 2), array.dtype)
    for e in range(len(array)):
        longer[e] = array[e]
    return longer


@part(makes_arrays=True)
def longer_floats(array: Floats, needed: int) -> Floats:
    """Return the array, or a longer copy in which `needed` entries fit."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, len(array) * 3 // 2))
    for e in range(len(array)):
        longer[e] = array[e]
    return longer
