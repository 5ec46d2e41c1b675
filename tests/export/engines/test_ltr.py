import json

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model
from genm.normalizers import Normalizer

FIXED = Normalizer("affine", lower=0.0, upper=25.0)


def test_every_candidate_has_every_feature() -> None:
    fused = simulated(model([FIXED, Normalizer("none")], depth=None), "ltr", [{"a": 25.0, "b": 5.0}, {"b": 1.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.35 * 0.2 + 0.65})


def test_the_model_is_written_with_its_normalisers() -> None:
    made = model([FIXED, Normalizer("none", scale=2.0)], depth=None)
    body = json.loads(export_model(made, "ltr", settings={"name": "mine", "dense.feature": "cos"}).text)["model"]
    assert body["name"] == "mine"
    assert body["model"]["type"] == "model/linear"
    assert body["model"]["feature_normalizers"] == {"bm25": {"min_max": {"minimum": 0.0, "maximum": 25.0}}}
    assert json.loads(body["model"]["definition"]) == {"bm25": 0.35, "cos": 1.3}


def test_negative_weights_pass() -> None:
    made = model(FIXED, weights=(1.5, -0.5), depth=None)
    assert json.loads(export_model(made, "ltr").document["model"]["model"]["definition"])["dense"] == -0.5


def test_cut_lists_are_refused() -> None:
    with pytest.raises(ExportError, match=r"scores every candidate by every ranker.*cut at 100"):
        export_model(model(FIXED), "ltr")


def test_what_a_missing_document_got_must_be_what_0_becomes() -> None:
    with pytest.raises(ExportError, match=r"normalised -0\.5, not 0\.0.*fit again with missing -0.5"):
        export_model(model(Normalizer("affine", lower=5.0, upper=15.0), depth=None), "ltr")
    fits = Normalizer("affine", lower=5.0, upper=15.0, missing=-0.5)
    fused = simulated(model(fits, depth=None), "ltr", [{"a": 10.0}, {"b": 15.0}])
    assert fused == pytest.approx({"a": 0.35 * 0.5 - 0.65 * 0.5, "b": -0.35 * 0.5 + 0.65})


def test_features_have_different_names() -> None:
    with pytest.raises(ExportError, match="expected different names"):
        export_model(model(FIXED, depth=None), "ltr", settings={"bm25.feature": "x", "dense.feature": "x"})
