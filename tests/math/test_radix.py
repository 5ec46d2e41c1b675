import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from genm._math.radix import N_COUNTS, downward_keys, sort_pairs


def sorted_pairs(keys: np.ndarray, bits: int) -> np.ndarray:
    n = len(keys)
    items = np.arange(n, dtype=np.int32)
    spare = np.empty(n, np.uint64), np.empty(n, np.int32), np.empty(N_COUNTS, np.int64)
    sort_pairs(keys, items, n, bits, *spare)
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
    downward_keys(values.copy(), len(values), keys)
    np.testing.assert_array_equal(sorted_pairs(keys, 64), np.argsort(-values, kind="stable"))
