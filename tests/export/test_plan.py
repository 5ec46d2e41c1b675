from dataclasses import replace

import pytest
from export.cases import ExportError, model

from genm.export import export_model, why_not
from genm.normalizers import Normalizer

ES = Normalizer("minmax", constant="raw", constant_within=1e-6)


def test_a_whole_list_needs_a_depth_or_a_window() -> None:
    made = model(ES, depth=None)
    with pytest.raises(ExportError, match=r"trained on whole lists \(bm25, dense\).*fit again with --depth 100"):
        export_model(made, "elasticsearch")
    exported = export_model(made, "elasticsearch", settings={"window": "200"})
    assert exported.document["retriever"]["linear"]["rank_window_size"] == 200
    assert "no list in training was longer than 200" in " ".join(note.text for note in exported.notes)


def test_a_window_that_is_not_the_depth_is_refused() -> None:
    with pytest.raises(ExportError, match=r"window is 50 and the model was trained at 100"):
        export_model(model(ES), "elasticsearch", settings={"window": "50"})
    bent = export_model(model(ES), "elasticsearch", settings={"window": "50"}, approximate=True)
    assert bent.document["retriever"]["linear"]["rank_window_size"] == 50


def test_one_window_for_all_where_the_engine_has_one() -> None:
    with pytest.raises(ExportError, match=r"one window for all rankers, and the model was trained at 20 and 30"):
        export_model(model(ES, depth=(20, 30)), "elasticsearch")
    bent = export_model(model(ES, depth=(20, 30)), "elasticsearch", approximate=True)
    assert bent.document["retriever"]["linear"]["rank_window_size"] == 30


def test_the_largest_window() -> None:
    with pytest.raises(ExportError, match="window is at most 10000 and bm25 has 20000"):
        export_model(model(Normalizer("minmax", floor=0.001, floor_at=0.0), depth=20_000), "opensearch")
    with pytest.raises(ExportError, match="window is at most 10000 and bm25 has 20000"):
        export_model(model(ES, depth=20_000), "elasticsearch")
    with pytest.raises(ExportError, match="window: expected 1 to 10000"):
        export_model(model(Normalizer("minmax"), depth=None), "opensearch", settings={"window": "20000"})


def test_negative_weights_are_refused_where_the_engine_refuses_them() -> None:
    made = model(ES, weights=(1.5, -0.5))
    with pytest.raises(ExportError, match=r"weights of at least 0 \(dense\)"):
        export_model(made, "elasticsearch")
    bent = export_model(made, "elasticsearch", approximate=True)
    assert [r["weight"] for r in bent.document["retriever"]["linear"]["retrievers"]] == [1.5, 0.0]
    assert why_not(model(Normalizer("none"), weights=(1.5, -0.5)), "qdrant") == ()


def test_one_constant_for_all_ranks() -> None:
    made = model([Normalizer("reciprocal", k=10.0), Normalizer("reciprocal", k=60.0)])
    with pytest.raises(ExportError, match="one k for all rankers and this model has 2; all would get 60"):
        export_model(made, "elasticsearch-rrf")
    assert (
        export_model(made, "elasticsearch-rrf", approximate=True).document["retriever"]["rrf"]["rank_constant"]
        == 60
    )


def test_unknown_settings_are_listed() -> None:
    with pytest.raises(
        ExportError, match=r"expected a setting of query, size, window, RANKER.type.*found 'bm52.field'"
    ):
        export_model(model(ES), "elasticsearch", settings={"bm52.field": "x"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("size", "ten", r"size: expected a positive integer; found 'ten'"),
        ("size", "0", r"size: expected a positive integer"),
        ("window", "-3", r"window: expected a positive integer"),
        ("bm25.type", "image", r"bm25\.type: expected one of text, vector; found 'image'"),
        ("bm25.field", "a\nb", r"bm25\.field: expected a name"),
        ("bm25.query", "{", r"bm25\.query: expected JSON"),
        ("bm25.query", "[]", r"bm25\.query: expected a JSON object"),
        ("dense.vector", '["x"]', r"dense\.vector: expected a list of numbers"),
        ("dense.vector", "[NaN]", r"dense\.vector: expected JSON; NaN is not a finite number"),
        ("bm25.query", '{"boost": 1e999}', r"bm25\.query: expected JSON; 1e999 is not a finite number"),
        ("dense.vector", "[true]", r"dense\.vector: expected a list of numbers"),
    ],
)
def test_bad_values_are_refused_with_their_place(key: str, value: str, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        export_model(model(ES), "elasticsearch", settings={key: value})


def test_a_ranker_whose_name_has_a_dot_can_be_set() -> None:
    made = model(ES, rankers=("run", "run.dense"))
    text = export_model(made, "elasticsearch", settings={"run.dense.field": "vec", "run.field": "body"}).text
    assert '"field": "vec"' in text


def test_training_under_the_rules_is_one_remedy_for_many_reasons() -> None:
    made = model(Normalizer("zscore"), depth=(20, None))
    with pytest.raises(ExportError) as caught:
        export_model(made, "opensearch")
    message = str(caught.value)
    assert message.count("fit again") == 1
    assert "fit again with --target opensearch --technique z_score." in message
    with pytest.raises(ExportError, match=r"fit again with --target redis, and fit again without dense\."):
        export_model(model(Normalizer("rank"), (0.2, 0.3, 0.5), ("bm25", "dense", "lsa")), "redis")


def test_of_too_many_rankers_one_text_and_one_vector_query_are_kept() -> None:
    made = model(Normalizer("minmax"), (0.1, 0.2, 0.3, 0.4), ("bm25", "title", "dense", "lsa"))
    assert export_model(made, "weaviate", approximate=True).document["rankers"] == ["title", "lsa"]
    said = {"lsa.type": "text", "title.type": "vector"}
    bent = export_model(made, "weaviate", settings=said, approximate=True)
    assert bent.document["rankers"] == ["dense", "lsa"]


def test_the_nearest_technique_is_the_one_for_that_kind_of_ranker() -> None:
    exported = export_model(model(Normalizer("minmax")), "milvus", approximate=True)
    assert [r["metric_type"] for r in exported.document["requests"]] == ["BM25", "COSINE"]


def test_a_technique_for_each_ranker_is_spelt_out() -> None:
    made = model([Normalizer("reciprocal", k=60.0, scale=2.0), Normalizer("atan", missing=0.3)], depth=None)
    with pytest.raises(ExportError, match=r"--target vespa --technique bm25=reciprocal_rank,dense=atan"):
        export_model(replace(made, normalizers=(Normalizer("reciprocal", floor=0.1), made.normalizers[1])), "vespa")


def test_what_was_guessed_is_said() -> None:
    notes = [note.text for note in export_model(model(ES), "elasticsearch").notes]
    told = "bm25 is taken for a text query by its name (bm25.type), and for one of the field text (bm25.field)."
    assert told in notes
    said = {"bm25.type": "text", "bm25.field": "a", "dense.type": "vector", "dense.field": "b"}
    codes = {note.code for note in export_model(model(ES), "elasticsearch", settings=said).notes}
    assert codes == {"placeholder", "engine"}
