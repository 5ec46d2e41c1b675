"""The kernels' exponential is the exponential."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.sigmoid import exponential


@settings(deadline=None, max_examples=300)
@given(x=st.floats(-708.0, 708.0))
def test_relative_error_is_below_one_in_ten_to_the_fourteen(x):
    assert math.isclose(exponential(x), math.exp(x), rel_tol=1e-14)


def test_zero_is_one():
    assert exponential(0.0) == 1.0


def test_it_never_falls():
    x = np.linspace(-40.0, 40.0, 20_001)
    assert all(np.diff([exponential(v) for v in x]) > 0)
