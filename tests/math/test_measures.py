"""Measures of ranked grades: a case by hand, a slow twin, and what must not matter."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_counts import use_threads

from genm._math.hits import descending
from genm._math.measures import AP, BPREF, IPREC, JUDGED, NDCG, NO_CUTOFF, RPREC, RR, SUCCESS, P, R, measure_values

Ranked = list[int | None]  # grades in ranking order, None where nobody judged

grades = st.integers(-2, 4)
lists = st.lists(grades | st.none(), max_size=12)
kinds = st.sampled_from([AP, P, R, NDCG, RR, RPREC, BPREF, JUDGED, SUCCESS, IPREC])
plans = st.tuples(
    kinds,
    st.integers(1, 14),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)


def values(
    queries: list[tuple[Ranked, list[int]]], plan: list[tuple[int, int, int, bool, bool, float]]
) -> np.ndarray:
    """Measure rankings, each with the grades of what it did not retrieve."""
    judged = [[g for g in ranked if g is not None] + missed for ranked, missed in queries]
    starts = np.cumsum([0, *map(len, judged)])
    n_hits = np.array([sum(g is not None for g in ranked) for ranked, _ in queries])
    rank, grade = np.zeros(starts[-1], np.int64), np.zeros(starts[-1], np.int32)
    for q, (ranked, _) in enumerate(queries):
        hits = [(r, g) for r, g in enumerate(ranked, 1) if g is not None]
        for h, (r, g) in enumerate(hits):
            rank[starts[q] + h], grade[starts[q] + h] = r, g
    flat = np.array([g for of_query in judged for g in of_query], np.int32)
    table = np.array([row[:5] for row in plan], np.int64)
    recall = np.array([row[5] for row in plan])
    depth = np.array([len(ranked) for ranked, _ in queries])
    return measure_values(table, recall, starts, descending(starts, flat), (n_hits, rank, grade), depth)


def slowly(ranked: Ranked, missed: list[int], row: tuple[int, int, int, bool, bool, float]) -> float:
    """Read each definition off the page."""
    kind, cutoff, rel, judged_only, exponential, recall = row
    retrieved = [g for g in ranked if g is not None and g >= 0] if judged_only else ranked
    all_grades = [g for g in ranked if g is not None] + missed
    n_relevant = sum(g >= rel for g in all_grades)
    top = retrieved[:cutoff]
    is_relevant = [g is not None and g >= rel for g in top]
    precision = [sum(is_relevant[: i + 1]) / (i + 1) for i in range(len(top))]

    def gain(grade: int | None) -> float:
        if grade is None or grade <= 0:
            return 0.0
        return 2.0**grade - 1.0 if exponential else float(grade)

    if kind == P:
        return sum(is_relevant) / cutoff
    if kind == JUDGED:
        return sum(g is not None for g in top) / len(top) if top else 0.0
    if kind == NDCG:
        best = sorted(all_grades, reverse=True)[:cutoff]
        ideal = sum(gain(g) / math.log2(i + 2) for i, g in enumerate(best))
        return sum(gain(g) / math.log2(i + 2) for i, g in enumerate(top)) / ideal if ideal else 0.0
    if n_relevant == 0:
        return 0.0
    if kind == AP:
        return sum(p for p, yes in zip(precision, is_relevant, strict=True) if yes) / n_relevant
    if kind == R:
        return sum(is_relevant) / n_relevant
    if kind == RR:
        return 1 / (is_relevant.index(True) + 1) if any(is_relevant) else 0.0
    if kind == SUCCESS:
        return float(any(is_relevant))
    if kind == RPREC:
        return sum(g is not None and g >= rel for g in retrieved[:n_relevant]) / n_relevant
    if kind == IPREC:
        needed = int(recall * n_relevant + 0.9)
        if needed > sum(is_relevant):
            return 0.0
        return max((p for i, p in enumerate(precision) if sum(is_relevant[: i + 1]) >= needed), default=0.0)
    n_nonrelevant = sum(0 <= g < rel for g in all_grades)
    total = 0.0
    for i, g in enumerate(top):
        if g is not None and g >= rel:
            above = sum(h is not None and 0 <= h < rel for h in top[:i])
            total += 1.0 - (min(above, n_relevant) / min(n_nonrelevant, n_relevant) if above else 0.0)
    return total / n_relevant


def test_average_precision_by_hand() -> None:
    found = values([([1, None, 0, 2], [1, 0])], [(AP, NO_CUTOFF, 1, False, False, 0.0)])
    assert found[0, 0] == (1 / 1 + 2 / 4) / 3


def test_bpref_by_hand() -> None:
    # three relevant, two judged not relevant: min(R, N) is 2; one is passed by nobody, one by one, one is missed
    found = values([([2, 0, None, 1], [1, 0])], [(BPREF, NO_CUTOFF, 1, False, False, 0.0)])
    assert found[0, 0] == (1.0 + 0.5) / 3


@settings(deadline=None, max_examples=200)
@given(
    queries=st.lists(st.tuples(lists, st.lists(grades, max_size=5)), min_size=1, max_size=4),
    plan=st.lists(plans, min_size=1, max_size=6),
)
def test_values_are_those_of_the_definitions(
    queries: list[tuple[Ranked, list[int]]], plan: list[tuple[int, int, int, bool, bool, float]]
) -> None:
    # AP, Rprec, bpref and IPrec are defined without a cutoff; so that their twins agree, they get none here
    plan = [(k, NO_CUTOFF if k in (RPREC, BPREF, IPREC) else c, *rest) for k, c, *rest in plan]  # type: ignore[misc]
    plan = [(k, c, r, j and k not in (BPREF, JUDGED), e, x) for k, c, r, j, e, x in plan]
    expected = [[slowly(ranked, missed, row) for row in plan] for ranked, missed in queries]
    np.testing.assert_allclose(values(queries, plan), expected, rtol=1e-14)


@settings(deadline=None, max_examples=50)
@given(ranked=lists, missed=st.lists(grades, max_size=5), plan=plans, seed=st.randoms())
def test_the_order_of_what_was_not_retrieved_does_not_matter(
    ranked: Ranked, missed: list[int], plan: tuple[int, int, int, bool, bool, float], seed: object
) -> None:
    shuffled = list(missed)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    assert values([(ranked, missed)], [plan]) == values([(ranked, shuffled)], [plan])


def test_queries_do_not_see_one_another() -> None:
    rng = np.random.default_rng(0)
    plan = [(k, 10, 1, False, False, 0.5) for k in (AP, P, R, NDCG, RR, RPREC, BPREF, JUDGED, SUCCESS, IPREC)]
    queries = [
        ([None if g < -1 else int(g) for g in rng.integers(-3, 3, 30)], [1, 0]) for _ in range(400)
    ]  # enough for several threads
    together = values(queries, plan)
    for q in (0, 17, 399):
        np.testing.assert_array_equal(together[q], values([queries[q]], plan)[0])


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    queries = [([int(g) for g in rng.integers(-1, 4, 40)], []) for _ in range(600)]
    plan = [(NDCG, 10, 1, False, False, 0.0), (AP, NO_CUTOFF, 1, False, False, 0.0)]
    use_threads(monkeypatch, "1")
    alone = values(queries, plan)
    use_threads(monkeypatch, "3")
    np.testing.assert_array_equal(values(queries, plan), alone)
