"""Exact line search: the value of a ranking measure along a whole line of weights, and ascent along such lines.

Along weights origin + t * direction every fused score is a straight line in t, so a relevant row and another one
swap at most once. Between neighbouring swap points the ranking is constant, and so is the measure. The kernels
(`genm._math.exact.line_kernels`) find the pairs that swap and bound the value on parts of the line; where the
maximum can be, they sort the swap points and walk over them; each swap moves one count by one
(`genm._math.exact.rank_gains`), which changes the value in constant time.

A pair that ties along the whole line is ordered by row. At a swap point itself the row would break the tie too,
but a single point is no interval: the function reports the open intervals between swap points, that is, the
values at generic weights.
"""

from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from genm._math.exact.line_kernels import (
    BIN_BITS,
    KEY_BITS,
    PART_BITS,
    neighbours,
    pick_swaps,
    survey,
    sweep,
    task_values,
)
from genm._math.exact.rank_gains import GainProblem
from genm._math.parallel import over_ranges
from genm._typing import Floats, Ints
from genm.errors import InputError

N_CHUNKS = 16
"""Tasks are swept in this many chunks, whatever the number of threads, so that sums never depend on it."""
TOLERANCE = 1e-12
"""Values closer than this count as equal: sums over millions of steps are good to about this."""
SLACK = 1e-9
"""Parts of the line whose bound is this far below a known value cannot hold the maximum, whatever was rounded."""
NARROWEST = 2.0**-44
"""Intervals narrower than this share of the line are not claimed: swap points are not known better."""
WORTH_BOUNDS = 10_000_000
"""Pairs of rows from which on it pays to bound parts of the line; below, sorting all swaps costs less."""
FEW_BINS = 64
"""With more bins in play than this, sorting all swaps is quicker than picking."""

Buffers = list[tuple[Ints, Ints, Floats]]
"""Memory for swaps that several lines use one after the other; begin with an empty list."""


class LineProfile(NamedTuple):
    """The best open interval of a line and, if it was asked for, the whole step function."""

    low: float
    """Left end of the best interval, in t."""
    high: float
    """Right end of the best interval, in t."""
    value: float
    """The measure between the two."""
    n_swaps: int
    """How many pairs of a relevant row and another one swap on the line."""
    breakpoints: Floats
    """Ends of all intervals, from the line's low end to its high end; empty unless asked for."""
    values: Floats
    """values[i] holds between breakpoints[i] and breakpoints[i + 1]; empty unless asked for."""

    @property
    def middle(self) -> float:
        """The point of the best interval that is farthest from any change."""
        return 0.5 * (self.low + self.high)

    @property
    def width(self) -> float:
        """How far t can move without any change of the value."""
        return self.high - self.low


class _Swaps(NamedTuple):
    """What the sweep found, one entry per chunk of tasks."""

    keys: list[Ints]
    steps: list[Floats]
    ends: list[Ints]
    """Where each task's swaps end; those of a task are in order."""
    first: int
    """The left end of what was swept."""
    last: int
    """The right end."""
    start: float
    """The value at the left end."""
    bins: Floats
    n_swaps: int
    """How many there are on the whole line."""


class _Steps(NamedTuple):
    """Intervals of the line in fixed point, with their values; they need not be neighbours."""

    left: Ints
    right: Ints
    value: Floats


def line_profile(
    problem: GainProblem,
    origin: Floats,
    direction: Floats,
    low: float,
    high: float,
    *,
    whole: bool = False,
    buffers: Buffers | None = None,
) -> LineProfile:
    """Return where on origin + t * direction, low <= t <= high, the measure is best, and how good it is.

    Among intervals of equal value the widest wins, then the leftmost. With `whole` the complete step function
    comes too. Who follows many lines passes the same `buffers` to all of them and saves asking for memory anew.
    """
    if not low < high:
        raise InputError(f"line: expected low < high; found low {low} and high {high}. Swap the two ends.")
    ends = origin + low * direction, origin + high * direction
    swaps = _sweep_all(problem, *ends, [] if buffers is None else buffers, whole=whole)
    steps = None if whole else _likely_steps(swaps)
    if steps is None:
        steps = _all_steps(swaps)
    best = _best(steps)
    left, right = _ends(swaps, int(steps.left[best]), int(steps.right[best]))
    unit = (high - low) * 2.0**-KEY_BITS
    points, values = np.zeros(0), np.zeros(0)
    if whole:
        points, values = np.append(low + unit * steps.left, high), steps.value
    return LineProfile(
        low + unit * left, low + unit * right, float(steps.value[best]), swaps.n_swaps, points, values
    )


def line_bins(problem: GainProblem, w_low: Floats, w_high: Floats, buffers: Buffers) -> tuple[float, Floats]:
    """Return the value at w_low and, for each of equal bins of the way to w_high, three sums over its swaps.

    They are the change of the value, its rises alone, and the number of swaps that change it.
    """
    swaps, shift = _sweep_all(problem, w_low, w_high, buffers, whole=True), KEY_BITS - BIN_BITS
    counts = sum((np.bincount(keys >> shift, minlength=1 << BIN_BITS) for keys in swaps.keys), np.zeros(1))
    return swaps.start, np.column_stack((swaps.bins, np.broadcast_to(counts, len(swaps.bins))))


def line_swaps(
    problem: GainProblem, w_low: Floats, w_high: Floats, lows: Ints, highs: Ints, buffers: Buffers
) -> tuple[Ints, Floats]:
    """Return place and step of the swaps in bins lows[i]:highs[i]; places in units of 2**-KEY_BITS of the line."""
    swaps, shift = _sweep_all(problem, w_low, w_high, buffers, whole=True), KEY_BITS - BIN_BITS
    found = [pick_swaps(*part, lows << shift, highs << shift) for part in zip(*swaps[:3], strict=True)]
    return np.concatenate([keys for keys, _ in found]), np.concatenate([steps for _, steps in found])


def value_at(problem: GainProblem, weights: Floats) -> float:
    """Return the measure at one point; ties are broken by row."""
    values = np.zeros(len(problem.query))
    over_ranges(lambda first, last: task_values(np.array([first, last]), problem, weights, values), _costs(problem))
    return float(values.sum())


def _costs(problem: GainProblem) -> Ints:
    """Return how much work a task is: rows times relevant rows."""
    rows: Ints = np.diff(problem.starts)[problem.query]
    relevant: Ints = np.diff(problem.relevant_starts)
    return rows * (relevant + 8)


def _sweep_all(problem: GainProblem, w_low: Floats, w_high: Floats, buffers: Buffers, *, whole: bool) -> _Swaps:
    """Sweep all tasks, chunk by chunk; unless the whole line is asked for, only where its maximum can be."""
    n_tasks, costs = len(problem.query), _costs(problem)
    shares = np.linspace(0, costs.sum(), N_CHUNKS + 1)[1:-1]
    cuts = np.concatenate(([0], np.searchsorted(np.cumsum(costs), shares), [n_tasks])).astype(np.int64)
    chunk_costs = np.diff(np.concatenate(([0], np.cumsum(costs)))[cuts])
    bounded = not whole and costs.sum() > WORTH_BOUNDS
    parts = np.zeros((N_CHUNKS, 2, 1 << PART_BITS if bounded else 0))
    ends, n_relevant = np.zeros(n_tasks, np.int64), len(problem.relevant_rows)
    count, moved = np.zeros(n_relevant, np.int64), np.empty((n_relevant, 2 << PART_BITS), np.int32)
    values, bins, kept_ends = np.zeros(n_tasks), np.zeros((N_CHUNKS, 1 << BIN_BITS, 2)), np.zeros(n_tasks, np.int64)
    keys, steps = [np.zeros(0, np.int64)] * N_CHUNKS, [np.zeros(0)] * N_CHUNKS
    n_found = [0] * N_CHUNKS
    while len(buffers) < N_CHUNKS:
        buffers.append((np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024)))

    def look(first: int, last: int) -> None:
        for chunk in range(first, last):
            events, n_found[chunk] = survey(
                cuts[chunk : chunk + 2], problem, w_low, w_high, parts[chunk], count, moved, ends, buffers[chunk][0]
            )
            buffers[chunk] = events, *buffers[chunk][1:]
            if not bounded:
                walk(chunk, chunk + 1)

    def walk(first: int, last: int) -> None:
        for chunk in range(first, last):
            found, kept, moves = buffers[chunk]
            kept, moves, n = sweep(
                cuts[chunk : chunk + 2],
                problem,
                found,
                ends,
                count,
                moved,
                span,
                values,
                bins[chunk],
                kept_ends,
                kept,
                moves,
            )
            buffers[chunk] = found, kept, moves
            keys[chunk], steps[chunk] = kept[:n], moves[:n]

    span = np.array([0, 1 << PART_BITS])
    over_ranges(look, chunk_costs)
    if bounded:
        span = _span(parts.sum(axis=0))
        over_ranges(walk, chunk_costs)
    low, high = (span << (KEY_BITS - PART_BITS)).tolist()
    parted = np.split(kept_ends, cuts[1:-1])
    return _Swaps(keys, steps, parted, low, high, float(values.sum()), bins.sum(axis=0), sum(n_found))


def _span(parts: Floats) -> Ints:
    """Return the first part of the line that can hold the maximum, and the one after the last."""
    floors, roofs = parts
    likely = np.flatnonzero(roofs >= floors.max() - SLACK)
    return np.array([likely[0], likely[-1] + 1])


def _all_steps(swaps: _Swaps) -> _Steps:
    """Return all intervals of what was swept, by sorting every swap; swaps at one point count as one."""
    keys, steps = np.concatenate(swaps.keys), np.concatenate(swaps.steps)
    order = np.argsort(keys, kind="stable")
    keys, steps = keys[order], steps[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    heights = np.concatenate(([0.0], np.cumsum(steps)))[np.append(firsts, len(steps))]
    points = keys[firsts]
    return _Steps(np.concatenate(([swaps.first], points)), np.append(points, swaps.last), swaps.start + heights)


def _likely_steps(swaps: _Swaps) -> _Steps | None:
    """Return the intervals in those bins of the line where the maximum can be; None if they are many."""
    shift = KEY_BITS - BIN_BITS
    swept = slice(swaps.first >> shift, swaps.last >> shift)
    before = swaps.start + np.concatenate(([0.0], np.cumsum(swaps.bins[:-1, 0])))
    floor = float(before[swept].max()) - TOLERANCE
    bins = swept.start + np.flatnonzero((before + swaps.bins[:, 1])[swept] >= floor)
    if len(bins) > FEW_BINS:
        return None
    found = [pick_swaps(*part, bins << shift, (bins + 1) << shift) for part in zip(*swaps[:3], strict=True)]
    keys = np.concatenate([f[0] for f in found])
    steps = np.concatenate([f[1] for f in found])
    order = np.argsort(keys, kind="stable")
    keys, steps = keys[order], steps[order]
    left, right, value = [], [], []
    for b in bins.tolist():
        inside = slice(*np.searchsorted(keys, (b << shift, (b + 1) << shift)))
        left.append(np.concatenate(([b << shift], keys[inside])))
        right.append(np.append(keys[inside], (b + 1) << shift))
        value.append(before[b] + np.concatenate(([0.0], np.cumsum(steps[inside]))))
    likely = _Steps(np.concatenate(left), np.concatenate(right), np.concatenate(value))
    wide = likely.right - likely.left > NARROWEST * 2.0**KEY_BITS
    # The highest bin boundary may lie in an interval too narrow to claim; then nothing is known without sorting.
    return likely if wide.any() and likely.value[wide].max() >= floor else None


def _best(steps: _Steps) -> int:
    """Return the position of the widest of the highest intervals, leaving out those too narrow to claim."""
    width = steps.right - steps.left
    wide = width > NARROWEST * 2.0**KEY_BITS
    highest = steps.value[wide].max()
    return int(np.argmax(np.where(wide & (steps.value >= highest - TOLERANCE), width, -1)))


def _ends(swaps: _Swaps, left: int, right: int) -> tuple[int, int]:
    """Widen an interval that may begin or end at a bin's edge to the swaps next to it."""
    low, high = swaps.first, swaps.last
    for keys, ends in zip(swaps.keys, swaps.ends, strict=True):
        outer = neighbours(keys, ends, left, right)
        low, high = max(low, int(outer[0])), min(high, int(outer[1]))
    return low, high


class Lines(Protocol):
    """A measure as a function of the weights, and along lines of weights."""

    def value_at(self, weights: Floats) -> float:
        """Return the measure at one point; ties are broken by row."""

    def best(self, origin: Floats, direction: Floats, low: float, high: float) -> LineProfile:
        """Return where on origin + t * direction, low <= t <= high, the measure is best."""

    def steps(self, origin: Floats, direction: Floats, low: float, high: float) -> LineProfile:
        """Return the step function along the line as well."""


class GainLines:
    """The lines of a problem in memory: `Lines`."""

    def __init__(self, problem: GainProblem) -> None:
        self._problem, self._buffers = problem, Buffers()

    def value_at(self, weights: Floats) -> float:
        """Return the measure at one point; ties are broken by row."""
        return value_at(self._problem, weights)

    def best(self, origin: Floats, direction: Floats, low: float, high: float) -> LineProfile:
        """Return where on origin + t * direction, low <= t <= high, the measure is best."""
        return line_profile(self._problem, origin, direction, low, high, buffers=self._buffers)

    def steps(self, origin: Floats, direction: Floats, low: float, high: float) -> LineProfile:
        """Return the step function along the line as well."""
        return line_profile(self._problem, origin, direction, low, high, whole=True, buffers=self._buffers)


def ascend_lines(lines: Lines, start: Floats, *, n_random: int = 0, seed: int = 0) -> tuple[Floats, float]:
    """Return weights on the simplex, and their value, that no line through them improves.

    The lines are: one ranker against all others, one ranker against one other, and `n_random` directions drawn
    anew in each round. The result is never worse than the start.
    """
    weights = start / start.sum()
    value, generator = lines.value_at(weights), np.random.default_rng(seed)
    while True:
        before = value
        for direction in _directions(weights, n_random, generator):
            low, high = _reach_within_simplex(weights, direction)
            if high - low < 1e-9:
                continue
            found = lines.best(weights, direction, low, high)
            if found.value > value + TOLERANCE:
                moved = np.maximum(weights + found.middle * direction, 0.0)
                moved /= moved.sum()
                here = lines.value_at(moved)
                if here > value:  # rounding may reverse rows that nearly tie
                    weights, value = moved, here
        if value <= before + TOLERANCE:
            return weights, value


def _directions(weights: Floats, n_random: int, generator: np.random.Generator) -> list[Floats]:
    """Return the directions of one round; each sums to 0, so that the weights go on summing to 1."""
    K, found = len(weights), []
    if K > 2:
        for k in range(K):
            others = np.delete(weights, k).sum()
            away = -weights / others if others > 0 else np.full(K, -1.0 / (K - 1))
            away[k] = 1.0
            found.append(away)
    for k, other in combinations(range(K), 2):
        pair = np.zeros(K)
        pair[k], pair[other] = 1.0, -1.0
        found.append(pair)
    for _ in range(n_random):
        drawn = generator.standard_normal(K)
        found.append(drawn - drawn.mean())
    return found


def _reach_within_simplex(weights: Floats, direction: Floats) -> tuple[float, float]:
    """Return how far one can go both ways before a weight becomes negative."""
    falling, rising = direction < 0, direction > 0
    high = float(np.min(weights[falling] / -direction[falling])) if falling.any() else 0.0
    low = float(np.max(-weights[rising] / direction[rising])) if rising.any() else 0.0
    return low, high
