import random

import pytest
from export.cases import model

from genm.align import align_runs
from genm.errors import InputError, ModelError
from genm.export import find_target, measured_loss, training_rules
from genm.export.export import same_members, same_top
from genm.normalizers import Normalizer
from genm.read import run_from_dict
from genm.records import Run


def runs(names: tuple[str, ...] = ("bm25", "dense"), n: int = 30) -> dict[str, Run]:
    draw = random.Random(11)
    return {
        name: run_from_dict(
            {f"q{q}": {f"d{i}": draw.gauss(5, 2) for i in draw.sample(range(60), n)} for q in range(25)}, name=name
        )
        for name in names
    }


def test_an_exact_export_loses_nothing() -> None:
    made = model(Normalizer("minmax", floor=0.001, floor_at=0.0), depth=20)
    loss = measured_loss(made, "opensearch", runs())
    assert (loss.n_queries, loss.n_changed, loss.share) == (25, 0, 0.0)


def test_another_normaliser_changes_some_queries() -> None:
    loss = measured_loss(model(Normalizer("sum"), depth=20), "opensearch", runs())
    assert 0 < loss.n_members_changed <= loss.n_changed <= 25
    assert loss.share == loss.n_changed / 25


def test_a_larger_window_is_seen_in_runs_and_not_in_an_aligned() -> None:
    made = model(Normalizer("minmax"), depth=10)  # Weaviate looks at 100
    assert measured_loss(made, "weaviate", runs()).share > 0
    aligned = align_runs(runs(), normalize="minmax", depth=10)
    assert measured_loss(made, "weaviate", aligned).share == 0.0


def test_the_depth_of_the_comparison_counts() -> None:
    made = model(Normalizer("sum"), depth=20)
    assert (
        measured_loss(made, "opensearch", runs(), at=1).n_changed
        <= measured_loss(made, "opensearch", runs()).n_changed
    )
    with pytest.raises(InputError, match="at: expected a positive integer; found 0"):
        measured_loss(made, "opensearch", runs(), at=0)


def test_the_runs_must_be_the_models() -> None:
    with pytest.raises(ModelError, match="missing dense and unknown other"):
        measured_loss(model(Normalizer("minmax")), "weaviate", runs(("bm25", "other")))
    aligned = align_runs(runs(("dense", "bm25")))
    with pytest.raises(InputError, match="expected the rankers bm25, dense; found dense, bm25"):
        measured_loss(model(Normalizer("minmax")), "weaviate", aligned)


def test_dropped_rankers_are_measured_too() -> None:
    names = tuple("abcdef")
    made = model(Normalizer("minmax", floor=0.001, floor_at=0.0), (0.2, 0.2, 0.2, 0.2, 0.1, 0.1), names, 20)
    assert measured_loss(made, "opensearch", runs(names)).share > 0


def test_only_documents_that_score_alike_may_trade_places() -> None:
    ours = {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.1}
    assert same_top(ours, ["a", "b", "c"], 3)
    assert same_top(ours, ["a", "c", "b"], 3)
    assert not same_top(ours, ["b", "a", "c"], 3)
    assert not same_top(ours, ["a", "b"], 3)
    assert same_members(ours, ["b", "a"], 2)
    assert not same_members(ours, ["a", "d"], 2)


def tied_runs(names: tuple[str, ...] = ("bm25", "dense")) -> dict[str, dict[str, dict[str, float]]]:
    """Lists with many equal scores, in an order that is not that of the ids."""
    draw = random.Random(5)
    made: dict[str, dict[str, dict[str, float]]] = {}
    for name in names:
        made[name] = {}
        for q in range(40):
            docs = draw.sample(range(60), 30)
            made[name][f"q{q}"] = {f"d{doc:02}": float(10 - place // 4) for place, doc in enumerate(docs)}
    return made


@pytest.mark.parametrize("target", ["langchain", "haystack", "qdrant-rrf", "opensearch-rrf", "azure"])
def test_ranks_of_equal_scores_are_those_of_the_engine(target: str) -> None:
    """The engine fuses its own lists: equal scores stand there as it returned them."""
    given = tied_runs()
    made = {name: run_from_dict(table, name=name) for name, table in given.items()}
    techniques = {"*": "reciprocal_rank_fusion"} if target == "haystack" else None
    rules = training_rules(target, made, techniques=techniques, window=30)
    normalizers = tuple(rules.normalizers.values())
    assert {one.ties for one in normalizers} == {"given"}
    weights, k = (0.5, 0.5), normalizers[0].k
    fused = model(normalizers, weights, depth=30).fuse(made)
    for query, docs in fused.items():
        engine: dict[str, float] = {}
        for name, weight in zip(given, weights, strict=True):
            for place, doc in enumerate(given[name][query], 1):
                engine[doc] = engine.get(doc, 0.0) + weight / (k + place)
        assert same_top(engine, list(docs)[:10], 10), query
    loss = measured_loss(model(normalizers, weights, depth=30), target, made)
    assert loss.n_changed == 0


def test_a_statement_that_orders_by_id_keeps_the_order_of_ids() -> None:
    made = {name: run_from_dict(table, name=name) for name, table in tied_runs().items()}
    for target in ("pgvector", "sqlite"):
        names = [t.word for t in find_target(target).techniques if t.normalizer.is_rank_based]
        for word in names:
            rules = training_rules(target, made, techniques={"*": word})
            assert {one.ties for one in rules.normalizers.values()} == {"doc_id"}
