"""Selections of the queries say what they would say if everything were done for them alone."""

import numpy as np
import pytest
from problems import made_up

from genm._math.simplex_optimizers import quasi_newton
from genm.evaluate import parse_measure
from genm.learn.objectives import Problem
from genm.learn.scorer import Scorer
from genm.learn.selections import Nearby, Simple

INSIDE = np.array([0, 2, 3, 7, 8, 11, 12])


@pytest.mark.parametrize("measure", ["AP", "nDCG@5"])
def test_simple_weights_of_a_selection_are_those_of_its_queries_alone(measure):
    aligned = made_up(1, quality=(0.5, 0.4, 0.6), n_queries=14)
    problem = Problem(aligned)
    scorer = Scorer(aligned, problem, parse_measure(measure), 1)
    some, own = Simple.of(scorer, 3).select(INSIDE), Simple.of(scorer.select(INSIDE), 3)
    np.testing.assert_array_equal(some.values, own.values)
    wanted = [scorer.select(INSIDE).mean(one) for one in own.weights]
    assert some.means() == pytest.approx(wanted, rel=1e-12)
    assert some.targets["single"].tolist() == own.targets["single"].tolist()
    assert own.targets["uniform"].tolist() == [1 / 3] * 3


def test_climbs_from_nearby_end_as_high_as_those_from_uniform_weights_and_sooner():
    uniform, inside, steps = np.full(3, 1 / 3), np.flatnonzero(np.arange(40) % 5), {"near": 0, "far": 0}
    for seed in range(4):
        problem = Problem(made_up(seed, quality=(0.8, 0.7, 0.6), n_queries=40, n_docs=150), beta=15.0)
        some, end = problem.select(inside), quasi_newton(problem.gradient, uniform, tol=1e-6, max_iter=100)
        near = Nearby(problem, end)(inside, tol=1e-4, max_iter=100)
        far = quasi_newton(some.gradient, uniform, tol=1e-4, max_iter=100)
        assert near.value == pytest.approx(some.value(near.alpha), rel=1e-12)
        assert near.value >= some.value(end.alpha) - 1e-12
        assert near.value == pytest.approx(far.value, abs=5e-4)
        steps["near"] += near.n_iter
        steps["far"] += far.n_iter
    assert 2 * steps["near"] <= steps["far"]
