import inspect
import json

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model, ranking
from genm.normalizers import Normalizer

MINMAX = Normalizer("minmax", constant="raw", constant_within=1e-6)


def test_scores_go_from_0_to_1_and_the_missing_get_nothing() -> None:
    lists = [{"a": 4.0, "b": 3.0, "c": 2.0}, {"b": 0.9, "d": 0.5}]
    fused = simulated(model(MINMAX), "elasticsearch", lists)
    assert fused == pytest.approx({"a": 0.35, "b": 0.35 * 0.5 + 0.65, "c": 0.0, "d": 0.0})


def test_a_lone_hit_keeps_its_raw_score() -> None:
    fused = simulated(model(MINMAX), "elasticsearch", [{"a": 14.0}, {"b": 0.9, "d": 0.5}])
    assert fused == pytest.approx({"a": 0.35 * 14.0, "b": 0.65, "d": 0.0})


def test_equal_scores_keep_their_raw_score_up_to_a_millionth() -> None:
    fused = simulated(model(MINMAX), "elasticsearch", [{"a": 2.0, "b": 2.0 + 4e-7}, {}])
    assert fused == pytest.approx({"a": 0.7, "b": 0.7})


def test_l2_divides_by_the_length_of_the_list() -> None:
    l2 = Normalizer("l2", constant="raw", constant_within=1e-6)
    fused = simulated(model(l2), "elasticsearch", [{"a": 3.0, "b": 4.0}, {"a": 0.0}])
    assert fused == pytest.approx({"a": 0.35 * 0.6, "b": 0.35 * 0.8})


def test_l2_of_one_hit_is_1_and_zeros_stay_zeros() -> None:
    l2 = Normalizer("l2", constant="raw", constant_within=1e-6)
    fused = simulated(model(l2), "elasticsearch", [{"a": 14.0}, {"b": 0.0, "c": 0.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.0, "c": 0.0})


def test_the_window_cuts_the_lists_and_the_result() -> None:
    lists = [{"a": 3.0, "b": 2.0, "c": 1.0}, {"c": 9.0, "d": 8.0, "e": 7.0}]
    fused = simulated(model(MINMAX, depth=2), "elasticsearch", lists, {"size": "1"})
    assert fused == pytest.approx({"c": 0.65, "a": 0.35})


def test_rrf_adds_weighted_reciprocal_ranks() -> None:
    made = model(Normalizer("reciprocal", k=1.0))
    fused = simulated(made, "elasticsearch-rrf", [{"a": 9.0, "b": 5.0}, {"b": 1.0}])
    assert fused == pytest.approx({"a": 0.35 / 2, "b": 0.35 / 3 + 0.65 / 2})


def test_the_request_names_every_normaliser_and_the_window() -> None:
    request = json.loads(export_model(model(MINMAX, depth=50), "elasticsearch").text)
    linear = request["retriever"]["linear"]
    assert [r["normalizer"] for r in linear["retrievers"]] == ["minmax", "minmax"]
    assert [r["weight"] for r in linear["retrievers"]] == [0.35, 0.65]
    assert linear["rank_window_size"] == 50
    assert linear["retrievers"][1]["retriever"]["knn"]["k"] == 50


def test_settings_reach_the_request() -> None:
    said = {
        "query": 'say "hi"',
        "size": "5",
        "bm25.field": "body",
        "dense.query": '{"term": {"tag": "x"}}',
    }
    request = json.loads(export_model(model(MINMAX), "elasticsearch", settings=said).text)
    first, second = request["retriever"]["linear"]["retrievers"]
    assert first["retriever"]["standard"]["query"]["match"] == {"body": 'say "hi"'}
    assert second["retriever"]["standard"]["query"] == {"term": {"tag": "x"}}
    assert request["size"] == 5


def test_more_results_than_the_window_are_refused() -> None:
    with pytest.raises(ExportError, match="size: expected at most rank_window_size"):
        export_model(model(MINMAX, depth=5), "elasticsearch")


def test_rank_constant_is_whole() -> None:
    with pytest.raises(ExportError, match=r"has k 60\.5, not a whole number from 1"):
        export_model(model(Normalizer("reciprocal", k=60.5)), "elasticsearch-rrf")


def test_a_scale_goes_into_the_weight() -> None:
    made = model([Normalizer("none", scale=0.1), Normalizer("none")])
    fused = simulated(made, "elasticsearch", [{"a": 10.0, "b": 30.0}, {"a": 2.0}])
    assert ranking(fused) == ["a", "b"]
    assert fused == pytest.approx({"a": 0.35 + 1.3, "b": 1.05})


@pytest.mark.filterwarnings("ignore")
def test_the_official_client_takes_the_request() -> None:
    client = pytest.importorskip("elasticsearch", reason="the elasticsearch client is not installed")
    accepted = inspect.signature(client.Elasticsearch.search).parameters
    request = json.loads(export_model(model(MINMAX), "elasticsearch").text)
    assert set(request) <= set(accepted)
