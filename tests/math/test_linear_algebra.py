"""Our small linear algebra is that of the textbook, and equal rows have equal products wherever they stand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from genm._math.linear_algebra import (
    dot,
    median,
    nonnegative_solution,
    norm,
    product,
    row_products,
    symmetric_eigen,
    times,
    weighted_mean,
)

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def test_by_hand():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    assert dot(x, y) == 32.0
    assert norm(np.array([3.0, 4.0])) == 5.0
    assert times(np.array([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]), x).tolist() == [4.0, 4.0]
    assert product(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).tolist() == [[13.0, 16.0]]
    assert weighted_mean(x, np.array([1.0, 1.0, 2.0])) == 2.25


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(0, 9), m=st.integers(0, 20), width=st.integers(0, 40))
def test_row_products_are_a_matrix_product(seed, n, m, width):
    left, right = drawn(seed, n, width), drawn(seed + 1, m, width)
    found = row_products(left, right)
    bound = 1e-15 * (width + 1) * (np.abs(left) @ np.abs(right).T) + 1e-300  # what rounding can do
    assert found.shape == (n, m)
    assert (np.abs(found - left @ right.T) <= bound).all()


def test_equal_rows_have_equal_products_wherever_they_stand():
    left, right = drawn(0, 7, 101), drawn(1, 33, 101)
    left[5], right[30] = left[0], right[2]
    found = row_products(left, right)
    assert found[5].tobytes() == found[0].tobytes()
    assert found[:, 30].tobytes() == found[:, 2].tobytes()


def test_row_products_take_what_is_not_contiguous():
    left = drawn(0, 5, 6)
    assert row_products(left.T, left.T) == pytest.approx(left.T @ left)


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 20))
def test_eigenvalues_and_vectors(seed, n):
    matrix = drawn(seed, n, n)
    matrix = matrix + matrix.T
    values, vectors = symmetric_eigen(matrix)
    size = 1e-13 * np.abs(matrix).sum()
    assert np.abs(values - np.linalg.eigvalsh(matrix)).max() <= size
    assert np.abs((vectors * values) @ vectors.T - matrix).max() <= size
    assert np.abs(vectors.T @ vectors - np.eye(n)).max() <= 1e-13 * n


def test_a_diagonal_matrix_is_left_as_it_is():
    values, vectors = symmetric_eigen(np.diag([3.0, 1.0, 2.0]))
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert vectors.tolist() == np.eye(3)[:, [1, 2, 0]].tolist()


def test_eigenvalues_of_a_matrix_of_ones():
    values, _ = symmetric_eigen(np.ones((4, 4)))
    assert values == pytest.approx([0.0, 0.0, 0.0, 4.0], abs=1e-14)


@settings(max_examples=60)
@given(seed=SEEDS, n=st.integers(1, 12))
def test_nonnegative_solution_is_that_of_least_squares(seed, n):
    matrix = drawn(seed, n + 3, n)
    matrix = matrix.T @ matrix + 0.2 * np.eye(n)
    right = drawn(seed + 1, n)
    root = np.linalg.cholesky(matrix)
    expected, _ = nnls(root.T, np.linalg.solve(root, right))
    assert nonnegative_solution(matrix, right) == pytest.approx(expected, abs=1e-10)


def test_nothing_to_gain_is_all_zeros():
    assert nonnegative_solution(np.eye(3), np.array([-1.0, 0.0, -math.pi])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30, 31])
def test_median_is_numpys(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    assert median(values) == np.median(values)
