"""The plateau is what it says it is: inside, nothing more is lost; beyond its ends, more is."""

from itertools import pairwise

import numpy as np
import pytest
from problems import made_up

from genm._math.exact.line_search import value_at
from genm._math.exact.rank_gains import Problem
from genm.evaluate import Measure
from genm.learn.plateau import centre_of_plateau, plateau_around
from genm.learn.tasks import tasks_of

WEIGHTS = np.array([0.5, 0.3, 0.2])


def with_weight(weights: np.ndarray, k: int, t: float) -> np.ndarray:
    others = weights.copy()
    others[k] = 0.0
    moved = (1.0 - t) * others / others.sum()
    moved[k] = t
    return moved


@pytest.fixture(scope="module")
def problem() -> Problem:
    return tasks_of(made_up(3), Measure("AP"))


@pytest.mark.parametrize("loss", [0.002, 0.03])
def test_ends_are_where_more_is_lost(problem: Problem, loss: float) -> None:
    floor = value_at(problem, WEIGHTS) - loss
    found = plateau_around(problem, WEIGHTS, floor, loss)
    assert found.loss == loss
    assert (found.low <= WEIGHTS).all()
    assert (found.high >= WEIGHTS).all()
    for k in range(3):
        for t in np.linspace(found.low[k], found.high[k], 52)[1:-1]:
            assert value_at(problem, with_weight(WEIGHTS, k, t)) >= floor - 1e-12
        for end, beyond in ((found.low[k], -1e-9), (found.high[k], 1e-9)):
            if 0.0 < end < 1.0:
                assert value_at(problem, with_weight(WEIGHTS, k, end + beyond)) < floor


def test_more_loss_is_more_room(problem: Problem) -> None:
    value = value_at(problem, WEIGHTS)
    widths = [plateau_around(problem, WEIGHTS, value - loss, loss).width for loss in (0.0, 0.01, 0.1, 1.0)]
    for narrow, wide in pairwise(widths):
        assert (narrow <= wide).all()
    assert (widths[0] < widths[1]).all()
    assert widths[-1].tolist() == [1.0, 1.0, 1.0]


def test_the_centre_loses_no_more_and_has_more_room(problem: Problem) -> None:
    floor = value_at(problem, WEIGHTS) - 0.02
    centre = centre_of_plateau(problem, WEIGHTS, floor, lambda weights: value_at(problem, weights))
    assert value_at(problem, centre) >= floor - 1e-12
    assert centre.sum() == pytest.approx(1.0, abs=1e-12)

    def room(weights: np.ndarray) -> float:
        found = plateau_around(problem, weights, floor, 0.02)
        return float(np.minimum(weights - found.low, found.high - weights).min())

    assert room(centre) > room(WEIGHTS)


def test_two_rankers_have_one_middle() -> None:
    problem = tasks_of(made_up(4, quality=(1.0, 0.8)), Measure("AP"))
    weights = np.array([0.6, 0.4])
    floor = value_at(problem, weights) - 0.01
    found = plateau_around(problem, weights, floor, 0.01)
    np.testing.assert_allclose(found.low, 1.0 - found.high[::-1], atol=1e-12)
    centre = centre_of_plateau(problem, weights, floor, lambda w: value_at(problem, w))
    np.testing.assert_allclose(centre, 0.5 * (found.low + found.high), atol=1e-12)


def test_weights_that_owe_their_value_to_a_tie_have_no_room() -> None:
    """One query, two documents that tie under equal weights; the relevant one comes first by its row alone."""
    aligned = made_up(0, quality=(1.0, 1.0), n_queries=1, n_docs=2, n_relevant=1)
    aligned.relevance[:] = [1, 0]
    aligned.scores[:] = [[0.25, 0.0], [0.0, 0.25]]
    problem = tasks_of(aligned, Measure("AP"))
    even = np.array([0.5, 0.5])
    assert value_at(problem, even) == 1.0
    aligned.scores[:] = [[0.25, 0.25], [0.5, 0.25]]  # the other one wins wherever the first ranker counts
    tied = tasks_of(aligned, Measure("AP"))
    unit = np.array([0.0, 1.0])
    assert value_at(tied, unit) == 1.0
    found = plateau_around(tied, unit, 1.0, 0.0)
    assert found.width.tolist() == [0.0, 0.0]


def test_one_ranker_has_nowhere_to_go() -> None:
    problem = tasks_of(made_up(5, quality=(1.0,)), Measure("AP"))
    found = plateau_around(problem, np.ones(1), 0.0, 0.5)
    assert (found.low.tolist(), found.high.tolist()) == ([1.0], [1.0])
