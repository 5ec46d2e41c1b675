"""gEnM.BAT: safeguarded Newton on the smoothed MAP."""

import numpy as np
from numpy.typing import NDArray

from genm._math.simplex_optimizers import Ascent, Watch, newton
from genm.learn.batch import MultistartFuser
from genm.learn.objectives import Beta, Problem
from genm.learn.starts import Starts

Array = NDArray[np.float64]


class NewtonFuser(MultistartFuser):
    """Learn weights from a batch of judged queries by Newton's method (gEnM.BAT, Algorithms 1 and 2).

    Objective: Problem P3, j sorted as printed, or smoothed with `smooth_j=True` (departure 7). Set: the
    simplex. Exact derivatives take the place of Algorithm 2's cut ones, and every step is safeguarded
    (departures 4, 5). `anneal` climbs first with a softer sigmoid: the factors of beta to pass through,
    such as (0.125, 0.5).
    """

    method = "bat"
    objective = "smoothed MAP, j sorted or smoothed"

    def __init__(
        self,
        *,
        beta: Beta = "auto",
        smooth_j: bool = False,
        anneal: tuple[float, ...] = (),
        level: int = 1,
        starts: Starts = None,
        tol: float = 1e-6,
        min_iter: int = 1,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        super().__init__(
            beta=beta, level=level, starts=starts, tol=tol, min_iter=min_iter, max_iter=max_iter, seed=seed
        )
        self.smooth_j, self.anneal = smooth_j, anneal

    def _smooth_j(self) -> bool:
        return self.smooth_j

    def _climb(self, problem: Problem, start: Array, watch: Watch) -> Ascent:
        for factor in self.anneal:
            softer = problem.with_beta(problem.beta * factor)
            start = newton(
                softer.derivatives, softer.value, start, tol=self.tol, min_iter=1, max_iter=self.max_iter
            ).alpha
        return newton(
            problem.derivatives,
            problem.value,
            start,
            tol=self.tol,
            min_iter=self.min_iter,
            max_iter=self.max_iter,
            watch=watch,
        )
