"""The best weights of all, certified: branch and bound over the weight simplex.

Cells are simplices of weights; `genm._math.exact.bound_kernels` bounds the measure over a cell,
`genm._math.exact.bound_kernels` splits one cell until nothing in it can matter, and
`genm._math.exact.rational_cells` has the last word where rows tie. Here the simplex is cut into a few dozen cells,
which are searched with an ever smaller gap, so that the bound is meaningful whenever the search is stopped, and in
batches of fixed size, so that the result does not depend on the number of threads.

The optimum is the supremum over generic weights: weights at which two rows tie only if they tie everywhere. Whoever
breaks ties by row can score more at a special point where rows tie by accident; such a point is no optimum here,
because the smallest change of the weights may lose it.
"""

import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from genm._math.exact.bound_kernels import LEAF, Owners, explore, gain_tables, restrict, undecided_pairs
from genm._math.exact.line_search import TOLERANCE, GainLines, ascend_lines, value_at
from genm._math.exact.rank_gains import GainProblem
from genm._math.exact.rational_cells import NO_TIE, Pairs, Path, settle
from genm._math.linear_algebra import times
from genm._math.parallel import over_items, over_ranges
from genm._typing import Bytes, Floats, Ints
from genm.errors import InputError
from genm.progress import Progress, silent

Flag = Bytes

FIRST_GAP = 0.064
SHRINK = 4.0
"""Each stage asks for a quarter of the gap before it. Every stage starts over from the first cells, so when the
search goes down to 0 the earlier stages together cost more than the last one. In return a bound is always known."""
BATCH = 16
FIRST_SPLITS = 6
"""The simplex is halved this often to begin with: 64 cells."""
EASY = 2_000_000
"""Where a stage went through more pairs than this, the next one begins from smaller cells: threads share them, and
which of them need no further search is known."""
MOST_SPLITS = 5
NUDGES = (1e-11, 1e-9, 1e-6, 1e-4)
"""How far weights are moved towards an odd inner point to make them generic; the best of these counts."""


class Certificate(NamedTuple):
    """A tree of cells that covers the simplex, in preorder; see `genm._math.exact.bound_kernels`.

    Its weights are those of the scores times `scale`, which are powers of two.
    """

    scale: Floats
    edges: Ints
    numbers: Floats
    ties: Ints
    """(n, 2) rows that tie where the edge is cut, if they decide and not the share in `numbers`; else -1."""


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


_Found = tuple[float, Floats, float, int, int, Ints, Floats, Ints, Floats, Ints]
"""What `explore` returns."""


class _Cell(NamedTuple):
    """A piece of the simplex and what its search has shown so far."""

    corners: Floats
    path: Path
    bound: float
    n_pairs: int
    """How many pairs the last search of it went through."""
    edges: Ints
    numbers: Floats
    ties: Ints


def best_weights(
    problem: GainProblem,
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
            search.share_out()
            stage = max(stage / SHRINK, gap) if stage > 1e-4 else gap
    return search.result()


def leaves(certificate: Certificate) -> Iterator[tuple[Floats, float]]:
    """Yield corners (one per row) and bound of every leaf of a certificate."""
    waiting = [np.eye(len(certificate.scale))]
    for edge, number in zip(certificate.edges.tolist(), certificate.numbers.tolist(), strict=True):
        corners = waiting.pop()
        if edge == LEAF:
            weights = corners * certificate.scale
            yield weights / weights.sum(axis=1, keepdims=True), number
        else:
            waiting.extend(reversed(_halves(corners, edge, number)))


def _halves(corners: Floats, edge: int, share: float) -> list[Floats]:
    """Return the two cells that a split leaves, the one that keeps the edge's first corner first."""
    a, b = divmod(edge, len(corners))
    first, second = corners.copy(), corners.copy()
    first[b] = second[a] = corners[a] + share * (corners[b] - corners[a])
    return [first, second]


def _first_guess(problem: GainProblem, start: Floats | None) -> tuple[Floats, float]:
    """Run the line search from a few starts and return the best generic weights next to its results."""
    K = len(problem.columns)
    middle = np.full(K, 1.0 / K)
    starts = [middle, *(0.7 * np.eye(K) + 0.3 * middle)] if K > 1 else [middle]
    ends = [ascend_lines(GainLines(problem), s)[0] for s in starts + ([] if start is None else [start])]
    return max((_generic(problem, end) for end in ends), key=lambda found: found[1])


def _generic(problem: GainProblem, weights: Floats) -> tuple[Floats, float]:
    """Return the best of a few generic weights right next to the given ones, and its value."""
    odd = np.sqrt(np.arange(2.0, len(weights) + 2.0))  # no rows of real data tie at such weights by accident
    near = [(1.0 - nudge) * weights + nudge * odd / odd.sum() for nudge in NUDGES]
    values = [value_at(problem, w) for w in near]
    best = int(np.argmax(values))
    return near[best], values[best]


def _scale(columns: Floats) -> Floats:
    """Return powers of two that give all rankers' scores about the same spread.

    Scores times a scale, with weights divided by it, rank alike; but cells that are halved in the middle get to
    the point much sooner when no ranker needs tiny weights. Powers of two leave every score exact.
    """
    spread = columns.std(axis=1)
    return np.where(spread > 0.0, np.exp2(-np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))), 1.0)


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

    def __init__(self, problem: GainProblem, weights: Floats, value: float, *, certificate: bool) -> None:
        self.unscaled, self.weights, self.value, self.recording = problem, weights, value, certificate
        self.claimed, self.n_cells = value, 0
        self.scale = _scale(problem.columns)
        self.problem = problem._replace(columns=problem.columns * self.scale[:, None])
        self.tables, self.pairs = gain_tables(problem), self._pairs()
        self.trunk, self.cells = [(LEAF, 0.0)], [_unknown(np.eye(len(self.scale)), (), np.inf)]
        self._split({0: FIRST_SPLITS} if len(self.scale) > 1 else {})

    def _pairs(self) -> Pairs:
        """Collect the pairs that no part of the simplex has decided yet."""
        problem = self.problem
        lost = np.zeros(len(problem.relevant_rows), np.int64)
        found: dict[int, tuple[Floats, Owners, Owners]] = {}

        def work(first: int, last: int) -> None:
            found[first] = undecided_pairs(np.array([first, last]), *problem[:6], lost)

        costs = np.diff(problem.starts)[problem.query] * np.diff(problem.relevant_starts)
        over_ranges(work, costs.astype(np.int64))
        none = np.zeros(0, np.int32)
        parts = [found[first] for first in sorted(found)] or [(np.zeros((len(problem.columns), 0)), none, none)]
        x, owner, other = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return Pairs(np.ascontiguousarray(x), owner, other, lost)

    def share_out(self) -> None:
        """Begin the next stage from smaller cells where this one was long."""
        self._split(
            {
                c: min(int(cell.n_pairs / EASY).bit_length(), MOST_SPLITS)
                for c, cell in enumerate(self.cells)
                if cell.n_pairs > EASY
            }
        )

    def _split(self, times: dict[int, int]) -> None:
        """Halve some cells this often at their longest edges, and remember how."""
        trunk, cells, pending = [], [], enumerate(self.cells)
        for entry in self.trunk:
            if entry[0] != LEAF:
                trunk.append(entry)
                continue
            c, cell = next(pending)
            waiting = [(cell, times.get(c, 0))]
            while waiting:
                cell, splits = waiting.pop()
                if splits == 0:
                    trunk.append((LEAF, 0.0))
                    cells.append(cell)
                    continue
                lengths = ((cell.corners[:, None] - cell.corners[None]) ** 2).sum(axis=2)
                edge = int(np.argmax(lengths))
                trunk.append((edge, 0.5))
                for half, corners in reversed(list(enumerate(_halves(cell.corners, edge, 0.5)))):
                    waiting.append((_unknown(corners, (*cell.path, (edge, half, 0.5)), cell.bound), splits - 1))
        self.trunk, self.cells = trunk, cells

    def narrow(self, gap: float, stop: Flag, progress: Progress) -> None:
        """Search all cells again that may hold more than `gap` above the best value."""
        for first in range(0, len(self.cells), BATCH):
            batch = range(first, min(first + BATCH, len(self.cells)))
            if stop[0] and np.isfinite(self.cells[batch[-1]].bound):
                return
            todo = [c for c in batch if self.cells[c].bound > self.claimed + gap]
            for c, found in zip(todo, self._explore(todo, gap, stop), strict=True):
                self._learn(c, found, gap, stop)
            progress(f"exact search, gap {gap:.2g}", batch[-1] + 1, len(self.cells))

    def _explore(self, todo: list[int], gap: float, stop: Flag) -> list[_Found]:
        """Search some cells, each on its own, all from the same best value."""
        claimed = self.claimed

        def work(c: int) -> _Found:
            lost = self.pairs.lost.copy()
            x, owner = restrict(self.pairs.x, self.pairs.owner, self.cells[c].corners, lost)
            return explore(x, owner, lost, self.tables, claimed, gap, stop, self.recording)

        return over_items(work, todo)

    def _learn(self, c: int, found: _Found, gap: float, stop: Flag) -> None:
        """Take over what the search of a cell has found; settle what was too narrow for it."""
        best, centre, largest, n_cells, n_pairs, edges, numbers, steps, shares, ends = found
        old = self.cells[c]
        if best > self.claimed:
            self._improve(times(old.corners.T, centre), best)
        begin, at, parts = 0, 0, []
        for end in ends.tolist():
            own, place = slice(begin, end - 1), int(steps[end - 1])
            ways = [
                (s // 2, s % 2, share) for s, share in zip(steps[own].tolist(), shares[own].tolist(), strict=True)
            ]
            settled = settle(self.problem, self.pairs, self.tables, (*old.path, *ways), self.claimed, gap, stop)
            if settled.weights is not None:
                self._improve(settled.weights, settled.best)
            largest, n_cells, begin = max(largest, settled.bound), n_cells + settled.n_cells, end
            if self.recording:
                parts += [_plain(edges[at:place], numbers[at:place]), settled[4:]]
                at = place + 1
        self.n_cells += n_cells
        if largest < old.bound:
            parts.append(_plain(edges[at:], numbers[at:]))
            tree = [np.concatenate([np.asarray(part[i]) for part in parts]) for i in range(3)]
            self.cells[c] = _Cell(old.corners, old.path, largest, n_pairs, *tree)
        else:
            self.cells[c] = old._replace(n_pairs=n_pairs)

    def _improve(self, weights: Floats, claimed: float) -> None:
        """Take better weights, given for scaled scores; their value is measured again."""
        self.claimed = claimed
        weights = weights * self.scale
        near, value = _generic(self.unscaled, weights / weights.sum())
        if value > self.value:
            self.weights, self.value = near, value

    def result(self) -> Optimum:
        """Put together what is known."""
        upper = max(self.value, *(cell.bound for cell in self.cells))
        tree = None
        if self.recording:
            pending = iter(self.cells)
            parts = [
                next(pending)[4:] if edge == LEAF else _plain(np.array([edge]), np.array([share]))
                for edge, share in self.trunk
            ]
            tree = Certificate(self.scale, *(np.concatenate(part) for part in zip(*parts, strict=True)))
        return Optimum(self.weights, self.value, upper, self.n_cells, tree)


def _plain(edges: Ints, numbers: Floats) -> tuple[Ints, Floats, Ints]:
    """Return a part of a record without ties."""
    return edges, numbers, np.tile(np.array(NO_TIE), (len(edges), 1))


def _unknown(corners: Floats, path: Path, bound: float) -> _Cell:
    """Return a cell of which nothing is known but a bound."""
    return _Cell(corners, path, bound, 0, *_plain(np.array([LEAF]), np.array([bound])))
