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
    loss_learning_variance,
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


@pytest.mark.parametrize("shared", [0.0, 0.5, 0.9])
def test_the_variance_of_a_loss_is_that_of_two_systems_whose_gradients_are_correlated(shared: float) -> None:
    """Simulate both systems with every query's gradient; the one without a ranker has a direction less."""
    rng = np.random.default_rng(1)
    k, n, n_free, draws = 5, 40, 4, 3_000
    fold = np.arange(n) % k
    others = (fold != np.arange(k)[:, None]) / (n - n // k)  # the mean over the queries of all folds but one
    errors, formula = [], []
    for _ in range(draws):
        gradients = rng.normal(size=(n, n_free))
        own = shared * gradients[:, 1:] + np.sqrt(1.0 - shared**2) * rng.normal(size=(n, n_free - 1))
        rows, error = [], 0.0
        for sign, system in ((1.0, gradients), (-1.0, own)):
            learned = others @ system  # the curvature is 1
            by_fold = learned @ system.T - 0.5 * (learned**2).sum(axis=1)[:, None]
            held_out = by_fold[fold, np.arange(n)]
            rows.append((held_out, (by_fold.sum(axis=0) - held_out) / (k - 1)))
            error += sign * (held_out.mean() + 0.5 * float((system.mean(axis=0) ** 2).sum()))
        (held, trained), (held_without, trained_without) = rows
        errors.append(error)
        formula.append(
            loss_learning_variance(
                np.array([held, *[held_without] * (n_free + 1)]),
                np.array([trained, *[trained_without] * (n_free + 1)]),
                np.ones(n),
                k,
            )[0]
        )
    free = 1.0 + 2.0 * (n_free - 1) * (1.0 - shared**2)  # directions whose errors do not cancel
    within = free / n / (n * (k - 1) / k)  # what the spread of the queries shows already
    assert np.mean(formula) == pytest.approx(np.var(errors) - within, rel=0.35)


def test_with_two_rankers_the_variance_of_a_loss_is_that_of_the_gain() -> None:
    rng = np.random.default_rng(0)
    held_out = rng.uniform(0.2, 0.6, (3, N))
    training = held_out + np.array([[0.02], [0.0], [0.0]])
    gain = fold_learning_variance(float(training[0].mean()), float(held_out[0].mean()), 2, 5)
    assert loss_learning_variance(held_out, training, np.ones(N), 5) == pytest.approx([gain, gain])


@given(seed=st.integers(0, 10**6), n_rankers=st.integers(2, 6), n_folds=st.integers(2, 10))
def test_the_variance_of_a_loss_lies_between_none_and_the_sum(seed: int, n_rankers: int, n_folds: int) -> None:
    """It does not depend on the order of the rankers or queries, nor on the unit of the queries' weights."""
    rng = np.random.default_rng(seed)
    held_out = rng.uniform(0.0, 1.0, (n_rankers + 1, 12))
    training = held_out + rng.normal(0.02, 0.05, held_out.shape)
    weights = rng.uniform(0.5, 2.0, 12)
    found = loss_learning_variance(held_out, training, weights, n_folds)
    sizes = [n_rankers] + [n_rankers - 1] * n_rankers
    means = [np.average(table, axis=1, weights=weights).tolist() for table in (training, held_out)]
    each = [fold_learning_variance(*row, n_folds) for row in zip(*means, sizes, strict=True)]
    assert (found >= -1e-15).all()
    assert (found <= each[0] + np.array(each[1:]) + 1e-12).all()
    queries, rankers = rng.permutation(12), rng.permutation(n_rankers)
    rows = np.ix_(np.concatenate(([0], rankers + 1)), queries)
    moved = loss_learning_variance(held_out[rows], training[rows], 3.0 * weights[queries], n_folds)
    assert moved == pytest.approx(found[rankers], abs=1e-12)


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
