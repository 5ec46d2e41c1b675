"""Sort the swaps of each task along a line of weights and walk over them (compiled part of the exact line search).

Each swap moves one relevant row past another row, so one count changes by one and the value by a difference of two
table entries; see `genm._math.gains` and, for finding the swaps, `genm._math.swaps`.
"""

from typing import Any

import numpy as np

from genm._math.compiled import kernel
from genm._math.gains import Floats, Ints
from genm._math.growing import longer_floats, longer_ints
from genm._math.swaps import BLOCK, KEY_BITS, extremes, find_swaps, fuse_ends

BIN_BITS = 12
"""The line is cut into 2^12 bins to find where its maximum can be."""
DIGIT = 11
"""Bits of a digit when events are sorted."""


@kernel
def _heap_sort(keys: Ints, n: int) -> None:
    """Sort keys[:n] in place, at the same speed whatever they are."""
    root, end = n // 2, n
    while end > 1:
        if root > 0:
            root -= 1
            key = keys[root]
        else:
            end -= 1
            key, keys[end] = keys[end], keys[0]
        hole, child = root, 2 * root + 1
        while child < end:
            child += child + 1 < end and keys[child + 1] > keys[child]
            if keys[child] <= key:
                break
            keys[hole] = keys[child]
            hole, child = child, 2 * child + 1
        keys[hole] = key


@kernel
def sort_by_digits(keys: Ints, n: int, bits: int, spare: Ints) -> None:
    """Sort keys[:n], all in [0, 2^bits), in place: two counting passes over the top 22 bits, then repairs.

    Keys that agree in those bits are few unless the data are odd; then the repairs give up and a heap sort
    does the work.
    """
    if n > 64 and bits >= 2 * DIGIT:
        mask, low, high = (1 << DIGIT) - 1, bits - 2 * DIGIT, bits - DIGIT
        ends = np.zeros((2, (1 << DIGIT) + 1), np.int32)
        for e in range(n):
            ends[0, ((keys[e] >> low) & mask) + 1] += 1
            ends[1, (keys[e] >> high) + 1] += 1
        for digit in range(1 << DIGIT):
            ends[0, digit + 1] += ends[0, digit]
            ends[1, digit + 1] += ends[1, digit]
        for e in range(n):
            digit = (keys[e] >> low) & mask
            spare[ends[0, digit]] = keys[e]
            ends[0, digit] += 1
        for e in range(n):
            digit = spare[e] >> high
            keys[ends[1, digit]] = spare[e]
            ends[1, digit] += 1
    patience = 8 * n + 4096
    for e in range(1, n):
        key, hole = keys[e], e
        while hole > 0 and keys[hole - 1] > key:
            keys[hole] = keys[hole - 1]
            hole -= 1
        keys[hole] = key
        patience -= e - hole
        if patience < 0:
            _heap_sort(keys, n)
            return


@kernel
def sweep(
    tasks: Ints,
    starts: Ints,
    columns: Floats,
    order: Ints,
    query: Ints,
    relevant_starts: Ints,
    relevant_rows: Ints,
    weight: Floats,
    cutoff: Ints,
    position: Floats,
    discount: Floats,
    w_low: Floats,
    w_high: Floats,
    start_value: Floats,
    bins: Floats,
    ends: Ints,
    kept: Ints,
    steps: Floats,
) -> tuple[Ints, Floats, int]:
    """Walk over the swaps of tasks[0]:tasks[1] and keep their keys and steps, task after task, each in order.

    Returns `kept`, `steps` (longer ones if those given were too short) and how many swaps are in them; `ends`
    says where each task's swaps end.

    Per bin of t, bins[:, 0] is the change of the value and bins[:, 1] the sum of its rises, which is as far as it
    can go above its start.
    `start_value` holds each task's value at the left end.
    """
    n_kept: Any = np.int64(0)  # for a plain 0, what is called with it would be compiled once more
    events, spare = np.empty(1024, np.int64), np.empty(1024, np.int64)
    table, bits = np.zeros(len(discount) + 1), np.zeros(2, np.int64)
    u, v, at, depth = np.empty(0), np.empty(0), -1, -1
    rounded, ranges = np.empty((2, 0), np.float32), np.empty((2, 2, 0), np.float32)
    for task in range(tasks[0], tasks[1]):
        begin, n = starts[query[task]], starts[query[task] + 1] - starts[query[task]]
        if query[task] != at:
            at = query[task]
            if len(u) < n:
                u, v, rounded = np.empty(n), np.empty(n), np.empty((2, n), np.float32)
                ranges = np.empty((2, 2, -(-n // BLOCK)), np.float32)
            fuse_ends(columns, begin, w_low, w_high, u[:n], v[:n], rounded)
            for end in range(2):
                extremes(rounded[end, :n], ranges[end, 0], ranges[end, 1])
        R = relevant_starts[task + 1] - relevant_starts[task]
        rows, count = np.empty(R, np.int64), np.empty(R, np.int64)
        for g in range(R):
            rows[g] = relevant_rows[relevant_starts[task] + g] - begin
        code_bits = 1
        while (1 << code_bits) < 2 * R:
            code_bits += 1
        t_bits = min(KEY_BITS, 62 - code_bits)
        bits[0], bits[1] = t_bits, code_bits
        events, n_events = find_swaps(
            u[:n], v[:n], rounded, ranges, order[begin : begin + n], rows, bits, count, events
        )
        spare = longer_ints(spare, len(events))
        sort_by_digits(events, n_events, t_bits + code_bits, spare)
        slot, level, place = np.empty(R + 2, np.int64), np.full(R + 2, -1), np.empty(R, np.int64)
        for g in range(R):  # places 1 to R by count; -1 on both sides stops the search for equals
            p = g + 1
            while level[p - 1] > count[g]:
                level[p], slot[p] = level[p - 1], slot[p - 1]
                p -= 1
            level[p], slot[p] = count[g], g
        if min(cutoff[task], n) != depth:
            depth = min(cutoff[task], n)
            for rank in range(len(table)):
                table[rank] = discount[rank] if rank <= depth else 0.0
        share, value = weight[task], 0.0
        for p in range(1, R + 1):
            place[slot[p]] = p
            value += position[p] * table[p + level[p]]
        start_value[task] = share * value
        if n_kept + n_events > len(kept):
            done = task - tasks[0]
            likely = n_kept + (n_events + n_kept // max(done, 1)) * (tasks[1] - task) * 9 // 8
            kept, steps = longer_ints(kept, likely), longer_floats(steps, likely)
        code_mask = (1 << (code_bits - 1)) - 1
        for e in range(n_events):
            event = events[e]
            g, way = (event >> 1) & code_mask, 1 - 2 * (event & 1)
            p = place[g]
            c = level[p]
            q = p
            while level[q + way] == c:  # rows with equal counts are interchangeable: the outermost one moves
                q += way
            if q != p:
                other = slot[q]
                slot[q], slot[p] = g, other
                place[g], place[other] = q, p
            level[q] = c + way
            step = position[q] * share * (table[q + c + way] - table[q + c])
            key = (event >> code_bits) << (KEY_BITS - t_bits)
            kept[n_kept], steps[n_kept] = key, step
            n_kept += step != 0.0
            b = key >> (KEY_BITS - BIN_BITS)
            bins[b, 0] += step
            bins[b, 1] += max(step, 0.0)
        ends[task] = n_kept
    return kept, steps, n_kept
