"""Starting points of the iterations, and step lengths of stochastic ascent."""

import itertools
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from genm._typing import Floats
from genm.errors import InputError

Starts = Sequence[Sequence[float]] | NDArray[np.float64] | None

Schedule = Literal["paper", "adaptive"]
"""paper: 1/t, Section 4.2's choice; adaptive: shrinking with the size of the gradients met so far."""

STRIDE = 0.25
"""The adaptive schedule's first step, as a share of the simplex's edge."""


def starting_points(n_rankers: int, *, seed: int, given: Starts = None, free: bool = False) -> Floats:
    """Return starting points, one per row, each a distribution.

    All 2^K - 1 binary vectors up to six rankers, as in Section 5.1; beyond that the K unit vectors, uniform
    weights and 2 K seeded random ones. Points that the caller gives are used instead, scaled to sum 1.

    With `free` nothing is scaled, and the vector of zeros, the sixteenth of four rankers, comes first: free weights
    leave it, since the gradient of P4 is not 0 where all scores are.
    """
    if given is not None:
        return _checked(np.atleast_2d(np.asarray(given, np.float64)), n_rankers, free=free)
    if n_rankers <= 6:
        points = np.array(list(itertools.product((0.0, 1.0), repeat=n_rankers)))
    else:
        random = np.random.default_rng(seed).dirichlet(np.ones(n_rankers), 2 * n_rankers)
        points = np.vstack([np.zeros((1, n_rankers)), np.eye(n_rankers), np.ones((1, n_rankers)), random])
    return points if free else _scaled(points[1:])


def simple_starts(uniform: Floats, single: Floats) -> list[Floats]:
    """Return the starts of a fast search: uniform weights, and half-way from there to the best single ranker.

    With one ranker the two are the same, and there is nothing to learn.
    """
    return [] if np.array_equal(uniform, single) else [uniform, 0.5 * uniform + 0.5 * single]


def _checked(points: Floats, n_rankers: int, *, free: bool) -> Floats:
    if points.ndim != 2 or points.shape[1] != n_rankers:
        raise InputError(f"starts: expected rows of {n_rankers} weights; found an array of shape {points.shape}.")
    if not np.isfinite(points).all() or (points < 0).any():
        raise InputError("starts: expected finite weights >= 0.")
    if free:
        return points
    if not (points.sum(axis=1) > 0).all():
        raise InputError("starts: expected at least one weight above 0 in each row, unless weights are free.")
    return _scaled(points)


def _scaled(points: Floats) -> Floats:
    return np.asarray(points / points.sum(axis=1, keepdims=True))


def check_schedule(schedule: str) -> Schedule:
    """Return the schedule if there is one of that name."""
    if schedule == "paper":
        return "paper"
    if schedule == "adaptive":
        return "adaptive"
    raise InputError(f"schedule={schedule!r}: expected one of {', '.join(get_args(Schedule))}.")


def check_free(*, free: bool, schedule: str) -> None:
    """Refuse free weights where every step is led back to the simplex."""
    if free and schedule != "paper":
        raise InputError('free=True: expected schedule="paper"; the adaptive steps stay on the simplex.')
