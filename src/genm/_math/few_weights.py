"""Steps of the optimisers for a few weights, on Python's own numbers.

A call of numpy takes a microsecond or more, whatever it does. Of an ascent over four weights and thirty queries,
half the time went into such calls. numpy adds fewer than eight numbers from the first to the last, beginning with
0, and so do these functions: their results are those of `genm._math.simplex_optimizers`, to the last bit.
(Python's `sum` does not: from 3.12 on it compensates for rounding.)
"""

import math
from collections.abc import Sequence
from functools import cache
from operator import mul

import numpy as np

from genm._math import linear_algebra
from genm._typing import Floats

FEW = 8
"""Below so many numbers numpy's sums have this order."""

Numbers = Sequence[float]


def dot(x: Numbers, y: Numbers) -> float:
    """Return sum x y."""
    total = 0.0
    for part in map(mul, x, y):
        total += part
    return total


def project(point: Numbers) -> list[float]:
    """Return the nearest point (Euclidean) whose parts are >= 0 and sum to 1."""
    down = sorted(point, reverse=True)
    reached, theta = down[0], down[0] - 1.0
    for k in range(1, len(down)):
        reached += down[k]
        excess = (reached - 1.0) / (k + 1)
        if down[k] > excess:
            theta = excess
    alpha = [max(x - theta, 0.0) for x in point]
    total = 0.0
    for part in alpha:
        total += part
    return [part / total for part in alpha]


def curved_step(alpha: Numbers, g: Numbers, curvature: list[list[float]], longest: float) -> list[float]:
    """Return the step of the weights that may move: those above 0, and those at 0 that want to rise."""
    inside = [k for k, part in enumerate(alpha) if part > 1e-12]
    total = 0.0
    for k in inside:
        total += g[k]
    middle = total / len(inside)
    free = [k for k, part in enumerate(alpha) if part > 1e-12 or g[k] > middle]
    step = [0.0] * len(alpha)
    if len(free) > 1:
        H = [[-curvature[k][m] for m in free] for k in free]
        for k, part in zip(free, newton_step([g[k] for k in free], H, longest), strict=True):
            step[k] = part
    return step


def newton_step(g: Numbers, H: list[list[float]], longest: float) -> list[float]:
    """Return an ascent step within sum(step) = 0: Newton's, with every curvature counted as downward."""
    basis, identity = _sum_zero_basis(len(g))
    columns = list(zip(*H, strict=True))
    projected = [[dot(b, column) for column in columns] for b in basis]
    diagonal, turned = np.array([[dot(row, b) for b in basis] for row in projected]), identity.copy()
    linear_algebra.rotate_to_diagonal(diagonal, turned)
    curvature, vectors = diagonal.diagonal().tolist(), turned.T.tolist()
    order = sorted(range(len(basis)), key=curvature.__getitem__)
    least = 1e-8 * max(1.0, *map(abs, curvature))
    along, directions = [dot(b, g) for b in basis], [vectors[k] for k in order]
    lengths = [dot(d, along) / max(abs(curvature[k]), least) for d, k in zip(directions, order, strict=True)]
    inside = [dot(row, lengths) for row in zip(*directions, strict=True)]
    step = [dot(row, inside) for row in zip(*basis, strict=True)]
    length = math.sqrt(dot(step, step))
    return step if length <= longest else [x * (longest / length) for x in step]


def updated_curvature(B: list[list[float]], s: Numbers, y: Numbers) -> list[list[float]]:
    """Return the curvature B of a function updated by a step s and the change y of its gradient (BFGS, damped)."""
    total = 0.0
    for part in y:
        total += part
    middle = total / len(y)
    y = [part - middle for part in y]
    Bs = [dot(row, s) for row in B]
    sBs, sy = dot(s, Bs), dot(s, y)
    if sBs <= 1e-300:
        return B
    if sy < 0.2 * sBs:
        theta = 0.8 * sBs / (sBs - sy)
        y = [theta * a + (1.0 - theta) * b for a, b in zip(y, Bs, strict=True)]
        sy = dot(s, y)
    n = range(len(y))
    return [[B[i][j] - Bs[i] * Bs[j] / sBs + y[i] * y[j] / sy for j in n] for i in n]


@cache
def _sum_zero_basis(n: int) -> tuple[list[list[float]], Floats]:
    """Return the columns of `sum_zero_basis`, and the identity matrix of their number. Not to be changed."""
    return linear_algebra.sum_zero_basis(n).T.tolist(), np.eye(n - 1)
