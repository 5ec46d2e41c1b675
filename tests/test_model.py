"""The model file survives a round trip bit for bit and refuses what it cannot trust."""

import io
import json
import math
import os
import stat
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import genm
from genm.errors import InputError, ModelError
from genm.grouping import parse_grouping
from genm.model import (
    Groups,
    GroupWeights,
    Model,
    OnlineState,
    check_rankers,
    load_model,
    model_from_json,
    model_to_json,
    save_model,
)
from genm.normalizers import Normalizer, normalizer_of
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Run


def a_model(**changes: Any) -> Model:
    model = Model(
        rankers=("bm25", "dense"),
        weights=(0.1 + 0.2, 1 - (0.1 + 0.2)),
        normalizers=(Normalizer(), Normalizer(kind="affine", lower=-1.0, upper=1.0, constant="raw")),
        depths=(None, 100),
        method="auto",
        measure="AP",
        beta=200.0,
        training={"queries": 30},
        online=OnlineState((0.3, 0.7), 5, "paper", 200.0),
    )
    return replace(model, **changes)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save_model(a_model(), path)
    assert load_model(path) == a_model()
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


@given(st.floats(0, 1))
def test_weights_survive_bit_for_bit(weight: float) -> None:
    model = a_model(weights=(weight, 1 - weight))
    assert model_from_json(json.loads(json.dumps(model_to_json(model)))) == model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(version=2), r"expected model version 1; found 2"),
        (lambda d: d.update(format="x"), r"not a model written by genm"),
        (lambda d: d.pop("method"), r'expected the key "method"'),
        (lambda d: d.update(metod="x"), r"unknown key 'metod'"),
        (
            lambda d: d["rankers"][0].update(weight="0.5"),
            r'm.json: rankers\[0\].weight: expected a finite number; found "0.5"\. Was the file edited by hand',
        ),
        (lambda d: d["rankers"][0].update(weight=0.9), r"sum to 1"),
        (lambda d: d["rankers"][0].update(weight=-0.1), r"absolute values sum to 1; found -0.1"),
        (lambda d: d["rankers"][0].update(name="dense"), r"different ranker names"),
        (
            lambda d: d["rankers"][1]["normalizer"].update(kind="magic"),
            r'rankers\[1\].normalizer.kind: expected "none" or .*; found "magic"',
        ),
        (
            lambda d: d["rankers"][1]["normalizer"].update(missing="max"),
            r'rankers\[1\].normalizer.missing: expected a number or "minimum"; found "max"',
        ),
        (lambda d: d["rankers"][1]["normalizer"].update(spam=1), r"unknown key 'spam'"),
        (lambda d: d.update(rankers=[]), r"at least one ranker"),
        (lambda d: d["rankers"][1]["normalizer"].pop("k"), r'rankers\[1\].normalizer: expected the key "k"'),
        (lambda d: d["rankers"][1]["normalizer"].update(k=-1), r"normalizer: .*expected k to be a number above -1"),
        (lambda d: d["rankers"][1]["normalizer"].update(lower=2.0), r"expected upper to be a number above lower"),
        (lambda d: d["rankers"][1].update(depth=10**30), r"depth: expected an integer from 1 to 2\^63 - 1 or null"),
        (lambda d: d["rankers"][1].update(depth=0), r"depth: expected an integer from 1.*; found 0"),
        (lambda d: d["rankers"][1].update(weight=10**400), r"weight: expected a finite number; found 1000"),
        (lambda d: d["rankers"][1].update(weight=math.nan), r"weight: expected a finite number; found NaN"),
        (lambda d: d["rankers"][1].update(weight=1e308), r"sum to 1; found 0.3.*, 1e\+308"),
        (lambda d: d.update(relevance_level=True), r"relevance_level: expected an integer of 32 bits; found true"),
        (lambda d: d.update(relevance_level=10**30), r"relevance_level: expected an integer of 32 bits"),
        (lambda d: d.update(beta=0.0), r"beta: expected a positive finite number or null; found 0.0"),
        (lambda d: d.update(beta=-1), r"beta: expected a positive finite number or null; found -1"),
        (lambda d: d.update(rankers={}), r"rankers: expected at least one ranker; found an object"),
        (lambda d: d.update(training=[]), r"training: expected an object; found a list of 0"),
        (lambda d: d["online"].update(n_seen=-1), r"online.n_seen: expected an integer from 0 to"),
        (lambda d: d["online"].update(n_seen=10**30), r"online.n_seen: expected an integer from 0 to"),
        (lambda d: d["online"].update(schedule="quick"), r'schedule: expected "paper" or "adaptive"'),
        (lambda d: d["online"].update(raw_weights=[1e308, 0]), r"raw_weights\[0\]: expected a number from -1e100"),
        (lambda d: d["online"].update(memory=[1.0]), r'online.memory: expected 0 numbers for the schedule "paper"'),
        (lambda d: d["online"].update(schedule="adaptive"), r"memory: expected 4 numbers for the schedule"),
        (
            lambda d: d["online"].update(schedule="adaptive", memory=[1.0, 15.0, 5.0, -10.0]),
            r"expected the schedule \"adaptive\" to hold no number below 0",
        ),
        (
            lambda d: d["online"].update(schedule="adaptive", memory=[0.0, 0.0, 0.0, 0.0]),
            r"positive second number of the memory after 5 queries",
        ),
        (lambda d: d["online"].update(raw_weights=[1.0]), r"one raw weight per ranker"),
        (lambda d: d["online"].update(raw_weights=[1.0, None]), r"online.raw_weights\[1\]: expected"),
    ],
)
def test_a_broken_model_says_where(change: Any, says: str) -> None:
    document = json.loads(json.dumps(model_to_json(a_model())))
    change(document)
    with pytest.raises(ModelError, match=says):
        model_from_json(document, "m.json")


def test_unreadable_files_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no such file.*genm fit"):
        load_model(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "genm-model",\n "version": 1,,}')
    with pytest.raises(ModelError, match=r"broken.json:2: expected JSON"):
        load_model(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match=r"0xff"):
        load_model(broken)
    with pytest.raises(ModelError, match=r"cannot be read"):
        load_model(tmp_path)
    with pytest.raises(ModelError, match=r"could not be written.*No such file"):
        save_model(a_model(), tmp_path / "no" / "m.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", r"found an empty file.*genm fit"),
        ('{"format": "genm-mod', r":1: expected JSON; the file ends in the middle. Was it copied in full"),
        ('{"format": "genm-model",\n', r"the file ends in the middle"),
        ("1 0 d1 2\n", r"expected JSON; found something else. Give a file that genm fit wrote"),
        ("[" * 100_000, r"expected a model; found lists or objects nested too deeply"),
        ('{"a": ' * 100_000, r"expected a model; found lists or objects nested too deeply"),
        ('{"version":\n 1e400}', r":2: expected numbers that fit 64 bits; found 1e400. Was the file edited"),
        ('{"version": NaN}', r":1: expected numbers that fit 64 bits; found NaN"),
        ('{"version": -Infinity}', r":1: expected numbers that fit 64 bits; found -Infinity"),
        (f'{{"version": {"9" * 5000}}}', r":1: expected numbers that fit 64 bits; found 9{20}..., 5,000"),
        ('{"version": 1, "version": 2}', r"expected each key once; found 'version' twice"),
    ],
)
def test_a_file_that_is_no_model_says_what_it_is(content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=says):
        load_model(path)


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(a_model(), tmp_path / "m.json")
    given = io.TextIOWrapper(io.BytesIO((tmp_path / "m.json").read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    assert load_model("-") == a_model()


def test_the_file_behind_a_link_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    real, link = tmp_path / "releases" / "m.json", tmp_path / "current.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o600)
    link.symlink_to(real)
    save_model(a_model(), link)
    assert link.is_symlink()
    assert load_model(real) == a_model()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_new_file_is_as_private_as_the_user_wants_it(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        save_model(a_model(), tmp_path / "m.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m.json").stat().st_mode) == 0o600


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    save_model(a_model(), pipe)
    reader.join()
    assert model_from_json(json.loads(read[0])) == a_model()
    assert pipe.is_fifo()


def test_it_is_shown_on_one_line() -> None:
    assert repr(a_model()) == "<Model by 'auto' for AP: bm25 0.3, dense 0.7>"


def test_a_model_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError, match=r"expected a file to write; found a folder"):
        save_model(a_model(), tmp_path / "folder")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ModelError, match=r"could not be written \(No space left on device\)"):
        save_model(a_model(), tmp_path / "m.json")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("bm25",), "missing dense"),
        (("bm25", "dense", "x"), "unknown x"),
        (("bm25", "bm25", "dense"), "given twice"),
    ],
)
def test_runs_that_do_not_fit_are_refused(names: tuple[str, ...], says: str) -> None:
    check_rankers(a_model(), ("dense", "bm25"))
    with pytest.raises(ModelError, match=says):
        check_rankers(a_model(), names)


def test_a_fuser_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model: expected Model; found dict. A fuser gives its own by to_model"):
        save_model({}, tmp_path / "m.json")  # type: ignore[arg-type]


def test_a_model_fuses_new_runs_as_its_fuser_does() -> None:
    runs = {
        "bm25": run_from_dict({"q1": {"d1": 3.0, "d2": 1.0}, "q2": {"d1": 2.0, "d3": 1.0}}, name="bm25"),
        "dense": run_from_dict({"q1": {"d2": 0.9, "d3": 0.1}, "q2": {"d3": 0.8, "d2": 0.2}}, name="dense"),
    }
    fuser = genm.fit(genm.align_runs(runs, qrels_from_dict({"q1": {"d1": 1}, "q2": {"d3": 1}})), method="bat")
    model = fuser.to_model()
    aligned = model.align({"dense": runs["dense"], "bm25": runs["bm25"]})
    assert aligned.rankers == model.rankers
    fused, theirs = model.fuse(runs), fuser.fuse(genm.align_runs(runs))
    assert list(fused.docs) == list(theirs.docs)
    assert fused.doc.tolist() == theirs.doc.tolist()
    assert fused.score.tobytes() == theirs.score.tobytes()
    assert len(model.fuse(runs, top=1).score) == 2


def test_a_model_refuses_runs_of_other_rankers() -> None:
    run = run_from_dict({"q1": {"d1": 1.0}}, name="other")
    with pytest.raises(ModelError, match="other"):
        a_model().fuse({"bm25": run, "other": run})


def grouped_model(**changes):
    rankers = ("a", "b")
    minmax = normalizer_of("minmax")
    members = (
        GroupWeights("id", (0.9, 0.1), 20),
        GroupWeights("other", (0.2, 0.8), 30, OnlineState((0.2, 0.8), 0, "paper", 20.0)),
    )
    plain = Model(rankers, (0.5, 0.5), (minmax, minmax), (None, None), "auto", "AP")
    return replace(plain, groups=Groups(parse_grouping("id: ^[A-Z]"), members, 5.0), **changes)


LISTS = [
    Run.from_dict({"q1": {"x": 2.0, "y": 1.0}, "q2": {"x": 2.0, "y": 1.0}}, name="a"),
    Run.from_dict({"q1": {"x": 1.0, "y": 2.0}, "q2": {"x": 1.0, "y": 2.0}}, name="b"),
]


def test_groups_survive_the_file(tmp_path):
    model = grouped_model()
    save_model(model, tmp_path / "m.json")
    assert load_model(tmp_path / "m.json") == model
    assert "weights by group for id, other" in repr(model)
    assert "groups" not in model_to_json(replace(model, groups=None)), "files without groups stay as they were"


def test_queries_get_the_weights_of_their_group():
    fused = grouped_model().fuse(LISTS, queries={"q1": "ABC", "q2": "what is it"})
    assert fused["q1"] == {"x": 0.9, "y": 0.1}
    assert fused["q2"] == {"y": 0.8, "x": 0.2}
    assert fused.notes == ()
    assert grouped_model().fuse(LISTS, groups={"q1": "id", "q2": "other"})["q2"] == fused["q2"]


def test_unknown_groups_get_the_global_weights_and_are_counted():
    fused = grouped_model().fuse(LISTS, groups={"q1": "id", "q2": "new"})
    assert fused["q2"] == {"y": 0.5, "x": 0.5}
    (note,) = fused.notes
    assert (note.code, note.count) == ("unknown-group", 1)
    assert note.text.startswith("1 of 2 queries are of no group that the model knows (new)")
    assert grouped_model().fuse(LISTS).notes[0].count == 2


def test_groups_for_a_model_that_has_none_are_refused():
    with pytest.raises(ModelError, match="this model has no weights by group"):
        replace(grouped_model(), groups=None).fuse(LISTS, groups={"q1": "id"})


def test_weights_of_a_group_fuse_to_the_bits_of_these_weights_alone():
    rng = np.random.default_rng(0)
    runs = [
        Run.from_dict({f"q{q}": {f"d{d}": float(rng.normal()) for d in range(9)} for q in range(5)}, name=name)
        for name in "ab"
    ]
    model = grouped_model()
    grouped = model.fuse(runs, groups=dict.fromkeys((f"q{q}" for q in range(5)), "id"))
    alone = replace(model, weights=(0.9, 0.1), groups=None).fuse(runs)
    assert grouped.score.tobytes() == alone.score.tobytes()
    assert grouped.doc.tolist() == alone.doc.tolist()


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("members", 0, "weights"), [0.5], "id: expected one weight per ranker, 2; found 1"),
        (("members", 0, "weights"), [0.5, 0.6], "id: expected weights >= 0 that sum to 1"),
        (("members", 0, "name"), "other", "expected different names"),
        (("rules", 0, "test"), "(x+)+", "groups.rules: .*repeated group"),
        (("source",), "column", 'what the source "column" needs'),
        (("source",), "magic", "groups.source"),
        (("members", 1, "online", "raw_weights"), [1.0], "other: online.raw_weights"),
    ],
)
def test_edited_groups_are_refused(path, value, fault):
    document = model_to_json(grouped_model())
    at = document["groups"]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(ModelError, match=fault):
        model_from_json(document)


def test_the_rule_for_ties_is_written_where_it_is_not_the_usual_one(tmp_path):
    usual, given = Normalizer("reciprocal"), Normalizer("reciprocal", ties="given")
    model = Model(("a", "b"), (0.5, 0.5), (usual, given), (None, None), "given", "AP")
    document = model_to_json(model)
    assert "ties" not in document["rankers"][0]["normalizer"]
    assert document["rankers"][1]["normalizer"]["ties"] == "given"
    assert model_from_json(document) == model
    document["rankers"][1]["normalizer"]["ties"] = "rank"
    with pytest.raises(ModelError, match=r'rankers\[1\]\.normalizer\.ties: expected "doc_id" or "given"'):
        model_from_json(document)
    document["rankers"][1]["normalizer"] |= {"ties": "given", "kind": "minmax"}
    with pytest.raises(ModelError, match="only rank and reciprocal read it"):
        model_from_json(document)
