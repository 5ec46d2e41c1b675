"""`genm.train` does what `genm fit` does: learn, measure, warn, save, report."""

import json
from dataclasses import replace

import numpy as np
import pytest
from problems import QuickExact

from genm.align import align_runs
from genm.errors import InputError
from genm.evidence import CURRENT, gather_evidence, load_evidence
from genm.evidence.crossval import measure_queries
from genm.export import training_rules
from genm.learn import AutoFuser, BoostFuser, CotrainFuser, EqualFuser, ExactFuser
from genm.model import Model, load_model
from genm.normalizers import Normalizer
from genm.records import Note, Provenance, Qrels, Run
from genm.training import LEARNED, check_training, note_test_queries_seen, note_zero_weights, train

N_QUERIES = 12
TABLES = {
    name: {f"q{q}": {f"d{d}": float((7 * d * (q + k)) % 23) + 0.5 for d in range(10)} for q in range(N_QUERIES)}
    for name, k in (("a", 1), ("b", 4))
}
RUNS = {name: Run.from_dict(table, name=name) for name, table in TABLES.items()}
GRADES = {f"q{q}": {f"d{(3 * q) % 10}": 1, f"d{(5 * q + 1) % 10}": 2, "d9": 0} for q in range(N_QUERIES)}
QRELS = Qrels.from_dict(GRADES)
QUICK = {"method": "boost", "folds": 2}


@pytest.fixture(autouse=True)
def few_refits(monkeypatch):
    """Refit a few times only."""
    monkeypatch.setattr("genm.evidence.resampling.N_RESAMPLES", 10)
    monkeypatch.setattr("genm.evidence.resampling.N_WHOLE", 10)


def codes(trained):
    return [note.code for note in trained.notes]


def test_it_learns_and_measures_as_the_parts_do():
    aligned = align_runs(RUNS, QRELS)
    fuser, evidence = gather_evidence(aligned, BoostFuser, "AP", folds=3, seed=5)
    for trained in (
        train(RUNS, QRELS, method="boost", folds=3, seed=5),
        train(list(RUNS.values()), QRELS, method="EnM", folds=3, seed=5),
        train(aligned, method="enm", folds=3, seed=5),
    ):
        assert trained.fuser.weights_.tolist() == fuser.weights_.tolist()
        assert trained.evidence.held_out.per_query.tolist() == evidence.held_out.per_query.tolist()
        assert trained.verdict == evidence.verdict()
        assert trained.weights == dict(zip(("a", "b"), fuser.weights_.tolist(), strict=True))
        assert trained.model.method == "enm"
        assert trained.model.training["held_out"] == evidence.held_out.mean
        assert repr(trained).startswith("<Trained <Model by 'enm' for AP: a ")


def test_what_is_in_use_is_one_more_rival():
    weights = train(RUNS, QRELS, current={"a": 3.0, "b": 1.0}, **QUICK).evidence
    aligned = align_runs(RUNS, QRELS)
    wanted = measure_queries(aligned, np.array([0.75, 0.25]), "AP")
    assert weights.rules[CURRENT].tolist() == wanted.tolist()
    half = Run.from_dict({query: docs for query, docs in TABLES["a"].items() if query in ("q0", "q3")}, name="now")
    run = train(RUNS, QRELS, current=half, **QUICK).evidence
    there = [query in ("q0", "q3") for query in run.query_ids]
    assert run.rules[CURRENT].tolist() == np.where(there, run.singles["a"], 0.0).tolist()
    assert CURRENT in run.gains
    with pytest.raises(InputError, match="a run needs qrels"):
        train(aligned, current=half, **QUICK)
    with pytest.raises(InputError, match="compared on judged queries"):
        train(RUNS, current={"a": 1.0})
    with pytest.raises(InputError, match="found one of 'c'"):
        train(RUNS, QRELS, current={"c": 1.0}, **QUICK)


def test_it_saves_and_reports(tmp_path):
    trained = train(RUNS, QRELS, **QUICK)
    trained.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json") == trained.model
    kept = load_evidence(tmp_path / "model.evidence.json")
    assert kept.evidence.held_out.mean == trained.evidence.held_out.mean
    assert trained.kept() is trained.kept()
    trained.report(tmp_path / "page.html")
    trained.report(tmp_path / "report.json", title="Both rankers")
    assert "<title>page" in (tmp_path / "page.html").read_text(encoding="utf-8")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["title"], report["weights"]) == ("Both rankers", list(trained.model.weights))
    assert trained.fuse(RUNS) == trained.model.fuse(RUNS)


def test_no_evidence_is_kept_beside_a_device():
    assert train(RUNS, QRELS, **QUICK).save_evidence("/dev/null") is None


def test_the_default_maximises_the_measure_asked_for():
    trained = train(RUNS, QRELS, measure="nDCG@5", folds=2)
    assert isinstance(trained.fuser, AutoFuser)
    assert str(trained.evidence.measure) == trained.model.measure == "nDCG@5"
    assert str(train(RUNS, QRELS, level=2, **QUICK).evidence.measure) == "AP(rel=2)"
    assert train(RUNS, QRELS, level=2, **QUICK).model.relevance_level == 2


def test_normalisers_depths_and_query_weights_are_followed():
    trained = train(RUNS, QRELS, normalize={"a": "zscore", "b": "max"}, depth=5, query_weights={"q1": 3.0}, **QUICK)
    assert [normalizer.kind for normalizer in trained.model.normalizers] == ["zscore", "max"]
    assert trained.model.depths == (5, 5)
    assert trained.aligned.query_weights[1] == 3.0
    assert codes(trained) == ["query-weights-default", "weighted-queries"]
    chosen = train(RUNS, QRELS, normalize="auto", folds=2)
    assert chosen.fuser.normalize == "auto"


def test_options_reach_the_method():
    assert train(RUNS, QRELS, method="newton", beta=3.0, folds=2).model.beta == 3.0


def test_only_the_first_fit_is_proved(monkeypatch):
    monkeypatch.setattr(ExactFuser, "_starts", QuickExact._starts)
    proved = []
    monkeypatch.setattr(ExactFuser, "_prove", lambda self, *parts: proved.append(self) or parts[-1])
    trained = train(RUNS, QRELS, method="exact", certify=True, gap=0.5, folds=2)
    assert proved == [trained.fuser]
    trained.kept()
    assert len(proved) == 1


def test_without_judgments_it_says_that_nothing_is_measured():
    trained = train(RUNS)
    assert isinstance(trained.fuser, CotrainFuser)
    assert {normalizer.kind for normalizer in trained.model.normalizers} == {"zscore"}
    assert trained.evidence is None
    assert "nothing shows what they are worth" in trained.verdict
    assert codes(trained) == ["no-judgments"]
    for needs_evidence in (trained.kept, lambda: trained.report("page.html")):
        with pytest.raises(InputError, match=r"no evidence without judgments\. Train with qrels"):
            needs_evidence()


def test_a_target_sets_the_rules():
    trained = train(RUNS, QRELS, target="opensearch", techniques="l2", window=7, **QUICK)
    rules = training_rules("opensearch", RUNS, techniques={"*": "l2"}, window=7)
    assert trained.model.normalizers == tuple(rules.normalizers.values())
    assert (trained.model.depths, trained.model.target) == ((7, 7), "opensearch")
    assert trained.notes[0].text.startswith("training under the rules of OpenSearch")
    equal = train(RUNS, QRELS, target="qdrant-rrf", folds=2)
    assert isinstance(equal.fuser, EqualFuser)
    assert "equal-weights" in codes(equal)


def test_the_notes_of_runs_and_judgments_come_along():
    noted = replace(RUNS["a"], notes=(Note("odd", 1, "something odd"),))
    trained = train([noted, RUNS["b"]], replace(QRELS, notes=(Note("odd-too", 1, "more"),)), **QUICK)
    assert codes(trained) == ["odd", "odd-too"]
    assert [note.code for note in trained.read_notes] == ["odd", "odd-too"]


def test_one_run_has_nothing_to_learn():
    assert codes(train([RUNS["a"]], QRELS, **QUICK)) == ["single-run"]


def test_other_queries_are_measured_and_those_seen_are_told():
    few = Qrels.from_dict({query_id: GRADES[query_id] for query_id in list(GRADES)[:8]})
    others = Qrels.from_dict({query_id: GRADES[query_id] for query_id in list(GRADES)[8:]})
    trained = train(RUNS, few, test_qrels=others, **QUICK)
    assert list(trained.tested.values) == ["a", "b", LEARNED]
    assert trained.tested.values[LEARNED] == pytest.approx(trained.fuser.score(RUNS, others))
    assert "test-queries-learned" not in codes(trained)
    assert "test-queries-learned" in codes(train(RUNS, few, test_qrels=few, **QUICK))


def test_what_was_learned_from_is_no_test():
    assert note_test_queries_seen(QRELS, Qrels.from_dict({"x": {"d": 1}})) == []
    (note,) = note_test_queries_seen(QRELS, Qrels.from_dict({"x": {"d": 1}, "q4": {"d": 1}, "q2": {"d": 0}}))
    assert "2 of 3 queries of test_qrels (--test-qrels) were also learned from (first: q4)" in note.text


def test_a_ranker_of_weight_0_may_still_bring_documents():
    def model(*weights):
        return Model(("a", "b"), weights, (Normalizer(),) * 2, (None, None), "auto", "AP")

    b = Run.from_dict({"q1": {"d8": 2.0, "x": 1.0, "y": 0.5}}, name="b")
    aligned = align_runs([RUNS["a"], b])
    assert note_zero_weights(model(0.5, 0.5), aligned) == note_zero_weights(model(1e-9, 1 - 1e-9), aligned) == []
    (note,) = note_zero_weights(model(1.0, 0.0), aligned)
    assert note.text.startswith("b has weight 0, but it brings 2 rows of the fused run that no ranker with")


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ({"target": "opensearch"}, "target: expected runs; found runs that are aligned already"),
        ({"query_weights": {"q1": 1.0}}, "query_weights: expected runs; found runs that are aligned already"),
        ({"test_qrels": QRELS}, "test_qrels: expected runs; found runs that are aligned already"),
        ({"qrels": QRELS}, "qrels: expected None with runs that are aligned already"),
        ({"depth": 3}, "depth: expected None with runs that are aligned already"),
        ({"normalize": "max"}, "normalize: expected None with runs that are aligned already"),
    ],
)
def test_aligned_runs_have_their_rules(beside, message):
    with pytest.raises(InputError, match=message):
        train(align_runs(RUNS, QRELS), **beside, **QUICK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "expected one of auto, newton"),
        ({"method": "newton", "normalize": "auto"}, "auto chooses inside the method auto"),
        ({"method": "newton", "measure": "RR"}, "method 'newton' maximises AP, not RR"),
        ({"method": "newton", "certify": True}, "method 'newton' takes no certify"),
        ({"normalize": {"x": "max"}}, "found unknown x"),
        ({"depth": {"x": 3}}, "found unknown x"),
        ({"window": 10}, r"window \(--window\) belongs to an engine"),
        ({"techniques": "l2"}, r"technique \(--technique\) belongs to an engine"),
        ({"target": "nosuch"}, "expected a target of elasticsearch"),
        ({"target": "opensearch", "depth": 3}, "the target opensearch sets the depth"),
        ({"target": "opensearch", "normalize": "max"}, "the target opensearch sets the normaliser"),
        ({"target": "opensearch", "techniques": "zz"}, "expected a technique of min_max"),
        ({"target": "opensearch", "window": 0}, "window"),
        ({"target": "qdrant-rrf", "method": "boost"}, "takes equal weights only"),
        ({"judged": False, "method": "auto"}, "learns from judgments. Give qrels"),
    ],
)
def test_settings_are_checked_before_any_run_is_there(settings, message):
    with pytest.raises(InputError, match=message):
        check_training(("a", "b"), **{"judged": True, **settings})


def test_too_few_queries_are_refused():
    with pytest.raises(InputError, match="1 judged query: expected at least 2"):
        train(RUNS, Qrels.from_dict({"q1": GRADES["q1"]}), **QUICK)
    assert np.isfinite(train(RUNS, Qrels.from_dict(dict(list(GRADES.items())[:2])), **QUICK).evidence.held_out.mean)


def test_few_judgments_say_what_they_are_made_of_and_what_is_unjudged():
    provenance = Provenance.of(["clicks-pbm"] * len(QRELS.doc), np.full(len(QRELS.doc), 0.5))
    trained = train(list(RUNS.values()), replace(QRELS, provenance=provenance), method="expected", repeats=1)
    texts = {note.code: note.text for note in trained.notes}
    assert texts["judgment-sources"] == (
        f"the judgments are {len(QRELS.doc):,} from clicks-pbm (mean confidence 0.50)"
    )
    assert texts["informative-queries"].startswith("learning stands on ")
    assert "count by their probability of relevance, the held-out gain over " in texts["unjudged-gain"]
