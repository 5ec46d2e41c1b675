"""Learn weights from few judgments: expected average precision, where an unjudged document may be relevant."""

import copy
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from genm._math.expected_ap import expected_ap, expected_size, ranks_of, smooth_expected_ap
from genm._math.fusion import weighted_sum
from genm._math.linear_algebra import times, weighted_mean
from genm._math.simplex_optimizers import Ascent
from genm._typing import Floats, Ints
from genm.align import Aligned, check_aligned
from genm.learn.auto import (
    FOLD_TOLERANCE,
    SHRINKAGES,
    AutoFuser,
    Shrinkage,
    SimpleWeights,
    WarmRestart,
    best_weights,
    choose_shrinkage,
    clearly_best,
    shrink,
)
from genm.learn.base import Step
from genm.learn.objectives import (
    Beta,
    GradientOfPart,
    Problem,
    beta_of,
    check_beta,
    each_alone,
    gradient_of_part,
)
from genm.learn.relevance import (
    LEAST_QUERIES,
    estimate_relevance,
    expected_difference,
    is_judged,
    known_relevant,
    lists_relevant_only,
    ranker_features,
)
from genm.records import Note

EQUAL = Shrinkage("uniform", 1.0)
"""The shrinkage that keeps equal weights."""
UNJUDGED_ERRORS = 1.2
"""The gain of learned weights must exceed this many of the standard errors that unjudged documents leave in it.
Weights between equal and learned ones need a share of that, as large as the share of the distance. The gain in
cross-validation alone misleads while little is judged: all queries share one model of relevance, so its errors
favour the same weights in every fold. docs/judging.md says how the number was chosen."""


class ExpectedProblem:
    """Expected AP of all queries as a function of the weights: an `Objective` and a `SmoothObjective`."""

    is_smoothed = True

    def __init__(self, aligned: Aligned, *, level: int = 1, beta: Beta = "auto") -> None:
        check_aligned(aligned)
        self._judged = Problem(aligned, level=level, beta=1.0)
        self.rankers, self.normalizers, self.depths = aligned.rankers, aligned.normalizers, aligned.depths
        self.beta = beta_of(aligned) if beta == "auto" else check_beta(beta)
        self.starts, self.scores = aligned.starts, np.ascontiguousarray(aligned.scores)
        self.features = ranker_features(aligned)
        self.relevance = estimate_relevance(aligned, self.features, level=level)
        self.p = self.relevance.p
        self.size = expected_size(self.starts, self.p, known_relevant(aligned, level))
        weighty = (np.diff(aligned.starts) > 0) & (aligned.query_weights > 0.0)
        self.queries = np.flatnonzero(weighty).astype(np.int64)
        self.query_weights = aligned.query_weights[self.queries]

    def per_query(self, weights: Floats) -> Floats:
        """Return the expected AP of every query."""
        ranks = ranks_of(self.starts, weighted_sum(self.scores, weights))
        return expected_ap(self.starts, ranks, self.p, self.size).value[self.queries]

    def per_query_each(self, weights: Floats) -> Floats:
        """Return (W, Q) the same for each of (W, K) weights."""
        return each_alone(self.per_query, weights)

    def mean(self, weights: Floats) -> float:
        """Return the mean expected AP."""
        return weighted_mean(self.per_query(weights), self.query_weights)

    def exact(self, weights: Floats) -> float:
        """Return MAP as it is measured, where unjudged documents are not relevant (P1): for the learning curve."""
        return self._judged.exact(weights)

    def value(self, weights: Floats) -> float:
        """Return the smoothed objective."""
        return self.gradient(weights)[0]

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed objective and its gradient."""
        return self.average_gradient(*self.gradients(weights))

    def gradients(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the smoothed expected AP of every query and its gradient."""
        return smooth_expected_ap(self.starts, self.scores, self.p, self.size, self.queries, weights, self.beta)

    def gradients_at(self, weights: Floats) -> GradientOfPart:
        """Return a function that gives mean and gradient at these weights for some of the queries."""
        return gradient_of_part(self, weights)

    def average_gradient(self, values: Floats, gradients: Floats) -> tuple[float, Floats]:
        """Return the means over the queries of what `gradients` returns."""
        share = self.query_weights / self.query_weights.sum()
        return weighted_mean(values, self.query_weights), times(np.ascontiguousarray(gradients.T), share)

    def select(self, queries: NDArray[np.integer]) -> "ExpectedProblem":
        """Return the objective of some of the queries, which is as fast as they are few."""
        chosen = self.queries[queries]
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        rows = np.arange(starts[-1]) + np.repeat(self.starts[:-1][chosen] - starts[:-1], lengths)
        other = copy.copy(self)
        other.starts, other.scores, other.p, other.size = starts, self.scores[rows], self.p[rows], self.size[chosen]
        other.queries, other.query_weights = np.arange(len(chosen)), self.query_weights[queries]
        return other


class ExpectedFuser(AutoFuser):
    """Learn weights from few judgments: an unjudged document counts by its probability of relevance.

    The smoothed expected AP is maximised as `AutoFuser` maximises the smoothed MAP. How far the result is moved
    towards equal weights is chosen by cross-validation on the queries with a document judged relevant. The weights
    stay equal unless a gain over equal weights is clear there and exceeds what unjudged documents leave open
    (UNJUDGED_ERRORS); `notes_` says so. Where all documents are judged, expected AP is AP. Judgments that are not
    certain count by their own probability (`Qrels.probability`). Where no document is judged not relevant, unjudged
    ones are taken as not relevant.

    Objective: smoothed expected AP; then expected AP. Set: the simplex.
    """

    method = "expected"
    objective = "smoothed expected AP"

    n_informative_: int
    """Queries with a document judged relevant: what learning stands on."""
    notes_: tuple[Note, ...]

    def __init__(
        self,
        *,
        level: int = 1,
        beta: Beta = "auto",
        folds: int = 5,
        repeats: int = 3,
        tol: float = 1e-6,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        super().__init__(
            level=level, beta=beta, folds=folds, repeats=repeats, tol=tol, max_iter=max_iter, seed=seed
        )

    def _fit(self, aligned: Aligned) -> Self:
        """Estimate relevance, learn, and shrink."""
        relevant_only = lists_relevant_only(aligned, level=self.level)
        if relevant_only:
            grades = np.where(is_judged(aligned), aligned.relevance, self.level - 1).astype(np.int32)
            aligned = replace(aligned, relevance=grades)
        problem = ExpectedProblem(aligned, level=self.level, beta=self.beta)
        self._remember(problem)
        self.beta_, self.history_ = problem.beta, []
        informative = np.flatnonzero(aligned.n_relevant(self.level)[problem.queries] > 0)
        self.n_informative_ = len(informative)
        simple = SimpleWeights.of(problem, len(self.rankers_))
        uniform = simple.targets["uniform"]
        ends = self._optima(problem, simple) if len(informative) >= LEAST_QUERIES else []
        self.learned_ = best_weights(ends, problem, simple) if ends else uniform
        self.shrunk_, self.held_out_ = EQUAL, problem.mean(uniform)
        if ends:
            certain = self._certain_gains(aligned, problem, simple)
            self.shrunk_, self.held_out_ = self._shrinkage(
                problem.select(informative), simple, ends, informative, certain
            )
        self.weights_ = shrink(self.learned_, self.shrunk_, simple.targets)
        self.objective_ = problem.value(self.weights_)
        self.converged_ = all(end.converged for end in ends)
        self.n_iter_ = max([end.n_iter for end in ends], default=1)
        self.history_.append(Step(len(ends), 0, self.objective_, problem.exact(self.weights_)))
        self.notes_ = self._notes(len(problem.queries), relevant_only=relevant_only)
        self._warn_if_stopped_early()
        return self

    def _certain_gains(self, aligned: Aligned, problem: ExpectedProblem, simple: SimpleWeights) -> list[int]:
        """Return the places in SHRINKAGES whose gain over equal weights exceeds what unjudged documents leave open.

        That of equal weights is always among them.
        """

        def ranks(shrinkage: Shrinkage) -> Ints:
            weights = shrink(self.learned_, shrinkage, simple.targets)
            return ranks_of(problem.starts, weighted_sum(problem.scores, weights))

        equal, found = ranks(EQUAL), []
        for place, one in enumerate(SHRINKAGES):
            gain = expected_difference(
                aligned, (ranks(one), equal), problem.features, self.level, problem.relevance
            )
            moved = 1.0 - one.amount if one.target == EQUAL.target else 1.0
            if one == EQUAL or gain.mean > moved * UNJUDGED_ERRORS * gain.error:
                found.append(place)
        return found

    def _shrinkage(
        self,
        problem: ExpectedProblem,
        simple: SimpleWeights,
        ends: list[Ascent],
        queries: NDArray[np.intp],
        certain: list[int],
    ) -> tuple[Shrinkage, float]:
        """Choose how far to shrink, among `certain`: equal weights unless another is clearly better held out."""
        restart = WarmRestart(problem, max(ends, key=lambda end: end.value))
        own = simple.select(queries)

        def refit(inside: NDArray[np.intp]) -> Floats:
            end = restart(inside, tol=max(self.tol, FOLD_TOLERANCE), max_iter=self.max_iter)
            return best_weights([end], problem.select(inside), own.select(inside))

        choice = choose_shrinkage(
            problem,
            own,
            refit,
            folds=self.folds,
            repeats=self.repeats,
            seed=self.seed + 1,
            reference=EQUAL,
        )
        reached = choice.reached[certain]
        best = clearly_best(reached, own.query_weights, certain.index(SHRINKAGES.index(EQUAL)))
        return SHRINKAGES[certain[best]], weighted_mean(reached[best], own.query_weights)

    def _notes(self, n_queries: int, *, relevant_only: bool) -> tuple[Note, ...]:
        text = (
            f"learning stands on {self.n_informative_:,} of {n_queries:,} queries: those with a document judged "
            f"relevant."
        )
        notes = [Note("informative-queries", self.n_informative_, text)]
        if relevant_only:
            text = "no document is judged not relevant, so unjudged documents are taken as not relevant"
            notes.append(Note("relevant-only", 1, text))
        if self.shrunk_ == EQUAL and len(self.rankers_) > 1:
            reason = "the judgments do not show clearly that other weights are better"
            if self.n_informative_ < LEAST_QUERIES:
                reason = f"fewer than {LEAST_QUERIES} queries have a document judged relevant"
            notes.append(Note("equal-weights-kept", 1, f"the weights stay equal: {reason}. Judge more documents."))
        return tuple(notes)
