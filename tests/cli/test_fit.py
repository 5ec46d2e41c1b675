import json

import pytest

from genm.cli import fit
from genm.cli.fit import METHODS

RANKERS = ("bm25.trec", "dense.trec")


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
    assert "--test-qrels" not in found.err
    shown = json.loads(found.out)
    measured = genm("evaluate", "test.qrels", "dense.trec", "-m", "AP", "--format", "json")
    assert shown["test"]["AP"]["dense"] == json.loads(measured.out)["dense"]["mean"]["AP"]
    assert set(shown["test"]["AP"]) == {"bm25", "dense", "learned weights"}


def test_what_the_table_does_not_show_is_told(genm, sample, monkeypatch):
    asked = []
    monkeypatch.setattr(fit, "say_what_does_better", lambda _, may_choose: asked.append(may_choose))
    lines = [f"{q} Q0 noise{q}-{i} {i} {9 - i} noise\n" for q in range(1, 31) for i in range(3)]
    (sample / "noise.trec").write_text("".join(lines))
    words = ("--qrels", "qrels.txt", "--test-qrels", "qrels.txt", "--method", "bat", "--folds", "2")
    found = genm("fit", "bm25.trec", "noise.trec", *words)
    assert "note: 30 of 30 queries of --test-qrels were also learned from (first: 1)" in found.err
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
        (("--method", "best"), "--method best: expected one of auto, bat"),
        (("--measure", "MAPP"), "measure 'MAPP' is not known"),
        (("--method", "bat", "--measure", "nDCG@10"), "maximises AP, not nDCG@10"),
        (("--method", "bat", "--normalize", "auto"), "--normalize auto chooses inside --method auto"),
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
    assert "--method bat learns from judgments" in found.fault


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
    from genm.learn.auto import _METHODS

    assert set(METHODS) == set(_METHODS)
