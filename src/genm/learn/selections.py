"""What selections of the training queries say, without measuring or climbing everything again for each."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import smooth_ap
from genm._math.linear_algebra import dot
from genm._math.simplex_optimizers import Ascent, quasi_newton
from genm._math.tiles import mean
from genm.learn.objectives import Problem
from genm.learn.scorer import Scorer

Array = NDArray[np.float64]


class Simple(NamedTuple):
    """Every ranker alone and uniform weights, measured once, for any selection of the queries."""

    weights: Array
    """(K + 1, K): the K single rankers, then uniform weights."""
    values: Array
    """(K + 1, queries)."""
    query_weights: Array

    @classmethod
    def of(cls, scorer: Scorer, n_rankers: int) -> "Simple":
        """Measure them."""
        weights = np.vstack([np.eye(n_rankers), np.full((1, n_rankers), 1.0 / n_rankers)])
        return cls(weights, np.array([scorer.per_query(one) for one in weights]), scorer.query_weights)

    def select(self, queries: NDArray[np.integer]) -> "Simple":
        """Return what some of the queries say."""
        return Simple(self.weights, self.values[:, queries], self.query_weights[queries])

    def means(self) -> list[float]:
        """Return the measure of each, as the scorer takes its mean."""
        total = self.query_weights.sum()
        return [dot(self.query_weights, values) / total for values in self.values]

    @property
    def targets(self) -> dict[str, Array]:
        """Uniform weights and those of the ranker that is best on these queries."""
        return {"uniform": self.weights[-1], "single": self.weights[int(np.argmax(self.means()[:-1]))]}


class Nearby:
    """Climbs of selections of the queries that begin where the climb of all of them ended.

    What the folds are for is how far the optimum moves when queries are left out, and it moves little: from its
    curvature a step or two lead there. The first derivatives, those of the common start, are computed once.
    """

    def __init__(self, problem: Problem, end: Ascent) -> None:
        self._problem, self._end = problem, end
        self._begun = smooth_ap(problem.tiles, end.alpha, problem.beta, order=1, smooth_j=problem.smooth_j)

    def __call__(self, queries: NDArray[np.integer], *, tol: float, max_iter: int) -> Ascent:
        """Return where the climb of these queries ends."""
        problem, start = self._problem.select(queries), self._end.alpha
        value, slope = (
            mean(problem.tiles, per_query[queries]) for per_query in (self._begun.value, self._begun.gradient)
        )

        def gradient(weights: Array) -> tuple[float, Array]:
            return (float(value), slope) if weights.tobytes() == start.tobytes() else problem.gradient(weights)

        return quasi_newton(gradient, start, tol=tol, max_iter=max_iter, curvature=self._end.curvature)
