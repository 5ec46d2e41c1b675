"""The whole report."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import QuickExact, made_up
from report.conftest import fit

from genm.errors import InputError, ModelError
from genm.evidence import fingerprint, load_evidence, resampling, save_evidence
from genm.learn import METHODS, ExactFuser, Fuser, NewtonFuser, make_fuser
from genm.model import Model
from genm.normalizers import Normalizer
from genm.records import Note
from genm.report import build, build_report, compute_evidence, render_report
from genm.report.build import (
    _about_queries,
    _about_rankers,
    coverage_of,
    draw_samples,
    normalizer_text,
    say_samples,
)
from genm.report.payload import unpack
from genm.report.render import FORMATS


@pytest.fixture
def few_refits(monkeypatch) -> None:
    """As few refits as show a spread, from starts that cost little; never for a fixture that others use too."""
    monkeypatch.setattr(resampling, "N_RESAMPLES", resampling.FEWEST_REFITS)
    monkeypatch.setattr(resampling, "N_WHOLE", resampling.FEWEST_REFITS)
    monkeypatch.setattr(ExactFuser, "_starts", QuickExact._starts)


def test_it_is_plain_json_with_the_evidences_figures(built) -> None:
    report = json.loads(json.dumps(built.report, allow_nan=False))
    evidence = built.kept.evidence
    assert report["headline"]["held_out"] == evidence.held_out.mean
    first, *others = (gain["over"] for gain in report["headline"]["gains"])
    assert first == report["headline"]["strongest"] == evidence.strongest
    assert {first, *others} == {"best single ranker", "RRF (k=60)", "uniform weights"}
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
    assert table["rival"] == evidence.strongest
    rival = np.array(table["values"][table["rival"]])
    assert table["delta"] == pytest.approx(evidence.held_out.per_query - rival, abs=2e-6)
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
    assert spread["note"] == "No. The weights shown are those of the 4 folds of the cross-validation."


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


@pytest.mark.usefixtures("few_refits")
def test_the_softer_beta_of_many_rankers_is_not_taken_for_one_that_was_given(monkeypatch) -> None:
    made = []

    def make(method: str, **options: object) -> Fuser:
        made.append(options)
        return make_fuser(method, **options)

    monkeypatch.setattr("genm.report.build.make_fuser", make)
    for n_rankers in (8, 9):
        aligned = made_up(5, quality=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)[:n_rankers], n_queries=10)
        model, _ = fit(aligned)
        assert compute_evidence(aligned, model).weights == model.weights
    assert made
    assert all("beta" not in options for options in made)


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
    with pytest.raises(ModelError, match="belongs to other queries"):
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
        assert ("There is only one ranker" in report["headline"]["verdict"]) == (n_lines == 0)


@pytest.fixture(scope="module")
def aligned():
    return made_up(0, n_queries=60, n_docs=30)


def draw(aligned, seed=0, n_details=200):
    delta = np.random.default_rng(7).normal(size=60)
    return draw_samples(aligned, delta, n_details=n_details, seed=seed, level=1), delta


def test_small_data_are_shown_whole(aligned) -> None:
    samples, _ = draw(aligned)
    for positions in samples:
        assert positions.tolist() == list(range(60))
    assert say_samples(samples, 60, 0) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 70))
def test_drawing_is_seeded_and_within_bounds(aligned, seed, n_details) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "SLIDER_SCORES", 30 * 3 * 10)
        patch.setattr(build, "TABLE_SCORES", 30 * 3 * 20 + 5)
        patch.setattr(build, "TABLE_ROWS", 50)
        samples, delta = draw(aligned, seed, n_details)
        again, _ = draw(aligned, seed, n_details)
    assert [s.tolist() for s in samples] == [s.tolist() for s in again]
    assert (len(samples.sliders), len(samples.table), len(samples.rows)) == (10, 20, 50)
    assert len(samples.details) == min(n_details, 60)
    assert set(samples.sliders) <= set(samples.table)
    assert set(samples.details[: min(n_details, 50)]) <= set(samples.rows) or n_details > 50
    for positions in samples:
        assert (np.diff(positions) > 0).all()
    if n_details >= 4:
        assert int(np.argmax(delta)) in samples.details
        assert int(np.argmin(delta)) in samples.details


def test_every_part_that_is_cut_says_so(aligned, monkeypatch) -> None:
    monkeypatch.setattr(build, "SLIDER_SCORES", 900)
    samples, _ = draw(aligned, 3, 8)
    said = {one["part"]: one for one in say_samples(samples, 60, 3)}
    assert set(said) == {"sliders", "details"}
    assert said["sliders"]["sentence"] == (
        "The sliders rank the documents of 10 of 60 queries, drawn at random (seed 3)."
    )
    assert (said["details"]["n_shown"], said["details"]["n_all"]) == (8, 60)


def test_a_report_of_sampled_queries_still_points_at_the_right_ones(monkeypatch) -> None:
    aligned = made_up(1, n_queries=40, n_docs=30)
    model, kept = fit(aligned)
    monkeypatch.setattr(build, "TABLE_ROWS", 12)
    monkeypatch.setattr(build, "SLIDER_SCORES", 30 * 3 * 5)
    monkeypatch.setattr(build, "TABLE_SCORES", 30 * 3 * 7)
    monkeypatch.setattr(build, "LANDSCAPE_WORK", 30 * 13 * 6)
    report = build_report(aligned, model, kept, n_details=8)
    table = report["queries"]
    assert (len(table["query_ids"]), table["n_all"]) == (12, 40)
    place = {name: q for q, name in enumerate(aligned.queries)}
    for i, detail in enumerate(report["details"]):
        assert table["detail"][detail["query"]] == i
        q = place[table["query_ids"][detail["query"]]]
        known = {aligned.docs[int(d)] for d in aligned.doc[aligned.starts[q] : aligned.starts[q + 1]]}
        assert {doc["id"] for doc in detail["docs"]} <= known
    queries = unpack(report["sliders"]["queries"])
    for at, ap in zip(queries, report["sliders"]["ap"], strict=True):
        if at >= 0:
            assert table["values"]["learned weights (training)"][at] == pytest.approx(ap, abs=1e-6)
    assert {said["part"] for said in report["sampling"]} == {
        "measures", "curves", "coverage", "lines", "ternary", "sliders", "queries", "details",
    }  # fmt: skip
    assert report["measures"]["n_queries"] == 7
    assert report["measures"]["main_n_queries"] == 40


def codes(warnings) -> list[str]:
    return [warning["code"] for warning in warnings]


def test_coverage_is_the_alignments(built) -> None:
    coverage, found = built.report["coverage"], built.aligned.coverage()
    for k, row in enumerate(coverage["rankers"]):
        assert row["missing"] == found.missing[k]
        assert row["ties"] == found.ties[k]
        assert row["unjudged"] == pytest.approx(1 - found.judged[1, k])
    assert {"unjudged", "missing", "ties"} <= set(codes(coverage["warnings"]))
    assert 0.3 < coverage["unjudged_fused"] < 1.0


def test_notes_of_reading_are_passed_on(built) -> None:
    note = Note("x", 1, "run <b>: a line was repaired.")
    warnings = coverage_of(built.aligned, built.model, n_queries=30, notes=[note])["warnings"]
    assert warnings[-1] == {"code": "note", "level": "info", "text": note.text}


def row(name="a", low=0.0, high=1.0, missing=0.0, ties=0.0) -> dict:
    return {"ranker": name, "low": low, "high": high, "missing": missing, "ties": ties}


@pytest.mark.parametrize(
    ("rows", "kinds", "found"),
    [
        ([row(), row("b")], ["none", "none"], []),
        ([row(), row("b", missing=0.6)], ["minmax"] * 2, [("missing", "warning")]),
        ([row(ties=0.2), row("b")], ["minmax"] * 2, [("ties", "warning")]),
        ([row(), row("b", high=30.0)], ["none"] * 2, [("scales", "warning")]),
        ([row(), row("b", high=30.0)], ["minmax"] * 2, [("scales", "info")]),
        ([row(high=0.0), row("b", high=30.0)], ["none"] * 2, []),
    ],
)
def test_rankers(rows, kinds, found) -> None:
    assert [(w["code"], w["level"]) for w in _about_rankers(rows, kinds)] == found


def test_queries() -> None:
    assert codes(_about_queries(100, 0, 0, 100)) == []
    assert codes(_about_queries(12, 1, 2, 12)) == ["few-queries", "empty-queries", "no-relevant"]


def test_normalisers_are_named_with_what_is_special_about_them() -> None:
    assert normalizer_text(Normalizer()) == "minmax"
    assert normalizer_text(replace(Normalizer("reciprocal"), k=10.0)) == "reciprocal (k=10.0)"
