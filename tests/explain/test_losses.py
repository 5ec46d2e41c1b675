"""What is lost without each ranker equals the losses of `measure_worth`, and what cannot be computed is said."""

from dataclasses import replace

import pytest
from problems import made_up

from genm.evaluate import parse_measure
from genm.explain import measure_losses, measure_worth, model_losses, why_no_losses
from genm.explain.losses import VERDICT_TEXTS, Figure, RankerLoss
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
