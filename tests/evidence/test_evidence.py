"""The proof beside the weights."""

import numpy as np
import pytest
from problems import made_up

from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, fingerprint, gather_evidence, single_values, with_evidence
from genm.learn import BoostFuser, NewtonFuser

AP = parse_measure("AP")


def test_rows_and_gains_are_what_they_say() -> None:
    aligned = made_up(0, n_queries=24)
    fuser, found = gather_evidence(aligned, BoostFuser, AP, folds=4, seed=2)
    assert set(found.gains) == {BEST_SINGLE, UNIFORM, RRF}
    assert found.gains[UNIFORM].difference == pytest.approx(
        found.held_out.mean - found.mean(found.rules[UNIFORM]), abs=1e-12
    )
    assert found.best_name == "r0"
    assert found.mean(found.train) >= found.held_out.mean - 0.05
    low, high = found.interval
    assert low < found.held_out.mean < high
    assert fuser.weights_.shape == (3,)


def test_the_best_single_ranker_is_chosen_without_the_fold() -> None:
    aligned = made_up(1, quality=(0.5, 0.5), n_queries=12)
    _, found = gather_evidence(aligned, BoostFuser, AP, folds=3, seed=0)
    table = np.array([found.singles["r0"], found.singles["r1"]])
    for f in range(3):
        inside = found.held_out.fold != f
        best = int(np.argmax(table[:, inside].mean(axis=1)))
        assert found.best_single[~inside].tolist() == table[best, ~inside].tolist()


def test_a_gain_is_called_significant_only_when_it_is() -> None:
    clear = gather_evidence(made_up(2, quality=(0.8, 0.8, 0.8), n_queries=40), NewtonFuser, AP)[1]
    assert clear.is_significant
    assert "beat the best single ranker" in clear.verdict()
    none = gather_evidence(made_up(3, quality=(1.5, 0.0, 0.0), n_queries=12), BoostFuser, AP, folds=3)[1]
    assert not none.is_significant
    assert "gain over the best single ranker" in none.verdict()
    assert none.verdict().startswith("No ")


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
