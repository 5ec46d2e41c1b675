"""Paired tests: by hand, against scipy, and at the edges where others warn or crash."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from genm._math import significance

sizes = st.lists(st.sampled_from([-0.5, -0.1, 0.0, 0.1, 0.1, 0.25, 0.3]), min_size=1, max_size=40)


def one(values: list[float]) -> np.ndarray:
    return np.array(values)[:, None]


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@settings(deadline=None, max_examples=60)
@given(first=sizes, seed=st.integers(0, 9))
def test_no_input_warns_crashes_or_leaves_the_unit_interval(first: list[float], seed: int) -> None:
    d = np.stack([np.array(first), np.roll(first, seed), np.zeros(len(first)), np.full(len(first), 0.1)], axis=1)
    for p in (significance.wilcoxon(d), significance.student(d), significance.randomization(d, 200, rng())):
        assert ((p >= 0.0) & (p <= 1.0)).all()
        assert p[2] == 1.0
    low, high = significance.student_interval(d, 0.9)
    if len(first) == 1:
        assert np.isnan([low, high]).all()
    else:
        assert (low <= high).all()
        assert (low[2], high[2]) == (0.0, 0.0)


def test_a_single_query_is_no_evidence() -> None:
    d = one([0.4])
    assert significance.wilcoxon(d) == significance.student(d) == significance.randomization(d, 100, rng()) == 1.0
    assert all(np.isnan(end) for end in significance.student_interval(d, 0.95))


def test_fisher_by_hand() -> None:
    # of the eight sign patterns only the two with equal signs reach a sum of 6
    assert significance.randomization(one([1.0, 2.0, 3.0]), 8, rng()) == 2 / 8
    # and six of eight reach |1 + 2 - 3| = 0: all do
    assert significance.randomization(one([1.0, 2.0, -3.0]), 8, rng()) == 1.0


def test_fisher_drawn_and_counted_agree() -> None:
    d = one(np.random.default_rng(1).normal(0.3, 1.0, 12).tolist())
    exact = significance.randomization(d, 2**12, rng())
    drawn = significance.randomization(d, 2**12 - 1, rng())
    assert drawn != exact
    error = np.sqrt(exact[0] * (1 - exact[0]) / 2**12)  # of a share counted among so many draws
    assert drawn == pytest.approx(exact, abs=4 * error)
    theirs = stats.permutation_test((d[:, 0],), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert exact == pytest.approx(theirs.pvalue)


def test_fisher_is_never_0_when_drawn_and_the_same_for_the_same_seed() -> None:
    d = np.random.default_rng(2).normal(5.0, 1.0, (60, 2))
    p = significance.randomization(d, 999, rng())
    assert p.tolist() == [1 / 1000, 1 / 1000]
    middling = np.random.default_rng(2).normal(0.1, 1.0, (60, 2))
    first, again = (significance.randomization(middling, 999, np.random.default_rng(s)) for s in (4, 4))
    other = significance.randomization(middling, 999, np.random.default_rng(5))
    assert first.tolist() == again.tolist() != other.tolist()


def test_student_and_wilcoxon_are_scipys() -> None:
    d = np.random.default_rng(3).normal(0.2, 1.0, (80, 3))
    np.testing.assert_allclose(significance.student(d), stats.ttest_rel(d, np.zeros_like(d)).pvalue)
    np.testing.assert_allclose(significance.wilcoxon(d), [stats.wilcoxon(d[:, c]).pvalue for c in range(3)])


@pytest.mark.parametrize("n", [3, 9, 14, 60])
def test_wilcoxon_with_ties_is_scipys(n: int) -> None:
    d = np.random.default_rng(n).integers(1, 4, n) * np.where(np.arange(n) % 3, 0.1, -0.1)
    assert significance.wilcoxon(d[:, None])[0] == pytest.approx(stats.wilcoxon(d).pvalue)


@settings(deadline=None, max_examples=60)
@given(n=st.integers(1, 60), seed=st.integers(0, 10_000), shift=st.floats(-1.0, 1.0))
def test_wilcoxon_of_different_sizes_is_scipys_to_12_digits(n: int, seed: int, shift: float) -> None:
    d = np.random.default_rng(seed).normal(shift, 1.0, n)
    method = "exact" if n <= 50 else "approx"
    theirs = stats.wilcoxon(d, method=method).pvalue
    assert significance.wilcoxon(d[:, None])[0] == pytest.approx(theirs, rel=2e-12)


def test_wilcoxon_drops_zeros() -> None:
    d = [0.1, 0.2, -0.3, 0.4, 0.5]
    assert significance.wilcoxon(one([*d, 0.0, 0.0])) == significance.wilcoxon(one(d))


def test_equal_differences_leave_the_t_test_no_doubt() -> None:
    assert significance.student(one([0.1, 0.1])).tolist() == [0.0]


def test_noise_of_floating_point_makes_no_difference() -> None:
    noisy = np.array([0.3 - 0.2, 0.4 - 0.3, 0.1, (0.1 + 0.2) - 0.3])
    assert len(set(noisy.tolist())) == 4
    assert significance.rounded(noisy).tolist() == [0.1, 0.1, 0.1, 0.0]


def test_the_interval_is_that_of_scipys_t_test() -> None:
    d = np.random.default_rng(4).exponential(1.0, 40) - 0.5
    low, high = significance.student_interval(d[:, None], 0.95)
    theirs = stats.ttest_1samp(d, 0.0).confidence_interval(0.95)
    assert (low[0], high[0]) == (pytest.approx(theirs.low, abs=1e-11), pytest.approx(theirs.high, abs=1e-11))


def test_more_confidence_is_a_wider_interval() -> None:
    d = np.random.default_rng(4).normal(0.0, 1.0, (30, 1))
    narrow, wide = (significance.student_interval(d, c) for c in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_further_variance_widens_the_interval_as_a_variance_does() -> None:
    d = np.random.default_rng(4).normal(0.1, 1.0, (30, 1))
    alone, more = (significance.student_interval(d, 0.95, further_variance=v) for v in (0.0, 0.04))
    ratio = (more[1] - more[0]) / (alone[1] - alone[0])
    assert ratio == pytest.approx(np.sqrt(1.0 + 0.04 / (d.var(ddof=1) / 30)))
    assert more[0] + more[1] == pytest.approx(alone[0] + alone[1])


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), shift=st.floats(-1.0, 1.0), n=st.integers(2, 40))
def test_the_interval_leaves_out_zero_where_the_t_test_is_significant(seed: int, shift: float, n: int) -> None:
    d = np.random.default_rng(seed).normal(shift, 1.0, (n, 1))
    low, high = significance.student_interval(d, 0.95)
    p = significance.student(d)[0]
    if abs(p - 0.05) > 1e-9:
        assert (low[0] > 0.0 or high[0] < 0.0) == (p < 0.05)


@pytest.mark.parametrize(
    ("p", "corrected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.01, 0.02, 0.9], [0.03, 0.04, 0.9]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.2], [0.2]),
    ],
)
def test_holm_by_hand(p: list[float], corrected: list[float]) -> None:
    np.testing.assert_allclose(significance.holm(np.array(p)), corrected)
