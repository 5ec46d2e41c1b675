"""Starting points: binary for few rankers, seeded beyond."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.errors import InputError
from genm.learn.starts import starting_points


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
