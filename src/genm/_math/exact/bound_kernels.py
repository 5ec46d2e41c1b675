"""Kernels of branch and bound: bounds of a ranking measure over a simplex of weights, and the search in one cell.

A cell is a simplex with K corners. For a pair of a relevant row j and another row d, let x be j's fused score
minus d's at the corners, divided by the largest difference of any one ranker. If no x is above 0, d is above j
all over the cell (up to ties, which generic weights do not have): the pair is lost. If none is below 0 it is
won. All others are undecided and counted as won, so with c the number of lost pairs of each relevant row,
sorted,

    sum over tasks of  weight * sum over i of  position[i] * discount[i + c_i]

(or what takes its place in `genm._math.exact.rank_gains`: no measure rises with a count) is an upper bound in
the cell. Lost pairs are claimed only where rounding cannot have made them lost: x must be below -ROUNDING, or be
exactly 0, at every corner. A pair is no longer looked at once x is above -SLIVER everywhere; it counts as won,
which can only raise the bound.

Legend: x (K, pairs) differences at the corners, owner the relevant row of a pair, lost the count per relevant
row, level the same counts sorted within each task, bound the value above. Loops are written out where an
assignment of slices would do: compiling those takes seconds.

The search is depth first. Its record is the tree in preorder: for a split the edge (a * K + b) and the share of
it where the new corner lies, then the half that keeps corner a, then the half that keeps corner b; for a leaf
LEAF and its bound. From the record alone every corner can be computed again, exactly, and the halves of a split
cover what was split. Pairs within SLIVER of a tie all over a cell are passed over, so a cell may have nothing
left to split and a bound above all that generic weights reach in it: rows that swap in opposite directions at
the same weights tie there and nowhere win together. Such narrow cells are handed back with the path that leads
to them.
"""

from typing import Any, NamedTuple

import numpy as np

from genm._math.exact.rank_gains import GainProblem, Gains, task_value
from genm._math.parallel import kernel, part
from genm._math.sorting import longer_floats, longer_ints
from genm._typing import Bytes, Codes, Floats, Ints

Owners = Codes

ROUNDING = 1e-13
"""More than the rounding error of a corner's x: at most three hundred units in the last place."""
SLIVER = 1e-9
BLOCK = 512

CUT = 1e-10
"""A cut through a pair's swap points is made this far on its losing side, so that both halves know the pair."""
DEEPEST = 300
FEW_PAIRS = 30
"""With so few undecided pairs a cell is cut where the most influential one swaps, not in half."""
WORTH_A_LOOK = 48
"""Cells with at most so many undecided pairs are measured at their centre, and of the others every sixteenth."""
LEAF = -1
"""Stands for the edge in the record of a cell that was not split."""


class GainTables(NamedTuple):
    """What a measure is made of, without the rows; see `genm._math.exact.rank_gains.GainProblem`."""

    task_of: Ints
    """The task of each relevant row."""
    relevant_starts: Ints
    gains: Gains


def gain_tables(problem: GainProblem) -> GainTables:
    """Return the tables of a problem's measure."""
    counts = np.diff(problem.relevant_starts)
    task_of = np.repeat(np.arange(len(counts)), counts)
    return GainTables(task_of, problem.relevant_starts, problem.gains)


@kernel(makes_arrays=True)
def undecided_pairs(
    tasks: Ints,
    starts: Ints,
    columns: Floats,
    order: Ints,
    query: Ints,
    relevant_starts: Ints,
    relevant_rows: Ints,
    lost: Ints,
) -> tuple[Floats, Owners, Owners]:
    """Return x, owner and the other row of the pairs of tasks[0]:tasks[1] that the whole simplex leaves undecided.

    The corners are the single rankers, so every sign is exact. Adds the lost pairs to `lost`.
    """
    K = columns.shape[0]
    x, owner, other = np.empty((K, 0)), np.empty(0, np.int32), np.empty(0, np.int32)
    for turn in range(2):  # count, then fill
        n = 0
        for task in range(tasks[0], tasks[1]):
            begin, end = starts[query[task]], starts[query[task] + 1]
            mine = np.zeros(end - begin, np.bool_)
            for g in range(relevant_starts[task], relevant_starts[task + 1]):
                mine[relevant_rows[g] - begin] = True
            for g in range(relevant_starts[task], relevant_starts[task + 1]):
                j = relevant_rows[g]
                for d in range(begin, end):
                    if mine[d - begin]:
                        continue
                    lowest, highest = 0.0, 0.0
                    for k in range(K):
                        difference = columns[k, j] - columns[k, d]
                        lowest, highest = min(lowest, difference), max(highest, difference)
                    if highest == 0.0:
                        # equal rows are ordered by row
                        lost[g] += (turn == 1) & ((lowest < 0.0) | (order[d] < order[j]))
                    elif lowest < 0.0:
                        if turn == 1:
                            owner[n], other[n] = g, d
                            for k in range(K):
                                x[k, n] = (columns[k, j] - columns[k, d]) / max(-lowest, highest)
                        n += 1
        if turn == 0:
            x, owner, other = np.empty((K, n)), np.empty(n, np.int32), np.empty(n, np.int32)
    return x, owner, other


@kernel
def sort_levels(tables: GainTables, lost: Ints, level: Ints) -> float:
    """Write the sorted counts of each task and return the bound that they give."""
    bound = 0.0
    for task in range(len(tables.relevant_starts) - 1):
        begin, end = tables.relevant_starts[task], tables.relevant_starts[task + 1]
        for g in range(begin, end):
            count, hole = lost[g], g
            while hole > begin and level[hole - 1] > count:
                level[hole] = level[hole - 1]
                hole -= 1
            level[hole] = count
        bound += task_value(tables.gains, task, level, begin, end)
    return bound


@part(makes_arrays=True)
def generic_value(x: Floats, owner: Owners, lost: Ints, tables: GainTables, share: Floats) -> float:
    """Return what generic weights next to a point of a cell reach at least: a tie there counts as lost.

    The point has the given share of each corner; `x` holds every pair that the cell leaves undecided.
    """
    count, level = lost.copy(), lost.copy()
    total = np.empty(BLOCK)
    K, n = x.shape
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        for p in range(size):
            total[p] = 0.0
        for i in range(K):
            theirs, part = x[i, begin : begin + size], share[i]
            for p in range(size):
                total[p] += part * theirs[p]
        for p in range(size):
            count[owner[begin + p]] += total[p] < 2.0 * ROUNDING
    return sort_levels(tables, count, level)


@kernel
def last_of(level: Ints, begin: int, end: int, count: int) -> int:
    """Return the last place in level[begin:end] that holds `count`."""
    while begin < end:
        middle = (begin + end) // 2
        if level[middle] <= count:
            begin = middle + 1
        else:
            end = middle
    return begin - 1


@kernel
def influence(tables: GainTables, task: int, level: Ints, at: int) -> float:
    """Return what is lost when one more row comes above the relevant row that level[at] counts for.

    Where only the largest gain counts, this is a guess at how much the row matters; see `fall_of_largest`.
    """
    gains, place = tables.gains, at - tables.relevant_starts[task] + 1
    above, cutoff = gains.by_rank[task] * place + level[at], gains.cutoff[task]
    if above > cutoff:
        return 0.0
    here = gains.base[task] + above
    fall = gains.discount[here] - (gains.discount[here + 1] if above < cutoff else 0.0)
    return float(gains.weight[task] * gains.position[place] * fall)


@part()
def fall_of_largest(tables: GainTables, task: int, level: Ints, at: int) -> float:
    """Return what is lost by the same where only the largest gain counts."""
    begin, end = tables.relevant_starts[task], tables.relevant_starts[task + 1]
    before = task_value(tables.gains, task, level, begin, end)
    level[at] += 1
    after = task_value(tables.gains, task, level, begin, end)
    level[at] -= 1
    return before - after


@part()
def lose(
    pairs: Owners,
    owner: Owners,
    tables: GainTables,
    lost: Ints,
    level: Ints,
    log: Codes,
    n_log: int,
    bound: float,
    floor: float,
) -> tuple[float, int]:
    """Count more pairs as lost; return the bound that is left and the length of the log that `regain` reads.

    Stops early once the bound falls to `floor`.
    """
    largest = len(tables.gains.least) > 0 and tables.gains.least[0] > 0  # in all tasks of a problem, or in none
    for e in range(len(pairs)):
        g = owner[pairs[e]]
        task = tables.task_of[g]
        at = last_of(level, tables.relevant_starts[task], tables.relevant_starts[task + 1], lost[g])
        if largest:
            bound -= fall_of_largest(tables, task, level, at)
        else:
            bound -= influence(tables, task, level, at)
        level[at] += 1
        lost[g] += 1
        log[2 * n_log], log[2 * n_log + 1] = g, at
        n_log += 1
        if bound <= floor:
            break
    return bound, n_log


@part()
def regain(lost: Ints, level: Ints, log: Codes, begin: int, end: int) -> None:
    """Take back what entries begin:end of the log have counted as lost."""
    for e in range(end - 1, begin - 1, -1):
        lost[log[2 * e]] -= 1
        level[log[2 * e + 1]] -= 1


@kernel(makes_arrays=True)
def restrict(x: Floats, owner: Owners, corners: Floats, lost: Ints) -> tuple[Floats, Owners]:
    """Return x and owner of the pairs that a cell inside the whole simplex leaves undecided; adds to `lost`.

    `x` belongs to the whole simplex, whose corners are the single rankers.
    """
    K, n = x.shape
    inner, listed = np.empty(BLOCK), np.empty(n, np.int32)
    low, high, n_open = np.empty(BLOCK), np.empty(BLOCK), 0
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        for p in range(size):
            low[p], high[p] = 2.0, -2.0
        for i in range(K):
            _mix(x, corners, i, begin, inner[:size])
            _widen(inner[:size], low, high)
        for p in range(size):
            listed[n_open] = begin + p
            n_open += (high[p] > -ROUNDING) & (low[p] < -SLIVER)
            lost[owner[begin + p]] += high[p] <= -ROUNDING
    kept, owners = np.empty((K, n_open)), np.empty(n_open, np.int32)
    for e in range(n_open):
        owners[e] = owner[listed[e]]
        for i in range(K):
            kept[i, e] = _mixed(x, corners, i, listed[e])
    return kept, owners


@part()
def _mixed(x: Floats, corners: Floats, i: int, p: int) -> float:
    """Return x of a pair at a corner; a sum that happens to cancel is no true zero and must not pass for one."""
    total, touched = 0.0, False
    for k in range(len(x)):
        total += corners[i, k] * x[k, p]
        touched |= corners[i, k] * x[k, p] != 0.0
    return ROUNDING if (total == 0.0) & touched else total


@part()
def _mix(x: Floats, corners: Floats, i: int, begin: int, out: Floats) -> None:
    """Write x of many pairs at a corner, with the same roundings."""
    for p in range(len(out)):
        out[p] = 0.0
    for k in range(len(x)):
        theirs, share = x[k, begin : begin + len(out)], corners[i, k]
        for p in range(len(out)):
            out[p] += share * theirs[p]
    for p in range(len(out)):
        if out[p] == 0.0:
            out[p] = _mixed(x, corners, i, begin + p)


@part()
def _widen(x: Floats, low: Floats, high: Floats) -> None:
    """Take one more corner into the lowest and highest x; an exact tie at a corner decides nothing."""
    for p in range(len(x)):
        low[p] = x[p] if x[p] < low[p] else low[p]
        signed = -2.0 if x[p] == 0.0 else x[p]
        high[p] = signed if signed > high[p] else high[p]


@part()
def _list_pairs(
    low: Floats, high: Floats, a: Floats, c: Floats, begin: int, out: Owners, n_open: int, n_lost: int
) -> tuple[int, int]:
    """Take two more corners in; list undecided pairs from the front of `out`, lost ones from its back."""
    last = len(out) - 1
    for p in range(len(a)):
        lowest = min(low[p], a[p], c[p])
        signed = max(-2.0 if a[p] == 0.0 else a[p], -2.0 if c[p] == 0.0 else c[p])
        highest = max(high[p], signed)
        out[n_open] = begin + p
        out[last - n_lost] = begin + p
        n_open += (highest > -ROUNDING) & (lowest < -SLIVER)
        n_lost += highest <= -ROUNDING
    return n_open, n_lost


@part(makes_arrays=True)
def _sort_out(x: Floats, m: int, a: int, b: int, share: float, first: Owners, second: Owners, counts: Ints) -> None:
    """Compute x at a new corner, the last row, and list the pairs of both halves as `_list_pairs` does.

    The first half keeps corner a, the second corner b. Writes how many pairs are undecided and lost in each.
    """
    K = len(x) - 1
    low, high = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, m, BLOCK):
        end = min(begin + BLOCK, m)
        for p in range(end - begin):
            low[p], high[p] = 2.0, -2.0
        for i in range(K):
            if (i != a) & (i != b):
                _widen(x[i, begin:end], low, high)
        start, goal, new = x[a, begin:end], x[b, begin:end], x[K, begin:end]
        for p in range(end - begin):
            value = start[p] + share * (goal[p] - start[p])
            # A sum that happens to cancel is not a true zero, so it must not pass for one.
            new[p] = ROUNDING if (value == 0.0) & (start[p] != 0.0) else value
        counts[0], counts[1] = _list_pairs(low, high, start, new, begin, first, counts[0], counts[1])
        counts[2], counts[3] = _list_pairs(low, high, goal, new, begin, second, counts[2], counts[3])


@part()
def _lost_at_centre(x: Floats, m: int, out: Owners) -> int:
    """List the pairs that are lost at the centre of the cell; a tie there, up to rounding, counts as lost."""
    K, n = len(x) - 1, 0
    for p in range(m):
        total = 0.0
        for i in range(K):
            total += x[i, p]
        out[n] = p
        n += total < 2.0 * ROUNDING * K
    return n


@part()
def _longest_edge(corners: Floats) -> tuple[int, int]:
    """Return the two corners that are farthest apart."""
    a, b, longest = 0, 1, -1.0
    for i in range(1, len(corners)):
        for j in range(i):
            length = 0.0
            for k in range(len(corners)):
                length += (corners[i, k] - corners[j, k]) ** 2
            if length > longest:
                a, b, longest = j, i, length
    return a, b


@part()
def _decisive_cut(x: Floats, owner: Owners, tables: GainTables, lost: Ints, level: Ints) -> tuple[int, int, float]:
    """Return the edge, and the share of it, where the pair swaps that moves the bound most."""
    chosen, most = 0, -1.0
    for p in range(len(owner)):
        g = owner[p]
        task = tables.task_of[g]
        at = last_of(level, tables.relevant_starts[task], tables.relevant_starts[task + 1], lost[g])
        moved = influence(tables, task, level, at)
        if moved > most:
            chosen, most = p, moved
    a = b = 0
    for i in range(1, len(x) - 1):
        a = i if x[i, chosen] < x[a, chosen] else a
        b = i if x[i, chosen] > x[b, chosen] else b
    share = (-CUT - x[a, chosen]) / (x[b, chosen] - x[a, chosen])
    return a, b, min(max(share, 1e-6), 1.0 - 1e-6)


@part(makes_arrays=True)
def _block(values: Floats, n_rows: int, at: int, m: int) -> Floats:
    """Return the rows of a cell's pairs, which lie one after the other."""
    return values[n_rows * at : n_rows * (at + m)].reshape(n_rows, m)


@kernel(makes_arrays=True)
def explore(
    x: Floats,
    owner: Owners,
    lost_here: Ints,
    tables: GainTables,
    best: float,
    gap: float,
    stop: Bytes,
    record: bool,  # noqa: FBT001
) -> tuple[float, Floats, float, int, int, Ints, Floats, Ints, Floats, Ints]:
    """Split a cell until no part can hold a value more than `gap` above the best known one.

    Returns the best value found at a centre and that centre (its share of each corner); a leaf's largest bound;
    the number of cells and of pairs in those split; the record's edges and numbers; and of narrow cells, apart from
    the largest bound, their paths: for each step 2 * edge + half and the share, then the leaf's place in the record
    and its bound, and where each path ends. Once `stop` is set nothing is split any more.
    """
    K, n = x.shape
    corners, replaced = np.zeros((K, K)), np.zeros((DEEPEST, K))
    bound, share, edge = np.empty(DEEPEST), np.empty(DEEPEST), np.empty(DEEPEST, np.int64)
    begins, sizes, halves = np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64)
    logged, counts = np.zeros(DEEPEST, np.int64), np.zeros((DEEPEST, 4), np.int64)
    lost, level = lost_here.copy(), lost_here.copy()
    log, listed, first = np.empty(2 * n + 2, np.int32), np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    capacity = 2 * n + 64
    values, owners, second = (
        np.empty((K + 1) * capacity),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
    )
    centre, middle = np.zeros(K), np.zeros(K)
    zero: Any = np.int64(0)  # for a plain 0, what is called with it would be compiled once more
    edges, numbers, n_recorded = np.empty(64, np.int64), np.empty(64), zero
    steps, shares, n_steps = np.empty(64, np.int64), np.empty(64), zero
    ends, n_narrow = np.empty(64, np.int64), zero

    for i in range(K):
        corners[i, i] = 1.0
        for p in range(n):
            values[i * n + p] = x[i, p]
    for p in range(n):
        owners[p] = owner[p]
    bound[0], sizes[0] = sort_levels(tables, lost, level), n
    depth, n_cells, n_pairs, n_log, largest, arrived = 0, 0, 0, zero, 0.0, True
    while depth >= 0:
        m, at = sizes[depth], begins[depth]
        own, mine = _block(values, K + 1, at, m), owners[at : at + m]
        done = halves[depth] == 2
        if arrived:
            arrived = False
            n_cells += 1
            if bound[depth] > best + gap and (m <= WORTH_A_LOOK or n_cells % 16 == 0):
                n_lost = _lost_at_centre(own, m, listed)
                value, end = lose(listed[:n_lost], mine, tables, lost, level, log, n_log, bound[depth], best)
                regain(lost, level, log, n_log, end)
                if value > best:
                    for k in range(K):
                        middle[k] = 0.0
                        for i in range(K):
                            middle[k] += corners[i, k] / K
                    value = generic_value(x, owner, lost_here, tables, middle)
                    if value > best:
                        best = value
                        for k in range(K):
                            centre[k] = middle[k]
            done = bound[depth] <= best + gap or m == 0 or depth == DEEPEST - 1 or stop[0] != 0
            if done and bound[depth] > best + gap and stop[0] == 0:
                steps, shares = (
                    longer_ints(steps, n_steps + depth + 1),
                    longer_floats(shares, n_steps + depth + 1),
                )
                ends = longer_ints(ends, n_narrow + 1)
                for d in range(depth):
                    steps[n_steps + d], shares[n_steps + d] = 2 * edge[d] + halves[d] - 1, share[d]
                n_steps += depth
                steps[n_steps], shares[n_steps] = n_recorded, bound[depth]
                n_steps += 1
                ends[n_narrow] = n_steps
                n_narrow += 1
            elif done:
                largest = max(largest, bound[depth])
            else:
                n_pairs += m
                halves[depth], share[depth] = 0, 0.5
                a, b = _longest_edge(corners)
                if m <= FEW_PAIRS:
                    a, b, share[depth] = _decisive_cut(own, mine, tables, lost, level)
                edge[depth] = a * K + b
                for h in range(4):
                    counts[depth, h] = 0
                _sort_out(own, m, a, b, share[depth], first[:m], second[at : at + m], counts[depth])
            if record:
                edges, numbers = longer_ints(edges, n_recorded + 1), longer_floats(numbers, n_recorded + 1)
                edges[n_recorded] = LEAF if done else edge[depth]
                numbers[n_recorded] = bound[depth] if done else share[depth]
                n_recorded += 1
        if done:
            depth -= 1
            if depth >= 0:  # back to the whole that this was a half of
                regain(lost, level, log, logged[depth], n_log)
                n_log = logged[depth]
                a, b = edge[depth] // K, edge[depth] % K
                for k in range(K):
                    corners[b if halves[depth] == 1 else a, k] = replaced[depth, k]
            continue
        a, b = edge[depth] // K, edge[depth] % K
        half = halves[depth]
        halves[depth] += 1
        gone = b if half == 0 else a
        pairs = first[:m] if half == 0 else second[at : at + m]
        n_open, n_lost = counts[depth, 2 * half], counts[depth, 2 * half + 1]
        left, end = lose(pairs[m - n_lost :], mine, tables, lost, level, log, n_log, bound[depth], best + gap)
        if left <= best + gap:  # a leaf: its pairs are not needed
            regain(lost, level, log, n_log, end)
            n_cells += 1
            largest = max(largest, left)
            if record:
                edges, numbers = longer_ints(edges, n_recorded + 1), longer_floats(numbers, n_recorded + 1)
                edges[n_recorded], numbers[n_recorded] = LEAF, left
                n_recorded += 1
            continue
        logged[depth], n_log = n_log, end
        for k in range(K):
            start, goal = corners[a, k], corners[b, k]
            replaced[depth, k] = corners[gone, k]
            corners[gone, k] = start + share[depth] * (goal - start)
        depth += 1
        low = at + m
        begins[depth], sizes[depth], bound[depth], halves[depth], arrived = low, n_open, left, 0, True
        if low + n_open > len(owners):
            capacity = 2 * (low + n_open)
            values = longer_floats(values, (K + 1) * capacity)
            owners, second = longer_ints(owners, capacity), longer_ints(second, capacity)
            own, mine = _block(values, K + 1, at, m), owners[at : at + m]
        for i in range(K):
            source, target = own[K if i == gone else i], values[(K + 1) * low + i * n_open :]
            for e in range(n_open):
                target[e] = source[pairs[e]]
        for e in range(n_open):
            owners[low + e] = mine[pairs[e]]
    return (
        best,
        centre,
        largest,
        n_cells,
        n_pairs,
        edges[:n_recorded],
        numbers[:n_recorded],
        steps[:n_steps],
        shares[:n_steps],
        ends[:n_narrow],
    )
