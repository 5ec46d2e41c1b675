"""Weights for every subset of the rankers, learned again and again on the same queries, with the work shared.

Runs are aligned once and stored once for the kernels. A subset is the same store with the other rankers' weights
held at 0, unless documents leave with them; then it gets a store of its own. A climb begins at the weights that
all rankers got together. What is learned follows `AutoFuser`: the smoothed MAP, or the exact measure from there,
then held back towards simple weights as far as queries that were not learned from advise.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from genm._math.ascent import as_distribution, quasi_newton
from genm._math.compiled import over_items
from genm._math.folds import fold_of_queries
from genm.align import Aligned, select_rankers
from genm.auto import SHRINKAGE, UNLESS_SHOWN, Shrunk, clearly_best, hold_back, shrink
from genm.errors import InputError
from genm.evaluate import Measure
from genm.learn.problem import Problem, beta_of
from genm.learn.scorer import Scorer, direct_search

Array = NDArray[np.float64]

CLOSE_ENOUGH = 1e-4
"""A step of a climb that gains less than this in smoothed MAP ends it: held-out values know no finer digits."""
WAYS = (*(Shrunk("uniform", a) for a in SHRINKAGE), *(Shrunk("single", a) for a in SHRINKAGE[1:]))

Left = tuple[int, ...]
"""The folds that are left out while learning: one, or two to choose how far to hold back."""


def members_of(subset: int) -> list[int]:
    """Return the rankers of a subset, which is an integer with a bit for each."""
    return [k for k in range(subset.bit_length()) if subset >> k & 1]


class _View(NamedTuple):
    """The training queries as some of the rankers see them."""

    problem: Problem
    scorer: Scorer
    columns: list[int]
    """Where the subset's weights stand among those that problem and scorer take."""
    n_columns: int

    def whole(self, weights: Array) -> Array:
        """Return weights for all columns: 0 for rankers outside the subset."""
        spread = np.zeros(self.n_columns)
        spread[self.columns] = weights
        return spread

    def gradient(self, weights: Array) -> tuple[float, Array]:
        value, slope = self.problem.gradient(self.whole(weights))
        return value, slope[self.columns]

    def per_query(self, weights: Array) -> Array:
        return self.scorer.per_query(self.whole(weights))

    def mean(self, weights: Array) -> float:
        return self.scorer.mean(self.whole(weights))

    @property
    def as_scorer(self) -> Scorer:
        """Itself, for those who ask a scorer for means: theirs is the subset's, in the subset's weights."""
        return cast("Scorer", self)

    @property
    def is_smoothed(self) -> bool:
        return self.scorer.is_smoothed

    def select(self, queries: NDArray[np.integer]) -> "_View":
        return self._replace(problem=self.problem.select(queries), scorer=self.scorer.select(queries))


class SharedRefits:
    """Held-out values of subsets, each learned on the queries outside a fold and measured inside it."""

    def __init__(
        self, aligned: Aligned, measure: Measure, *, folds: int = 5, seed: int = 0, hold_back: bool = True
    ) -> None:
        self._aligned, self._measure, self._hold_back = aligned, measure, hold_back
        self._problem = Problem(aligned, level=measure.rel)
        self._scorer = Scorer(aligned, self._problem, measure, measure.rel)
        n_kept = len(self._problem.kept)
        if n_kept < 2:
            raise InputError(
                f"{n_kept} query with a relevant document: expected at least 2, to learn from one and measure on "
                f"another. Judge more queries."
            )
        self._n_folds = min(folds, n_kept)
        self._fold = fold_of_queries(n_kept, self._n_folds, seed)  # of those that teach, so that no fold is empty
        n_rankers = len(aligned.rankers)
        self._alone = np.array([self._view(1 << k).per_query(np.ones(1)) for k in range(n_rankers)])
        self._everyone = (1 << n_rankers) - 1
        self._learned: dict[tuple[int, Left], Array] = {}

    def values(self, subsets: Sequence[int]) -> list[Array]:
        """Return for each subset the held-out value of every query; it depends on nothing that was asked before."""
        lefts: list[Left] = [(f,) for f in range(self._n_folds)]
        if self._hold_back and self._n_folds > 2:
            lefts += combinations(range(self._n_folds), 2)
        views = {subset: self._view(subset) for subset in {*subsets, self._everyone}}
        for todo in ([self._everyone], subsets):  # the whole comes first: all others begin there
            jobs = [
                (s, left) for s in todo if s.bit_count() > 1 for left in lefts if (s, left) not in self._learned
            ]
            found = over_items(lambda job: self._learn(views[job[0]], *job), jobs)
            self._learned.update(zip(jobs, found, strict=True))
        return over_items(lambda subset: self._held_out(views[subset], subset), subsets)

    def _view(self, subset: int) -> _View:
        aligned, columns = self._aligned, members_of(subset)
        if aligned.retrieved[:, columns].any(axis=1).all():
            # nothing leaves: one and the same store serves, and only the sharpness follows the subset's scale
            narrow = replace(
                aligned,
                rankers=tuple(aligned.rankers[k] for k in columns),
                scores=np.ascontiguousarray(aligned.scores[:, columns]),
            )
            problem = self._problem.with_beta(beta_of(narrow))
            return _View(problem, self._scorer, columns, len(aligned.rankers))
        own = select_rankers(aligned, [aligned.rankers[k] for k in columns])
        problem = Problem(own, level=self._measure.rel)
        scorer = Scorer(own, problem, self._measure, self._measure.rel)
        return _View(problem, scorer, list(range(len(columns))), len(columns))

    def _learn(self, view: _View, subset: int, left: Left) -> Array:
        """Return the best weights for the queries outside some folds, over-fitted or not."""
        inside = np.flatnonzero(~np.isin(self._fold, left))
        train, simple = view.select(inside), self._simple(subset, inside)
        known = [
            (train.mean(weights), weights) for weights in (simple["uniform"], *self._from_everyone(subset, left))
        ]
        begun = max(known, key=_value)[1]
        end = quasi_newton(train.gradient, begun, tol=CLOSE_ENOUGH, max_iter=100).alpha
        known += [(train.mean(end), end), (self._alone_mean(subset, inside).max(), simple["single"])]
        best = max(known, key=_value)[1]
        return best if view.is_smoothed else direct_search(train.as_scorer, best, steps=(0.1, 0.05, 0.02))

    def _from_everyone(self, subset: int, left: Left) -> list[Array]:
        """Return the weights that all rankers got together, without those outside the subset."""
        whole = self._learned.get((self._everyone, left))
        return [] if whole is None else [as_distribution(whole[members_of(subset)])]

    def _simple(self, subset: int, inside: NDArray[np.integer]) -> dict[str, Array]:
        """Return uniform weights and those of the ranker that is best on these queries."""
        n, best = subset.bit_count(), int(np.argmax(self._alone_mean(subset, inside)))
        return {"uniform": np.full(n, 1.0 / n), "single": np.eye(n)[best]}

    def _alone_mean(self, subset: int, inside: NDArray[np.integer]) -> Array:
        """Return what each ranker of the subset reaches by itself on these queries."""
        weights = self._scorer.query_weights[inside]
        return np.asarray(self._alone[members_of(subset)][:, inside] @ weights / weights.sum())

    def _held_out(self, view: _View, subset: int) -> Array:
        """Return the measure of every query of `aligned`; one without a relevant document counts 0."""
        values = np.zeros(len(self._aligned.queries))
        kept = self._problem.kept
        for f in range(self._n_folds):
            inside, outside = np.flatnonzero(self._fold != f), np.flatnonzero(self._fold == f)
            weights = np.ones(1) if subset.bit_count() == 1 else self._weights(view, subset, f, inside)
            values[kept[outside]] = view.select(outside).per_query(weights)
        return values

    def _weights(self, view: _View, subset: int, f: int, inside: NDArray[np.intp]) -> Array:
        """Return the weights for one fold: learned outside it, and held back as queries outside it advise."""
        learned = self._learned[subset, (f,)]
        if not self._hold_back:
            return learned
        way = self._way(view, subset, f, inside)
        train = view.select(inside)
        return hold_back(learned, way, self._simple(subset, inside), train.as_scorer)

    def _way(self, view: _View, subset: int, f: int, inside: NDArray[np.intp]) -> Shrunk:
        """Return how far to hold back for fold f: what did best on the others, learned without both."""
        if self._n_folds < 3:
            return UNLESS_SHOWN
        reached = np.zeros((len(WAYS), len(self._fold)))
        for other in range(self._n_folds):
            if other == f:
                continue
            left, tested = (min(f, other), max(f, other)), np.flatnonzero(self._fold == other)
            learned = self._learned[subset, left]
            simple = self._simple(subset, np.flatnonzero(~np.isin(self._fold, left)))
            test = view.select(tested)
            reached[:, tested] = [test.per_query(shrink(learned, way, simple)) for way in WAYS]
        shares = self._scorer.query_weights[inside]
        return WAYS[clearly_best(reached[:, inside], shares, WAYS.index(UNLESS_SHOWN))]


def _value(known: tuple[float, Array]) -> float:
    return known[0]
