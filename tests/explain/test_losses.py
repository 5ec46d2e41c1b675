"""What is lost without each ranker equals the losses of `measure_worth`, and what cannot be computed is said."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from problems import made_up
from scipy import stats

from genm.evaluate import parse_measure
from genm.evidence import LeftOut
from genm.evidence.intervals import fold_learning_variance, intervals_with_learning, loss_learning_variance
from genm.explain import measure_losses, measure_worth, model_losses, why_no_losses
from genm.explain.losses import VERDICT_TEXTS, Figure, RankerLoss, losses_of
from genm.learn import BoostFuser, EqualFuser, NewtonFuser
from genm.learn.objectives import with_level

AP = parse_measure("AP")


@pytest.fixture(scope="module")
def aligned():
    return made_up(5, quality=(0.8, 0.8, 0.0), n_queries=24)


@pytest.mark.parametrize("method", ["auto", "enm"])
def test_figures_are_those_of_the_worth_to_the_last_digit(aligned, method):
    worth = measure_worth(aligned, method=method, folds=3, seed=4)
    losses = measure_losses(aligned, method=method, measure=AP, folds=3, seed=4)
    assert losses.value == worth.value
    assert [(part.loss, part.p) for part in losses.rankers] == [(part.loss, part.p) for part in worth.rankers]


def test_intervals_allow_for_learning_and_hold_the_loss(aligned):
    """Each is Student's with the variance of learning of both systems; the joint one is wider."""
    found = measure_losses(aligned, measure=AP, folds=3)
    held_out = found.left_out.held_out
    every = loss_learning_variance(*found.left_out, np.ones(24), 3)
    assert (every > 0.0).all()
    for k, part in enumerate(found.rankers):
        differences = held_out[0] - held_out[k + 1]
        half = stats.t.ppf(0.975, 23) * np.sqrt(differences.var(ddof=1) / 24 + every[k])
        assert (part.loss.low, part.loss.high) == pytest.approx((part.loss.value - half, part.loss.value + half))
        assert part.loss.joint_low < part.loss.low < part.loss.value < part.loss.high < part.loss.joint_high


def test_with_two_rankers_the_loss_is_the_gain_over_the_other():
    """One alone learns nothing, so that the variance of learning is that of the gain."""
    two = made_up(5, quality=(0.8, 0.6), n_queries=24)
    found = measure_losses(two, measure=AP, folds=3)
    training, held_out = found.left_out.training, found.left_out.held_out
    assert (training[1:] == held_out[1:]).all()
    learning = fold_learning_variance(training[0].mean(), held_out[0].mean(), 2, 3)
    lows, highs = intervals_with_learning((held_out[0] - held_out[1:]).T, 0.95, np.full(2, learning))
    for part, low, high in zip(found.rankers, lows, highs, strict=True):
        assert (part.loss.low, part.loss.high) == pytest.approx((low, high))


def test_a_ranker_that_changes_nothing_costs_exactly_nothing(aligned):
    found = measure_losses(aligned, method="enm", measure=AP, folds=2)
    same = found.left_out._replace(held_out=np.tile(found.left_out.held_out[0], (4, 1)))
    [*parts] = losses_of(aligned, same, 2, 0.95)
    assert {(p.loss.low, p.loss.high, p.loss.joint_high) for p in parts} == {(0.0, 0.0, 0.0)}


def test_figures_do_not_depend_on_the_order_of_rankers_or_queries(aligned):
    left_out = measure_losses(aligned, method="enm", measure=AP, folds=2).left_out
    order, rng = np.array([2, 0, 1]), np.random.default_rng(0)
    rows, queries = np.concatenate(([0], order + 1)), rng.permutation(len(aligned.queries))
    swapped = LeftOut(left_out.held_out[rows][:, queries], left_out.training[rows][:, queries])
    plain, moved = (losses_of(aligned, one, 2, 0.95) for one in (left_out, swapped))
    for k, part in zip(order.tolist(), moved, strict=True):
        assert astuple(part.loss) == pytest.approx(astuple(plain[k].loss), abs=1e-12)


def losses_with(aligned, *spans):
    found = measure_losses(aligned, method="enm", measure=AP, folds=2)
    parts = [
        RankerLoss(name, Figure((low + high) / 2, low, high, low, high), 0.5)
        for name, (low, high) in zip("xyz", spans, strict=False)
    ]
    return replace(found, rankers=tuple(parts))


def test_advice_is_about_the_rankers_to_leave_out(aligned):
    mixed = losses_with(aligned, (0.01, 0.03), (-0.03, -0.01), (-0.001, 0.002))
    assert mixed.verdicts == {"x": "keep", "y": "hurts", "z": "not needed"}
    assert mixed.leave_out == ("y", "z")
    first, second = mixed.advice()
    assert first.startswith("Leave out y: the others do better without it, by 0.0200 AP")
    assert second.startswith("Leave out z: that costs nothing (+0.0005 AP")
    assert losses_with(aligned, (0.01, 0.03), (-0.1, 0.1)).advice() == []
    assert set(mixed.verdicts.values()) <= set(VERDICT_TEXTS)


def test_two_that_are_not_needed_may_stand_in_for_each_other(aligned):
    twins = losses_with(aligned, (-0.001, 0.002), (-0.001, 0.002))
    assert twins.advice()[-1] == (
        "That holds for each of x and y by itself, not for all together: they may stand in for each other."
    )


def test_reasons_not_to_compute(aligned, monkeypatch):
    model = BoostFuser().fit(aligned).to_model()
    assert why_no_losses(model, aligned) == ""
    assert model_losses(model, aligned, folds=2).measure == with_level(AP, 1)
    one = made_up(5, quality=(0.8,), n_queries=4)
    assert "There is one ranker" in why_no_losses(BoostFuser().fit(one).to_model(), one)
    equal = replace(EqualFuser().fit(aligned).to_model(), method="equal")
    assert "cannot be learned again" in why_no_losses(equal, aligned)
    other = replace(NewtonFuser().fit(aligned).to_model(), measure="nDCG@10")
    assert "does not maximise nDCG@10" in why_no_losses(other, aligned)
    unjudged = replace(aligned, relevance=0 * aligned.relevance)
    assert "Fewer than 2 queries" in why_no_losses(model, unjudged)
    monkeypatch.setattr("genm.explain.losses.MOST_SCORES_FROM_SCRATCH", 10)
    assert "would take minutes; genm explain does it" in why_no_losses(model, aligned)
