"""Means, spreads and curves of a method's values."""

import numpy as np

from genm.reproduce.results import MethodResult


def test_means_are_pooled_over_queries_and_spreads_are_over_splits():
    values = np.arange(24.0).reshape(2, 4, 3)
    found = MethodResult(
        "x", "rule", values, np.array([[1.0] * 11, [0.0] * 11]), np.zeros((0, 0, 2)), np.zeros((0, 0))
    )
    assert found.mean.tolist() == values.mean(axis=(0, 1)).tolist()
    assert found.per_query.tolist() == values.mean(axis=0).tolist()
    assert found.per_split.tolist() == values.mean(axis=1).tolist()
    np.testing.assert_allclose(found.spread, values.mean(axis=1).std(axis=0, ddof=1))
    assert found.curve.tolist() == [0.5] * 11


def test_a_single_split_has_no_spread():
    found = MethodResult("x", "rule", np.ones((1, 2, 3)), np.ones((1, 11)), np.zeros((0, 0, 2)), np.zeros((0, 0)))
    assert found.spread.tolist() == [0, 0, 0]
