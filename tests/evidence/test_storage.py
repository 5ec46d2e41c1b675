"""The file beside a model."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up

from genm.errors import ModelError
from genm.evaluate import parse_measure
from genm.evidence import (
    Kept,
    evidence_path,
    fingerprint,
    gather_evidence,
    keep_evidence,
    load_evidence,
    mismatch,
    save_evidence,
    with_evidence,
)
from genm.evidence.storage import evidence_from_json, evidence_to_json
from genm.learn import BoostFuser


@pytest.fixture(scope="module")
def kept() -> Kept:
    aligned = made_up(0, n_queries=20)
    fuser, found = gather_evidence(aligned, BoostFuser, parse_measure("AP"), folds=4)
    return keep_evidence(aligned, fuser, found)


@pytest.fixture(scope="module")
def document(kept) -> dict:
    return evidence_to_json(kept)


def test_it_comes_back_to_the_bit(kept, tmp_path) -> None:
    save_evidence(kept, tmp_path / "m.evidence.json")
    back = load_evidence(tmp_path / "m.evidence.json")
    assert evidence_to_json(back) == evidence_to_json(kept)
    assert back.evidence.held_out.mean == kept.evidence.held_out.mean
    assert back.evidence.verdict() == kept.evidence.verdict()
    assert back.evidence.fold_normalizers == kept.evidence.fold_normalizers
    assert back.refits.weights.tobytes() == kept.refits.weights.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["m.evidence.json"]


def test_a_file_of_version_1_is_read_and_its_gains_are_computed_as_today(kept, document) -> None:
    """It let each fold choose the best single ranker, had bootstrap intervals, and no gains over each ranker."""
    gain = {key: value for key, value in document["gains"]["uniform weights"].items() if key != "outcome"}
    names = ("best single ranker", "uniform weights", "RRF (k=60)")
    old = {key: value for key, value in document.items() if key != "unjudged"}
    old |= {"version": 1, "best_single": [0.5] * 20, "interval": [0.0, 1.0], "gains": dict.fromkeys(names, gain)}
    back = evidence_from_json(json.loads(json.dumps(old)))
    assert back.evidence.gains == kept.evidence.gains
    assert back.evidence.interval == kept.evidence.interval
    assert back.evidence.unjudged is None
    assert evidence_to_json(back) == {**document, "unjudged": None}
    assert "it is of version 1 and does not hold" in back.lacks


def test_a_file_of_version_2_is_read_and_says_what_it_lacks(kept, document) -> None:
    """It had the held-out values without each ranker, and no training values, which their intervals need."""
    rows = [[0.5] * 20] * 4
    old = {key: value for key, value in document.items() if key != "without_training"}
    back = evidence_from_json({**old, "version": 2, "without": rows})
    assert back.evidence.gains == kept.evidence.gains
    assert back.without is None
    assert "it is of version 2 and does not hold what the intervals of the losses" in back.lacks
    training = [[0.6] * 20, *rows[1:]]
    today = evidence_from_json({**document, "without": rows, "without_training": training})
    assert (today.without.training.tolist(), today.lacks) == (training, "")


def test_skipped_refits_come_back_too(kept, tmp_path) -> None:
    none = np.zeros((0, 3))
    skipped = kept.refits._replace(weights=none, before=none, kind="none", note="Skipped.")
    save_evidence(replace(kept, refits=skipped), tmp_path / "m.json")
    assert load_evidence(tmp_path / "m.json").refits.weights.shape == (0, 3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(), min_size=20, max_size=20, unique=True))
def test_any_ids_survive(kept, ids) -> None:
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        return
    renamed = replace(kept, evidence=replace(kept.evidence, query_ids=tuple(ids)))
    back = evidence_from_json(json.loads(json.dumps(evidence_to_json(renamed), ensure_ascii=False)))
    assert back.evidence.query_ids == tuple(ids)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "genm-model", "This is not evidence written by genm"),
        (("version",), 4, "expected evidence version 3; found 4"),
        (("version",), 1, "expected best_single and gains"),
        (("without",), [[0.5] * 20] * 3, "without: expected 4 rows; found 3"),
        (("without",), [[0.5] * 20] * 4, "without_training: expected 4 rows; found 0"),
        (("best_ranker",), "r9", "best_ranker: expected one of r0, r1, r2; found r9"),
        (("gains", "r1", "outcome"), "good", 'gains["r1"].outcome: expected '),
        (("held_out",), [0.5], "held_out: expected 20 numbers; found 1"),
        (("held_out",), [True] * 20, "held_out[0]: expected a finite number; found true"),
        (("held_out",), ["0.5"] * 20, 'held_out[0]: expected a finite number; found "0.5"'),
        (("held_out",), [1e999] * 20, "held_out[0]: expected a finite number; found Infinity"),
        (("fold",), [9] * 20, "fold: expected numbers of the 4 folds, from 0, for at least one query; found [9]"),
        (("singles",), {}, "singles: expected r0, r1, r2; found"),
        (("rankers",), [1, 2, 3], "rankers[0]: expected a string; found 1"),
        (("refits", "kind"), "jackknife", 'refits.kind: expected "bootstrap" or "none"; found "jackknife"'),
        (("refits", "before"), [], "refits.before: expected 20 rows; found 0"),
        (("fewer", "per_query"), 1, "fewer.per_query: expected a list; found 1"),
        (("gains", "uniform weights", "low"), None, 'gains["uniform weights"].low: expected a finite number'),
        (("folds", 0, "normalizers", 0, "kind"), "maxmin", 'folds[0].normalizers[0].kind: expected "none" or'),
        (("fold",), [0.5] * 20, "fold[0]: expected an integer from 0 to 2^63 - 1; found 0.5"),
        (("interval",), [0.1, 0.2, 0.3], "interval: expected two numbers; found a list of 3"),
        (("measure",), "quality", "evidence: measure: "),
        (("folds", 0, "weights"), [1.0], "folds[0].weights: expected 3 numbers; found 1"),
        (("gains", "uniform weights", "n_better"), -1, "n_better: expected an integer from 0"),
        (("refits", "weights", 0), [1.0], "refits.weights[0]: expected 3 numbers; found 1"),
        (("surplus",), 1, "unknown key 'surplus'"),
    ],
)
def test_anything_else_is_refused(document, path, value, message) -> None:
    broken = copy.deepcopy(document)
    inner = broken
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ModelError) as error:
        evidence_from_json(broken)
    assert message in str(error.value)


@pytest.mark.parametrize("key", ["fingerprint", "weights", "query_ids", "gains", "fewer", "confidence"])
def test_every_key_is_asked_for(document, key) -> None:
    with pytest.raises(ModelError, match=f'expected the key "{key}"'):
        evidence_from_json({k: v for k, v in document.items() if k != key})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "m.json:1: expected JSON"),
        (b"\xff{", "expected UTF-8 JSON"),
        (b"[]", "expected an object; found a list of 0"),
        (b'{"a": [' * 100_000, "expected evidence; found lists or objects nested too deeply"),
        (b'{"seed": 1e400}', "m.json:1: expected numbers that fit 64 bits; found 1e400"),
        (b'{"seed": ' + b"1" * 5000 + b"}", "5,000 characters"),
        (b'{"seed": 0, "seed": 1}', "expected each key once; found 'seed' twice"),
    ],
)
def test_files_that_are_no_evidence(tmp_path, text, message) -> None:
    (tmp_path / "m.json").write_bytes(text)
    with pytest.raises(ModelError) as error:
        load_evidence(tmp_path / "m.json")
    assert message in str(error.value)
    with pytest.raises(ModelError, match="cannot be read"):
        load_evidence(tmp_path / "none.json")


def test_whose_it_is() -> None:
    aligned = made_up(0, n_queries=20)
    fuser, found = gather_evidence(aligned, BoostFuser, parse_measure("AP"), folds=4)
    kept = keep_evidence(aligned, fuser, found)
    model, own = with_evidence(fuser.to_model(), aligned, found), fingerprint(aligned)
    assert mismatch(kept, model, own) is None
    assert mismatch(kept, model, fingerprint(made_up(1, n_queries=20))) == (
        "it is of other runs, judgments or query weights"
    )
    assert mismatch(kept, replace(model, weights=(1.0, 0.0, 0.0)), own) == "it is of other weights"
    assert "measured in AP" in mismatch(kept, replace(model, measure="nDCG@10"), own)
    assert "of the rankers r0, r1, r2" in mismatch(kept, replace(model, rankers=("a", "b", "c")), own)


@pytest.mark.parametrize(
    ("model", "evidence"),
    [("a/model.json", "a/model.evidence.json"), ("best", "best.evidence.json"), ("m.v2", "m.v2.evidence.json")],
)
def test_it_lies_beside_the_model(model, evidence) -> None:
    assert evidence_path(model).as_posix() == evidence
