"""Judged documents are found where a full sort would put them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.measures_hits import Hits, descending, hits_of_run, hits_of_scores, tie_extremes

Query = list[tuple[float, int | None]]  # a row's score and grade, None where nobody judged

rows = st.tuples(st.sampled_from([-1.0, 0.0, 0.0, 0.5, 2.0]), st.integers(-2, 3) | st.none())
queries = st.lists(st.lists(rows, max_size=25), min_size=1, max_size=4)


def of_scores(given_queries: list[Query]) -> tuple[np.ndarray, Hits]:
    starts = np.cumsum([0, *map(len, given_queries)])
    flat = [row for query in given_queries for row in query]
    judged = np.array([i for i, (_, g) in enumerate(flat) if g is not None], np.int64)
    at = np.searchsorted(judged, starts)
    grade = np.array([flat[i][1] for i in judged], np.int32)
    scores = np.array([s for s, _ in flat], np.float64)
    return at, hits_of_scores(starts, scores, at, at, judged, grade)


def by_sorting(query: Query) -> list[tuple[int, int, int, int]]:
    """Return (rank, grade, first, last) of each judged row, in ranking order."""
    order = sorted(range(len(query)), key=lambda i: -query[i][0])
    found = []
    for rank, i in enumerate(order, 1):
        score, grade = query[i]
        if grade is not None:
            first = 1 + sum(s > score for s, _ in query)
            last = sum(s >= score for s, _ in query)
            found.append((rank, grade, first, last))
    return found


@settings(deadline=None, max_examples=200)
@given(given_queries=queries)
def test_rows_are_placed_as_a_stable_sort_places_them(given_queries: list[Query]) -> None:
    at, hits = of_scores(given_queries)
    for q, query in enumerate(given_queries):
        mine = slice(at[q], at[q] + hits.n_hits[q])
        found = zip(*(a[mine].tolist() for a in (hits.rank, hits.grade, hits.first, hits.last)), strict=True)
        assert list(found) == by_sorting(query)


def test_many_judged_rows_are_placed_too() -> None:
    rng = np.random.default_rng(3)
    query = [(float(s), int(g)) for s, g in zip(rng.integers(0, 300, 2000), rng.integers(0, 3, 2000), strict=True)]
    at, hits = of_scores([query])
    assert list(
        zip(hits.rank.tolist(), hits.grade.tolist(), hits.first.tolist(), hits.last.tolist(), strict=True)
    ) == (by_sorting(query))
    assert at.tolist() == [0, 2000]


@settings(deadline=None, max_examples=200)
@given(given_queries=queries, seed=st.integers(0, 99))
def test_a_run_is_searched_for_the_same_hits(given_queries: list[Query], seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high, doc, score, judged_starts, judged_doc, grade = [], [], [], [], [0], [], []
    for query in given_queries:
        order = sorted(range(len(query)), key=lambda i: -query[i][0])
        codes = rng.choice(10**6, len(query) + 2, replace=False)
        low.append(len(doc))
        doc += [int(codes[i]) for i in order]
        score += [query[i][0] for i in order]
        high.append(len(doc))
        judged = [(int(codes[i]), g) for i, (_, g) in enumerate(query) if g is not None]
        judged += [(-1, 1), (int(codes[-1]), 2)]  # one that the run's table lacks, one that only this list lacks
        for i in rng.permutation(len(judged)):
            judged_doc.append(judged[i][0])
            grade.append(judged[i][1])
        judged_starts.append(len(judged_doc))
    hits = hits_of_run(
        np.array(low),
        np.array(high),
        np.array(doc, np.int32),
        np.array(score, np.float64),
        np.array(judged_starts),
        np.array(judged_doc, np.int32),
        np.array(grade, np.int32),
    )
    for q, query in enumerate(given_queries):
        mine = slice(judged_starts[q], judged_starts[q] + int(hits.n_hits[q]))
        found = zip(*(a[mine].tolist() for a in (hits.rank, hits.grade, hits.first, hits.last)), strict=True)
        assert list(found) == by_sorting(query)


def test_grades_are_sorted_within_their_queries() -> None:
    starts = np.array([0, 3, 3, 5])
    lowest, highest = -(2**31) + 1, 2**31 - 1
    grade = np.array([0, highest, -1, lowest, 2], np.int32)
    assert descending(starts, grade).tolist() == [highest, 0, -1, 2, lowest]


def test_tied_documents_are_put_in_their_kindest_and_harshest_order() -> None:
    # ranks 2 to 5 are tied; 2, 3 and 5 are judged, with grades 0, 2 and -1
    at, hits = of_scores([[(9.0, 1), (5.0, 0), (5.0, 2), (5.0, None), (5.0, -1), (1.0, None)]])
    extremes = tie_extremes(at, hits)
    assert extremes is not None
    kindest, harshest = extremes
    assert (kindest.rank.tolist(), kindest.grade.tolist()) == ([1, 2, 3, 4], [1, 2, 0, -1])
    assert (harshest.rank.tolist(), harshest.grade.tolist()) == ([1, 3, 4, 5], [1, -1, 0, 2])


def test_without_ties_there_are_no_extremes() -> None:
    at, hits = of_scores([[(2.0, 1), (1.0, None), (1.0, None)], [(2.0, 1), (1.0, 0)]])
    assert tie_extremes(at, hits) is None


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    given_queries: list[Query] = [
        [
            (float(s), int(g) if g >= 0 else None)
            for s, g in zip(rng.integers(0, 50, 200), rng.integers(-3, 2, 200), strict=True)
        ]
        for _ in range(150)
    ]
    monkeypatch.setenv("GENM_THREADS", "1")
    _, alone = of_scores(given_queries)
    monkeypatch.setenv("GENM_THREADS", "3")
    _, together = of_scores(given_queries)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
