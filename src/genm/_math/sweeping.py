"""The compiled part of the exact line search: find the swaps of each task, sort them, walk over them.

Legend: u, v fused scores at the ends of the line; a relevant row j and another row d swap where u_j - u_d and
v_j - v_d differ in sign, at t = du / (du - dv). An event packs t (fixed point), j and the direction into one
integer, so that sorting moves single words.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from genm._math.compiled import kernel
from genm._math.gains import Floats, Ints

KEY_BITS = 52
"""Swap points are fixed-point numbers in units of 2^-52 of the line."""
BIN_BITS = 12
"""The line is cut into 2^12 bins to find where its maximum can be."""
BLOCK = 128
"""Rows that are passed over together if none of them can swap with a relevant row."""


def _lowest_bit_code(_context: Any, _word: Any) -> Any:
    """Return the position of the lowest set bit of a word that is not 0."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))  # noqa: FBT003

    return types.uint64(types.uint64), generate


_lowest_bit: Any = intrinsic(_lowest_bit_code)


@kernel
def fuse(columns: Floats, first: int, weights: Floats, out: Floats) -> None:
    """Write the fused scores of rows first, first + 1, ... into `out`.

    Multiplications and additions happen one ranker after the other, for all rows alike, so that equal rows get
    equal fused scores to the last bit.
    """
    for low in range(0, len(out), 1024):
        own = out[low : low + 1024]
        own[:] = 0.0
        for k in range(columns.shape[0]):
            theirs, w = columns[k, first + low : first + low + len(own)], weights[k]
            for d in range(len(own)):
                own[d] += theirs[d] * w


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "reassoc"})
def _extremes(values: Floats, lowest: Floats, highest: Floats) -> None:
    """Write the smallest and the largest value of each block; that none is nan lets vectors find them."""
    for block in range(len(lowest)):
        own = values[block * BLOCK : (block + 1) * BLOCK]
        low, high = own[0], own[0]
        for d in range(len(own)):
            low, high = min(low, own[d]), max(high, own[d])
        lowest[block], highest[block] = low, high


@kernel
def _flag(u: Floats, v: Floats, uj: float, vj: float, bit: np.uint64, bits: Any) -> int:
    """Set `bit` where a row is not strictly on one side of j at both ends; return how many start above j."""
    above = 0
    for d in range(len(u)):
        over = (u[d] > uj) & (v[d] > vj)
        under = (u[d] < uj) & (v[d] < vj)
        above += u[d] > uj
        bits[d] |= np.uint64(0) if over | under else bit
    return above


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
def sort_by_digits(keys: Ints, n: int, bits: int, out: Ints) -> None:
    """Sort keys[:n], all in [0, 2^bits), into `out`: three counting passes over the top 24 bits, then repairs.

    Keys that agree in those bits are few unless the data are odd; then the repairs give up and a heap sort
    does the work. `keys` is used up.
    """
    if n <= 64 or bits < 24:
        out[:n] = keys[:n]
    else:
        ends = np.zeros((3, 257), np.int32)
        for e in range(n):
            key = keys[e] >> (bits - 24)
            ends[0, (key & 255) + 1] += 1
            ends[1, ((key >> 8) & 255) + 1] += 1
            ends[2, (key >> 16) + 1] += 1
        for digit in range(256):
            ends[0, digit + 1] += ends[0, digit]
            ends[1, digit + 1] += ends[1, digit]
            ends[2, digit + 1] += ends[2, digit]
        for turn in range(3):
            for e in range(n):
                digit = (keys[e] >> (bits - 24 + 8 * turn)) & 255
                out[ends[turn, digit]] = keys[e]
                ends[turn, digit] += 1
            keys, out = out, keys
        keys, out = out, keys
    patience = 8 * n + 4096
    for e in range(1, n):
        key, hole = out[e], e
        while hole > 0 and out[hole - 1] > key:
            out[hole] = out[hole - 1]
            hole -= 1
        out[hole] = key
        patience -= e - hole
        if patience < 0:
            _heap_sort(out, n)
            return


@kernel
def _grown(array: Any, size: int) -> Any:
    """Return a longer copy of `array`, so that at least `size` entries fit."""
    longer = np.empty(max(size, len(array) * 5 // 4), array.dtype)
    longer[: len(array)] = array
    return longer


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

    Per bin of t, bins[:, 0] is the change of the value and bins[:, 1] at most how far it goes above its start.
    `start_value` holds each task's value at the left end.
    """
    n_kept = 0
    events, spare, pairs = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64)
    table = np.zeros(len(discount) + 1)
    hit = np.empty(BLOCK, np.int64)
    bits = np.empty(BLOCK, np.uint64)
    u, v, at = np.empty(0), np.empty(0), -1
    u_range, v_range = np.empty((2, 0)), np.empty((2, 0))
    for task in range(tasks[0], tasks[1]):
        begin, n = starts[query[task]], starts[query[task] + 1] - starts[query[task]]
        if query[task] != at:
            at = query[task]
            if len(u) < n:
                u, v = np.empty(n), np.empty(n)
                u_range, v_range = np.empty((2, -(-n // BLOCK))), np.empty((2, -(-n // BLOCK)))
            fuse(columns, begin, w_low, u[:n])
            fuse(columns, begin, w_high, v[:n])
            _extremes(u[:n], u_range[0, : -(-n // BLOCK)], u_range[1])
            _extremes(v[:n], v_range[0, : -(-n // BLOCK)], v_range[1])
        rows = relevant_rows[relevant_starts[task] : relevant_starts[task + 1]] - begin
        R = len(rows)
        mine = np.zeros(n, np.bool_)
        mine[rows] = True
        count = np.zeros(R, np.int64)
        code_bits = 1
        while (1 << code_bits) < 2 * R:
            code_bits += 1
        t_bits = min(KEY_BITS, 62 - code_bits)
        scale, top, code_mask = 2.0**t_bits, 2.0**t_bits - 1.0, (1 << (code_bits - 1)) - 1
        n_events = 0
        for group in range(0, R, 64):
            size = min(64, R - group)
            for low in range(0, n, BLOCK):
                high = min(low + BLOCK, n)
                block, touched = low // BLOCK, False
                for g in range(size):
                    j = rows[group + g]
                    if (u_range[1, block] < u[j]) & (v_range[1, block] < v[j]):
                        continue
                    if (u_range[0, block] > u[j]) & (v_range[0, block] > v[j]):
                        count[group + g] += high - low
                        continue
                    if not touched:
                        bits[:] = 0
                        touched = True
                    count[group + g] += _flag(
                        u[low:high], v[low:high], u[j], v[j], np.uint64(1) << np.uint64(g), bits[: high - low]
                    )
                if not touched:
                    continue
                n_hit = 0
                for d in range(high - low):
                    hit[n_hit] = d
                    n_hit += bits[d] != 0
                n_pairs = 0
                for h in range(n_hit):
                    d, word = low + hit[h], bits[hit[h]]
                    if n_pairs + 64 > len(pairs):
                        pairs = _grown(pairs, n_pairs + 64)
                    while word != 0:
                        pairs[n_pairs] = (d << 6) | np.int64(_lowest_bit(word))
                        n_pairs += 1
                        word &= word - np.uint64(1)
                if n_events + n_pairs > len(events):
                    events = _grown(events, n_events + n_pairs)
                    spare = np.empty(len(events), np.int64)
                for e in range(n_pairs):
                    d, g = pairs[e] >> 6, group + (pairs[e] & 63)
                    j = rows[g]
                    du, dv = u[j] - u[d], v[j] - v[d]
                    if (du == 0) | (dv == 0):  # no swap inside the line; decided by the other end, or by row
                        count[g] += (
                            (du == 0) & ((dv < 0) | ((dv == 0) & (order[begin + d] < order[begin + j]))) & ~mine[d]
                        )
                        continue
                    t = np.int64(min(du / (du - dv) * scale, top))
                    events[n_events] = (t << code_bits) | (g << 1) | (du < 0)
                    n_events += ~mine[d]
        for g in range(R):  # the vector pass saw relevant rows too; they do not count
            for h in range(R):
                count[g] -= u[rows[h]] > u[rows[g]]
        sort_by_digits(events, n_events, t_bits + code_bits, spare)
        slot, level, place = np.empty(R + 2, np.int64), np.full(R + 2, -1), np.empty(R, np.int64)
        for g in range(R):  # places 1 to R by count; -1 on both sides stops the search for equals
            p = g + 1
            while level[p - 1] > count[g]:
                level[p], slot[p] = level[p - 1], slot[p - 1]
                p -= 1
            level[p], slot[p] = count[g], g
        depth = min(cutoff[task], n)
        table[: depth + 1] = discount[: depth + 1]
        table[depth + 1 :] = 0.0
        share, value = weight[task], 0.0
        for p in range(1, R + 1):
            place[slot[p]] = p
            value += position[p] * table[p + level[p]]
        start_value[task] = share * value
        if n_kept + n_events > len(kept):
            done = task - tasks[0]
            likely = n_kept + (n_events + n_kept // max(done, 1)) * (tasks[1] - task) * 9 // 8
            kept, steps = _grown(kept, likely), _grown(steps, likely)
        current, inside, peak = 0, 0.0, 0.0
        for e in range(n_events):
            event = spare[e]
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
            if step == 0.0:
                continue
            n_kept += 1
            b = key >> (KEY_BITS - BIN_BITS)
            if b != current:
                bins[current, 0] += inside
                bins[current, 1] += peak
                current, inside, peak = b, 0.0, 0.0
            inside += step
            peak = max(peak, inside)
        bins[current, 0] += inside
        bins[current, 1] += peak
        ends[task] = n_kept
    return kept, steps, n_kept
