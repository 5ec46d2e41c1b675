"""What to judge next: every order, what it takes into account, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems import made_up

import genm
from genm.align import UNJUDGED, Aligned
from genm.errors import InputError
from genm.judge import METHODS, pool, target_of, write_pool
from genm.judge.pooling import align_all, next_rows
from genm.records import Qrels, Run

RUNS = {
    "a": Run.from_dict({"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d1": 2.0, "d4": 1.0}}, name="a"),
    "b": Run.from_dict({"q1": {"d3": 3.0, "d2": 2.0, "d5": 1.0}, "q2": {"d1": 2.0, "d4": 1.0}}, name="b"),
}


@pytest.fixture(scope="module")
def unjudged() -> Aligned:
    aligned = made_up(0)
    return replace(aligned, relevance=np.full(len(aligned.doc), UNJUDGED, np.int32))


@pytest.mark.parametrize("method", METHODS)
def test_every_order_lists_every_document_once(unjudged: Aligned, method: str) -> None:
    found = pool(unjudged, method=method, n=10**6)
    assert len({(pair.query_id, pair.doc_id) for pair in found.pairs}) == len(found.pairs) == len(unjudged.doc)
    assert [note.code for note in found.notes] == ["pool-exhausted"]


@pytest.mark.parametrize("method", METHODS)
def test_judged_pairs_are_left_out(unjudged: Aligned, method: str) -> None:
    first = next_rows(unjudged, target_of(unjudged), method, 30)
    grades = unjudged.relevance.copy()
    grades[first] = 0
    judged = replace(unjudged, relevance=grades)
    assert not np.isin(next_rows(judged, target_of(judged), method, 30), first).any()


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_order(unjudged: Aligned, method: str) -> None:
    one, again = (pool(unjudged, method=method, n=20, seed=3).pairs for _ in range(2))
    assert one == again


def test_what_both_systems_rank_alike_is_asked_last() -> None:
    found = pool(RUNS, compare=("a", "b"), n=20)
    asked = [(pair.query_id, pair.doc_id) for pair in found.pairs]
    assert {pair for pair in asked[:3] if pair[0] == "q1"} == {("q1", "d1"), ("q1", "d3"), ("q1", "d5")}
    assert all(pair.usefulness == pytest.approx(0.0, abs=1e-12) for pair in found.pairs if pair.query_id == "q2")
    assert found.target == ("a", "b")


def test_depth_takes_the_tops_first(unjudged: Aligned) -> None:
    target = target_of(unjudged, ("r0", "r1"))
    rows = next_rows(unjudged, target, "depth", 2 * len(unjudged.queries))
    assert (np.min([ranks[rows] for ranks in target.ranks], axis=0) <= 2).all()


def test_move_to_front_goes_on_with_the_list_that_finds_something() -> None:
    qrels = Qrels.from_dict({"q1": {"d1": 1, "d3": 0}})
    found = pool(RUNS, qrels, compare=("a", "b"), method="mtf", n=3)
    assert found.pairs[2][:2] == ("q1", "d2")  # q2 has fewer judgments and comes first; then the list of d1


def test_queries_without_judgments_take_part() -> None:
    aligned = align_all(RUNS, Qrels.from_dict({"q2": {"d1": 1}}))
    assert sorted(aligned.queries) == ["q1", "q2"]
    assert pool(RUNS, Qrels.from_dict({"q2": {"d1": 1}}), n=9).n_judged == 1


def test_the_target_may_be_weights_or_learned(unjudged: Aligned) -> None:
    weights = {"r0": 0.7, "r1": 0.3}
    for compare in (("learned", "equal"), (weights, "equal"), ("current", "r1")):
        found = pool(unjudged, compare=compare, current=weights, n=3)
        assert len(found.pairs) == 3
    judged = made_up(0)
    assert target_of(judged, ("learned", "equal")).names == ("learned", "equal")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, r"method \(--method\) 'best': expected one of mtc"),
        ({"n": 0}, r"n \(-n\) 0: expected a positive integer"),
        ({"compare": ("r0",)}, "expected two systems"),
        ({"compare": ("r0", "r9")}, "'r9': expected one of r0, r1, r2, equal"),
        ({"compare": ("r0", "current")}, "expected the weights in use"),
    ],
)
def test_what_cannot_be_asked_is_refused(unjudged: Aligned, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pool(unjudged, **options)


def test_pairs_are_written(tmp_path: Path) -> None:
    found = genm.judge.pool(RUNS, n=3)
    write_pool(found, tmp_path / "p.tsv")
    lines = (tmp_path / "p.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["query_id", "doc_id", "probability", "usefulness"]
    assert [tuple(line.split("\t")[:2]) for line in lines[1:]] == [pair[:2] for pair in found.pairs]
    write_pool(found, tmp_path / "p.jsonl")
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])["doc_id"] == found.pairs[0].doc_id
    assert repr(found) == "<Pool by mtc for weights: 3 pairs>"
