"""The user's measure of any weights on the training queries."""

import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import weighted_mean
from genm.align import Aligned
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, Measure
from genm.learn.objectives import Problem

Array = NDArray[np.float64]


class Scorer:
    """Exact values of one measure, per training query; average precision takes the quick way."""

    def __init__(self, aligned: Aligned | None, problem: Problem, measure: Measure, level: int) -> None:
        self.measure = with_level(measure, level)
        self._problem = problem
        self._quick = self.measure == Measure("AP", rel=self.measure.rel)
        self.query_weights = problem.tiles.query_weights
        if not self._quick:
            if aligned is None:
                raise InputError(f"measure {self.measure}: expected aligned runs. Only AP does without.")
            whole = len(problem.kept) == len(aligned.queries)
            self._aligned = aligned if whole else aligned.select(problem.kept)
            self._evaluator = AlignedEvaluator(self._aligned, [self.measure])

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective climbs this very measure."""
        return self._quick

    def per_query(self, weights: Array) -> Array:
        """Return the measure of every training query."""
        if self._quick:
            return self._problem.exact_per_query(weights)
        return self._evaluator.values(weights)[:, 0]

    def mean(self, weights: Array) -> float:
        """Return the measure's mean over the training queries."""
        return weighted_mean(self.per_query(weights), self.query_weights)

    def select(self, queries: NDArray[np.integer]) -> "Scorer":
        """Return the scorer of some of the training queries."""
        other = copy.copy(self)
        other._problem = self._problem.select(queries)
        other.query_weights = self.query_weights[queries]
        if not self._quick:
            other._aligned = self._aligned.select(queries)
            other._evaluator = AlignedEvaluator(other._aligned, [self.measure])
        return other


def with_level(measure: Measure, level: int) -> Measure:
    """Return the measure with `level` as its lowest relevant grade, where it has one and none was given."""
    takes_no_level = measure.name in ("nDCG", "Judged")
    return measure if takes_no_level or measure.rel != 1 else replace(measure, rel=level)


def direct_search(scorer: Scorer, start: Array, *, steps: tuple[float, ...] = (0.2, 0.1, 0.05, 0.02)) -> Array:
    """Climb the measure itself by moving weight from one ranker to another, ever less at a time.

    For measures that have no smoothed form here. Deterministic: pairs are tried in order, the first gain is
    taken.
    """
    weights, reached, n = start, scorer.mean(start), len(start)
    for step in steps:
        moved = True
        while moved:
            moved = False
            for i in range(n):
                for j in range(n):
                    amount = min(step, weights[i])
                    if i == j or amount <= 0.0:
                        continue
                    trial = weights.copy()
                    trial[i] -= amount
                    trial[j] += amount
                    value = scorer.mean(trial)
                    if value > reached + 1e-12:
                        weights, reached, moved = trial, value, True
    return weights
