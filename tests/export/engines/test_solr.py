import json

import pytest
from export.cases import model, simulated

from genm.export import export_model
from genm.normalizers import Normalizer

FIXED = Normalizer("affine", lower=0.0, upper=4.0)


def test_features_are_scaled_by_fixed_bounds() -> None:
    fused = simulated(model(FIXED, depth=None), "solr", [{"a": 4.0, "b": 2.0}, {"b": 8.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.175 + 1.3})


def test_nothing_is_clipped_and_a_missing_feature_is_0() -> None:
    fixed = Normalizer("affine", lower=2.0, upper=4.0, missing=-1.0)
    fused = simulated(model([fixed, FIXED], depth=None), "solr", [{"a": 6.0}, {"a": -4.0, "b": 4.0}])
    assert fused == pytest.approx({"a": 0.35 * 2.0 - 0.65, "b": -0.35 + 0.65})


def test_the_model_names_store_features_and_weights() -> None:
    body = json.loads(export_model(model(FIXED, depth=None), "solr", settings={"store": "articles"}).text)
    assert body["class"] == "org.apache.solr.ltr.model.LinearModel"
    assert body["store"] == "articles"
    assert [f["name"] for f in body["features"]] == list(body["params"]["weights"]) == ["bm25", "dense"]
    assert body["features"][0]["norm"]["params"] == {"min": "0.0", "max": "4.0"}
