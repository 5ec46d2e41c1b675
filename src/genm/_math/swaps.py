"""Find the swaps of one task along a line of weights (compiled part of the exact line search).

Legend: u, v fused scores at the ends of the line; a relevant row j and another row d swap where u_j - u_d and
v_j - v_d differ in sign, at t = du / (du - dv). An event packs t (fixed point), j and the direction into one
integer, so that sorting moves single words.

Most pairs do not swap, and single precision is enough to see it: rounding keeps order, so a score that is larger
after rounding was larger before. Only pairs that this does not separate are looked at in full.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.exact.rank_gains import BLOCK, Floats, Ints, Problem
from genm._math.growing import longer_ints
from genm._math.parallel import kept, kernel

Singles = NDArray[np.float32]

KEY_BITS = 52
"""Swap points are fixed-point numbers in units of 2^-52 of the line."""
MAGIC = 2.0**52
"""Added to a smaller number it leaves the nearest whole one in the last bits, which is quick with vectors."""
PART_BITS = 5
"""The line is cut into 2^5 parts, and it is counted how each relevant row moves in each of them."""

_vectors = {"nnan", "nsz", "reassoc"}
"""Sums of a few ones come out the same in any order."""


@kernel
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


@kernel
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


@kernel
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


@kernel
def _lowest_relevant(problem: Problem, task: int, end: int, weights: Floats) -> float:
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


@kernel
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
    problem: Problem,
    task: int,
    end: int,
    w_low: Floats,
    w_high: Floats,
    u: Floats,
    v: Floats,
    rounded: Singles,
    ranges: NDArray[np.float32],
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


@kernel
def _add_events(
    rows: NDArray[np.int32],
    u: Floats,
    v: Floats,
    order: Ints,
    j: int,
    g: int,
    bits: Ints,
    count: Ints,
    moved: NDArray[np.int32],
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
    own, part = moved[g], bits[0] - PART_BITS + shift
    for e in range(n):
        own[((events[e] >> part) << 1) | (events[e] & 1)] += 1
    return n


@kernel
def find_swaps(
    u: Floats,
    v: Floats,
    rounded: Singles,
    ranges: NDArray[np.float32],
    order: Ints,
    rows: Ints,
    bits: Ints,
    count: Ints,
    moved: NDArray[np.int32],
    events: Ints,
    n_events: int,
) -> tuple[Ints, int]:
    """Append the swaps of all relevant rows, packed, to a list as long as needed; return it and its length.

    `rounded` holds u and v in single precision, `ranges` their extremes per block. An event has bits[0] bits of t,
    then bits[1] for the relevant row and the direction. Writes how many other rows are above each at the start, and
    to moved[g, 2 * part] and moved[g, 2 * part + 1] how often the g-th falls and rises in a part of the line.
    """
    n, R = len(u), len(rows)
    unclear, listed, work = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32), np.empty((2, BLOCK))
    inside = np.empty(R, np.int64)
    for g in range(R):
        count[g] = 0
        for part in range(2 << PART_BITS):
            moved[g, part] = 0
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
