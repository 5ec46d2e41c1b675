"""Rows become a Run in trec_eval's order, however they came."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.errors import InputError
from genm.ids import Ids
from genm.normalizers import Normalizer
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Collection, make_qrels, ranked_run

NAMES = ["a", "b", "ab", "é", "z9", "document-10", "document-9", ""]
query_rows = st.dictionaries(
    st.sampled_from(range(len(NAMES))), st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.0, 1.0000000000000002])
)


@settings(deadline=None, max_examples=80)
@given(st.lists(query_rows, max_size=4))
def test_ranked_run_equals_a_slow_sort(queries: list[dict[int, float]]) -> None:
    starts = np.cumsum([0] + [len(q) for q in queries])
    doc = np.array([d for q in queries for d in q], np.int32)
    score = np.array([s for q in queries for s in q.values()], np.float64)
    run = ranked_run("x", Ids.of(str(i) for i in range(len(queries))), Ids.of(NAMES), starts, doc, score)
    for i, rows in enumerate(queries):
        ranked = [NAMES[d] for d in run.doc[starts[i] : starts[i + 1]]]
        by_id = sorted(rows, key=lambda d: NAMES[d].encode(), reverse=True)
        assert ranked == [NAMES[d] for d in sorted(by_id, key=lambda d: -rows[d])]
        assert run.score[starts[i] : starts[i + 1]].tolist() == sorted(rows.values(), reverse=True)


def test_rows_already_ranked_are_not_copied() -> None:
    doc, score = np.array([0, 1], np.int32), np.array([2.0, 1.0])
    run = ranked_run("x", Ids.of(["q"]), Ids.of(["a", "b"]), np.array([0, 2]), doc, score)
    assert run.doc is doc
    assert run.score is score


def test_records_are_shown_on_one_line() -> None:
    run = run_from_dict({"q1": {"a": 1.0, "b": 2.0}, "q2": {"a": 1.0}}, name="bm25")
    qrels = qrels_from_dict({1: {"a": 1}})
    assert repr(run) == "<Run 'bm25': 2 queries, 3 rows>"
    assert repr(qrels) == "<Qrels: 1 query, 1 judgment; 1 note>"
    collection = Collection("mine", ("a",), ("text",), ("1", "2"), ("x", "y"), qrels)
    assert repr(collection) == "<Collection 'mine': 1 document, 2 queries, 1 judgment>"


def test_a_normaliser_is_shown_as_it_is_written() -> None:
    for normalizer, text in (
        (Normalizer(), "Normalizer('minmax')"),
        (Normalizer("zscore", ddof=1.0, missing="minimum"), "Normalizer('zscore', ddof=1.0, missing='minimum')"),
    ):
        assert repr(normalizer) == text
        assert eval(text) == normalizer


def test_queries_come_in_the_order_given_and_unjudged_ones_are_missing():
    qrels = make_qrels([("b", "x", 1), ("a", "y", 2), ("b", "y", 0)], query_order=["a", "c", "b"])
    assert list(qrels.queries) == ["a", "b"]
    assert list(qrels.docs) == ["y", "x"]
    assert qrels.starts.tolist() == [0, 1, 3]
    assert qrels.doc.tolist() == [0, 1, 0]
    assert qrels.relevance.tolist() == [2, 1, 0]


def test_query_that_was_not_announced_is_kept_at_the_end():
    assert list(make_qrels([("z", "x", 1)], query_order=[]).queries) == ["z"]


def test_no_judgments_make_an_empty_record():
    qrels = make_qrels([], query_order=["a"])
    assert (len(qrels.queries), len(qrels.docs), qrels.starts.tolist()) == (0, 0, [0])


def test_a_pair_judged_twice_is_refused():
    with pytest.raises(InputError, match="query 'a': expected one judgment of document 'x'; found two"):
        make_qrels([("a", "x", 1), ("a", "x", 1)], query_order=["a"])
