import json

import pytest

RANKERS = ("bm25.trec", "dense.trec")


@pytest.fixture
def stream(genm, sample):
    """A model of the first ten queries, and the judgments of the others in two parts."""
    lines = (sample / "qrels.txt").read_text().splitlines(keepends=True)
    for name, queries in (
        ("first", range(1, 11)),
        ("more", range(11, 21)),
        ("last", range(21, 31)),
        ("rest", range(11, 31)),
    ):
        (sample / f"{name}.qrels").write_text("".join(line for line in lines if int(line.split()[0]) in queries))
    found = genm("fit", "--method", "on", "--qrels", "first.qrels", *RANKERS, "--folds", "2", "-o", "model.json")
    assert found.code == 0
    return sample


def weights(path):
    return [ranker["weight"] for ranker in json.loads(path.read_text())["rankers"]]


def test_in_pieces_it_learns_what_it_learns_at_once(genm, stream):
    words = ("update", "--model", "model.json", *RANKERS)
    at_once = genm(*words, "--qrels", "rest.qrels", "-o", "whole.json", "--format", "json")
    assert at_once.err.endswith("wrote whole.json\n")
    seen = json.loads((stream / "model.json").read_text())["online"]["n_seen"]
    assert json.loads(at_once.out)["seen"] == seen + 20
    assert json.loads(at_once.out)["weights"] == dict(
        zip(("bm25", "dense"), weights(stream / "whole.json"), strict=True)
    )
    for part in ("more.qrels", "last.qrels"):
        found = genm(*words, "--qrels", part)
        assert found.err.endswith("wrote model.json\n")
    assert weights(stream / "model.json") == weights(stream / "whole.json")
    assert found.out.startswith(f"10 queries more, {seen + 20} in all\n\nranker  before     now\n")


def test_tsv(genm, stream):
    found = genm("update", "--model", "model.json", "--qrels", "more.qrels", *RANKERS, "--format", "tsv")
    cells = [line.split("\t") for line in found.out.splitlines()]
    assert [cell[:2] for cell in cells] == [["weight", "bm25"], ["weight", "dense"]]
    assert [float(cell[2]) for cell in cells] == weights(stream / "model.json")


def test_refusals(genm, stream):
    wrong = genm("update", "--model", "model.json", "--qrels", "more.qrels", "bm25.trec", "x=dense.trec")
    assert "missing dense and unknown x" in wrong.fault
    assert "no such file" in genm("update", "--model", "no.json", "--qrels", "more.qrels", *RANKERS).fault
    assert (
        genm("fit", "--method", "bat", "--qrels", "first.qrels", *RANKERS, "--folds", "2", "-o", "bat.json").code
        == 0
    )
    assert "holds no stream" in genm("update", "--model", "bat.json", "--qrels", "more.qrels", *RANKERS).fault
