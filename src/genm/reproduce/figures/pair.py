"""Two rankers and the line of weights between them: what the paper's first figures are drawn over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genm._math.exact.line_search import LineProfile, line_profile
from genm._math.parallel import over_items
from genm.align import Aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import Measure
from genm.learn.objectives import PAPER_BETA, Problem
from genm.learn.tasks import tasks_of

Array = NDArray[np.float64]

PAPER_PAIR = ("ldi", "plsi")
"""The two rankers of the paper's figures in small letters, the first one's weight on the axis."""
STEPS = 1000
"""The paper's step is 0.001."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The exact MAP of two rankers at every step of the first one's weight."""

    rankers: tuple[str, str]
    aligned: Aligned
    problem: Problem
    weight: Array
    exact: Array

    @property
    def best(self) -> int:
        """Which step has the highest MAP; the first among equals."""
        return int(np.argmax(self.exact))

    def smoothed(self, beta: float) -> Array:
        """Return the objective of Problem P2 at every step."""
        problem = self.problem.with_beta(beta)
        return np.array(over_items(lambda w: problem.value(_both(w)), self.weight.tolist()))

    def steps(self) -> LineProfile:
        """Return MAP as the step function that it is, with every swap of two documents on the line."""
        kept = self.problem.kept
        tasks = tasks_of(self.aligned.select(kept), Measure("AP"))
        return line_profile(tasks, _both(0.0), np.array([1.0, -1.0]), 0.0, 1.0, whole=True)


def pair_of(aligned: Aligned) -> Pair:
    """Return the paper's two rankers, or the last two that there are, and their MAP along the line."""
    if len(aligned.rankers) < 2:
        raise InputError(f"figures: expected at least two rankers; found {', '.join(aligned.rankers) or 'none'}.")
    known = {name.lower(): name for name in aligned.rankers}
    last = (aligned.rankers[-1], aligned.rankers[-2])
    names = (known[PAPER_PAIR[0]], known[PAPER_PAIR[1]]) if known.keys() >= set(PAPER_PAIR) else last
    two = select_rankers(aligned, names)
    problem = Problem(two, beta=PAPER_BETA)
    weight = np.arange(STEPS + 1) / STEPS
    exact = np.array(over_items(lambda w: problem.exact(_both(w)), weight.tolist()))
    return Pair(names, two, problem, weight, exact)


def _both(weight: float) -> Array:
    return np.array([weight, 1.0 - weight])
