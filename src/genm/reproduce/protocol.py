"""Two-fold cross-validation over the judged queries, over several seeded splits, for every method."""

import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.folds import fold_of_queries
from genm._math.parallel import over_items
from genm.align import Aligned
from genm.evaluate import AlignedEvaluator, Measure
from genm.evidence import BEST_SINGLE
from genm.learn.objectives import Beta, Problem
from genm.learn.ranker_quality import fake_labels
from genm.progress import Progress, silent
from genm.records import Note
from genm.reproduce.measuring import Measuring
from genm.reproduce.methods import Learn, Learned, Training, kind_of, training
from genm.reproduce.results import MEASURES, RECALL_LEVELS, Kind, MethodResult
from genm.reproduce.tasks import Task, run_all

Array = NDArray[np.float64]

FOLDS = 2


class Fit(NamedTuple):
    """What one method learned without one fold."""

    weights: Array
    train: float
    """MAP on the queries learned from."""
    converged: bool
    values: Array
    """(queries of the fold, measures)."""


class Trial:
    """One collection's aligned runs under the protocol: the same folds for every method."""

    def __init__(
        self, aligned: Aligned, *, splits: int, seed: int, beta: Beta, progress: Progress = silent
    ) -> None:
        self.aligned, self.progress = aligned, progress
        self.fold = np.array([fold_of_queries(len(aligned.queries), FOLDS, seed + s) for s in range(splits)])
        """(splits, queries)"""
        self.problem = Problem(aligned, beta=beta)
        self.marks = fake_labels(aligned)
        """What each ranker would call relevant: all that the methods without labels have."""
        measures = [measure for _, measure in MEASURES] + [Measure("IPrec", recall=r) for r in RECALL_LEVELS]
        self._evaluator, self._measuring = AlignedEvaluator(aligned, measures), Measuring(measures)

    def fixed(self, scores: Mapping[str, Array], kind: Kind) -> dict[str, MethodResult]:
        """Measure rows of scores that no split can change."""
        found = over_items(self._evaluator.values, scores.values())
        return {name: self._result(name, kind, [values]) for name, values in zip(scores, found, strict=True)}

    def singles(self) -> dict[str, MethodResult]:
        """Measure every ranker alone, and the one that is best in training."""
        raw, names = self.aligned.raw, self.aligned.rankers
        columns = [np.ascontiguousarray(raw[:, k]) for k in range(len(names))]
        alone = np.array(over_items(self._evaluator.values, columns))
        found = {name: self._result(name, "single", [values]) for name, values in zip(names, alone, strict=True)}
        return found | {BEST_SINGLE: self._best_single(alone)}

    def _best_single(self, alone: Array) -> MethodResult:
        """Return the ranker that each training fold would choose, of (rankers, queries, measures) values."""
        weights = np.zeros((len(self.fold), FOLDS, len(alone)))
        train = np.zeros(weights.shape[:2])
        values = np.empty((len(self.fold), *alone.shape[1:]))
        for s, fold in enumerate(self.fold):
            for f in range(FOLDS):
                reached = alone[:, fold != f, 0].mean(axis=1)
                best = int(np.argmax(reached))
                weights[s, f, best], train[s, f] = 1.0, reached[best]
                values[s, fold == f] = alone[best, fold == f]
        return self._result(BEST_SINGLE, "baseline", values, weights, train)

    def unsupervised(self, fitted: Mapping[str, Learned]) -> dict[str, MethodResult]:
        """Measure what was fitted on all queries without their labels."""
        return {
            name: self._result(
                name, "unsupervised", [self._measuring.values(self.problem, one.weights_)],
                one.weights_[None, None, :], notes=getattr(one, "notes_", ()),
            )
            for name, one in fitted.items()
        }  # fmt: skip

    def supervised(self, learners: Mapping[str, Learn]) -> dict[str, MethodResult]:
        """Learn without each fold of each split, and measure on it."""
        tasks = self.tasks(learners)
        run_all(tasks)
        return self.collect(learners, tasks)

    def tasks(self, learners: Mapping[str, Learn]) -> list[Task[list[Fit]]]:
        """Return the work of `supervised`, a task for each fold of each split."""
        counter = _Counter("learning", self.fold.shape[0] * FOLDS * len(learners), self.progress)

        def task(s: int, f: int) -> Task[list[Fit]]:
            return Task(lambda: self._learn(learners, self.fold[s] == f, counter))

        return [task(s, f) for s in range(len(self.fold)) for f in range(FOLDS)]

    def _learn(self, learners: Mapping[str, Learn], held_out: NDArray[np.bool_], counter: "_Counter") -> list[Fit]:
        fold = training(self.problem, self.aligned, self.marks, np.flatnonzero(~held_out))
        test = self.problem.select(np.flatnonzero(held_out))
        return [counter.count(self._fit(learn, fold, test)) for learn in learners.values()]

    def _fit(self, learn: Learn, fold: Training, test: Problem) -> Fit:
        found = learn(fold)
        weights = found.weights_
        train, values = fold.problem.exact(weights), self._measuring.values(test, weights)
        return Fit(weights, train, found.converged_, values)

    def collect(self, learners: Mapping[str, Learn], tasks: Sequence[Task[list[Fit]]]) -> dict[str, MethodResult]:
        """Return the results of tasks that are done."""
        results = {}
        for m, name in enumerate(learners):
            fits = [task.value[m] for task in tasks]
            weights = np.array([fit.weights for fit in fits]).reshape(len(self.fold), FOLDS, -1)
            train = np.array([fit.train for fit in fits]).reshape(len(self.fold), FOLDS)
            values = np.empty((*self.fold.shape, fits[0].values.shape[1]))
            for i, fit in enumerate(fits):
                s, f = divmod(i, FOLDS)
                values[s, self.fold[s] == f] = fit.values
            short = sum(not fit.converged for fit in fits)
            notes = (Note("stopped-early", short, f"{short} of {len(fits)} fits stopped at their limit."),)
            results[name] = self._result(name, kind_of(name), values, weights, train, notes if short else ())
        return results

    def _result(
        self,
        name: str,
        kind: Kind,
        splits: Sequence[Array] | Array,
        weights: Array | None = None,
        train: Array | None = None,
        notes: tuple[Note, ...] = (),
    ) -> MethodResult:
        """Return the result of (splits, queries, measures) values."""
        values, nothing = np.asarray(splits), np.zeros((0, 0))
        weights = np.zeros((0, 0, len(self.aligned.rankers))) if weights is None else weights
        train = nothing if train is None else train
        return MethodResult(name, kind, values[:, :, :3], values[:, :, 3:].mean(axis=1), weights, train, notes)


class _Counter:
    """Counts what several threads finish."""

    def __init__(self, task: str, total: int, progress: Progress) -> None:
        self._task, self._total, self._progress = task, total, progress
        self._done, self._lock = 0, threading.Lock()
        progress(task, 0, total)

    def count(self, done: Fit) -> Fit:
        with self._lock:
            self._done += 1
            self._progress(self._task, self._done, self._total)
        return done
