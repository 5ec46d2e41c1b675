"""One dataset through fit, report, explain, sliders and export: the same quantity is the same number everywhere."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.align import align_runs
from genm.cli.console import Format
from genm.cli.fit import _show
from genm.evaluate import evaluate_aligned
from genm.evidence import evidence_path, load_evidence
from genm.explain import Figure, explain_model, sentences, verdict_of
from genm.export import export_model
from genm.ids import Ids
from genm.model import load_model
from genm.records import Qrels, ranked_run
from genm.report import build_report, compute_evidence, render_report, report_model
from genm.report.payload import unpack
from genm.training import engine_snippet, train


def data(seed: int = 3, n_queries: int = 300, n_docs: int = 60):
    """Two rankers that help, and a near copy of the first; each returns some documents only."""
    rng = np.random.default_rng(seed)
    queries, docs = Ids.of(f"q{i}" for i in range(n_queries)), Ids.of(f"d{i:03}" for i in range(n_docs))
    relevant = [np.sort(rng.choice(n_docs, 5, replace=False)) for _ in range(n_queries)]
    seen = [[np.sort(rng.choice(n_docs, 40, replace=False)) for _ in relevant] for _ in range(2)]
    scores = [
        [
            quality * np.isin(own, wanted) + rng.normal(0, 0.5, 40)
            for own, wanted in zip(lists, relevant, strict=True)
        ]
        for quality, lists in zip((1.2, 1.0), seen, strict=True)
    ]
    seen.append(seen[0])
    scores.append([own + rng.normal(0, 0.005, 40) for own in scores[0]])
    starts = np.arange(0, 40 * n_queries + 1, 40)
    runs = {
        name: ranked_run(
            name, queries, docs, starts, np.concatenate(lists).astype(np.int32), np.concatenate(own).astype(float)
        )
        for name, lists, own in zip(("bm25", "dense", "twin"), seen, scores, strict=True)
    }
    starts = np.arange(0, 5 * n_queries + 1, 5)
    qrels = Qrels(
        queries, docs, starts, np.concatenate(relevant).astype(np.int32), np.ones(5 * n_queries, np.int32)
    )
    return runs, qrels


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """What fit, report and explain say of one model file; the folds are neither five nor those of seed 0."""
    runs, qrels = data()
    weights = {f"q{i}": float(1 + i % 2) for i in range(300)}
    path = tmp_path_factory.mktemp("truth") / "model.json"
    trained = train(runs, qrels, query_weights=weights, target="opensearch", folds=4, seed=2)
    trained.save(path)
    model = load_model(path)
    aligned = align_runs(runs, qrels, normalize=model.normalizers, depth=model.depths, query_weights=weights)
    report = report_model(model, aligned, path=path, snippet=engine_snippet(model))
    return trained, model, aligned, report, explain_model(model, aligned)


def test_weights_are_the_same_in_every_place(places):
    trained, model, _, report, _ = places
    weights = dict(zip(model.rankers, model.weights, strict=True))
    assert trained.weights == weights == dict(zip(report["rankers"], report["weights"], strict=True))
    assert weights == {row["ranker"]: row["weight"] for row in report["spread"]["rows"]}
    exported = export_model(model, "opensearch")
    assert exported.text == report["snippet"]["text"]
    combination = _find(exported.document, "weights")
    assert combination == list(model.weights)


def _find(document, name):
    """Return the value of a key, however deep it stands."""
    if isinstance(document, dict):
        return document[name] if name in document else _find(list(document.values()), name)
    found = [_find(one, name) for one in document] if isinstance(document, list) else []
    return next((one for one in found if one is not None), None)


def test_figures_of_fit_are_those_of_the_report_and_of_the_model_file(places):
    trained, model, _, report, found = places
    head, evidence = report["headline"], trained.evidence
    assert head["held_out"] == evidence.held_out.mean == model.training["held_out"] == found.fit_held_out
    assert head["train"] == evidence.mean(evidence.train) == model.training["train"]
    by_rival = {gain["over"]: gain for gain in (*head["gains"], *head["over_rankers"])}
    for rival, gain in evidence.gains.items():
        assert (by_rival[rival]["difference"], by_rival[rival]["low"], by_rival[rival]["high"]) == (
            gain.difference,
            gain.low,
            gain.high,
        )
    assert report["made"]["evidence"] == "read"


def test_evidence_that_is_computed_anew_is_that_of_fit(places):
    """Without the file beside the model, the report deals the same folds and finds the same figures."""
    trained, model, aligned, report, _ = places
    again = build_report(aligned, model, compute_evidence(aligned, model))
    assert again["headline"]["held_out"] == report["headline"]["held_out"] == trained.evidence.held_out.mean
    assert again["headline"]["gains"] == report["headline"]["gains"]
    assert again["spread"]["rows"] == report["spread"]["rows"]
    assert again["verdicts"] == report["verdicts"]


def test_losses_and_verdicts_are_those_of_explain(places):
    trained, _, _, report, found = places
    worth, losses = found.worth, trained.losses()
    assert (worth.folds, losses.folds, report["verdicts"]["folds"]) == (4, 4, 4)
    assert worth.value == losses.value == report["verdicts"]["held_out"]
    for part, own, row in zip(worth.rankers, losses.rankers, report["verdicts"]["rows"], strict=True):
        assert part.name == own.name == row["ranker"]
        assert part.loss == own.loss
        assert (row["loss"], row["low"], row["high"]) == (own.loss.value, own.loss.joint_low, own.loss.joint_high)
        assert row["verdict"] == losses.verdicts[own.name] == verdict_of(part.loss, worth.margin)


def test_the_file_beside_the_model_keeps_the_losses(places, tmp_path):
    trained, model, aligned, report, _ = places
    trained.save(tmp_path / "model.json")
    kept = load_evidence(evidence_path(tmp_path / "model.json"))
    for part, own in zip(kept.without, trained.losses().left_out, strict=True):
        assert (part == own).all()
    assert build_report(aligned, model, kept)["verdicts"] == report["verdicts"]
    assert build_report(aligned, model, replace(kept, without=None))["verdicts"] == report["verdicts"]


def test_what_is_lost_in_proportion_is_what_explain_prints(places):
    *_, report, found = places
    assert [row["gain"] for row in report["spread"]["rows"]] == found.gains.mean_gain().tolist()


def test_sliders_that_did_not_move_show_the_printed_figure(places):
    _, model, aligned, report, _ = places
    sliders = report["sliders"]
    positions = unpack(sliders["queries"])
    ap = evaluate_aligned(aligned, np.array(model.weights), ["AP"]).values[:, 0]
    assert sliders["ap"] == ap[positions].tolist()
    assert sliders["map_all"] == report["headline"]["train"]
    if len(positions) == len(aligned.queries):
        assert sliders["map"] == sliders["map_all"]


def test_the_landscape_at_the_learned_weights_is_the_training_value(places):
    *_, report, _ = places
    assert [line["value"] for line in report["lines"]] == [report["headline"]["train"]] * 3
    assert report["ternary"]["chosen_value"] == report["headline"]["train"]
    assert [said["part"] for said in report["sampling"]] == ["details"]  # all queries are in the landscape


def test_a_ranker_to_leave_out_is_named_in_every_place(places):
    trained, _, _, report, found = places
    losses = trained.losses()
    assert set(losses.leave_out) == {"twin"}
    assert losses.advice() == report["verdicts"]["advice"]
    assert set(losses.advice()) <= set(sentences(found.worth))
    page, text = render_report(report, "html"), render_report(report, "md")
    for name in losses.leave_out:
        assert any(said.startswith(f"Leave out {name}: ") for said in losses.advice())
        assert f"Leave out {name}: " in page
        assert f"Leave out {name}: " in text
    assert page.count("leave out: not needed") == text.count("leave out: not needed") == 1


def test_genm_fit_prints_the_same_advice(places, capsys):
    trained, *_ = places
    losses = trained.losses()
    _show(Format.table, trained, losses)
    printed = capsys.readouterr().out
    assert all(sentence in printed for sentence in losses.advice())
    _show(Format.json, trained, losses)
    told = json.loads(capsys.readouterr().out)
    assert (told["verdicts"], told["advice"]) == (losses.verdicts, losses.advice())
    assert told["weights"] == trained.weights
    assert told["cv"]["mean"] == trained.evidence.held_out.mean


@settings(max_examples=60, deadline=None)
@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 0.1))
def test_one_rule_covers_every_loss(middle, half, margin):
    """Exactly one verdict, by which side of 0 and of the margin the joint interval lies on."""
    loss = Figure(middle, middle, middle, middle - half, middle + half)
    verdict = verdict_of(loss, margin)
    assert (verdict == "keep") == (loss.joint_low > 0)
    assert (verdict == "hurts") == (loss.joint_high < 0)
    if verdict == "undecided":
        assert loss.joint_low <= 0 <= loss.joint_high
        assert loss.joint_high > margin
