"""Estimates from incomplete judgments: exact when all is judged, wide when little is, and the bias of pools."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm.align import UNJUDGED
from genm.errors import InputError
from genm.evaluate import evaluate_aligned
from genm.judge import estimate_difference, pool_bias
from genm.judge.estimates import difference_of
from genm.judge.pooling import next_rows
from genm.judge.systems import target_of

WHOLE = made_up(2, quality=(1.0, 0.3, 0.2), n_queries=30)
GRADES = np.where(WHOLE.relevance == UNJUDGED, 0, WHOLE.relevance).astype(np.int32)
NOTHING = replace(WHOLE, relevance=np.full(len(GRADES), UNJUDGED, np.int32))


def test_complete_judgments_give_the_difference_itself() -> None:
    found = estimate_difference(replace(WHOLE, relevance=GRADES), compare=("r0", "r1"))
    values = [evaluate_aligned(WHOLE, np.eye(3)[k], "AP").values[:, 0] for k in (0, 1)]
    assert found.per_query == pytest.approx(values[0] - values[1])
    assert found.difference == pytest.approx(found.if_nonrelevant)
    assert found.unjudged_error == 0.0
    assert found.judged_share == 1.0
    assert found.is_decided
    assert found.verdict().startswith("r0 is better than r1 (+")


def test_no_judgments_decide_nothing() -> None:
    found = estimate_difference(NOTHING, compare=("r0", "r1"))
    assert not found.is_decided
    assert found.low < 0.0 < found.high
    assert (found.n_judged, found.n_informative) == (0, 0)
    assert "Judge more" in found.verdict()
    assert found.to_dict()["decided"] is False


def test_judgments_shrink_the_error_and_lead_to_the_truth() -> None:
    target = target_of(NOTHING, ("r0", "r1"))
    truth = difference_of(replace(WHOLE, relevance=GRADES), target).difference
    now, errors, found = replace(NOTHING, relevance=NOTHING.relevance.copy()), [], None
    for _ in range(8):
        rows = next_rows(now, target, "mtc", 100)
        now.relevance[rows] = GRADES[rows]
        found = difference_of(now, target)
        errors.append(found.unjudged_error)
    assert errors[-1] < errors[0]
    assert found is not None
    assert found.difference == pytest.approx(truth, abs=0.03)
    assert abs(found.difference - truth) <= 1.96 * found.unjudged_error
    assert found.n_judged == 800


def test_pools_of_a_depth_overstate_fusion_and_it_is_said() -> None:
    target = target_of(NOTHING, ("equal", "r1"))
    depth_of = np.min([np.where(ranks > 0, ranks, 10**9) for ranks in target.ranks], axis=0)
    pooled = replace(WHOLE, relevance=np.where(depth_of <= 20, GRADES, UNJUDGED).astype(np.int32))
    found = difference_of(pooled, target)
    assert found.judged_depth == 20
    assert found.overstated == pytest.approx(0.018)
    assert "lists judged down to about rank 20 and not below overstate equal by some 0.018" in found.verdict()
    assert found.to_dict()["overstated"] == found.overstated
    near = replace(found, difference=0.015, low=0.01, high=0.02)
    assert not near.is_decided
    assert replace(near, overstated=0.0).is_decided
    swapped = difference_of(pooled, target_of(NOTHING, ("r1", "equal")))
    assert swapped.overstated == pytest.approx(-0.018)
    assert difference_of(pooled, target_of(NOTHING, ("r0", "r1"))).overstated == 0.0
    assert difference_of(replace(WHOLE, relevance=GRADES), target).overstated == 0.0, "all is judged"


def test_close_systems_are_called_close() -> None:
    aligned = replace(WHOLE, relevance=GRADES)
    weights = {"r0": 1.0, "r1": 1.0, "r2": 1.0}
    assert "will hardly tell them apart" in estimate_difference(aligned, compare=("equal", weights)).verdict()


def test_the_bias_of_a_pool_shows_in_the_ranker_that_was_left_out() -> None:
    found = pool_bias(replace(WHOLE, relevance=GRADES))
    assert [one.ranker for one in found] == ["r0", "r1", "r2"]
    assert all(one.judged_share == 1.0 for one in found)
    assert all(one.value_if_not_pooled == pytest.approx(one.value) for one in found)  # all return all documents
    cut = replace(WHOLE, relevance=GRADES, retrieved=WHOLE.retrieved & (np.arange(3) != 1) | (WHOLE.scores > 0.8))
    own = {one.ranker: one for one in pool_bias(cut)}
    assert own["r0"].value_if_not_pooled <= own["r0"].value


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(InputError, match="carry no judgments"):
        pool_bias(made_up(0, labelled=False))
    with pytest.raises(InputError, match="expected two systems"):
        difference_of(WHOLE, target_of(WHOLE))
    with pytest.raises(InputError, match="confidence"):
        estimate_difference(WHOLE, compare=("r0", "r1"), confidence=1.0)
