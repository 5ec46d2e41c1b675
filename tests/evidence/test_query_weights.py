import numpy as np
import pytest
from problems import made_up, two_kinds

from genm.evaluate import Contrast
from genm.evidence import GLOBAL, gate_evidence, gather_evidence, group_evidence
from genm.evidence.query_weights import step_down
from genm.learn import AutoFuser


@pytest.fixture(scope="module")
def kinds():
    aligned, groups, texts = two_kinds(n_queries=80)
    fuser, evidence = gather_evidence(aligned, AutoFuser, "AP", folds=3)
    return aligned, groups, texts, fuser, evidence


def test_groups_that_differ_are_worth_it(kinds):
    aligned, groups, _, fuser, evidence = kinds
    fit, found = group_evidence(aligned, groups, fuser.weights_, evidence)
    assert set(fit.groups.weights) == {"id", "question"}
    assert found.is_worth_it
    assert found.n_used == found.n_folds == 3
    assert found.verdict().startswith("Worth it: weights by group beat the global weights, +")
    assert found.overall.difference == pytest.approx(found.held_out.mean() - evidence.held_out.mean)
    assert {name: one.outcome for name, one in found.gains.items()} == {"id": "better", "question": "better"}
    assert (found.global_values == evidence.held_out.per_query).all()


def test_groups_by_chance_are_not_worth_it():
    aligned = made_up(3, n_queries=60, n_docs=15, n_relevant=3)
    fuser, evidence = gather_evidence(aligned, AutoFuser, "AP", folds=3)
    names = ["a" if q % 2 else "b" for q in range(60)]
    _, found = group_evidence(aligned, names, fuser.weights_, evidence)
    assert not found.is_worth_it
    assert found.verdict().startswith("Not worth it")


def test_a_gate_is_compared_with_the_global_weights(kinds):
    pytest.importorskip("pandas")
    aligned, _, texts, fuser, evidence = kinds
    fit, found = gate_evidence(aligned, fuser.weights_, evidence, queries=texts)
    assert fit.gate is not None
    assert found.kind == "gate"
    assert found.gains == {}
    assert "per-query gate" in found.verdict()
    assert list(found.to_pandas().columns) == ["group", GLOBAL, "gate"]


def contrast(difference, half):
    outcome = "better" if difference > half else "perhaps better"
    return Contrast("x", "AP", 0.0, 0.0, difference, difference - half, difference + half, 1, 1, 0, {}, {}, outcome)


def test_the_levels_step_down_as_holm_has_them():
    """Half widths grow with the level asked for: of three groups the clearest is asked at 0.05 / 3."""
    asked = []

    def find(at, confidence):
        asked.append((int(at[0]), round(1.0 - confidence, 4)))
        return contrast(float(at[0]), 1.0 + 0.05 / (1.0 - confidence) / 10.0)

    places = {"weak": np.array([1]), "strong": np.array([9]), "middle": np.array([2])}
    found = step_down(places, find, 0.95)
    assert asked[3:] == [(9, round(0.05 / 3, 4)), (2, 0.025), (1, 0.05)]
    assert {name: one.outcome for name, one in found.items()} == {
        "weak": "perhaps better",
        "strong": "better",
        "middle": "better",
    }
