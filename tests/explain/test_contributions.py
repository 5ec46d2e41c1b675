"""A document's score is exactly the sum of what the rankers gave."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up

from genm.errors import InputError
from genm.explain import contributions, explain_documents
from genm.fuse import fuse_runs, fuse_scores


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 10**6),
    st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    st.sampled_from(["none", "minmax", "zscore", "reciprocal"]),
)
def test_contributions_sum_to_the_score_to_the_last_bit(seed, weights, normalize):
    aligned = made_up(seed, n_queries=2, n_docs=30, normalize=normalize)
    columns = contributions(aligned, weights).T
    assert (reduce(add, columns, np.zeros(len(aligned.doc))) == fuse_scores(aligned, weights)).all()


def test_a_case_worked_by_hand(gappy):
    found = explain_documents(gappy, [0.5, 0.5], "q")
    told = [(one.doc_id, one.rank, one.score, one.relevance, one.contributions, one.ranks) for one in found]
    assert told == [
        ("a", 1, 0.625, None, (0.5, 0.125), (1, None)),
        ("b", 2, 0.5, 2, (0.0, 0.5), (2, 1)),
        ("c", 3, 0.125, 0, (0.125, 0.0), (None, 2)),
    ]


def test_documents_come_as_the_fused_run_ranks_them():
    aligned = made_up(3)
    weights, query = [0.5, 0.3, 0.2], aligned.queries[4]
    run = fuse_runs(aligned, weights)
    rows = slice(run.starts[4], run.starts[5])
    found = explain_documents(aligned, weights, query, top=1000)
    assert [one.doc_id for one in found] == [run.docs[d] for d in run.doc[rows].tolist()]
    assert [one.score for one in found] == run.score[rows].tolist()
    assert [one.rank for one in found] == list(range(1, 61))
    seventh = explain_documents(aligned, weights, query, doc_id=found[6].doc_id)
    assert seventh == [found[6]]
    assert explain_documents(aligned, weights, query, top=3) == found[:3]


def test_refusals():
    aligned = made_up(0, n_queries=2)
    for_one = ("q000", "q001")
    with pytest.raises(InputError, match="query 'nix': expected one of the judged queries, such as 'q000'"):
        explain_documents(aligned, [1, 0, 0], "nix")
    with pytest.raises(InputError, match="document 'nix': expected one that a ranker returned for query 'q001'"):
        explain_documents(aligned, [1, 0, 0], for_one[1], doc_id="nix")
    with pytest.raises(InputError, match="expected 3 numbers"):
        explain_documents(aligned, [1, 0], for_one[0])
    with pytest.raises(InputError, match="top: expected a whole number from 1 on"):
        explain_documents(aligned, [1, 0, 0], for_one[0], top=0)
