import shlex

import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model
from genm.normalizers import Normalizer

RAW, COSINE = Normalizer("none"), Normalizer("none", scale=0.5, shift=0.5)


def test_raw_scores_are_weighted_and_added() -> None:
    fused = simulated(model(RAW), "redis", [{"a": 8.0, "b": 2.0}, {"b": 0.9}])
    assert fused == pytest.approx({"a": 2.8, "b": 0.7 + 0.585})


def test_redis_maps_cosines_itself() -> None:
    fused = simulated(model([RAW, COSINE]), "redis", [{"a": 1.0}, {"b": 0.6}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.65 * 0.8})


def test_a_lone_hit_keeps_its_raw_score() -> None:
    fused = simulated(model([RAW, COSINE]), "redis", [{"a": 14.0}, {"b": -1.0}])
    assert fused == pytest.approx({"a": 0.35 * 14.0, "b": 0.0})


def test_the_command_counts_its_words() -> None:
    words = shlex.split(export_model(model(RAW, depth=40), "redis", settings={"query": "fast, cars"}).text)
    at = words.index("COMBINE")
    assert words[at : at + 9] == ["COMBINE", "LINEAR", "6", "ALPHA", "0.35", "BETA", "0.65", "WINDOW", "40"]
    assert words[words.index("SEARCH") + 1] == r"@text:(fast\, cars)"


def test_words_cannot_become_syntax() -> None:
    text = export_model(model(RAW), "redis", settings={"query": 'x) | @secret:("y'}).text
    words = shlex.split(text)
    assert words[words.index("SEARCH") + 1] == r"@text:(x\) \| \@secret\:\(\"y)"


def test_field_names_are_identifiers() -> None:
    with pytest.raises(ExportError, match=r"bm25.field: expected letters"):
        export_model(model(RAW), "redis", settings={"bm25.field": "a b"})


def test_bounds_of_the_list_are_refused() -> None:
    with pytest.raises(ExportError, match="is minmax, not none"):
        export_model(model(Normalizer("minmax")), "redis")


@pytest.mark.filterwarnings("ignore")
def test_the_official_client_builds_the_same_command() -> None:
    hybrid = pytest.importorskip("redis.commands.search.hybrid_query", reason="redis 7.1 or later is not installed")
    words = shlex.split(export_model(model(RAW), "redis").text)
    search = hybrid.HybridSearchQuery("@text:(QUERY)", scorer="BM25STD")
    vsim = hybrid.HybridVsimQuery("@embedding", "$vector", hybrid.VectorSearchMethods.KNN, {"K": 100})
    combine = hybrid.CombineResultsMethod(hybrid.CombinationMethods.LINEAR, ALPHA=0.35, BETA=0.65, WINDOW=100)
    built = [str(word) for word in (*search.get_args(), *vsim.get_args(), *combine.get_args())]
    assert words[2 : 2 + len(built)] == built
