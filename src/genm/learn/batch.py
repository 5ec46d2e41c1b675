"""gEnM.BAT and gEnM.IP: Newton and interior point on the smoothed MAP of all training queries.

Both start from several points side by side and keep the best by exact MAP on the training queries.
"""

from abc import abstractmethod
from typing import Self

import numpy as np

from genm._math.parallel import in_order, over_items
from genm._math.simplex_optimizers import Ascent, Watch, barrier, newton
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import InputError
from genm.learn.base import Fuser, Step
from genm.learn.objectives import Beta, Problem
from genm.learn.starts import Starts, starting_points

MOST_STARTED = 6
"""Rankers up to which every start is followed, as in Section 5.1."""
N_FOLLOWED = 5
"""Of the starts of more rankers, the number that is followed."""


class MultistartFuser(Fuser):
    """What the batch fusers share: several starts, the stopping rule, and the choice of the best result.

    The start is chosen on the training queries alone (departure 11). Of the starts of more than six rankers only
    those with the highest objective are followed, unless the caller gives the starts.
    """

    weight_set = "simplex"
    beta_: float

    def __init__(
        self,
        *,
        beta: Beta = "auto",
        level: int = 1,
        starts: Starts = None,
        tol: float = 1e-6,
        min_iter: int = 1,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        self.beta, self.level, self.starts, self.seed = beta, level, starts, seed
        self.tol, self.min_iter, self.max_iter = tol, min_iter, max_iter

    def _fit(self, aligned: Aligned) -> Self:
        """Optimise from every start; the winner is the end with the highest exact MAP, the first among equals."""
        return self.fit_problem(Problem(aligned, level=self.level, beta=self.beta, smooth_j=self._smooth_j()))

    def fit_problem(self, problem: Problem) -> Self:
        """Learn from a problem that is built already, under its own level, beta and kind of j."""
        check_stopping(self.tol, self.min_iter, self.max_iter)
        self._remember(problem)
        self.beta_ = problem.beta
        starts = starting_points(len(problem.rankers), seed=self.seed, given=self.starts)
        if self.starts is None and len(problem.rankers) > MOST_STARTED:
            values = over_items(problem.value, starts)
            starts = starts[np.sort(np.argsort(np.negative(values), kind="stable")[:N_FOLLOWED])]
        ends = over_items(lambda s: self._climb_from(problem, s, starts[s]), range(len(starts)))
        exact = list(in_order(problem.exact, [end.alpha for end, _ in ends]))
        best = int(np.argmax(exact))
        end = ends[best][0]
        self.weights_, self.objective_ = end.alpha, end.value
        self.converged_, self.n_iter_ = end.converged, end.n_iter
        self.history_ = [step for _, steps in ends for step in steps]
        self._warn_if_stopped_early()
        return self

    def _climb_from(self, problem: Problem, number: int, start: Floats) -> tuple[Ascent, list[Step]]:
        steps: list[Step] = []

        def watch(iteration: int, alpha: Floats, objective: float) -> None:
            steps.append(Step(number, iteration, objective, problem.exact(alpha), tuple(alpha.tolist())))

        return self._climb(problem, start, watch), steps

    def _smooth_j(self) -> bool:
        return False

    @abstractmethod
    def _climb(self, problem: Problem, start: Floats, watch: Watch) -> Ascent:
        """Optimise from one starting point."""


def check_stopping(tol: float, min_iter: int, max_iter: int) -> None:
    """Refuse stopping rules that make no sense."""
    if not tol >= 0 or min_iter < 0 or max_iter < max(1, min_iter):
        raise InputError(
            f"tol={tol}, min_iter={min_iter}, max_iter={max_iter}: expected tol >= 0 and "
            f"0 <= min_iter <= max_iter, with max_iter at least 1."
        )


class NewtonFuser(MultistartFuser):
    """Learn weights from a batch of judged queries by Newton's method (gEnM.BAT, Algorithms 1 and 2).

    Objective: Problem P3, j sorted as printed, or smoothed with `smooth_j=True` (departure 7). Set: the
    simplex. Exact derivatives take the place of Algorithm 2's cut ones, and every step is safeguarded
    (departures 4, 5). `anneal` optimises with a softer sigmoid first: it lists factors of beta to pass through,
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

    def _climb(self, problem: Problem, start: Floats, watch: Watch) -> Ascent:
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


class BarrierFuser(MultistartFuser):
    """Learn weights from a batch of judged queries by a log barrier (gEnM.IP, departure 10).

    Objective: Problem P3, j sorted. Set: the interior of the simplex, so no weight is ever clipped; one that
    only the barrier keeps above 0 ends as exactly 0.
    """

    method = "ip"
    objective = "smoothed MAP, j sorted"

    def _climb(self, problem: Problem, start: Floats, watch: Watch) -> Ascent:
        return barrier(
            problem.derivatives,
            problem.value,
            start,
            tol=self.tol,
            min_iter=self.min_iter,
            max_iter=self.max_iter,
            watch=watch,
        )
