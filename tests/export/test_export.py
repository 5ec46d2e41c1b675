import json

import pytest
from export.cases import ExportError, model

from genm.errors import InputError
from genm.export import exact_targets, export_model, measured_loss, obstacles, targets, why_not
from genm.read import run_from_dict
from genm.records import Normalizer


def test_the_refusal_gives_reason_remedy_and_who_could() -> None:
    with pytest.raises(ExportError) as caught:
        export_model(model(Normalizer("minmax")), "elasticsearch")
    message = str(caught.value)
    assert "bm25 and dense gives a list of equal scores 1, not its raw scores" in message
    assert "Nearest exact way: fit again with --target elasticsearch" in message
    assert "goes exactly to weaviate, pgvector, llamaindex" in message
    assert caught.value.code == "export"
    assert isinstance(caught.value, InputError)


def test_an_approximate_export_says_what_was_bent() -> None:
    exported = export_model(model(Normalizer("minmax")), "elasticsearch", approximate=True)
    assert exported.notes[0].code == "approximate"
    assert "gives a list of equal scores 1" in exported.notes[0].text
    assert json.loads(exported.text)["retriever"]["linear"]["retrievers"][0]["normalizer"] == "minmax"


def test_unknown_targets_are_listed() -> None:
    with pytest.raises(ExportError, match=r"expected a target of elasticsearch, .*; found 'elastic'"):
        export_model(model(Normalizer("minmax")), "elastic")


def test_exact_targets_are_those_without_reasons() -> None:
    made = model(Normalizer("reciprocal", k=60.0))
    exact = exact_targets(made)
    assert exact == ("elasticsearch-rrf", "opensearch-rrf", "azure", "pgvector", "langchain", "haystack")
    assert all(why_not(made, name) == () for name in exact)


def test_the_obstacles_are_what_stands_in_the_way_of_an_export() -> None:
    made = model(Normalizer("minmax"), rankers=("dense", "denser"))
    found = obstacles(made)
    assert list(found) == list(targets())
    assert found["pgvector"] == ()
    assert found["elasticsearch"] == why_not(made, "elasticsearch")
    assert "one text and one vector query" in found["weaviate"][0]  # not the weights: two vectors
    assert "weaviate" not in exact_targets(made)
    single = obstacles(model(Normalizer("minmax"), weights=(1.0,), rankers=("dense",)))
    assert "fuses exactly 2 rankers" in single["weaviate"][0]


def test_everything_goes_to_sql() -> None:
    odd = Normalizer("zscore", ddof=1.0, floor=-1.0, constant="raw", missing="minimum", scale=0.1)
    assert exact_targets(model([odd, Normalizer("rank")])) == ("pgvector",)


@pytest.mark.parametrize("name", targets())
@pytest.mark.parametrize(
    "normalizer",
    [
        Normalizer("zscore", ddof=1.0, floor=-1.0, constant="raw", missing="minimum"),
        Normalizer("none", scale=-1.0, shift=2.0, missing="minimum"),
        Normalizer("affine", lower=0.0, upper=3.0, upper_mode="clip", missing=0.25),
        Normalizer("reciprocal", k=7.5, scale=2.0),
        Normalizer("minmax", lower=1.0, lower_mode="apply"),
    ],
)
def test_an_approximate_export_always_has_a_text_and_a_loss(name: str, normalizer: Normalizer) -> None:
    made = model([normalizer, Normalizer("minmax", constant=0.25)], weights=(0.2, 0.8), depth=(40, None))
    exported = export_model(made, name, approximate=True)
    assert exported.text
    lists = {"bm25": {"q": {"a": 3.0, "b": 1.0, "c": 0.5}}, "dense": {"q": {"b": 0.9, "c": 0.1}}}
    loss = measured_loss(made, name, {ranker: run_from_dict(table, name=ranker) for ranker, table in lists.items()})
    assert 0.0 <= loss.share <= 1.0
    if name != "pgvector":
        assert exported.notes[0].code == "approximate"


@pytest.mark.parametrize("name", targets())
def test_every_target_is_complete(name: str) -> None:
    target = targets()[name]
    assert target.name == name
    assert target.notes
    assert target.sources
    assert target.guide.index.strip()
    made = model(target.normalizer, weights=(0.5, 0.5), depth=None if target.window.rerank else 100)
    exported = export_model(made, name)
    assert exported.text.endswith("\n")
    assert exported.file_name == f"learned_{name.replace('-', '_')}.{target.suffix}"
    if target.media_type == "application/json":
        json.loads(exported.text)
    if target.suffix == "py":
        compile(exported.text, exported.file_name, "exec")
    assert exported.text == export_model(made, name).text
