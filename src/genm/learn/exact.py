"""The exact optimum: climb the measure itself along lines on which it is known everywhere, and prove the result."""

import time
import warnings
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from genm._math.climbing import climb
from genm._math.exact.branch_and_bound import Optimum, best_weights
from genm._math.exact.line_search import line_profile, value_at
from genm._math.exact.rank_gains import Problem as Tasks
from genm._math.simplex_optimizers import quasi_newton
from genm.align import Aligned
from genm.errors import ConvergenceWarning, InputError
from genm.evaluate import Measure, MeasureLike, parse_measure
from genm.learn.barrier import BarrierFuser
from genm.learn.base import Fuser, Step
from genm.learn.newton import NewtonFuser
from genm.learn.objectives import Beta, Problem
from genm.learn.online import OnlineFuser
from genm.learn.plateau import Plateau, centre_of_plateau, plateau_around
from genm.learn.scorer import Scorer, with_level
from genm.learn.starts import simple_starts
from genm.learn.tasks import tasks_of
from genm.model import Model
from genm.progress import Progress, silent

Array = NDArray[np.float64]

APART = 1e-3
"""Starts that differ less than this in every weight count as one."""


class ExactFuser(Fuser):
    """Learn weights by exact line search, and certify them if asked (ours; no sampling, no smoothing).

    Objective: the measure itself, any of `genm.evaluate`, for all are functions of the ranking. Set: the simplex.
    Two rankers: the best of the whole line, certified. More: from the simple weights and the optima of the smoothed
    MAP, those of gEnM.BAT, gEnM.IP and gEnM.ON among them, the `n_climbs` best, along one ranker against all
    others, one against one, and `n_random` random lines a round, until no line improves. It is never worse than
    where it began, and so never below these three, with the same level and beta, on the training queries.

    `certify=True` goes on with branch and bound over the whole simplex until at most `gap` is left, or for
    `seconds`; without a time limit met the result is the same on any machine. `weights="centre"` takes the centre
    of the plateau, all weights that lose at most `plateau_loss`, in place of the optimum.

    The bound holds for generic weights, at which no two different documents tie by accident (docs/exact.md). Where
    weights that owe more to such a tie were among the starts, they are kept, and the gap is 0.
    """

    method = "exact"
    objective = "the exact measure"
    weight_set = "simplex"

    best_weights_: Array
    """The best weights found; `weights_` are these or the plateau's centre."""
    best_value_: float
    """The measure at the best weights, on the training queries."""
    plateau_: Plateau
    optimum_: Optimum | None
    """What was proved, with weights, value and bound; None for more than two rankers unless `certify` is set."""
    bound_: float | None
    """No generic weights reach more than this on the training queries."""
    gap_: float | None
    """How much could still be gained at most."""

    def __init__(
        self,
        *,
        measure: MeasureLike = "AP",
        level: int = 1,
        beta: Beta = "auto",
        certify: bool = False,
        seconds: float = 60.0,
        gap: float = 0.0,
        weights: Literal["best", "centre"] = "best",
        plateau_loss: float = 0.001,
        n_climbs: int = 2,
        n_random: int = 4,
        seed: int = 0,
        progress: Progress = silent,
    ) -> None:
        self.measure, self.level, self.beta, self.seed = measure, level, beta, seed
        self.certify, self.seconds, self.gap = certify, seconds, gap
        self.weights, self.plateau_loss = weights, plateau_loss
        self.n_climbs, self.n_random, self.progress = n_climbs, n_random, progress

    def fit(self, aligned: Aligned) -> Self:
        """Climb, prove if asked, and look around."""
        self._check_options()
        measure = self._measure()
        smooth = Problem(aligned, level=measure.rel, beta=self.beta)
        scorer = Scorer(aligned, smooth, measure, measure.rel)
        tasks = tasks_of(aligned.select(smooth.kept) if smooth.n_set_aside else aligned, measure)
        self._remember(aligned)
        self.history_, self.converged_ = [], True
        best, self.optimum_ = self._search(smooth, scorer, tasks)
        if self.certify:
            best = self._prove(smooth, scorer, tasks, best)
        self.best_weights_, self.best_value_ = best, scorer.mean(best)
        self.bound_ = None if self.optimum_ is None else self.optimum_.upper
        self.gap_ = None if self.bound_ is None else max(self.bound_ - self.best_value_, 0.0)
        floor = self.best_value_ - self.plateau_loss
        self.plateau_ = plateau_around(tasks, best, floor, self.plateau_loss)
        self.weights_ = best
        if self.weights == "centre":
            self.weights_ = centre_of_plateau(tasks, best, floor, scorer.mean)
        self.objective_ = self._record(0, len(self.history_), self.weights_, smooth, scorer)
        self.n_iter_ = len(self.history_)
        if not self.converged_:
            message = f"ExactFuser stopped after {self.seconds:g} s: {self.verdict()}. Raise seconds, or gap."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def verdict(self) -> str:
        """Say in words what was reached and what is left, such as "AP 0.7105; at most 0.0004 is left"."""
        self._check_fitted()
        reached = f"{self._measure()} {self.best_value_:.4f}"
        if self.gap_ is None:
            return (
                f"{reached}; no line through these weights improves it, which does not prove that none are better"
            )
        return f"{reached}; at most {self.gap_:.2g} is left" if self.gap_ > 1e-9 else f"{reached}; nothing is left"

    def to_model(self) -> Model:
        """Return what serving needs; the model names the measure that was maximised."""
        return replace(super().to_model(), measure=str(self._measure()), relevance_level=self._measure().rel)

    def _measure(self) -> Measure:
        return with_level(parse_measure(self.measure), self.level)

    def _check_options(self) -> None:
        if self.weights not in ("best", "centre"):
            raise InputError(f'weights={self.weights!r}: expected "best" or "centre".')
        if not self.plateau_loss >= 0.0 or not self.gap >= 0.0 or not self.seconds > 0.0:
            raise InputError(
                f"plateau_loss={self.plateau_loss}, gap={self.gap}, seconds={self.seconds}: "
                f"expected plateau_loss >= 0, gap >= 0 and seconds > 0."
            )
        if self.n_climbs < 1 or self.n_random < 0:
            raise InputError(
                f"n_climbs={self.n_climbs}, n_random={self.n_random}: expected at least 1 climb and 0 random lines."
            )

    def _search(self, smooth: Problem, scorer: Scorer, tasks: Tasks) -> tuple[Array, Optimum | None]:
        """Return the best weights that starts and lines lead to, and what is proved of them."""
        starts = self._starts(smooth, scorer)
        best, n_rankers = starts[0], len(smooth.rankers)
        if n_rankers == 1:
            value = self._record(0, 0, best, smooth, scorer)
            return best, Optimum(best, value, value, 0, None)
        if n_rankers == 2:
            self._record(0, 0, best, smooth, scorer)
            optimum = _best_of_line(tasks)
            better = self._record(0, 1, optimum.weights, smooth, scorer) > scorer.mean(best)
            return (optimum.weights if better else best), optimum
        reached = scorer.mean(best)
        for number, start in enumerate(starts):
            self._record(number, 0, start, smooth, scorer)
            end, _ = climb(tasks, start, n_random=self.n_random, seed=self.seed + number)
            value = self._record(number, 1, end, smooth, scorer)
            if value > reached:
                best, reached = end, value
        return best, None

    def _starts(self, smooth: Problem, scorer: Scorer) -> list[Array]:
        """Return the best of the simple weights and of the smoothed MAP's optima near them, the best first."""
        n = len(smooth.rankers)
        uniform, units = np.full(n, 1.0 / n), list(np.eye(n))
        if n == 1:
            return [uniform]
        begun = simple_starts(max(units, key=scorer.mean))
        found = [quasi_newton(smooth.gradient, start, tol=1e-6, max_iter=100).alpha for start in begun]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # any point will do to begin at
            smoothed = NewtonFuser(seed=self.seed), BarrierFuser(seed=self.seed), OnlineFuser()
            found += [fuser.fit_problem(smooth).weights_ for fuser in smoothed]
        kept: list[Array] = []
        for weights in sorted([*found, uniform, *units], key=scorer.mean, reverse=True):
            if all(float(np.abs(weights - other).max()) > APART for other in kept):
                kept.append(weights)
        return kept[: self.n_climbs]

    def _prove(self, smooth: Problem, scorer: Scorer, tasks: Tasks, best: Array) -> Array:
        """Search the whole simplex and return its best weights, or those known before if they are as good."""
        begun = time.monotonic()
        self.optimum_ = best_weights(tasks, gap=self.gap, seconds=self.seconds, start=best, progress=self.progress)
        in_time = time.monotonic() - begun < self.seconds
        value = self._record(0, len(self.history_), self.optimum_.weights, smooth, scorer)
        reached = scorer.mean(best)
        # Rounding may leave a gap that no further second would close; only a search cut short did not converge.
        self.converged_ = in_time or self.optimum_.upper - max(value, reached) <= self.gap
        return self.optimum_.weights if value > reached else best

    def _record(self, start: int, iteration: int, weights: Array, smooth: Problem, scorer: Scorer) -> float:
        value = scorer.mean(weights)
        self.history_.append(Step(start, iteration, value, smooth.exact(weights)))
        return value


def _best_of_line(tasks: Tasks) -> Optimum:
    """Return the best of all weights of two rankers, which one line holds."""
    line = line_profile(tasks, np.array([0.0, 1.0]), np.array([1.0, -1.0]), 0.0, 1.0)
    weights = np.array([line.middle, 1.0 - line.middle])
    value = value_at(tasks, weights)
    return Optimum(weights, value, max(line.value, value), 0, None)
