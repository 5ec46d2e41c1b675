"""LangChain, LlamaIndex and Haystack: hand-worked cases, and the frameworks themselves where installed."""

import random
from typing import Any

import pytest
from export.cases import ExportError, model, own_fusion, simulated

from genm.export import export_model, ranking
from genm.records import Normalizer

RRF, RELATIVE = Normalizer("reciprocal", k=60.0), Normalizer("minmax")
DISTANCE = Normalizer("zscore", scale=1 / 6, shift=0.5)


def lists() -> list[dict[str, float]]:
    draw = random.Random(5)
    return [{f"d{i}": draw.uniform(1, 9) for i in draw.sample(range(20), 12)} for _ in range(2)]


def loaded(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), space)
    return space


def test_langchain_adds_weighted_reciprocal_ranks() -> None:
    fused = simulated(model(Normalizer("reciprocal", k=1.0)), "langchain", [{"a": 2.0, "b": 1.0}, {"b": 3.0}])
    assert fused == pytest.approx({"a": 0.35 / 2, "b": 0.35 / 3 + 0.65 / 2})


def test_llamaindex_scales_each_list() -> None:
    fused = simulated(model(RELATIVE), "llamaindex", [{"a": 3.0, "b": 1.0}, {"b": 9.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.65})


def test_llamaindex_gives_equal_scores_that_are_not_above_0_nothing() -> None:
    assert simulated(model(RELATIVE), "llamaindex", [{"a": -3.0}, {}]) == {"a": 0.0}


def test_llamaindex_by_distance_from_the_mean() -> None:
    fused = simulated(model(DISTANCE), "llamaindex", [{"a": 3.0, "b": 1.0}, {}])
    assert fused == pytest.approx({"a": 0.35 * 4 / 6, "b": 0.35 * 2 / 6})


def test_haystack_merges_raw_scores() -> None:
    made = model([Normalizer("none", scale=0.5), Normalizer("none")])
    fused = simulated(made, "haystack", [{"a": 4.0}, {"a": 1.0, "b": 2.0}])
    assert ranking(fused) == ["a", "b"]
    assert fused["a"] / fused["b"] == pytest.approx((0.7 + 0.65) / 1.3)


def test_haystack_has_one_constant() -> None:
    with pytest.raises(ExportError, match="k 10, where it has 60"):
        export_model(model(Normalizer("reciprocal", k=10.0)), "haystack")


def test_names_are_written_as_text_not_as_code() -> None:
    name = 'x"]\nimport os #'
    made = model(RRF, rankers=(name, "dense"))
    for to in ("langchain", "haystack"):
        text = export_model(made, to).text
        assert "\nimport os" not in text
    assert '"x\\"]\\nimport os #"' in export_model(made, "langchain").text


@pytest.mark.filterwarnings("ignore")
def test_langchain_itself() -> None:
    pytest.importorskip("langchain_classic", reason="langchain-classic is not installed")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        docs: list[Document]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return self.docs

    made, given = model(RRF), lists()
    text = export_model(made, "langchain", settings={"id_key": "id"}).text
    retrievers = {
        name: Fixed(docs=[Document(page_content="same", metadata={"id": doc}) for doc in ranking(scores)])
        for name, scores in zip(made.rankers, given, strict=True)
    }
    found = loaded(text)["learned_retriever"](retrievers).invoke("query")
    assert [doc.metadata["id"] for doc in found] == ranking(own_fusion(made, [given])[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("normalizer", [RELATIVE, DISTANCE])
def test_llamaindex_itself(normalizer: Normalizer) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(BaseRetriever):
        def __init__(self, scores: dict[str, float]) -> None:
            self.scores = scores
            super().__init__()

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_=doc, text=doc), score=s) for doc, s in self.scores.items()]

    made, given = model(normalizer), lists()
    retrievers = {name: Fixed(scores) for name, scores in zip(made.rankers, given, strict=True)}
    make = loaded(export_model(made, "llamaindex").text)["learned_retriever"]
    found = make(retrievers, llm=MockLLM(), similarity_top_k=30).retrieve("query")
    ours = own_fusion(made, [given])[0]
    assert {node.node.node_id: node.score for node in found} == pytest.approx(ours)
    assert [node.node.node_id for node in found] == ranking(ours)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("normalizer", [RRF, Normalizer("none")])
def test_haystack_itself(normalizer: Normalizer) -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    made, given = model(normalizer), lists()
    joiner = loaded(export_model(made, "haystack").text)["learned_joiner"](top_k=30)
    documents = [
        [haystack.Document(id=doc, content=doc, score=scores[doc]) for doc in ranking(scores)] for scores in given
    ]
    found = joiner.run(documents)["documents"]
    assert [doc.id for doc in found] == ranking(own_fusion(made, [given])[0])
