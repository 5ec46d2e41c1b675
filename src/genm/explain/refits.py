"""Weights for every subset of the rankers, learned again and again on the same queries, with the work shared.

Runs are aligned once and stored once for the kernels. A climb begins at the weights that all rankers got together
on the same queries, with the curvature that was found there. What is learned follows `AutoFuser`: the smoothed MAP,
or the exact measure from there, then held back towards simple weights as far as queries that were not learned from
advise. Nothing that a climb begins at, or that holds weights back, has seen the queries they are measured on.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from genm._math.folds import fold_of_queries
from genm._math.linear_algebra import dot, times
from genm._math.parallel import over_items
from genm._math.simplex_optimizers import Ascent, as_distribution, quasi_newton
from genm.align import Aligned
from genm.errors import InputError
from genm.evaluate import Measure
from genm.explain.views import View, Views, members_of
from genm.learn.auto import CLOSE_ENOUGH, SHRINKAGE, UNLESS_SHOWN, Shrunk, clearly_best, hold_back, shrink
from genm.learn.scorer import Scorer, direct_search

Array = NDArray[np.float64]

ROUGHLY = 5e-4
"""What stands for CLOSE_ENOUGH with many rankers' subsets: their values change by less than .001 on average."""
CHOOSE_UP_TO = 8
"""Rankers up to which every subset chooses how far to hold back; of more, all do as the whole does in that fold.

The choice takes two thirds of the time, and subsets double with every ranker."""
WAYS = (*(Shrunk("uniform", a) for a in SHRINKAGE), *(Shrunk("single", a) for a in SHRINKAGE[1:]))

Left = tuple[int, ...]
"""The folds that are left out while learning: one, or two to choose how far to hold back."""


class _Task(NamedTuple):
    """A subset, made ready to be learned on any of the queries."""

    subset: int
    view: View
    even: Array
    """What uniform weights reach on every query."""


class _Simple(NamedTuple):
    """The simple weights for some of the queries, and what they reach there."""

    weights: dict[str, Array]
    reached: dict[str, float]

    def before(self, train: View) -> Scorer:
        """Return a scorer of these queries that knows what the simple weights reach."""
        return cast(
            "Scorer", _Informed(train, {self.weights[at].tobytes(): self.reached[at] for at in self.weights})
        )


class _Informed(NamedTuple):
    train: View
    known: dict[bytes, float]

    def mean(self, weights: Array) -> float:
        found = self.known.get(weights.tobytes())
        return self.train.mean(weights) if found is None else found


class SharedRefits:
    """Held-out values of subsets, each learned on the queries outside a fold and measured inside it."""

    def __init__(
        self, aligned: Aligned, measure: Measure, *, folds: int = 5, seed: int = 0, hold_back: bool = True
    ) -> None:
        self._views, self._hold_back = Views(aligned, measure), hold_back
        self._n_queries, self._kept = len(aligned.queries), self._views.problem.kept
        n_kept, n_rankers = len(self._kept), len(aligned.rankers)
        if n_kept < 2:
            raise InputError(
                f"{n_kept} query with a relevant document: expected at least 2, to learn from one and measure on "
                f"another. Judge more queries."
            )
        self._n_folds = min(folds, n_kept)
        fold = fold_of_queries(n_kept, self._n_folds, seed)  # of those that teach, so that no fold is empty
        self._inside = [np.flatnonzero(fold == f) for f in range(self._n_folds)]
        lefts: list[Left] = [(f,) for f in range(self._n_folds)]
        if hold_back and self._n_folds > 2:
            lefts += combinations(range(self._n_folds), 2)
        self._outside = {left: np.flatnonzero(~np.isin(fold, left)) for left in lefts}
        self._shares = self._views.scorer.query_weights
        self._alone = np.array([self._views.of(1 << k).per_query(np.ones(1)) for k in range(n_rankers)])
        self._everyone = (1 << n_rankers) - 1
        self._chooses = n_rankers <= CHOOSE_UP_TO
        self._whole: dict[Left, Ascent] = {}
        """What all rankers together learned."""
        self._ways: list[Shrunk] = []
        """How far that is held back, fold by fold."""

    def values(self, subsets: Sequence[int]) -> list[Array]:
        """Return for each subset the held-out value of every query; it depends on nothing that was asked before."""
        if not self._whole:  # what all rankers learn comes first: all others begin there
            whole = self._prepare(self._everyone)
            self._whole = self._learn([whole], list(self._outside))[0]
            if self._hold_back:
                self._ways = over_items(lambda f: self._way(whole, self._whole, f), range(self._n_folds))
        tasks = over_items(self._prepare, subsets)
        jobs = zip(
            tasks,
            self._learn(tasks, [left for left in self._outside if self._chooses or len(left) == 1]),
            strict=True,
        )
        return over_items(lambda job: self._held_out(*job), jobs)

    def _prepare(self, subset: int) -> _Task:
        view, n = self._views.of(subset), subset.bit_count()
        even = view.per_query(np.full(n, 1.0 / n)) if n > 1 else self._alone[members_of(subset)[0]]
        return _Task(subset, view, even)

    def _learn(self, tasks: Sequence[_Task], lefts: list[Left]) -> list[dict[Left, Ascent]]:
        """Return what each subset of several learns, whichever folds are left out."""
        found: list[dict[Left, Ascent]] = [{} for _ in tasks]
        for n_left in (2, 1):  # where one fold is left out, climbs begin at what two left out have shown
            jobs = [
                (number, left)
                for number, task in enumerate(tasks)
                for left in lefts
                if len(left) == n_left and task.subset.bit_count() > 1
            ]
            ends = over_items(lambda job: self._climb(tasks[job[0]], job[1], found[job[0]]), jobs)
            for (number, left), end in zip(jobs, ends, strict=True):
                found[number][left] = end
        return found

    def _climb(self, task: _Task, left: Left, before: dict[Left, Ascent]) -> Ascent:
        """Return the best weights for the queries outside some folds, over-fitted or not."""
        whole = self._whole.get(left)
        if whole is not None and task.subset == self._everyone:
            return whole
        train, simple = task.view.select(self._outside[left]), self._simple(task, self._outside[left])
        shown = [end.alpha for folds, end in before.items() if set(left) < set(folds)]
        starts, curvature = [np.mean(shown, axis=0)] if shown else [], None
        if whole is not None:
            members = members_of(task.subset)
            starts += [] if shown else [as_distribution(whole.alpha[members])]
            if whole.curvature is not None:
                curvature = whole.curvature[np.ix_(members, members)]
        known = [(simple.reached["uniform"], simple.weights["uniform"])]
        known += [(train.mean(weights), weights) for weights in starts]
        begun = max(known, key=_value)[1]
        tol = CLOSE_ENOUGH if self._chooses or whole is None else ROUGHLY
        end = quasi_newton(train.gradient, begun, tol=tol, max_iter=100, curvature=curvature)
        known += [(train.mean(end.alpha), end.alpha), (simple.reached["single"], simple.weights["single"])]
        best = max(known, key=_value)[1]
        if not task.view.is_smoothed:
            best = direct_search(train.as_scorer, best, steps=(0.1, 0.05, 0.02))
        return replace(end, alpha=best)

    def _simple(self, task: _Task, queries: NDArray[np.intp]) -> _Simple:
        """Return uniform weights and those of the ranker that is best on these queries."""
        n, members = task.subset.bit_count(), members_of(task.subset)
        share = self._shares[queries] / self._shares[queries].sum()
        alone = times(self._alone[members][:, queries], share)
        best = int(np.argmax(alone))
        return _Simple(
            {"uniform": np.full(n, 1.0 / n), "single": np.eye(n)[best]},
            {"uniform": dot(task.even[queries], share), "single": float(alone[best])},
        )

    def _held_out(self, task: _Task, learned: dict[Left, Ascent]) -> Array:
        """Return the measure of every query of `aligned`; one without a relevant document counts 0."""
        values = np.zeros(self._n_queries)
        if task.subset.bit_count() == 1:
            values[self._kept] = task.even
            return values
        for f, inside in enumerate(self._inside):
            weights = learned[(f,)].alpha
            if self._hold_back:
                outside = self._outside[(f,)]
                simple, train = self._simple(task, outside), task.view.select(outside)
                way = self._way(task, learned, f) if self._chooses else self._ways[f]
                weights = hold_back(weights, way, simple.weights, simple.before(train))
            values[self._kept[inside]] = task.view.select(inside).per_query(weights)
        return values

    def _way(self, task: _Task, learned: dict[Left, Ascent], f: int) -> Shrunk:
        """Return how far to hold back for fold f: what did best on the others, learned without both."""
        if self._n_folds < 3:
            return UNLESS_SHOWN
        reached = np.zeros((len(WAYS), len(self._kept)))
        for other, inside in enumerate(self._inside):
            if other == f:
                continue
            left = (min(f, other), max(f, other))
            simple, test = self._simple(task, self._outside[left]), task.view.select(inside)
            single = members_of(task.subset)[int(simple.weights["single"].argmax())]
            for number, way in enumerate(WAYS):
                if way.amount < 1.0:
                    found = test.per_query(shrink(learned[left].alpha, way, simple.weights))
                else:
                    found = (task.even if way.target == "uniform" else self._alone[single])[inside]
                reached[number, inside] = found
        outside = self._outside[(f,)]
        return WAYS[clearly_best(reached[:, outside], self._shares[outside], WAYS.index(UNLESS_SHOWN))]


def _value(known: tuple[float, Array]) -> float:
    return known[0]
