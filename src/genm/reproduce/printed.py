"""gEnM.BAT as it stands in the paper, and what each repair is worth.

Algorithm 2's derivatives run over tiles (`windowed_range` in `genm._math.average_precision_kernels`): a pair
counts in them only while |b (s_j - s_d)| < 2, though every pair counts in the smoothed ranks. For the
reproduction only.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from genm._math.average_precision import blocks_of, store_of
from genm._math.average_precision_kernels import IN_BLOCKS, RANKS, smooth_range, windowed_range
from genm._math.elementary import TAIL
from genm._math.parallel import over_ranges
from genm._math.simplex_optimizers import Ascent, Watch, as_distribution
from genm._math.tiles import Tiles, mean
from genm._typing import Floats
from genm.errors import InputError
from genm.learn.batch import MultistartFuser
from genm.learn.objectives import Problem
from genm.learn.starts import Starts

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


class Windowed(NamedTuple):
    """Means over the queries with their weights."""

    value: float
    """Objective of P4; every pair counts."""
    gradients: Floats
    """(2, K): with G^k as printed, and with the true derivative (Eq. 36)."""
    hessians: Floats
    """(3, K, K): G^k as printed over (1 + G)^2 (Eq. 17), the true one over that, and over (1 + G)^4 (Eq. 37)."""


def windowed(tiles: Tiles, weights: Floats, beta: float) -> Windowed:
    """Return what Algorithm 2 computes, with and without its misprints (departures 3 and 5)."""
    if tiles.exponent:
        raise InputError("scores: expected cosines or the like; found some above 2^500. Normalise them first.")
    given, n_queries, n_rankers = np.array(weights, np.float64), tiles.n_queries, tiles.n_rankers
    store, value = store_of(tiles), np.empty(n_queries)
    gradients, hessians = np.zeros((n_queries, 2, n_rankers)), np.zeros((n_queries, 3, n_rankers, n_rankers))
    no_gradients = np.empty((0, n_rankers))

    def work(low: int, high: int) -> None:
        blocks, ranks = blocks_of(tiles, low, high)
        for first, last in blocks:
            smooth_range(first, last, store, given, beta, TAIL, ranks, value, no_gradients, RANKS | IN_BLOCKS)
            windowed_range(first, last, store, given, beta, ranks, gradients, hessians)

    over_ranges(work, tiles.costs)
    return Windowed(float(mean(tiles, value)), mean(tiles, gradients), mean(tiles, hessians))


Cut = Callable[[Floats], Windowed]
"""Objective and derivatives as Algorithm 2 computes them."""


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

    def _climb(self, problem: Problem, start: Floats, watch: Watch) -> Ascent:
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

    def _derivatives(self, problem: Problem, alpha: Floats) -> tuple[float, Floats, Floats]:
        if self.n_repairs >= 5:
            return problem.derivatives(alpha)
        found = (self.cut or cut_of(problem))(alpha)
        return found.value, found.gradients[min(self.n_repairs, 1)], found.hessians[min(self.n_repairs, 2)]


def cut_of(problem: Problem) -> Cut:
    """Return Algorithm 2 of these queries; what it found is kept, since the variants share their starts."""
    known: dict[bytes, Windowed] = {}

    def cut(alpha: Floats) -> Windowed:
        key = alpha.tobytes()
        if key not in known:
            known[key] = windowed(problem.tiles, alpha, problem.beta)
        return known[key]

    return cut
