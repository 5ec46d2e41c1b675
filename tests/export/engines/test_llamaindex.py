from typing import Any

import pytest
from export.cases import loaded, model, own_fusion, simulated, some_lists

from genm.export import export_model, ranking
from genm.normalizers import Normalizer

RELATIVE, DISTANCE = Normalizer("minmax"), Normalizer("zscore", scale=1 / 6, shift=0.5)


def test_llamaindex_scales_each_list() -> None:
    fused = simulated(model(RELATIVE), "llamaindex", [{"a": 3.0, "b": 1.0}, {"b": 9.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.65})


def test_llamaindex_gives_equal_scores_and_a_lone_hit_1() -> None:
    for normalizer in (RELATIVE, DISTANCE):
        fused = simulated(model(normalizer), "llamaindex", [{"a": 3.0, "b": 3.0}, {"b": 0.5}])
        assert fused == pytest.approx({"a": 0.35, "b": 1.0})


def test_llamaindex_gives_equal_scores_that_are_not_above_0_nothing() -> None:
    assert simulated(model(RELATIVE), "llamaindex", [{"a": -3.0}, {}]) == {"a": 0.0}


def test_llamaindex_by_distance_from_the_mean() -> None:
    fused = simulated(model(DISTANCE), "llamaindex", [{"a": 3.0, "b": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35 * 4 / 6, "b": 0.35 * 2 / 6})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("normalizer", [RELATIVE, DISTANCE])
def test_llamaindex_itself(normalizer: Normalizer) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(BaseRetriever):
        def __init__(self, scores: dict[str, float]) -> None:
            self.scores = scores
            super().__init__()

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_=doc, text=doc), score=s) for doc, s in self.scores.items()]

    made, given = model(normalizer), some_lists()
    retrievers = {name: Fixed(scores) for name, scores in zip(made.rankers, given, strict=True)}
    make = loaded(export_model(made, "llamaindex").text)["learned_retriever"]
    found = make(retrievers, similarity_top_k=30).retrieve("query")
    ours = own_fusion(made, [given])[0]
    assert {node.node.node_id: node.score for node in found} == pytest.approx(ours)
    assert [node.node.node_id for node in found] == ranking(ours)
