"""The default method: candidates, shrinkage, and the measure that the user asked for."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import times, weighted_mean
from genm._math.parallel import in_order, over_items
from genm._math.simplex_optimizers import (
    Ascent,
    as_distribution,
    as_distributions,
    as_signed_distribution,
    join_signs,
    quasi_newton,
    split_signs,
)
from genm._typing import Floats
from genm.align import Aligned, renormalize
from genm.errors import InputError
from genm.evaluate import MeasureLike
from genm.learn.base import Fuser, Step
from genm.learn.objectives import (
    MOST_PAIRED,
    STEPS,
    Beta,
    Objective,
    Problem,
    Scorer,
    SignedProblem,
    SignedScorer,
    SmoothObjective,
    direct_search,
    fold_of_queries,
)
from genm.learn.starts import simple_starts
from genm.model import Model

Signs = Literal["positive", "any"]
"""positive: weights that are not negative and sum to 1; any: absolute values that sum to 1."""

SHRINKAGE_AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far the learned weights are moved towards the simple ones."""
NORMALIZERS = ("minmax", "zscore", "max", "l2", "reciprocal")
"""What `normalize="auto"` chooses from."""

SHARP_UP_TO = 8
"""Rankers up to which the smoothed objective is as sharp as beta="auto" says, and its optimum is polished."""
SOFTNESS = 0.25
"""Share of that sharpness with more rankers. The objective then has fewer kinks and local optima: a search takes
half as many evaluations, refits on other queries find optima that differ as those from scratch do, and the weights
are not worse on queries held out."""

POLISH_STEPS = (0.05, 0.02, 0.01, 0.005)
"""How much weight is moved at a time on the exact measure; the first two suffice above `MOST_PAIRED` rankers."""
LEAST_POLISH_GAIN = 0.001
"""What the exact measure must gain over the smoothed one's optimum; less is fitted to the last digit."""

Z_90 = 1.28
"""Standard errors that a gain of luck alone exceeds once in ten times."""
FOLD_TOLERANCE = 1e-4
"""Gain of a step at which the searches of the inner folds stop: their weights are compared, not kept."""
MANY_TOLERANCE = 1e-5
"""The least gain of a step with more than `MOST_PAIRED` rankers, where a third of all steps are for last digits."""
REFIT_TOLERANCE = 3e-5
"""The same for refits on resampled queries: what is kept of them is how much they differ."""
SOFT_REFIT_TOLERANCE = 5e-5
"""The same where the objective is soft: 3e-5 makes the weights differ by 2 % more, 3e-4 by a third less."""


class MeasuredQueries(Protocol):
    """Queries with weights, and their values under weights of the rankers."""

    @property
    def query_weights(self) -> Floats:
        """How much each query counts."""

    def per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the measure of every query under each of (W, K) weights."""


class SmoothProblem(SmoothObjective, Protocol):
    """What is maximised: smoothed, and exact for the learning curve."""

    def exact(self, weights: Floats) -> float:
        """Return the exact measure."""


class SimpleWeights(NamedTuple):
    """Every ranker alone and uniform weights, measured once, for any selection of the queries."""

    weights: Floats
    """(K + 1, K): the K single rankers, then uniform weights."""
    values: Floats
    """(K + 1, queries)."""
    query_weights: Floats

    @classmethod
    def of(cls, scorer: MeasuredQueries, n_rankers: int, signs: Signs = "positive") -> "SimpleWeights":
        """Measure them; for weights of any sign they are padded by the parts for negative weights, all 0."""
        weights = cls.vectors(n_rankers)
        if signs == "any":
            weights = np.hstack([weights, np.zeros_like(weights)])
        return cls(weights, scorer.per_query_each(weights), scorer.query_weights)

    @staticmethod
    def vectors(n_rankers: int) -> Floats:
        """Return the weights themselves, one vector per row."""
        return np.vstack([np.eye(n_rankers), np.full((1, n_rankers), 1.0 / n_rankers)])

    def select(self, queries: NDArray[np.integer]) -> "SimpleWeights":
        """Return what some of the queries say."""
        return SimpleWeights(self.weights, self.values[:, queries], self.query_weights[queries])

    def means(self) -> list[float]:
        """Return the measure of each, as the scorer takes its mean."""
        rows = np.ascontiguousarray(self.values)  # of others numpy adds columns, in another order
        found: list[float] = (times(rows, self.query_weights) / self.query_weights.sum()).tolist()
        return found

    @property
    def targets(self) -> dict[str, Floats]:
        """Uniform weights and those of the ranker that is best on these queries."""
        return self.targets_by(self.means())

    def targets_by(self, means: list[float]) -> dict[str, Floats]:
        """Return the same where the means are known."""
        *singles, _ = means
        return {"uniform": self.weights[-1], "single": self.weights[singles.index(max(singles))]}


class WarmRestart:
    """Optimisation on some of the queries, starting from the optimum of all of them.

    Leaving out a fold of queries moves the optimum only a little: with the curvature found for all queries, a step
    or two reach it. The first derivatives, those at the common start, are computed once.
    """

    def __init__(self, problem: SmoothObjective, end: Ascent) -> None:
        self._problem, self._end = problem, end
        self._first = problem.gradients_at(end.alpha)

    def __call__(self, queries: NDArray[np.integer], *, tol: float, max_iter: int) -> Ascent:
        """Return the optimum of these queries."""
        part = self._problem.select(queries)
        return restart_search(part, self._end, self._first(queries), tol=tol, max_iter=max_iter)


def restart_search(
    problem: SmoothObjective, end: Ascent, first: tuple[float, Floats], *, tol: float, max_iter: int
) -> Ascent:
    """Return the optimum of a problem, starting from another one's; `first` is its value and gradient there."""
    start = end.alpha

    def gradient(weights: Floats) -> tuple[float, Floats]:
        return first if weights.tobytes() == start.tobytes() else problem.gradient(weights)

    return quasi_newton(gradient, start, tol=tol, max_iter=max_iter, curvature=end.curvature)


class Shrinkage(NamedTuple):
    """How far the learned weights are moved, and towards what: uniform weights or the best single ranker."""

    target: str
    amount: float


class ShrinkageChoice(NamedTuple):
    """The shrinkage that the inner folds chose."""

    shrinkage: Shrinkage
    reached: Floats
    """(shrinkages, queries) what each reached on the folds left out; no columns if nothing was learned."""


SHRINKAGES = (
    *(Shrinkage("uniform", a) for a in SHRINKAGE_AMOUNTS),
    *(Shrinkage("single", a) for a in SHRINKAGE_AMOUNTS[1:]),
)
"""What cross-validation chooses from."""
DEFAULT_SHRINKAGE = Shrinkage("uniform", 0.75)
"""Used unless the folds show better: where judged queries are few, most of what is learned is noise."""


class _InnerFolds(NamedTuple):
    """What the estimate by inner folds needs of a fit."""

    source: Aligned | tuple[Problem, Scorer]
    simple: SimpleWeights
    ends: list[Ascent]
    choice: ShrinkageChoice


class AutoFuser(Fuser):
    """Learn weights for the measure you ask for, no further from simple ones than the data justifies.

    The smoothed MAP is maximised by BFGS from uniform weights and from half-way to the best single ranker; with
    more than eight rankers it is smoothed four times as much, unless beta is given as a number. Other measures are
    then maximised directly. Few queries overfit, so the result is moved towards uniform
    weights by the share of `DEFAULT_SHRINKAGE`, unless cross-validation inside the training queries shows that
    another share, or moving towards the best single ranker, gains clearly more; but never so far that uniform
    weights or a single ranker would be better on the training queries.

    With `signs="any"` a weight may be negative: the documents that such a ranker prefers are moved down. The
    absolute values sum to 1.

    Objective: smoothed MAP with j sorted, then the exact measure. Set: the simplex, or its mirror images.
    """

    method = "auto"
    objective = "smoothed MAP, j sorted; then the exact measure"
    weight_set = "simplex"

    beta_: float
    shrunk_: Shrinkage
    learned_: Floats
    """The weights before shrinkage."""
    _soft = False
    """Whether the smoothed objective was made softer than beta="auto" says, because there are many rankers."""
    _curve = True
    """Whether the learning curve is recorded."""
    curvature_: Floats | None = None
    """Of the smoothed objective at its best optimum, as the search learned it; None if nothing was learned."""

    def __init__(
        self,
        *,
        measure: MeasureLike = "AP",
        level: int = 1,
        beta: Beta = "auto",
        normalize: str | None = None,
        signs: Signs = "positive",
        folds: int = 5,
        repeats: int = 3,
        tol: float = 1e-6,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        self.measure, self.level, self.beta = measure, level, beta
        self.normalize, self.signs = normalize, signs
        self.folds, self.repeats, self.tol, self.max_iter, self.seed = folds, repeats, tol, max_iter, seed

    def _fit(self, aligned: Aligned) -> Self:
        """Learn, shrink, and keep the better of that and the simple weights."""
        if self.normalize not in (None, "auto"):
            raise InputError(f'normalize={self.normalize!r}: expected None or "auto". Align with a normaliser.')
        if self.normalize is None:
            return self._fit_as_scaled(aligned)
        plain = {**self.get_params(), "normalize": None}
        tried = [AutoFuser(**plain)._fit_as_scaled(renormalize(aligned, kind)) for kind in NORMALIZERS]
        best = max(tried, key=lambda fuser: fuser.held_out_)
        self.__dict__.update({name: value for name, value in vars(best).items() if name.endswith("_")})
        return self

    def to_model(self) -> Model:
        """Return what serving needs; the model names the measure that was maximised."""
        training = {"signs": self.signs} if self.signs != "positive" else {}
        return replace(super().to_model(), measure=str(self._measure_maximised()), training=training)

    def fit_problem(
        self, problem: Problem, scorer: Scorer | None = None, simple: SimpleWeights | None = None
    ) -> Self:
        """Learn from queries that were made ready before, under the problem's own level and beta.

        With beta="auto" and many rankers, the share `SOFTNESS` of the problem's beta is used, as in `fit`.
        Without a scorer of the measure it is average precision. `simple` are the simple weights, if they are known.
        """
        measure = self._measure_maximised()
        if scorer is not None:
            return self._learn(problem, scorer, simple=simple)
        if not measure.has_smoothed_form or self.normalize is not None:
            raise InputError(
                f"measure {measure}, normalize={self.normalize!r}: a problem knows average precision of scores as "
                f"they are. Use fit, which sees the runs."
            )
        return self._learn(problem, Scorer(None, problem, measure, self.level))

    def _fit_as_scaled(self, aligned: Aligned) -> Self:
        return self._learn(*self._objectives(aligned), aligned)

    def _objectives(self, aligned: Aligned) -> tuple[Problem, Scorer]:
        """Return the smoothed objective and the measure on the queries of these runs."""
        measure = self._measure_maximised()
        problem = Problem(aligned, level=max(self.level, measure.rel), beta=self.beta)
        return problem, Scorer(aligned, problem, measure, self.level)

    def _learn(
        self,
        problem: Problem,
        scorer: Scorer,
        aligned: Aligned | None = None,
        simple: SimpleWeights | None = None,
    ) -> Self:
        self._remember(problem)
        softness = softness_for(len(self.rankers_)) if self.beta == "auto" else 1.0
        self._soft = softness < 1.0
        problem = problem.with_beta(softness * problem.beta)
        self.beta_ = problem.beta
        self.history_, self._curve = [], problem.curve
        smooth, exact = self._views(problem, scorer)
        if simple is None:
            simple = SimpleWeights.of(exact, len(self.rankers_), self.signs)
        sample = problem.sample()
        if sample is None:
            ends = self._optima(smooth, simple)
            learned = best_weights(ends, exact, simple)
            if not self._soft:
                learned = _polish(learned, exact)
            choice, chosen_by = self._choose(smooth, exact, simple, ends), simple.query_weights
        else:
            few = simple.select(sample)
            ends, learned = self._search_sample_first(smooth, exact, simple, sample)
            choice = self._choose(smooth.select(sample), exact.select(sample), few, ends)
            chosen_by = few.query_weights
        self.shrunk_ = choice.shrinkage
        self.curvature_ = max(ends, key=lambda end: end.value).curvature if ends else None
        self.__dict__.pop("held_out_", None)  # of an earlier fit
        if problem.in_memory:
            self._inner = _InnerFolds((problem, scorer) if aligned is None else aligned, simple, ends, choice)
        elif choice.reached.size:  # learning each fold from scratch would take half of all passes over a table
            reached = choice.reached[SHRINKAGES.index(self.shrunk_)]
            self.__dict__["held_out_"] = weighted_mean(reached, chosen_by)
        else:
            self.__dict__["held_out_"] = exact.mean(simple.targets["uniform"])
        self.learned_ = self._weights_of(learned)
        self.weights_ = self._weights_of(shrink_safely(learned, self.shrunk_, simple.targets, exact))
        self.converged_ = all(end.converged for end in ends)
        self.n_iter_ = max([end.n_iter for end in ends], default=1)
        if self._curve:
            self.objective_ = problem.value(self.weights_)
            last = Step(len(ends), 0, self.objective_, problem.exact(self.weights_))
            self.history_.append(last)  # after the measure's own search and the shrinkage
        self._warn_if_stopped_early()
        return self

    @cached_property
    def held_out_(self) -> float:
        """The measure in cross-validation inside the training queries; each fold learns from scratch.

        It is computed when it is first read, because the folds take about as long to learn as the weights. Until
        then the fuser keeps a reference to the runs that it learned from. From a table it is known at once, but a
        little too high: there the folds start from the optimum of all queries.
        """
        self._check_fitted()
        source, simple, ends, choice = self._inner
        problem, scorer = self._objectives(source) if isinstance(source, Aligned) else source
        del self._inner
        smooth, exact = self._views(problem.with_beta(self.beta_), scorer)
        return self._held_out(smooth, exact, simple, ends, choice)

    def refits(
        self, problem: Problem, scorer: Scorer, steps: tuple[float, ...], simple: SimpleWeights | None = None
    ) -> Callable[[NDArray[np.integer]], tuple[Floats, Floats]]:
        """Return a function that learns again from some of the queries, each as often as it is named.

        It returns the weights before and after shrinkage. The search starts from the present weights; the shrinkage
        stays. `steps` are those of the direct search, for measures that have no smoothed form. `simple` are the
        simple weights, if they are known.

        Of many rankers the curvature is known, too, which saves two of three steps. Half of it is used: the first
        steps are then long enough to leave the nearest optimum, and the weights differ as much between refits as
        they do without it. Few rankers take few steps, and their refits differed too little with it.
        """
        smooth, exact = self._views(problem, scorer)
        if simple is None:
            simple = SimpleWeights.of(exact, len(self.rankers_), self.signs)
        start = split_signs(self.learned_) if self.signs == "any" else self.learned_
        many = len(self.rankers_) > MOST_PAIRED
        curvature = 0.5 * self.curvature_ if many and self.curvature_ is not None else None
        end = Ascent(start, 0.0, 0, converged=True, curvature=curvature)
        values, gradients = smooth.gradients(start)
        tol = max(self.tol, REFIT_TOLERANCE) if many else self.tol
        if self._soft:
            tol = max(self.tol, SOFT_REFIT_TOLERANCE)

        def refit(queries: NDArray[np.integer]) -> tuple[Floats, Floats]:
            own, counts = np.unique(queries, return_counts=True)
            part = smooth.select(own).repeat(counts)
            first = part.average_gradient(values[own], gradients[own])
            learned = restart_search(part, end, first, tol=tol, max_iter=self.max_iter).alpha
            if not exact.is_smoothed:
                learned = direct_search(exact.select(queries), learned, steps=steps)
            targets = simple.select(queries).targets
            return self._weights_of(learned), self._weights_of(shrink(learned, self.shrunk_, targets))

        return refit

    def _views(
        self, problem: Problem, scorer: Scorer
    ) -> tuple[Problem, Scorer] | tuple[SignedProblem, SignedScorer]:
        """Return the objectives as functions of what is searched: the weights, or the parts of signed weights."""
        if self.signs == "positive":
            return problem, scorer
        if self.signs == "any":
            return SignedProblem(problem), SignedScorer(scorer)
        raise InputError(f'signs (--signs) {self.signs!r}: expected "positive" or "any".')

    def _weights_of(self, searched: Floats) -> Floats:
        """Return the weights that stand for a point of the search."""
        return as_signed_distribution(join_signs(searched)) if self.signs == "any" else searched

    def _optima(self, problem: SmoothProblem, simple: SimpleWeights) -> list[Ascent]:
        """Maximise the smoothed objective from the simple starts, and keep the learning curves."""

        def optimise(numbered: tuple[int, Floats]) -> tuple[Ascent, list[Step]]:
            return self._ascend(problem, *numbered)

        found = list(in_order(optimise, list(enumerate(_starts_of(simple)))))
        self.history_ += [step for _, steps in found for step in steps]
        return [end for end, _ in found]

    def _optimum_from(self, problem: SmoothProblem, end: Ascent, number: int) -> Ascent:
        """Continue from the optimum of some of the queries, with the curvature found there."""
        found, steps = self._ascend(problem, number, end.alpha, end.curvature)
        self.history_ += steps
        return found

    def _ascend(
        self, problem: SmoothProblem, number: int, start: Floats, curvature: Floats | None = None
    ) -> tuple[Ascent, list[Step]]:
        """Maximise the smoothed objective from one start, and keep the learning curve."""
        tol = max(self.tol, MANY_TOLERANCE) if len(self.rankers_) > MOST_PAIRED else self.tol
        steps: list[Step] = []

        def watch(iteration: int, alpha: Floats, objective: float) -> None:
            steps.append(Step(number, iteration, objective, problem.exact(alpha)))

        end = quasi_newton(
            problem.gradient,
            start,
            tol=tol,
            max_iter=self.max_iter,
            curvature=curvature,
            watch=watch if self._curve else None,
        )
        return end, steps

    def _search_sample_first(
        self, problem: SmoothProblem, scorer: Objective, simple: SimpleWeights, sample: NDArray[np.intp]
    ) -> tuple[list[Ascent], Floats]:
        """Return the optimum of all queries and the weights learned: what `_optima` and `_polish` give, for less.

        Both starts are followed on the sample. The better end, with the curvature learned on the way, is a few
        steps from the optimum of all queries. What a search on the exact measure finds on the sample is kept if all
        queries confirm it.
        """
        part, few, own = problem.select(sample), scorer.select(sample), simple.select(sample)
        ends = self._optima(part, own)
        if ends:
            ends = [self._optimum_from(problem, max(ends, key=lambda end: end.value), len(ends))]
        if not scorer.is_smoothed:
            found = best_weights(ends, few, own)
            return ends, direct_search(scorer, found, steps=STEPS[-1:])
        learned = best_weights(ends, scorer, simple)
        polished = learned if self._soft else _polish(learned, few)
        if polished is learned or not scorer.mean(polished) > scorer.mean(learned) + LEAST_POLISH_GAIN:
            return ends, learned
        return ends, polished

    def _choose(
        self, problem: SmoothObjective, scorer: Objective, simple: SimpleWeights, ends: list[Ascent]
    ) -> ShrinkageChoice:
        """Return how far to shrink, by cross-validation inside the training queries."""
        if not ends:
            return _learn_nothing()
        restart = WarmRestart(problem, max(ends, key=lambda end: end.value))

        def refit(queries: NDArray[np.intp]) -> Floats:
            end = restart(queries, tol=max(self.tol, FOLD_TOLERANCE), max_iter=self.max_iter)
            return best_weights([end], scorer.select(queries), simple.select(queries))

        return choose_shrinkage(scorer, simple, refit, folds=self.folds, repeats=self.repeats, seed=self.seed + 1)

    def _held_out(
        self,
        problem: SmoothObjective,
        scorer: Objective,
        simple: SimpleWeights,
        ends: list[Ascent],
        choice: ShrinkageChoice,
    ) -> float:
        """Return the measure to expect on other queries.

        The choice among shrinkages compares like with like, so there the folds may start from the optimum of all
        queries. This value must not: each fold learns from scratch, from the better of the starts.
        """
        if not choice.reached.size:
            return scorer.mean(simple.targets["uniform"])
        better = int(np.argmax(list(in_order(scorer.mean, [end.alpha for end in ends]))))

        def learn(queries: NDArray[np.intp]) -> Floats:
            some = simple.select(queries)
            start, tol = _starts_of(some)[better], max(self.tol, FOLD_TOLERANCE)
            end = quasi_newton(problem.select(queries).gradient, start, tol=tol, max_iter=self.max_iter)
            return best_weights([end], scorer.select(queries), some)

        return held_out_value(scorer, simple, learn, choice.reached, folds=self.folds, seed=self.seed + 1)


class PartFits:
    """Fits of `auto` on all queries of aligned runs and on some of them, which share what is known of each query.

    Tiles are built and simple weights measured once. Weights are to the bit those of `fit` on the selected runs.
    """

    def __init__(self, fuser: AutoFuser, aligned: Aligned) -> None:
        self.problem, self.scorer = fuser._objectives(aligned)
        _, exact = fuser._views(self.problem, self.scorer)
        self._simple = SimpleWeights.of(exact, len(aligned.rankers), fuser.signs)
        self._aligned = aligned
        self._place = np.full(len(aligned.queries), -1)
        self._place[self.problem.kept] = np.arange(len(self.problem.kept))

    def fit(self, fuser: AutoFuser, queries: NDArray[np.integer] | None = None) -> AutoFuser:
        """Learn from all queries, or from those at some positions of the runs, without a learning curve."""
        if queries is None:
            return fuser._learn(self.problem, self.scorer, self._aligned, self._simple)
        own = self._place[queries]
        own = own[own >= 0]
        if len(own) == 0:
            return fuser.fit(self._aligned.select(queries))  # which says what is missing
        part = self.problem.select(own).with_beta(self.problem.beta_of(queries))
        part.curve = False
        return fuser.fit_problem(part, self.scorer.select(own), self._simple.select(own))

    def refits(
        self, fuser: AutoFuser, steps: tuple[float, ...]
    ) -> Callable[[NDArray[np.integer]], tuple[Floats, Floats]]:
        """Return the function of `AutoFuser.refits`, for a fuser that has learned from all queries."""
        return fuser.refits(self.problem.with_beta(fuser.beta_), self.scorer, steps, self._simple)


def softness_for(n_rankers: int) -> float:
    """Return the share of beta="auto" that smoothed MAP is maximised under."""
    return 1.0 if n_rankers <= SHARP_UP_TO else SOFTNESS


def _starts_of(simple: SimpleWeights) -> list[Floats]:
    targets = simple.targets
    return simple_starts(targets["uniform"], targets["single"])


def _learn_nothing() -> ShrinkageChoice:
    """Return uniform weights, whatever was learned."""
    return ShrinkageChoice(Shrinkage("uniform", 1.0), np.zeros((len(SHRINKAGES), 0)))


def choose_shrinkage(
    objective: Objective,
    simple: SimpleWeights,
    refit: Callable[[NDArray[np.intp]], Floats],
    *,
    folds: int,
    repeats: int,
    seed: int,
    reference: Shrinkage = DEFAULT_SHRINKAGE,
) -> ShrinkageChoice:
    """Return how far to shrink, by cross-validation on the objective's queries.

    `refit` learns weights from some of the queries; `simple` are the simple weights of all of them. The
    reference stays unless another shrinkage is clearly better. One query cannot be cross-validated: uniform weights
    then.
    """
    n_queries = len(simple.query_weights)
    if n_queries < 2:
        return _learn_nothing()
    folds = min(folds, n_queries)
    jobs = [(fold_of_queries(n_queries, folds, seed + r), f) for r in range(repeats) for f in range(folds)]

    def held_out(job: tuple[NDArray[np.int64], int]) -> tuple[NDArray[np.intp], Floats]:
        fold, f = job
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        learned, targets, test = refit(inside), simple.select(inside).targets, objective.select(outside)
        return outside, test.per_query_each(shrink_each(learned, targets))

    reached = np.zeros((len(SHRINKAGES), n_queries))
    for outside, values in over_items(held_out, jobs):
        reached[:, outside] += values / repeats
    best = clearly_best(reached, simple.query_weights, SHRINKAGES.index(reference))
    return ShrinkageChoice(SHRINKAGES[best], reached)


def held_out_value(
    objective: Objective,
    simple: SimpleWeights,
    learn: Callable[[NDArray[np.intp]], Floats],
    reached: Floats,
    *,
    folds: int,
    seed: int,
) -> float:
    """Return what learning and shrinking reach on queries that took part in neither.

    `learn` learns weights from some of the queries, from scratch. `reached` are the values that shrinkages are
    chosen by. For the queries of a fold, the choice is made by the values of the other folds, so that it is not
    measured where it looked best.
    """
    n_queries, values = len(simple.query_weights), np.zeros(len(simple.query_weights))
    folds, default = min(folds, n_queries), SHRINKAGES.index(DEFAULT_SHRINKAGE)
    fold = fold_of_queries(n_queries, folds, seed)

    def held_out(f: int) -> tuple[NDArray[np.intp], Floats]:
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        chosen = SHRINKAGES[clearly_best(reached[:, inside], simple.query_weights[inside], default)]
        weights = shrink_safely(learn(inside), chosen, simple.select(inside).targets, objective.select(inside))
        return outside, objective.select(outside).per_query(weights)

    for outside, found in over_items(held_out, range(folds)):
        values[outside] = found
    return weighted_mean(values, simple.query_weights)


def clearly_best(reached: Floats, query_weights: Floats, reference: int) -> int:
    """Return the row whose gain over the reference row is clearest; the reference if none is clear.

    `reached` holds held-out values, a column per query. A gain counts as clear above 1.28 standard errors, which
    chance alone exceeds once in ten times.
    """
    share = query_weights / query_weights.sum()
    gain = reached - reached[reference]
    mean = times(gain, share)
    error = np.sqrt(times((gain - mean[:, None]) ** 2, share) / max(reached.shape[1] - 1, 1))
    clear = mean - Z_90 * error
    clear[reference] = 0.0
    return int(np.argmax(clear))


def _polish(learned: Floats, scorer: Objective) -> Floats:
    """Return weights moved on the exact measure, if the smoothed one had missed a real gain."""
    polished = direct_search(scorer, learned, steps=POLISH_STEPS[: 4 if len(learned) <= MOST_PAIRED else 2])
    return polished if scorer.mean(polished) > scorer.mean(learned) + LEAST_POLISH_GAIN else learned


def best_weights(
    ends: list[Ascent], objective: Objective, simple: SimpleWeights, steps: tuple[float, ...] = STEPS
) -> Floats:
    """Return the best weights for these queries, overfitted or not: an optimum of `ends`, or simple weights.

    Measures that have no smoothed form are then maximised directly, by steps of these sizes.
    """
    *singles, uniform = means = simple.means()
    targets = simple.targets_by(means)
    optima = [end.alpha for end in ends]
    known = list(zip(in_order(objective.mean, optima), optima, strict=True))
    known += [(max(singles), targets["single"]), (uniform, targets["uniform"])]
    best = max(known, key=lambda one: one[0])[1]
    return best if objective.is_smoothed else direct_search(objective, best, steps=steps)


def shrink(learned: Floats, shrinkage: Shrinkage, simple: dict[str, Floats]) -> Floats:
    """Return the weights, moved towards the target by a share of the distance."""
    return as_distribution((1.0 - shrinkage.amount) * learned + shrinkage.amount * simple[shrinkage.target])


def shrink_each(learned: Floats, simple: dict[str, Floats]) -> Floats:
    """Return the weights under each of `SHRINKAGES`, one vector per row, to the bit those of `shrink`."""
    amounts = np.array([[amount] for _, amount in SHRINKAGES])
    moved = (1.0 - amounts) * learned + amounts * np.array([simple[target] for target, _ in SHRINKAGES])
    return as_distributions(moved)


def shrink_safely(
    learned: Floats,
    shrinkage: Shrinkage,
    simple: dict[str, Floats],
    objective: Objective,
    least: float | None = None,
) -> Floats:
    """Return the weights shrunk as chosen; less where the simple weights would be better in training.

    `least` is what the better of the simple weights reaches, if it is known.
    """
    amounts = (*np.linspace(shrinkage.amount, 0.0, 11), 0.0)
    tried = [shrink(learned, Shrinkage(shrinkage.target, float(amount)), simple) for amount in amounts]
    unknown = list(simple.values()) if least is None else []
    *of_simple, value = in_order(objective.mean, [*unknown, tried[0]])
    if least is None:
        least = max(of_simple)
    if value >= least:  # nearly always, so the others are not evaluated along with it
        return tried[0]
    for weights, value in zip(tried[1:], in_order(objective.mean, tried[1:]), strict=True):
        if value >= least:
            return weights
    return max(simple.values(), key=objective.mean)
