import json

import pytest

RANKERS = ("bm25.trec", "dense.trec")


@pytest.fixture(scope="module")
def fitted(genm, made_up, tmp_path_factory):
    """What the command printed, and the model it wrote."""
    model = tmp_path_factory.mktemp("fit") / "model.json"
    paths = [made_up / name for name in RANKERS]
    found = genm("fit", "--qrels", made_up / "qrels.txt", *paths, "--folds", "2", "--format", "json", "-o", model)
    assert found.code == 0
    assert found.err.endswith(f"wrote {model}\n")
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


def test_table_fits_80_columns_and_says_what_it_means(genm, sample):
    found = genm("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "3")
    assert found.code == 0
    assert "30 queries, 3-fold cross-validation\n" in found.out
    table = [line for line in found.out.splitlines() if line and "ranker (" not in line]
    assert max(map(len, table)) <= 80
    assert "ranker" in found.out.splitlines()[-2]


def test_tsv(genm, sample):
    found = genm("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "2", "--format", "tsv")
    cells = {tuple(line.split("\t")[:2]): float(line.split("\t")[2]) for line in found.out.splitlines()}
    assert cells["weight", "bm25"] + cells["weight", "dense"] == pytest.approx(1.0)
    assert ("train.AP", "learned weights") in cells
    assert cells["gain", "uniform weights"] == pytest.approx(
        cells["cv.AP", "learned weights"] - cells["cv.AP", "uniform weights"], abs=2e-6
    )
    assert 0 <= cells["gain.p", "best single ranker"] <= 1


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
