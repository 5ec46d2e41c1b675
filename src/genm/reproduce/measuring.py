"""The paper's measures of any weights, from the ranks of the relevant documents alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genm._math.exact_ap import exact_ranks
from genm._math.measures import measure_values
from genm.evaluate import Measure
from genm.evaluate.scoring import plan_measures
from genm.learn.objectives import Problem

Array = NDArray[np.float64]


class Measuring:
    """Measures that look at nothing but where relevant documents stand: AP, P, R, RR, Rprec, Success and IPrec.

    They equal what `AlignedEvaluator` gives, which looks at every row: here a tile is read only where its bounds
    leave a rank open.
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self._plan = plan_measures(tuple(measures))

    def values(self, problem: Problem, weights: Array) -> Array:
        """Return the (queries, measures) values of the problem's queries."""
        tiles, found = problem.tiles, exact_ranks(problem.tiles, weights)
        starts = np.zeros(tiles.n_queries + 1, np.int64)
        np.cumsum(tiles.n_relevant, out=starts[1:])  # those that nobody retrieved included: they have no rank
        n_hits, judged = np.diff(found.starts), np.ones(int(starts[-1]), np.int32)
        ranks = np.zeros(len(judged), np.int64)
        ranks[np.arange(len(found.ranks)) + np.repeat(starts[:-1] - found.starts[:-1], n_hits)] = found.ranks
        depth = tiles.rows[:, 1] - tiles.rows[:, 0]
        return measure_values(*self._plan, starts, judged, (n_hits, ranks, judged), depth)
