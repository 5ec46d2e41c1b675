"""Bounds of a ranking measure over a simplex of weights, and the search that splits it (compiled part).

A cell is a simplex with K corners. For a pair of a relevant row j and another row d, let x be j's fused score minus
d's at the corners, divided by the largest difference of any one ranker. If no x is above 0, d is above j all over
the cell (up to ties, which generic weights do not have): the pair is lost. If none is below 0 it is won. All others
are undecided and counted as won, so with c the number of lost pairs of each relevant row, sorted,

    sum over tasks of  weight * sum over i of  position[i] * discount[i + c_i]

is an upper bound of the measure in the cell. Lost pairs are claimed only where rounding cannot have made them
lost: x must be below -ROUNDING, or be exactly 0, at every corner. A pair counts as won as soon as x is above
-SLIVER everywhere; that can only raise the bound.

Legend: x (K, pairs) differences at the corners, owner the relevant row of a pair, lost the count per relevant row,
level the same counts sorted within each task, bound the value above.
"""

import numpy as np

from genm._math.compiled import kernel
from genm._math.gains import Floats, Ints

ROUNDING = 1e-13
"""More than all rounding on the way to a corner's x: about sixty steps of a few units in the last place."""
SLIVER = 1e-9
CUT = 1e-10
"""A cut through a pair's swap points is made this far on its losing side, so that both halves know the pair."""
DEEPEST = 300
BLOCK = 1024
FEW_PAIRS = 30
"""With so few undecided pairs a cell is cut where the most influential one swaps, not in half."""
LEAF = -1
"""Stands for the edge in the record of a cell that was not split."""


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
) -> tuple[Floats, Ints]:
    """Return x and owner of the pairs of tasks[0]:tasks[1] that the whole simplex leaves undecided.

    The corners are the single rankers, so every sign is exact. Adds the lost pairs to `lost`.
    """
    K = columns.shape[0]
    x, owner, n, difference = np.empty((1024, K)), np.empty(1024, np.int64), 0, np.empty(K)
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
                    difference[k] = columns[k, j] - columns[k, d]
                    lowest, highest = min(lowest, difference[k]), max(highest, difference[k])
                if highest == 0.0:
                    lost[g] += (lowest < 0.0) | (order[d] < order[j])  # equal rows are ordered by row
                elif lowest < 0.0:
                    if n == len(owner):
                        longer = np.empty((2 * n, K))
                        longer[:n] = x
                        more = np.empty(2 * n, np.int64)
                        more[:n] = owner
                        x, owner = longer, more
                    owner[n] = g
                    x[n] = difference / max(-lowest, highest)
                    n += 1
    return np.ascontiguousarray(x[:n].T), owner[:n].copy()


@kernel
def sort_levels(
    relevant_starts: Ints, lost: Ints, weight: Floats, cutoff: Ints, position: Floats, discount: Floats, level: Ints
) -> float:
    """Write the sorted counts of each task and return the bound that they give."""
    bound = 0.0
    for task in range(len(weight)):
        begin, end = relevant_starts[task], relevant_starts[task + 1]
        level[begin:end] = np.sort(lost[begin:end])
        total = 0.0
        for i in range(end - begin):
            rank = i + 1 + level[begin + i]
            if rank <= cutoff[task]:
                total += position[i + 1] * discount[rank]
        bound += weight[task] * total
    return bound


@kernel
def _last_of(level: Ints, begin: int, end: int, count: int) -> int:
    """Return the last place in level[begin:end] that holds `count`."""
    while begin < end:
        middle = (begin + end) // 2
        if level[middle] <= count:
            begin = middle + 1
        else:
            end = middle
    return begin - 1


@kernel
def _fall(rank: int, cutoff: int, discount: Floats) -> float:
    """Return what a row loses that moves from `rank` to the next."""
    if rank > cutoff:
        return 0.0
    return float(discount[rank]) - (float(discount[rank + 1]) if rank < cutoff else 0.0)


@kernel
def lose(
    pairs: Ints,
    owner: Ints,
    task_of: Ints,
    relevant_starts: Ints,
    weight: Floats,
    cutoff: Ints,
    position: Floats,
    discount: Floats,
    lost: Ints,
    level: Ints,
) -> float:
    """Count more pairs as lost; return by how much the bound falls."""
    fallen = 0.0
    for e in range(len(pairs)):
        g = owner[pairs[e]]
        task = task_of[g]
        begin = relevant_starts[task]
        at = _last_of(level, begin, relevant_starts[task + 1], lost[g])
        place = at - begin + 1
        fallen += weight[task] * position[place] * _fall(place + lost[g], cutoff[task], discount)
        level[at] += 1
        lost[g] += 1
    return fallen


@kernel
def between(start: Floats, end: Floats, share: float, out: Floats) -> None:
    """Write x at a new corner, a share of the way along an edge."""
    for p in range(len(out)):
        x = start[p] + share * (end[p] - start[p])
        # A sum that happens to cancel is not a true zero, so it must not pass for one.
        out[p] = ROUNDING if (x == 0.0) & (start[p] != 0.0) else x


@kernel
def sort_out(x: Floats, fresh: Floats, replaced: int, open_pairs: Ints, lost_pairs: Ints) -> tuple[int, int]:
    """List the pairs that are undecided and those that are lost once corner `replaced` has the values `fresh`."""
    n_open, n_lost = 0, 0
    low, high = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, len(fresh), BLOCK):
        size = min(BLOCK, len(fresh) - begin)
        low[:size] = fresh[begin : begin + size]
        high[:] = -1.0
        for i in range(len(x)):
            own = fresh[begin : begin + size] if i == replaced else x[i, begin : begin + size]
            for p in range(size):
                low[p] = own[p] if own[p] < low[p] else low[p]
                signed = -1.0 if own[p] == 0.0 else own[p]  # an exact tie at a corner takes nobody's side
                high[p] = signed if signed > high[p] else high[p]
        for p in range(size):
            open_pairs[n_open], lost_pairs[n_lost] = begin + p, begin + p
            n_open += (high[p] > -ROUNDING) & (low[p] < -SLIVER)
            n_lost += high[p] <= -ROUNDING
    return n_open, n_lost


@kernel
def _lost_at_centre(x: Floats, lost_pairs: Ints) -> int:
    """List the pairs that are lost at the centre of the cell; a tie there, up to rounding, counts as lost.

    So what is left is no more than generic weights next to the centre reach.
    """
    n = 0
    for p in range(x.shape[1]):
        total = 0.0
        for i in range(len(x)):
            total += x[i, p]
        lost_pairs[n] = p
        n += total < 2.0 * ROUNDING * len(x)
    return n


@kernel
def _longest_edge(corners: Floats) -> tuple[int, int]:
    """Return the two corners that are farthest apart."""
    a, b, longest = 0, 1, -1.0
    for i in range(1, len(corners)):
        for j in range(i):
            length = ((corners[i] - corners[j]) ** 2).sum()
            if length > longest:
                a, b, longest = j, i, length
    return a, b


@kernel
def _decisive_cut(
    x: Floats,
    owner: Ints,
    task_of: Ints,
    relevant_starts: Ints,
    weight: Floats,
    cutoff: Ints,
    position: Floats,
    discount: Floats,
    lost: Ints,
    level: Ints,
) -> tuple[int, int, float]:
    """Return the edge, and the share of it, where the pair swaps that moves the bound most."""
    chosen, most = 0, -1.0
    for p in range(x.shape[1]):
        g = owner[p]
        task = task_of[g]
        place = (
            _last_of(level, relevant_starts[task], relevant_starts[task + 1], lost[g]) - relevant_starts[task] + 1
        )
        influence = weight[task] * position[place] * _fall(place + lost[g], cutoff[task], discount)
        if influence > most:
            chosen, most = p, influence
    a, b = np.argmin(x[:, chosen]), np.argmax(x[:, chosen])
    share = (-CUT - x[a, chosen]) / (x[b, chosen] - x[a, chosen])
    return int(a), int(b), float(min(max(share, 1e-6), 1.0 - 1e-6))
