"""The ranking order equals Python's own stable sort."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from thread_counts import use_threads

from genm._math.sorting import (
    N_COUNTS,
    downward_keys,
    falling_orders,
    rank_order,
    ranked_as_given,
    sort_downwards,
    sort_pairs,
)

scores = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -3.5, 1e300, 5e-324, 2.0]) | st.floats(
    allow_nan=False, allow_infinity=False
)
rows = st.lists(st.lists(st.tuples(scores, st.integers(-3, 3)), max_size=70), max_size=5)


@settings(deadline=None, max_examples=80)
@given(rows)
def test_rank_order_equals_a_slow_sort(queries: list[list[tuple[float, int]]]) -> None:
    starts = np.cumsum([0] + [len(q) for q in queries])
    flat = [row for q in queries for row in q]
    order = rank_order(starts, np.array([s for s, _ in flat], np.float64), np.array([t for _, t in flat], np.int32))
    expected = [
        i
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        for i in sorted(range(a, b), key=lambda i: (-flat[i][0], flat[i][1]))
    ]
    assert order.tolist() == expected


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=4),
    n_lists=st.integers(1, 3),
    seed=st.integers(0, 999),
    outlier=st.sampled_from([0.0, 1e9, 1e300]),
    ties=st.sampled_from([1, 7, 10**9]),
    share=st.sampled_from([0.0, 0.7, 1.0]),
)
def test_lists_fall_equals_in_row_order_and_what_is_not_held_comes_last(
    lengths: list[int], n_lists: int, seed: int, outlier: float, ties: int, share: float
) -> None:
    """One score far from the others puts these into one cell, so that the list is sorted by all bits."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    values = rng.integers(-ties, ties + 1, (starts[-1], n_lists)) / 3.0
    values[rng.random(values.shape) < 0.01] = outlier
    held = rng.random(values.shape) < share
    seen = []
    for first, last, order in falling_orders(values, held, starts, 0, len(lengths)):
        seen += range(first, last)
        for q in range(first, last):
            own = slice(starts[q], starts[q + 1])
            for k in range(n_lists):
                expected = np.lexsort((-values[own, k] * held[own, k], ~held[own, k]))
                assert order[q - first, k, : lengths[q]].tolist() == expected.tolist()
    assert seen == list(range(len(lengths)))


def test_scores_of_the_greatest_and_the_least_size_are_sorted() -> None:
    largest = float(np.finfo(np.float64).max)
    for column in ([largest, -largest, 0.0], [5e-324, 0.0, -5e-324], [1.0, 1.0 + 2**-52, 1.0]):
        values, starts = np.array(column).reshape(-1, 1), np.array([0, 3])
        ((_, _, order),) = falling_orders(values, np.ones((3, 1), np.bool_), starts, 0, 1)
        assert order[0, 0].tolist() == sorted(range(3), key=lambda i: -column[i])


def test_long_queries_are_sorted_apart_from_short_ones() -> None:
    """Each query takes as many places as the longest: one of 100,000 rows must not make all of them as long."""
    starts = np.array([0, 3, 100_003, 100_005])
    values = np.random.default_rng(0).normal(size=(100_005, 1))
    batches = list(falling_orders(values, np.ones(values.shape, np.bool_), starts, 0, 3))
    assert [order.shape[2] for _, _, order in batches] == [3, 100_000, 2]
    assert (np.diff(values[3:100_003, 0][batches[1][2][0, 0]]) <= 0).all()


@pytest.mark.parametrize("threads", ["1", "3"])
def test_long_segments_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    use_threads(monkeypatch, threads)
    rng = np.random.default_rng(3)
    starts = np.array([0, 5, 5, 40_000, 40_001, 70_000])
    score, tie = rng.integers(0, 200, 70_000) / 7, rng.integers(0, 5, 70_000).astype(np.int32)
    segment = np.repeat(np.arange(5), np.diff(starts))
    expected = np.lexsort((np.arange(70_000), tie, -score, segment))
    assert (rank_order(starts, score, tie) == expected).all()


def test_what_is_already_in_order_is_recognised() -> None:
    starts = np.array([0, 3, 6, 9, 9, 10])
    score = np.array([3.0, 2.0, 1.0, 3.0, 0.0, -0.0, 1.0, 2.0, 2.0, 4.0])
    assert ranked_as_given(starts, score).tolist() == [0, 1, 2, 0, 0]


@numba.njit
def sort_by_keys(keys, items, n, bits, spare_keys, spare_items, counts):
    """A part has no entry point for Python."""
    sort_pairs(keys, items, n, bits, spare_keys, spare_items, counts)


@numba.njit
def write_keys(values, keys):
    downward_keys(values, np.int64(len(values)), keys)


def sorted_pairs(keys: np.ndarray, bits: int) -> np.ndarray:
    n = len(keys)
    items = np.arange(n, dtype=np.int32)
    spare = np.empty(n, np.uint64), np.empty(n, np.int32), np.empty(N_COUNTS, np.int64)
    sort_by_keys(keys, items, n, bits, *spare)
    return items


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 64).flatmap(
        lambda bits: st.tuples(
            st.just(bits),
            npst.arrays(np.uint64, st.integers(0, 80), elements=st.integers(0, 2**bits - 1), fill=st.nothing()),
        )
    )
)
def test_pairs_are_sorted_and_equal_keys_keep_their_order(case: tuple[int, np.ndarray]) -> None:
    bits, keys = case
    expected = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(sorted_pairs(keys.copy(), bits), expected)


def test_long_lists_take_wide_digits() -> None:
    rng = np.random.default_rng(4)
    for n in (1023, 1024, 5000):
        keys = rng.integers(0, 1 << 22, n).astype(np.uint64) >> np.uint64(3) << np.uint64(3)
        expected = np.argsort(keys, kind="stable")
        work = keys.copy()
        np.testing.assert_array_equal(sorted_pairs(work, 22), expected)
        np.testing.assert_array_equal(work, keys[expected])


@settings(deadline=None, max_examples=60)
@given(npst.arrays(np.float64, st.integers(0, 70), elements=st.floats(allow_nan=False), fill=st.just(0.5)))
def test_downward_keys_order_any_numbers_and_hold_both_zeros_equal(values: np.ndarray) -> None:
    keys = np.empty(len(values), np.uint64)
    write_keys(values.copy(), keys)
    np.testing.assert_array_equal(sorted_pairs(keys, 64), np.argsort(-values, kind="stable"))


@numba.njit
def sort_few(values, items, begin, n):
    sort_downwards(values, items, begin, n)


@settings(deadline=None, max_examples=80)
@given(st.lists(scores, max_size=60), st.integers(0, 3), st.randoms(use_true_random=False))
def test_few_rows_are_sorted_downwards_and_equal_ones_by_their_items(values, begin, random) -> None:
    items = random.sample(range(1000), begin + len(values))
    array, taken = np.array([7.0] * begin + values), np.array(items, np.int64)
    sort_few(array, taken, begin, len(values))
    pairs = sorted(zip(values, items[begin:], strict=True), key=lambda pair: (-pair[0], pair[1]))
    assert taken.tolist() == items[:begin] + [item for _, item in pairs]
    assert array.tolist() == [7.0] * begin + [value for value, _ in pairs]
