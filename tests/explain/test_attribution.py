"""A document's score is exactly the sum of what the rankers gave."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up

from genm.align import drop_rankers
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence.crossval import measure_queries
from genm.explain import contributions, explain_documents, explain_query, gains_by_query
from genm.fuse import fuse_runs, fuse_scores
from genm.learn import BoostFuser

AP = parse_measure("AP")


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
    with pytest.raises(InputError, match="top: expected a positive integer"):
        explain_documents(aligned, [1, 0, 0], for_one[0], top=0)


def test_without_a_ranker_the_rest_keeps_its_proportions():
    aligned, weights = made_up(1), np.array([0.5, 0.3, 0.2])
    found = gains_by_query(aligned, weights, AP)
    for k, name in enumerate(aligned.rankers):
        rest = np.delete(weights, k)
        there = measure_queries(drop_rankers(aligned, [name]), rest / rest.sum(), AP)
        assert np.allclose(found.without[:, k], there)
    assert np.allclose(found.gain, measure_queries(aligned, weights, AP)[:, None] - found.without)
    assert np.allclose(found.mean_gain(), found.gain.mean(axis=0))


def test_documents_that_it_alone_returned_leave_with_it(gappy):
    """Of a, b and c only b is relevant. Without x, b leads c; without y, a leads b and c is gone."""
    found = gains_by_query(gappy, [0.5, 0.5], AP)
    assert found.value == pytest.approx([0.5])
    assert found.without == pytest.approx(np.array([[1.0, 0.5]]))
    assert found.gain == pytest.approx(np.array([[-0.5, 0.0]]))


def test_where_one_ranker_has_all_the_weight_the_others_share_it():
    aligned = made_up(2)
    found = gains_by_query(aligned, [0.0, 1.0, 0.0], AP)
    evenly = measure_queries(aligned, np.array([0.5, 0.0, 0.5]), AP)
    assert np.allclose(found.without[:, 1], evenly)
    assert np.allclose(found.gain[:, [0, 2]], 0.0)


def test_a_single_ranker_leaves_nothing_behind():
    aligned = made_up(2, quality=(1.0,))
    found = gains_by_query(aligned, [1.0], AP)
    assert np.allclose(found.gain[:, 0], found.value)


def test_one_query_with_and_without_judgments():
    aligned = made_up(4, n_queries=12)
    model = BoostFuser().fit(aligned).to_model()
    query = aligned.queries[2]
    found = explain_query(model, aligned, query, top=3)
    assert list(found.documents) == explain_documents(aligned, model.weights, query, top=3)
    whole = gains_by_query(aligned, model.weights, found.gains.measure)
    assert found.gains.gain.tolist() == whole.gain[2:3].tolist()
    doc = found.documents[1].doc_id
    (one,) = explain_query(model, replace(aligned, labelled=False), query, doc_id=doc).documents
    assert one.contributions == found.documents[1].contributions
    assert explain_query(model, replace(aligned, labelled=False), query).gains is None
    assert np.isclose(sum(one.contributions), one.score)
