import json

import pytest

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
    shown = json.loads(genm(*words, "--format", "json").out)
    measured = genm("evaluate", "test.qrels", "dense.trec", "-m", "AP", "--format", "json")
    assert shown["test"]["AP"]["dense"] == json.loads(measured.out)["dense"]["mean"]["AP"]
    assert set(shown["test"]["AP"]) == {"bm25", "dense", "learned weights"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "best"), "expected one of"),
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
    from genm.auto import _METHODS

    assert set(METHODS) == set(_METHODS)
