"""Student's t distribution: exact values, scipy's, and its own inverse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from genm._math.student import _gamma_ratio, student_quantile, student_tails

degrees = st.one_of(st.integers(1, 300), st.sampled_from([1_000, 6_979, 98_000, 1_000_000]))


@pytest.mark.parametrize("t", [1e-3, 0.5, 1.0, 3.0, 40.0, 1e6])
def test_one_and_two_degrees_of_freedom_have_closed_forms(t: float) -> None:
    assert student_tails(t, 1.0) == pytest.approx(
        1.0 - 2.0 / math.pi * math.atan(t), rel=1e-9 if t > 1e5 else 1e-13
    )
    exact = 2.0 / (2.0 + t * t) / (1.0 + t / math.sqrt(2.0 + t * t))  # 1 - t / root(2 + t^2), without cancellation
    assert student_tails(t, 2.0) == pytest.approx(exact, rel=1e-14)


def test_quantiles_by_hand() -> None:
    assert student_quantile(0.75, 1.0) == pytest.approx(1.0, rel=1e-15)  # tan(pi / 4)
    assert student_quantile(0.975, 30.0) == pytest.approx(2.042272456301238, rel=1e-14)  # printed tables: 2.042
    assert student_quantile(0.5, 7.0) == 0.0
    assert student_quantile(1.0, 7.0) == math.inf
    assert student_quantile(0.0, 7.0) == -math.inf


@given(log_t=st.floats(-9.0, 4.0), dof=degrees)
def test_the_tails_are_scipys(log_t: float, dof: int) -> None:
    t = math.exp(log_t)
    theirs = 2.0 * stats.t.sf(t, dof)
    if theirs > 1e-290:
        assert student_tails(t, dof) == pytest.approx(theirs, rel=5e-13)
        assert student_tails(-t, dof) == student_tails(t, dof)


@given(probability=st.floats(1e-12, 1.0 - 1e-12), dof=degrees)
def test_the_quantiles_are_scipys(probability: float, dof: int) -> None:
    """Held to scipy's distribution function: its quantiles are right to 1e-11 in some versions only."""
    quantile = student_quantile(probability, dof)
    off = (1e-9 if dof < 3 else 1e-11) * abs(quantile) + 1e-13
    rounding = 2.0 * np.finfo(float).eps * probability
    assert stats.t.cdf(quantile, dof) == pytest.approx(
        probability, rel=0.0, abs=off * stats.t.pdf(quantile, dof) + rounding
    )


@given(part=st.integers(1, 2**20 - 1), dof=degrees)
def test_quantiles_are_symmetric(part: int, dof: int) -> None:
    assert student_quantile(part / 2**20, dof) == -student_quantile(1.0 - part / 2**20, dof)


@given(log_p=st.floats(-200.0, -0.01), dof=degrees)
def test_a_quantile_has_the_tails_that_were_asked_for(log_p: float, dof: int) -> None:
    tails = math.exp(log_p)
    assert student_tails(student_quantile(0.5 * tails, dof), dof) == pytest.approx(tails, rel=1e-11)


def test_the_ratio_of_gammas_is_smooth_where_the_series_begins() -> None:
    for dof in (1.0, 2.0, 30.0, 98.5, 99.9, 100.0, 101.0, 500.0):
        assert _gamma_ratio(dof) == pytest.approx(
            math.exp(gammaln(0.5 * dof + 0.5) - gammaln(0.5 * dof)), rel=3e-13
        )
    assert _gamma_ratio(1.0) == pytest.approx(1.0 / math.sqrt(math.pi), rel=1e-15)
    assert _gamma_ratio(2.0) == pytest.approx(math.sqrt(math.pi) / 2.0, rel=1e-15)


def test_no_difference_and_an_endless_one() -> None:
    assert student_tails(0.0, 5.0) == 1.0
    assert student_tails(math.inf, 5.0) == 0.0
    assert student_tails(1e200, 5.0) == 0.0
    assert np.isfinite(student_tails(1e-200, 5.0))
