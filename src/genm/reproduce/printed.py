"""gEnM.BAT as it stands in the paper, and what each repair is worth."""

import numpy as np
from numpy.typing import NDArray

from genm._math.ascent import Ascent, Watch, as_distribution
from genm._math.windowed import windowed
from genm.learn.multistart import MultistartFuser
from genm.learn.problem import Problem
from genm.learn.starts import Starts

Array = NDArray[np.float64]

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
    failed to rise (departures 3, 4, 5 and 6). A Hessian without an inverse gives its least-squares step.
    """

    method = "bat-printed"
    objective = "smoothed MAP, j sorted"
    weight_set = "free"

    def __init__(self, *, n_repairs: int = 0, starts: Starts = None, max_iter: int = 10) -> None:
        super().__init__(starts=starts, tol=0.0, max_iter=max_iter)
        self.n_repairs = n_repairs

    def _climb(self, problem: Problem, start: Array, watch: Watch) -> Ascent:
        alpha, value = start.copy(), problem.value(start)
        best, best_value, sign = alpha, value, -1.0 if self.n_repairs >= 3 else 1.0
        watch(0, as_distribution(alpha), value)
        for t in range(1, self.max_iter + 1):
            gradient, hessian = self._derivatives(problem, alpha)
            moved = alpha + sign * np.linalg.lstsq(hessian, gradient, rcond=None)[0]
            if not np.abs(moved).max() < _FARTHEST:
                break
            before, alpha, value = value, moved, problem.value(moved)
            watch(t, as_distribution(alpha), value)
            if value > best_value:
                best, best_value = alpha, value
            if not value - before > 0.0:
                break
        kept = best if self.n_repairs >= 4 else alpha
        return Ascent(as_distribution(kept), best_value if self.n_repairs >= 4 else value, t, converged=True)

    def _derivatives(self, problem: Problem, alpha: Array) -> tuple[Array, Array]:
        if self.n_repairs >= 5:
            return problem.derivatives(alpha)[1:]
        found = windowed(problem.tiles, alpha, problem.beta)
        return found.gradients[min(self.n_repairs, 1)], found.hessians[min(self.n_repairs, 2)]
