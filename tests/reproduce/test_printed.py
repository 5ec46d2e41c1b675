"""gEnM.BAT to the letter, and repaired piece by piece."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import as_printed
from problems import made_up

from genm._math.average_precision import smooth_ap
from genm._math.simplex_optimizers import as_distribution
from genm._math.tiles import build_tiles, mean
from genm.errors import InputError
from genm.learn.objectives import Problem
from genm.reproduce.printed import REPAIRS, PrintedFuser, windowed

BETA, START = 30.0, np.array([0.5, 0.3, 0.2])

WEIGHTS = np.array([0.5, 0.3, 0.2])


def oracle(aligned, *, corrected=False):
    return as_printed(
        aligned.starts,
        aligned.scores,
        aligned.relevance >= 1,
        aligned.n_relevant(),
        START,
        BETA,
        corrected=corrected,
    )


def fitted(aligned, n_repairs, **options):
    fuser = PrintedFuser(n_repairs=n_repairs, starts=START[None, :], **options)
    return fuser.fit_problem(Problem(aligned, beta=BETA))


@pytest.mark.parametrize(("n_repairs", "corrected", "sign"), [(0, False, 1), (2, True, 1), (3, True, -1)])
def test_one_step_by_hand(n_repairs, corrected, sign):
    """Algorithm 1: alpha plus H^-1 times the gradient, minus after the repair; one step, and it is kept."""
    aligned = made_up(0)
    found = oracle(aligned, corrected=corrected)
    moved = START + sign * np.linalg.solve(found.hessian, found.gradient)
    fuser = fitted(aligned, n_repairs, max_iter=1)
    np.testing.assert_allclose(fuser.weights_, as_distribution(moved), rtol=1e-6)


def test_the_last_iterate_is_kept_until_that_is_repaired():
    """On some problem the step fails: the printed algorithm ends below its start, the repaired one does not."""
    lower = 0
    for seed in range(6):
        aligned = made_up(seed)
        problem = Problem(aligned, beta=BETA)
        last, best = fitted(aligned, 3), fitted(aligned, 4)
        lower += last.objective_ < problem.value(START)
        assert best.objective_ >= problem.value(START)
        assert best.objective_ >= last.objective_
    assert lower > 0


def test_the_last_repair_uses_every_pair():
    aligned = made_up(1)
    problem = Problem(aligned, beta=BETA)
    _, gradient, hessian = problem.derivatives(START)
    moved = START - np.linalg.solve(hessian, gradient)
    fuser = fitted(aligned, 5, max_iter=1)
    rises = problem.value(moved) > problem.value(START)
    np.testing.assert_allclose(fuser.weights_, as_distribution(moved if rises else START), rtol=1e-6)


def test_every_repair_gives_a_distribution():
    for n in range(len(REPAIRS)):
        weights = fitted(made_up(2), n).weights_
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)


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


def made_printed(seed=0, n=60, n_rankers=3):
    rng = np.random.default_rng(seed)
    starts = np.array([0, n, 2 * n])
    scores = rng.random((2 * n, n_rankers))
    relevant = rng.random(2 * n) < 0.1
    n_relevant = np.array([relevant[:n].sum(), relevant[n:].sum()])
    return starts, scores, relevant, n_relevant


def test_the_objective_is_that_of_p4():
    table = made_printed()
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
    table = made_printed(1)
    found = as_printed(*table, WEIGHTS, 1.5, corrected=True)
    tiles = build_tiles(*table)
    exact = smooth_ap(tiles, WEIGHTS, 1.5, order=2)
    np.testing.assert_allclose(found.gradient, mean(tiles, exact.gradient), rtol=1e-10)
    np.testing.assert_allclose(found.hessian, exact.hessian, rtol=1e-10)


def test_the_literal_gradient_points_backwards():
    backwards = 0
    for seed in range(20):
        table = made_printed(seed)
        tiles = build_tiles(*table)
        exact = mean(tiles, smooth_ap(tiles, WEIGHTS, 40.0, order=1).gradient)
        assert as_printed(*table, WEIGHTS, 40.0, corrected=True).gradient @ exact > 0
        backwards += bool(as_printed(*table, WEIGHTS, 40.0).gradient @ exact < 0)
    assert backwards >= 18


def test_a_query_without_relevant_documents_counts_as_zero():
    starts, scores, relevant, n_relevant = made_printed(2)
    relevant[60:] = False
    n_relevant[1] = 0
    found = as_printed(starts, scores, relevant, n_relevant, WEIGHTS, 40.0)
    alone = as_printed(starts[:2], scores[:60], relevant[:60], n_relevant[:1], WEIGHTS, 40.0)
    np.testing.assert_allclose(found.value, alone.value / 2)
    np.testing.assert_allclose(found.gradient, alone.gradient / 2)
