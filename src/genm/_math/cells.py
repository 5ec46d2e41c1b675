"""The best weights of all, certified: branch and bound over the weight simplex.

Cells are simplices of weights; `genm._math.bounds` bounds the measure over a cell, `genm._math.subdivision` splits
one cell until nothing in it can matter. Here the simplex is cut into a few dozen cells, which are searched with an
ever smaller gap, so that the bound is meaningful whenever the search is stopped, and in batches of fixed size, so
that the result does not depend on the number of threads.

The optimum is the supremum over generic weights: weights at which two rows tie only if they tie everywhere. Whoever
breaks ties by row can score more at a special point where rows tie by accident; such a point is no optimum here,
because the smallest change of the weights may lose it.
"""

import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from genm._math.bounds import LEAF, undecided_pairs
from genm._math.climbing import climb
from genm._math.compiled import over_ranges
from genm._math.crossings import TOLERANCE, value_at
from genm._math.gains import Floats, Ints, Problem
from genm._math.subdivision import explore, restrict
from genm.errors import InputError
from genm.progress import Progress, silent

FIRST_GAP = 0.064
SHRINK = 4.0
"""Each stage asks for a quarter of the gap before it. Every stage starts over from the first cells, so when the
search goes down to 0 the earlier stages together cost more than the last one: the price of a bound at any time."""
BATCH = 8
FIRST_SPLITS = 6
"""The simplex is halved this often to begin with: 64 cells."""
NUDGES = (1e-11, 1e-9, 1e-6, 1e-4)
"""How far weights are moved towards an odd inner point to make them generic; the best of these counts."""


class Certificate(NamedTuple):
    """A tree of cells that covers the simplex, in preorder; see `genm._math.subdivision`."""

    n_rankers: int
    edges: Ints
    numbers: Floats


class Optimum(NamedTuple):
    """The best weights found and what is left above them."""

    weights: Floats
    value: float
    upper: float
    """No generic weights reach more than this."""
    n_cells: int
    certificate: Certificate | None

    @property
    def gap(self) -> float:
        """How much could still be gained at most."""
        return self.upper - self.value


class _Cell(NamedTuple):
    """A piece of the simplex and what its search has shown so far."""

    corners: Floats
    bound: float
    edges: Ints
    numbers: Floats


def best_weights(
    problem: Problem,
    *,
    gap: float = 0.0,
    seconds: float = np.inf,
    start: Floats | None = None,
    certificate: bool = False,
    progress: Progress = silent,
) -> Optimum:
    """Return the best weights on the simplex and an upper bound for all others.

    The search ends when at most `gap` is left, or after `seconds` with what it knows by then.
    """
    if not gap >= 0.0 or not seconds > 0.0:
        raise InputError(f"exact search: expected gap >= 0 and seconds > 0; found {gap} and {seconds}.")
    deadline = time.monotonic() + seconds
    weights, value = _first_guess(problem, start)
    search = _Search(problem, weights, value, certificate=certificate)
    with _Alarm(deadline) as stop:
        stage = max(FIRST_GAP, gap)
        while True:
            search.narrow(max(stage, TOLERANCE), stop, progress)
            if stage <= gap or stop[0]:
                break
            stage = max(stage / SHRINK, gap) if stage > 1e-4 else gap
    return search.result()


def leaves(certificate: Certificate) -> Iterator[tuple[Floats, float]]:
    """Yield corners (one per row) and bound of every leaf of a certificate."""
    waiting = [np.eye(certificate.n_rankers)]
    for edge, number in zip(certificate.edges.tolist(), certificate.numbers.tolist(), strict=True):
        corners = waiting.pop()
        if edge == LEAF:
            yield corners, number
        else:
            waiting.extend(reversed(_halves(corners, edge, number)))


def _halves(corners: Floats, edge: int, share: float) -> list[Floats]:
    """Return the two cells that a split leaves, the one that keeps the edge's first corner first."""
    a, b = divmod(edge, len(corners))
    first, second = corners.copy(), corners.copy()
    first[b] = second[a] = corners[a] + share * (corners[b] - corners[a])
    return [first, second]


def _first_guess(problem: Problem, start: Floats | None) -> tuple[Floats, float]:
    """Climb from a few starts and return the best generic weights next to where that ends."""
    K = len(problem.columns)
    middle = np.full(K, 1.0 / K)
    starts = [middle, *(0.7 * np.eye(K) + 0.3 * middle)] if K > 1 else [middle]
    ends = [climb(problem, s)[0] for s in starts + ([] if start is None else [start])]
    return max((_generic(problem, end) for end in ends), key=lambda found: found[1])


def _generic(problem: Problem, weights: Floats) -> tuple[Floats, float]:
    """Return the best of a few generic weights right next to the given ones, and its value."""
    odd = np.sqrt(np.arange(2.0, len(weights) + 2.0))  # no rows of real data tie at such weights by accident
    near = [(1.0 - nudge) * weights + nudge * odd / odd.sum() for nudge in NUDGES]
    values = [value_at(problem, w) for w in near]
    best = int(np.argmax(values))
    return near[best], values[best]


class _Alarm:
    """A flag that compiled code can read, set when the time is up."""

    def __init__(self, deadline: float) -> None:
        self.flag = np.zeros(1, np.uint8)
        wait = deadline - time.monotonic()
        self.timer = threading.Timer(max(wait, 0.0), self._ring) if np.isfinite(wait) else None

    def _ring(self) -> None:
        self.flag[0] = 1

    def __enter__(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        if self.timer is not None:
            self.timer.daemon = True
            self.timer.start()
        return self.flag

    def __exit__(self, *_: object) -> None:
        if self.timer is not None:
            self.timer.cancel()


class _Search:
    """What is known so far: the best weights and, per cell, a bound."""

    def __init__(self, problem: Problem, weights: Floats, value: float, *, certificate: bool) -> None:
        self.problem, self.weights, self.value, self.recording = problem, weights, value, certificate
        self.claimed, self.n_cells = value, 0
        counts = np.diff(problem.relevant_starts)
        self.task_of = np.repeat(np.arange(len(counts)), counts)
        self.lost = np.zeros(len(problem.relevant_rows), np.int64)
        self.x, self.owner = self._pairs()
        self.trunk: list[tuple[int, float]] = []
        self.cells = self._first_cells()

    def _pairs(self) -> tuple[Floats, Ints]:
        """Collect the pairs that no part of the simplex has decided yet."""
        problem = self.problem
        found: dict[int, tuple[Floats, Ints]] = {}

        def work(first: int, last: int) -> None:
            found[first] = undecided_pairs(np.array([first, last]), *problem[:6], self.lost)

        costs = np.diff(problem.starts)[problem.query] * np.diff(problem.relevant_starts)
        over_ranges(work, costs.astype(np.int64))
        parts = [found[first] for first in sorted(found)] or [
            (np.zeros((len(problem.columns), 0)), np.zeros(0, np.int64))
        ]
        return np.concatenate([p[0] for p in parts], axis=1), np.concatenate([p[1] for p in parts])

    def _first_cells(self) -> list[_Cell]:
        """Halve the simplex a few times at its longest edges and remember how."""
        K, cells = len(self.problem.columns), []
        waiting = [(np.eye(K), FIRST_SPLITS if K > 1 else 0)]
        while waiting:
            corners, splits = waiting.pop()
            if splits == 0:
                self.trunk.append((LEAF, 0.0))
                cells.append(_Cell(corners, np.inf, np.zeros(0, np.int64), np.zeros(0)))
                continue
            lengths = ((corners[:, None] - corners[None]) ** 2).sum(axis=2)
            a, b = divmod(int(np.argmax(lengths)), K)
            self.trunk.append((a * K + b, 0.5))
            waiting.extend((half, splits - 1) for half in reversed(_halves(corners, a * K + b, 0.5)))
        return cells

    def narrow(self, gap: float, stop: np.ndarray[tuple[int], np.dtype[np.uint8]], progress: Progress) -> None:
        """Search all cells again that may hold more than `gap` above the best value."""
        for first in range(0, len(self.cells), BATCH):
            batch = range(first, min(first + BATCH, len(self.cells)))
            todo = [c for c in batch if self.cells[c].bound > self.claimed + gap]
            if stop[0] and np.isfinite(self.cells[batch[-1]].bound):
                return
            found = self._explore(todo, gap, stop)
            for c, (best, centre, largest, n_cells, edges, numbers) in zip(todo, found, strict=True):
                self.n_cells += n_cells
                old = self.cells[c]
                if largest < old.bound:
                    self.cells[c] = _Cell(old.corners, largest, edges, numbers)
                if best > self.claimed:
                    self._improve(centre, best)
            progress(f"exact search, gap {gap:.2g}", batch[-1] + 1, len(self.cells))

    def _explore(
        self, todo: list[int], gap: float, stop: np.ndarray[tuple[int], np.dtype[np.uint8]]
    ) -> list[tuple[float, Floats, float, int, Ints, Floats]]:
        """Search some cells, each on its own, all from the same best value."""
        p, found = self.problem, {}

        def work(first: int, last: int) -> None:
            for c in todo[first:last]:
                corners = self.cells[c].corners
                x, owner, lost = restrict(self.x, self.owner, corners, self.lost.copy())
                found[c] = explore(
                    x,
                    owner,
                    lost,
                    self.task_of,
                    p.relevant_starts,
                    p.weight,
                    p.cutoff,
                    p.position,
                    p.discount,
                    corners,
                    self.claimed,
                    gap,
                    stop,
                    self.recording,
                )

        over_ranges(work, np.full(len(todo), 10**9, np.int64))
        return [found[c] for c in todo]

    def _improve(self, weights: Floats, claimed: float) -> None:
        """Take better weights; what they are worth is measured, not believed."""
        self.claimed = claimed
        near, value = _generic(self.problem, weights)
        if value > self.value:
            self.weights, self.value = near, value

    def result(self) -> Optimum:
        """Put together what is known."""
        upper = max(self.value, *(cell.bound for cell in self.cells))
        tree = None
        if self.recording:
            pending = iter(self.cells)
            edges, numbers = [], []
            for edge, number in self.trunk:
                cell = next(pending) if edge == LEAF else None
                edges.append(np.array([edge]) if cell is None else cell.edges)
                numbers.append(np.array([number]) if cell is None else cell.numbers)
            tree = Certificate(len(self.problem.columns), np.concatenate(edges), np.concatenate(numbers))
        return Optimum(self.weights, self.value, upper, self.n_cells, tree)
