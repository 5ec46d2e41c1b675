"""What every subset of the rankers reaches on queries that its weights were not learned from, with the work shared.

A subset is an integer with a bit for each ranker. Runs are aligned once and stored once for the kernels. The
view of a subset is the store of all rankers with the other weights held at 0, or a copy of its columns; where
documents leave with the other rankers, those of the rest. Optimisation begins at the weights that all rankers
got together on the same queries, with the curvature that was found there. What is learned follows `AutoFuser`:
the smoothed MAP, or the exact measure from there, then shrunk towards simple weights as far as queries that were
not learned from advise. Nothing that a start or a shrinkage uses has seen the queries that the weights are
measured on.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import smooth_ap
from genm._math.linear_algebra import dot, row_products, times, weighted_mean
from genm._math.parallel import n_threads, over_items
from genm._math.simplex_optimizers import Ascent, as_distribution, quasi_newton
from genm._math.tiles import Thinner, mean
from genm._typing import Floats
from genm.align import Aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import Measure
from genm.evidence.crossval import check_folds, cross_validate, measure_queries
from genm.learn import find_method, make_fuser
from genm.learn.auto import (
    DEFAULT_SHRINKAGE,
    FOLD_TOLERANCE,
    SHRINKAGE_AMOUNTS,
    Shrinkage,
    clearly_best,
    shrink,
    shrink_safely,
)
from genm.learn.objectives import Problem, Scorer, direct_search, fold_of_queries, sharpness_for
from genm.progress import Progress, silent

WINDOW = 8.0
"""Sigmoids further from their middle, in units of beta times score, count as 0 or 1 in a climb.

They are within 0.0004 of that. The slope changes in its fourth digit, and takes two thirds of the time."""

DEEP = 1000
"""Documents that no ranker has among its first so many take no part in a climb; all are measured."""

COARSE_FOLD_TOLERANCE = 5e-4
"""What stands for FOLD_TOLERANCE with many rankers' subsets: their values change by less than .001 on average."""
CHOOSE_UP_TO = 8
"""Rankers up to which every subset chooses how far to hold back; of more, all do as the whole does in that fold.

The choice takes two thirds of the time, and subsets double with every ranker."""
SHRINKAGES = (
    *(Shrinkage("uniform", a) for a in SHRINKAGE_AMOUNTS),
    *(Shrinkage("single", a) for a in SHRINKAGE_AMOUNTS[1:]),
)

Left = tuple[int, ...]
"""The folds that are left out while learning: one, or two to choose how far to hold back."""

SHARED = ("auto", "newton")
"""Methods whose refits share work; the others learn every subset from scratch."""

AT_ONCE = 8
"""Subsets that are learned side by side, at least; between them the progress is told."""


def members_of(subset: int) -> list[int]:
    """Return the rankers of a subset."""
    return [k for k in range(subset.bit_length()) if subset >> k & 1]


class View(NamedTuple):
    """Some queries as some of the rankers see them; weights are those of the subset alone."""

    problem: Problem
    """The smoothed MAP; of long lists, over the documents near their tops."""
    scorer: Scorer
    columns: list[int]
    """Where the subset's weights stand among those that problem and scorer take."""
    n_columns: int

    def whole(self, weights: Floats) -> Floats:
        """Return weights for all columns: 0 for rankers outside the subset."""
        spread = np.zeros(self.n_columns)
        spread[self.columns] = weights
        return spread

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed MAP and its gradient (Eq. 16)."""
        tiles = self.problem.tiles
        found = smooth_ap(tiles, self.whole(weights), self.problem.beta, order=1, window=WINDOW)
        return float(mean(tiles, found.value)), mean(tiles, found.gradient)[self.columns]

    def per_query(self, weights: Floats) -> Floats:
        """Return the exact measure of every query."""
        return self.scorer.per_query(self.whole(weights))

    def mean(self, weights: Floats) -> float:
        """Return the exact measure's mean."""
        return self.scorer.mean(self.whole(weights))

    @property
    def as_scorer(self) -> Scorer:
        """Itself, for those who ask a scorer for means: theirs is the subset's, in the subset's weights."""
        return cast("Scorer", self)

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective climbs this very measure."""
        return self.scorer.is_smoothed

    def select(self, queries: NDArray[np.integer]) -> "View":
        """Return the view of some of the queries."""
        return self._replace(problem=self.problem.select(queries), scorer=self.scorer.select(queries))


class Views:
    """Makes the views of one set of aligned queries."""

    def __init__(self, aligned: Aligned, measure: Measure) -> None:
        self.aligned, self.measure = aligned, measure
        self.problem = Problem(aligned, level=measure.rel)
        self.scorer = Scorer(aligned, self.problem, measure, measure.rel)
        self._covariances = _covariances(aligned)
        self._gaps = ~aligned.retrieved[~aligned.retrieved.all(axis=1)]
        """(rows that not everyone returned, K) who did not."""
        self._thinner = Thinner(self.problem.tiles) if len(self._gaps) and self.scorer.is_smoothed else None
        self._returned = None if self._thinner is None else aligned.retrieved[self._thinner.row]
        self._near = self.problem
        if self._thinner is None and np.diff(aligned.starts).max(initial=0) > 2 * DEEP:
            everyone, thinner = list(range(len(aligned.rankers))), Thinner(self.problem.tiles)
            tiles = thinner.thin(_near_the_top(aligned)[thinner.row], everyone)
            self._near = self.problem.with_rankers(everyone, tiles)

    def of(self, subset: int) -> View:
        """Return the view of a subset of the rankers."""
        aligned, columns = self.aligned, members_of(subset)
        leaves = bool(self._gaps[:, columns].all(axis=1).any())
        if leaves and not self.scorer.is_smoothed:
            own = select_rankers(aligned, [aligned.rankers[k] for k in columns])
            problem = Problem(own, level=self.measure.rel)
            return self._alone(problem, Scorer(own, problem, self.measure, self.measure.rel))
        if leaves and self._thinner is not None and self._returned is not None:
            kept = np.asarray(self._returned[:, columns].any(axis=1), np.bool_)
            problem = self.problem.with_rankers(columns, self._thinner.thin(kept, columns))
            variances = np.ldexp(self._thinner.variances(kept, columns), 2 * problem.tiles.exponent)
        else:
            # nothing leaves: one and the same store serves, and only the sharpness follows the subset's scale
            variances = self._covariances[:, columns][:, :, columns].sum(axis=(1, 2)) / len(columns) ** 2
            variances = np.maximum(variances, 0.0)  # rounding may leave constant scores a hair below
            is_narrow = 2 * len(columns) <= len(aligned.rankers) and self.scorer.is_smoothed
            if self._near is not self.problem or not is_narrow:
                problem = self._near.with_beta(sharpness_for(variances))
                return View(problem, self.scorer, columns, len(aligned.rankers))
            problem = self.problem.with_rankers(columns)  # reading many columns of 0 takes longer than a copy
        problem = problem.with_beta(sharpness_for(variances))
        return self._alone(problem, Scorer(aligned, problem, self.measure, self.measure.rel))

    def _alone(self, problem: Problem, scorer: Scorer) -> View:
        return View(problem, scorer, list(range(len(problem.rankers))), len(problem.rankers))


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
    """A subset, made ready to be learned on any of the queries."""

    subset: int
    view: View
    even: Floats
    """What uniform weights reach on every query."""


class _Simple(NamedTuple):
    """The simple weights for some of the queries, and what they reach there."""

    weights: dict[str, Floats]
    reached: dict[str, float]

    def before(self, train: View) -> Scorer:
        """Return a scorer of these queries that knows what the simple weights reach."""
        return cast(
            "Scorer", _Informed(train, {self.weights[at].tobytes(): self.reached[at] for at in self.weights})
        )


class _Informed(NamedTuple):
    train: View
    known: dict[bytes, float]

    def mean(self, weights: Floats) -> float:
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
        self._shrinkages: list[Shrinkage] = []
        """How far that is held back, fold by fold."""

    def values(self, subsets: Sequence[int]) -> list[Floats]:
        """Return for each subset the held-out value of every query; it depends on nothing that was asked before."""
        if not self._whole:  # what all rankers learn comes first: all others begin there
            whole = self._prepare(self._everyone)
            self._whole = self._learn([whole], list(self._outside))[0]
            if self._hold_back:
                self._shrinkages = over_items(
                    lambda f: self._chosen_shrinkage(whole, self._whole, f), range(self._n_folds)
                )
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
        tol = FOLD_TOLERANCE if self._chooses or whole is None else COARSE_FOLD_TOLERANCE
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

    def _held_out(self, task: _Task, learned: dict[Left, Ascent]) -> Floats:
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
                shrinkage = self._chosen_shrinkage(task, learned, f) if self._chooses else self._shrinkages[f]
                weights = shrink_safely(weights, shrinkage, simple.weights, simple.before(train))
            values[self._kept[inside]] = task.view.select(inside).per_query(weights)
        return values

    def _chosen_shrinkage(self, task: _Task, learned: dict[Left, Ascent], f: int) -> Shrinkage:
        """Return how far to hold back for fold f: what did best on the others, learned without both."""
        if self._n_folds < 3:
            return DEFAULT_SHRINKAGE
        reached = np.zeros((len(SHRINKAGES), len(self._kept)))
        for other, inside in enumerate(self._inside):
            if other == f:
                continue
            left = (min(f, other), max(f, other))
            simple, test = self._simple(task, self._outside[left]), task.view.select(inside)
            single = members_of(task.subset)[int(simple.weights["single"].argmax())]
            for number, shrinkage in enumerate(SHRINKAGES):
                if shrinkage.amount < 1.0:
                    found = test.per_query(shrink(learned[left].alpha, shrinkage, simple.weights))
                else:
                    found = (task.even if shrinkage.target == "uniform" else self._alone[single])[inside]
                reached[number, inside] = found
        outside = self._outside[(f,)]
        return SHRINKAGES[
            clearly_best(reached[:, outside], self._shares[outside], SHRINKAGES.index(DEFAULT_SHRINKAGE))
        ]


def _value(known: tuple[float, Floats]) -> float:
    return known[0]


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
        progress: Progress = silent,
    ) -> None:
        n = len(aligned.queries)
        self.aligned, self.measure, self.method = aligned, measure, method
        self.folds, self.seed = check_folds(min(folds, max(n, 2)), n), seed
        self._progress = progress
        self._known: dict[int, Floats] = {0: np.zeros(n)}
        self._refits: SharedRefits | None = None
        self._make: Callable[[], Any] = lambda: make_fuser(method, **_options(method, measure))
        self._make()  # refuses an unknown method, or a measure it cannot maximise, before the work
        name = find_method(method).name
        if name in SHARED:
            self._refits = SharedRefits(aligned, measure, folds=self.folds, seed=seed, hold_back=name == "auto")

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
        if subset not in self._known:
            self.learn([subset])
        return self._known[subset]

    def mean(self, subset: int) -> float:
        """Return the held-out mean over the queries, with their weights."""
        return weighted_mean(self.per_query(subset), self.aligned.query_weights)

    def learn(self, subsets: Iterable[int]) -> None:
        """Learn those that are not known yet, large and small in turn: how long the rest takes can then be told."""
        todo = sorted(set(subsets) - set(self._known))
        wrong = [subset for subset in todo if not 0 <= subset <= self.everyone]
        if wrong:
            raise InputError(f"subset {wrong[0]}: expected an integer from 0 to {self.everyone}, a bit per ranker.")
        todo = [todo[i] for i in np.random.default_rng(0).permutation(len(todo)).tolist()]
        done, at_once = 0, max(AT_ONCE, n_threads())
        while done < len(todo):
            self._progress("learning subsets", done, len(todo))
            some = todo[done : done + at_once]
            values = self._refits.values(some) if self._refits else [self._from_scratch(one) for one in some]
            self._known.update(zip(some, values, strict=True))
            done += len(some)
        if todo:
            self._progress("learning subsets", len(todo), len(todo))

    def _from_scratch(self, subset: int) -> Floats:
        some = select_rankers(self.aligned, self.names(subset))
        if len(some.rankers) == 1:  # nothing to learn
            return measure_queries(some, np.ones(1), self.measure)
        return cross_validate(self._make, some, self.measure, folds=self.folds, seed=self.seed).per_query


def _options(method: str, measure: Measure) -> dict[str, Any]:
    return {"measure": measure, "level": measure.rel} if "level" in find_method(method).parameters else {}
