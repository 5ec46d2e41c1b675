"""Judged rows are placed where a full sort would put them."""

import numpy as np
import pytest
from hypothesis import given, settings
from judged_cases import Query, by_sorting, of_scores, query_lists


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
    monkeypatch.setenv("GENM_THREADS", "1")
    _, alone = of_scores(given_queries)
    monkeypatch.setenv("GENM_THREADS", "3")
    _, together = of_scores(given_queries)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
