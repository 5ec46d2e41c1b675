"""Exact line search on data that is never in memory together: each part of it tells about bins of the line.

A part gives its value at the left end of a line and, for each of 4,096 bins, by how much the value changes in it,
by how much it rises, and how many swaps there are. Sums over all parts are the values at the bins' ends and bounds
between them. Bins that can hold the maximum are cut into finer ones until they have few swaps; these are fetched,
sorted and walked over, as `line_search` does with all of them.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from genm._math.exact.line_kernels import BIN_BITS, KEY_BITS
from genm._math.exact.line_search import NARROWEST, TOLERANCE, LineProfile
from genm._typing import Floats, Ints

MOST_SWAPS = 2_000_000
"""Swaps that are fetched at once: 32 MB."""
MOST_SPANS = 16
"""Spans of a line that are cut into bins at a time."""
MOST_ROUNDS = 4
"""How often bins are made finer; then they are narrower than weights can tell."""

Span = tuple[float, float]


class Bins(NamedTuple):
    """What is known of a span of a line."""

    start: float
    """The value at its left end."""
    sums: Floats
    """(bins, 3) change, rises and number of swaps."""

    @property
    def ends(self) -> Floats:
        """Values at the ends of the bins, one more than there are bins."""
        return np.asarray(self.start + np.concatenate(([0.0], np.cumsum(self.sums[:, 0]))))


class Run(NamedTuple):
    """Consecutive bins of a span."""

    span: int
    first: int
    last: int
    """The bin after them."""


BinsOf = Callable[[Sequence[Span]], list[Bins]]
SwapsOf = Callable[[Sequence[tuple[Span, int, int]]], list[tuple[Ints, Floats]]]
"""Place, in units of 2**-KEY_BITS of the span, and step of all swaps in some bins of a span."""


def best_of_bins(bins_of: BinsOf, swaps_of: SwapsOf, low: float, high: float) -> LineProfile:
    """Return where the measure is best between low and high: of equal intervals the widest, then the leftmost."""
    spans: list[Span] = [(low, high)]
    n_swaps = 0
    for turn in range(MOST_ROUNDS):
        found = bins_of(spans)
        n_swaps = n_swaps or int(found[0].sums[:, 2].sum())
        runs = _likely(found)
        n_likely = sum(int(found[run.span].sums[run.first : run.last, 2].sum()) for run in runs)
        if n_likely <= MOST_SWAPS or turn + 1 == MOST_ROUNDS:
            break
        spans = _merged([(_place(spans[run.span], run.first), _place(spans[run.span], run.last)) for run in runs])
    left, right, value = [], [], []
    swaps = swaps_of([(spans[run.span], run.first, run.last) for run in runs])
    for run, (found_keys, found_steps) in zip(runs, swaps, strict=True):
        order = np.argsort(found_keys, kind="stable")
        keys, steps = found_keys[order], found_steps[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        begin, end = spans[run.span]
        points = begin + (end - begin) * (keys[firsts] * 2.0**-KEY_BITS)
        left.append(np.concatenate(([_place(spans[run.span], run.first)], points)))
        right.append(np.append(points, _place(spans[run.span], run.last)))
        heights = np.concatenate(([0.0], np.cumsum(steps)))[np.append(firsts, len(steps))]
        value.append(found[run.span].ends[run.first] + heights)
    lefts, rights, values = np.concatenate(left), np.concatenate(right), np.concatenate(value)
    width = rights - lefts
    wide = width > NARROWEST * (high - low)
    highest = values[wide].max() if wide.any() else values.max()
    best = int(np.argmax(np.where((wide | ~wide.any()) & (values >= highest - TOLERANCE), width, -1.0)))
    nothing = np.zeros(0)
    return LineProfile(float(lefts[best]), float(rights[best]), float(values[best]), n_swaps, nothing, nothing)


def steps_of_bins(bins_of: BinsOf, low: float, high: float) -> LineProfile:
    """Return the step function as the values at the ends of the bins: the measure at 4,096 points of the line."""
    (found,) = bins_of([(low, high)])
    ends = found.ends[:-1]
    points = np.linspace(low, high, len(ends) + 1)
    best = int(np.argmax(ends))
    return LineProfile(
        float(points[best]), float(points[best + 1]), float(ends[best]), int(found.sums[:, 2].sum()), points, ends
    )


def _likely(found: Sequence[Bins]) -> list[Run]:
    """Return the bins that can hold the maximum, neighbours together."""
    floor = max(float(bins.ends.max()) for bins in found) - TOLERANCE
    runs = []
    for i, bins in enumerate(found):
        at = np.flatnonzero(bins.ends[:-1] + bins.sums[:, 1] >= floor)
        together = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
        runs += [Run(i, int(own[0]), int(own[-1]) + 1) for own in together if len(own)]
    return runs


def _place(span: Span, bin_number: int) -> float:
    return span[0] + (span[1] - span[0]) * (bin_number * 2.0**-BIN_BITS)


def _merged(spans: list[Span]) -> list[Span]:
    """Return spans that cover these, not too many: those with the smallest gaps between them are joined."""
    spans = sorted(spans)
    while len(spans) > MOST_SPANS:
        gaps = [after[0] - before[1] for before, after in itertools.pairwise(spans)]
        at = int(np.argmin(gaps))
        spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]
    return spans
