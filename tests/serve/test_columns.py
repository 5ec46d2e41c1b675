"""Columnar bodies read as bytes give the answers of the general way, to the bit, and the same refusals."""

import json

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from serve.cases import RANKERS

from genm.model import Model
from genm.normalizers import Normalizer
from genm.serve.bodies import Body
from genm.serve.columns import ColumnReader, TextIds
from genm.serve.fusion import Fusion
from genm.serve.messages import FuseRequest

FREE_OF_ORDER = ("none", "minmax", "max", "atan", "sigmoid")
plain_ids = st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1, max_size=3)
numbers = st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6)
plain_lists = st.dictionaries(plain_ids, numbers, min_size=1, max_size=12)


def columns(runs):
    return {name: {"doc_ids": list(one), "scores": list(one.values())} for name, one in runs.items()}


@given(
    st.lists(st.sampled_from(FREE_OF_ORDER), min_size=3, max_size=3),
    st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    st.fixed_dictionaries(dict.fromkeys(RANKERS, plain_lists)),
)
def test_the_documents_and_scores_are_those_of_the_general_way(kinds, weights, runs):
    model = Model(RANKERS, tuple(weights), tuple(map(Normalizer, kinds)), (None, 12, None), "given", "AP")
    content = msgspec.json.encode({"runs": columns(runs)})
    fusion = Fusion(model)
    found = ColumnReader(fusion).read(content)
    assert (found is None) == (b"\\" in content), "an id with a quote or a backslash is not plain"
    if found is None:
        return
    _, query = found
    general = fusion.join(Body(FuseRequest).read(content).runs)
    (order, fused), (expected_order, expected) = (one.fuse(np.array(weights)) for one in (query, general))
    assert isinstance(query.doc_ids, TextIds)
    assert query.doc_ids_of(order) == general.doc_ids_of(expected_order)
    assert json.loads(bytes(query.doc_ids.encoded(order))) == general.doc_ids_of(expected_order)
    assert fused[order].tobytes() == expected[expected_order].tobytes()
    assert list(query.doc_ids) == list(general.doc_ids)
    assert query.doc_ids[1:] == list(general.doc_ids)[1:]


PLAIN = {name: {"d1": 3.0, "d:2": 2.0, "d3": 1.0} for name in RANKERS}


def read(model_changes=None, **changes):
    settings = {"normalizers": (Normalizer(),) * 3, "depths": (None,) * 3, **(model_changes or {})}
    model = Model(RANKERS, (0.2, 0.3, 0.5), settings["normalizers"], settings["depths"], "given", "AP")
    body = {"runs": columns(PLAIN), **changes}
    return ColumnReader(Fusion(model)).read(msgspec.json.encode(body))


def test_plain_bodies_are_read_as_bytes():
    assert read() is not None
    assert read(top=2, explain=True, query_id="q", weights={"bm25": 1.0}) is not None
    assert read({"depths": (3, 4, None)}) is not None
    assert read(rankers=["bm25", "dense", "sparse"]) is not None


@pytest.mark.parametrize(
    ("model_changes", "changes"),
    [
        ({"normalizers": (Normalizer("zscore"),) * 3}, {}),
        ({"normalizers": (Normalizer(), Normalizer(), Normalizer("reciprocal", ties="given"))}, {}),
        ({"depths": (2, None, None)}, {}),
        ({}, {"rankers": ["bm25"]}),  # the lists of the others are looked at, too
        ({}, {"runs": columns({**PLAIN, "dense": {"é": 1.0}})}),
        ({}, {"runs": columns({**PLAIN, "dense": {'"': 1.0}})}),
        ({}, {"runs": columns({**PLAIN, "dense": {"x" * 513: 1.0}})}),
        ({}, {"runs": columns({**PLAIN, "dense": {}})}),
        ({}, {"runs": {**columns(PLAIN), "dense": [["d1", 1.0]]}}),
        ({}, {"runs": columns({"bm25": PLAIN["bm25"]})}),
        ({}, {"unknown": 1}),
    ],
)
def test_everything_else_is_left_to_the_general_way(model_changes, changes):
    assert read(model_changes, **changes) is None


ASCII_BODY = {"runs": columns(PLAIN), "query_id": "q"}


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"top": 2}, {"explain": True}, {"weights": {"bm25": 0.5, "dense": 0.5, "sparse": -0.5}}, {"version": 1},
        {"weights": {"bm25": 0.0, "dense": 0.0, "sparse": 0.0}}, {"version": 9},
    ],
)  # fmt: skip
def test_the_service_answers_the_same_for_ids_that_are_not_plain(service, changes):
    """The same lists with ids beyond ASCII take the general way; only the ids differ."""
    plain = service.post("/v1/fuse", {**ASCII_BODY, **changes})
    other = {name: {doc.replace("d", "δ"): score for doc, score in one.items()} for name, one in PLAIN.items()}
    general = service.post("/v1/fuse", {**ASCII_BODY, **changes, "runs": columns(other)})
    assert plain.status_code == general.status_code
    assert plain.text.replace("d1", "δ1").replace("d:2", "δ:2").replace("d3", "δ3") == general.text


@pytest.mark.parametrize(
    ("wrong", "place", "message"),
    [
        ({"doc_ids": ["a", "a"], "scores": [1, 2]}, "body.runs.dense", "each document once"),
        ({"doc_ids": ["a"], "scores": [1, 2]}, "body.runs.dense", "as many scores as doc_ids"),
        ({"doc_ids": [], "scores": []}, "body.runs.dense", "at least one document"),
        ({"doc_ids": [1], "scores": [1]}, "body.runs[...].doc_ids[0]", "a string"),
        ({"doc_ids": [""], "scores": [1]}, "body.runs[...].doc_ids[0]", "length"),
        ({"doc_ids": {"a": 1}, "scores": [1]}, "body.runs[...].doc_ids", "an array"),
        ({"doc_ids": ["a"], "scores": ["1"]}, "body.runs[...].scores[0]", "a number"),
        ({"doc_ids": ["a"]}, "body.runs[...]", "'scores'"),
    ],
)
def test_faults_of_columns_are_named(service, wrong, place, message):
    answer = service.post("/v1/fuse", {"runs": {**columns(PLAIN), "dense": wrong}})
    fault = answer.json()["error"]
    assert (answer.status_code, fault["place"]) == (422, place)
    assert message in fault["message"]


def test_broken_text_inside_ids_is_refused(service):
    body = msgspec.json.encode(ASCII_BODY).replace(b'"d1"', b'"d\xff"')
    assert service.post("/v1/fuse", body).status_code == 400
    body = msgspec.json.encode(ASCII_BODY).replace(b'"d1"', b'"d\x01"')
    assert service.post("/v1/fuse", body).status_code == 400
