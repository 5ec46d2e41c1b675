"""Cells too narrow for floating-point numbers, settled with fractions (the last word of branch and bound).

Where rows swap in opposite directions at the same weights, the row between them wins both pairs on a set of no
width and nowhere else. No cut at a floating-point number hits that set, so a cell around it keeps a bound that no
generic weights reach. Here such a cell is cut exactly where two rows tie; every pair is then decided in finitely
many cuts, since a cut through a pair's ties leaves fewer corners on either side of them.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from genm._math.exact.bound_kernels import LEAF, ROUNDING, GainTables, Owners, influence, last_of, sort_levels
from genm._math.exact.rank_gains import GainProblem
from genm._math.linear_algebra import row_products
from genm._typing import Bytes, Floats, Ints

MOST_CELLS = 4096
"""After so many cells the rest is left as it is, with its bound."""
NO_TIE = (-1, -1)

Path = tuple[tuple[int, int, float], ...]
"""Steps from the whole simplex to a cell: edge, which half (0 keeps the edge's first corner), share of the edge."""
Point = tuple[Fraction, ...]


class Pairs(NamedTuple):
    """All pairs that the whole simplex leaves undecided; see `genm._math.exact.bound_kernels`."""

    x: Floats
    owner: Owners
    other: Owners
    lost: Ints
    """What each relevant row has lost all over the simplex."""


class Settled(NamedTuple):
    """What is known of a narrow cell; edges, numbers and ties are its part of the certificate."""

    best: float
    weights: Floats | None
    """Where `best` is reached, unless it was known before."""
    bound: float
    n_cells: int
    edges: list[int]
    numbers: list[float]
    ties: list[tuple[int, int]]


class _Open(NamedTuple):
    """A cell that waits: its corners, the undecided pairs with their differences there, and what is lost."""

    corners: list[Point]
    pairs: list[int]
    x: list[list[Fraction]]
    lost: Ints


def settle(
    problem: GainProblem, pairs: Pairs, tables: GainTables, path: Path, best: float, gap: float, stop: Bytes
) -> Settled:
    """Split a cell at exact ties until no part can hold a value more than `gap` above the best known one."""
    waiting, weights, largest, n_cells = [_open_cell(problem, pairs, path)], None, 0.0, 0
    level = np.zeros_like(pairs.lost)
    edges: list[int] = []
    numbers: list[float] = []
    ties: list[tuple[int, int]] = []
    while waiting:
        cell = _decided(waiting.pop(), pairs.owner)
        n_cells += 1
        bound = sort_levels(tables, cell.lost, level)
        if not cell.pairs and bound > best:  # no pair ties inside, so this is what its weights reach
            best, weights = bound, np.array([float(sum(column)) for column in zip(*cell.corners, strict=True)])
            weights /= weights.sum()
        if not cell.pairs or bound <= best + gap or n_cells > MOST_CELLS or stop[0]:
            largest = max(largest, bound)
            edges.append(LEAF)
            numbers.append(bound)
            ties.append(NO_TIE)
            continue
        e = _most_influential(cell, pairs.owner, tables, level)
        a, b, share = _tie_on_an_edge(cell.x[e])
        edges.append(a * len(cell.corners) + b)
        numbers.append(float(share))
        p = cell.pairs[e]
        own = problem.relevant_rows[pairs.owner[p]]
        ties.append((int(problem.order[own]), int(problem.order[pairs.other[p]])))
        waiting += [_half(cell, a, b, share, replaced=a), _half(cell, a, b, share, replaced=b)]
    return Settled(best, weights, largest, n_cells, edges, numbers, ties)


def corners_of(path: Path, n_rankers: int) -> list[Point]:
    """Return the corners of the cell to which a path leads, exactly."""
    corners = [tuple(Fraction(int(i == k)) for k in range(n_rankers)) for i in range(n_rankers)]
    for edge, half, share in path:
        a, b = divmod(edge, n_rankers)
        corners[a if half else b] = _between(corners[a], corners[b], Fraction(share))
    return corners


def _between(start: Point, end: Point, share: Fraction) -> Point:
    return tuple(s + share * (e - s) for s, e in zip(start, end, strict=True))


def _open_cell(problem: GainProblem, pairs: Pairs, path: Path) -> _Open:
    """Return the cell with the pairs that floating-point numbers cannot decide; the others are decided."""
    corners = corners_of(path, len(pairs.x))
    at = row_products(np.array(corners, np.float64), pairs.x.T)
    lost = pairs.lost + np.bincount(pairs.owner[(at < -ROUNDING).all(axis=0)], minlength=len(pairs.lost))
    unsure = np.flatnonzero((at < ROUNDING).any(axis=0) & (at > -ROUNDING).any(axis=0)).tolist()
    x = []
    for p in unsure:
        own, other = problem.relevant_rows[pairs.owner[p]], pairs.other[p]
        columns = zip(problem.columns[:, own].tolist(), problem.columns[:, other].tolist(), strict=True)
        difference = [Fraction(mine) - Fraction(theirs) for mine, theirs in columns]
        x.append([sum((c * d for c, d in zip(corner, difference, strict=True)), Fraction(0)) for corner in corners])
    return _Open(corners, unsure, x, lost)


def _decided(cell: _Open, owner: Owners) -> _Open:
    """Return the cell without the pairs that are decided in it; none ties all over it, for it would everywhere."""
    lost, pairs, x = cell.lost.copy(), [], []
    for p, own in zip(cell.pairs, cell.x, strict=True):
        if all(value <= 0 for value in own):
            lost[owner[p]] += 1
        elif any(value < 0 for value in own):
            pairs.append(p)
            x.append(own)
    return _Open(cell.corners, pairs, x, lost)


def _most_influential(cell: _Open, owner: Owners, tables: GainTables, level: Ints) -> int:
    """Return the place of the undecided pair that moves the bound most."""
    moved = []
    for p in cell.pairs:
        g = owner[p]
        task = tables.task_of[g]
        at = last_of(level, tables.relevant_starts[task], tables.relevant_starts[task + 1], cell.lost[g])
        moved.append(influence(tables, task, level, at))
    return int(np.argmax(moved))


def _tie_on_an_edge(x: list[Fraction]) -> tuple[int, int, Fraction]:
    """Return the edge from the lowest to the highest corner of a pair, and the share of it where the rows tie."""
    a, b = min(range(len(x)), key=x.__getitem__), max(range(len(x)), key=x.__getitem__)
    return a, b, x[a] / (x[a] - x[b])


def _half(cell: _Open, a: int, b: int, share: Fraction, *, replaced: int) -> _Open:
    corners, x = list(cell.corners), [list(own) for own in cell.x]
    corners[replaced] = _between(cell.corners[a], cell.corners[b], share)
    for own in x:
        own[replaced] = own[a] + share * (own[b] - own[a])
    return _Open(corners, cell.pairs, x, cell.lost)
