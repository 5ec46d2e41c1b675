"""The service fuses by the weights of the query's group, or by the model's gate."""

import random

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import numpy as np
from problems import two_kinds
from serve.cases import RANKERS, lists, model

from genm.grouping import parse_grouping
from genm.learn import learn_gate
from genm.model import Groups, GroupWeights
from genm.read import run_from_dict

RUNS = lists(random.Random(5))
MEMBERS = (GroupWeights("id", (0.8, 0.1, 0.1)), GroupWeights("other", (0.1, 0.1, 0.8)))


def fused_by_model(given, **known):
    runs = {name: run_from_dict({"q": dict(rows)}, name=name) for name, rows in RUNS.items()}
    return [[doc, score] for doc, score in given.fuse(runs, **known)["q"].items()]


def test_the_group_is_given_or_found_by_rules(start):
    given = model(groups=Groups(parse_grouping("id: ^[A-Z0-9-]+$"), MEMBERS))
    service = start(given=given)
    answer = service.post("/v1/fuse", {"runs": RUNS, "text": "AB-12"}).json()
    assert answer["group"] == "id"
    assert answer["results"] == fused_by_model(given, queries={"q": "AB-12"})
    other = service.post("/v1/fuse", {"runs": RUNS, "text": "what is it", "columns": {"lang": "en"}}).json()
    assert other["group"] == "other"
    assert service.post("/v1/fuse", {"runs": RUNS, "group": "other"}).json() == other
    for body in ({}, {"group": "new"}, {"version": 1, "group": "id"}):
        answer = service.post("/v1/fuse", {"runs": RUNS, **body}).json()
        assert "group" not in answer
        assert answer["results"] == fused_by_model(model())
    own = {"weights": {"bm25": 1, "dense": 0, "sparse": 0}, "group": "id"}
    assert service.post("/v1/fuse", {"runs": RUNS, **own}).json()["results"] == fused_by_model(
        model(weights=(1.0, 0.0, 0.0))
    )


def test_the_gate_is_applied(start):
    aligned, _, texts = two_kinds()
    gate = learn_gate(aligned, np.full(len(RANKERS), 1 / 3), queries=texts).gate
    given = model(gate=gate)
    service = start(given=given)
    answer = service.post("/v1/fuse", {"runs": RUNS, "text": "AB-12"}).json()
    assert [doc for doc, _ in answer["results"]] == [
        doc for doc, _ in fused_by_model(given, queries={"q": "AB-12"})
    ]
    assert answer["results"] != service.post("/v1/fuse", {"runs": RUNS, "version": 1}).json()["results"]
