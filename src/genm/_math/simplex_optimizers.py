"""Optimisers on the weight simplex: safeguarded Newton, log-barrier Newton, BFGS, and the projections they need.

alpha weights (sum 1, none negative), f the objective with gradient g and Hessian H, mu the barrier's weight.
State in, state out: nothing is kept between calls.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from genm._math import few_weights
from genm._math.elementary import logarithms
from genm._math.few_weights import FEW
from genm._math.linear_algebra import dot, norm, product, sum_zero_basis, symmetric_eigen, times
from genm._typing import Bools, Floats

Derivatives = Callable[[Floats], tuple[float, Floats, Floats]]
Value = Callable[[Floats], float]
Watch = Callable[[int, Floats, float], None]

_ARMIJO = 1e-4
_HALVINGS = 14
_FIRST_STEP = 0.1  # length of the first step, before any curvature is known
_LONGEST_STEP = 0.5  # of the simplex's diameter sqrt(2): one step never jumps across the whole set


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where an ascent ended: the best point it saw, not the last."""

    alpha: Floats
    value: float
    n_iter: int
    converged: bool
    curvature: Floats | None = None
    """Of -f, as far as `quasi_newton` has learned it."""


def project_to_simplex(point: Floats) -> Floats:
    """Return the nearest point (Euclidean) whose parts are >= 0 and sum to 1."""
    if len(point) < FEW:
        return np.array(few_weights.project(point.tolist()))
    down = np.sort(point)[::-1]
    excess = (np.cumsum(down) - 1.0) / np.arange(1, len(point) + 1)
    theta = excess[np.flatnonzero(down > excess)[-1]]
    alpha = np.maximum(point - theta, 0.0)
    return np.asarray(alpha / alpha.sum())


def as_distribution(raw: Floats) -> Floats:
    """Return raw weights with the negative ones set to 0 and the rest scaled to sum 1 (Section 4.1's rule).

    Uniform weights if none is positive: every ranking is then the same, so no ranker is preferred.
    """
    kept = np.maximum(raw, 0.0)
    peak = kept.max()
    if not peak > 0.0:
        return np.full(len(raw), 1.0 / len(raw))
    kept = kept / peak  # first to [0, 1], so that neither tiny nor huge weights are lost in the sum
    return np.asarray(kept / kept.sum())


def as_distributions(raw: Floats) -> Floats:
    """Return what `as_distribution` makes of every row of a matrix."""
    kept = np.maximum(raw, 0.0)
    peaks = kept.max(axis=1, keepdims=True)
    if not (peaks > 0.0).all():
        return np.array([as_distribution(row) for row in raw])
    kept = kept / peaks
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def as_signed_distribution(raw: Floats) -> Floats:
    """Return raw weights of any sign, scaled so that their absolute values sum to 1; uniform if all are 0."""
    peak = np.abs(raw).max()
    if not peak > 0.0:
        return np.full(len(raw), 1.0 / len(raw))
    kept = raw / peak  # first to [-1, 1], so that neither tiny nor huge weights are lost in the sum
    return np.asarray(kept / np.abs(kept).sum())


def split_signs(weights: Floats) -> Floats:
    """Return K weights of any sign as 2 K parts that are not negative: those above 0, then those below, turned."""
    return np.concatenate([np.maximum(weights, 0.0), np.maximum(-weights, 0.0)])


def join_signs(parts: Floats) -> Floats:
    """Return the K weights of any sign that 2 K parts stand for: part k minus part K + k."""
    n = len(parts) // 2
    return np.asarray(parts[:n] - parts[n:])


def newton(
    derivatives: Derivatives,
    value: Value,
    start: Floats,
    *,
    tol: float,
    min_iter: int,
    max_iter: int,
    watch: Watch | None = None,
) -> Ascent:
    """Maximise f on the simplex by Newton steps (Algorithm 1, repaired: departures 4 and 6).

    Weights at 0 whose gradient pushes outwards are held; in the others, within sum alpha = 1, the Hessian's
    eigenvalues are replaced by minus their size, so that every step is an ascent direction; a backtracking search
    along the projected step asks for a sufficient rise. Stops when a step gains less than `tol`.
    """
    alpha, f, n = start.copy(), value(start), 0
    if watch is not None:
        watch(0, alpha, f)
    while n < max_iter:
        n += 1
        _, g, H = derivatives(alpha)
        free = _free(alpha, g)
        step = np.zeros_like(alpha)
        if free.sum() > 1:
            step[free] = _modified_newton_step(g[free], H[np.ix_(free, free)])
        alpha_next, f_next = _line_search(value, alpha, f, g, step)
        if alpha_next is None:
            slope = np.where(free, g - g[free].mean(), 0.0)
            alpha_next, f_next = _line_search(value, alpha, f, g, slope / max(norm(slope), 1e-300))
        gain = f_next - f
        if alpha_next is not None:
            alpha, f = alpha_next, f_next
        if watch is not None:
            watch(n, alpha, f)
        if gain < tol and n >= min_iter:
            return Ascent(alpha, f, n, converged=True)
    return Ascent(alpha, f, n, converged=False)


def barrier(
    derivatives: Derivatives,
    value: Value,
    start: Floats,
    *,
    tol: float,
    min_iter: int,
    max_iter: int,
    watch: Watch | None = None,
) -> Ascent:
    """Maximise f on the simplex by a log barrier (gEnM.IP as read in departure 10).

    Newton on the perturbed optimality conditions of f + mu * sum(log alpha) with sum alpha = 1, mu driven to
    0; no weight is clipped meanwhile. At the end a weight that the barrier alone holds above 0 (its multiplier
    mu / alpha exceeds it) becomes exactly 0.
    """
    alpha = 0.9 * start + 0.1 / len(start)  # strictly inside
    mu, n, converged = 0.1, 0, False
    f = value(alpha)
    if watch is not None:
        watch(0, alpha, f)
    while n < max_iter:
        gain = np.inf
        while n < max_iter and gain >= max(tol, mu * 1e-2):
            n += 1
            _, g, H = derivatives(alpha)
            g_mu = g + mu / alpha
            step = _modified_newton_step(g_mu, H - np.diag(mu / alpha**2))
            before = f + mu * float(logarithms(alpha).sum())
            alpha, f, gain = _barrier_line_search(value, alpha, f, before, g_mu, step, mu)
            if watch is not None:
                watch(n, alpha, f)
        if mu <= 1e-7:
            converged = gain < max(tol, mu * 1e-2) and n >= min(min_iter, max_iter)
            break
        mu *= 0.2
    alpha = _drop_barrier_weights(value, alpha, mu)
    return Ascent(alpha, value(alpha), n, converged)


def quasi_newton(
    gradient: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    watch: Watch | None = None,
    curvature: Floats | None = None,
) -> Ascent:
    """Maximise f on the simplex (Problem P3) with first derivatives alone.

    The steps are those of `newton`; the curvature is learned from the gradients (BFGS, damped as Powell
    does where f curves upward). For a handful of weights this beats a library's limited-memory form, whose every
    call costs more than an evaluation of f. `curvature` of -f, if known from a similar problem, is the first
    estimate; a step that promises less than `tol` by it is not tried.
    """
    alpha, n = start.copy(), 0
    f, g = gradient(alpha)
    g_trial = g

    def value(x: Floats) -> float:
        nonlocal g_trial  # of the point tried last, which is the one that the search accepts
        f_trial, g_trial = gradient(x)
        return f_trial

    first = norm(g - g.mean())
    is_known = curvature is not None
    if curvature is None:
        curvature = np.eye(len(alpha)) * max(first / _FIRST_STEP, 1e-12)
    if watch is not None:
        watch(0, alpha, f)
    while n < max_iter:
        n += 1
        step = _curved_step(alpha, g, curvature)
        if is_known and dot(g, step) < 2.0 * tol:  # of which the curvature takes back half
            return Ascent(alpha, f, n, converged=True, curvature=curvature)
        trial, risen = _line_search(value, alpha, f, g, step)
        if trial is None:
            return Ascent(alpha, f, n, converged=True, curvature=curvature)
        gain = risen - f
        curvature = _bfgs(curvature, trial - alpha, g - g_trial)
        alpha, f, g = trial, risen, g_trial
        if watch is not None:
            watch(n, alpha, f)
        if gain < tol:
            return Ascent(alpha, f, n, converged=True, curvature=curvature)
    return Ascent(alpha, f, n, converged=False, curvature=curvature)


def step_by_curvature(alpha: Floats, g: Floats, curvature: Floats) -> tuple[Floats, float]:
    """Return where a first step of `quasi_newton` leads, not confirmed by f, and what the slope promises there."""
    step = _curved_step(alpha, g, curvature)
    return project_to_simplex(alpha + step), dot(g, step)


def _curved_step(alpha: Floats, g: Floats, curvature: Floats) -> Floats:
    if len(alpha) < FEW:
        step = np.empty(len(alpha))
        few_weights.curved_step(_own(alpha), _own(g), _own(curvature), _LONGEST_STEP, step)
        return step
    free, step = _free(alpha, g), np.zeros_like(alpha)
    if free.sum() > 1:
        step[free] = _modified_newton_step(g[free], -curvature[np.ix_(free, free)])
    return step


def _own(numbers: Floats) -> Floats:
    """Return a copy: kernels are compiled for arrays that lie in one piece and can be written."""
    return np.array(numbers, np.float64, order="C")


def _bfgs(B: Floats, s: Floats, y: Floats) -> Floats:
    """Return the curvature B of a function updated by a step s and the change y of its gradient, kept positive."""
    if len(s) < FEW:
        return np.array(few_weights.updated_curvature(B.tolist(), s.tolist(), y.tolist()))
    y = y - y.mean()  # only directions that keep the sum matter
    Bs = times(B, s)
    sBs, sy = dot(s, Bs), dot(s, y)
    if sBs <= 1e-300:
        return B
    if sy < 0.2 * sBs:
        theta = 0.8 * sBs / (sBs - sy)
        y = theta * y + (1.0 - theta) * Bs
        sy = dot(s, y)
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy)


def _free(alpha: Floats, g: Floats) -> Bools:
    """Return which weights may move: those above 0, and those at 0 that want to rise."""
    inside = alpha > 1e-12
    return np.asarray(inside | (g > g[inside].mean()))


def _modified_newton_step(g: Floats, H: Floats) -> Floats:
    """Return an ascent step within sum(step) = 0: Newton's, with every curvature counted as downward."""
    if 1 < len(g) < FEW:
        step = np.empty(len(g))
        few_weights.newton_step(_own(g), _own(H), _LONGEST_STEP, step)
        return step
    basis = sum_zero_basis(len(g))
    curvature, directions = symmetric_eigen(product(product(basis.T, H), basis))
    size = np.maximum(np.abs(curvature), 1e-8 * max(1.0, float(np.abs(curvature).max(initial=0.0))))
    step = times(basis, times(directions, times(directions.T, times(basis.T, g)) / size))
    length = norm(step)
    return step if length <= _LONGEST_STEP else step * (_LONGEST_STEP / length)


def _line_search(value: Value, alpha: Floats, f: float, g: Floats, step: Floats) -> tuple[Floats | None, float]:
    """Return the first point along the projected step that rises enough, or None and f."""
    t = 1.0
    for _ in range(_HALVINGS):
        trial = project_to_simplex(alpha + t * step)
        slope = dot(g, trial - alpha)
        if slope > 0.0:
            risen = value(trial)
            if risen >= f + _ARMIJO * slope and risen > f:
                return trial, risen
        t *= 0.5
    return None, f


def _barrier_line_search(
    value: Value, alpha: Floats, f: float, before: float, g_mu: Floats, step: Floats, mu: float
) -> tuple[Floats, float, float]:
    """Return point, f and the barrier function's gain after a backtracking search that stays inside."""
    falling = step < 0
    t = min(1.0, 0.995 * float((-alpha[falling] / step[falling]).min())) if falling.any() else 1.0
    slope = dot(g_mu, step)
    for _ in range(_HALVINGS):
        trial = alpha + t * step
        trial = trial / trial.sum()
        if (trial > 0.0).all():
            risen = value(trial)
            after = risen + mu * float(logarithms(trial).sum())
            if after >= before + _ARMIJO * t * slope and after > before:
                return trial, risen, after - before
        t *= 0.5
    return alpha, f, 0.0


def _drop_barrier_weights(value: Value, alpha: Floats, mu: float) -> Floats:
    """Set weights of order mu to 0, unless f says that they mattered."""
    held = mu / alpha > alpha
    if not held.any() or held.all():
        return alpha
    dropped = np.where(held, 0.0, alpha)
    dropped /= dropped.sum()
    return dropped if value(dropped) >= value(alpha) - 1e-6 else alpha
