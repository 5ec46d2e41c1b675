import random

import pytest
from export.cases import model

from genm.align import align_runs
from genm.errors import InputError, ModelError
from genm.export import measured_loss
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
