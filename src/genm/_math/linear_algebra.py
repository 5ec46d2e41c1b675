"""Small linear algebra with the same bits on every processor.

BLAS and LAPACK choose their code by processor, and with it the order of their sums. Learning and ranking need only
products of rows and the eigenvalues of a matrix as wide as there are rankers. Here every sum has one order: either
numpy's own (`sum`, which is the same everywhere) or that of a kernel's loop.
"""

import math
from functools import cache

import numpy as np

from genm._math.lanes import fill, load, store
from genm._math.parallel import kernel, over_ranges
from genm._typing import Floats

_SWEEPS = 60
"""Jacobi's method needs about eight for a matrix that is not special."""


def dot(x: Floats, y: Floats) -> float:
    """Return sum x y."""
    return float(np.add.reduce(x * y, axis=None))  # what sum() calls; short vectors take half as long without it


def norm(x: Floats) -> float:
    """Return the length of a vector."""
    return math.sqrt(dot(x, x))


def times(matrix: Floats, vector: Floats) -> Floats:
    """Return the product of a matrix (or a stack of rows) and a vector."""
    return np.asarray(np.add.reduce(matrix * vector, axis=-1))


def product(left: Floats, right: Floats) -> Floats:
    """Return the product of two small matrices."""
    return times(left[:, None, :], np.ascontiguousarray(right.T)[None, :, :])


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Return sum(weight * value) / sum(weight)."""
    return dot(values, weights) / float(weights.sum())


def median(values: Floats) -> float:
    """Return numpy's median; numpy looks for a masked array first, and takes .03 s to load what knows of them."""
    rising, half = np.sort(values, axis=None), values.size // 2
    return float(rising[half] if values.size % 2 else (rising[half - 1] + rising[half]) / 2.0)


def row_products(left: Floats, right: Floats) -> Floats:
    """Return left @ right.T, (n, m): the dot product of every row of one with every row of the other.

    Each is summed from the first column to the last, so equal rows have equal products, wherever they stand.
    """
    left, right = np.require(left, np.float64, ("C", "W")), np.require(right, np.float64, ("C", "W"))
    out = np.empty((len(left), len(right)))
    n_blocks = -(-len(right) // 8)
    over_ranges(
        lambda low, high: _row_products(low, high, left, right, out), np.full(n_blocks, max(1, left.size), np.int64)
    )
    return out


@kernel(makes_arrays=True)
def _row_products(low: int, high: int, left: Floats, right: Floats, out: Floats) -> None:
    """Fill the columns of eight rows of `right` at a time, which lie side by side, for four rows of `left`."""
    (n, width), m = left.shape, len(right)
    packed, found, none = np.zeros(8 * width), np.empty((4, 8)), np.zeros(width)
    for block in range(low, high):
        begin = 8 * block
        size = min(8, m - begin)
        for i in range(size):
            for z in range(width):
                packed[8 * z + i] = right[begin + i, z]
        for q in range(0, n, 4):
            a, b = left[q], left[q + 1] if q + 1 < n else none
            c, d = left[q + 2] if q + 2 < n else none, left[q + 3] if q + 3 < n else none
            of_a, of_b, of_c, of_d = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
            for z in range(width):
                x = load(packed, 8 * z)
                of_a += a[z] * x
                of_b += b[z] * x
                of_c += c[z] * x
                of_d += d[z] * x
            store(found, 0, of_a)
            store(found, 8, of_b)
            store(found, 16, of_c)
            store(found, 24, of_d)
            for row in range(min(4, n - q)):
                for i in range(size):
                    out[q + row, begin + i] = found[row, i]


def symmetric_eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the rising eigenvalues of a symmetric matrix and its eigenvectors as columns, by Jacobi's method."""
    values, vectors = np.array(matrix, np.float64, order="C"), np.eye(len(matrix))
    rotate_to_diagonal(values, vectors)
    found = np.diagonal(values)
    order = np.argsort(found, kind="stable")
    return found[order], vectors[:, order]


@kernel
def rotate_to_diagonal(A: Floats, V: Floats) -> None:
    """Turn A into a diagonal matrix by plane rotations (Jacobi); V takes part in them."""
    n = len(A)
    for _ in range(_SWEEPS):
        turned = False
        for p in range(n - 1):
            for q in range(p + 1, n):
                if not abs(A[p, q]) > 1e-18 * (abs(A[p, p]) + abs(A[q, q])):
                    A[p, q] = A[q, p] = 0.0
                    continue
                turned = True
                ratio = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
                t = 1.0 / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
                if ratio < 0.0:
                    t = -t
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = t * c
                for k in range(n):
                    x, y = A[k, p], A[k, q]
                    A[k, p], A[k, q] = c * x - s * y, s * x + c * y
                for k in range(n):
                    x, y = A[p, k], A[q, k]
                    A[p, k], A[q, k] = c * x - s * y, s * x + c * y
                    x, y = V[k, p], V[k, q]
                    V[k, p], V[k, q] = c * x - s * y, s * x + c * y
                A[p, q] = A[q, p] = 0.0
        if not turned:
            return


@cache
def sum_zero_basis(n: int) -> Floats:
    """Return an orthonormal basis (n, n - 1) of the vectors that sum to 0 (Helmert's). Not to be changed."""
    basis = np.tril(np.ones((n, n - 1)), -1)
    for k in range(n - 1):
        basis[:, k] = 0.0
        basis[: k + 1, k] = 1.0
        basis[k + 1, k] = -(k + 1.0)
        basis[:, k] /= np.sqrt((k + 1.0) * (k + 2.0))
    basis.flags.writeable = False
    return basis


def nonnegative_solution(matrix: Floats, right: Floats) -> Floats:
    """Return the x >= 0 that maximises right'x - x'matrix x / 2, for a positive definite matrix.

    Active sets (Lawson and Hanson 1974): numbers enter one at a time, the steepest first, and leave when the
    solution of those inside would make them negative.
    """
    n = len(right)
    x, inside = np.zeros(n), np.zeros(n, np.bool_)
    for _ in range(3 * n):
        slope = np.where(inside, -np.inf, right - times(matrix, x))
        best = int(np.argmax(slope))
        if not slope[best] > 1e-12 * max(float(np.abs(right).max()), 1e-300):
            break
        inside[best] = True
        while True:
            trial = np.zeros(n)
            trial[inside] = _solve(matrix[np.ix_(inside, inside)], right[inside])
            falling = inside & (trial <= 0.0)
            if not falling.any():
                x = trial
                break
            step = float((x[falling] / (x[falling] - trial[falling])).min())
            x = x + step * (trial - x)
            inside &= x > 1e-15
            x[~inside] = 0.0
    return x


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a positive definite system, by elimination."""
    table = np.concatenate((matrix, right[:, None]), axis=1)
    n = len(right)
    for k in range(n):
        table[k] = table[k] / table[k, k]
        for other in range(n):
            if other != k:
                table[other] = table[other] - table[other, k] * table[k]
    return np.asarray(table[:, n])
