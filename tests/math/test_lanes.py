"""Lanes compute what numbers one by one compute, each operation rounded once, and sums in one fixed tree."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm._math import lanes
from genm._math.elementary import exp2, exponential, exponentials

EIGHT = st.lists(st.floats(-1e100, 1e100), min_size=8, max_size=8)
SIXTEEN = st.lists(st.floats(-699.0, 699.0), min_size=lanes.WIDE, max_size=lanes.WIDE)


@numba.njit
def arithmetic(a, b, number, out):
    x, y = lanes.load(a, 0), lanes.load(b, 0)
    lanes.store(out, 0, x + y)
    lanes.store(out, 8, x - y)
    lanes.store(out, 16, x * y)
    lanes.store(out, 24, x / y)
    lanes.store(out, 32, number - x)
    lanes.store(out, 40, x * number)
    lanes.store(out, 48, lanes.lower(x, y))
    lanes.store(out, 56, lanes.higher(x, y))


@numba.njit
def summed(a):
    return lanes.total(lanes.load(a, 0)), lanes.lowest(lanes.load(a, 0)), lanes.highest(lanes.load(a, 0))


@numba.njit
def some(a, n, out):
    lanes.store(out, 0, lanes.first(lanes.load(a, 0), n))


@numba.njit
def filled(number, out):
    lanes.store(out, 0, lanes.fill(number))


@numba.njit
def fetched(a, offset, out):
    lanes.prefetch(a, offset)
    lanes.store(out, 0, lanes.load(a, 0))


@numba.njit
def raised(a, out):
    lanes.store(out, 0, exponential(lanes.load(a, 0)))


@numba.njit
def gathered(a, b, c, d, out):
    lanes.store(out, 0, lanes.totals(lanes.load(a, 0), lanes.load(b, 0), lanes.load(c, 0), lanes.load(d, 0)))
    lanes.store(out, 8, lanes.twice(a[0], b[0], c[0], d[0]))


@numba.njit
def powers_of_two(a, out):
    lanes.store(out, 0, exp2(lanes.load(a, 0)))
    lanes.store(out, 8, exp2(lanes.load_wide(a, 0)))
    for i in range(lanes.WIDE):
        out[24 + i] = exp2(a[i])


@numba.njit
def raised_wide(a, number, out):
    x = lanes.load_wide(a, 0)
    lanes.store(out, 0, exponential(x))
    lanes.store(out, lanes.WIDE, number - x * x / number + x)


@numba.njit
def raised_first(a, out):
    lanes.store(out, 0, exponential(lanes.load_wide(a, 0)))


@given(a=EIGHT, b=EIGHT, number=st.floats(-1e100, 1e100))
def test_arithmetic_is_that_of_single_numbers(a, b, number):
    x, y, out = np.array(a), np.array(b), np.empty((8, 8))
    arithmetic(x, y, number, out)
    with np.errstate(all="ignore"):
        expected = np.array([x + y, x - y, x * y, x / y, number - x, x * number, np.fmin(x, y), np.fmax(x, y)])
    np.testing.assert_array_equal(out, expected)


@given(a=EIGHT)
def test_a_total_is_a_fixed_tree(a):
    x = [float(v) for v in a]
    tree = ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
    assert summed(np.array(a)) == (tree, min(x), max(x))


@pytest.mark.parametrize("n", [-3, 0, 1, 5, 8, 20])
def test_the_first_of_them(n):
    x, out = np.arange(1.0, 9.0), np.empty(8)
    some(x, n, out)
    assert out.tolist() == [v if i < n else 0.0 for i, v in enumerate(x.tolist())]


def test_fill():
    out = np.empty(8)
    filled(2.5, out)
    assert out.tolist() == [2.5] * 8


@pytest.mark.parametrize("offset", [0, 8, 10_000_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_may_be_asked_for_anywhere(offset, dtype):
    out = np.empty(8)
    fetched(np.arange(8, dtype=dtype), offset, out)
    assert out.tolist() == list(range(8))


def test_single_precision_is_widened():
    x, out = np.array([0.1] * 8, np.float32), np.empty(8)
    some(x, 8, out)
    assert out.tolist() == [float(np.float32(0.1))] * 8


def test_the_exponential_of_lanes_has_the_bits_of_single_numbers():
    x, out = np.linspace(-30.0, 30.0, 8), np.empty(8)
    raised(x, out)
    assert out.tobytes() == exponentials(x).tobytes()


@given(rows=st.lists(EIGHT, min_size=4, max_size=4))
def test_four_sums_at_once_are_added_in_one_tree(rows):
    out = np.empty(16)
    gathered(*(np.array(row) for row in rows), out)
    wanted = [((a + b) + (c + d)) + ((e + f) + (g + h)) for a, b, c, d, e, f, g, h in rows]
    assert out[:8].tolist() == wanted + wanted
    assert out[8:].tolist() == 2 * [row[0] for row in rows]


@given(a=st.lists(st.floats(-1020.0, 1020.0), min_size=lanes.WIDE, max_size=lanes.WIDE))
def test_powers_of_two_of_lanes_have_the_bits_of_single_numbers(a):
    out = np.empty(8 + 2 * lanes.WIDE)
    powers_of_two(np.array(a), out)
    wanted = out[8 + lanes.WIDE :]
    assert out[:8].tobytes() == wanted[:8].tobytes()
    assert out[8 : 8 + lanes.WIDE].tobytes() == wanted.tobytes()


def test_arrays_with_gaps_are_refused():
    with pytest.raises(numba.TypingError):
        summed(np.zeros(16)[::2])


@given(a=SIXTEEN, number=st.floats(1.0, 100.0), dtype=st.sampled_from([np.float64, np.float32]))
def test_wide_lanes_compute_what_single_numbers_do(a, number, dtype):
    x, out = np.array(a, dtype), np.empty((2, lanes.WIDE))
    raised_wide(x, number, out)
    x = x.astype(np.float64)
    np.testing.assert_array_equal(out, [exponentials(x), number - x * x / number + x])


def test_a_store_takes_as_many_numbers_as_there_are_lanes():
    out = np.zeros(lanes.WIDE + 1)
    raised_first(np.zeros(lanes.WIDE), out)
    assert out.tolist() == [1.0] * lanes.WIDE + [0.0]
