"""Judged documents are found in a run where they stand, and tied ones where they could stand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_cases import Query, by_sorting, of_scores, query_lists
from thread_counts import use_threads

from genm._math.hits import descending, hits_of_run, tie_extremes


@settings(deadline=None, max_examples=200)
@given(given_queries=query_lists, seed=st.integers(0, 99))
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


@settings(deadline=None, max_examples=200)
@given(given_queries=query_lists)
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


@settings(deadline=None, max_examples=50)
@given(given_queries=query_lists)
def test_ranks_and_grades_need_no_count_of_ties(given_queries: list[Query]) -> None:
    _, full = of_scores(given_queries)
    _, quick = of_scores(given_queries, with_ties=False)
    for name in ("n_hits", "rank", "grade"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(full, name))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    given_queries: list[Query] = [
        [
            (float(s), int(g) if g >= 0 else None)
            for s, g in zip(rng.integers(0, 50, 200), rng.integers(-3, 2, 200), strict=True)
        ]
        for _ in range(150)
    ]
    use_threads(monkeypatch, "1")
    _, alone = of_scores(given_queries)
    use_threads(monkeypatch, "3")
    _, together = of_scores(given_queries)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
