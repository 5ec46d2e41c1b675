"""What a ranker gained is the ensemble's value less that of the ensemble without it."""

import numpy as np
import pytest
from problems import made_up

from genm.align import drop_rankers
from genm.evaluate import parse_measure
from genm.evidence.crossval import measure_queries
from genm.explain import gains_by_query

AP = parse_measure("AP")


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
