import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.fusion import add_by_rank, fused_variances, order_by_majority, weighted_sum


def majority(ranks: np.ndarray, a: int, b: int) -> int:
    """Return how many lists more rank a before b than b before a; what a list lacks comes last."""
    far = np.where(ranks == 0, 10**6, ranks)
    return int((far[a] < far[b]).sum() - (far[b] < far[a]).sum())


def test_a_document_that_beats_all_others_comes_first() -> None:
    # Row 2 wins two lists to one against each of the others, row 1 likewise against row 0.
    ranks = np.array([[1, 3, 3], [3, 1, 2], [2, 2, 1]], np.int32)
    np.testing.assert_array_equal(order_by_majority(ranks, np.array([0, 3])), [2, 1, 0])


def test_what_a_list_lacks_loses_to_what_it_holds_and_draws_with_the_rest() -> None:
    ranks = np.array([[0], [2], [1], [0]], np.int32)
    np.testing.assert_array_equal(order_by_majority(ranks, np.array([0, 4])), [2, 1, 0, 3])


def test_queries_are_apart() -> None:
    ranks = np.array([[2], [1], [1], [2], [1]], np.int32)
    np.testing.assert_array_equal(order_by_majority(ranks, np.array([0, 2, 2, 4, 5])), [1, 0, 0, 1, 0])


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_every_document_beats_or_draws_with_the_next(n: int, n_lists: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ranks = np.zeros((n, n_lists), np.int32)
    for k in range(n_lists):
        held = rng.permutation(n)[: rng.integers(0, n + 1)]
        ranks[held, k] = np.arange(1, len(held) + 1)
    place = order_by_majority(ranks, np.array([0, n]))
    order = np.argsort(place)
    assert sorted(place.tolist()) == list(range(n))
    for above, below in itertools.pairwise(order):
        assert majority(ranks, above, below) >= 0
        assert majority(ranks, above, below) > 0 or n_lists > 1 or above < below


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


def test_what_ranks_are_worth_is_added_from_the_first_list_to_the_last() -> None:
    rng = np.random.default_rng(0)
    ranks, worth = rng.integers(0, 9, (5000, 7)).astype(np.int32), rng.normal(size=9)
    expected = weighted_sum(worth[ranks], np.ones(7))
    assert add_by_rank(ranks, worth).tobytes() == expected.tobytes()
    assert add_by_rank(ranks[:0], worth).tolist() == []


def test_variances_are_those_of_each_query_and_need_two_documents() -> None:
    scores, starts = np.random.default_rng(1).normal(size=(40, 3)), np.array([0, 0, 1, 3, 40])
    found = fused_variances(scores, starts)
    assert found[:2].tolist() == [-1.0, -1.0]
    fused = scores.mean(axis=1)
    np.testing.assert_allclose(found[2:], [fused[1:3].var(), fused[3:].var()], rtol=1e-12)
