"""Intervals of held-out gains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm._math.significance import student_interval
from genm.evidence.intervals import (
    GainIntervals,
    best_by_fold,
    counted,
    fold_learning_variance,
    intervals_with_learning,
    learning_variance,
)

N = 40


def intervals(train_above: float, *, n_rankers: int = 3, seed: int = 0) -> GainIntervals:
    held_out = np.random.default_rng(seed).uniform(0.2, 0.8, N)
    options = {"measure": "AP", "confidence": 0.95, "seed": 0}
    return GainIntervals(
        held_out, held_out + train_above, np.arange(N) % 5, np.ones(N), n_rankers=n_rankers, **options
    )


def test_by_hand_with_two_folds() -> None:
    # a = 3/2; 2 + 2 * 9/4 - 2 = 9/2, over (3/2)^2 is 2
    assert learning_variance(0.1, 2, 2) == pytest.approx(2 * 0.1**2)
    assert learning_variance(0.1, 5, 2) == pytest.approx(2 * 0.1**2 / 4)
    assert learning_variance(0.1, 2, 5) == pytest.approx(1.0926 * 0.1**2, rel=1e-4)


def test_the_constants_are_those_of_a_quadratic_measure() -> None:
    """Simulate the model behind the formula: a measure quadratic in the weights, with Gaussian gradients."""
    rng = np.random.default_rng(0)
    k, n_fold, n_free, draws = 5, 4, 3, 20_000
    y = rng.normal(size=(draws, k, n_free)) / np.sqrt(n_fold)  # mean gradient of each fold; the curvature is 1
    every = y.mean(axis=1)
    others = (k * every[:, None] - y) / (k - 1)
    held_out = ((y * others).sum(axis=2) - 0.5 * (others**2).sum(axis=2)).mean(axis=1)
    train, truth = 0.5 * (every**2).sum(axis=1), -0.5 * (every**2).sum(axis=1)
    within = n_free / (n_fold * k) / (n_fold * (k - 1))  # what the spread of the queries shows already
    missing = (held_out - truth).var() - within
    formula = learning_variance(float((train - held_out).mean()), n_free + 1, k)
    assert formula == pytest.approx(missing, rel=0.05)
    by_fold = 0.5 * (others**2).sum(axis=2).mean(axis=1)  # each fold's weights on the queries they come from
    from_folds = fold_learning_variance(float(by_fold.mean()), float(held_out.mean()), n_free + 1, k)
    assert from_folds == pytest.approx(formula, rel=0.01)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_the_loss_without_a_ranker_varies_by_at_most_the_sum(shared: float) -> None:
    """Simulate two learned systems whose gradients are correlated; one of them has a direction less."""
    rng = np.random.default_rng(1)
    k, n_fold, n_free, draws = 5, 4, 3, 20_000
    y = rng.normal(size=(draws, k, n_free)) / np.sqrt(n_fold)
    own = rng.normal(size=(draws, k, n_free - 1)) / np.sqrt(n_fold)
    without = shared * y[..., 1:] + np.sqrt(1.0 - shared**2) * own
    errors, formula = [], 0.0
    for gradients in (y, without):
        every = gradients.mean(axis=1)
        others = (k * every[:, None] - gradients) / (k - 1)
        held_out = ((gradients * others).sum(axis=2) - 0.5 * (others**2).sum(axis=2)).mean(axis=1)
        training = 0.5 * (others**2).sum(axis=2).mean(axis=1)
        errors.append(held_out + 0.5 * (every**2).sum(axis=1))
        n_rankers = gradients.shape[2] + 1
        formula += fold_learning_variance(float(training.mean()), float(held_out.mean()), n_rankers, k)
    common = 1.0 + 2.0 * (n_free - 1) * (1.0 - shared**2)  # directions that do not cancel
    within = common / (n_fold * k) / (n_fold * (k - 1))
    missing = float((errors[0] - errors[1]).var() - within)
    assert missing == pytest.approx(formula * common / (2 * n_free - 1), rel=0.1)
    assert missing < 1.05 * formula


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=30),
    st.floats(0.0, 0.1),
    st.floats(0.5, 0.99),
    st.floats(-0.5, 0.5),
)
def test_intervals_with_learning(values: list[float], learning: float, confidence: float, shift: float) -> None:
    """They hold the mean, are never narrower than Student's, and turn and move with the differences."""
    column = np.round(np.array(values), 6)[:, None]
    low, high = intervals_with_learning(column, confidence, np.array([learning]))
    student = student_interval(column, confidence)
    slack = 1e-9
    assert low[0] - slack <= column.mean() <= high[0] + slack
    assert low[0] <= student[0][0] + slack
    assert high[0] >= student[1][0] - slack
    turned = intervals_with_learning(-column, confidence, np.array([learning]))
    assert (turned[0][0], turned[1][0]) == pytest.approx((-high[0], -low[0]), abs=slack)
    moved = intervals_with_learning(column + shift, confidence, np.array([learning]))
    if column.any() and (column + shift).any():
        assert (moved[0][0], moved[1][0]) == pytest.approx((low[0] + shift, high[0] + shift), abs=slack)
    wider = intervals_with_learning(column, confidence, np.array([learning + 0.01]))
    assert wider[0][0] <= low[0]
    assert wider[1][0] >= high[0]


@given(optimism=st.floats(-1.0, 1.0), n_rankers=st.integers(1, 9), n_folds=st.integers(2, 20))
def test_learning_never_narrows(optimism: float, n_rankers: int, n_folds: int) -> None:
    found = learning_variance(optimism, n_rankers, n_folds)
    assert found >= 0.0
    assert found == 0.0 or (optimism > 0.0 and n_rankers > 1)


def test_more_optimism_is_a_wider_interval_around_the_same_gain() -> None:
    rival = np.full(N, 0.45)
    narrow, wide = (intervals(above).gain_over("rival", rival) for above in (0.0, 0.05))
    assert wide.low < narrow.low < narrow.difference == wide.difference < narrow.high < wide.high
    assert narrow.p_values == wide.p_values


def test_what_is_equal_on_every_query_needs_no_interval() -> None:
    found = intervals(0.05)
    same = found.gain_over("rival", found._learned)
    assert (same.low, same.high, same.outcome) == (0.0, 0.0, "equal")


def test_a_rival_chosen_as_the_best_may_be_worse_than_it_looks() -> None:
    rng = np.random.default_rng(3)
    systems = rng.uniform(0.2, 0.8, (6, N))
    best = systems[int(np.argmax(systems.mean(axis=1)))]
    given, chosen = (intervals(0.02).gain_over("rival", best, chosen_from=s) for s in (None, systems))
    assert chosen.low == given.low
    assert chosen.high > given.high


def test_each_fold_gets_what_the_others_would_choose() -> None:
    systems = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.9, 0.9]])
    fold = np.array([0, 0, 1, 1])
    assert best_by_fold(systems, fold, np.ones(4)).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert best_by_fold(systems, np.array([0, 1, 0, 1]), np.ones(4)).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_weighted_values_have_the_weighted_mean() -> None:
    values, weights = np.array([0.1, 0.5, 0.9]), np.array([1.0, 2.0, 5.0])
    assert counted(values, weights).mean() == pytest.approx(np.average(values, weights=weights))
