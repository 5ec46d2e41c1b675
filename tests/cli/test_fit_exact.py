import json

import pytest
from problems import QuickExact

from genm.model import load_model

RUNS = ("bm25.trec", "dense.trec")
WORDS = ("fit", "--qrels", "qrels.txt", "--folds", "2")
pytestmark = pytest.mark.usefixtures("little_evidence", "simple_starts")


@pytest.fixture(scope="module")
def simple_starts():
    """Let the exact fuser begin at simple weights, which is quicker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genm.learn.exact.ExactFuser._starts", QuickExact._starts)
        yield


@pytest.fixture
def three(sample):
    """Three runs: a third one that ranks the documents of the first the other way round, a little."""
    lines = (sample / "bm25.trec").read_text().splitlines()
    rows = [line.split() for line in lines]
    turned = [
        f"{q} {q0} {doc} 1 {float(score) * 0.1 + (7 * i) % 11} odd"
        for i, (q, q0, doc, _, score, _) in enumerate(rows)
    ]
    (sample / "odd.trec").write_text("\n".join(turned) + "\n")
    return (*RUNS, "odd.trec")


def test_two_rankers_are_proved_without_asking(genm, sample):
    found = genm(*WORDS, "--method", "exact", *RUNS)
    assert found.code == 0
    assert "On all training queries: AP 0." in found.out
    assert "; nothing is left." in found.out
    assert "Weights that lose at most 0.001, one ranker at a time" in found.out


@pytest.mark.parametrize("measure", ["nDCG@10", "Bpref"])
def test_a_proof_is_printed_and_in_json_for_every_measure(genm, three, measure):
    words = (*WORDS, "--method", "exact", "--measure", measure, *three, "--format", "json")
    plain = json.loads(genm(*words).out)["exact"]
    assert plain["bound"] is plain["left"] is None
    assert "does not prove" in plain["verdict"]
    shown = json.loads(genm(*words, "--certify", "--seconds", "100", "--gap", "0.01").out)
    proved = shown["exact"]
    assert proved["verdict"].startswith(f"{measure} {proved['best']:.4f}; ")
    assert proved["verdict"].endswith("is left")
    assert 0.0 <= proved["left"] <= 0.01 + 1e-9
    assert proved["bound"] >= plain["best"] - 1e-12
    assert shown["train"][measure] == pytest.approx(proved["best"])
    assert shown["weights"] == proved["best_weights"]
    low, high = proved["plateau"]["weights"]["dense"]
    assert low <= shown["weights"]["dense"] <= high


def test_a_time_limit_leaves_a_bound_and_a_note(genm, three):
    found = genm(*WORDS, "--method", "exact", "--certify", "--seconds", "1e-6", *three)
    assert found.code == 0
    assert "; at most 0." in found.out
    assert "ExactFuser stopped after 1e-06 s" in found.err


def test_the_centre_is_chosen_and_saved(genm, three):
    found = genm(*WORDS, "--method", "exact", "--weights", "centre", *three, "--format", "json", "-o", "model.json")
    shown = json.loads(found.out)
    assert shown["weights"] != shown["exact"]["best_weights"]
    assert list(load_model("model.json").weights) == list(shown["weights"].values())
    assert shown["train"]["AP"] >= shown["exact"]["best"] - 0.001 - 1e-12


def test_tab_separated_values_tell_the_bound(genm, three):
    found = genm(*WORDS, "--method", "exact", "--certify", "--gap", "0.05", *three, "--format", "tsv")
    rows = {tuple(line.split("\t")[:2]): line.split("\t")[2] for line in found.out.splitlines()}
    assert float(rows["exact.best", ""]) <= float(rows["exact.bound", ""])
    assert float(rows["plateau.low", "odd"]) <= float(rows["weight", "odd"]) <= float(rows["plateau.high", "odd"])


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--certify",), "--certify belongs to --method exact"),
        (("--method", "bat", "--weights", "centre"), "--weights belongs to --method exact"),
        (("--method", "exact", "--seconds", "5"), "--seconds limits a proof. Ask for one with --certify"),
        (("--method", "exact", "--gap", "0.1"), "--gap limits a proof"),
        (("--method", "exact", "--certify", "--seconds", "0"), "--seconds 0: expected a number above 0"),
        (("--method", "exact", "--certify", "--gap", "-1"), "--gap -1: expected a number from 0 on"),
        (("--method", "exact", "--certify", "--gap", "nan"), "--gap nan: expected a number from 0 on"),
    ],
)
def test_flags_out_of_place_are_refused(genm, sample, words, fault):
    assert fault in genm(*WORDS, *words, *RUNS).fault
