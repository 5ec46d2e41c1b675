"""Algorithm 2 over tiles equals Algorithm 2 pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.printed import as_printed
from genm._math.tiles import build_tiles
from genm._math.windowed import windowed
from genm.errors import InputError


def made(seed, n_queries, n, n_rankers):
    rng = np.random.default_rng(seed)
    starts = np.arange(n_queries + 1) * n
    scores = rng.random((n_queries * n, n_rankers)).round(2)
    relevant = rng.random(n_queries * n) < 0.15
    relevant[starts[:-1]] = True
    n_relevant = np.add.reduceat(relevant.astype(np.int64), starts[:-1])
    return starts, scores, relevant, n_relevant


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 150), st.sampled_from([5.0, 40.0, 200.0]))
def test_it_is_what_the_pairs_give(seed, n_rankers, n, beta):
    table = made(seed, 3, n, n_rankers)
    weights = np.random.default_rng(seed).normal(size=n_rankers)
    found = windowed(build_tiles(*table), weights, beta)
    literal = as_printed(*table, weights, beta)
    corrected = as_printed(*table, weights, beta, corrected=True)
    close = {"rtol": 1e-7, "atol": 1e-6}
    assert found.value == pytest.approx(literal.value, rel=1e-10)
    np.testing.assert_allclose(found.gradients[0], literal.gradient, **close)
    np.testing.assert_allclose(found.gradients[1], corrected.gradient, **close)
    np.testing.assert_allclose(found.hessians[0], literal.hessian, **close)
    np.testing.assert_allclose(found.hessians[2], corrected.hessian, **close)


def test_between_the_two_stands_the_true_slope_over_the_printed_square():
    """Two documents by hand: s_{dj,d} = -0.1, beta = 10, R = 1 + g."""
    table = (np.array([0, 2]), np.array([[0.6], [0.5]]), np.array([False, True]), np.array([1]))
    found = windowed(build_tiles(*table), np.ones(1), 10.0)
    g = np.e / (1 + np.e)
    slope, R = g * (1 - g), 1 + g
    G_kl = slope * (1 - 2 * g)
    np.testing.assert_allclose(found.hessians[1], [[(-G_kl * R**2 + 2 * slope**2 * R) / R**2]])


def test_enormous_scores_are_refused():
    with pytest.raises(InputError, match="expected cosines"):
        windowed(
            build_tiles(np.array([0, 2]), np.array([[1e300], [0.0]]), np.array([True, False]), np.array([1])),
            np.ones(1),
            1.0,
        )
