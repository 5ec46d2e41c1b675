"""Algorithm 2 as printed: what it computes, and how far that is from the derivatives."""

import numpy as np

from genm._math.average_precision import smooth_ap
from genm._math.printed import as_printed
from genm._math.tiles import build_tiles, mean


def made(seed=0, n=60, n_rankers=3):
    rng = np.random.default_rng(seed)
    starts = np.array([0, n, 2 * n])
    scores = rng.random((2 * n, n_rankers))
    relevant = rng.random(2 * n) < 0.1
    n_relevant = np.array([relevant[:n].sum(), relevant[n:].sum()])
    return starts, scores, relevant, n_relevant


WEIGHTS = np.array([0.5, 0.3, 0.2])


def test_the_objective_is_that_of_p4():
    table = made()
    wanted = mean(build_tiles(*table), smooth_ap(build_tiles(*table), WEIGHTS, 40.0).value)
    np.testing.assert_allclose(as_printed(*table, WEIGHTS, 40.0).value, wanted, rtol=1e-12)


def test_two_documents_by_hand():
    # s_{dj,d} = -0.1 and beta = 10: g = e / (1 + e), R = 1 + g, and |beta s| = 1 < 2 keeps the pair.
    table = (np.array([0, 2]), np.array([[0.6], [0.5]]), np.array([False, True]), np.array([1]))
    g = np.e / (1 + np.e)
    R, slope = 1 + g, g * (1 - g)
    literal, corrected = as_printed(*table, np.ones(1), 10.0), as_printed(*table, np.ones(1), 10.0, corrected=True)
    np.testing.assert_allclose(literal.gradient, [-(10 * -0.1) / R**2])
    np.testing.assert_allclose(corrected.gradient, [-(-10 * -0.1 * slope) / R**2])
    G_kl = 100 * 0.01 * slope * (1 - 2 * g)
    np.testing.assert_allclose(literal.hessian, [[(-G_kl * R**2 + 2 * R) / R**2]])
    np.testing.assert_allclose(corrected.hessian, [[(-G_kl * R**2 + 2 * slope**2 * R) / R**4]])


def test_pairs_further_than_two_over_beta_are_left_out_of_the_derivatives_only():
    table = (np.array([0, 2]), np.array([[0.8], [0.5]]), np.array([False, True]), np.array([1]))
    found = as_printed(*table, np.ones(1), 10.0)
    assert not found.gradient.any()
    assert not found.hessian.any()
    assert 0.5 < found.value < 0.55


def test_without_far_pairs_the_corrected_form_is_the_derivative():
    table = made(1)
    found = as_printed(*table, WEIGHTS, 1.5, corrected=True)
    tiles = build_tiles(*table)
    exact = smooth_ap(tiles, WEIGHTS, 1.5, order=2)
    np.testing.assert_allclose(found.gradient, mean(tiles, exact.gradient), rtol=1e-10)
    np.testing.assert_allclose(found.hessian, exact.hessian, rtol=1e-10)


def test_the_literal_gradient_points_backwards():
    backwards = 0
    for seed in range(20):
        table = made(seed)
        tiles = build_tiles(*table)
        exact = mean(tiles, smooth_ap(tiles, WEIGHTS, 40.0, order=1).gradient)
        assert as_printed(*table, WEIGHTS, 40.0, corrected=True).gradient @ exact > 0
        backwards += bool(as_printed(*table, WEIGHTS, 40.0).gradient @ exact < 0)
    assert backwards >= 18


def test_a_query_without_relevant_documents_counts_as_zero():
    starts, scores, relevant, n_relevant = made(2)
    relevant[60:] = False
    n_relevant[1] = 0
    found = as_printed(starts, scores, relevant, n_relevant, WEIGHTS, 40.0)
    alone = as_printed(starts[:2], scores[:60], relevant[:60], n_relevant[:1], WEIGHTS, 40.0)
    np.testing.assert_allclose(found.value, alone.value / 2)
    np.testing.assert_allclose(found.gradient, alone.gradient / 2)
