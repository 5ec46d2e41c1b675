"""Weighted sums: the plain arithmetic, row by row, whatever stands around a row."""

import numpy as np
import pytest

from genm._math.weighted import weighted_sum


def test_sums_are_taken_from_left_to_right() -> None:
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=(10_000, 5)), rng.random(5)
    expected = np.zeros(len(scores))
    for k in range(5):
        expected = expected + weights[k] * scores[:, k]
    np.testing.assert_array_equal(weighted_sum(scores, weights), expected)


@pytest.mark.parametrize("n_rows", [0, 1, 7, 4096, 9001])
def test_equal_rows_stay_tied(n_rows: int) -> None:
    row = np.array([0.1, 0.7, 0.3])
    fused = weighted_sum(np.tile(row, (n_rows, 1)), np.array([0.3, 0.3, 0.4]))
    assert fused.shape == (n_rows,)
    assert len(set(fused.tolist())) <= 1


def test_views_and_read_only_arrays_are_taken() -> None:
    scores = np.arange(12.0).reshape(3, 4)[:, ::2]
    scores.flags.writeable = False
    assert weighted_sum(scores, np.array([1.0, 10.0])).tolist() == [20.0, 64.0, 108.0]
