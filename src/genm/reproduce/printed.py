"""gEnM.BAT as it stands in the paper, and what each repair is worth."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from genm._math.simplex_optimizers import Ascent, Watch, as_distribution
from genm._math.windowed import Windowed, windowed
from genm.learn.batch import MultistartFuser
from genm.learn.objectives import Problem
from genm.learn.starts import Starts

Array = NDArray[np.float64]
Cut = Callable[[Array], Windowed]
"""Objective and derivatives as Algorithm 2 computes them."""

REPAIRS = (
    "as printed",
    "true G^k",
    "(1 + G)^4",
    "step to a maximum",
    "best iterate kept",
    "derivatives not cut",
)
"""What is put right, each on top of those before it; the last step, a safeguarded search on the simplex, is BAT."""

_FARTHEST = 1e6  # free weights beyond this only sharpen the sigmoid, or are an accident of a singular Hessian


class PrintedFuser(MultistartFuser):
    """Algorithms 1 and 2 to the letter, or with the first `n_repairs` of REPAIRS after "as printed".

    Objective: P4, j sorted. Set: free weights, negative ones set to 0 at the end (Section 4.1). As printed the step
    adds the inverse Hessian times the gradient, G^k sums beta * s, the second derivative is divided by (1 + G)^2,
    pairs further apart than 2 / beta do not count, and the last iterate is kept, the one after which the objective
    failed to rise (departures 3, 4, 5 and 6). A Hessian without an inverse gives its least-squares step. The paper
    sets no limit to the steps; `max_iter` is ours, for variants that creep.
    """

    method = "bat-printed"
    objective = "smoothed MAP, j sorted"
    weight_set = "free"

    def __init__(
        self, *, n_repairs: int = 0, starts: Starts = None, max_iter: int = 10, cut: Cut | None = None
    ) -> None:
        super().__init__(starts=starts, tol=0.0, max_iter=max_iter)
        self.n_repairs, self.cut = n_repairs, cut

    def _climb(self, problem: Problem, start: Array, watch: Watch) -> Ascent:
        alpha, sign = start.copy(), -1.0 if self.n_repairs >= 3 else 1.0
        value, gradient, hessian = self._derivatives(problem, alpha)
        best, best_value = alpha, value
        watch(0, as_distribution(alpha), value)
        for t in range(1, self.max_iter + 1):
            moved = alpha + sign * np.linalg.lstsq(hessian, gradient, rcond=None)[0]
            if not np.abs(moved).max() < _FARTHEST:
                break
            before, alpha = value, moved
            value, gradient, hessian = self._derivatives(problem, alpha)
            watch(t, as_distribution(alpha), value)
            if value > best_value:
                best, best_value = alpha, value
            if not value - before > 0.0:
                break
        if self.n_repairs >= 4:
            alpha, value = best, best_value
        return Ascent(as_distribution(alpha), value, t, converged=True)

    def _derivatives(self, problem: Problem, alpha: Array) -> tuple[float, Array, Array]:
        if self.n_repairs >= 5:
            return problem.derivatives(alpha)
        found = (self.cut or cut_of(problem))(alpha)
        return found.value, found.gradients[min(self.n_repairs, 1)], found.hessians[min(self.n_repairs, 2)]


def cut_of(problem: Problem) -> Cut:
    """Return Algorithm 2 of these queries; what it found is kept, since the variants share their starts."""
    known: dict[bytes, Windowed] = {}

    def cut(alpha: Array) -> Windowed:
        key = alpha.tobytes()
        if key not in known:
            known[key] = windowed(problem.tiles, alpha, problem.beta)
        return known[key]

    return cut
