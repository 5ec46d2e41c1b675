"""The penalty of Problem P8: against the triple sum, by differences, and at uniform weights."""

import numpy as np
import oracles
import pytest

from genm._math.agreement import agreement_penalty, score_moments
from genm.errors import InputError


def made(n_queries=4, n_documents=30, n_rankers=3, seed=0):
    scores = np.random.default_rng(seed).random((n_queries * n_documents, n_rankers))
    return np.arange(n_queries + 1) * n_documents, scores


def test_equals_the_triple_sum():
    starts, scores = made()
    weights = np.array([0.7, -0.2, 0.4])
    found = agreement_penalty(score_moments(starts, scores), weights, 2.5)
    assert found.value == pytest.approx(oracles.penalty(scores.reshape(4, 30, 3), weights, 2.5), rel=1e-12)


def test_one_document_by_hand():
    # Scores 1 and 3, weights (1/2, 1/2): H = 2, squares 1 + 1, so -(sigma/2) (1/2) 2 = -sigma / 2.
    found = agreement_penalty(score_moments(np.array([0, 1]), np.array([[1.0, 3.0]])), np.full(2, 0.5), 4.0)
    assert found.value == pytest.approx(-2.0)
    np.testing.assert_allclose(found.hessian, -4.0 * np.array([[1.0, 3.0], [3.0, 9.0]]))


def test_derivatives_agree_with_central_differences():
    starts, scores = made(n_rankers=4)
    moments, weights, step = score_moments(starts, scores), np.array([0.1, 0.5, 0.2, 0.3]), 1e-4
    found = agreement_penalty(moments, weights, 3.0)
    ahead = [agreement_penalty(moments, weights + h, 3.0) for h in step * np.eye(4)]
    behind = [agreement_penalty(moments, weights - h, 3.0) for h in step * np.eye(4)]
    pairs = list(zip(ahead, behind, strict=True))
    np.testing.assert_allclose(found.gradient, [(a.value - b.value) / (2 * step) for a, b in pairs], rtol=1e-8)
    np.testing.assert_allclose(found.hessian, [(a.gradient - b.gradient) / (2 * step) for a, b in pairs], rtol=1e-8)


def test_uniform_weights_are_best_for_the_penalty_alone():
    moments = score_moments(*made(n_rankers=3, seed=4))
    best = agreement_penalty(moments, np.full(3, 1 / 3), 1.0)
    np.testing.assert_allclose(best.gradient, 0.0, atol=1e-12)
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 20):
        assert agreement_penalty(moments, other, 1.0).value <= best.value


def test_every_query_counts_the_same_however_long_and_by_its_weight():
    _, scores = made()
    starts = np.array([0, 10, 10, 120])
    weights = np.array([2.0, 5.0, 1.0])
    matrix = score_moments(starts, scores, weights).matrix
    by_query = [scores[a:b].T @ scores[a:b] / (b - a) for a, b in ((0, 10), (10, 120))]
    np.testing.assert_allclose(matrix, (2.0 * by_query[0] + by_query[1]) / 3.0, rtol=1e-12)


def test_no_penalty_without_sigma_and_none_for_one_ranker():
    starts, scores = made(n_rankers=1)
    moments = score_moments(starts, scores)
    assert agreement_penalty(moments, np.array([0.3]), 0.0).value == 0.0
    assert agreement_penalty(moments, np.array([1.0]), 9.0).value == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
@pytest.mark.parametrize("weight", [0.0, 1e200, -1e308])
@pytest.mark.parametrize("sigma", [0.0, 1.0, 1e308])
def test_no_finite_input_gives_nan(scale, weight, sigma):
    starts, scores = made()
    found = agreement_penalty(score_moments(starts, scores * scale), np.array([weight, 1.0, 0.0]), sigma)
    assert np.isfinite(found.value)
    assert np.isfinite(found.gradient).all()
    assert np.isfinite(found.hessian).all()
    assert found.value <= 0.0


def test_bad_input_is_refused():
    starts, scores = made()
    with pytest.raises(InputError, match=r"sigma=-1\.0: expected a finite number"):
        agreement_penalty(score_moments(starts, scores), np.ones(3), -1.0)
    with pytest.raises(InputError, match="weights must be 3 finite numbers"):
        agreement_penalty(score_moments(starts, scores), np.ones(2), 1.0)
    scores[3, 1] = np.nan
    with pytest.raises(InputError, match="scores must be finite"):
        score_moments(starts, scores)
