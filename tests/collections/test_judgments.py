import pytest

from genm.collections.judgments import make_qrels
from genm.errors import InputError


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
