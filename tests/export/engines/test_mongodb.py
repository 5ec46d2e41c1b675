import json

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model
from genm.normalizers import ENGINES, Normalizer

SCALER = ENGINES["mongodb-minmax"]


def test_scores_are_scaled_and_averaged() -> None:
    fused = simulated(model(SCALER), "mongodb", [{"a": 3.0, "b": 2.0, "c": 1.0}, {"c": 5.0, "d": 4.0}])
    assert fused == pytest.approx({"a": 0.175, "b": 0.0875, "c": 0.325, "d": 0.0})


def test_a_lone_hit_adds_nothing() -> None:
    assert simulated(model(SCALER), "mongodb", [{"a": 3.0}, {"b": 2.0, "c": 1.0}])["a"] == 0.0


def test_equal_scores_add_nothing() -> None:
    fused = simulated(model(SCALER), "mongodb", [{"a": 3.0, "b": 3.0}, {"b": 2.0, "c": 1.0}])
    assert fused == pytest.approx({"a": 0.0, "b": 0.325, "c": 0.0})


def test_sigmoid() -> None:
    fused = simulated(model(Normalizer("sigmoid")), "mongodb", [{"a": 0.0}, {}])
    assert fused == pytest.approx({"a": 0.35 * 0.5 / 2})


def test_the_stages() -> None:
    stages = json.loads(export_model(model(SCALER, depth=(20, 30)), "mongodb", settings={"size": "7"}).text)
    fusion = stages[0]["$scoreFusion"]
    assert fusion["input"]["normalization"] == "minMaxScaler"
    assert fusion["input"]["pipelines"]["bm25"][-1] == {"$limit": 20}
    assert fusion["input"]["pipelines"]["dense"][0]["$vectorSearch"]["limit"] == 30
    assert fusion["combination"]["weights"] == {"bm25": 0.35, "dense": 0.65}
    assert stages[1] == {"$limit": 7}


def test_names_that_mongodb_would_read_as_syntax() -> None:
    with pytest.raises(ExportError, match=r"does not start with \$"):
        export_model(model(SCALER, rankers=("$bm25", "dense")), "mongodb")
    with pytest.raises(ExportError, match=r"has no dot. Give bm25.run.name"):
        export_model(model(SCALER, rankers=("bm25.run", "dense")), "mongodb")
    stages = export_model(model(SCALER, rankers=("bm25.run", "dense")), "mongodb", settings={"bm25.run.name": "x"})
    assert '"x": 0.35' in stages.text


def test_a_pipeline_of_ones_own() -> None:
    said = {"bm25.query": '[{"$match": {"a": 1}}, {"$score": {"score": "$points"}}]'}
    stages = json.loads(export_model(model(SCALER), "mongodb", settings=said).text)
    assert stages[0]["$scoreFusion"]["input"]["pipelines"]["bm25"][0] == {"$match": {"a": 1}}
    with pytest.raises(ExportError, match="expected a JSON list of stages"):
        export_model(model(SCALER), "mongodb", settings={"bm25.query": "{}"})


@pytest.mark.filterwarnings("ignore")
def test_bson_takes_the_stages() -> None:
    bson = pytest.importorskip("bson", reason="pymongo is not installed")
    stages = json.loads(export_model(model(SCALER), "mongodb").text)
    assert bson.decode(bson.encode({"pipeline": stages}))["pipeline"] == stages
