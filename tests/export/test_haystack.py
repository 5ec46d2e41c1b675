import pytest
from export.cases import ExportError, loaded, model, own_fusion, simulated, some_lists

from genm.export import export_model, ranking
from genm.records import Normalizer

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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("normalizer", [RRF, Normalizer("none")])
def test_haystack_itself(normalizer: Normalizer) -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    made, given = model(normalizer), some_lists()
    joiner = loaded(export_model(made, "haystack").text)["learned_joiner"](top_k=30)
    documents = [
        [haystack.Document(id=doc, content=doc, score=scores[doc]) for doc in ranking(scores)] for scores in given
    ]
    found = joiner.run(documents)["documents"]
    assert [doc.id for doc in found] == ranking(own_fusion(made, [given])[0])
