"""Bounds of a ranking measure over a simplex of weights (compiled part of branch and bound).

A cell is a simplex with K corners. For a pair of a relevant row j and another row d, let x be j's fused score minus
d's at the corners, divided by the largest difference of any one ranker. If no x is above 0, d is above j all over
the cell (up to ties, which generic weights do not have): the pair is lost. If none is below 0 it is won. All others
are undecided and counted as won, so with c the number of lost pairs of each relevant row, sorted,

    sum over tasks of  weight * sum over i of  position[i] * discount[i + c_i]

(or what takes its place in `genm._math.exact.rank_gains`: no measure rises with a count) is an upper bound in the
cell. Lost pairs are claimed only where rounding cannot have made them lost: x must be below -ROUNDING, or be
exactly 0, at every corner. A pair is no longer looked at once x is above -SLIVER everywhere; it counts as won,
which can only raise the bound.

Legend: x (K, pairs) differences at the corners, owner the relevant row of a pair, lost the count per relevant row,
level the same counts sorted within each task, bound the value above. Loops are written out where an assignment
of slices would do: compiling those takes seconds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.exact.rank_gains import Floats, Gains, Ints, Problem, task_value
from genm._math.parallel import kernel

Owners = NDArray[np.int32]

ROUNDING = 1e-13
"""More than all rounding on the way to a corner's x: at most three hundred steps of a unit in the last place."""
SLIVER = 1e-9
BLOCK = 512


class Tables(NamedTuple):
    """What a measure is made of, without the rows; see `genm._math.exact.rank_gains.Problem`."""

    task_of: Ints
    """The task of each relevant row."""
    relevant_starts: Ints
    gains: Gains


def tables_of(problem: Problem) -> Tables:
    """Return the tables of a problem's measure."""
    counts = np.diff(problem.relevant_starts)
    task_of = np.repeat(np.arange(len(counts)), counts)
    return Tables(task_of, problem.relevant_starts, problem.gains)


@kernel
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
def sort_levels(tables: Tables, lost: Ints, level: Ints) -> float:
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


@kernel
def generic_value(x: Floats, owner: Owners, lost: Ints, tables: Tables, share: Floats) -> float:
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
def influence(tables: Tables, task: int, level: Ints, at: int) -> float:
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


@kernel
def fall_of_largest(tables: Tables, task: int, level: Ints, at: int) -> float:
    """Return what is lost by the same where only the largest gain counts."""
    begin, end = tables.relevant_starts[task], tables.relevant_starts[task + 1]
    before = task_value(tables.gains, task, level, begin, end)
    level[at] += 1
    after = task_value(tables.gains, task, level, begin, end)
    level[at] -= 1
    return before - after


@kernel
def lose(
    pairs: Owners,
    owner: Owners,
    tables: Tables,
    lost: Ints,
    level: Ints,
    log: NDArray[np.int32],
    n_log: int,
    bound: float,
    floor: float,
) -> tuple[float, int]:
    """Count more pairs as lost; return the bound that is left and the length of the log that `regain` reads.

    Whoever needs to know only that the bound is not above `floor` is told so as soon as it is.
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


@kernel
def regain(lost: Ints, level: Ints, log: NDArray[np.int32], begin: int, end: int) -> None:
    """Take back what entries begin:end of the log have counted as lost."""
    for e in range(end - 1, begin - 1, -1):
        lost[log[2 * e]] -= 1
        level[log[2 * e + 1]] -= 1
