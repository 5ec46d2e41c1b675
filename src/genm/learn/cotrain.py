"""UnsEnM: learn weights without judgments, from the pseudo-labels that each ranker gives to the others."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, Self

import numpy as np

from genm._math.agreement import Moments, agreement_penalty, score_moments
from genm._math.linear_algebra import dot, times
from genm._math.parallel import in_order, over_items
from genm._math.simplex_optimizers import as_distribution, project_to_simplex
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import InputError
from genm.learn.base import Fuser, Step
from genm.learn.batch import check_stopping
from genm.learn.objectives import Beta, Problem
from genm.learn.ranker_quality import Labels, Quality, estimate_quality, pseudo_labels, units_of
from genm.learn.starts import STRIDE, Schedule, Starts, check_free, check_schedule, starting_points
from genm.normalizers import ScoreRules
from genm.records import Note


class Options(Protocol):
    """The options of the fuser that co-training uses."""

    labels: Labels
    n: int
    threshold: float
    sigma: float
    schedule: Schedule
    beta: Beta


class Objective(Protocol):
    """The smoothed and exact MAP under one ranker's labels; `Problem` has it."""

    def value(self, weights: Floats) -> float:
        """Return the smoothed objective."""

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the smoothed objective and its gradient."""

    def exact(self, weights: Floats) -> float:
        """Return the mean average precision."""


class Lessons(NamedTuple):
    """What co-training needs of the data: `lessons_of` makes it of runs, `genm.learn.table_cotrain` of a table."""

    rules: ScoreRules
    beta: float
    quality: Quality
    moments: Moments
    problems: Mapping[int, Objective]
    """By the number of the ranker that gives the labels; a ranker without labels is left out."""


def lessons_of(aligned: Aligned, options: Options) -> Lessons:
    """Return what co-training needs of aligned runs. Judgments are not read."""
    marks = pseudo_labels(aligned, labels=options.labels, n=options.n, threshold=options.threshold)
    problem = Problem.unlabelled(aligned, beta=options.beta)
    problems: dict[int, Problem] = {}
    for k in range(len(aligned.rankers)):
        labelled = problem.with_labels(np.ascontiguousarray(marks[:, k]))
        taught = np.flatnonzero(labelled.tiles.n_relevant > 0)
        if len(taught):
            problems[k] = labelled.select(taught)
    moments = score_moments(aligned.starts, aligned.scores, aligned.query_weights)
    return Lessons(aligned, problem.beta, estimate_quality(aligned, marks), moments, problems)


class PseudoLabelAscent:
    """The rankers as teachers: each ranker's pseudo-labels define an objective for the others.

    Steps are taken in shares: weights in units of the height of a ranker's top scores above its mean. The scale
    of a ranker's scores then does not affect how fast its weight moves. With the printed steps, shares are the
    weights.
    """

    free = False
    """Whether weights may leave the simplex."""

    def __init__(self, lessons: Lessons, options: Options) -> None:
        rankers = lessons.rules.rankers
        self.beta, self.quality, self.moments = lessons.beta, lessons.quality, lessons.moments
        self.notes: tuple[Note, ...] = ()
        self.sigma = options.sigma
        printed = options.schedule == "paper"
        self.units = np.ones(len(rankers)) if printed else units_of(self.quality.height)
        self.problems = lessons.problems
        for k, ranker in enumerate(rankers):
            if k not in self.problems:
                self._note("no-labels", f"{ranker} scores all its documents alike and provides no labels.")
        n = len(rankers)
        self.students = ~np.eye(n, dtype=np.bool_) if n > 2 else np.ones((n, n), np.bool_)
        if n == 2:
            text = "two rankers: both stay in the model while one gives the labels; one alone has one ranking."
            self._note("two-rankers", text)
        self.teachers = tuple(self.problems)

    def _note(self, code: str, text: str) -> None:
        self.notes += (Note(code, 1, text),)

    def weights(self, shares: Floats) -> Floats:
        """Return shares as weights."""
        return as_distribution(shares * self.units)

    def shares(self, weights: Floats) -> Floats:
        """Return weights as shares."""
        shares = np.divide(weights, self.units, out=np.zeros(len(weights)), where=self.units > 0.0)
        return as_distribution(shares)

    def _others(self, teacher: int, shares: Floats) -> Floats:
        """Return the shares of the model that the teacher's labels test: those of the others, scaled to sum 1."""
        students = self.students[teacher]
        alone = not (shares[students] > 0.0).any()  # the teacher has all the weight: equal shares
        return as_distribution(np.where(students, 1.0 if alone else shares, 0.0))

    def _in_shares(self, gradient: Floats, shares: Floats) -> Floats:
        """Return the gradient in shares, by the chain rule through `weights`."""
        total = dot(shares, self.units)
        if not total > 0.0:
            return np.zeros(len(shares))
        return np.asarray(self.units * (gradient - dot(gradient, self.weights(shares))) / total)

    def slope(self, teacher: int, shares: Floats) -> Floats:
        """Return the gradient of P8 in the others' shares of their sum, within it; 0 for the teacher."""
        students, others = self.students[teacher], self._others(teacher, shares)
        _, gradient = self.problems[teacher].gradient(self.weights(others))
        penalty = agreement_penalty(self.moments, self.weights(shares), self.sigma).gradient
        slope = self._in_shares(gradient, others) + shares[students].sum() * self._in_shares(penalty, shares)
        return np.where(students, slope - slope[students].mean(), 0.0)

    def step(self, teacher: int, shares: Floats, move: Floats) -> Floats:
        """Return the shares after the others have moved; their sum stays as it was."""
        students = self.students[teacher]
        total = float(shares[students].sum())
        if not total > 0.0:
            return shares
        moved = shares.copy()
        moved[students] = total * project_to_simplex(shares[students] / total + move[students])
        return moved

    def objective(self, shares: Floats) -> float:
        """Return P8: the mean over the teachers of the smoothed MAP, less the penalty."""
        reached = in_order(lambda k: self.problems[k].value(self.weights(self._others(k, shares))), self.teachers)
        return _mean(reached) + agreement_penalty(self.moments, self.weights(shares), self.sigma).value

    def exact(self, shares: Floats) -> float:
        """Return the mean over the teachers of the exact MAP under their labels."""
        return _mean(
            in_order(lambda k: self.problems[k].exact(self.weights(self._others(k, shares))), self.teachers)
        )

    def distance(self, one: Floats, other: Floats) -> float:
        """Return the mean squared difference of the scores of two ensembles, given by their weights."""
        return dot(one - other, times(self.moments.matrix, one - other))


class FreePseudoLabelAscent(PseudoLabelAscent):
    """Lessons in free weights (P4), as Algorithm 4 prints it: steps keep no sum, and all weights may be 0.

    Here shares are the weights themselves, of any length; those below 0 count as 0 when documents are ranked.
    """

    free = True

    def weights(self, shares: Floats) -> Floats:
        """Return what is used at the end: negative weights set to 0, the rest scaled to sum 1."""
        return as_distribution(shares)

    def shares(self, weights: Floats) -> Floats:
        """Return the weights, as they are."""
        return weights.copy()

    def slope(self, teacher: int, shares: Floats) -> Floats:
        """Return the gradient of P8 in the others' weights; 0 for the teacher."""
        students = self.students[teacher]
        _, gradient = self.problems[teacher].gradient(np.where(students, shares, 0.0))
        penalty = agreement_penalty(self.moments, shares, self.sigma).gradient
        return np.where(students, gradient + penalty, 0.0)

    def step(self, teacher: int, shares: Floats, move: Floats) -> Floats:
        """Return the weights after the others have moved."""
        return np.asarray(shares + np.where(self.students[teacher], move, 0.0))

    def objective(self, shares: Floats) -> float:
        """Return P8 at the free weights."""
        reached = in_order(lambda k: self.problems[k].value(np.where(self.students[k], shares, 0.0)), self.teachers)
        return _mean(reached) + agreement_penalty(self.moments, shares, self.sigma).value

    def exact(self, shares: Floats) -> float:
        """Return the mean over the teachers of the exact MAP under their labels."""
        used = np.maximum(shares, 0.0)
        return _mean(
            in_order(lambda k: self.problems[k].exact(np.where(self.students[k], used, 0.0)), self.teachers)
        )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


class CotrainFuser(Fuser):
    """Learn weights from runs alone: each ranker gives pseudo-labels to the others (UnsEnM, Algorithm 4).

    Objective: Problem P8, the mean over the rankers k of the smoothed MAP that the other rankers reach under
    k's pseudo-labels (j sorted), minus the penalty for disagreement, whose `sigma` is divided by queries times
    documents times rankers; sigma = 0 is the printed algorithm. Set: the simplex; while k gives the labels, its
    weight is fixed and the others keep their sum (departure 9). With two rankers both stay in the model; a single
    ranker gets weight 1. No judgments are read.

    The paper does not say how to choose the start without labels. Here it is estimated from the rankers' top
    documents (`genm.learn.ranker_quality`): `estimate_`. Co-training from there favours the ranker in the middle
    of a group of similar rankers; over many sets of rankers it did not improve on the estimate
    (docs/unsupervised.md). `trust` sets how far `weights_` move from the estimate to the result of co-training: 0
    by default, and `trust=1` is Algorithm 4. With several `starts`, the result is kept whose fused scores are
    closest to those of the estimate, by the squared difference that P8's penalty uses.

    `free` does not constrain the weights: starts are not scaled and may be zero, as in the paper's learning curves.
    The default `starts` are then all binary vectors.
    """

    method = "uns"
    objective = "smoothed MAP under the rankers' own labels, j sorted, less a penalty for disagreement"
    weight_set = "simplex"
    normalize_unjudged = "zscore"

    beta_: float
    quality_: Quality
    estimate_: Floats
    """The weights estimated from the quality of the rankers: the default start of co-training."""
    cotrained_: Floats
    """The result of co-training, before `trust` shrinks it; the estimate if there was no co-training."""
    notes_: tuple[Note, ...]

    def __init__(
        self,
        *,
        labels: Labels = "top",
        n: int = 5,
        threshold: float = 0.5,
        sigma: float = 1.0,
        trust: float = 0.0,
        schedule: Schedule = "adaptive",
        beta: Beta = "auto",
        starts: Starts = None,
        free: bool = False,
        tol: float = 1e-4,
        min_iter: int = 1,
        max_iter: int = 50,
        seed: int = 0,
    ) -> None:
        self.labels, self.n, self.threshold = labels, n, threshold
        self.sigma, self.trust, self.schedule, self.beta, self.starts = sigma, trust, schedule, beta, starts
        self.free = free
        self.tol, self.min_iter, self.max_iter, self.seed = tol, min_iter, max_iter, seed

    def _fit(self, aligned: Aligned) -> Self:
        """Estimate, co-train from every start, shrink towards the estimate. Judgments are not read."""
        self._check()
        return self.fit_lessons(lessons_of(aligned, self))

    def fit_lessons(self, material: Lessons) -> Self:
        """Learn from what was computed from the data before, under the same labels and beta."""
        self._check()
        lessons = FreePseudoLabelAscent(material, self) if self.free else PseudoLabelAscent(material, self)
        self._remember(material.rules)
        self.beta_, self.quality_, self.notes_ = lessons.beta, lessons.quality, lessons.notes
        self.estimate_ = lessons.quality.weights()
        shares = lessons.shares(self.estimate_)
        if self.trust > 0.0:
            shares = self._hold_back(lessons, shares)
        else:
            path = _Path(0, shares, lessons)
            self.cotrained_, self.converged_, self.n_iter_, self.history_ = self.estimate_, True, 1, path.steps
        self.weights_, self.objective_ = lessons.weights(shares), lessons.objective(shares)
        self._warn_if_stopped_early()
        return self

    def _hold_back(self, lessons: PseudoLabelAscent, estimate: Floats) -> Floats:
        """Co-train from every start; return the shares at `trust` between the estimate and the best result."""
        given = self.estimate_ if self.starts is None and not self.free else self.starts
        starts = starting_points(len(self.estimate_), seed=self.seed, given=given, free=self.free)
        paths = over_items(lambda s: self._cotrain(lessons, s, starts[s]), range(len(starts)))
        ends = [lessons.weights(path.best) for path in paths]
        nearest = int(np.argmin([lessons.distance(end, self.estimate_) for end in ends]))
        best, self.cotrained_ = paths[nearest], ends[nearest]
        self.converged_, self.n_iter_ = best.converged, len(best.steps) - 1
        self.history_ = [step for path in paths for step in path.steps]
        return (1.0 - self.trust) * estimate + self.trust * best.best

    def _check(self) -> None:
        check_stopping(self.tol, self.min_iter, self.max_iter)
        check_free(free=self.free, schedule=check_schedule(self.schedule))
        if self.free and not self.trust >= 1.0:
            raise InputError("free=True: expected trust=1; with less, the weights are shrunk to the simplex.")
        if not 0.0 <= self.trust <= 1.0:
            raise InputError(f"trust={self.trust!r}: expected a share from 0 (the estimate) to 1 (co-training).")
        if self.starts is not None and not self.trust > 0.0:
            raise InputError("starts were given, but with trust=0 nothing is co-trained. Set trust=1 to co-train.")
        if not 0.0 <= self.sigma < np.inf:
            raise InputError(f"sigma={self.sigma!r}: expected a finite number, 0 or greater.")

    def _cotrain(self, lessons: PseudoLabelAscent, number: int, start: Floats) -> "_Path":
        """Let the rankers teach in turn until a round changes the objective by less than tol."""
        path = _Path(number, lessons.shares(start), lessons)
        shares, t, squares = path.best, 1, 0.0
        while len(path.steps) <= self.max_iter and not path.converged:
            for teacher in lessons.teachers:
                t += 1
                slope = lessons.slope(teacher, shares)
                squares += dot(slope, slope)
                stride = 1.0 / t if self.schedule == "paper" else STRIDE / np.sqrt(max(squares, 1e-300))
                shares = lessons.step(teacher, shares, stride * slope)
            path.add(shares, lessons)
            path.converged = abs(path.change) < self.tol and len(path.steps) > self.min_iter
        return path


class _Path:
    """The path from one start: the best shares so far and the learning curve."""

    def __init__(self, number: int, start: Floats, lessons: PseudoLabelAscent) -> None:
        self.number, self.steps, self.converged, self.change = number, list[Step](), False, np.inf
        self.best, self.reached = start, -np.inf
        self.add(start, lessons)

    def add(self, shares: Floats, lessons: PseudoLabelAscent) -> None:
        """Record the shares after a round."""
        value = lessons.objective(shares)
        if self.steps:
            self.change = value - self.steps[-1].objective
        where = tuple((shares if lessons.free else lessons.weights(shares)).tolist())
        self.steps.append(Step(self.number, len(self.steps), value, lessons.exact(shares), where))
        if value > self.reached:
            self.best, self.reached = shares, value
