"""The exact optimum: maximise the measure itself by exact line search, and prove the result.

The exact optimum of the training queries is often an interval narrower than the precision of the weights. The
near-optimal region around it is more reliable: all weights that lose at most a given amount. It is computed along
the lines on which one ranker's weight changes and the others keep their proportions.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import logarithms2
from genm._math.exact.branch_and_bound import Optimum, best_weights
from genm._math.exact.line_search import NARROWEST, TOLERANCE, GainLines, Lines, ascend_lines
from genm._math.exact.rank_gains import GainProblem, binary_problem, bpref_problem, graded_problem
from genm._math.parallel import in_order
from genm._math.simplex_optimizers import quasi_newton
from genm._typing import Floats
from genm.align import Aligned
from genm.align.aligned import UNJUDGED, offsets, per_query
from genm.errors import ConvergenceWarning, InputError
from genm.evaluate import Measure, MeasureLike
from genm.learn.base import Fuser, Step
from genm.learn.batch import BarrierFuser, NewtonFuser
from genm.learn.objectives import Beta, Problem, Scorer
from genm.learn.online import OnlineFuser
from genm.learn.starts import simple_starts
from genm.model import Model
from genm.progress import Progress, silent

ROUNDS = 2
"""Rounds of moving the centre along every ranker's line; the second round starts from the result of the first."""

LEAST_DISTANCE = 1e-3
"""Starts that differ less than this in every weight count as one."""


class Plateau(NamedTuple):
    """The near-optimal region: for each ranker the weights, others in proportion, that lose at most `loss`."""

    loss: float
    """The largest loss against the best weights found."""
    low: Floats
    """(K) the smallest weight of each ranker; every weight between `low` and `high` is near-optimal."""
    high: Floats
    """(K) the largest."""

    @property
    def width(self) -> Floats:
        """How much each ranker's weight may vary: a wide interval means that the weight hardly matters."""
        return self.high - self.low


def plateau_around(lines: Lines, weights: Floats, floor: float, loss: float) -> Plateau:
    """Return the near-optimal region around `weights`: where each ranker's line is at least `floor`."""
    spans = list(in_order(lambda k: _span(lines, weights, k, floor), range(len(weights))))
    return Plateau(loss, np.array([low for low, _ in spans]), np.array([high for _, high in spans]))


def centre_of_plateau(lines: Lines, weights: Floats, floor: float, value: Callable[[Floats], float]) -> Floats:
    """Return the centre of the near-optimal region: move to the middle of each ranker's interval in turn.

    The measure never falls below `floor`, as `value` measures it.
    """
    for _ in range(ROUNDS):
        for k in range(len(weights)):
            low, high = _span(lines, weights, k, floor)
            middle = 0.5 * (low + high)
            moved = (1.0 - middle) * weights_without(weights, k)
            moved[k] = middle
            if value(moved) >= floor - TOLERANCE:  # rounding may swap rows that nearly tie
                weights = moved
    return weights


def weights_without(weights: Floats, k: int) -> Floats:
    """Return the weights without ranker k, in proportion; uniform weights if ranker k had all the weight."""
    others = weights.copy()
    others[k] = 0.0
    total = np.abs(others).sum()
    if total > 0.0:
        return np.asarray(others / total)
    others[:] = 1.0 / max(len(weights) - 1, 1)
    others[k] = 0.0
    return others


def line_of(weights: Floats, k: int) -> tuple[Floats, Floats]:
    """Return start and direction of the line along ranker k's weight, the others in proportion.

    At 0 ranker k has no weight, at 1 all of it, with the sign that it has in `weights`.
    """
    others = weights_without(weights, k)
    end = np.zeros(len(weights))
    end[k] = -1.0 if weights[k] < 0.0 else 1.0
    return others, end - others


def _span(lines: Lines, weights: Floats, k: int, floor: float) -> tuple[float, float]:
    """Return the interval around ranker k's weight in which the measure is at least `floor`."""
    if len(weights) == 1:
        return float(weights[k]), float(weights[k])
    low, high = _span_of_size(lines, weights, k, floor)
    return (low, high) if weights[k] >= 0.0 else (-high, -low)


def _span_of_size(lines: Lines, weights: Floats, k: int, floor: float) -> tuple[float, float]:
    """Return the same interval for the absolute value of the weight."""
    here = abs(float(weights[k]))
    line = lines.steps(*line_of(weights, k), 0.0, 1.0)
    narrow = np.diff(line.breakpoints) <= NARROWEST
    lost = (line.values < floor - TOLERANCE) & ~narrow
    at = min(max(int(np.searchsorted(line.breakpoints, here, side="right")) - 1, 0), len(lost) - 1)
    if lost[at]:  # an accidental tie gives these weights their value, and the smallest change loses it
        return here, here
    before, after = np.flatnonzero(lost[:at]), np.flatnonzero(lost[at:])
    low = float(line.breakpoints[before[-1] + 1]) if len(before) else 0.0
    high = float(line.breakpoints[at + after[0]]) if len(after) else 1.0
    return min(low, here), max(high, here)


def gain_problem(aligned: Aligned, measure: Measure) -> GainProblem:
    """Return what the exact methods maximise: the measure's weighted mean over all queries of `aligned`.

    Relevant documents that no ranker returned count, as in evaluation. If the measure skips unjudged documents,
    their rows are dropped. For Judged, every judged document is relevant, at any grade.
    """
    starts, scores, relevance = aligned.starts, aligned.scores, aligned.relevance
    weights, known = aligned.query_weights, aligned.n_relevant(measure.rel)
    recipe = measure.facts.gains
    if recipe == "judged":
        judged = relevance != UNJUDGED
        counts = per_query(judged, starts)
        return binary_problem(starts, scores, judged, counts, weights, measure="judged", cutoff=measure.cutoff)
    if measure.needs_judged_rows:
        judged = relevance >= 0
        starts, scores, relevance = offsets(per_query(judged, starts)), scores[judged], relevance[judged]
    if recipe == "bpref":
        others = aligned.n_relevant(0) - known
        return bpref_problem(starts, scores, relevance >= measure.rel, known, others, weights)
    if recipe == "graded":
        gains, ideal = _gains(relevance, measure), _ideal(aligned, measure)
        return graded_problem(starts, scores, gains, ideal, weights, cutoff=measure.cutoff)
    return binary_problem(
        starts,
        scores,
        relevance >= measure.rel,
        known,
        weights,
        measure=recipe,
        cutoff=measure.cutoff,
        recall=measure.recall or 0.0,
    )


def _gains(relevance: NDArray[np.int32], measure: Measure) -> Floats:
    """Return the gain of each grade; grades below 1, and unjudged documents, have gain 0."""
    grades = np.maximum(relevance, 0).astype(np.float64)
    return np.exp2(grades) - 1.0 if measure.dcg == "exp-log2" else grades


def _ideal(aligned: Aligned, measure: Measure) -> Floats:
    """Return each query's DCG under the best ranking of all its judged documents, retrieved or not."""
    retrieved, missing = _gains(aligned.relevance, measure), _gains(aligned.unretrieved, measure)
    ideal = np.zeros(len(aligned.queries))
    for q in range(len(ideal)):
        own = retrieved[aligned.starts[q] : aligned.starts[q + 1]]
        others = missing[aligned.unretrieved_starts[q] : aligned.unretrieved_starts[q + 1]]
        gains = np.sort(np.concatenate((own[own > 0], others[others > 0])))[::-1][: measure.cutoff]
        ideal[q] = (gains / logarithms2(np.arange(2.0, len(gains) + 2.0))).sum()
    return ideal


class ExactFuser(Fuser):
    """Learn weights by exact line search, and certify them if asked (ours; no sampling, no smoothing).

    Objective: the measure itself, any of `genm.evaluate`, since all are functions of the ranking. Set: the
    simplex. Two rankers: the best point of the whole line, certified. More rankers: the starts are simple weights
    and optima of the smoothed MAP, including the results of gEnM.BAT, gEnM.IP and gEnM.ON. The `n_climbs` best
    starts are improved by line searches: one ranker against all others, one against one, and `n_random` random
    lines per round, until no line improves. The result is never worse than the starts, and so never below these
    three methods, with the same level and beta, on the training queries.

    `certify=True` continues by branch and bound over the whole simplex until at most `gap` is left, or for
    `seconds`. Unless the time limit is reached, the result is the same on any machine. `weights="centre"` returns
    the centre of the near-optimal region (all weights that lose at most `plateau_loss`) instead of the optimum.

    The bound holds for generic weights, at which no two different documents tie by accident (docs/exact.md). If a
    start scores higher because of such a tie, it is kept, and the gap is 0.
    """

    method = "exact"
    objective = "the exact measure"
    weight_set = "simplex"

    best_weights_: Floats
    """The best weights found; `weights_` are these or the centre of the near-optimal region."""
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

    def _fit(self, aligned: Aligned) -> Self:
        """Optimise, prove if asked, and measure the near-optimal region."""
        measure = self._measure_maximised()
        smooth = Problem(aligned, level=measure.rel, beta=self.beta)
        scorer = Scorer(aligned, smooth, measure, measure.rel)
        tasks = gain_problem(aligned.select(smooth.kept) if smooth.n_set_aside else aligned, measure)
        return self.fit_lines(smooth, scorer, GainLines(tasks), tasks)

    def fit_lines(self, smooth: Problem, scorer: Scorer, lines: Lines, tasks: GainProblem | None = None) -> Self:
        """Learn from queries that were made ready before; the proof needs the problem itself, `tasks`."""
        self._check_options()
        self._remember(smooth)
        self.history_, self.converged_ = [], True
        best, self.optimum_ = self._search(smooth, scorer, lines)
        if self.certify:
            if tasks is None:
                raise InputError("certify=True: the proof needs all lists in memory. Fit the runs themselves.")
            best = self._prove(smooth, scorer, tasks, best)
        self.best_weights_, self.best_value_ = best, scorer.mean(best)
        self.bound_ = None if self.optimum_ is None else self.optimum_.upper
        self.gap_ = None if self.bound_ is None else max(self.bound_ - self.best_value_, 0.0)
        floor = self.best_value_ - self.plateau_loss
        self.plateau_ = plateau_around(lines, best, floor, self.plateau_loss)
        self.weights_ = best
        if self.weights == "centre":
            self.weights_ = centre_of_plateau(lines, best, floor, scorer.mean)
        self.objective_ = self._record(0, len(self.history_), self.weights_, smooth, scorer)
        self.n_iter_ = len(self.history_)
        if not self.converged_:
            message = f"ExactFuser stopped after {self.seconds:g} s: {self.verdict()}. Raise seconds, or gap."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def verdict(self) -> str:
        """State the value reached and the gap left, such as "AP 0.7105; at most 0.0004 is left"."""
        self._check_fitted()
        reached = f"{self._measure_maximised()} {self.best_value_:.4f}"
        if self.gap_ is None:
            return (
                f"{reached}; no line through these weights improves it, which does not prove that none are better"
            )
        return f"{reached}; at most {self.gap_:.2g} is left" if self.gap_ > 1e-9 else f"{reached}; nothing is left"

    def to_model(self) -> Model:
        """Return the model, which names the measure that was maximised."""
        measure = self._measure_maximised()
        return replace(super().to_model(), measure=str(measure), relevance_level=measure.rel)

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

    def _search(self, smooth: Problem, scorer: Scorer, lines: Lines) -> tuple[Floats, Optimum | None]:
        """Return the best weights found from the starts by line search, and the proof for them."""
        starts = self._starts(smooth, scorer)
        best, n_rankers = starts[0], len(smooth.rankers)
        if n_rankers == 1:
            value = self._record(0, 0, best, smooth, scorer)
            return best, Optimum(best, value, value, 0, None)
        if n_rankers == 2:
            self._record(0, 0, best, smooth, scorer)
            optimum = _best_of_line(lines)
            better = self._record(0, 1, optimum.weights, smooth, scorer) > scorer.mean(best)
            return (optimum.weights if better else best), optimum
        reached = scorer.mean(best)
        for number, start in enumerate(starts):
            self._record(number, 0, start, smooth, scorer)
            end, _ = ascend_lines(lines, start, n_random=self.n_random, seed=self.seed + number)
            value = self._record(number, 1, end, smooth, scorer)
            if value > reached:
                best, reached = end, value
        return best, None

    def _starts(self, smooth: Problem, scorer: Scorer) -> list[Floats]:
        """Return the best of the simple weights and of the optima of the smoothed MAP near them, the best first."""
        n = len(smooth.rankers)
        uniform, units = np.full(n, 1.0 / n), list(np.eye(n))
        if n == 1:
            return [uniform]
        values = list(in_order(scorer.mean, units))
        begun = simple_starts(uniform, units[int(np.argmax(values))])
        found = [quasi_newton(smooth.gradient, start, tol=1e-6, max_iter=100).alpha for start in begun]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # any point will do as a start
            smoothed = NewtonFuser(seed=self.seed), BarrierFuser(seed=self.seed), OnlineFuser()
            found += [fuser.fit_problem(smooth).weights_ for fuser in smoothed]
        kept: list[Floats] = []
        tried = [*found, uniform, *units]
        values = list(in_order(scorer.mean, tried))
        for weights in (tried[i] for i in sorted(range(len(tried)), key=values.__getitem__, reverse=True)):
            if all(float(np.abs(weights - other).max()) > LEAST_DISTANCE for other in kept):
                kept.append(weights)
        return kept[: self.n_climbs]

    def _prove(self, smooth: Problem, scorer: Scorer, tasks: GainProblem, best: Floats) -> Floats:
        """Search the whole simplex and return its best weights, or those known before if they are as good."""
        begun = time.monotonic()
        self.optimum_ = best_weights(tasks, gap=self.gap, seconds=self.seconds, start=best, progress=self.progress)
        in_time = time.monotonic() - begun < self.seconds
        value = self._record(0, len(self.history_), self.optimum_.weights, smooth, scorer)
        reached = scorer.mean(best)
        # Rounding may leave a gap that more time would not close; only a search that was stopped has not converged.
        self.converged_ = in_time or self.optimum_.upper - max(value, reached) <= self.gap
        return self.optimum_.weights if value > reached else best

    def _record(self, start: int, iteration: int, weights: Floats, smooth: Problem, scorer: Scorer) -> float:
        value = scorer.mean(weights)
        self.history_.append(Step(start, iteration, value, smooth.exact(weights)))
        return value


def _best_of_line(lines: Lines) -> Optimum:
    """Return the best weights of two rankers: all of them lie on one line."""
    line = lines.best(np.array([0.0, 1.0]), np.array([1.0, -1.0]), 0.0, 1.0)
    weights = np.array([line.middle, 1.0 - line.middle])
    value = lines.value_at(weights)
    return Optimum(weights, value, max(line.value, value), 0, None)
