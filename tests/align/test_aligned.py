import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import judgments, qrels_of, run_of, tied_runs

from genm.align import Aligned, align_runs, drop_rankers, renormalize, select_rankers
from genm.align.aligned import per_query
from genm.errors import InputError
from genm.normalizers import Normalizer

A = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d1": 5.0}, "q3": {"d2": 1.0, "d1": 0.0}}
B = {"q1": {"d3": 0.9, "d4": 0.1}, "q3": {"d7": 0.5, "d6": 0.5}}
C = {"q1": {"d5": 8.0}, "q2": {"d9": 8.0, "d1": 7.0}}
GRADES = {"q1": {"d5": 2, "d1": 1, "x": 1}, "q2": {"d9": 1, "d1": 0}, "q3": {"x": 3, "y": 0}}


def three() -> Aligned:
    return align_runs(
        {"a": run_of(A), "b": run_of(B), "c": run_of(C)},
        qrels_of(GRADES),
        normalize=["minmax", "rank", "none"],
        depth=[None, 5, 9],
        query_weights={"q1": 1.0, "q2": 2.0, "q3": 3.0},
    )


def assert_same(one: Aligned, other: Aligned) -> None:
    """Equal but for the tables of ids, which may hold more than the rows need."""
    assert one.rankers == other.rankers
    assert list(one.queries) == list(other.queries)
    assert one.normalizers == other.normalizers
    assert one.depths == other.depths
    assert one.labelled == other.labelled
    assert [one.docs[d] for d in one.doc] == [other.docs[d] for d in other.doc]
    arrays = "starts raw retrieved scores relevance unretrieved_starts unretrieved query_weights"
    for name in arrays.split():
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype, name
        assert left.flags.c_contiguous, name
        np.testing.assert_array_equal(left, right, name)


def test_select_takes_queries_in_the_order_asked_for() -> None:
    part = three().select(np.array([2, 0]))
    assert list(part.queries) == ["q3", "q1"]
    np.testing.assert_array_equal(part.starts, [0, 4, 9])
    assert [part.docs[d] for d in part.doc] == ["d7", "d6", "d2", "d1", "d5", "d4", "d3", "d2", "d1"]
    np.testing.assert_array_equal(part.unretrieved_starts, [0, 2, 3])
    np.testing.assert_array_equal(part.unretrieved, [3, 0, 1])
    np.testing.assert_array_equal(part.query_weights, [3.0, 1.0])
    np.testing.assert_array_equal(part.n_relevant(), [1, 3])


def test_select_of_everything_and_of_nothing() -> None:
    whole = three()
    assert_same(whole.select(np.arange(3)), whole)
    nothing = whole.select(np.array([], np.int64))
    assert len(nothing.queries) == len(nothing.doc) == 0
    np.testing.assert_array_equal(nothing.starts, [0])


@pytest.mark.parametrize("positions", [[-1], [3]])
def test_select_refuses_positions_that_are_not_there(positions: list[int]) -> None:
    with pytest.raises(IndexError, match=r"0\.\.2"):
        three().select(np.array(positions))


def test_select_is_a_copy() -> None:
    whole = three()
    whole.select(np.arange(3)).scores[:] = 7.0
    assert not (whole.scores == 7.0).all()


def test_renormalising_equals_aligning_anew() -> None:
    runs = {"a": run_of(A), "b": run_of(B), "c": run_of(C)}
    fresh = align_runs(runs, qrels_of(GRADES), normalize={"a": "zscore", "b": "l2", "c": "qdrant-dbsf"})
    again = renormalize(align_runs(runs, qrels_of(GRADES)), ["zscore", "l2", "qdrant-dbsf"])
    assert_same(again, fresh)
    assert again.raw is not again.scores
    with pytest.raises(InputError, match="unknown z"):
        renormalize(fresh, {"a": "none", "b": "none", "c": "none", "z": "none"})


def test_without_a_ranker_its_own_documents_are_unretrieved() -> None:
    kept = drop_rankers(three(), ["c"])
    assert kept.rankers == ("a", "b")
    assert [kept.docs[d] for d in kept.doc[: kept.starts[1]]] == ["d4", "d3", "d2", "d1"]
    np.testing.assert_array_equal(kept.unretrieved, [2, 1, 1, 3, 0])
    np.testing.assert_array_equal(kept.n_relevant(), three().n_relevant())


@settings(deadline=None, max_examples=40)
@given(
    st.lists(tied_runs(min_docs=0), min_size=3, max_size=3),
    judgments(),
    st.permutations(["a", "b", "c"]),
    st.integers(1, 3),
)
def test_selecting_rankers_equals_aligning_them_alone(
    tables: list[dict[str, dict[str, float]]], grades: dict[str, dict[str, int]], order: list[str], n: int
) -> None:
    assume(all(not table or set(table) & set(grades) for table in tables))
    runs = {name: run_of(table) for name, table in zip("abc", tables, strict=True)}
    rules = {"a": Normalizer("minmax"), "b": Normalizer("zscore", missing="minimum"), "c": Normalizer("rank")}
    names = order[:n]
    whole = align_runs(runs, qrels_of(grades), normalize=rules)
    alone = align_runs(
        {name: runs[name] for name in names}, qrels_of(grades), normalize={name: rules[name] for name in names}
    )
    assert_same(select_rankers(whole, names), alone)


@pytest.mark.parametrize("names", [[], ["a", "a"], ["z"]])
def test_rankers_must_be_different_ones_that_are_there(names: list[str]) -> None:
    with pytest.raises(InputError, match="expected different ones out of a, b, c"):
        select_rankers(three(), names)
    if names == ["z"]:
        with pytest.raises(InputError, match="out of a, b, c; found z"):
            drop_rankers(three(), names)


def test_dropping_every_ranker_is_refused() -> None:
    with pytest.raises(InputError, match="expected different ones"):
        drop_rankers(three(), ["a", "b", "c"])


def test_it_is_shown_on_one_line() -> None:
    kinds = "Normalizer('minmax'), Normalizer('rank'), Normalizer('none')"
    assert repr(three()) == f"<Aligned a, b, c, judged, {kinds}: 3 queries, 11 rows; 2 notes>"
    assert repr(align_runs([run_of(A)])).endswith(" not judged, Normalizer('minmax'): 3 queries, 6 rows>")


def test_marks_of_many_rows_are_counted_as_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    marks, starts = np.random.default_rng(1).random(1000) < 0.3, np.array([0, 0, 10, 10, 700, 1000, 1000])
    few = per_query(marks, starts)
    monkeypatch.setattr("genm.align.aligned._MANY", 0)
    assert per_query(marks, starts).tolist() == few.tolist()
    assert per_query(np.repeat(marks, 2)[::2], starts).tolist() == few.tolist()
