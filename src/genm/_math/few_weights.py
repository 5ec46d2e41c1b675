"""Steps of the optimisers for a few weights, on Python's own numbers or in a kernel.

A call of numpy takes a microsecond or more, whatever it does. Of an ascent over four weights and thirty queries,
half the time went into such calls. numpy adds fewer than eight numbers from the first to the last, beginning with
0, and so do these functions: their results are those of `genm._math.simplex_optimizers`, to the last bit.
(Python's `sum` does not: from 3.12 on it compensates for rounding.)
"""

import math
from collections.abc import Sequence
from operator import mul

import numpy as np

from genm._math.linear_algebra import rotate_to_diagonal
from genm._math.parallel import kernel
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


@kernel(makes_arrays=True)
def newton_step(g: Floats, H: Floats, longest: float, step: Floats) -> None:
    """Set an ascent step within sum(step) = 0: Newton's, with every curvature counted as downward."""
    n = len(g) - 1
    basis, projected = np.zeros((n, n + 1)), np.empty((n, n + 1))  # rows: the columns of `sum_zero_basis`
    diagonal, turned = np.empty((n, n)), np.zeros((n, n))
    along, lengths, order = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for k in range(n):
        size = math.sqrt((k + 1.0) * (k + 2.0))
        for i in range(k + 1):
            basis[k, i] = 1.0 / size
        basis[k, k + 1] = -(k + 1.0) / size
        turned[k, k] = 1.0
    for k in range(n):
        along[k] = 0.0
        for i in range(n + 1):
            along[k] += basis[k, i] * g[i]
        for m in range(n + 1):
            projected[k, m] = 0.0
            for i in range(n + 1):
                projected[k, m] += basis[k, i] * H[i, m]
    for k in range(n):
        for m in range(n):
            diagonal[k, m] = 0.0
            for i in range(n + 1):
                diagonal[k, m] += projected[k, i] * basis[m, i]
    rotate_to_diagonal(diagonal, turned)
    least = 1.0
    for k in range(n):
        least = max(least, abs(diagonal[k, k]))
        place = k
        while place > 0 and diagonal[k, k] < diagonal[order[place - 1], order[place - 1]]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    least *= 1e-8
    for d in range(n):
        k = order[d]
        lengths[d] = 0.0
        for i in range(n):
            lengths[d] += turned[i, k] * along[i]
        lengths[d] /= max(abs(diagonal[k, k]), least)
    for i in range(n):
        along[i] = 0.0
        for d in range(n):
            along[i] += turned[i, order[d]] * lengths[d]
    square = 0.0
    for i in range(n + 1):
        step[i] = 0.0
        for k in range(n):
            step[i] += basis[k, i] * along[k]
        square += step[i] * step[i]
    length = math.sqrt(square)
    if length > longest:
        for i in range(n + 1):
            step[i] *= longest / length


@kernel(makes_arrays=True)
def curved_step(alpha: Floats, g: Floats, curvature: Floats, longest: float, step: Floats) -> None:
    """Set the step of the weights that may move: those above 0, and those at 0 that want to rise."""
    total, n_inside = 0.0, 0
    for k in range(len(alpha)):
        step[k] = 0.0
        if alpha[k] > 1e-12:
            total += g[k]
            n_inside += 1
    free, n = np.empty(len(alpha), np.int64), 0
    for k in range(len(alpha)):
        if alpha[k] > 1e-12 or g[k] > total / n_inside:
            free[n] = k
            n += 1
    if n < 2:
        return
    own_g, H, own_step = np.empty(n), np.empty((n, n)), np.empty(n)
    for i in range(n):
        own_g[i] = g[free[i]]
        for j in range(n):
            H[i, j] = -curvature[free[i], free[j]]
    newton_step(own_g, H, longest, own_step)
    for i in range(n):
        step[free[i]] = own_step[i]


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
