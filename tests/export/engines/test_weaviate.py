import inspect

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model
from genm.normalizers import Normalizer

RELATIVE = Normalizer("minmax")


def test_lists_are_scaled_and_blended_by_alpha() -> None:
    fused = simulated(model(RELATIVE), "weaviate", [{"a": 11.0, "b": 6.0, "c": 1.0}, {"c": 0.9, "d": 0.1}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.175, "c": 0.65, "d": 0.0})


def test_a_lone_hit_becomes_1() -> None:
    assert simulated(model(RELATIVE), "weaviate", [{"a": 11.0}, {}]) == pytest.approx({"a": 0.35})


def test_equal_scores_become_1() -> None:
    fused = simulated(model(RELATIVE), "weaviate", [{"a": 2.0, "b": 2.0}, {"b": 0.3}])
    assert fused == pytest.approx({"a": 0.35, "b": 1.0})


def test_ranked_fusion_counts_from_0_with_60() -> None:
    made = model(Normalizer("reciprocal", k=59.0))
    fused = simulated(made, "weaviate", [{"a": 2.0, "b": 1.0}, {"b": 1.0}])
    assert fused == pytest.approx({"a": 0.35 / 60, "b": 0.35 / 61 + 0.65 / 60})
    assert "HybridFusion.RANKED" in export_model(made, "weaviate").text


def test_alpha_is_the_share_of_the_vector_whatever_its_place() -> None:
    made = model(RELATIVE, weights=(0.8, 0.2), rankers=("dense", "bm25"))
    assert "alpha=0.8," in export_model(made, "weaviate").text


def test_two_rankers_one_of_each_kind() -> None:
    with pytest.raises(ExportError, match="exactly 2 rankers; the model has 1"):
        export_model(model(RELATIVE, weights=(1.0,), rankers=("bm25",)), "weaviate")
    with pytest.raises(ExportError, match="one text and one vector query; found bm25: text, splade: text"):
        export_model(model(RELATIVE, rankers=("bm25", "splade")), "weaviate")


def test_the_window_is_100() -> None:
    with pytest.raises(ExportError, match="window is at most 100 and bm25 has 200"):
        export_model(model(RELATIVE, depth=200), "weaviate")
    with pytest.raises(ExportError, match=r"size: expected at most what Weaviate fuses \(100\); found 101"):
        export_model(model(RELATIVE), "weaviate", settings={"size": "101"})
    with pytest.raises(ExportError, match="window is at least 100 and bm25 has 50"):
        export_model(model(RELATIVE, depth=50), "weaviate")


@pytest.mark.filterwarnings("ignore")
def test_the_official_client_knows_every_argument() -> None:
    pytest.importorskip("weaviate", reason="weaviate-client is not installed")
    from weaviate.classes.query import HybridFusion
    from weaviate.collections.queries.hybrid.query.sync import _HybridQuery

    calls = []

    class Query:
        def hybrid(self, **given: object) -> None:
            inspect.signature(_HybridQuery.hybrid).bind(self, **given)
            calls.append(given)

    class Collection:
        query = Query()

    space: dict[str, object] = {}
    text = export_model(model(RELATIVE), "weaviate", settings={"dense.target": "title"}).text
    exec(compile(text, "exported", "exec"), space)
    space["search"](Collection(), "words", [0.1, 0.2])  # type: ignore[operator]
    assert calls == [
        {
            "query": "words",
            "vector": [0.1, 0.2],
            "alpha": 0.65,
            "fusion_type": HybridFusion.RELATIVE_SCORE,
            "query_properties": ["text"],
            "target_vector": "title",
            "limit": 10,
        }
    ]
