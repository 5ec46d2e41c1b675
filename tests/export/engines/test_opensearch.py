import json

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model
from genm.normalizers import ENGINES, Normalizer

MINMAX, L2, ZSCORE = ENGINES["opensearch-minmax"], ENGINES["opensearch-l2"], ENGINES["opensearch-zscore"]


def test_the_lowest_document_keeps_a_thousandth() -> None:
    fused = simulated(model(MINMAX), "opensearch", [{"a": 5.0, "b": 3.0, "c": 1.0}, {"c": 2.0, "d": 1.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.175, "c": 0.35 * 0.001 + 0.65, "d": 0.65 * 0.001})


def test_only_0_becomes_a_thousandth_not_what_is_close_to_it() -> None:
    fused = simulated(model(MINMAX), "opensearch", [{"a": 10_001.0, "b": 2.0, "c": 1.0}, {}])
    assert fused["b"] == pytest.approx(0.35 * 0.0001)
    assert fused["c"] == pytest.approx(0.35 * 0.001)


@pytest.mark.parametrize("target", ["opensearch", "opensearch-rrf"])
def test_a_score_of_0_counts_as_no_match(target: str) -> None:
    normalizer = MINMAX if target == "opensearch" else ENGINES["opensearch-rrf"]
    lists = [{"a": 2.0, "b": 1.0, "c": 0.0}, {"b": 3.0}]
    without = [{"a": 2.0, "b": 1.0}, {"b": 3.0}]
    assert simulated(model(normalizer), target, lists) == simulated(model(normalizer), target, without)


@pytest.mark.parametrize("scores", [{"a": 7.0}, {"a": 7.0, "b": 7.0}])
def test_equal_scores_or_one_hit_become_1(scores: dict[str, float]) -> None:
    fused = simulated(model(MINMAX), "opensearch", [scores, {}])
    assert fused == pytest.approx(dict.fromkeys(scores, 0.35))


def test_a_lower_bound_is_applied_to_scores_above_it() -> None:
    bounded = Normalizer("minmax", lower=2.0, lower_mode="within", floor=0.001, floor_at=0.0)
    fused = simulated(model([bounded, MINMAX]), "opensearch", [{"a": 6.0, "b": 4.0, "c": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.35 * 0.5, "c": 0.35 * 0.001})


def test_a_clipped_bound_floors_what_is_below() -> None:
    clipped = Normalizer(
        "minmax", lower=2.0, lower_mode="clip", upper=4.0, upper_mode="clip", floor=0.001, floor_at=0.0
    )
    fused = simulated(model([clipped, MINMAX]), "opensearch", [{"a": 6.0, "b": 3.0, "c": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.175, "c": 0.35 * 0.001})


def test_an_upper_bound_is_applied_to_scores_below_it() -> None:
    bounded = Normalizer("minmax", upper=11.0, upper_mode="within", floor=0.001, floor_at=0.0)
    fused = simulated(model([bounded, MINMAX]), "opensearch", [{"a": 21.0, "b": 6.0, "c": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.35 * 0.5, "c": 0.35 * 0.001})  # a lies beyond: its own end


def test_a_bound_beyond_the_whole_list_is_not_applied() -> None:
    bounded = Normalizer("minmax", lower=9.0, lower_mode="within", floor=0.001, floor_at=0.0)
    fused = simulated(model([bounded, MINMAX]), "opensearch", [{"a": 5.0, "b": 3.0, "c": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.35 * 0.5, "c": 0.35 * 0.001})


def test_bounds_are_written_for_every_sub_query() -> None:
    bounded = Normalizer("minmax", lower=0.0, lower_mode="within", floor=0.001, floor_at=0.0)
    request = json.loads(export_model(model([bounded, MINMAX]), "opensearch").text)
    processor = request["search_pipeline"]["phase_results_processors"][0]["normalization-processor"]
    assert processor["normalization"]["parameters"] == {
        "lower_bounds": [{"mode": "apply", "min_score": 0.0}, {"mode": "ignore"}]
    }


def test_a_bound_that_opensearch_does_not_take_is_refused() -> None:
    far = Normalizer("minmax", upper=20_000.0, upper_mode="clip", floor=0.001, floor_at=0.0)
    with pytest.raises(ExportError, match=r"the upper bound: expected -10000 to 10000.*found 20000"):
        export_model(model(far), "opensearch")


def test_z_scores_use_the_sample_deviation_and_are_cut_at_a_thousandth() -> None:
    fused = simulated(model(ZSCORE), "opensearch", [{"a": 6.0, "b": 2.0, "c": 1.0}, {}])
    deviation = ((3.0**2 + 1.0 + 2.0**2) / 2) ** 0.5
    assert fused == pytest.approx({"a": 0.35 * 3.0 / deviation, "b": 0.35 * 0.001, "c": 0.35 * 0.001})


def test_a_document_at_the_mean_gets_the_highest_raw_score() -> None:
    fused = simulated(model(ZSCORE), "opensearch", [{"a": 3.0, "b": 2.0, "c": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.35 * 3.0, "c": 0.35 * 0.001})


def test_z_scores_of_equal_scores_are_the_raw_scores() -> None:
    fused = simulated(model(ZSCORE), "opensearch", [{"a": 3.0, "b": 3.0}, {"c": 5.0}])
    assert fused == pytest.approx({"a": 1.05, "b": 1.05, "c": 3.25})


def test_l2_of_zeros_is_0() -> None:
    fused = simulated(model(L2), "opensearch", [{"a": 0.0}, {"a": 3.0, "b": 4.0}])
    assert fused == pytest.approx({"a": 0.65 * 0.6, "b": 0.65 * 0.8})


def test_a_negative_score_counts_neither_in_the_sum_nor_in_the_weights() -> None:
    fused = simulated(model(L2), "opensearch", [{"a": -3.0, "b": 4.0}, {"a": 5.0}])
    assert fused == pytest.approx({"a": 1.0, "b": 0.35 * 0.8})


def test_rrf() -> None:
    made = model(Normalizer("reciprocal", k=60.0), depth=2)
    fused = simulated(made, "opensearch-rrf", [{"a": 3.0, "b": 2.0, "c": 1.0}, {"b": 1.0}])
    assert fused == pytest.approx({"a": 0.35 / 61, "b": 0.35 / 62 + 0.65 / 61})


def test_weights_sum_to_1_and_lie_between_0_and_1() -> None:
    request = json.loads(export_model(model(MINMAX, weights=(2.0, 6.0)), "opensearch").text)
    combination = request["search_pipeline"]["phase_results_processors"][0]["normalization-processor"][
        "combination"
    ]
    assert combination["parameters"]["weights"] == [0.25, 0.75]


def test_the_pipeline_can_be_written_alone() -> None:
    pipeline = json.loads(export_model(model(MINMAX), "opensearch", settings={"form": "pipeline"}).text)
    assert set(pipeline) == {"description", "phase_results_processors"}


def test_six_rankers_are_too_many() -> None:
    made = model(MINMAX, weights=(0.3, 0.2, 0.2, 0.1, 0.1, 0.1), rankers=tuple("abcdef"))
    with pytest.raises(ExportError, match="at most 5 rankers and the model has 6; f would be left out"):
        export_model(made, "opensearch")
    exported = export_model(made, "opensearch", approximate=True)
    assert "f would be left out" in exported.notes[0].text
    assert len(json.loads(exported.text)["query"]["hybrid"]["queries"]) == 5


def test_one_technique_for_all_rankers() -> None:
    with pytest.raises(ExportError, match="cannot be combined"):
        export_model(model([MINMAX, L2]), "opensearch")
    exported = export_model(model([MINMAX, L2]), "opensearch", approximate=True)
    assert '"technique": "l2"' in exported.text  # that of the heavier ranker


@pytest.mark.filterwarnings("ignore")
def test_the_official_schema_knows_every_word_of_the_query() -> None:
    schemas = pytest.importorskip(
        "opensearch.protobufs.schemas.common_pb2", reason="opensearch-py is not installed"
    )
    request = json.loads(export_model(model(MINMAX), "opensearch").text)

    def known(words: object, message: str) -> bool:
        return set(words) <= {field.name for field in getattr(schemas, message).DESCRIPTOR.fields}  # type: ignore[call-overload]

    hybrid = request["query"]["hybrid"]
    words, nearest = hybrid["queries"]
    assert known(request, "SearchRequestBody")
    assert known(request["query"], "QueryContainer")
    assert known(hybrid, "HybridQuery")
    assert known(words["match"]["text"], "MatchQuery")
    assert known(nearest["knn"]["embedding"], "KnnQuery")
    assert not known({"paginationdepth": 1}, "HybridQuery")


@pytest.mark.filterwarnings("ignore")
def test_the_official_client_sends_the_request() -> None:
    opensearchpy = pytest.importorskip("opensearchpy", reason="opensearch-py is not installed")
    sent = []

    class Recorder(opensearchpy.Transport):  # type: ignore[misc, name-defined]
        def perform_request(self, method: str, url: str, **details: object) -> dict[str, object]:
            sent.append((method, url, details.get("body")))
            return {}

    client = opensearchpy.OpenSearch(transport_class=Recorder)
    request = json.loads(export_model(model(MINMAX), "opensearch").text)
    client.search(index="articles", body=request)
    pipeline = json.loads(export_model(model(MINMAX), "opensearch", settings={"form": "pipeline"}).text)
    client.search_pipeline.put(id="learned", body=pipeline)
    assert sent == [("POST", "/articles/_search", request), ("PUT", "/_search/pipeline/learned", pipeline)]
