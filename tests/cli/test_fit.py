import json
from dataclasses import replace

import numpy as np
import pytest

from genm.align import align_runs
from genm.cli import fit
from genm.cli.fit import METHODS, suggest_better_rules
from genm.evidence import RRF, UNIFORM, gather_evidence
from genm.learn.base import FixedWeights
from genm.read import qrels_from_dict, run_from_dict

RANKERS = ("bm25.trec", "dense.trec")

A = run_from_dict({f"q{q}": {f"d{d}": 9.0 - d for d in range(4)} for q in range(6)}, name="a")
B = run_from_dict({f"q{q}": {f"d{d}": float(d) for d in range(2, 7)} for q in range(6)}, name="b")
JUDGED = {f"q{q}": {f"d{q % 4}": 1} for q in range(6)}


@pytest.fixture(scope="module")
def fitted(genm, made_up, tmp_path_factory):
    """What the command printed, and the model it wrote."""
    model = tmp_path_factory.mktemp("fit") / "model.json"
    paths = [made_up / name for name in RANKERS]
    found = genm("fit", "--qrels", made_up / "qrels.txt", *paths, "--folds", "2", "--format", "json", "-o", model)
    assert found.code == 0
    assert found.err.endswith(f"wrote {model}\nwrote {model.with_name('model.evidence.json')}\n")
    return json.loads(found.out), model


def test_json_holds_weights_and_their_proof(genm, sample, fitted):
    shown, _ = fitted
    assert sum(shown["weights"].values()) == pytest.approx(1.0)
    assert list(shown["weights"]) == ["bm25", "dense"]
    assert set(shown["train"]) == {"AP"}
    assert len(shown["cv"]["per_query"]) == 30
    assert shown["cv"]["mean"] == pytest.approx(sum(shown["cv"]["per_query"].values()) / 30)
    low, high = shown["cv"]["interval"]
    assert low < shown["cv"]["mean"] < high
    assert set(shown["verdicts"]) == {"bm25", "dense"}
    assert bool(shown["advice"]) == bool({"hurts", "not needed"} & set(shown["verdicts"].values()))
    assert set(shown["baselines"]) == {"bm25", "dense", "uniform weights", "RRF (k=60)", "best single ranker"}
    measured = genm("evaluate", "qrels.txt", "bm25.trec", "-m", "AP", "--format", "json")
    assert shown["baselines"]["bm25"] == pytest.approx(json.loads(measured.out)["bm25"]["mean"]["AP"])


def test_the_model_fuses_to_what_training_measured(genm, sample, fitted):
    shown, model = fitted
    assert genm("fuse", "--model", model, *RANKERS, "-o", "fused.trec").code == 0
    measured = genm("evaluate", "qrels.txt", "fused.trec", "-m", "AP", "--format", "json")
    assert json.loads(measured.out)["fused"]["mean"]["AP"] == pytest.approx(shown["train"]["AP"])
    renamed = genm("fuse", "--model", model, "bm25.trec", "sparse=dense.trec").fault
    assert "expected runs named bm25, dense; missing dense and unknown sparse" in renamed


def test_judgments_held_back_for_testing(genm, sample):
    lines = (sample / "qrels.txt").read_text().splitlines(keepends=True)
    (sample / "train.qrels").write_text("".join(line for line in lines if int(line.split()[0]) <= 20))
    (sample / "test.qrels").write_text("".join(line for line in lines if int(line.split()[0]) > 20))
    words = (
        "fit",
        "--qrels",
        "train.qrels",
        "--test-qrels",
        "test.qrels",
        *RANKERS,
        "--method",
        "bat",
        "--folds",
        "2",
    )
    found = genm(*words, "--format", "json")
    assert "also learned from" not in found.err
    shown = json.loads(found.out)
    measured = genm("evaluate", "test.qrels", "dense.trec", "-m", "AP", "--format", "json")
    assert shown["test"]["AP"]["dense"] == json.loads(measured.out)["dense"]["mean"]["AP"]
    assert set(shown["test"]["AP"]) == {"bm25", "dense", "learned weights"}


def test_what_the_table_does_not_show_is_told(genm, sample, monkeypatch):
    asked = []
    monkeypatch.setattr(fit, "suggest_better_rules", lambda _, may_choose: asked.append(may_choose))
    lines = [f"{q} Q0 noise{q}-{i} {i} {9 - i} noise\n" for q in range(1, 31) for i in range(3)]
    (sample / "noise.trec").write_text("".join(lines))
    words = ("--qrels", "qrels.txt", "--test-qrels", "qrels.txt", "--method", "bat", "--folds", "2")
    found = genm("fit", "bm25.trec", "noise.trec", *words)
    assert "note: 30 of 30 queries of test_qrels (--test-qrels) were also learned from (first: 1)" in found.err
    assert "note: noise has weight 0, but it brings 90 rows" in found.err
    assert asked == [False]


def test_weighted_figures_are_called_so(genm, sample):
    (sample / "weights.txt").write_text("".join(f"{q} {q % 3}\n" for q in range(1, 31)))
    words = ("fit", *RANKERS, "--qrels", "qrels.txt", "--method", "bat", "--folds", "2")
    note = "note: in training and held-out figures each query counts by its weight"
    assert note in genm(*words, "--query-weights", "weights.txt").err
    assert note not in genm(*words).err


def test_nothing_to_learn_from_one_run(genm, sample):
    found = genm("fit", "bm25.trec", "--qrels", "qrels.txt", "--method", "bat", "--folds", "2")
    assert found.code == 0
    assert "note: there is one run: its weight is 1, and there is nothing to learn." in found.err


def test_a_model_for_a_pipe_keeps_no_evidence_beside_it(genm, sample):
    words = ("fit", *RANKERS, "--qrels", "qrels.txt", "--method", "bat", "--folds", "2", "--format", "tsv")
    assert genm(*words, "-o", "/dev/null").err.endswith("wrote /dev/null\n")
    assert "a model is written to a file" in genm(*words, "-o", "-").fault


@pytest.mark.parametrize(
    "words",
    [("--method", "best"), ("--measure", "MAPP"), ("--normalize", "auto", "--method", "ip"), ("--depth", "x=3")],
)
def test_the_call_is_checked_before_any_file_is_read(genm, tmp_path, words):
    assert "readable file" not in genm("fit", tmp_path / "no.trec", "--qrels", tmp_path / "no.txt", *words).fault


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "best"), "method (--method) 'best': expected one of auto, newton"),
        (("--measure", "MAPP"), "measure 'MAPP' is not known"),
        (("--method", "bat", "--measure", "nDCG@10"), "maximises AP, not nDCG@10"),
        (("--method", "bat", "--normalize", "auto"), "normalize (--normalize) auto chooses inside the method auto"),
        (("--beta", "sharp"), "--beta sharp: expected a number or auto"),
        (("--folds", "1"), "Invalid value for '--folds'"),
        (("-o", "nowhere/model.json"), "expected a folder to write into; found no nowhere"),
        (("--test-qrels", "-", "--query-weights", "-"), "can be read only once"),
        (("--query-weights", "nowhere.txt"), "nowhere.txt: expected a readable file"),
    ],
)
def test_refusals(genm, sample, words, message):
    assert message in genm("fit", "--qrels", "qrels.txt", *RANKERS, *words).fault


def test_methods_that_need_judgments_say_so(genm, sample):
    found = genm("fit", *RANKERS, "--method", "bat")
    assert "method (--method) newton learns from judgments. Give qrels (--qrels)" in found.fault


def test_without_judgments_it_learns_without_labels_and_says_so(genm, sample):
    found = genm("fit", *RANKERS, "--format", "json", "-o", "model.json")
    assert found.code == 0
    assert "no judgments: learning without labels (UnsEnM)" in found.err
    assert list(json.loads(found.out)) == ["weights"]
    model = json.loads((sample / "model.json").read_text())
    assert model["method"] == "uns"
    assert {row["normalizer"]["kind"] for row in model["rankers"]} == {"zscore"}
    assert not (sample / "model.evidence.json").exists()


def test_the_evidence_beside_the_model_is_what_was_shown(fitted):
    from genm.evidence import load_evidence

    shown, model = fitted
    kept = load_evidence(model.with_name("model.evidence.json"))
    assert kept.evidence.held_out.mean == shown["cv"]["mean"]
    assert dict(zip(kept.rankers, kept.weights, strict=True)) == shown["weights"]
    assert len(kept.refits.weights) == 100


def test_the_methods_are_those_of_the_library():
    from genm.learn import METHODS as WORDS

    assert METHODS == WORDS


def test_table_fits_80_columns_and_says_what_it_means(genm, sample):
    found = genm("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "3")
    assert found.code == 0
    assert "30 queries, 3-fold cross-validation\n" in found.out
    lines = found.out.splitlines()
    (verdict,) = (line for line in lines if line.startswith("Held out, the learned weights "))
    assert max(len(line) for line in lines if line != verdict) <= 80
    assert "of the top 10 of the learned weights has no judgment" in verdict


def test_the_title_says_that_queries_are_weighted(genm, sample):
    words = ("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "3", "--query-weights")
    (sample / "weights.tsv").write_text("1\t2\n")
    assert "30 weighted queries, 3-fold" in genm(*words, "weights.tsv").out
    (sample / "weights.tsv").write_text("1\t1\n")
    assert "30 queries, 3-fold" in genm(*words, "weights.tsv").out


def test_tsv(genm, sample):
    found = genm("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "2", "--format", "tsv")
    cells = {tuple(line.split("\t")[:2]): float(line.split("\t")[2]) for line in found.out.splitlines()}
    assert cells["weight", "bm25"] + cells["weight", "dense"] == pytest.approx(1.0)
    assert ("train.AP", "learned weights") in cells
    assert cells["gain", "uniform weights"] == pytest.approx(
        cells["cv.AP", "learned weights"] - cells["cv.AP", "uniform weights"], abs=2e-6
    )
    assert 0 <= cells["gain.p", "best single ranker"] <= 1
    assert {cells["leave_out", name] for name in ("bm25", "dense")} <= {0.0, 1.0}
    assert ("loss", "dense") in cells
    for name in ("best single ranker", "bm25", "dense", "uniform weights", "RRF (k=60)"):
        low, high = cells["gain.low", name], cells["gain.high", name]
        assert cells["gain.significant", name] == float(low > 0 or high < 0)


@pytest.fixture(scope="module")
def evidence():
    aligned = align_runs([A, B], qrels_from_dict(JUDGED))
    _, found = gather_evidence(aligned, lambda: FixedWeights((0.7, 0.3)), "AP", folds=2)
    level = {"difference": 0.0, "low": -0.1, "high": 0.1, "outcome": "perhaps worse"}
    return replace(found, gains={name: replace(gain, **level) for name, gain in found.gains.items()})


@pytest.mark.parametrize(("rule", "use"), [(RRF, "genm fuse --method rrf"), (UNIFORM, "genm fuse --method sum")])
def test_a_rule_that_beats_learning_is_told_of(evidence, capsys, rule, use):
    """A reader who sees the best single ranker only would serve the worse of two."""
    suggest_better_rules(evidence, may_choose=True)
    assert capsys.readouterr().err == ""
    figures = {"difference": -0.1, "low": -0.2, "high": -0.05, "baseline_mean": 1.0, "outcome": "worse"}
    worse = replace(evidence, gains={**evidence.gains, rule: replace(evidence.gains[rule], **figures)})
    shown = f"{worse.label(rule)} (-0.1000 AP, 95% interval -0.2000 to -0.0500)"
    assert (
        worse.verdict() == f"Held out, the learned weights lose to the strongest rival, {shown}: use that instead."
    )
    for may_choose, advice in ((False, "Use it"), (True, "Try --normalize auto, or use it")):
        suggest_better_rules(worse, may_choose=may_choose)
        assert capsys.readouterr().err == (
            f"note: held out, what needs no learning does better: {rule}. {advice}: {use}\n"
        )


def test_what_is_in_use_today_is_a_rival(genm, sample):
    words = ("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "2", "--format", "json")
    weights = json.loads(genm(*words, "--current", "bm25=0.3,dense=0.7").out)
    assert "current ranking" in weights["gains"]
    assert genm("fuse", *RANKERS, "--weights", "bm25=0.3,dense=0.7", "-o", "now.trec").code == 0
    run = json.loads(genm(*words, "--current", "now.trec").out)
    assert run["baselines"]["current ranking"] == pytest.approx(weights["baselines"]["current ranking"])
    measured = genm("evaluate", "qrels.txt", "now.trec", "-m", "AP", "--format", "json")
    assert run["baselines"]["current ranking"] == pytest.approx(json.loads(measured.out)["now"]["mean"]["AP"])
    assert run["strongest"] in run["gains"]
    assert "current ranking" in genm(*words[:-2], "--current", "dense=1").out


@pytest.mark.parametrize(
    ("current", "message"),
    [
        ("bm25=much", "--current bm25=much: expected NAME=WEIGHT,... or the path of a run; found 'bm25=much'"),
        ("bm25=1,=2", "found '=2'"),
        ("sparse=1", "expected weights of bm25, dense; found one of 'sparse'"),
        ("bm25=0", "at least one of them above 0; found bm25=0"),
        ("nowhere.trec", "nowhere.trec"),
    ],
)
def test_what_is_in_use_must_be_weights_or_a_run(genm, sample, current, message):
    assert message in genm("fit", "--qrels", "qrels.txt", *RANKERS, "--current", current).fault


def test_what_is_in_use_needs_judgments(genm, sample):
    assert "Give qrels (--qrels)" in genm("fit", *RANKERS, "--current", "bm25=1").fault


def test_weights_of_any_sign(genm, sample):
    """A run that prefers documents that are not relevant gets a negative weight."""
    rng, docs = np.random.default_rng(0), [f"d{d:02}" for d in range(20)]
    for name, quality in (("good", 0.8), ("bad", -0.8)):
        scores = rng.normal(size=(20, 20)) + quality * (np.arange(20) < 4)
        lines = [f"q{q} Q0 {doc} 1 {scores[q, d]} x" for q in range(20) for d, doc in enumerate(docs)]
        (sample / f"{name}.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged = [f"q{q} 0 {doc} 1" for q in range(20) for doc in docs[:4]]
    (sample / "judged.txt").write_text("\n".join(judged) + "\n", encoding="utf-8")
    words = ("fit", "--qrels", "judged.txt", "--folds", "2", "good.trec", "bad.trec", "--format", "json")
    plain, signed = (json.loads(genm(*words, *more).out)["weights"] for more in ((), ("--signs", "any")))
    assert min(plain.values()) >= 0.0
    assert signed["bad"] < 0.0 < signed["good"]
    assert "takes no signs" in genm(*words, "--signs", "any", "--method", "newton").fault
    assert "takes no negative weights" in genm(*words, "--signs", "any", "--target", "opensearch").fault
