"""How far weights can move before much is lost: the region around an optimum, and its centre.

The exact optimum of the training queries is often an interval narrower than any weight is known. What can be relied
on is the plateau around it: all weights that lose at most so much. It is measured along the lines on which one
ranker's weight changes and the others keep their proportions.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.exact.line_search import NARROWEST, TOLERANCE, Room, line_profile
from genm._math.exact.rank_gains import Problem

Array = NDArray[np.float64]

ROUNDS = 2
"""How often the centre is moved along every ranker's line: the second time starts from where the first one led."""


class Plateau(NamedTuple):
    """For every ranker, between which weights it may stand, the others in proportion, at no more than `loss`."""

    loss: float
    """What may be lost against the best weights found."""
    low: Array
    """(K) the smallest weight of each ranker; what lies between `low` and `high` has no gap."""
    high: Array
    """(K) the largest."""

    @property
    def width(self) -> Array:
        """How much each ranker's weight may vary: a wide interval says that the weight hardly matters."""
        return self.high - self.low


def plateau_around(problem: Problem, weights: Array, floor: float, loss: float) -> Plateau:
    """Return the plateau around `weights`: along each ranker's line, as far as the measure keeps to `floor`."""
    room: Room = []
    spans = [_span(problem, weights, k, floor, room) for k in range(len(weights))]
    return Plateau(loss, np.array([low for low, _ in spans]), np.array([high for _, high in spans]))


def centre_of_plateau(problem: Problem, weights: Array, floor: float, value: Callable[[Array], float]) -> Array:
    """Return weights in the middle of the plateau: moved to the middle of one ranker's interval after another.

    The measure never falls below `floor`, as `value` measures it.
    """
    room: Room = []
    for _ in range(ROUNDS):
        for k in range(len(weights)):
            low, high = _span(problem, weights, k, floor, room)
            middle = 0.5 * (low + high)
            moved = (1.0 - middle) * others_of(weights, k)
            moved[k] = middle
            if value(moved) >= floor - TOLERANCE:  # rows that all but tie may fall the other way once rounded
                weights = moved
    return weights


def others_of(weights: Array, k: int) -> Array:
    """Return the weights without ranker k, in proportion; uniform ones if ranker k had everything."""
    others = weights.copy()
    others[k] = 0.0
    total = others.sum()
    if total > 0.0:
        return np.asarray(others / total)
    others[:] = 1.0 / max(len(weights) - 1, 1)
    others[k] = 0.0
    return others


def _span(problem: Problem, weights: Array, k: int, floor: float, room: Room) -> tuple[float, float]:
    """Return between which weights of ranker k the measure keeps to `floor`, without a gap around its own."""
    here = float(weights[k])
    if len(weights) == 1:
        return here, here
    others = others_of(weights, k)
    line = line_profile(problem, others, np.eye(len(weights))[k] - others, 0.0, 1.0, whole=True, room=room)
    narrow = np.diff(line.breakpoints) <= NARROWEST
    lost = (line.values < floor - TOLERANCE) & ~narrow
    at = min(max(int(np.searchsorted(line.breakpoints, here, side="right")) - 1, 0), len(lost) - 1)
    if lost[at]:  # these weights owe their value to an accidental tie, and the smallest change loses it
        return here, here
    before, after = np.flatnonzero(lost[:at]), np.flatnonzero(lost[at:])
    low = float(line.breakpoints[before[-1] + 1]) if len(before) else 0.0
    high = float(line.breakpoints[at + after[0]]) if len(after) else 1.0
    return min(low, here), max(high, here)
