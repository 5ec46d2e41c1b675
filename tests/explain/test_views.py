"""A view of some rankers is what these rankers alone would show."""

import numpy as np
import pytest
from problems import made_up

from genm.align import select_rankers
from genm.evaluate import parse_measure
from genm.explain.views import Views, members_of
from genm.learn.objectives import Problem, beta_of

AP = parse_measure("AP")


def test_bits_are_members():
    assert members_of(0b1101) == [0, 2, 3]
    assert members_of(0) == []


@pytest.mark.parametrize("subset", [0b0011, 0b0110, 0b1011, 0b1111])
@pytest.mark.parametrize("lists", ["complete", "short"])
def test_a_view_measures_like_the_rankers_alone(subset, lists, short_lists):
    """Shared, narrowed or a store of its own: value, slope and sharpness are those of the subset by itself."""
    aligned = made_up(3, quality=(1.0, 0.7, 0.5, 0.2), n_docs=150) if lists == "complete" else short_lists
    subset &= (1 << len(aligned.rankers)) - 1
    own = select_rankers(aligned, [aligned.rankers[k] for k in members_of(subset)])
    there, view = Problem(own), Views(aligned, AP).of(subset)
    weights = np.random.default_rng(subset).dirichlet(np.ones(len(own.rankers)))
    assert view.problem.beta == pytest.approx(beta_of(own), rel=1e-9)
    assert (view.per_query(weights) == there.exact_per_query(weights)).all()
    value, slope = view.gradient(weights)
    expected, expected_slope = there.gradient(weights)
    assert value == pytest.approx(expected, abs=1e-4)
    assert slope == pytest.approx(expected_slope, abs=2e-3)  # of sigmoids that are nearly 0 or 1
    some = np.array([4, 1, 7])
    assert (view.select(some).per_query(weights) == there.exact_per_query(weights)[some]).all()


def test_constant_scores_have_some_sharpness():
    aligned = made_up(0, quality=(1.0, 0.5), n_queries=3)
    aligned.scores[:] = 0.1
    assert Views(aligned, AP).of(0b11).problem.beta > 0.0


def test_what_is_far_down_in_every_list_does_not_steer_a_climb(monkeypatch):
    """The slope is nearly the same, and what is measured is exactly the same."""
    aligned = made_up(1, quality=(1.0, 0.8, 0.6), n_queries=10, n_docs=600)
    whole = Views(aligned, AP).of(0b111)
    monkeypatch.setattr("genm.explain.views.DEEP", 200)
    near, weights = Views(aligned, AP).of(0b111), np.array([0.5, 0.3, 0.2])
    assert near.problem.tiles.sizes.sum() < 0.9 * whole.problem.tiles.sizes.sum()
    assert (near.per_query(weights) == whole.per_query(weights)).all()
    (value, slope), (expected, expected_slope) = near.gradient(weights), whole.gradient(weights)
    assert value == pytest.approx(expected, abs=0.002)
    assert slope - slope.mean() == pytest.approx(expected_slope - expected_slope.mean(), abs=0.02)
