"""Two-fold cross-validation over the judged queries, over several seeded splits, for every method."""

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from genm._math.compiled import over_items
from genm._math.folds import fold_of_queries
from genm._math.weighted import weighted_sum
from genm.align import Aligned
from genm.evaluate import AlignedEvaluator, Measure
from genm.evidence import BEST_SINGLE
from genm.learn import Fuser
from genm.learn.problem import Beta, Problem
from genm.progress import Progress, silent
from genm.records import Note
from genm.reproduce.methods import Learn, Training, kind_of, training
from genm.reproduce.results import MEASURES, RECALL_LEVELS, Kind, MethodResult

Array = NDArray[np.float64]

FOLDS = 2


class Trial:
    """One collection's aligned runs under the protocol: the same folds for every method."""

    def __init__(
        self, aligned: Aligned, *, splits: int, seed: int, beta: Beta, progress: Progress = silent
    ) -> None:
        self.aligned, self.progress = aligned, progress
        self.fold = np.array([fold_of_queries(len(aligned.queries), FOLDS, seed + s) for s in range(splits)])
        """(splits, queries)"""
        self.problem = Problem(aligned, beta=beta)
        measures = [measure for _, measure in MEASURES] + [Measure("IPrec", recall=r) for r in RECALL_LEVELS]
        self._evaluator = AlignedEvaluator(aligned, measures)

    def fixed(self, scores: Mapping[str, Array], kind: Kind) -> dict[str, MethodResult]:
        """Measure rows of scores that no split can change."""
        found = over_items(self._evaluator.values, scores.values())
        nothing = np.zeros((0, 0, len(self.aligned.rankers))), np.zeros((0, 0))
        return {
            name: MethodResult(name, kind, values[None, :, :3], values[None, :, 3:].mean(axis=1), *nothing)
            for name, values in zip(scores, found, strict=True)
        }

    def singles(self) -> dict[str, MethodResult]:
        """Measure every ranker alone, and the one that is best in training."""
        columns = {
            name: np.ascontiguousarray(self.aligned.raw[:, k]) for k, name in enumerate(self.aligned.rankers)
        }
        alone = self.fixed(columns, "single")
        return alone | {BEST_SINGLE: self._best_single(list(alone.values()))}

    def _best_single(self, alone: Sequence[MethodResult]) -> MethodResult:
        n = len(alone)
        weights = np.zeros((*self.fold.shape[:1], FOLDS, n))
        train = np.zeros(weights.shape[:2])
        table = np.array([single.values[0, :, 0] for single in alone])
        for s, fold in enumerate(self.fold):
            for f in range(FOLDS):
                reached = table[:, fold != f].mean(axis=1)
                best = int(np.argmax(reached))
                weights[s, f, best], train[s, f] = 1.0, reached[best]
        return self._measured(BEST_SINGLE, "baseline", weights, train, ())

    def unsupervised(self, fusers: Mapping[str, Fuser]) -> dict[str, MethodResult]:
        """Measure fusers that were fitted on all queries without their labels."""
        values = over_items(self._evaluator.values, [fuser.weights_ for fuser in fusers.values()])
        return {
            name: MethodResult(
                name, "unsupervised", found[None, :, :3], found[None, :, 3:].mean(axis=1),
                fuser.weights_[None, None, :], np.zeros((0, 0)), getattr(fuser, "notes_", ()),
            )
            for (name, fuser), found in zip(fusers.items(), values, strict=True)
        }  # fmt: skip

    def supervised(self, learners: Mapping[str, Learn]) -> dict[str, MethodResult]:
        """Learn without each fold of each split, and measure on it."""
        jobs = [(s, f) for s in range(len(self.fold)) for f in range(FOLDS)]
        counter = _Counter("learning", len(jobs) * len(learners), self.progress)

        def learn(job: tuple[int, int]) -> list[tuple[Array, float, bool]]:
            s, f = job
            fold = training(self.problem, self.aligned, np.flatnonzero(self.fold[s] != f))
            return [counter.count(_learned(one, fold)) for one in learners.values()]

        found = over_items(learn, jobs)
        results = {}
        for m, name in enumerate(learners):
            weights = np.array([row[m][0] for row in found]).reshape(len(self.fold), FOLDS, -1)
            train = np.array([row[m][1] for row in found]).reshape(len(self.fold), FOLDS)
            short = sum(not row[m][2] for row in found)
            notes = (Note("stopped-early", short, f"{short} of {len(jobs)} fits stopped at their limit."),)
            results[name] = self._measured(name, kind_of(name), weights, train, notes if short else ())
        return results

    def _measured(
        self, name: str, kind: Kind, weights: Array, train: Array, notes: tuple[Note, ...]
    ) -> MethodResult:
        values = np.array(over_items(self._held_out, list(zip(self.fold, weights, strict=True))))
        return MethodResult(name, kind, values[:, :, :3], values[:, :, 3:].mean(axis=1), weights, train, notes)

    def _held_out(self, split: tuple[NDArray[np.int64], Array]) -> Array:
        """Return (queries, measures) under weights that each query had no part in."""
        fold, weights = split
        scores = weighted_sum(self.aligned.scores, weights[0])
        for f in range(1, FOLDS):
            rows = np.repeat(fold == f, np.diff(self.aligned.starts))
            np.copyto(scores, weighted_sum(self.aligned.scores, weights[f]), where=rows)
        return self._evaluator.values(scores)


def _learned(learn: Learn, fold: Training) -> tuple[Array, float, bool]:
    fuser = learn(fold)
    return fuser.weights_, fold.problem.exact(fuser.weights_), fuser.converged_


class _Counter:
    """Counts what several threads finish."""

    def __init__(self, task: str, total: int, progress: Progress) -> None:
        self._task, self._total, self._progress = task, total, progress
        self._done, self._lock = 0, threading.Lock()
        progress(task, 0, total)

    def count(self, done: tuple[Array, float, bool]) -> tuple[Array, float, bool]:
        with self._lock:
            self._done += 1
            self._progress(self._task, self._done, self._total)
        return done
