"""The whole report."""

import json
from dataclasses import replace

import numpy as np
import pytest
from problems import QuickExact, made_up
from report.conftest import fit

from genm.errors import InputError, ModelError
from genm.evidence import fingerprint, load_evidence, resampling, save_evidence
from genm.learn import ExactFuser, NewtonFuser
from genm.learn.auto import METHODS, make_fuser
from genm.model import Model
from genm.report import build_report, compute_evidence, render_report
from genm.report.writing import FORMATS


@pytest.fixture
def few_refits(monkeypatch) -> None:
    """As few refits as show a spread, from starts that cost little; never for a fixture that others use too."""
    monkeypatch.setattr(resampling, "N_RESAMPLES", resampling.FEWEST)
    monkeypatch.setattr(resampling, "N_WHOLE", resampling.FEWEST)
    monkeypatch.setattr(ExactFuser, "_starts", QuickExact._starts)


def test_it_is_plain_json_with_the_evidences_figures(built) -> None:
    report = json.loads(json.dumps(built.report, allow_nan=False))
    evidence = built.kept.evidence
    assert report["headline"]["held_out"] == evidence.held_out.mean
    assert [gain["over"] for gain in report["headline"]["gains"]] == [
        "best single ranker",
        "RRF (k=60)",
        "uniform weights",
    ]
    assert report["weights"] == list(built.model.weights)
    assert report["made"]["matches_training"]
    assert report["made"]["fingerprint"] == fingerprint(built.aligned) == built.model.fingerprint
    assert report["sampling"] == []
    assert "held_out" in report["headline"]


def test_gains_are_the_differences_of_the_means_whatever_the_queries_weigh(built) -> None:
    assert len(set(built.aligned.query_weights.tolist())) == 3
    systems = {one["id"]: one["values"][0] for one in built.report["measures"]["systems"]}
    for gain in built.report["headline"]["gains"]:
        assert gain["difference"] == pytest.approx(systems["learned weights"] - systems[gain["over"]], abs=1e-7)
        assert gain["low"] < gain["difference"] < gain["high"]
    low, high = built.report["headline"]["interval"]
    assert low < systems["learned weights"] < high
    last = built.report["learning"]["points"][-1]
    assert last["low"] < last["mean"] < last["high"]


def test_columns_of_queries_are_the_evidences(built) -> None:
    table, evidence = built.report["queries"], built.kept.evidence
    assert table["query_ids"] == list(evidence.query_ids)
    assert table["values"]["learned weights"] == pytest.approx(evidence.held_out.per_query, abs=1e-6)
    assert table["values"]["learned weights (training)"] == pytest.approx(evidence.train, abs=1e-6)
    assert table["delta"] == pytest.approx(evidence.held_out.per_query - evidence.best_single, abs=2e-6)
    assert table["n_relevant"] == [5] * 30
    judged = [np.diff(built.aligned.unretrieved_starts)[q] for q in range(30)]
    for q in range(30):
        rows = slice(built.aligned.starts[q], built.aligned.starts[q + 1])
        assert table["n_judged"][q] == judged[q] + (built.aligned.relevance[rows] >= 0).sum()
    assert table["detail"] == list(range(30))


def test_the_spread_holds_every_refit(built) -> None:
    spread = built.report["spread"]
    assert spread["n_samples"] == len(spread["rows"][0]["samples"]) == 20
    for k, row in enumerate(spread["rows"]):
        assert row["samples"] == pytest.approx(built.kept.refits.weights[:, k], abs=1e-8)
        assert row["quantiles"] == sorted(row["quantiles"])
        low, high = row["plateau"]
        assert low <= row["weight"] <= high
    total = np.array([row["samples"] for row in spread["rows"]]).sum(axis=0)
    assert np.allclose(total, 1.0, atol=1e-7)


def test_without_refits_the_folds_stand_in(built) -> None:
    nothing = built.kept.refits._replace(weights=np.zeros((0, 3)), before=np.zeros((0, 3)), kind="none", note="No.")
    spread = build_report(built.aligned, built.model, replace(built.kept, refits=nothing))["spread"]
    assert (spread["kind"], spread["n_samples"]) == ("folds", 4)
    assert spread["note"] == "No. What is shown are the weights of the 4 folds of the cross-validation."


@pytest.mark.usefixtures("few_refits")
def test_evidence_computed_for_the_report_is_what_fit_keeps() -> None:
    aligned = made_up(5, n_queries=6, n_docs=20)
    model, kept = fit(aligned, make=NewtonFuser)
    computed = compute_evidence(aligned, model)
    assert computed.weights == kept.weights == model.weights
    assert computed.fingerprint == kept.fingerprint


@pytest.mark.usefixtures("few_refits")
def test_a_beta_that_was_given_is_given_again() -> None:
    aligned = made_up(5, n_queries=15)
    model, _ = fit(aligned, make=lambda: NewtonFuser(beta=3.0))
    assert compute_evidence(aligned, model).weights == model.weights


def test_other_data_and_other_weights_are_said(built) -> None:
    moved = build_report(built.aligned, replace(built.model, weights=(0.5, 0.25, 0.25)), built.kept)
    assert moved["coverage"]["warnings"][0]["code"] == "other-weights"
    assert (
        moved["queries"]["values"]["learned weights (training)"]
        != built.report["queries"]["values"]["learned weights (training)"]
    )
    other = build_report(built.aligned, replace(built.model, fingerprint="0" * 64), built.kept)
    assert other["coverage"]["warnings"][0]["code"] == "other-data"
    assert not other["made"]["matches_training"]


def test_refusals(built) -> None:
    with pytest.raises(InputError, match="needs judgments"):
        build_report(made_up(0, labelled=False), built.model, built.kept)
    with pytest.raises(ModelError, match="of other queries"):
        build_report(built.aligned.select(np.arange(5)), built.model, built.kept)


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize("method", [*METHODS, "equal", "mine", "bat-ndcg", "single"])
def test_every_models_report_is_made_with_and_without_its_evidence(method, tmp_path) -> None:
    n_rankers = 1 if method == "single" else 2
    aligned = made_up(5, n_queries=6, n_docs=10, n_relevant=2, quality=(0.8, 0.6)[:n_rankers])
    measure = "nDCG@10" if method == "bat-ndcg" else "AP"
    model = Model(
        rankers=aligned.rankers,
        weights=(0.5, 0.5) if n_rankers == 2 else (1.0,),
        normalizers=aligned.normalizers,
        depths=aligned.depths,
        method={"bat-ndcg": "bat", "single": "auto"}.get(method, method),
        measure=measure,
    )
    kept = compute_evidence(aligned, model)
    save_evidence(kept, tmp_path / "evidence.json")
    read = load_evidence(tmp_path / "evidence.json")
    reports = [build_report(aligned, model, one) for one in (kept, read)]
    assert reports[0] == reports[1]
    for form in FORMATS:
        assert render_report(reports[0], form)
    codes = [warning["code"] for warning in reports[0]["coverage"]["warnings"]]
    learns = method not in ("equal", "mine", "single")
    assert reports[0]["spread"]["kind"] == ("bootstrap" if learns else "none")
    assert (reports[0]["learning"] is not None) == learns
    assert ("not-held-out" in codes) == (method == "mine")
    assert (kept.weights != model.weights) == ("other-weights" in codes)
    assert reports[0]["measure"] == measure


def test_every_method_of_the_library_can_be_learned_anew() -> None:
    with pytest.raises(InputError, match=f"expected one of {', '.join(METHODS)}"):
        make_fuser("nothing")


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize("measure", ["nDCG@10", "P@5"])
def test_other_measures(measure) -> None:
    from genm.learn.auto import AutoFuser

    aligned = made_up(2, n_queries=6, n_docs=20)
    model, kept = fit(aligned, measure, lambda: AutoFuser(measure=measure, repeats=1))
    report = build_report(aligned, model, kept)
    assert report["measure"] == report["measures"]["measures"][0] == measure
    assert len(set(report["measures"]["measures"])) == len(report["measures"]["measures"])
    assert report["sliders"]["measure"] == "AP"
    assert report["lines"][0]["exact"]


@pytest.mark.usefixtures("few_refits")
def test_two_rankers_have_no_map_and_one_has_no_lines() -> None:
    for quality, n_lines in (((1.0, 0.5), 2), ((1.0,), 0)):
        aligned = made_up(1, quality=quality, n_queries=10)
        model, kept = fit(aligned)
        report = build_report(aligned, model, kept)
        assert report["ternary"] is None
        assert len(report["lines"]) == n_lines
        assert (report["sliders"] is None) == (n_lines == 0)
        assert ("There is one ranker" in report["headline"]["verdict"]) == (n_lines == 0)
