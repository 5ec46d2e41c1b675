from typing import Any

import pytest
from export.cases import ExportError, loaded, model, own_fusion, simulated, some_lists

from genm.export import export_model, ranking
from genm.normalizers import Normalizer

RRF = Normalizer("reciprocal", k=60.0)


def test_haystack_merges_raw_scores() -> None:
    made = model([Normalizer("none", scale=0.5), Normalizer("none")])
    fused = simulated(made, "haystack", [{"a": 4.0}, {"a": 1.0, "b": 2.0}])
    assert ranking(fused) == ["a", "b"]
    assert fused["a"] / fused["b"] == pytest.approx((0.7 + 0.65) / 1.3)


def test_haystack_fuses_ranks_with_60() -> None:
    fused = simulated(model(RRF), "haystack", [{"a": 2.0, "b": 1.0}, {"b": 1.0}])
    assert fused == pytest.approx({"a": 0.35 / 61, "b": 0.35 / 62 + 0.65 / 61})


def test_haystack_has_one_constant() -> None:
    with pytest.raises(ExportError, match="has k 10, not 60"):
        export_model(model(Normalizer("reciprocal", k=10.0)), "haystack")


def test_an_input_has_a_plain_name_of_its_own() -> None:
    made = model(RRF, rankers=("bm25.title", "dense"))
    with pytest.raises(ExportError, match=r"ranker bm25.title: expected letters.*bm25.title.input"):
        export_model(made, "haystack")
    assert (
        'INPUTS = ["title", "dense"]' in export_model(made, "haystack", settings={"bm25.title.input": "title"}).text
    )
    with pytest.raises(ExportError, match=r"expected different names; found dense twice"):
        export_model(made, "haystack", settings={"bm25.title.input": "dense"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("normalizer", [RRF, Normalizer("none")])
def test_a_pipeline_of_haystack_itself(normalizer: Normalizer) -> None:
    """The names run in the other order than the model's: a plain joiner would swap the weights."""
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")

    @haystack.component  # type: ignore[untyped-decorator, unused-ignore]
    class Fixed:
        def __init__(self, scores: dict[str, float]) -> None:
            self.scores = scores

        @haystack.component.output_types(documents=list[haystack.Document])  # type: ignore[untyped-decorator, unused-ignore]
        def run(self, query: str) -> dict[str, Any]:
            docs = [haystack.Document(id=d, content=d, score=self.scores[d]) for d in ranking(self.scores)]
            return {"documents": docs}

    made, given = model(normalizer, weights=(0.9, 0.1), rankers=("zeta", "alpha")), some_lists()
    pipeline = haystack.Pipeline()
    pipeline.add_component("fusion", loaded(export_model(made, "haystack").text)["LearnedJoiner"](top_k=30))
    for name, scores in zip(made.rankers, given, strict=True):
        pipeline.add_component(name, Fixed(scores))
        pipeline.connect(f"{name}.documents", f"fusion.{name}")
    found = pipeline.run({name: {"query": "words"} for name in made.rankers})["fusion"]["documents"]
    assert [doc.id for doc in found] == ranking(own_fusion(made, [given])[0])
