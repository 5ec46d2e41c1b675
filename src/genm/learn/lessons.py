"""What the rankers of UnsEnM teach each other: each one's best documents as labels for the rest."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from genm._math.agreement import Moments, agreement_penalty, score_moments
from genm._math.linear_algebra import dot, times
from genm._math.simplex_optimizers import as_distribution, project_to_simplex
from genm.align import Aligned
from genm.learn.objectives import Beta, Problem
from genm.learn.ranker_quality import Labels, estimate_quality, fake_labels, units_of
from genm.learn.schedule import Schedule
from genm.records import Note

Array = NDArray[np.float64]


class Options(Protocol):
    """What the lessons read of the fuser's options."""

    labels: Labels
    n: int
    threshold: float
    sigma: float
    schedule: Schedule
    beta: Beta


class Lessons:
    """The rankers as teachers: the problem that each one's labels pose to the others.

    Steps are taken in shares, weights in units of how high a ranker's top stands, so that a ranker's scale does
    not decide how fast its weight moves; with the printed steps shares are the weights themselves.
    """

    free = False
    """Whether weights may leave the simplex."""

    def __init__(self, aligned: Aligned, options: Options) -> None:
        marks = fake_labels(aligned, labels=options.labels, n=options.n, threshold=options.threshold)
        problem = Problem.unlabelled(aligned, beta=options.beta)
        self.beta, self.quality = problem.beta, estimate_quality(aligned, marks)
        self.notes: tuple[Note, ...] = ()
        self.sigma = options.sigma
        printed = options.schedule == "paper"
        self.units = np.ones(len(aligned.rankers)) if printed else units_of(self.quality.height)
        self.moments: Moments = score_moments(aligned.starts, aligned.scores, aligned.query_weights)
        self.problems: dict[int, Problem] = {}
        for k, ranker in enumerate(aligned.rankers):
            labelled = problem.with_labels(np.ascontiguousarray(marks[:, k]))
            taught = np.flatnonzero(labelled.tiles.n_relevant > 0)
            if len(taught):
                self.problems[k] = labelled.select(taught)
            else:
                self._note("no-labels", f"{ranker} puts no document above another and teaches nothing.")
        n = len(aligned.rankers)
        self.students = ~np.eye(n, dtype=np.bool_) if n > 2 else np.ones((n, n), np.bool_)
        if n == 2:
            text = (
                "two rankers: both stay in the model while either gives the labels, since one left has no choice."
            )
            self._note("two-rankers", text)
        self.teachers = tuple(self.problems)

    def _note(self, code: str, text: str) -> None:
        self.notes += (Note(code, 1, text),)

    def weights(self, shares: Array) -> Array:
        """Return shares as weights."""
        return as_distribution(shares * self.units)

    def shares(self, weights: Array) -> Array:
        """Return weights as shares."""
        shares = np.divide(weights, self.units, out=np.zeros(len(weights)), where=self.units > 0.0)
        return as_distribution(shares)

    def _others(self, teacher: int, shares: Array) -> Array:
        """Return the shares within the model that the teacher's labels test: the others', scaled to sum 1."""
        students = self.students[teacher]
        alone = not (shares[students] > 0.0).any()  # the teacher has all the weight: its students start level
        return as_distribution(np.where(students, 1.0 if alone else shares, 0.0))

    def _in_shares(self, gradient: Array, shares: Array) -> Array:
        """Return the gradient in shares, by the chain rule through `weights`."""
        total = dot(shares, self.units)
        if not total > 0.0:
            return np.zeros(len(shares))
        return np.asarray(self.units * (gradient - dot(gradient, self.weights(shares))) / total)

    def slope(self, teacher: int, shares: Array) -> Array:
        """Return the gradient of P8 in the others' shares of their sum, within it; 0 for the teacher."""
        students, others = self.students[teacher], self._others(teacher, shares)
        _, gradient = self.problems[teacher].gradient(self.weights(others))
        penalty = agreement_penalty(self.moments, self.weights(shares), self.sigma).gradient
        slope = self._in_shares(gradient, others) + shares[students].sum() * self._in_shares(penalty, shares)
        return np.where(students, slope - slope[students].mean(), 0.0)

    def step(self, teacher: int, shares: Array, move: Array) -> Array:
        """Return the shares after the others have moved; their sum stays as it was."""
        students = self.students[teacher]
        total = float(shares[students].sum())
        if not total > 0.0:
            return shares
        moved = shares.copy()
        moved[students] = total * project_to_simplex(shares[students] / total + move[students])
        return moved

    def objective(self, shares: Array) -> float:
        """Return P8: the mean over the teachers of the smoothed MAP, less the penalty."""
        reached = [self.problems[k].value(self.weights(self._others(k, shares))) for k in self.teachers]
        return _mean(reached) + agreement_penalty(self.moments, self.weights(shares), self.sigma).value

    def exact(self, shares: Array) -> float:
        """Return the mean over the teachers of the exact MAP under their labels."""
        return _mean([self.problems[k].exact(self.weights(self._others(k, shares))) for k in self.teachers])

    def distance(self, one: Array, other: Array) -> float:
        """Return the mean squared difference of the scores of two ensembles, given by their weights."""
        return dot(one - other, times(self.moments.matrix, one - other))


class FreeLessons(Lessons):
    """Lessons in free weights (P4), as Algorithm 4 prints it: steps keep no sum, and all weights may be 0.

    Here shares are the weights themselves, of any length; those below 0 count as 0 when documents are ranked.
    """

    free = True

    def weights(self, shares: Array) -> Array:
        """Return what is used at the end: negative weights set to 0, the rest scaled to sum 1."""
        return as_distribution(shares)

    def shares(self, weights: Array) -> Array:
        """Return the weights, as they are."""
        return weights.copy()

    def slope(self, teacher: int, shares: Array) -> Array:
        """Return the gradient of P8 in the others' weights; 0 for the teacher."""
        students = self.students[teacher]
        _, gradient = self.problems[teacher].gradient(np.where(students, shares, 0.0))
        penalty = agreement_penalty(self.moments, shares, self.sigma).gradient
        return np.where(students, gradient + penalty, 0.0)

    def step(self, teacher: int, shares: Array, move: Array) -> Array:
        """Return the weights after the others have moved."""
        return np.asarray(shares + np.where(self.students[teacher], move, 0.0))

    def objective(self, shares: Array) -> float:
        """Return P8 at the free weights."""
        reached = [self.problems[k].value(np.where(self.students[k], shares, 0.0)) for k in self.teachers]
        return _mean(reached) + agreement_penalty(self.moments, shares, self.sigma).value

    def exact(self, shares: Array) -> float:
        """Return the mean over the teachers of the exact MAP under their labels."""
        used = np.maximum(shares, 0.0)
        return _mean([self.problems[k].exact(np.where(self.students[k], used, 0.0)) for k in self.teachers])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
