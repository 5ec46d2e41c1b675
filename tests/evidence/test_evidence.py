"""The proof beside the weights."""

import numpy as np
import pytest
from problems import made_up

from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence import (
    BEST_SINGLE,
    CURRENT,
    RRF,
    UNIFORM,
    fingerprint,
    gather_evidence,
    ranker_ids,
    single_values,
    with_evidence,
)
from genm.evidence.crossval import measure_queries
from genm.learn import BoostFuser, NewtonFuser

AP = parse_measure("AP")


def test_rows_and_gains_are_what_they_say() -> None:
    aligned = made_up(0, n_queries=24)
    fuser, found = gather_evidence(aligned, BoostFuser, AP, folds=4, seed=2)
    assert set(found.gains) == {BEST_SINGLE, UNIFORM, RRF, "r0", "r1", "r2"}
    assert found.gains["r1"].baseline_mean == pytest.approx(found.mean(found.singles["r1"]))
    assert found.gains[UNIFORM].difference == pytest.approx(
        found.held_out.mean - found.mean(found.rules[UNIFORM]), abs=1e-12
    )
    assert found.best_name == "r0"
    assert found.mean(found.train) >= found.held_out.mean - 0.05
    low, high = found.interval
    assert low < found.held_out.mean < high
    assert fuser.weights_.shape == (3,)


def test_the_best_single_ranker_is_the_one_with_the_highest_mean() -> None:
    aligned = made_up(1, quality=(0.5, 0.5), n_queries=12)
    _, found = gather_evidence(aligned, BoostFuser, AP, folds=3, seed=0)
    means = {name: found.mean(values) for name, values in found.singles.items()}
    assert found.best_name == max(means, key=means.__getitem__)
    assert found.best_single.tolist() == found.singles[found.best_name].tolist()
    assert found.gains[BEST_SINGLE] == found.gains[found.best_name]


def test_the_strongest_rival_is_the_one_with_the_highest_mean() -> None:
    _, found = gather_evidence(made_up(2, n_queries=20), NewtonFuser, AP, folds=4)
    means = {rival: found.gains[rival].baseline_mean for rival in found.rivals}
    assert means[found.strongest] == max(means.values())
    assert found.verdict().split("(")[0].endswith(f"{found.label(found.strongest).split(' (')[0]} ")


def test_a_verdict_goes_by_the_interval_alone() -> None:
    clear = gather_evidence(made_up(2, quality=(0.8, 0.8, 0.8), n_queries=40), NewtonFuser, AP)[1]
    assert clear.outcome(BEST_SINGLE) == "better"
    assert clear.gains[BEST_SINGLE].low > 0.0
    assert f"beat {clear.best_name} (the best single ranker)" in clear.verdict()
    none = gather_evidence(made_up(3, quality=(1.5, 0.0, 0.0), n_queries=12), BoostFuser, AP, folds=3)[1]
    assert not none.is_significant
    assert none.outcome(BEST_SINGLE) != "better"
    for evidence in (clear, none):
        for gain in evidence.gains.values():
            assert (gain.outcome in ("better", "worse")) == (gain.low > 0.0 or gain.high < 0.0)
            assert gain.low <= gain.difference <= gain.high


def test_the_current_weights_or_values_are_a_rival() -> None:
    aligned = made_up(2, n_queries=20)
    found = gather_evidence(aligned, NewtonFuser, AP, current={"r0": 2.0, "r2": 2.0})[1]
    wanted = measure_queries(aligned, np.array([0.5, 0.0, 0.5]), AP)
    assert found.rules[CURRENT].tolist() == wanted.tolist()
    assert CURRENT in found.rivals
    perfect = gather_evidence(aligned, NewtonFuser, AP, current=np.ones(20))[1]
    assert (perfect.strongest, perfect.outcome(CURRENT)) == (CURRENT, "worse")
    assert "lose to the strongest rival, the current ranking (" in perfect.verdict()
    assert perfect.better_rules[0] == CURRENT


@pytest.mark.parametrize(
    ("current", "message"),
    [
        ({"bm25": 1.0}, "expected weights of r0, r1, r2; found one of 'bm25'"),
        ({"r0": -1.0, "r1": 2.0}, "expected weights from 0 on, at least one of them above 0; found r0=-1, r1=2"),
        ({"r0": 0.0}, "at least one of them above 0; found r0=0"),
        ({"r0": float("nan")}, "found r0=nan"),
    ],
)
def test_current_weights_must_be_weights_of_the_rankers(current, message) -> None:
    with pytest.raises(InputError, match=message):
        gather_evidence(made_up(2, n_queries=8), BoostFuser, AP, folds=2, current=current)


def test_rankers_that_share_a_name_with_a_row_keep_their_own() -> None:
    assert ranker_ids(["bm25", RRF]) == ["bm25", f"{RRF} (ranker)"]


def test_a_single_ranker_is_measured_as_its_own_run() -> None:
    """Documents that only others returned must not pad its list."""
    aligned = made_up(4)
    keep = np.random.default_rng(0).random(len(aligned.doc)) < 0.3
    aligned.retrieved[:, 0] = keep
    values = single_values(aligned, "r0", AP)
    starts = aligned.starts
    for q in range(3):
        rows = np.arange(starts[q], starts[q + 1])[keep[starts[q] : starts[q + 1]]]
        order = rows[np.argsort(-aligned.raw[rows, 0], kind="stable")]
        hits = np.flatnonzero(aligned.relevance[order] >= 1) + 1
        assert values[q] == pytest.approx((np.arange(1, len(hits) + 1) / hits).sum() / 5)


def test_the_model_carries_its_figures() -> None:
    aligned = made_up(0)
    fuser, found = gather_evidence(aligned, BoostFuser, AP, folds=3)
    model = with_evidence(fuser.to_model(), aligned, found)
    assert model.training["held_out"] == found.held_out.mean
    assert model.fingerprint == fingerprint(aligned)
    assert fingerprint(made_up(1)) != model.fingerprint


def test_one_query_is_no_evidence() -> None:
    with pytest.raises(InputError, match="at least 2"):
        gather_evidence(made_up(0, n_queries=1), BoostFuser, AP)
