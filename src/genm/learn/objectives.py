"""What learning maximises on the training queries: exact and smoothed MAP, or any measure; folds.

Queries with no relevant documents are skipped and counted.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import exact_ap, exact_ap_each, smooth_ap, smooth_map
from genm._math.fusion import fused_variances
from genm._math.linear_algebra import median, weighted_mean
from genm._math.parallel import in_order
from genm._math.simplex_optimizers import join_signs
from genm._math.tiles import Tiles, build_tiles, mean, relabel, take, take_rankers
from genm._typing import Floats
from genm.align import Aligned, check_aligned
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, Measure

Beta = float | Literal["auto"]

PAPER_BETA = 200.0
STEPS = (0.2, 0.1, 0.05, 0.02)
"""How much weight a direct search moves at a time, one step size after the other."""
MOST_PAIRED = 6
"""Weights up to which a direct search tries all pairs; of more, each is moved against all others together."""


class Problem:
    """Mean average precision of an ensemble over labelled queries.

    `exact` is Problem P1; `value`, `gradient` and `derivatives` are P2, P3 and P4, which differ only in the
    set that the weights are taken from. Means are weighted by the queries' weights.
    """

    in_memory: ClassVar[bool] = True
    """Whether an evaluation costs no reading."""
    curve: bool = True
    """Whether a fit is to record its learning curve; where its weights alone count, `auto` leaves it out."""

    def __init__(self, aligned: Aligned, *, level: int = 1, beta: Beta = "auto", smooth_j: bool = False) -> None:
        check_aligned(aligned)
        if not aligned.labelled:
            raise InputError("these runs carry no judgments. Give qrels, or use CotrainFuser.")
        n_relevant = aligned.n_relevant(level)
        kept = np.flatnonzero((n_relevant > 0) & (aligned.query_weights > 0))
        if len(kept) == 0:
            raise InputError(
                f"no query has a document judged {level} or higher. Check the judgments, or lower the level."
            )
        self._build(aligned, kept, aligned.relevance >= level, n_relevant, beta=beta, smooth_j=smooth_j)

    @classmethod
    def unlabelled(cls, aligned: Aligned, *, beta: Beta = "auto", smooth_j: bool = False) -> Self:
        """Return the problem of all queries that have documents, none of them relevant, for `with_labels`.

        Judgments are not looked at, whether there are any or not.
        """
        kept = np.flatnonzero((np.diff(aligned.starts) > 0) & (aligned.query_weights > 0))
        if len(kept) == 0:
            raise InputError("no query has a document that a ranker returned. Check the runs.")
        problem = cls.__new__(cls)
        nothing = np.zeros(len(aligned.doc), np.bool_), np.zeros(len(aligned.queries), np.int64)
        problem._build(aligned, kept, *nothing, beta=beta, smooth_j=smooth_j)
        return problem

    def _build(
        self,
        aligned: Aligned,
        kept: NDArray[np.intp],
        relevant: NDArray[np.bool_],
        n_relevant: NDArray[np.int64],
        *,
        beta: Beta,
        smooth_j: bool,
    ) -> None:
        self.n_set_aside = len(aligned.queries) - len(kept)
        self.kept = kept
        """Positions, among the queries of `aligned`, of those that teach."""
        self.rankers, self.normalizers, self.depths = aligned.rankers, aligned.normalizers, aligned.depths
        self.smooth_j = smooth_j
        self._variances = fused_variances(aligned.scores, aligned.starts) if beta == "auto" else None
        self.beta = check_beta(beta) if self._variances is None else _sharpness_of(self._variances)
        tiles = build_tiles(aligned.starts, aligned.scores, relevant, n_relevant, aligned.query_weights)
        self.tiles: Tiles = take(tiles, kept) if self.n_set_aside else tiles

    @property
    def query_weights(self) -> Floats:
        """How much each query counts."""
        return self.tiles.query_weights

    def select(self, queries: NDArray[np.integer]) -> Self:
        """Return the problem of some of the kept queries; no score is copied."""
        return self._with(tiles=take(self.tiles, queries), kept=self.kept[queries])

    def beta_of(self, queries: NDArray[np.integer]) -> float:
        """Return the sharpness that the problem of these queries of the aligned runs alone would have."""
        return self.beta if self._variances is None else _sharpness_of(self._variances[queries])

    def sample(self) -> NDArray[np.intp] | None:
        """Return which of the kept queries a search should begin with; None: with all of them."""
        return None

    def repeat(self, counts: NDArray[np.integer]) -> Self:
        """Return the problem with each query counted so many times; nothing is computed twice."""
        return self._with(tiles=replace(self.tiles, query_weights=self.tiles.query_weights * counts))

    def with_beta(self, beta: float) -> Self:
        """Return the same queries under another sharpness."""
        return self._with(beta=check_beta(beta))

    def with_rankers(self, columns: Sequence[int], tiles: Tiles | None = None) -> Self:
        """Return the same queries under some of the rankers; the sharpness stays.

        So do all documents, unless `tiles` of these rankers are given that hold fewer.
        """
        return self._with(
            tiles=take_rankers(self.tiles, columns) if tiles is None else tiles,
            rankers=tuple(self.rankers[k] for k in columns),
            normalizers=tuple(self.normalizers[k] for k in columns),
            depths=tuple(self.depths[k] for k in columns),
        )

    def with_labels(self, relevant: NDArray[np.bool_]) -> Self:
        """Return the same queries with other labels: `relevant` marks rows of the aligned scores."""
        counts = np.concatenate(([0], np.cumsum(relevant)))[self.tiles.rows]
        return self._with(tiles=relabel(self.tiles, relevant, counts[:, 1] - counts[:, 0]))

    def exact_per_query(self, weights: Floats) -> Floats:
        """Return the average precision of every kept query, ties settled as trec_eval does (P1's summands)."""
        return exact_ap(self.tiles, weights)

    def exact_per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the same for each of (W, K) weights."""
        return exact_ap_each(self.tiles, weights)

    def exact(self, weights: Floats) -> float:
        """Return the mean average precision (P1)."""
        return float(mean(self.tiles, self.exact_per_query(weights)))

    def value(self, weights: Floats) -> float:
        """Return the smoothed objective."""
        return float(mean(self.tiles, smooth_ap(self.tiles, weights, self.beta, smooth_j=self.smooth_j).value))

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed objective and its gradient (Eq. 16)."""
        if self.smooth_j:
            return self.average_gradient(*self.gradients(weights))
        return smooth_map(self.tiles, weights, self.beta)

    def gradients(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return (Q) the smoothed average precision of every query and (Q, K) its gradient (Eq. 16)."""
        found = smooth_ap(self.tiles, weights, self.beta, smooth_j=self.smooth_j, order=1)
        return found.value, found.gradient

    def average_gradient(self, values: Floats, gradients: Floats) -> tuple[float, Floats]:
        """Return the means over the queries of what `gradients` returns."""
        return float(mean(self.tiles, values)), mean(self.tiles, gradients)

    def gradients_at(self, weights: Floats) -> "GradientOfPart":
        """Return a function that gives objective and gradient at these weights for some of the queries."""
        return gradient_of_part(self, weights)

    def pass_over(self, learner: "StreamLearner") -> None:
        """Let the learner see the queries in their order."""
        learner.pass_over(self.tiles)

    def derivatives(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the smoothed objective, its gradient (Eq. 16) and its Hessian (Eq. 17 as in Appendix A)."""
        found = smooth_ap(self.tiles, weights, self.beta, smooth_j=self.smooth_j, order=2)
        return float(mean(self.tiles, found.value)), mean(self.tiles, found.gradient), found.hessian

    def _with(self, **changes: object) -> Self:
        other = self.__class__.__new__(self.__class__)  # faster than `copy`
        other.__dict__.update(self.__dict__, **changes)
        return other


def check_beta(beta: float | str) -> float:
    """Return beta if it can sharpen a sigmoid."""
    if isinstance(beta, str) or not 0.0 < beta < np.inf:
        raise InputError(f'beta={beta!r}: expected a positive number or "auto". The paper uses 200.')
    return float(beta)


def beta_of(aligned: Aligned) -> float:
    """Return beta for the scale of the scores.

    What matters is the product of beta and the spread of scores within a query. The paper's 200 is meant for
    cosines, whose spread is about 0.1, so beta is 20 over the median query's standard deviation under uniform
    weights (departure 15: with raw BM25 a beta of 200 would saturate the sigmoid).
    """
    return _sharpness_of(fused_variances(aligned.scores, aligned.starts))


def _sharpness_of(variances: Floats) -> float:
    """Return beta for what `fused_variances` returns: -1 for queries that say nothing about the spread."""
    return sharpness_for(variances[variances != -1.0])


def sharpness_for(variances: Floats) -> float:
    """Return beta for the variances of fused scores within queries: 20 over the median standard deviation."""
    spread = float(np.sqrt(median(variances))) if len(variances) else 0.0
    return PAPER_BETA if not spread > 0.0 else min(20.0 / spread, 1e300)


class StreamLearner(Protocol):
    """A learner that sees one query after the other, and whose state is a few numbers."""

    def pass_over(self, tiles: Tiles) -> None:
        """Learn from the queries in their order."""

    def state(self) -> Floats:
        """Return everything that later steps depend on."""

    def restore(self, state: Floats) -> None:
        """Continue from a state."""


GradientOfPart = Callable[[NDArray[np.integer]], tuple[float, Floats]]


class GradientsByQuery(Protocol):
    """An objective that knows the gradient of every query."""

    def gradients(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the value and the gradient of every query."""

    def average_gradient(self, values: Floats, gradients: Floats) -> tuple[float, Floats]:
        """Return the means over the queries of what `gradients` returns."""

    def select(self, queries: NDArray[np.integer]) -> Self:
        """Return the objective of some of the queries."""


def gradient_of_part(objective: GradientsByQuery, weights: Floats) -> GradientOfPart:
    """Return a function that gives mean and gradient for some of the queries; each query is evaluated once."""
    values, gradients = objective.gradients(weights)
    return lambda queries: objective.select(queries).average_gradient(values[queries], gradients[queries])


class SmoothObjective(Protocol):
    """The smoothed average precision of some queries, as a function of the weights."""

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the mean and its gradient."""

    def gradients_at(self, weights: Floats) -> GradientOfPart:
        """Return a function that gives mean and gradient at these weights for some of the queries."""

    def select(self, queries: NDArray[np.integer]) -> Self:
        """Return the objective of some of the queries."""


class Objective(Protocol):
    """A measure of the ensemble on some queries, as a function of its weights."""

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective approximates this very measure."""

    def mean(self, weights: Floats) -> float:
        """Return the measure's mean over the queries, weighted by the queries' weights."""

    def per_query(self, weights: Floats) -> Floats:
        """Return the measure of every query."""

    def per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the measure of every query under each of (W, K) weights."""

    def select(self, queries: NDArray[np.integer]) -> Self:
        """Return the objective of some of the queries."""


def each_alone(per_query: Callable[[Floats], Floats], weights: Floats) -> Floats:
    """Return (W, Q) values of (W, K) weights, evaluated one vector after the other."""
    return np.array(list(in_order(per_query, weights)))


class Scorer:
    """Exact values of one measure per training query: an `Objective`. Average precision takes a faster path."""

    def __init__(self, aligned: Aligned | None, problem: Problem, measure: Measure, level: int) -> None:
        self.measure = with_level(measure, level)
        self._problem = problem
        self._quick = self.measure.has_smoothed_form
        self.query_weights = problem.query_weights
        if not self._quick:
            if aligned is None:
                raise InputError(f"measure {self.measure}: expected aligned runs. Only AP does without.")
            whole = len(problem.kept) == len(aligned.queries)
            self._aligned = aligned if whole else aligned.select(problem.kept)
            self._evaluator = AlignedEvaluator(self._aligned, [self.measure])

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective approximates this very measure."""
        return self._quick

    def per_query(self, weights: Floats) -> Floats:
        """Return the measure of every training query."""
        if self._quick:
            return self._problem.exact_per_query(weights)
        return self._evaluator.values(weights)[:, 0]

    def per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the measure of every training query under each of (W, K) weights."""
        return self._problem.exact_per_query_each(weights) if self._quick else each_alone(self.per_query, weights)

    def mean(self, weights: Floats) -> float:
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


class SignedProblem:
    """A problem in weights of any sign, as a function of 2 K parts on the simplex: a `SmoothObjective`.

    The weight of ranker k is part k minus part K + k, so the optimisers on the simplex apply as they are. Where
    both parts are above 0 they cancel, which shortens the weights; no ranking depends on their length.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def exact(self, parts: Floats) -> float:
        """Return the mean average precision."""
        return self._problem.exact(join_signs(parts))

    def gradient(self, parts: Floats) -> tuple[float, Floats]:
        """Return the mean and its gradient in the parts."""
        value, gradient = self._problem.gradient(join_signs(parts))
        return value, np.concatenate([gradient, -gradient])

    def gradients(self, parts: Floats) -> tuple[Floats, Floats]:
        """Return the value and the gradient of every query."""
        values, gradients = self._problem.gradients(join_signs(parts))
        return values, np.hstack([gradients, -gradients])

    def average_gradient(self, values: Floats, gradients: Floats) -> tuple[float, Floats]:
        """Return the means over the queries of what `gradients` returns."""
        return self._problem.average_gradient(values, gradients)

    def gradients_at(self, parts: Floats) -> GradientOfPart:
        """Return a function that gives mean and gradient at these parts for some of the queries."""
        of_part = self._problem.gradients_at(join_signs(parts))

        def signed(queries: NDArray[np.integer]) -> tuple[float, Floats]:
            value, gradient = of_part(queries)
            return value, np.concatenate([gradient, -gradient])

        return signed

    def select(self, queries: NDArray[np.integer]) -> "SignedProblem":
        """Return the objective of some of the queries."""
        return SignedProblem(self._problem.select(queries))

    def repeat(self, counts: NDArray[np.integer]) -> "SignedProblem":
        """Return the objective with each query counted so many times."""
        return SignedProblem(self._problem.repeat(counts))


class SignedScorer:
    """Exact values of a measure for weights of any sign, as a function of 2 K parts: an `Objective`."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective approximates this very measure."""
        return self._scorer.is_smoothed

    @property
    def query_weights(self) -> Floats:
        """How much each query counts."""
        return self._scorer.query_weights

    def per_query(self, parts: Floats) -> Floats:
        """Return the measure of every query."""
        return self._scorer.per_query(join_signs(parts))

    def per_query_each(self, parts: Floats) -> Floats:
        """Return (W, Q) the measure of every query under each of (W, 2 K) parts."""
        return self._scorer.per_query_each(np.array([join_signs(one) for one in parts]))

    def mean(self, parts: Floats) -> float:
        """Return the measure's mean over the queries."""
        return self._scorer.mean(join_signs(parts))

    def select(self, queries: NDArray[np.integer]) -> "SignedScorer":
        """Return the scorer of some of the queries."""
        return SignedScorer(self._scorer.select(queries))


def with_level(measure: Measure, level: int) -> Measure:
    """Return the measure with `level` as its lowest relevant grade, where it has one and none was given."""
    return replace(measure, rel=level) if measure.takes_level and measure.rel == 1 else measure


def direct_search(objective: Objective, start: Floats, *, steps: tuple[float, ...] = STEPS) -> Floats:
    """Maximise the measure itself by moving weight from one ranker to another, in ever smaller steps.

    For measures that have no smoothed form here. More than `MOST_PAIRED` rankers have too many pairs: then weight
    is moved between each ranker and all others, which keep their proportions. Deterministic: moves are tried in
    order, the first gain is taken.
    """
    weights, reached, n = start, objective.mean(start), len(start)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    alone = [(i, sign) for i in range(n) for sign in (1, -1)]
    for step in steps:
        moved = True
        while moved:
            moved, left = False, list(pairs if n <= MOST_PAIRED else alone)
            while left:
                tried = [(m, _trial(weights, move, step)) for m, move in enumerate(left)]
                trials = [(m, trial) for m, trial in tried if trial is not None]
                left, untried = [], left
                values = in_order(objective.mean, [trial for _, trial in trials])
                for (m, trial), value in zip(trials, values, strict=True):
                    if value > reached + 1e-12:
                        weights, reached, moved = trial, value, True
                        left = untried[m + 1 :]
                        break
    return weights


def _trial(weights: Floats, move: tuple[int, int], step: float) -> Floats | None:
    """Return the weights after a move of the direct search; None if it changes nothing."""
    return _moved(weights, *move, step) if len(weights) <= MOST_PAIRED else _rescaled(weights, *move, step)


def _moved(weights: Floats, i: int, j: int, step: float) -> Floats | None:
    """Return the weights with `step`, or all there is, moved from ranker i to j; None if there is nothing."""
    amount = min(step, weights[i])
    if amount <= 0.0:
        return None
    trial = weights.copy()
    trial[i] -= amount
    trial[j] += amount
    return trial


def _rescaled(weights: Floats, i: int, sign: int, step: float) -> Floats | None:
    """Return the weights with ranker i's changed by `step`, within 0 and 1, and the others in proportion.

    None if that changes nothing. A ranker that has all the weight stays, because the others have no proportions.
    """
    here = float(weights[i])
    there = min(max(here + sign * step, 0.0), 1.0)
    if here >= 1.0 or there == here:
        return None
    trial = weights * ((1.0 - there) / (1.0 - here))
    trial[i] = there
    return trial


def fold_of_queries(n_queries: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return each query's fold, 0 to n_folds - 1: shuffled by the seed, sizes differ by at most one."""
    return np.random.default_rng(seed).permutation(np.arange(n_queries) % n_folds)
