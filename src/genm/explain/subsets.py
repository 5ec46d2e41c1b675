"""What every subset of the rankers reaches on queries that its weights were not learned from, with the work shared.

A subset is an integer with a bit for each ranker. Runs are aligned once and stored once for the kernels. The
view of a subset is the store of all rankers with the other weights fixed at 0, or a copy of its columns; documents
that only the other rankers returned are left out. Subsets learn as `AutoFuser` does, by the same functions: the
smoothed MAP, or the exact measure from there, then a shrinkage that cross-validation inside the training queries
chooses. To save time, optimisation starts from the weights and the curvature that all rankers together found on the
same training queries. With more than `CHOOSE_UP_TO` rankers, larger subsets share one pass of gradients between the
folds instead (`SharedRefits._slopes`). Weights of any sign are searched as two parts for each ranker, as
`SignedProblem` does it.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import cached_property
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import smooth_ap, smooth_map
from genm._math.linear_algebra import product as matrix_product
from genm._math.linear_algebra import row_products, weighted_mean
from genm._math.parallel import n_threads, over_items, threads_for
from genm._math.simplex_optimizers import Ascent, as_distribution, join_signs, quasi_newton, step_by_curvature
from genm._math.tiles import Thinner
from genm._typing import Floats
from genm.align import Aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import Measure
from genm.evidence.crossval import check_folds, measure_queries
from genm.evidence.intervals import fold_learning_variance
from genm.explain.processes import processes_for, values_by_processes, values_by_threads
from genm.learn import find_method, make_fuser
from genm.learn.auto import (
    FOLD_TOLERANCE,
    Shrinkage,
    Signs,
    SimpleWeights,
    WarmRestart,
    best_weights,
    choose_shrinkage,
    shrink,
    shrink_safely,
    softness_for,
)
from genm.learn.objectives import (
    GradientOfPart,
    Problem,
    Scorer,
    fold_of_queries,
    gradient_of_part,
    sharpness_for,
)
from genm.learn.starts import simple_starts
from genm.progress import Progress, silent

WINDOW = 8.0
"""Sigmoids further from their middle, in units of beta times score, count as 0 or 1 while learning.

They are within 0.0004 of that. The gradient changes in its fourth digit, and takes two thirds of the time."""

DEEP = 1000
"""Learning leaves out documents that no ranker has among its first so many; measuring leaves out none."""

COARSE_FOLD_TOLERANCE = 1e-3
"""Replaces FOLD_TOLERANCE for subsets of many rankers, whose searches start with long steps: half of the curvature.

Their values change by less than .001 on average."""
TRUSTED_GAIN = 0.01
"""A step of a subset of many rankers that promises less, at first order, is taken without evaluating it."""
STEP_FROM = 5
"""Rankers from which on a subset of many takes such steps; smaller ones count more in Shapley values."""
CHOSEN_SHARE = 0.75
"""How far the point where such a step begins is from uniform weights to those that a fold chose."""
STEPS = (0.1, 0.05, 0.02)
"""Steps of the direct search for measures without a smoothed form: fewer than `AutoFuser` takes."""
INNER_FOLDS = 5
"""Folds of the training queries that the shrinkage is chosen on, dealt once; `AutoFuser` deals them three times."""
MAX_ITER = 100
CHOOSE_UP_TO = 8
"""Up to so many rankers every subset chooses its own shrinkage; with more, all take that of the whole in the fold.

The choice takes two thirds of the time, and the number of subsets doubles with every ranker."""

NO_SHRINKAGE = Shrinkage("uniform", 0.0)

SHARED = ("auto", "newton")
"""Methods whose refits share work; the others learn every subset from scratch."""

FIXED_COST = 40_000
"""What a subset of any size costs in Python; with each row of the runs that is 1 more, in units of about 30 ns."""
SLOW = 10
"""How many times as much, at least, without the work that subsets of more than `CHOOSE_UP_TO` rankers save."""


def members_of(subset: int) -> list[int]:
    """Return the rankers of a subset."""
    return [k for k in range(subset.bit_length()) if subset >> k & 1]


class View(NamedTuple):
    """An `Objective`: some queries as some of the rankers see them.

    Weights are those of the subset alone; where they may have any sign, the two parts of each.
    """

    problem: Problem
    """The smoothed MAP; of long lists, over the documents near their tops."""
    scorer: Scorer
    columns: list[int]
    """Where the subset's weights stand among those that problem and scorer take."""
    n_columns: int
    signs: Signs = "positive"

    def whole(self, weights: Floats) -> Floats:
        """Return weights for all columns: 0 for rankers outside the subset."""
        spread = np.zeros(self.n_columns)
        spread[self.columns] = weights if self.signs == "positive" else join_signs(weights)
        return spread

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed MAP and its gradient (Eq. 16)."""
        if self.signs == "any":
            return self.average_gradient(*self.gradients(weights))
        problem = self.problem
        value, gradient = smooth_map(
            problem.tiles, self.whole(weights), problem.beta, window=WINDOW, in_eights=True
        )
        return value, gradient[self.columns]

    def gradients(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the smoothed average precision of every query and its gradient (Eq. 16)."""
        found = smooth_ap(self.problem.tiles, self.whole(weights), self.problem.beta, order=1, window=WINDOW)
        gradient = found.gradient[:, self.columns]
        return found.value, gradient if self.signs == "positive" else np.hstack([gradient, -gradient])

    def gradients_at(self, weights: Floats) -> GradientOfPart:
        """Return a function that gives mean and gradient at these weights for some of the queries."""
        return gradient_of_part(self, weights)

    def average_gradient(self, values: Floats, gradients: Floats) -> tuple[float, Floats]:
        """Return the means over the queries of what `gradients` returns."""
        return self.problem.average_gradient(values, gradients)

    def per_query(self, weights: Floats) -> Floats:
        """Return the exact measure of every query."""
        return self.scorer.per_query(self.whole(weights))

    def per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the exact measure of every query under each of several weights."""
        return self.scorer.per_query_each(np.array([self.whole(one) for one in weights]))

    def mean(self, weights: Floats) -> float:
        """Return the exact measure's mean."""
        return self.scorer.mean(self.whole(weights))

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective approximates this very measure."""
        return self.scorer.is_smoothed

    def select(self, queries: NDArray[np.integer]) -> "View":
        """Return the view of some of the queries."""
        return self._replace(problem=self.problem.select(queries), scorer=self.scorer.select(queries))


class Views:
    """Makes the views of one set of aligned queries."""

    def __init__(self, aligned: Aligned, measure: Measure, signs: Signs = "positive") -> None:
        self.aligned, self.measure, self.signs = aligned, measure, signs
        self.problem = Problem(aligned, level=measure.rel)
        self._softness = softness_for(len(aligned.rankers))  # that of all rankers, so that subsets compare
        self.scorer = Scorer(aligned, self.problem, measure, measure.rel)
        self._covariances = _covariances(aligned)
        self._gaps = _kinds_of_gaps(aligned.retrieved)
        """(kinds of rows that not everyone returned, K) who did not."""
        self._thinner = Thinner(self.problem.tiles) if len(self._gaps) and self.scorer.is_smoothed else None
        self._returned: NDArray[np.uint8] | None = None
        """(bytes, documents of the thinner) which rankers returned each, a bit for each ranker."""
        if self._thinner is not None:
            bits = np.packbits(aligned.retrieved[self._thinner.row], axis=1, bitorder="little")
            self._returned = np.ascontiguousarray(bits.T)
        self._near = self.problem
        if self._thinner is None and np.diff(aligned.starts).max(initial=0) > 2 * DEEP:
            everyone, thinner = list(range(len(aligned.rankers))), Thinner(self.problem.tiles)
            tiles, _ = thinner.thin(_near_the_top(aligned)[thinner.row], everyone)
            self._near = self.problem.with_rankers(everyone, tiles)

    def of(self, subset: int) -> View:
        """Return the view of a subset of the rankers."""
        aligned, columns = self.aligned, members_of(subset)
        leaves = bool(self._gaps[:, columns].all(axis=1).any())
        if leaves and not self.scorer.is_smoothed:
            own = select_rankers(aligned, [aligned.rankers[k] for k in columns])
            problem = Problem(own, level=self.measure.rel)
            problem = problem.with_beta(self._softness * problem.beta)
            return self._alone(problem, Scorer(own, problem, self.measure, self.measure.rel))
        if leaves and self._thinner is not None and self._returned is not None:
            kept = returned_by(self._returned, subset)
            tiles, variances = self._thinner.thin(kept, columns)
            problem = self.problem.with_rankers(columns, tiles)
            variances = np.ldexp(variances, 2 * tiles.exponent)
        else:
            # nothing leaves: one and the same store serves, and only the sharpness follows the subset's scale
            variances = self._covariances[:, columns][:, :, columns].sum(axis=(1, 2)) / len(columns) ** 2
            variances = np.maximum(variances, 0.0)  # rounding may leave constant scores a hair below
            is_narrow = 2 * len(columns) <= len(aligned.rankers) and self.scorer.is_smoothed
            if self._near is not self.problem or not is_narrow:
                problem = self._near.with_beta(self._softness * sharpness_for(variances))
                return View(problem, self.scorer, columns, len(aligned.rankers), self.signs)
            problem = self.problem.with_rankers(columns)  # reading many columns of 0 takes longer than a copy
        problem = problem.with_beta(self._softness * sharpness_for(variances))
        return self._alone(problem, Scorer(aligned, problem, self.measure, self.measure.rel))

    def _alone(self, problem: Problem, scorer: Scorer) -> View:
        return View(problem, scorer, list(range(len(problem.rankers))), len(problem.rankers), self.signs)


def returned_by(returned: NDArray[np.uint8], subset: int) -> NDArray[np.bool_]:
    """Return which documents some ranker of the subset returned; `returned` has a bit for each ranker."""
    kept = np.zeros(returned.shape[1], np.bool_)
    for number, byte in enumerate(returned):
        kept |= (byte & np.uint8(subset >> 8 * number & 0xFF)) != 0
    return kept


def _kinds_of_gaps(retrieved: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (kinds, K) who did not return a document, for the documents that not everyone returned."""
    gaps = ~retrieved[~retrieved.all(axis=1)]
    packed = np.packbits(gaps, axis=1)
    whole = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)  # integers are sorted faster than rows
    whole[:, : packed.shape[1]] = packed
    codes = whole.view(np.uint64)
    kinds = np.unique(codes[:, 0])[:, None] if codes.shape[1] == 1 else np.unique(codes, axis=0)
    return np.unpackbits(np.ascontiguousarray(kinds).view(np.uint8), axis=1, count=gaps.shape[1]) > 0


def _covariances(aligned: Aligned) -> Floats:
    """Return (queries of more than one document, K, K) how the rankers' scores vary together within a query."""
    found = []
    for begin, end in zip(aligned.starts[:-1].tolist(), aligned.starts[1:].tolist(), strict=True):
        if end - begin > 1:
            scores = aligned.scores[begin:end]
            apart = scores - scores.mean(axis=0)
            found.append(row_products(apart.T, apart.T) / (end - begin))
    return np.array(found).reshape(-1, len(aligned.rankers), len(aligned.rankers))


def _near_the_top(aligned: Aligned) -> NDArray[np.bool_]:
    """Return which rows some ranker has among its first `DEEP`; where scores are level, the first of them."""
    near = np.zeros(len(aligned.doc), np.bool_)
    for begin, end in zip(aligned.starts[:-1].tolist(), aligned.starts[1:].tolist(), strict=True):
        for column in aligned.scores[begin:end].T:
            near[begin + _highest(column, DEEP)] = True
    return near


def _highest(values: Floats, n: int) -> NDArray[np.intp]:
    """Return where the n highest values stand; among equals the first, on every processor."""
    if len(values) <= n:
        return np.arange(len(values))
    edge = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > edge)
    return np.concatenate((above, np.flatnonzero(values == edge)[: n - len(above)]))


class _Task(NamedTuple):
    """A subset, prepared to be learned on any of the queries."""

    subset: int
    view: View
    simple: SimpleWeights


class _Learned(NamedTuple):
    """What a subset learned from the training queries of one fold."""

    end: Ascent
    """The optimum of the smoothed MAP."""
    weights: Floats
    """The weights to measure: the best found, shrunk."""
    shrinkage: Shrinkage | None


class SubsetTable(NamedTuple):
    """What every query reaches with a subset of the rankers."""

    held_out: Floats
    """Under the weights learned without the query's fold."""
    training: Floats
    """Under weights learned with the query: the mean over the other folds."""


def split_by_fold(by_fold: Floats, fold: NDArray[np.int64]) -> SubsetTable:
    """Return the values of a subset from (folds, queries) values under the weights learned without each fold."""
    held_out = by_fold[fold, np.arange(len(fold))]
    more = (by_fold - held_out).sum(axis=0) / (len(by_fold) - 1)  # exactly 0 where all folds agree
    return SubsetTable(held_out, held_out + more)


class SharedRefits:
    """Held-out values of subsets, each learned on the queries outside a fold and measured inside it."""

    def __init__(
        self,
        aligned: Aligned,
        measure: Measure,
        *,
        folds: int = 5,
        seed: int = 0,
        shrinks: bool = True,
        signs: Signs = "positive",
    ) -> None:
        self._views, self._shrinks = Views(aligned, measure, signs), shrinks
        self._n_queries, self._kept = len(aligned.queries), self._views.problem.kept
        n_kept, n_rankers = len(self._kept), len(aligned.rankers)
        if n_kept < 2:
            raise InputError(
                f"{n_kept} query with a relevant document: expected at least 2, to learn from one and measure on "
                f"another. Judge more queries."
            )
        n_folds = min(folds, n_kept)
        fold = fold_of_queries(n_kept, n_folds, seed)  # of the kept queries, so that no fold is empty
        self._folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(n_folds)]
        """(training queries, queries held out)."""
        one = self._padded(np.ones((1, 1)))[0]
        self._alone = np.array([self._views.of(1 << k).per_query(one) for k in range(n_rankers)])
        self._everyone = (1 << n_rankers) - 1
        self._chooses = n_rankers <= CHOOSE_UP_TO
        self._whole: list[_Learned] = []
        """What all rankers together learned, fold by fold."""
        self._by_fold: list[Floats] = []
        """What all rankers together learn from the queries of each fold alone."""
        total = np.array([self._views.scorer.query_weights[inside].sum() for _, inside in self._folds])
        others = np.where(np.eye(n_folds, dtype=np.bool_), 0.0, total)
        self._shares = others / np.maximum(others.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        """(folds, folds) share of each fold in the queries outside another one."""

    def values(self, subsets: Sequence[int]) -> list[SubsetTable]:
        """Return for each subset what every query reaches; it depends on nothing that was asked before."""
        with threads_for(self._views.aligned.scores.size):
            return self._values(subsets)

    def _values(self, subsets: Sequence[int]) -> list[SubsetTable]:
        if not self._whole:  # the subsets start from what all rankers learn
            self._learn_whole()
        n_folds = len(self._folds)
        if len(subsets) >= n_threads():  # each thread learns subsets of its own and waits for no other
            found = over_items(self._measure_all, subsets)
        else:
            tasks = over_items(self._prepare, subsets)
            jobs = product([task for task in tasks if not self._is_quick(task)], range(n_folds))
            flat = iter(over_items(lambda job: self._measure(*job), jobs))
            found = [
                self._measure_quickly(task) if self._is_quick(task) else list(islice(flat, n_folds))
                for task in tasks
            ]
        return [self._table(by_fold) for by_fold in found]

    def _learn_whole(self) -> None:
        """Learn all rankers together, from the queries outside each fold and, for many subsets, inside it."""
        everyone = self._prepare(self._everyone)
        if not self._chooses:
            uniform = everyone.simple.targets["uniform"]

            def learn_inside(f: int) -> Floats:
                inside = everyone.view.select(self._folds[f][1])
                return quasi_newton(inside.gradient, uniform, tol=COARSE_FOLD_TOLERANCE, max_iter=MAX_ITER).alpha

            self._by_fold = over_items(learn_inside, range(len(self._folds)))
        self._whole = over_items(lambda f: self._learn(everyone, f), range(len(self._folds)))

    def _measure_all(self, subset: int) -> list[Floats]:
        task = self._prepare(subset)
        if self._is_quick(task):
            return self._measure_quickly(task)
        return [self._measure(task, f) for f in range(len(self._folds))]

    def _table(self, by_fold: list[Floats]) -> SubsetTable:
        """Return the values of a subset, from those of the kept queries under the weights of every fold."""
        fold = np.empty(len(self._kept), np.int64)
        for f, (_, inside) in enumerate(self._folds):
            fold[inside] = f
        table = SubsetTable(np.zeros(self._n_queries), np.zeros(self._n_queries))
        for part, of_kept in zip(table, split_by_fold(np.array(by_fold), fold), strict=True):
            part[self._kept] = of_kept  # a query with no relevant document counts 0
        return table

    def _padded(self, weights: Floats) -> Floats:
        """Return vectors of weights as they are searched: with parts for negative weights, all 0, if need be."""
        return weights if self._views.signs == "positive" else np.hstack([weights, np.zeros_like(weights)])

    def _parts(self, subset: int) -> list[int]:
        """Return where the weights of a subset stand among those of all rankers, as they are searched."""
        members, n_rankers = members_of(subset), self._everyone.bit_count()
        return members if self._views.signs == "positive" else [*members, *(n_rankers + k for k in members)]

    def _prepare(self, subset: int) -> _Task:
        view, members = self._views.of(subset), members_of(subset)
        weights, alone = self._padded(SimpleWeights.vectors(len(members))), self._alone[members]
        uniform = view.per_query(weights[-1]) if len(members) > 1 else alone[0]
        values = np.vstack([alone, uniform])
        return _Task(subset, view, SimpleWeights(weights, values, self._views.scorer.query_weights))

    def _learn(self, task: _Task, f: int) -> _Learned:
        """Return what a subset learns from the training queries of a fold."""
        if self._whole and not self._chooses:
            return self._learn_quickly(task, f)
        queries, _ = self._folds[f]
        train, simple = task.view.select(queries), task.simple.select(queries)
        starts = simple_starts(simple.targets["uniform"], simple.targets["single"])
        curvature, tol = None, FOLD_TOLERANCE
        if self._whole:
            whole, parts = self._whole[f], self._parts(task.subset)
            own, uniform = as_distribution(whole.end.alpha[parts]), simple.means()[-1]
            starts = [own if train.mean(own) >= uniform else starts[0]]
            if whole.end.curvature is not None:
                curvature = whole.end.curvature[np.ix_(parts, parts)]
        ends = [quasi_newton(train.gradient, s, tol=tol, max_iter=MAX_ITER, curvature=curvature) for s in starts]
        end, weights = max(ends, key=lambda one: one.value), best_weights(ends, train, simple, STEPS)
        if not self._shrinks:
            return _Learned(end, weights, None)
        restart = WarmRestart(train, end)

        def refit(inner: NDArray[np.intp]) -> Floats:
            again = restart(inner, tol=tol, max_iter=MAX_ITER)
            return best_weights([again], train.select(inner), simple.select(inner), STEPS)

        shrinkage, _ = choose_shrinkage(train, simple, refit, folds=INNER_FOLDS, repeats=1, seed=1)
        return _Learned(end, shrink_safely(weights, shrinkage, simple.targets, train), shrinkage)

    def _learn_quickly(self, task: _Task, f: int) -> _Learned:
        """Return what one of many subsets learns: a short search, and the shrinkage of all rankers together."""
        queries, whole = self._folds[f][0], self._whole[f]
        train, simple = task.view.select(queries), task.simple.select(queries)
        end = self._search(train, self._start(task.subset, f), task.subset, f)
        if whole.shrinkage is None:
            return _Learned(end, best_weights([end], train, simple, STEPS), None)
        shrunk = shrink(end.alpha, whole.shrinkage, simple.targets)
        if train.is_smoothed:  # mostly both the optimum and its shrunk form are better than simple weights
            reached = train.per_query_each(np.array([end.alpha, shrunk]))
            if min(weighted_mean(values, simple.query_weights) for values in reached) >= max(simple.means()):
                return _Learned(end, shrunk, whole.shrinkage)
        return _Learned(end, _shrunk_from_best(end, whole.shrinkage, train, simple), whole.shrinkage)

    def _start(self, subset: int, f: int) -> Floats:
        """Return the weights that a search begins with: those of all rankers, as far as they are in the subset."""
        return as_distribution(self._whole[f].end.alpha[self._parts(subset)])

    def _search(self, train: View, start: Floats, subset: int, f: int) -> Ascent:
        """Return the optimum that a short search reaches on the training queries of a fold."""
        curvature = self._curvature(subset, f)
        return quasi_newton(
            train.gradient, start, tol=COARSE_FOLD_TOLERANCE, max_iter=MAX_ITER, curvature=curvature
        )

    def _curvature(self, subset: int, f: int) -> Floats:
        """Return the curvature that a search begins with: half of what all rankers found, for long steps."""
        parts, known = self._parts(subset), self._whole[f].end.curvature
        return 0.5 * (np.eye(len(parts)) if known is None else known[np.ix_(parts, parts)])

    def _is_quick(self, task: _Task) -> bool:
        """Return whether the folds of a subset share their gradients.

        A loss is the difference between all rankers and all but one. Both are searched alike, fold by fold.
        """
        is_one_of_many = self._shrinks and not self._chooses and task.view.is_smoothed
        return is_one_of_many and 1 < task.subset.bit_count() < self._everyone.bit_count() - 1

    def _measure_quickly(self, task: _Task) -> list[Floats]:
        """Return what `_measure` returns for every fold, with the work shared between the folds."""
        view, ends = task.view, self._ends_of_folds(task)
        some = [task.simple.select(queries) for queries, _ in self._folds]
        shrinkages = [whole.shrinkage or NO_SHRINKAGE for whole in self._whole]
        shrunk = [shrink(end.alpha, how, own.targets) for end, how, own in zip(ends, shrinkages, some, strict=True)]
        found = list(view.per_query_each(np.array(shrunk)))
        for f, (queries, _) in enumerate(self._folds):
            if weighted_mean(found[f][queries], some[f].query_weights) < max(some[f].means()):
                train = view.select(queries)
                found[f] = view.per_query(_shrunk_from_best(ends[f], shrinkages[f], train, some[f]))
        return found

    def _ends_of_folds(self, task: _Task) -> list[Ascent]:
        """Return what a subset learns without each fold, before shrinkage."""
        subset, ends = task.subset, list[Ascent]()
        if subset.bit_count() < STEP_FROM:
            for f, (queries, _) in enumerate(self._folds):
                ends.append(self._search(task.view.select(queries), self._start(subset, f), subset, f))
            return ends
        for f, (start, gradient) in enumerate(zip(*self._slopes(task), strict=True)):
            weights, promised = step_by_curvature(start, gradient, self._curvature(subset, f))
            end = Ascent(weights, value=np.nan, n_iter=1, converged=True)
            if promised >= TRUSTED_GAIN:
                end = self._search(task.view.select(self._folds[f][0]), weights, subset, f)
            ends.append(end)
        return ends

    def _slopes(self, task: _Task) -> tuple[Floats, Floats]:
        """Return (folds, K) weights to start from without each fold, and the gradient there.

        One pass over the queries serves all folds: those of a fold are evaluated at weights that this fold alone
        chose, moved towards uniform ones. A start is the mean of these weights over the training folds, and the
        gradient is that of theirs, so neither knows anything of the fold left out.
        """
        parts, uniform = self._parts(task.subset), task.simple.targets["uniform"]
        points = np.array([as_distribution(chosen[parts]) for chosen in self._by_fold])
        points = CHOSEN_SHARE * points + (1.0 - CHOSEN_SHARE) * uniform
        inside = [task.view.select(queries) for _, queries in self._folds]
        slopes = np.array([own.gradient(point)[1] for own, point in zip(inside, points, strict=True)])
        return matrix_product(self._shares, points), matrix_product(self._shares, slopes)

    def _measure(self, task: _Task, f: int) -> Floats:
        """Return the measure of every query with a relevant document under the weights learned without a fold."""
        if task.subset.bit_count() == 1:
            return np.asarray(task.simple.values[0])
        learned = self._whole[f] if task.subset == self._everyone else self._learn(task, f)
        return task.view.per_query(learned.weights)


def _shrunk_from_best(end: Ascent, shrinkage: Shrinkage, train: View, simple: SimpleWeights) -> Floats:
    """Return the best weights for the training queries, shrunk no further than these queries allow."""
    weights = best_weights([end], train, simple, STEPS)
    return shrink_safely(weights, shrinkage, simple.targets, train, max(simple.means()))


class RefitsFromScratch:
    """Held-out values of subsets, each learned by a method as if there were no other."""

    def __init__(
        self, aligned: Aligned, measure: Measure, *, method: str, folds: int, seed: int, signs: Signs = "positive"
    ) -> None:
        self._aligned, self._measure, self._folds, self._seed = aligned, measure, folds, seed
        self._method, self._options = method, options_for(method, measure, signs)

    def values(self, subsets: Sequence[int]) -> list[SubsetTable]:
        """Return for each subset what every query reaches."""
        with threads_for(self._aligned.scores.size):
            return [self._table(subset) for subset in subsets]

    def _table(self, subset: int) -> SubsetTable:
        some = select_rankers(self._aligned, [self._aligned.rankers[k] for k in members_of(subset)])
        if len(some.rankers) == 1:  # nothing to learn
            alone = measure_queries(some, np.ones(1), self._measure)
            return SubsetTable(alone, alone)
        fold = fold_of_queries(len(some.queries), self._folds, self._seed)
        training = (some.select(np.flatnonzero(fold != f)) for f in range(self._folds))
        fits = (make_fuser(self._method, **self._options).fit(queries) for queries in training)
        by_fold = [measure_queries(fuser.prepare(some), fuser.weights_, self._measure) for fuser in fits]
        return split_by_fold(np.array(by_fold), fold)


class SubsetValues:
    """Cross-validated values of subsets, learned when they are first asked for and kept.

    A subset is an integer with a bit for each ranker. The empty one returns no document and is worth 0. All subsets
    are measured on the same folds.
    """

    def __init__(
        self,
        aligned: Aligned,
        *,
        method: str = "auto",
        measure: Measure,
        folds: int = 5,
        seed: int = 0,
        signs: Signs = "positive",
        progress: Progress = silent,
    ) -> None:
        n = len(aligned.queries)
        self.aligned, self.measure, self.method = aligned, measure, method
        self.folds, self.seed = check_folds(min(folds, max(n, 2)), n), seed
        self._progress = progress
        self._known = {0: SubsetTable(np.zeros(n), np.zeros(n))}
        make_fuser(method, **options_for(method, measure, signs))  # refuses what it cannot do before the work
        self._signs = signs

    @cached_property
    def _refits(self) -> "SharedRefits | RefitsFromScratch":
        aligned, measure, folds, seed, signs = self.aligned, self.measure, self.folds, self.seed, self._signs
        name = find_method(self.method).name
        if name in SHARED:
            return SharedRefits(aligned, measure, folds=folds, seed=seed, shrinks=name == "auto", signs=signs)
        return RefitsFromScratch(aligned, measure, method=self.method, folds=folds, seed=seed, signs=signs)

    @property
    def _cost(self) -> int:
        """About what a subset costs, see `FIXED_COST`."""
        shares_work = find_method(self.method).name in SHARED and len(self.aligned.rankers) > CHOOSE_UP_TO
        is_slow = not (shares_work and self.measure.has_smoothed_form)
        return (len(self.aligned.doc) + FIXED_COST) * (SLOW if is_slow else 1)

    @property
    def everyone(self) -> int:
        """The subset of all rankers."""
        return (1 << len(self.aligned.rankers)) - 1

    @property
    def n_learned(self) -> int:
        """How many subsets have been learned and measured so far."""
        return len(self._known) - 1

    def names(self, subset: int) -> tuple[str, ...]:
        """Return the names of a subset's rankers."""
        return tuple(self.aligned.rankers[k] for k in members_of(subset))

    def per_query(self, subset: int) -> Floats:
        """Return the held-out value of every query."""
        return self.table(subset).held_out

    def table(self, subset: int) -> SubsetTable:
        """Return the held-out and the training value of every query."""
        if subset not in self._known:
            self.learn([subset])
        return self._known[subset]

    def mean(self, subset: int) -> float:
        """Return the held-out mean over the queries, with their weights."""
        return weighted_mean(self.per_query(subset), self.aligned.query_weights)

    def training_mean(self, subset: int) -> float:
        """Return the mean over the queries under the weights of the folds that learned from them."""
        return weighted_mean(self.table(subset).training, self.aligned.query_weights)

    def learning_variance(self, subset: int) -> float:
        """Return what learning adds to the variance of the held-out mean."""
        n_rankers = subset.bit_count()
        return fold_learning_variance(self.training_mean(subset), self.mean(subset), n_rankers, self.folds)

    def learn(self, subsets: Iterable[int], *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Learn those that are not known yet, large and small mixed, so that progress shows the time left.

        `meanwhile` is called while processes start, if some do.
        """
        todo = sorted(set(subsets) - set(self._known))
        wrong = [subset for subset in todo if not 0 <= subset <= self.everyone]
        if wrong:
            raise InputError(f"subset {wrong[0]}: expected an integer from 0 to {self.everyone}, a bit per ranker.")
        todo = [todo[i] for i in np.random.default_rng(0).permutation(len(todo)).tolist()]
        if not todo:
            return
        done = 0
        self._progress("learning subsets", done, len(todo))
        with closing(self._values_of(todo, meanwhile)) as found:
            for some, tables in found:
                self._known.update(zip(some, tables, strict=True))
                done += len(some)
                self._progress("learning subsets", done, len(todo))

    def _values_of(
        self, subsets: Sequence[int], meanwhile: Callable[[], object]
    ) -> Generator[tuple[Sequence[int], Sequence[SubsetTable]]]:
        """Yield subsets with their values, some at a time."""
        n = processes_for(len(subsets) * self._cost, self.aligned.scores.size)
        if n:
            yield from values_by_processes(lambda: self._refits, subsets, n, meanwhile)
        else:
            yield from values_by_threads(self._refits, subsets)


def options_for(method: str, measure: Measure, signs: Signs = "positive") -> dict[str, Any]:
    """Return what a method's fuser is made with to maximise the measure."""
    parameters = find_method(method).parameters
    options: dict[str, Any] = {"measure": measure, "level": measure.rel} if "level" in parameters else {}
    return options | ({"signs": signs} if signs != "positive" else {})
