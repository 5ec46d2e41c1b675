"""Depth-first search for the best weights in one cell, and its record (compiled part of branch and bound).

The record is the tree in preorder: for a split the edge (a * K + b) and the share of it where the new corner lies,
then the half that keeps corner a, then the half that keeps corner b; for a leaf LEAF and its bound. From the record
alone every corner can be computed again, exactly, and the halves of a split cover what was split.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.bounds import (
    BLOCK,
    DEEPEST,
    FEW_PAIRS,
    LEAF,
    _decisive_cut,
    _longest_edge,
    _lost_at_centre,
    between,
    lose,
    sort_levels,
    sort_out,
)
from genm._math.compiled import kernel
from genm._math.gains import Floats, Ints


@kernel
def restrict(x: Floats, owner: Ints, corners: Floats, lost: Ints) -> tuple[Floats, Ints, Ints]:
    """Return x and owner of the pairs that a cell inside the whole simplex leaves undecided, and those it loses.

    `x` belongs to the whole simplex, whose corners are the single rankers; adds to `lost`.
    """
    K, n = x.shape
    inner = np.empty((K, n))
    for i in range(K):
        inner[i] = 0.0
        for begin in range(0, n, BLOCK):
            own = inner[i, begin : begin + BLOCK]
            for k in range(K):
                theirs, share = x[k, begin : begin + BLOCK], corners[i, k]
                if share != 0.0:
                    for p in range(len(own)):
                        own[p] += share * theirs[p]
    open_pairs, lost_pairs = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    n_open, n_lost = sort_out(inner, inner[0], 0, open_pairs, lost_pairs)
    for e in range(n_lost):
        lost[owner[lost_pairs[e]]] += 1
    kept = np.empty((K, n_open))
    for i in range(K):
        for e in range(n_open):
            kept[i, e] = inner[i, open_pairs[e]]
    return kept, owner[open_pairs[:n_open]], lost


@kernel
def explore(
    x: Floats,
    owner: Ints,
    lost_here: Ints,
    task_of: Ints,
    relevant_starts: Ints,
    weight: Floats,
    cutoff: Ints,
    position: Floats,
    discount: Floats,
    corners_here: Floats,
    best: float,
    gap: float,
    stop: NDArray[np.uint8],
    record: bool,  # noqa: FBT001
) -> tuple[float, Floats, float, int, Ints, Floats]:
    """Split a cell until no part can hold a value more than `gap` above the best known one.

    Returns the best value found at a centre and that centre, the largest bound of a leaf, the number of cells,
    and the record's edges and numbers. Once `stop` is set nothing is split any more.
    """
    K, n_owners = x.shape[0], len(lost_here)
    corners = np.empty((DEEPEST, K, K))
    lost, level = np.empty((DEEPEST, n_owners), np.int64), np.empty((DEEPEST, n_owners), np.int64)
    bound, share, edge = np.empty(DEEPEST), np.empty(DEEPEST), np.empty(DEEPEST, np.int64)
    begins, sizes, halves = np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64)
    room = 2 * x.shape[1] + 64
    values, owners = np.empty(K * room), np.empty(room, np.int64)
    fresh = np.empty(x.shape[1])
    open_pairs, lost_pairs = np.empty(x.shape[1] + 1, np.int64), np.empty(x.shape[1] + 1, np.int64)
    trial_lost, trial_level, centre = np.empty(n_owners, np.int64), np.empty(n_owners, np.int64), np.zeros(K)
    edges, numbers, n_recorded = np.empty(64, np.int64), np.empty(64), 0

    corners[0], lost[0], sizes[0] = corners_here, lost_here, x.shape[1]
    bound[0] = sort_levels(relevant_starts, lost[0], weight, cutoff, position, discount, level[0])
    values[: x.size], owners[: x.shape[1]] = x.ravel(), owner
    depth, n_cells, largest, arrived = 0, 1, 0.0, True
    while depth >= 0:
        m, at = sizes[depth], begins[depth]
        own, mine = values[K * at : K * (at + m)].reshape(K, m), owners[at : at + m]
        if arrived:
            arrived = False
            if bound[depth] > best + gap and (m <= 256 or n_cells % 16 == 0):
                n_lost = _lost_at_centre(own, lost_pairs)
                trial_lost[:], trial_level[:] = lost[depth], level[depth]
                value = bound[depth] - lose(
                    lost_pairs[:n_lost],
                    mine,
                    task_of,
                    relevant_starts,
                    weight,
                    cutoff,
                    position,
                    discount,
                    trial_lost,
                    trial_level,
                )
                if value > best:
                    best = value
                    for k in range(K):
                        centre[k] = corners[depth, :, k].sum() / K
            leaf = bound[depth] <= best + gap or m == 0 or depth == DEEPEST - 1 or stop[0] != 0
            if record and n_recorded == len(edges):
                more_edges, more_numbers = np.empty(2 * n_recorded, np.int64), np.empty(2 * n_recorded)
                more_edges[:n_recorded], more_numbers[:n_recorded] = edges, numbers
                edges, numbers = more_edges, more_numbers
            if leaf:
                largest = max(largest, bound[depth])
                if record:
                    edges[n_recorded], numbers[n_recorded] = LEAF, bound[depth]
                    n_recorded += 1
                depth -= 1
                continue
            a, b = _longest_edge(corners[depth])
            share[depth], halves[depth] = 0.5, 0
            if m <= FEW_PAIRS:
                a, b, share[depth] = _decisive_cut(
                    own,
                    mine,
                    task_of,
                    relevant_starts,
                    weight,
                    cutoff,
                    position,
                    discount,
                    lost[depth],
                    level[depth],
                )
            edge[depth] = a * K + b
            if record:
                edges[n_recorded], numbers[n_recorded] = edge[depth], share[depth]
                n_recorded += 1
        if halves[depth] == 2:
            depth -= 1
            continue
        a, b = edge[depth] // K, edge[depth] % K
        replaced = b if halves[depth] == 0 else a
        halves[depth] += 1
        n_cells += 1
        between(own[a], own[b], share[depth], fresh[:m])
        n_open, n_lost = sort_out(own, fresh[:m], replaced, open_pairs, lost_pairs)
        depth += 1
        corners[depth], lost[depth], level[depth] = corners[depth - 1], lost[depth - 1], level[depth - 1]
        for k in range(K):
            start = corners[depth - 1, a, k]
            corners[depth, replaced, k] = start + share[depth - 1] * (corners[depth - 1, b, k] - start)
        bound[depth] = bound[depth - 1] - lose(
            lost_pairs[:n_lost],
            mine,
            task_of,
            relevant_starts,
            weight,
            cutoff,
            position,
            discount,
            lost[depth],
            level[depth],
        )
        begins[depth], sizes[depth], arrived = at + m, n_open, True
        if bound[depth] <= best + gap:
            sizes[depth] = 0  # a leaf: nobody will look at its pairs
            continue
        if at + m + n_open > len(owners):
            longer, more = np.empty(2 * K * (at + m + n_open)), np.empty(2 * (at + m + n_open), np.int64)
            longer[: K * (at + m)], more[: at + m] = values[: K * (at + m)], owners[: at + m]
            values, owners = longer, more
            own, mine = values[K * at : K * (at + m)].reshape(K, m), owners[at : at + m]
        target = values[K * (at + m) : K * (at + m + n_open)].reshape(K, n_open)
        for i in range(K):
            source = fresh[:m] if i == replaced else own[i]
            for e in range(n_open):
                target[i, e] = source[open_pairs[e]]
        for e in range(n_open):
            owners[at + m + e] = mine[open_pairs[e]]
    return best, centre, largest, n_cells, edges[:n_recorded], numbers[:n_recorded]
