"""The certified optimum: against lines, random weights and an exact reading of its certificates."""

from fractions import Fraction
from math import log2

import certificates as exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_counts import use_threads

from genm._math.exact.branch_and_bound import Optimum, best_weights, leaves
from genm._math.exact.line_search import GainLines, ascend_lines, line_profile, value_at
from genm._math.exact.rank_gains import GainProblem, binary_problem, bpref_problem, graded_problem
from genm.errors import InputError


def random_scores(n_queries: int, n: int, n_rankers: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    relevant = rng.random(n_queries * n) < 5 / n
    relevant[::n] = True
    scores = rng.random((n_queries * n, n_rankers)) + 0.3 * relevant[:, None]
    return np.arange(n_queries + 1) * n, scores, relevant


def random_problem(n_queries: int, n: int, n_rankers: int, seed: int) -> GainProblem:
    starts, scores, relevant = random_scores(n_queries, n, n_rankers, seed)
    return binary_problem(starts, scores, relevant, np.add.reduceat(relevant, starts[:-1]), np.ones(n_queries))


def generic_weights(n_rankers: int, n: int = 300) -> np.ndarray:
    return np.random.default_rng(7).dirichlet(np.ones(n_rankers), n)


def test_a_case_worked_by_hand():
    # Each ranker puts one of two relevant rows below the middling row 2; together they put both above it.
    scores = np.array([[1.0, 0.4], [0.4, 1.0], [0.5, 0.5]])
    problem = binary_problem(np.array([0, 3]), scores, np.array([True, True, False]), np.array([2]), np.ones(1))
    found = best_weights(problem)
    assert (found.value, found.gap) == (1.0, 0.0)
    assert 1 / 6 < found.weights[0] < 5 / 6
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(4))
def test_two_rankers_equal_the_whole_line(seed):
    problem = random_problem(12, 150, 2, seed)
    line = line_profile(problem, np.array([0.0, 1.0]), np.array([1.0, -1.0]), 0.0, 1.0)
    found = best_weights(problem)
    assert found.value == pytest.approx(line.value, abs=1e-12)
    assert found.gap == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n_rankers", [3, 4])
def test_nothing_beats_the_certified_optimum(n_rankers):
    problem = random_problem(6, 60, n_rankers, 11)
    found = best_weights(problem)
    assert found.gap == pytest.approx(0.0, abs=1e-12)
    assert value_at(problem, found.weights) == found.value
    assert found.weights.min() >= 0
    for weights in generic_weights(n_rankers):
        assert value_at(problem, weights) <= found.upper + 1e-12
        if value_at(problem, weights) > 0.98 * found.value:
            assert ascend_lines(GainLines(problem), weights)[1] <= found.upper + 1e-12


def test_one_ranker_has_one_weight():
    problem = random_problem(5, 40, 1, 2)
    found = best_weights(problem, certificate=True)
    assert found.weights.tolist() == [1.0]
    assert found.value == found.upper == value_at(problem, np.ones(1))


def test_only_generic_weights_count():
    # At equal weights all three rows tie and the first row, the relevant one, would win: an accident of one point.
    scores = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    problem = binary_problem(np.array([0, 3]), scores, np.array([True, False, False]), np.array([1]), np.ones(1))
    assert value_at(problem, np.array([0.5, 0.5])) == 1.0
    found = best_weights(problem)
    assert (found.value, found.upper) == (0.5, 0.5)


def test_a_larger_gap_stops_earlier_and_keeps_its_promise():
    problem = random_problem(10, 100, 3, 5)
    exactly, roughly = best_weights(problem), best_weights(problem, gap=0.02)
    assert roughly.n_cells < exactly.n_cells
    assert 0.0 <= roughly.gap <= 0.02 + 1e-12
    assert roughly.upper >= exactly.value - 1e-12


def test_time_runs_out_with_an_honest_bound():
    problem = random_problem(30, 200, 4, 6)
    found = best_weights(problem, seconds=1e-6, certificate=True)
    assert found.gap > 0.01
    assert np.isfinite(found.upper)
    assert max(bound for _, bound in leaves(found.certificate)) == pytest.approx(found.upper)
    for weights in generic_weights(4):
        assert value_at(problem, weights) <= found.upper


def test_the_result_does_not_depend_on_threads(monkeypatch):
    problem = random_problem(8, 80, 3, 8)
    results = []
    for threads in ("1", "3"):
        use_threads(monkeypatch, threads)
        found = best_weights(problem, certificate=True)
        results.append(
            (found.weights.tolist(), found.value, found.upper, found.n_cells, found.certificate.edges.tolist())
        )
    assert results[0] == results[1]


def test_a_start_is_used_and_progress_is_told():
    problem = random_problem(6, 60, 3, 9)
    best, told = best_weights(problem), []
    found = best_weights(problem, gap=0.5, start=best.weights, progress=lambda *step: told.append(step))
    assert found.value == pytest.approx(best.value, abs=1e-12)
    assert told[-1] == ("exact search, gap 0.5", 64, 64)


def test_climbing_never_loses_and_uses_its_random_lines():
    gains = []
    for seed in range(12, 16):
        problem = random_problem(15, 150, 4, seed)
        start = np.array([0.1, 0.2, 0.3, 0.4])
        plain, drawn = (
            ascend_lines(GainLines(problem), start),
            ascend_lines(GainLines(problem), start, n_random=20, seed=1),
        )
        assert value_at(problem, start) <= plain[1]
        assert ascend_lines(GainLines(problem), drawn[0])[1] >= drawn[1]
        assert drawn[0].min() >= 0
        assert drawn[0].sum() == pytest.approx(1.0)
        gains.append(drawn[1] - plain[1])
    assert max(gains) > 0


def check(found: Optimum, queries: list[list[tuple[list[list[Fraction]], set[int], Fraction, exact.Gain]]]) -> None:
    """Hold every leaf of a certificate to its exact bound; its rows are those of all queries in turn."""
    tree = found.certificate
    assert tree is not None
    scale = [Fraction(s) for s in tree.scale]
    scaled = [
        [([[s * v for s, v in zip(scale, row, strict=True)] for row in rows], *others) for rows, *others in q]
        for q in queries
    ]
    claims = exact.tree_leaves(
        len(scale),
        tree.edges.tolist(),
        tree.numbers.tolist(),
        [tuple(tie) for tie in tree.ties.tolist()],
        [row for q in scaled for row in q[0][0]],
    )
    for corners, claimed in claims:
        bound = sum(
            s * exact.leaf_bound(rows, rel, gain, corners, *fold) for q in scaled for rows, rel, s, gain, *fold in q
        )
        assert bound <= Fraction(claimed) + Fraction(1, 10**12)
    assert max(claimed for _, claimed in claims) <= found.upper + 1e-12
    ours = list(leaves(tree))
    assert len(ours) == len(claims)
    for (corners, claimed), (want, number) in zip(ours, claims, strict=True):
        weights = np.array(want, np.float64) * tree.scale
        np.testing.assert_allclose(corners, weights / weights.sum(axis=1, keepdims=True), atol=1e-12)
        assert claimed == number


@st.composite
def small_queries(draw: st.DrawFn) -> list[tuple[list[list[Fraction]], list[int]]]:
    """Draw two queries of few rows; few levels give ties, many give none."""
    n_rankers, level = draw(st.integers(2, 3)), st.integers(0, draw(st.sampled_from([2, 1000])))
    found = []
    for _ in range(2):
        n = draw(st.integers(2, 6))
        rows = [[Fraction(draw(level), 8) for _ in range(n_rankers)] for _ in range(n)]
        found.append((rows, [draw(st.integers(0, 2)) for _ in range(n)]))
    return found


def as_arrays(queries: list[tuple[list[list[Fraction]], list[int]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts = np.concatenate(([0], np.cumsum([len(rows) for rows, _ in queries]))).astype(np.int64)
    scores = np.array([row for rows, _ in queries for row in rows], np.float64)
    return starts, scores, np.array([g for _, grades in queries for g in grades], np.float64)


@settings(deadline=None, max_examples=15)
@given(small_queries())
def test_certificates_of_average_precision_hold_in_exact_arithmetic(queries):
    starts, scores, grades = as_arrays(queries)
    known = np.array([sum(g > 0 for g in grades) + 1 for _, grades in queries])
    found = best_weights(binary_problem(starts, scores, grades > 0, known, np.ones(2)), certificate=True)
    tasks = [
        [
            (
                rows,
                {d for d, g in enumerate(own) if g > 0},
                Fraction(1, 2 * int(n)),
                lambda i, rank: Fraction(i, rank),
            )
        ]
        for (rows, own), n in zip(queries, known, strict=True)
    ]
    check(found, tasks)
    pairs = [(rows, [Fraction(g) for g in own], int(n)) for (rows, own), n in zip(queries, known, strict=True)]
    at = exact.value_at(
        pairs, [Fraction(1, 2)] * 2, [Fraction(w) for w in found.weights], exact.average_precision(10**6)
    )
    assert float(at) == pytest.approx(found.value, abs=1e-12)
    assert found.value <= found.upper <= found.value + 1e-9


@settings(deadline=None, max_examples=10)
@given(small_queries(), st.booleans())
def test_certificates_of_iprec_and_bpref_hold_in_exact_arithmetic(queries, largest):
    """The one takes the largest gain from the second relevant row on, the other goes by the rows above alone."""
    starts, scores, grades = as_arrays(queries)
    known = np.array([max(sum(g > 0 for g in own), 2) for _, own in queries])
    others = np.array([sum(g == 0 for g in own) + 1 for _, own in queries])
    half = np.ones(2)
    if largest:
        problem = binary_problem(starts, scores, grades > 0, known, half, measure="IPrec", recall=1.0 / max(known))
    else:
        problem = bpref_problem(starts, scores, grades > 0, known, others, half)
    found = best_weights(problem, certificate=True)
    tasks = []
    for (rows, own), R, N in zip(queries, known.tolist(), others.tolist(), strict=True):
        relevant, least = {d for d, g in enumerate(own) if g > 0}, max(int(R / max(known) + 0.9), 1)
        if largest:
            best = lambda gains, least=least: max(gains[least - 1 :], default=Fraction(0))  # noqa: E731
            tasks.append([(rows, relevant, Fraction(1, 2), lambda i, rank: Fraction(i, rank), best)])
        else:
            kept = lambda i, rank, R=R, N=N: 1 - Fraction(min(rank - i, R), min(R, N))  # noqa: E731
            tasks.append([(rows, relevant, Fraction(1, 2 * R), kept)])
    check(found, tasks)
    assert found.value <= found.upper <= found.value + 1e-9


@settings(deadline=None, max_examples=10)
@given(small_queries(), st.sampled_from([1, 3]))
def test_certificates_of_ndcg_hold_in_exact_arithmetic(queries, cutoff):
    starts, scores, grades = as_arrays(queries)
    found = best_weights(
        graded_problem(starts, scores, grades, np.ones(2), np.ones(2), cutoff=cutoff), certificate=True
    )

    def gain(_: int, rank: int) -> Fraction:
        return Fraction(1 / log2(rank + 1)) if rank <= cutoff else Fraction(0)

    tasks = [
        [(rows, {d for d, g in enumerate(own) if g >= level}, Fraction(1, 2), gain) for level in (1, 2)]
        for rows, own in queries
    ]
    check(found, tasks)


def test_the_checker_finds_fault():
    with pytest.raises(ValueError, match="ends before"):
        exact.tree_leaves(2, [1, -1], [0.5, 0.3])
    with pytest.raises(ValueError, match="goes on after"):
        exact.tree_leaves(2, [-1, -1], [0.5, 0.3])
    with pytest.raises(ValueError, match=r"share 1\.0"):
        exact.tree_leaves(2, [1, -1, -1], [1.0, 0.3, 0.3])


def test_limits_that_make_no_sense_are_named():
    problem = random_problem(2, 20, 2, 1)
    with pytest.raises(InputError, match="expected gap >= 0 and seconds > 0; found -1"):
        best_weights(problem, gap=-1.0)
    with pytest.raises(InputError, match="found 0"):
        best_weights(problem, seconds=0.0)
