import json

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model, measured_loss
from genm.normalizers import Normalizer
from genm.read import run_from_dict

RRF = Normalizer("reciprocal", k=60.0)


def test_the_vectors_weight_is_relative_to_the_text() -> None:
    request = json.loads(export_model(model(RRF, depth=(1000, 50)), "azure").text)
    assert request["vectorQueries"][0]["weight"] == pytest.approx(0.65 / 0.35)
    assert request["vectorQueries"][0]["k"] == 50
    assert "hybridSearch" not in request


def test_another_text_window_needs_the_preview_parameter() -> None:
    request = json.loads(export_model(model(RRF), "azure").text)
    assert request["hybridSearch"] == {"maxTextRecallSize": 100}


def test_ranks_are_fused_with_60() -> None:
    fused = simulated(model(RRF), "azure", [{"a": 2.0, "b": 1.0}, {"b": 1.0}])
    ratio = 0.65 / 0.35
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + ratio / 61})


def test_the_text_ranker_may_come_last() -> None:
    made = model(RRF, rankers=("dense", "bm25"), weights=(0.65, 0.35))
    fused = simulated(made, "azure", [{"b": 1.0}, {"a": 2.0, "b": 1.0}])
    assert fused["a"] == pytest.approx(1 / 61)


def test_weights_are_above_0_and_the_constant_is_60() -> None:
    with pytest.raises(ExportError, match=r"weights above 0 \(dense\)"):
        export_model(model(RRF, weights=(1.5, -0.5)), "azure")
    with pytest.raises(ExportError, match="has k 20, not 60"):
        export_model(model(Normalizer("reciprocal", k=20.0)), "azure")


def test_a_ranker_of_weight_0_is_left_out_and_the_rest_ranks_the_same() -> None:
    made = model(RRF, weights=(0.0, 0.7, 0.3), rankers=("bm25", "dense", "title"))
    said = {"bm25.field": "body", "title.field": "title"}
    exported = export_model(made, "azure", settings=said)
    request = json.loads(exported.text)
    assert (request["search"], request["searchFields"]) == ("QUERY", "title")
    assert [query["weight"] for query in request["vectorQueries"]] == [pytest.approx(0.7 / 0.3)]
    assert exported.notes[0].text.startswith("bm25: left out, since the weight is 0")
    lists = [{"x": 9.0, "a": 1.0}, {"a": 2.0, "b": 1.0}, {"b": 3.0}]
    runs = {name: run_from_dict({"q": of}, name=name) for name, of in zip(made.rankers, lists, strict=True)}
    assert measured_loss(made, "azure", runs, at=2).share == 0.0


def test_one_text_query() -> None:
    with pytest.raises(ExportError, match="has one text query; found bm25, title"):
        export_model(model(RRF, rankers=("bm25", "title")), "azure")


@pytest.mark.filterwarnings("ignore")
def test_the_official_models_read_the_request() -> None:
    models = pytest.importorskip("azure.search.documents.models", reason="azure-search-documents is not installed")
    query = json.loads(export_model(model(RRF), "azure").text)["vectorQueries"][0]
    read = models.VectorizedQuery(query)
    assert (read.weight, read.fields, read.vector) == (query["weight"], "embedding", [0.1, 0.2, 0.3])
