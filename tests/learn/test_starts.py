"""Starting points: binary for few rankers, seeded beyond."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.errors import InputError
from genm.learn.starts import check_free, check_schedule, simple_starts, starting_points


def test_all_binary_vectors_for_two_rankers() -> None:
    assert starting_points(2, seed=0).tolist() == [[0, 1], [1, 0], [0.5, 0.5]]


@given(st.integers(1, 12), st.integers(0, 99))
def test_every_start_is_a_distribution(n: int, seed: int) -> None:
    points = starting_points(n, seed=seed)
    assert (points >= 0).all()
    np.testing.assert_allclose(points.sum(axis=1), 1.0)
    assert len(points) == (2**n - 1 if n <= 6 else 3 * n + 1)
    assert (starting_points(n, seed=seed) == points).all()


def test_the_seed_matters_only_beyond_six() -> None:
    assert (starting_points(6, seed=1) == starting_points(6, seed=2)).all()
    assert (starting_points(7, seed=1) != starting_points(7, seed=2)).any()


@pytest.mark.parametrize("given_starts", [[[np.nan, 1]], [[0, 0]], [[[1, 2]]]])
def test_useless_starts_are_refused(given_starts: list[list[float]]) -> None:
    with pytest.raises(InputError, match="starts"):
        starting_points(2, seed=0, given=given_starts)


def test_free_starts_are_the_paper_s_sixteen_unscaled() -> None:
    points = starting_points(4, seed=0, free=True)
    assert points.shape == (16, 4)
    assert points[0].tolist() == [0, 0, 0, 0]
    assert set(points.ravel().tolist()) == {0.0, 1.0}
    assert len(starting_points(7, seed=0, free=True)) == 3 * 7 + 2
    assert starting_points(2, seed=0, given=[[0, 0], [3, 1]], free=True).tolist() == [[0, 0], [3, 1]]


def test_zeros_are_refused_on_the_simplex_with_advice() -> None:
    with pytest.raises(InputError, match="unless weights are free"):
        starting_points(2, seed=0, given=[[0, 0]])


def test_simple_starts_are_uniform_and_half_way_to_the_best_ranker() -> None:
    uniform, single = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    assert [start.tolist() for start in simple_starts(uniform, single)] == [[0.5, 0.5], [0.25, 0.75]]
    assert simple_starts(np.ones(1), np.ones(1)) == []
    assert simple_starts(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == []  # the parts of one signed weight


def test_known_names_come_back() -> None:
    assert [check_schedule(name) for name in ("paper", "adaptive")] == ["paper", "adaptive"]


def test_others_are_refused_with_the_names() -> None:
    with pytest.raises(InputError, match="'wild': expected one of paper, adaptive"):
        check_schedule("wild")


def test_free_weights_go_with_the_printed_steps_only() -> None:
    check_free(free=True, schedule="paper")
    check_free(free=False, schedule="adaptive")
    with pytest.raises(InputError, match="stay on the simplex"):
        check_free(free=True, schedule="adaptive")
