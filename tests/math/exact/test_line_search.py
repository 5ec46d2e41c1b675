"""Exact line search against plain sorting at the midpoint of every interval, in fractions."""

from fractions import Fraction

import certificates as exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_counts import use_threads

from genm._math.exact import line_search
from genm._math.exact.line_kernels import fuse_likely
from genm._math.exact.line_search import line_profile, value_at
from genm._math.exact.rank_gains import GainProblem, binary_problem, bpref_problem, graded_problem
from genm.errors import InputError

MEASURES = {
    "AP": exact.average_precision,
    "P": exact.precision,
    "recall": exact.recall,
    "RR": exact.reciprocal_rank,
    "success": exact.success,
    "Rprec": lambda cutoff: exact.r_precision(),
    "IPrec": lambda cutoff: exact.interpolated_precision(LEVEL),
    "bpref": lambda cutoff: exact.bpref(1),
}
LEVEL = 0.4
ENDS = (Fraction(-1, 4), Fraction(5, 4))


@pytest.fixture(autouse=True, scope="module")
def bounds_on_small_lines():
    """Have parts of every line bounded, which is done for large problems only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_search, "WORTH_BOUNDS", 0)
        yield


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[exact.Query], list[list[Fraction]]]:
    """Draw a few queries with few score levels, so that ties and equal rows abound, and a line."""
    n_rankers = draw(st.integers(1, 3))
    level = st.integers(0, draw(st.sampled_from([2, 5, 40])))
    queries = []
    for _ in range(draw(st.integers(1, 3))):
        rows = draw(st.lists(st.lists(level, min_size=n_rankers, max_size=n_rankers), min_size=1, max_size=9))
        gains = draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
        missing = draw(st.integers(0, 2))
        known = sum(g > 0 for g in gains) + missing
        queries.append(([[Fraction(s) for s in row] for row in rows], [Fraction(g) for g in gains], known))
    dyadic = st.integers(-8, 8).map(lambda n: Fraction(n, 8))
    line = [draw(st.lists(dyadic, min_size=n_rankers, max_size=n_rankers)) for _ in range(2)]
    return queries, line


def arrays(queries: list[exact.Query]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    starts = np.concatenate(([0], np.cumsum([len(rows) for rows, _, _ in queries]))).astype(np.int64)
    scores = np.array([row for rows, _, _ in queries for row in rows], np.float64)
    gains = np.array([g for _, gains, _ in queries for g in gains], np.float64)
    return starts, scores, gains, np.array([known for _, _, known in queries], np.int64)


def as_problem(queries: list[exact.Query], measure: str, cutoff: int | None) -> GainProblem:
    starts, scores, gains, known = arrays(queries)
    weights = np.arange(1.0, len(known) + 1.0)
    if measure == "bpref":
        others = np.add.reduceat(gains == 0, starts[:-1]) + 1
        return bpref_problem(starts, scores, gains > 0, known, others, weights)
    if measure == "IPrec":
        return binary_problem(starts, scores, gains > 0, known, weights, measure="IPrec", recall=LEVEL)
    return binary_problem(starts, scores, gains > 0, known, weights, measure=measure, cutoff=cutoff)


def shares(queries: list[exact.Query]) -> list[Fraction]:
    n = len(queries)
    return [Fraction(2 * (i + 1), n * (n + 1)) for i in range(n)]


def agrees(
    problem: GainProblem, steps: list[tuple[Fraction, Fraction, Fraction]], line: list[list[Fraction]]
) -> None:
    """Hold the best interval and the whole step function to the fractions."""
    origin, direction = (np.array(v, np.float64) for v in line)
    low, high = float(ENDS[0]), float(ENDS[1])
    quick = line_profile(problem, origin, direction, low, high)
    full = line_profile(problem, origin, direction, low, high, whole=True)
    best = max(value for _, _, value in steps)
    widest = max(right - left for left, right, value in steps if value == best)
    for found in (quick, full):
        assert found.value == pytest.approx(float(best), abs=1e-12)
        assert found.width <= float(widest) + 1e-9
        home = [s for s in steps if s[0] - Fraction(1, 10**9) <= found.middle <= s[1] + Fraction(1, 10**9)]
        assert any(value == best for _, _, value in home)
    # Swaps of several queries can cancel at one point, so ours may have a breakpoint where nothing changes.
    for left, right, value in steps:
        inside = (full.breakpoints[:-1] < float(right) - 1e-9) & (full.breakpoints[1:] > float(left) + 1e-9)
        assert inside.any()
        np.testing.assert_allclose(full.values[inside], float(value), atol=1e-12)


@settings(deadline=None, max_examples=120)
@given(cases(), st.sampled_from(sorted(MEASURES)), st.sampled_from([1, 2, 5, None]))
def test_binary_measures_equal_plain_sorting_on_every_interval(case, measure, cutoff):
    queries, line = case
    if cutoff is None and measure in ("P", "success"):
        cutoff = 3
    steps = exact.step_function(queries, shares(queries), *line, ENDS, MEASURES[measure](cutoff or 10**6))
    agrees(as_problem(queries, measure, cutoff), steps, line)


@settings(deadline=None, max_examples=60)
@given(cases(), st.sampled_from([1, 3, None]))
def test_ndcg_equals_plain_sorting_on_every_interval(case, cutoff):
    queries, line = case
    starts, scores, gains, _ = arrays(queries)
    measure = exact.dcg(cutoff or 10**6)
    ideal = [measure(sorted(g, reverse=True), 0) or Fraction(1) for _, g, _ in queries]
    problem = graded_problem(
        starts, scores, gains, np.array(ideal, np.float64), np.arange(1.0, len(ideal) + 1.0), cutoff=cutoff
    )
    parts = [s / i for s, i in zip(shares(queries), ideal, strict=True)]
    agrees(problem, exact.step_function(queries, parts, *line, ENDS, measure), line)


@settings(deadline=None, max_examples=60)
@given(cases(), st.sampled_from(sorted(MEASURES)))
def test_value_at_a_point_breaks_ties_by_row(case, measure):
    queries, (point, _) = case
    want = exact.value_at(queries, shares(queries), point, MEASURES[measure](4))
    found = value_at(as_problem(queries, measure, 4), np.array(point, np.float64))
    assert found == pytest.approx(float(want), abs=1e-12)


def hard_problem(n_queries: int = 40, seed: int = 3) -> GainProblem:
    """Return queries with enough swaps, and more than 64 relevant rows, for every branch of the sweep."""
    rng = np.random.default_rng(seed)
    n = 700
    scores = rng.random((n_queries * n, 3))
    relevant = rng.random(n_queries * n) < 0.12
    starts = np.arange(n_queries + 1) * n
    return binary_problem(starts, scores, relevant, np.add.reduceat(relevant, starts[:-1]), np.ones(n_queries))


def test_picking_bins_finds_what_sorting_everything_finds():
    problem = hard_problem()
    origin, direction = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.1, -0.5])
    quick = line_profile(problem, origin, direction, 0.0, 1.0)
    full = line_profile(problem, origin, direction, 0.0, 1.0, whole=True)
    assert quick.n_swaps == full.n_swaps > 100_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_search, "WORTH_BOUNDS", 10**12)
        unbounded = line_profile(problem, origin, direction, 0.0, 1.0)
    assert unbounded[:2] == quick[:2]
    assert unbounded.value == pytest.approx(quick.value, abs=1e-12)
    assert line_search._likely_steps(line_search._sweep_all(problem, origin, origin + direction, [], whole=False))
    assert (quick.low, quick.high) == (full.low, full.high)
    buffers = []
    for _ in range(2):
        assert line_profile(problem, origin, direction, 0.0, 1.0, buffers=buffers)[:4] == quick[:4]
    short = line_profile(problem, origin, direction, 0.4, 0.6)
    assert line_profile(problem, origin, direction, 0.4, 0.6, buffers=buffers)[:4] == short[:4]
    assert quick.value == pytest.approx(full.value, abs=1e-12)
    assert value_at(problem, origin + quick.middle * direction) == pytest.approx(quick.value, abs=1e-12)
    for at in np.linspace(0.01, 0.99, 23):
        step = np.searchsorted(full.breakpoints, at) - 1
        assert full.values[step] == pytest.approx(value_at(problem, origin + at * direction), abs=1e-12)


@pytest.mark.parametrize("measure", ["AP", "nDCG"])
@pytest.mark.parametrize("direction", [[0.1, -0.05, -0.05], [-1.0, 0.4, 0.3], [0.9, -0.8, 2.0]])
def test_blocks_that_are_passed_over_change_nothing(measure, direction):
    """Relevant rows that stand high leave blocks below them, also away from equal weights."""
    rng = np.random.default_rng(8)
    sizes = np.array([900, 1, 700, 128, 0, 1100])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    gains = np.where(rng.random(starts[-1]) < 0.02, rng.integers(1, 3, starts[-1]), 0).astype(np.float64)
    scores = rng.random((starts[-1], 3)) + 0.8 * gains[:, None] - 0.5
    weights = np.ones(len(sizes))
    if measure == "nDCG":
        problem = graded_problem(starts, scores, gains, weights * 9, weights)
    else:
        problem = binary_problem(starts, scores, gains > 0, np.full(len(sizes), 9), weights)
    origin, line = np.array([0.3, 0.4, 0.3]), np.array(direction)
    full = line_profile(problem, origin, line, 0.0, 1.0, whole=True)
    quick = line_profile(problem, origin, line, 0.0, 1.0)
    assert quick.value == pytest.approx(full.value, abs=1e-12)
    assert value_at(problem, origin + quick.middle * line) == pytest.approx(quick.value, abs=1e-12)
    for at in np.linspace(0.01, 0.99, 23):
        step = np.searchsorted(full.breakpoints, at) - 1
        assert full.values[step] == pytest.approx(value_at(problem, origin + at * line), abs=1e-12)
    n = int(sizes[0])
    u, rounded, ranges = np.empty((2, n)), np.empty((2, n), np.float32), np.empty((2, 2, 8), np.float32)
    fuse_likely(problem, 0, len(problem.query), origin, origin + line, u[0], u[1], rounded, ranges)
    assert np.isneginf(ranges[:, 1]).all(axis=0).any()


def test_swap_points_crowded_together_are_still_sorted():
    rng = np.random.default_rng(5)
    n = 3000
    scores = np.empty((n, 2))
    scores[:, 0] = rng.random(n)
    scores[:, 1] = 1 - scores[:, 0] + 1e-9 * rng.random(n)  # all pairs swap within 1e-9 of the middle
    relevant = np.arange(n) % 100 == 7
    starts = np.array([0, n])
    problem = binary_problem(starts, scores, relevant, np.array([relevant.sum()]), np.ones(1))
    origin, direction = np.array([1.0, 0.0]), np.array([-1.0, 1.0])
    found = line_profile(problem, origin, direction, 0.0, 1.0, whole=True)
    ends = [value_at(problem, np.array([1 - t, t])) for t in (0.4, 0.6)]
    assert [found.values[0], found.values[-1]] == pytest.approx(ends, abs=1e-12)
    assert found.value >= max(ends)


def test_results_do_not_depend_on_threads(monkeypatch):
    problem = hard_problem()
    origin, direction = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.1, -0.5])
    results = []
    for threads in ("1", "2", "3"):
        use_threads(monkeypatch, threads)
        results.append(line_profile(problem, origin, direction, 0.0, 1.0)[:4])
    assert results[0] == results[1] == results[2]


def test_a_case_worked_by_hand():
    # Row 0 (relevant) beats row 1 while t < 1/2: AP 1 before, 1/2 after.
    problem = binary_problem(
        np.array([0, 2]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([True, False]), np.array([1]), np.ones(1)
    )
    found = line_profile(problem, np.array([1.0, 0.0]), np.array([-1.0, 1.0]), 0.0, 1.0, whole=True)
    assert (found.low, found.high, found.value, found.n_swaps) == (0.0, 0.5, 1.0, 1)
    assert (found.middle, found.width) == (0.25, 0.5)
    assert found.breakpoints.tolist() == [0.0, 0.5, 1.0]
    assert found.values.tolist() == [1.0, 0.5]


def test_what_cannot_be_used_is_named():
    problem = hard_problem(1)
    with pytest.raises(InputError, match=r"expected low < high; found low 1.0 and high 1.0"):
        line_profile(problem, np.ones(3), np.ones(3), 1.0, 1.0)
    starts, scores = np.array([0, 2]), np.array([[1.0], [np.nan]])
    args = (np.array([True, False]), np.array([1]), np.ones(1))
    with pytest.raises(InputError, match="expected finite numbers"):
        binary_problem(starts, scores, *args)
    with pytest.raises(InputError, match="measure P: expected a cutoff"):
        binary_problem(starts, np.zeros((2, 1)), *args, measure="P")
    with pytest.raises(InputError, match="measure 'MAP': expected AP"):
        binary_problem(starts, np.zeros((2, 1)), *args, measure="MAP")
    with pytest.raises(InputError, match=r"expected none below 0; found -1.0"):
        graded_problem(starts, np.zeros((2, 1)), np.array([1.0, -1.0]), np.ones(1), np.ones(1))
