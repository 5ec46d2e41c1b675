"""Our exp, log, log2 and atan are those of mathematics, and write the same bits everywhere."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm._math.elementary import arctangent, exp2, exponential, exponentials, logarithms, logarithms2

EXP2 = ["0x1.125fbee250666p+0", "0x1.9fdf8bcce533cp+1", "0x1.5f29e9ad54c6bp+123"]
EXP = ["0x1.1aec7b35a00d4p+0", "0x1.5e552770df89ep+2", "0x1.1428e1cbc0142p+178"]
LOG = ["-0x1.26bb1bbb55515p+1", "0x1.0fae81914a991p-1", "0x1.343774f3e2362p+2"]
LOG2 = ["-0x1.a934f0979a371p+1", "0x1.87f42b972949dp-1", "0x1.bca9a03b1083ap+2"]
ATAN = ["0x1.983e282e2cc4dp-4", "0x1.0a00a3bce369ep+0", "0x1.900cdfeb560b4p+0"]

POSITIVE = st.floats(1e-300, 1e300)


@numba.njit
def arctangents(x):
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = arctangent(x[i])
    return found


@numba.njit
def plain_exponentials(x):
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = exponential(x[i])
    return found


@numba.njit
def powers_of_two(x):
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = exp2(x[i])
    return found


@given(x=st.lists(st.floats(-1020.0, 1020.0), min_size=1))
def test_relative_error_of_powers_of_two_is_below_one_in_ten_to_the_fifteen(x):
    found = powers_of_two(np.array(x))
    assert all(math.isclose(a, 2.0**b, rel_tol=1e-15) for a, b in zip(found, x, strict=True))


def test_whole_powers_of_two_are_exact():
    whole = np.arange(-1020.0, 1021.0)
    assert powers_of_two(whole).tolist() == np.ldexp(1.0, whole.astype(int)).tolist()


def test_powers_of_two_never_fall():
    assert (np.diff(powers_of_two(np.linspace(-40.0, 40.0, 20_001))) > 0).all()


@given(x=st.lists(st.floats(-708.0, 708.0), min_size=1))
def test_relative_error_of_exp_is_below_one_in_ten_to_the_fourteen(x):
    found = plain_exponentials(np.array(x))
    assert all(math.isclose(a, math.exp(b), rel_tol=1e-14) for a, b in zip(found, x, strict=True))


def test_exp_of_zero_is_one():
    assert exponentials(0.0) == 1.0


def test_exp_never_falls():
    assert (np.diff(exponentials(np.linspace(-40.0, 40.0, 20_001))) > 0).all()


def test_exp_is_cut_at_both_ends():
    found = exponentials(np.array([-math.inf, -701.0, 701.0, math.inf]))
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] == found[3] == pytest.approx(math.exp(700.0), rel=1e-14)


@given(x=st.lists(POSITIVE | st.floats(0.5, 2.0), min_size=1))
def test_relative_error_of_log_is_below_one_in_ten_to_the_fifteen(x):
    found = logarithms(np.array(x))
    assert all(math.isclose(a, math.log(b), rel_tol=1e-15, abs_tol=1e-300) for a, b in zip(found, x, strict=True))


def test_log_of_zero_and_one():
    assert logarithms(np.array([0.0, 1.0])).tolist() == [-math.inf, 0.0]


@given(x=st.lists(POSITIVE, min_size=1))
def test_relative_error_of_log2_is_below_one_in_ten_to_the_fifteen(x):
    found = logarithms2(np.array(x))
    assert all(math.isclose(a, math.log2(b), rel_tol=1e-15, abs_tol=1e-300) for a, b in zip(found, x, strict=True))


def test_log2_of_powers_of_two_is_exact():
    exponents = np.arange(-1000, 1000)
    assert logarithms2(np.ldexp(1.0, exponents)).tolist() == exponents.tolist()


@given(x=st.lists(st.floats(allow_nan=False), min_size=1))
def test_relative_error_of_atan_is_below_one_in_ten_to_the_fifteen(x):
    found = arctangents(np.array(x))
    assert all(math.isclose(a, math.atan(b), rel_tol=1e-15, abs_tol=1e-300) for a, b in zip(found, x, strict=True))


def test_arrays_keep_their_shape():
    assert exponentials(np.zeros((2, 3))).shape == logarithms(np.ones((2, 3))).shape == (2, 3)


def test_bits():
    """What was computed once on an x86-64 processor; any other processor, or vector width, must give it again."""
    x = np.array([0.1, 1.7, 123.456])
    assert [v.hex() for v in exponentials(x).tolist()] == EXP
    assert [v.hex() for v in powers_of_two(x).tolist()] == EXP2
    assert [v.hex() for v in logarithms(x).tolist()] == LOG
    assert [v.hex() for v in logarithms2(x).tolist()] == LOG2
    assert [v.hex() for v in arctangents(x).tolist()] == ATAN
