import json
import random

import pytest
from export.cases import ExportError, model

from genm.align import align_runs
from genm.errors import InputError
from genm.export import (
    describe_targets,
    exact_targets,
    export_model,
    measured_loss,
    obstacles,
    targets,
    training_rules,
    why_not,
)
from genm.model import Model
from genm.normalizers import Normalizer
from genm.read import run_from_dict
from genm.records import Run


def test_the_refusal_gives_reason_remedy_and_who_could() -> None:
    with pytest.raises(ExportError) as caught:
        export_model(model(Normalizer("minmax")), "elasticsearch")
    message = str(caught.value)
    assert "bm25 and dense gives a list of equal scores 1, not its raw scores" in message
    assert "Nearest exact way: fit again with --target elasticsearch" in message
    assert "goes exactly to weaviate, pgvector, sqlite, llamaindex" in message
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
    assert exact == ("elasticsearch-rrf", "opensearch-rrf", "azure", "pgvector", "sqlite", "langchain", "haystack")
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
    assert exact_targets(model([odd, Normalizer("rank")])) == ("pgvector", "sqlite")


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
    if name not in ("pgvector", "sqlite"):
        assert exported.notes[0].code == "approximate"


@pytest.mark.parametrize("name", targets())
def test_every_target_is_complete(name: str) -> None:
    target = targets()[name]
    assert target.name == name
    assert target.notes
    assert target.sources
    assert target.tested
    assert target.guide.index.strip()
    own = tuple(training_rules(name, ("bm25", "dense")).normalizers.values())
    made = model(own, weights=(0.5, 0.5), depth=None if target.window.rerank else 100)
    exported = export_model(made, name)
    assert exported.text.endswith("\n")
    assert exported.file_name == f"learned_{name.replace('-', '_')}.{target.file.suffix}"
    if target.file.media_type == "application/json":
        json.loads(exported.text)
    if target.file.suffix == "py":
        compile(exported.text, exported.file_name, "exec")
    assert exported.text == export_model(made, name).text


def runs(n: int) -> dict[str, Run]:
    draw = random.Random(3)
    names = ("bm25", "dense", "title")[:n]
    return {
        name: run_from_dict(
            {f"q{q}": {f"d{i}": draw.uniform(0, 20) for i in range(40)} for q in range(10)}, name=name
        )
        for name in names
    }


@pytest.mark.parametrize("name", targets())
def test_a_model_trained_under_the_rules_is_exported_exactly(name: str) -> None:
    target = targets()[name]
    given = runs(2 if target.n_rankers[1] == 2 or name == "azure" else 3)
    rules = training_rules(name, given)
    align_runs(given, normalize=rules.normalizers, depth=rules.depth)  # they are what aligning takes
    n = len(given)
    weights = (1 / n,) * n if target.weights.equal else tuple(range(1, n + 1))
    total = sum(weights)
    made = Model(
        tuple(given),
        tuple(w / total for w in weights),
        tuple(rules.normalizers.values()),
        (rules.depth,) * n,
        "newton",
        "AP",
    )
    assert export_model(made, name).text
    assert measured_loss(made, name, given).n_changed == 0


def test_techniques_can_be_chosen() -> None:
    rules = training_rules("opensearch", ["a", "b"], techniques={"*": "z_score"})
    assert {n.kind for n in rules.normalizers.values()} == {"zscore"}
    rules = training_rules("milvus", ["bm25", "dense"], techniques={"dense": "IP"})
    assert [n.kind for n in rules.normalizers.values()] == ["atan", "atan"]
    with pytest.raises(ExportError, match="expected a technique of min_max, l2, z_score; found 'zscore'"):
        training_rules("opensearch", ["a"], techniques={"a": "zscore"})
    with pytest.raises(ExportError, match="expected the rankers a; found b"):
        training_rules("opensearch", ["a"], techniques={"b": "l2"})


def test_the_window_is_the_engines_or_the_given_one() -> None:
    assert training_rules("weaviate", ["a", "b"]).depth == 100
    assert training_rules("elasticsearch", ["a"], window=30).depth == 30
    assert training_rules("vespa", ["a"]).depth is None


def test_fixed_bounds_come_from_the_runs() -> None:
    run = run_from_dict({"q": {"a": 3.0, "b": -1.0, "c": 9.0}}, name="x")
    bounds = training_rules("qdrant", {"x": run}).normalizers["x"]
    assert (bounds.kind, bounds.lower, bounds.upper) == ("affine", -1.0, 9.0)
    assert training_rules("ltr", {"x": run}).normalizers["x"].lower == 0.0


def test_what_the_engine_does_not_take_is_refused_before_training() -> None:
    with pytest.raises(ExportError, match="Weaviate hybrid search fuses exactly 2 rankers; found 3"):
        training_rules("weaviate", ["a", "b", "c"])
    with pytest.raises(ExportError, match="fuses at most 5 rankers; found 6"):
        training_rules("opensearch", list("abcdef"))
    with pytest.raises(ExportError, match=r"window: expected 1 to 10000 for OpenSearch .*; found 10001"):
        training_rules("opensearch", ["a", "b"], window=10_001)
    with pytest.raises(ExportError, match="there is no window"):
        training_rules("vespa", ["a"], window=100)


def test_scores_that_are_not_the_engines_own_are_told() -> None:
    cosines = run_from_dict({"q": {"a": 0.9, "b": -0.1}}, name="dense")
    words = run_from_dict({"q": {"a": 12.0, "b": 3.0}}, name="bm25")
    (note,) = training_rules("redis", {"bm25": words, "dense": cosines}).notes
    assert (
        "dense has scores from -0.1 to 0.9, and those that Redis FT.HYBRID takes by none are 0 or more" in note.text
    )
    assert note.text.endswith("or train with --technique dense=cosine.")
    assert training_rules("redis", {"bm25": words, "dense": cosines}, techniques={"dense": "cosine"}).notes == ()
    (note,) = training_rules("milvus", {"bm25": words, "dense": words}).notes
    assert (
        "dense has scores from 3 to 12, and those that Milvus weighted ranker takes by COSINE are -1 to 1"
        in note.text
    )
    (note,) = training_rules("milvus", {"dense": words}, techniques={"dense": "L2"}).notes
    assert "are at most 0." in note.text
    assert training_rules("opensearch", {"bm25": words, "dense": cosines}).notes == ()  # scaled, whatever they are


def test_targets_are_described_with_and_without_a_model() -> None:
    plain, made = describe_targets(), model(Normalizer("minmax"))
    assert [row["name"] for row in plain] == list(targets())
    assert not any("exact" in row for row in plain)
    reasons = obstacles(made)
    for row, before in zip(describe_targets(made), plain, strict=True):
        assert row == before | {"exact": not reasons[row["name"]], "reasons": list(reasons[row["name"]])}
