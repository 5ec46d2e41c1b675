"""Every system under every measure."""

import numpy as np
import pytest
from report.conftest import fit, gappy

from genm.learn.auto import AutoFuser
from genm.report.systems import measure_systems, ranker_ids


def means(report) -> dict[str, dict[str, float]]:
    table = report["measures"]
    return {s["id"]: dict(zip(table["measures"], s["values"], strict=True)) for s in table["systems"]}


def test_the_first_column_is_the_evidences(built) -> None:
    evidence, found = built.kept.evidence, means(built.report)
    assert found["learned weights"]["AP"] == pytest.approx(evidence.held_out.mean)
    assert found["best single ranker"]["AP"] == pytest.approx(evidence.mean(evidence.best_single))
    for name, values in (evidence.singles | evidence.rules).items():
        assert found[name]["AP"] == pytest.approx(evidence.mean(values))


def test_measuring_again_gives_the_evidences_values(built) -> None:
    """The report's own measure, measured anew query by query, fold by fold, is what the folds found."""
    evidence = built.kept.evidence
    again = measure_systems(built.aligned, built.model, evidence, np.arange(30))
    assert again.values["learned weights"][:, 0].tolist() == evidence.held_out.per_query.tolist()
    assert again.values["best single ranker"][:, 0].tolist() == evidence.best_single.tolist()
    assert again.values["learned weights (training)"][:, 0].tolist() == evidence.train.tolist()
    assert again.values["RRF (k=60)"][:, 0].tolist() == evidence.rules["RRF (k=60)"].tolist()


def test_folds_that_chose_their_own_normalisers_are_measured_under_them() -> None:
    aligned = gappy(1, n_queries=16)
    model, kept = fit(aligned, make=lambda: AutoFuser(normalize="auto", repeats=1, folds=2))
    again = measure_systems(aligned, model, kept.evidence, np.arange(16))
    assert again.values["learned weights"][:, 0].tolist() == kept.evidence.held_out.per_query.tolist()


def test_only_training_figures_are_marked_as_such(built) -> None:
    honest = {s["id"]: s["held_out"] for s in built.report["measures"]["systems"]}
    assert [name for name, held_out in honest.items() if not held_out] == ["learned weights (training)"]


def test_names_of_rankers_never_hide_the_fusion() -> None:
    assert ranker_ids(["bm25", "learned weights"]) == ["bm25", "learned weights (ranker)"]


def test_curves_fall(built) -> None:
    for curve in built.report["curves"]:
        assert len(curve["precision"]) == 11
        assert (np.diff(curve["precision"]) <= 1e-9).all()
    assert "best single ranker" not in {curve["system"] for curve in built.report["curves"]}
