"""Kernels of the exact line search: find the swaps along a line of weights, bound the value, walk over the swaps.

Legend: u, v fused scores at the ends of the line; a relevant row j and another row d swap where u_j - u_d and
v_j - v_d differ in sign, at t = du / (du - dv). An event packs t (fixed point), j and the direction into one
integer, so that sorting moves single words.

Most pairs do not swap, and single precision is enough to see it: rounding keeps order, so a score that is larger
after rounding was larger before. Only pairs that this does not separate are looked at in full.

Each swap moves one relevant row past another row, so one count changes by one and the value by a difference of
two table entries; see `genm._math.exact.rank_gains`. How often each relevant row rises in a part of the line
bounds the value there, so that swaps need sorting only where the maximum can be.
"""

from typing import Any

import numpy as np

from genm._math.exact.rank_gains import BLOCK, GainProblem, Gains, task_value
from genm._math.parallel import kept, kernel, part
from genm._math.sorting import longer_floats, longer_ints
from genm._typing import Codes, Floats, Ints, Singles

KEY_BITS = 52
"""Swap points are fixed-point numbers in units of 2^-52 of the line."""
MAGIC = 2.0**52
"""Added to a smaller number it leaves the nearest whole one in the last bits, which is quick with vectors."""
PART_BITS = 5
"""The line is cut into 2^5 parts, and it is counted how each relevant row moves in each of them."""

_vectors = {"nnan", "nsz", "reassoc"}
"""Sums of a few ones come out the same in any order."""

BIN_BITS = 12
"""The line is cut into 2^12 bins to find where its maximum can be, once swaps are sorted."""
DIGIT = 11
"""Bits of a digit when events are sorted."""


@part()
def fuse(columns: Floats, first: int, weights: Floats, out: Floats) -> None:
    """Write the fused scores of rows first, first + 1, ... into `out`.

    Multiplications and additions happen one ranker after the other, for all rows alike, so that equal rows get
    equal fused scores to the last bit.
    """
    for low in range(0, len(out), 1024):
        own = out[low : low + 1024]
        for d in range(len(own)):
            own[d] = 0.0
        for k in range(columns.shape[0]):
            theirs, w = columns[k, first + low : first + low + len(own)], weights[k]
            for d in range(len(own)):
                own[d] += theirs[d] * w


@part()
def fuse_ends(
    columns: Floats,
    first: int,
    w_low: Floats,
    w_high: Floats,
    u: Floats,
    v: Floats,
    u_rounded: Singles,
    v_rounded: Singles,
) -> None:
    """Write the fused scores at both ends, with the roundings of `fuse`, and both in single precision."""
    K = columns.shape[0]
    for low in range(0, len(u), 512):
        at_low, at_high = u[low : low + 512], v[low : low + 512]
        n = len(at_low)
        theirs = columns[0, first + low : first + low + n]
        for d in range(n):
            at_low[d] = theirs[d] * w_low[0]
            at_high[d] = theirs[d] * w_high[0]
        for k in range(1, K):
            theirs, wu, wv = columns[k, first + low : first + low + n], w_low[k], w_high[k]
            for d in range(n):
                at_low[d] += theirs[d] * wu
                at_high[d] += theirs[d] * wv
        short_low, short_high = u_rounded[low : low + n], v_rounded[low : low + n]
        for d in range(n):
            short_low[d] = at_low[d]
            short_high[d] = at_high[d]


@part(makes_arrays=True)
def extremes(values: Singles, lowest: Singles, highest: Singles) -> None:
    """Write the smallest and the largest value of each block.

    The bits of floating-point numbers, those of negative ones turned round, are integers in the same order, and
    the least of integers is found with vectors.
    """
    turned, result = values.view(np.int32), np.empty(2, np.int32)
    for block in range(-(-len(values) // BLOCK)):
        own = turned[block * BLOCK : (block + 1) * BLOCK]
        low, high = np.int32(2**31 - 1), np.int32(-(2**31))
        for d in range(len(own)):
            x = np.int32(own[d] ^ ((own[d] >> 31) & 0x7FFFFFFF))
            low, high = min(low, x), max(high, x)
        result[0], result[1] = low ^ ((low >> 31) & 0x7FFFFFFF), high ^ ((high >> 31) & 0x7FFFFFFF)
        lowest[block], highest[block] = result.view(np.float32)


@part()
def _lowest_relevant(problem: GainProblem, task: int, end: int, weights: Floats) -> float:
    """Return the lowest fused score of a relevant row of the task's query, in tasks up to `end`."""
    lowest, columns, last = np.inf, problem.columns, task
    while last < end and problem.query[last] == problem.query[task]:
        last += 1
    for g in range(problem.relevant_starts[task], problem.relevant_starts[last]):
        fused = 0.0
        for k in range(len(weights)):
            fused += columns[k, problem.relevant_rows[g]] * weights[k]
        lowest = min(lowest, fused)
    return float(lowest)


@part()
def _highest_of(reach: Floats, weights: Floats) -> float:
    """Return a fused score that no row of a block exceeds; see `genm._math.exact.rank_gains.Blocks`."""
    total = 0.0
    for k in range(len(weights)):
        total += weights[k]
    highest = max(total * reach[0, 0], total * reach[0, 1])
    for k in range(len(weights)):
        apart = weights[k] - total / len(weights)
        highest += max(apart * reach[k + 1, 0], apart * reach[k + 1, 1])
    return float(highest)


@kernel
def fuse_likely(
    problem: GainProblem,
    task: int,
    end: int,
    w_low: Floats,
    w_high: Floats,
    u: Floats,
    v: Floats,
    rounded: Singles,
    ranges: Singles,
) -> None:
    """Write the fused scores of a task's query at both ends, also in single precision, and their extremes by block.

    Blocks that lie below every relevant row at both ends are left out; that they do is all their extremes say.
    """
    q, blocks = problem.query[task], problem.blocks
    begin, n = problem.starts[q], len(u)
    slack = 0.0
    for k in range(len(w_low)):  # far more than can have been rounded
        slack += 1e-10 * blocks.size[k] * max(abs(w_low[k]), abs(w_high[k]))
    low_floor = _lowest_relevant(problem, task, end, w_low) - slack
    high_floor = _lowest_relevant(problem, task, end, w_high) - slack
    n_blocks, first = blocks.starts[q + 1] - blocks.starts[q], 0
    for block in range(n_blocks + 1):
        below = block == n_blocks
        if not below:
            reach = blocks.reach[blocks.starts[q] + block]
            below = _highest_of(reach, w_low) < low_floor and _highest_of(reach, w_high) < high_floor
        if not below:
            continue
        if first < block:  # all blocks since the last one left out
            low, high = first * BLOCK, min(block * BLOCK, n)
            at_low, at_high = rounded[0, low:high], rounded[1, low:high]
            fuse_ends(problem.columns, begin + low, w_low, w_high, u[low:high], v[low:high], at_low, at_high)
            extremes(at_low, ranges[0, 0, first:block], ranges[0, 1, first:block])
            extremes(at_high, ranges[1, 0, first:block], ranges[1, 1, first:block])
        if block < n_blocks:
            for e in range(2):
                ranges[e, 0, block] = ranges[e, 1, block] = -np.inf
        first = block + 1


@kept(fastmath=_vectors)
def _flag(u: Singles, v: Singles, uj: np.float32, vj: np.float32, unclear: Singles) -> np.float32:
    """Mark the rows that are not clearly on one side of j at both ends; return how many are clearly above j.

    Marks are floating-point numbers, like what is compared, because only then the loop becomes one of vectors.
    """
    above = np.float32(0.0)
    for d in range(len(u)):
        over = (u[d] > uj) & (v[d] > vj)
        under = (u[d] < uj) & (v[d] < vj)
        above += np.float32(1.0) if over else np.float32(0.0)
        unclear[d] = np.float32(0.0) if over | under else np.float32(1.0)
    return above


@part(makes_arrays=True)
def _add_events(
    rows: Codes,
    u: Floats,
    v: Floats,
    order: Ints,
    j: int,
    g: int,
    bits: Ints,
    count: Ints,
    moved: Codes,
    work: Floats,
    events: Ints,
) -> int:
    """Write the swaps of relevant row j, the task's g-th, with the given rows; return how many there are.

    Counts the rows that are above j at the start, and j's rises and falls in each part of the line.
    """
    at_low, at_high, size = work[0], work[1], len(rows)
    uj, vj, scale, top = u[j], v[j], float(1 << bits[0]), float((1 << bits[0]) - 1)
    for e in range(size):
        at_low[e], at_high[e] = uj - u[rows[e]], vj - v[rows[e]]
    above, level, n = 0, 0, 0
    for e in range(size):
        du, dv = at_low[e], at_high[e]
        above += (du < 0) | ((du == 0) & (dv < 0))
        level += (du == 0) & (dv == 0)
        share = du / (du - dv) * scale
        swap = (du < 0) & (dv > 0) | (du > 0) & (dv < 0)
        at_high[e] = MAGIC + (share if share < top else top) if swap else 0.0
        n += swap
    if level > 0:  # ties along the whole line are decided by row
        for e in range(size):
            above += (u[rows[e]] == uj) & (v[rows[e]] == vj) & (order[rows[e]] < order[j])
    count[g] += above
    keys, mask, shift = at_high.view(np.int64), (1 << KEY_BITS) - 1, bits[1]
    for e in range(size):
        events[e] = ((keys[e] & mask) << shift) | (g << 1) | (at_low[e] < 0)
    if n < size:
        n = 0
        for e in range(size):
            events[n] = events[e]
            n += at_high[e] > 0.0
    own, to_part = moved[g], bits[0] - PART_BITS + shift
    for e in range(n):
        own[((events[e] >> to_part) << 1) | (events[e] & 1)] += 1
    return n


@part(makes_arrays=True)
def find_swaps(
    u: Floats,
    v: Floats,
    rounded: Singles,
    ranges: Singles,
    order: Ints,
    rows: Ints,
    bits: Ints,
    count: Ints,
    moved: Codes,
    events: Ints,
    n_events: int,
) -> tuple[Ints, int]:
    """Append the swaps of all relevant rows, packed, to a list as long as needed; return it and its length.

    `rounded` holds u and v in single precision, `ranges` their extremes per block. An event has bits[0] bits of t,
    then bits[1] for the relevant row and the direction. Writes how many other rows are above each at the start, and
    to moved[g, 2 * p] and moved[g, 2 * p + 1] how often the g-th falls and rises in a part of the line.
    """
    n, R = len(u), len(rows)
    unclear, listed, work = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32), np.empty((2, BLOCK))
    inside = np.empty(R, np.int64)
    for g in range(R):
        count[g] = 0
        for p in range(2 << PART_BITS):
            moved[g, p] = 0
        for h in range(R):  # what the comparison of whole blocks sees of relevant rows, which do not count
            clear = (rounded[0, rows[h]] > rounded[0, rows[g]]) & (rounded[1, rows[h]] > rounded[1, rows[g]])
            count[g] -= clear
    for low in range(0, n, BLOCK):
        high, block, n_inside = min(low + BLOCK, n), low // BLOCK, 0
        for g in range(R):
            inside[n_inside] = rows[g] - low
            n_inside += low <= rows[g] < high
        for g in range(R):
            uj, vj = rounded[0, rows[g]], rounded[1, rows[g]]
            if (ranges[0, 1, block] < uj) & (ranges[1, 1, block] < vj):
                continue
            if (ranges[0, 0, block] > uj) & (ranges[1, 0, block] > vj):
                count[g] += high - low
                continue
            count[g] += np.int64(_flag(rounded[0, low:high], rounded[1, low:high], uj, vj, unclear))
            for h in range(n_inside):
                unclear[inside[h]] = 0
            n_listed = 0
            for d in range(high - low):
                listed[n_listed] = low + d
                n_listed += unclear[d] > 0
            events = longer_ints(events, n_events + n_listed)
            n_events += _add_events(
                listed[:n_listed], u, v, order, rows[g], g, bits, count, moved, work, events[n_events:]
            )
    return events, n_events


@part()
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


@part(makes_arrays=True)
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


@part()
def _sort_levels(count: Ints, order: Ints, level: Ints) -> None:
    """Write the counts in order; `order` says whose they are and is best left from the time before."""
    for i in range(len(order)):
        g, hole = order[i], i
        own = count[g]
        while hole > 0 and level[hole - 1] > own:
            level[hole], order[hole] = level[hole - 1], order[hole - 1]
            hole -= 1
        level[hole], order[hole] = own, g


@part()
def _fill_table(gains: Gains, task: int, n: int, table: Floats, filled: Ints) -> None:
    """Write a task's discounts for a query of n rows, 0 beyond its cutoff, unless they are there already."""
    depth, base = min(gains.cutoff[task], n), gains.base[task]
    if depth == filled[0] and base == filled[1] and n <= filled[2]:
        return
    filled[0], filled[1], filled[2] = depth, base, n
    for rank in range(min(n + 2, len(gains.discount) - base)):
        table[rank] = gains.discount[base + rank] if rank <= depth else 0.0


@part()
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


@part(makes_arrays=True)
def _bound_parts(gains: Gains, task: int, table: Floats, count: Ints, moved: Codes, parts: Floats) -> None:
    """Add, for each part of the line, the task's value at its left end and a bound of all its values there.

    The bound has every relevant row rise as often as it does in the part, and not fall.
    """
    R, weight = len(count), gains.weight[task]
    here, best = count.copy(), np.empty(R, np.int64)
    order, best_order, level = np.arange(R), np.arange(R), np.empty(R, np.int64)
    _sort_levels(here, order, level)
    value = _value(gains, task, table, level)
    for p in range(1 << PART_BITS):
        parts[0, p] += weight * value
        falls, rises, roof = 0, 0, value
        for g in range(R):
            fall, rise = moved[g, 2 * p], moved[g, 2 * p + 1]
            best[g] = here[g] - rise
            here[g] += fall - rise
            falls, rises = falls + fall, rises + rise
        if rises > 0:
            _sort_levels(best, best_order, level)
            roof = _value(gains, task, table, level)
        parts[1, p] += weight * roof
        if rises + falls > 0:
            _sort_levels(here, order, level)
            value = _value(gains, task, table, level)


@part(makes_arrays=True)
def _bits_for(R: int) -> Ints:
    """Return how many bits of an event are its swap point's, and how many its row's and direction's."""
    code_bits = 1
    while (1 << code_bits) < 2 * R:
        code_bits += 1
    return np.array([min(KEY_BITS, 62 - code_bits), code_bits])


@kernel(makes_arrays=True)
def survey(
    tasks: Ints,
    problem: GainProblem,
    w_low: Floats,
    w_high: Floats,
    parts: Floats,
    count: Ints,
    moved: Codes,
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


@part()
def _select(found: Ints, bits: Ints, span: Ints, events: Ints) -> int:
    """Copy the events in a span of parts; return how many they are."""
    n, low = 0, span[0] << (bits[0] - PART_BITS + bits[1])
    high = span[1] << (bits[0] - PART_BITS + bits[1])
    for e in range(len(found)):
        events[n] = found[e]
        n += (found[e] >= low) & (found[e] < high)
    return n


@kernel(makes_arrays=True)
def sweep(
    tasks: Ints,
    problem: GainProblem,
    found: Ints,
    ends: Ints,
    count: Ints,
    moved: Codes,
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
            for passed in range(span[0]):
                above[g] += moved[first + g, 2 * passed] - moved[first + g, 2 * passed + 1]
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
            g, sign = (event >> 1) & code_mask, 1 - 2 * (event & 1)
            p = place[g]
            c = level[p]
            q = p
            while level[q + sign] == c:  # rows with equal counts are interchangeable: the outermost one moves
                q += sign
            if q != p:
                other = slot[q]
                slot[q], slot[p] = g, other
                place[g], place[other] = q, p
            level[q] = c + sign
            at = by_rank * q + c
            step = position[q] * share * (table[at + sign] - table[at])
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


@part()
def _first_from(keys: Ints, begin: int, end: int, wanted: int) -> int:
    """Return the first place in keys[begin:end], which are in order, with a key of at least `wanted`."""
    while begin < end:
        middle = (begin + end) // 2
        if keys[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def neighbours(keys: Ints, ends: Ints, left: int, right: int) -> tuple[np.int64, np.int64]:
    """Return the last key up to `left` and the first one from `right` on."""
    begin: Any = np.int64(0)  # for a plain 0, what is called with it would be compiled once more
    low, high = np.int64(0), np.int64(1) << KEY_BITS
    for end in ends:
        at = _first_from(keys, begin, end, left + 1)
        if at > begin:
            low = max(low, keys[at - 1])
        at = _first_from(keys, at, end, right)
        if at < end:
            high = min(high, keys[at])
        begin = end
    return low, high


@kernel(makes_arrays=True)
def pick_swaps(keys: Ints, steps: Floats, ends: Ints, lows: Ints, highs: Ints) -> tuple[Ints, Floats]:
    """Return the swaps with keys in one of the ranges lows[i] <= key < highs[i]."""
    out_keys, out_steps = np.empty(0, np.int64), np.empty(0)
    zero: Any = np.int64(0)  # for a plain 0, what is called with it would be compiled once more
    for turn in range(2):  # count, then copy
        n, begin = 0, zero
        for end in ends:
            for i in range(len(lows)):
                first = _first_from(keys, begin, end, lows[i])
                last = _first_from(keys, first, end, highs[i])
                if turn == 1:
                    for e in range(first, last):
                        out_keys[n + e - first], out_steps[n + e - first] = keys[e], steps[e]
                n += last - first
            begin = end
        if turn == 0:
            out_keys, out_steps = np.empty(n, np.int64), np.empty(n)
    return out_keys, out_steps


@kernel(makes_arrays=True)
def task_values(tasks: Ints, problem: GainProblem, weights: Floats, values: Floats) -> None:
    """Write the value of tasks[0]:tasks[1] at one point."""
    fused, at, starts, order = np.empty(0), -1, problem.starts, problem.order
    for task in range(tasks[0], tasks[1]):
        q = problem.query[task]
        begin, n = starts[q], starts[q + 1] - starts[q]
        if q != at:
            at, fused = q, np.empty(n)
            fuse(problem.columns, begin, weights, fused)
        rows = problem.relevant_rows[problem.relevant_starts[task] : problem.relevant_starts[task + 1]]
        level = np.empty(len(rows), np.int64)
        for i in range(len(rows)):
            own, above, tied = fused[rows[i] - begin], 0, 0
            for d in range(n):
                above += fused[d] > own
                tied += fused[d] == own
            if tied > 1:
                for d in range(n):
                    above += (fused[d] == own) & (order[begin + d] < order[rows[i]])
            place = i
            while place > 0 and level[place - 1] > above:
                level[place] = level[place - 1]
                place -= 1
            level[place] = above
        for i in range(len(rows)):
            level[i] -= i  # relevant rows above do not count
        values[task] = task_value(problem.gains, task, level, 0, len(rows))
