import fcntl
import json
import os
import shutil
from dataclasses import replace

import pytest

from genm.model import load_model, save_model

RANKERS = ("bm25.trec", "dense.trec")


@pytest.fixture(scope="module")
def begun(genm, made_up, tmp_path_factory):
    """A model of the first ten queries, and the judgments of the others in two parts."""
    folder = tmp_path_factory.mktemp("stream")
    shutil.copytree(made_up, folder, dirs_exist_ok=True)
    lines = (folder / "qrels.txt").read_text().splitlines(keepends=True)
    for name, queries in (
        ("first", range(1, 11)),
        ("more", range(11, 21)),
        ("last", range(21, 31)),
        ("rest", range(11, 31)),
    ):
        (folder / f"{name}.qrels").write_text("".join(line for line in lines if int(line.split()[0]) in queries))
    runs = [folder / name for name in RANKERS]
    words = ("fit", "--method", "on", "--folds", "2", "--qrels", folder / "first.qrels", *runs)
    assert genm(*words, "-o", folder / "model.json").code == 0
    return folder


@pytest.fixture
def stream(begun, tmp_path, monkeypatch):
    """A copy of it for the test's own use, and its working folder."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    assert "model.json: expected runs named bm25, dense; missing dense and unknown x" in wrong.fault
    assert "no such file" in genm("update", "--model", "no.json", "--qrels", "more.qrels", *RANKERS).fault
    assert (
        genm("fit", "--method", "bat", "--qrels", "first.qrels", *RANKERS, "--folds", "2", "-o", "bat.json").code
        == 0
    )
    assert "has no stream" in genm("update", "--model", "bat.json", "--qrels", "more.qrels", *RANKERS).fault


def test_figures_of_other_weights_are_dropped(genm, stream):
    assert load_model("model.json").training["queries"] == 10
    genm("update", "--model", "model.json", "--qrels", "more.qrels", *RANKERS)
    assert load_model("model.json").training == {}


def test_it_waits_for_another_update_and_survives_a_reader_that_goes_away(process, stream):
    """What it found when it started is replaced while it waits; nobody reads what it prints."""
    first = load_model("model.json")
    reader, writer = os.pipe()
    with open("model.json", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = process("update", "--model", "model.json", "--qrels", "more.qrels", *RANKERS, stdout=writer)
        assert second.stderr.readline() == b"waiting for another update of model.json\n"
        save_model(replace(first, online=replace(first.online, n_seen=1000)), "model.json")
    os.close(reader)
    os.close(writer)
    assert second.wait() == 141
    second.stderr.close()
    assert load_model("model.json").online.n_seen == 1010


def test_a_model_out_of_a_pipe_needs_a_place_to_go_to(genm, stream):
    words = ("update", "--model", "-", "--qrels", "more.qrels", *RANKERS)
    assert "expected -o FILE as well" in genm(*words).fault
    assert genm(*words, "-o", "new.json", stdin=(stream / "model.json").read_text()).code == 0
    assert load_model("new.json").online.n_seen == load_model("model.json").online.n_seen + 10


def test_a_query_that_is_judged_again_takes_a_step_with_all_its_judgments(genm, stream):
    lines = (stream / "more.qrels").read_text().splitlines(keepends=True)
    first = [line for line in lines if line.startswith("11 ")]
    (stream / "before.qrels").write_text("".join([*lines[len(first) :], first[0]]))
    words = ("update", "--model", "model.json", *RANKERS, "--format", "json")
    found = genm(*words, "--qrels", "more.qrels", "--seen", "before.qrels", "-o", "again.json")
    (stream / "one.qrels").write_text("".join(first))
    alone = genm(*words, "--qrels", "one.qrels", "-o", "alone.json")
    assert json.loads(found.out)["weights"] == json.loads(alone.out)["weights"]
    assert "1 of 1 queries were judged before, the first is '11': " in found.err
    assert f"{len(first) - 1} documents are new, 0 have another grade" in found.err
    assert "9 of 10 queries have no new judgment and are skipped" in found.err
    nothing = genm(*words, "--qrels", "before.qrels", "--seen", "more.qrels", "-o", "same.json")
    assert nothing.code == 0
    assert json.loads(nothing.out)["weights"] == dict(
        zip(("bm25", "dense"), weights(stream / "model.json"), strict=True)
    )
