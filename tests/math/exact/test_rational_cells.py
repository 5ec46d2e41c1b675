"""Ties on sets of no width: they leave no gap open, and what settles them is exact."""

from fractions import Fraction

import numpy as np
import pytest

from genm._math.exact import rational_cells
from genm._math.exact.branch_and_bound import best_weights
from genm._math.exact.line_search import value_at
from genm._math.exact.rank_gains import GainProblem, binary_problem
from genm._math.exact.rational_cells import corners_of


def one_relevant(rows: list[list[float]], relevant: int) -> GainProblem:
    marks = np.arange(len(rows)) == relevant
    return binary_problem(np.array([0, len(rows)]), np.array(rows), marks, np.array([1]), np.ones(1))


def between_two(a: float, b: float) -> GainProblem:
    """Row 1 lies between rows 2 and 3, so it beats both where they tie, and one of them everywhere else."""
    return one_relevant([[0.0, 0.0, 0.0], [a, 0.0, b], [2 * a, 0.0, 0.0], [0.0, 0.0, 2 * b]], 1)


@pytest.mark.parametrize(("a", "b"), [(0.125, 0.125), (0.3, 0.7), (3.0, 7.0), (1 / 3, 0.1)])
def test_a_row_between_two_others_never_beats_both(a, b):
    """The tie w1 a = w3 b is hit by a cut in the middle only in the first case."""
    problem = between_two(a, b)
    found = best_weights(problem, certificate=True)
    assert (found.value, found.upper) == (0.5, 0.5)
    assert value_at(problem, found.weights) == 0.5


def test_cuts_at_ties_are_in_the_certificate():
    assert found_ties(between_two(0.125, 0.125)) <= {(1, 2), (1, 3)}
    assert found_ties(between_two(0.3, 0.7))


def found_ties(problem: GainProblem) -> set[tuple[int, int]]:
    tree = best_weights(problem, certificate=True).certificate
    assert tree is not None
    return {(a, b) for a, b in tree.ties.tolist() if a >= 0}


def test_three_rows_around_a_fourth_never_lose_to_it_all_at_once():
    """Planes of ties that meet in one point, where the fourth row would win by its place."""
    problem = one_relevant([[2.0, 2.0, 2.0], [4.0, 1.0, 1.0], [1.0, 4.0, 1.0], [1.0, 1.0, 4.0]], 0)
    found = best_weights(problem)
    assert found.value == found.upper == 0.5


def test_without_patience_the_bound_stands(monkeypatch):
    monkeypatch.setattr(rational_cells, "MOST_CELLS", 0)
    found = best_weights(between_two(0.3, 0.7))
    assert (found.value, found.upper) == (0.5, 1.0)


def test_a_path_leads_to_exact_corners():
    cell = corners_of(((1, 0, 0.5), (1, 1, 0.1)), 2)
    assert cell == [(Fraction(1) - Fraction(0.1) / 2, Fraction(0.1) / 2), (Fraction(1, 2), Fraction(1, 2))]
