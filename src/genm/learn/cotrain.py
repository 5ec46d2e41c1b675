"""UnsEnM: weights without a judgment, by rankers that teach each other."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import dot
from genm._math.parallel import over_items
from genm.align import Aligned, check_aligned
from genm.errors import InputError
from genm.learn.base import Fuser, Step
from genm.learn.batch import check_stopping
from genm.learn.lessons import FreeLessons, Lessons
from genm.learn.objectives import Beta
from genm.learn.ranker_quality import Labels, Quality
from genm.learn.schedule import STRIDE, Schedule, check_free, check_schedule
from genm.learn.starts import Starts, starting_points
from genm.records import Note

Array = NDArray[np.float64]


class CotrainFuser(Fuser):
    """Learn weights from runs alone: each ranker's best documents teach the others (UnsEnM, Algorithm 4).

    Objective: Problem P8, the mean over the rankers k of the smoothed MAP that the other rankers reach under
    k's fake labels (j sorted), less the penalty for disagreement, whose `sigma` is divided by queries times
    documents times rankers; sigma = 0 is the printed algorithm. Set: the simplex; while k gives the labels its
    weight is held and the others keep their sum (departure 9). With two rankers both stay in the model, and
    one ranker gets weight 1. No judgment is read.

    The paper does not say how to choose the start without labels. Here it is estimated from what the rankers
    put on top (`genm.learn.ranker_quality`): `estimate_`. Co-training from there favours the ranker in the middle
    of a group of similar ones, and measured over many sets of rankers it gained nothing on the estimate
    (docs/unsupervised.md). So `weights_` go only the share `trust` of the way from the estimate to the end of
    co-training, by default none of it; `trust=1` is Algorithm 4. If several `starts` are given, the end is taken
    whose ensemble is nearest to the estimate's, in the squared difference of scores that P8's penalty uses.

    `free` lets the weights go where the printed steps lead, from starts that are not scaled, zeros included, as the
    paper's learning curves do; without `starts` they are then all binary vectors.
    """

    method = "uns"
    objective = "smoothed MAP under the rankers' own labels, j sorted, less a penalty for disagreement"
    weight_set = "simplex"

    beta_: float
    quality_: Quality
    estimate_: Array
    """The weights that the quality of the rankers suggests: where co-training starts unless told otherwise."""
    cotrained_: Array
    """Where co-training ended, before `trust` held it back; the estimate if there was none."""
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

    def fit(self, aligned: Aligned) -> Self:
        """Estimate, co-train from every start, hold back. Judgments are not looked at."""
        check_aligned(aligned)
        self._check()
        lessons = FreeLessons(aligned, self) if self.free else Lessons(aligned, self)
        self._remember(aligned)
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

    def _hold_back(self, lessons: Lessons, estimate: Array) -> Array:
        """Co-train from every start; return the shares `trust` of the way from the estimate to the end kept."""
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
            raise InputError("free=True: expected trust=1; what is held back lies on the simplex.")
        if not 0.0 <= self.trust <= 1.0:
            raise InputError(f"trust={self.trust!r}: expected a share from 0 (the estimate) to 1 (co-training).")
        if self.starts is not None and not self.trust > 0.0:
            raise InputError("starts were given, but trust=0 never leaves the estimate. Set trust=1 to co-train.")
        if not 0.0 <= self.sigma < np.inf:
            raise InputError(f"sigma={self.sigma!r}: expected a finite number, 0 or greater.")

    def _cotrain(self, lessons: Lessons, number: int, start: Array) -> "_Path":
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
    """One start's way: the best shares so far and the learning curve."""

    def __init__(self, number: int, start: Array, lessons: Lessons) -> None:
        self.number, self.steps, self.converged, self.change = number, list[Step](), False, np.inf
        self.best, self.reached = start, -np.inf
        self.add(start, lessons)

    def add(self, shares: Array, lessons: Lessons) -> None:
        """Note where a round led."""
        value = lessons.objective(shares)
        if self.steps:
            self.change = value - self.steps[-1].objective
        where = tuple((shares if lessons.free else lessons.weights(shares)).tolist())
        self.steps.append(Step(self.number, len(self.steps), value, lessons.exact(shares), where))
        if value > self.reached:
            self.best, self.reached = shares, value
