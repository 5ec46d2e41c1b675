"""The paper's bounds on random data, as printed where they hold and as repaired where they do not."""

import itertools

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.average_precision import exact_ap, smooth_ap
from genm._math.tiles import build_tiles, mean

BETAS = (5.0, 50.0, 300.0)


def problem(seed, n_rankers=3, n_queries=3, n_documents=40):
    """Return queries without ties, all with the same number of documents, and weights on the simplex."""
    rng = np.random.default_rng(seed)
    starts = np.arange(n_queries + 1) * n_documents
    scores = rng.random((starts[-1], n_rankers))
    relevant = rng.random(starts[-1]) < 0.15
    relevant[starts[:-1]] = True
    counts = np.array([relevant[a:b].sum() for a, b in itertools.pairwise(starts)])
    return starts, scores, relevant, counts, rng.dirichlet(np.ones(n_rankers))


def apart(S, d_j, weights):
    """Return |s_{dj,d}(H)| for all d but d_j."""
    s = S @ weights
    return np.abs(np.delete(s[d_j] - s, d_j))


def bound(beta, delta):
    """Return 1 / (1 + exp(beta delta)) without overflow."""
    return 0.5 - 0.5 * np.tanh(0.5 * beta * delta)


@pytest.mark.parametrize("beta", BETAS)
def test_theorem_1_holds_with_the_fused_difference(beta):
    # Repaired: delta_ij is the least fused difference, and the bound may be met.
    for seed in range(40):
        _, scores, relevant, _, weights = problem(seed, n_queries=1)
        for d_j in np.flatnonzero(relevant):
            s = scores @ weights
            difference = np.delete(s[d_j] - s, d_j)
            error = np.abs(oracles.sigmoid(beta * difference) - (difference < 0))
            assert (error <= bound(beta, np.abs(difference).min()) + 1e-15).all()


def test_theorem_1_is_false_as_printed():
    # Two rankers that disagree: both differences are 0.5 in size, so the printed delta is 0.5, but they cancel.
    difference, weights, beta = np.array([0.5, -0.5]), np.array([0.5, 0.5]), 20.0
    error = abs(oracles.sigmoid(beta * (difference @ weights)) - (difference @ weights < 0))
    assert error == 0.5
    assert error > bound(beta, np.abs(difference).min())


def test_theorem_1_as_printed_fails_often():
    # delta read as the least difference over documents and rankers; one document pair per draw.
    rng = np.random.default_rng(0)
    failures, draws = 0, 2000
    for _ in range(draws):
        difference, weights = rng.normal(size=4), rng.dirichlet(np.ones(4))
        fused = difference @ weights
        error = abs(oracles.sigmoid(10.0 * fused) - (fused < 0))
        failures += error >= bound(10.0, np.abs(difference).min())
    assert 0.1 < failures / draws < 0.5


@pytest.mark.parametrize("beta", BETAS)
def test_the_position_function_is_bounded(beta):
    # Eq. (6), with the repaired delta.
    for seed in range(20):
        _, scores, relevant, _, weights = problem(seed, n_queries=1)
        for d_j in np.flatnonzero(relevant):
            smooth, _, _ = oracles.smooth_rank(scores, d_j, weights, beta)
            limit = (len(scores) - 1) * bound(beta, apart(scores, d_j, weights).min())
            assert abs(smooth - oracles.rank_as_printed(scores, d_j, weights)) <= limit + 1e-12


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), beta=st.sampled_from(BETAS))
def test_theorem_2_bounds_p2_against_p1(seed, beta):
    starts, scores, relevant, counts, weights = problem(seed)
    tiles = build_tiles(starts, scores, relevant, counts)
    error = abs(mean(tiles, smooth_ap(tiles, weights, beta).value) - mean(tiles, exact_ap(tiles, weights)))
    delta = min(
        apart(scores[a:b], d_j, weights).min()
        for a, b in itertools.pairwise(starts)
        for d_j in np.flatnonzero(relevant[a:b])
    )
    L, D = len(counts), starts[1]
    assert error <= (D - 1) * (L + counts.sum()) / (2 * L) * bound(beta, delta) + 1e-12


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 100_000), beta=st.sampled_from(BETAS), length=st.floats(0.2, 5.0))
def test_theorem_3_bounds_p3_against_p4(seed, beta, length):
    starts, scores, relevant, counts, weights = problem(seed)
    tiles = build_tiles(starts, scores, relevant, counts)
    free = weights * length
    normed = free / free.sum()
    error = abs(mean(tiles, smooth_ap(tiles, normed, beta).value) - mean(tiles, smooth_ap(tiles, free, beta).value))
    epsilon = 0.0
    for a, b in itertools.pairwise(starts):
        for d_j in np.flatnonzero(relevant[a:b]):
            rank = oracles.rank_as_printed(scores[a:b], d_j, weights)
            parts = [abs(oracles.smooth_rank(scores[a:b], d_j, w, beta)[0] - rank) for w in (normed, free)]
            epsilon = max(epsilon, sum(parts))
    assert error <= epsilon * (len(counts) + counts.sum()) / (2 * len(counts)) + 1e-12


def test_p4_sees_only_the_product_of_beta_and_weights():
    starts, scores, relevant, counts, weights = problem(3)
    tiles = build_tiles(starts, scores, relevant, counts)
    np.testing.assert_allclose(
        smooth_ap(tiles, 4.0 * weights, 25.0).value, smooth_ap(tiles, weights, 100.0).value, rtol=1e-12
    )


def test_weights_scaled_together_rank_the_same():
    # The remark after Theorem 2: (3.5, 1.5) ranks as (0.7, 0.3) does.
    starts, scores, relevant, counts, _ = problem(5, n_rankers=2)
    tiles = build_tiles(starts, scores, relevant, counts)
    np.testing.assert_array_equal(exact_ap(tiles, np.array([3.5, 1.5])), exact_ap(tiles, np.array([0.7, 0.3])))


def test_numbers_of_the_papers_examples():
    # After Eq. (6): printed "< 0.006". After Theorem 2: printed "< 0.1". Both are a little above.
    assert 999 / (1 + np.exp(12)) == pytest.approx(0.00614, abs=5e-6)
    assert 9999 * (200 + 500) / (2 * 200 * (1 + np.exp(12))) == pytest.approx(0.1075, abs=5e-5)


def test_table_1_in_both_readings():
    # Documents 2 and 3 are relevant. The printed "MAP" is the mean of P@1..P@3, not average precision.
    scores = np.array([[0.35, 0.2], [0.4, 0.1], [0.25, 0.7]])
    relevant = np.array([False, True, True])
    tiles = build_tiles(np.array([0, 3]), scores, relevant, np.array([2]))
    columns = {"1": [1.0, 0.0], "2": [0.0, 1.0], "ensemble 1": [1.0, 1.0], "ensemble 2": [0.7, 0.3]}
    printed = {"1": 0.72, "2": 0.72, "ensemble 1": 0.72, "ensemble 2": 0.89}
    true = {"1": 5 / 6, "2": 5 / 6, "ensemble 1": 5 / 6, "ensemble 2": 1.0}
    for name, weights in columns.items():
        hits = relevant[np.argsort(-(scores @ weights), kind="stable")]
        precisions = np.cumsum(hits) / np.arange(1, 4)
        assert precisions.mean() == pytest.approx(printed[name], abs=0.005)  # half of the last printed digit
        assert exact_ap(tiles, np.array(weights))[0] == pytest.approx(true[name])
    # Ensemble 1's printed column is the plain sum of the rankers, not half of it.
    np.testing.assert_allclose(scores.sum(axis=1), [0.55, 0.5, 0.95])


def test_equation_1_gives_tied_documents_too_much():
    # Three tied relevant documents: every rank is 1, so "average precision" is (1 + 2 + 3) / 3 = 2.
    scores, relevant = np.full((3, 1), 0.5), np.ones(3, bool)
    ranks = [oracles.rank_as_printed(scores, d, np.ones(1)) for d in range(3)]
    assert sum(j / rank for j, rank in enumerate(ranks, start=1)) / 3 == 2.0
    tiles = build_tiles(np.array([0, 3]), scores, relevant, np.array([3]))
    assert exact_ap(tiles, np.ones(1))[0] == 1.0
