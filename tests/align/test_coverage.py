import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import judgments, qrels_of, run_of, tied_runs

from genm.align import align_runs

A = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 2.0, "d4": 1.0}, "q2": {"d1": 10.0}}
B = {"q1": {"d1": 0.5, "d3": 0.25, "d9": 0.0}}
GRADES = {"q1": {"d1": 1, "d9": 0, "zz": 1}, "q2": {"d7": 0}, "q3": {"d1": 1}}


def test_coverage_worked_by_hand() -> None:
    found = align_runs({"a": run_of(A), "b": run_of(B)}, qrels_of(GRADES)).coverage()
    assert found.rankers == ("a", "b")
    assert (found.n_queries, found.n_empty, found.n_without_relevant) == (3, 1, 1)
    assert found.depths == (5, 10, 20, 100)
    # q1: a returned four documents, one judged; q2: one, not judged. b: two of three, q1 alone.
    np.testing.assert_allclose(found.judged[0], [(1 / 4 + 0) / 2, 2 / 3])
    # q1: d1 and d3 of five; q2: b is empty, nothing shared.
    np.testing.assert_allclose(found.overlap[0], [[1.0, (2 / 5 + 0) / 2], [(2 / 5 + 0) / 2, 1.0]])
    np.testing.assert_allclose(found.missing, [1 / 6, 3 / 6])
    np.testing.assert_allclose(found.ties, [2 / 5, 0.0])
    np.testing.assert_allclose(found.scales, [[1.0, 2.0, 10.0], [0.0, 0.25, 0.5]])


def test_without_judgments_nothing_is_said_about_them() -> None:
    found = align_runs({"a": run_of(A)}).coverage()
    assert found.judged is None
    assert found.n_without_relevant is None


def test_empty_rankers_and_huge_scores_give_numbers() -> None:
    huge = run_of({"q1": {"d1": 1.7e308, "d2": 1.6e308}})
    found = align_runs({"a": huge, "b": run_of({})}, qrels_of(GRADES)).coverage()
    np.testing.assert_array_equal(found.scales[1], 0.0)
    for array in (found.judged, found.overlap, found.missing, found.ties, found.scales):
        assert np.isfinite(array).all()
    assert 1.6e308 <= found.scales[0, 1] <= 1.7e308


def slow_mean(shares: list[float]) -> float:
    return sum(shares) / len(shares) if shares else 0.0


@settings(deadline=None, max_examples=30)
@given(st.lists(tied_runs(min_docs=0), min_size=1, max_size=3), judgments())
def test_coverage_agrees_with_sets(
    tables: list[dict[str, dict[str, float]]], grades: dict[str, dict[str, int]]
) -> None:
    assume(all(not table or set(table) & set(grades) for table in tables))
    runs = {f"r{k}": run_of(table) for k, table in enumerate(tables)}
    found = align_runs(runs, qrels_of(grades)).coverage()
    for d, depth in enumerate(found.depths):
        tops = [
            {
                q: set(sorted(table.get(q, {}), key=lambda x, t=table, q=q: (t[q][x], x.encode()))[::-1][:depth])
                for q in grades
            }
            for table in tables
        ]
        for a, top in enumerate(tops):
            shares = [len(top[q] & set(grades[q])) / len(top[q]) for q in grades if top[q]]
            assert found.judged[d, a] == pytest.approx(slow_mean(shares))
            for b, other in enumerate(tops):
                shares = [len(top[q] & other[q]) / len(top[q] | other[q]) for q in grades if top[q] | other[q]]
                assert found.overlap[d, a, b] == pytest.approx(slow_mean(shares))


def test_long_lists_agree_with_sets_at_every_depth() -> None:
    rng = np.random.default_rng(3)
    tables = [
        {f"q{q}": {f"d{i}": float(rng.integers(40)) for i in rng.permutation(200)[:150]} for q in range(3)}
        for _ in range(3)
    ]
    found = align_runs({f"r{k}": run_of(table) for k, table in enumerate(tables)}).coverage()
    for d, depth in enumerate(found.depths):
        tops = [
            [set(sorted(own, key=lambda x, own=own: (own[x], x), reverse=True)[:depth]) for own in table.values()]
            for table in tables
        ]
        for a, first in enumerate(tops):
            for b, second in enumerate(tops):
                shares = [len(x & y) / len(x | y) for x, y in zip(first, second, strict=True)]
                assert found.overlap[d, a, b] == pytest.approx(slow_mean(shares))
    for k, table in enumerate(tables):
        values = [list(own.values()) for own in table.values()]
        tied = sum(own.count(value) > 1 for own in values for value in own)
        assert found.ties[k] == tied / sum(map(len, values))
