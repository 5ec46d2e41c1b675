"""Bound the value on parts of a line of weights and walk over its swaps (compiled part of the exact line search).

Each swap moves one relevant row past another row, so one count changes by one and the value by a difference of two
table entries; see `genm._math.exact.rank_gains` and, for finding the swaps, `genm._math.swaps`. How often each
relevant row rises in a part of the line bounds the value there, so that swaps need sorting only where the maximum
can be.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genm._math.exact.rank_gains import BLOCK, Floats, Gains, Ints, Problem
from genm._math.growing import longer_floats, longer_ints
from genm._math.parallel import kernel
from genm._math.swaps import KEY_BITS, PART_BITS, find_swaps, fuse_likely

BIN_BITS = 12
"""The line is cut into 2^12 bins to find where its maximum can be, once swaps are sorted."""
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
def _sort_levels(count: Ints, order: Ints, level: Ints) -> None:
    """Write the counts in order; `order` says whose they are and is best left from the time before."""
    for i in range(len(order)):
        g, hole = order[i], i
        own = count[g]
        while hole > 0 and level[hole - 1] > own:
            level[hole], order[hole] = level[hole - 1], order[hole - 1]
            hole -= 1
        level[hole], order[hole] = own, g


@kernel
def _fill_table(gains: Gains, task: int, n: int, table: Floats, filled: Ints) -> None:
    """Write a task's discounts for a query of n rows, 0 beyond its cutoff, unless they are there already."""
    depth, base = min(gains.cutoff[task], n), gains.base[task]
    if depth == filled[0] and base == filled[1] and n <= filled[2]:
        return
    filled[0], filled[1], filled[2] = depth, base, n
    for rank in range(min(n + 2, len(gains.discount) - base)):
        table[rank] = gains.discount[base + rank] if rank <= depth else 0.0


@kernel
def _value(gains: Gains, task: int, table: Floats, level: Ints) -> float:
    """Return what `task_value` returns, the task's weight apart, from a table with the cutoff in it."""
    by_rank, position, total = gains.by_rank[task], gains.position, 0.0
    if gains.least[task] == 0:
        for i in range(len(level)):
            total += position[i + 1] * table[by_rank * (i + 1) + level[i]]
    else:
        for i in range(gains.least[task] - 1, len(level)):
            total = max(total, position[i + 1] * table[by_rank * (i + 1) + level[i]])
    return total


@kernel
def _bound_parts(
    gains: Gains, task: int, table: Floats, count: Ints, moved: NDArray[np.int32], parts: Floats
) -> None:
    """Add, for each part of the line, the task's value at its left end and a bound of all its values there.

    The bound has every relevant row rise as often as it does in the part, and not fall.
    """
    R, weight = len(count), gains.weight[task]
    here, best = count.copy(), np.empty(R, np.int64)
    order, best_order, level = np.arange(R), np.arange(R), np.empty(R, np.int64)
    _sort_levels(here, order, level)
    value = _value(gains, task, table, level)
    for part in range(1 << PART_BITS):
        parts[0, part] += weight * value
        falls, rises, roof = 0, 0, value
        for g in range(R):
            fall, rise = moved[g, 2 * part], moved[g, 2 * part + 1]
            best[g] = here[g] - rise
            here[g] += fall - rise
            falls, rises = falls + fall, rises + rise
        if rises > 0:
            _sort_levels(best, best_order, level)
            roof = _value(gains, task, table, level)
        parts[1, part] += weight * roof
        if rises + falls > 0:
            _sort_levels(here, order, level)
            value = _value(gains, task, table, level)


@kernel
def _bits_for(R: int) -> Ints:
    """Return how many bits of an event are its swap point's, and how many its row's and direction's."""
    code_bits = 1
    while (1 << code_bits) < 2 * R:
        code_bits += 1
    return np.array([min(KEY_BITS, 62 - code_bits), code_bits])


@kernel
def survey(
    tasks: Ints,
    problem: Problem,
    w_low: Floats,
    w_high: Floats,
    parts: Floats,
    count: Ints,
    moved: NDArray[np.int32],
    ends: Ints,
    events: Ints,
) -> tuple[Ints, int]:
    """List the swaps of tasks[0]:tasks[1], task after task, in no order, and bound each part of the line.

    Returns `events` (a longer list if the one given was too short) and how many are in it; `ends` says where each
    task's end, `count` how many rows are above each relevant row at the left end, `moved` how often it falls and
    rises in each part. To parts[0] and parts[1] the value at the left end of each part and its bound are added;
    nothing if it has no columns.
    """
    n_events: Any = np.int64(0)  # for a plain 0, what is called with it would be compiled once more
    u, v, at = np.empty(0), np.empty(0), -1
    rounded, ranges = np.empty((2, 0), np.float32), np.empty((2, 2, 0), np.float32)
    table, filled = np.zeros(len(problem.gains.discount) + 1), np.full(3, -1)
    for task in range(tasks[0], tasks[1]):
        q = problem.query[task]
        begin, n = problem.starts[q], problem.starts[q + 1] - problem.starts[q]
        if q != at:
            at = q
            if len(u) < n:
                u, v, rounded = np.empty(n), np.empty(n), np.empty((2, n), np.float32)
                ranges = np.empty((2, 2, -(-n // BLOCK)), np.float32)
            fuse_likely(problem, task, tasks[1], w_low, w_high, u[:n], v[:n], rounded, ranges)
        first, last = problem.relevant_starts[task], problem.relevant_starts[task + 1]
        R, order, above, own = last - first, problem.order[begin : begin + n], count[first:last], moved[first:last]
        rows = np.empty(R, np.int64)
        for g in range(R):
            rows[g] = problem.relevant_rows[first + g] - begin
        events, n_events = find_swaps(
            u[:n], v[:n], rounded, ranges, order, rows, _bits_for(R), above, own, events, n_events
        )
        ends[task] = n_events
        if parts.shape[1] > 0:
            _fill_table(problem.gains, task, n, table, filled)
            _bound_parts(problem.gains, task, table, above, own, parts)
    return events, n_events


@kernel
def _select(found: Ints, bits: Ints, span: Ints, events: Ints) -> int:
    """Copy the events in a span of parts; return how many they are."""
    n, low = 0, span[0] << (bits[0] - PART_BITS + bits[1])
    high = span[1] << (bits[0] - PART_BITS + bits[1])
    for e in range(len(found)):
        events[n] = found[e]
        n += (found[e] >= low) & (found[e] < high)
    return n


@kernel
def sweep(
    tasks: Ints,
    problem: Problem,
    found: Ints,
    ends: Ints,
    count: Ints,
    moved: NDArray[np.int32],
    span: Ints,
    start_value: Floats,
    bins: Floats,
    kept_ends: Ints,
    kept: Ints,
    steps: Floats,
) -> tuple[Ints, Floats, int]:
    """Walk over the swaps of tasks[0]:tasks[1] in a span of parts; keep keys and steps, task by task, in order.

    `found`, `ends`, `count` and `moved` are what `survey` wrote. Returns `kept`, `steps` (longer ones if those
    given were too short) and how many swaps are in them; `kept_ends` says where each task's swaps end. Per bin of
    t, bins[:, 0] is the change of the value and bins[:, 1] the sum of its rises, which is as far as it can go above
    its start. `start_value` holds each task's value at the left end of the span.
    """
    n_kept: Any = np.int64(0)  # for a plain 0, what is called with it would be compiled once more
    events, spare = np.empty(1024, np.int64), np.empty(1024, np.int64)
    gains, position, begin = problem.gains, problem.gains.position, 0
    table, filled = np.zeros(len(gains.discount) + 1), np.full(3, -1)
    for task in range(tasks[0], tasks[1]):
        first, last = problem.relevant_starts[task], problem.relevant_starts[task + 1]
        R, end, q = last - first, ends[task], problem.query[task]
        bits, above = _bits_for(R), count[first:last].copy()
        for g in range(R):
            for part in range(span[0]):
                above[g] += moved[first + g, 2 * part] - moved[first + g, 2 * part + 1]
        t_bits, code_bits = bits[0], bits[1]
        events, spare = longer_ints(events, end - begin + 1), longer_ints(spare, end - begin + 1)
        n_events = _select(found[begin:end], bits, span, events)
        begin = end
        sort_by_digits(events, n_events, t_bits + code_bits, spare)
        slot, level, place = np.empty(R + 2, np.int64), np.full(R + 2, -1), np.empty(R, np.int64)
        for g in range(R):  # places 1 to R by count; -1 on both sides stops the search for equals
            p = g + 1
            while level[p - 1] > above[g]:
                level[p], slot[p] = level[p - 1], slot[p - 1]
                p -= 1
            level[p], slot[p] = above[g], g
        _fill_table(gains, task, problem.starts[q + 1] - problem.starts[q], table, filled)
        share, by_rank, least = gains.weight[task], gains.by_rank[task], gains.least[task]
        for p in range(1, R + 1):
            place[slot[p]] = p
        value = _value(gains, task, table, level[1 : R + 1])
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
            at = by_rank * q + c
            step = position[q] * share * (table[at + way] - table[at])
            if least > 0:
                now = _value(gains, task, table, level[1 : R + 1])
                step, value = share * (now - value), now
            key = (event >> code_bits) << (KEY_BITS - t_bits)
            kept[n_kept], steps[n_kept] = key, step
            n_kept += step != 0.0
            b = key >> (KEY_BITS - BIN_BITS)
            bins[b, 0] += step
            bins[b, 1] += max(step, 0.0)
        kept_ends[task] = n_kept
    return kept, steps, n_kept
