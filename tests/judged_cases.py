"""Small runs and judgments written as dicts, and random ones full of ties."""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from genm._math.hits import Hits, hits_of_scores
from genm.ids import Ids, encode
from genm.records import Qrels, Run

Scores = Mapping[str, Mapping[str, float]]
Grades = Mapping[str, Mapping[str, int]]


def run_of(scores: Scores, name: str = "test") -> Run:
    """Make a run, ranked by score downwards and doc id downwards."""
    docs, starts, score = [], [0], []
    for ranked in scores.values():
        rows = sorted(ranked.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)
        docs += [doc_id for doc_id, _ in rows]
        score += [value for _, value in rows]
        starts.append(len(docs))
    table, codes = encode(docs)
    return Run(name, Ids.of(scores), table, np.array(starts), codes, np.array(score, np.float64))


def qrels_of(grades: Grades) -> Qrels:
    docs = [doc_id for judged in grades.values() for doc_id in judged]
    starts = np.cumsum([0, *(len(judged) for judged in grades.values())])
    table, codes = encode(docs)
    relevance = np.array([g for judged in grades.values() for g in judged.values()], np.int32)
    return Qrels(Ids.of(grades), table, starts, codes, relevance)


DOC_IDS = [f"d{i}" for i in range(12)] + ["D3", "é", "ß", "d10x"]
QUERY_IDS = ["1", "2", "10", "q", "Ω"]

# float32 keeps these apart or equal, as pytrec_eval compares scores in float32
TIED_SCORES = [-2.0, 0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1024.25]
GRADES = [-2, -1, 0, 0, 1, 1, 2, 3, 7]

V = TypeVar("V")


def some_of(draw: random.Random, names: list[str], value: Callable[[], V], least: int) -> dict[str, V]:
    """Return a value for some of the names, in any order; few and all of them come as often as any other number."""
    return {name: value() for name in draw.sample(names, draw.randint(least, len(names)))}


def drawn(case: Callable[[random.Random], V]) -> st.SearchStrategy[V]:
    """Draw a case by one seed instead of number by number, which takes a tenth of the time."""
    return st.integers(0, 2**32 - 1).map(lambda seed: case(random.Random(seed)))


def tied_runs(*, min_docs: int = 1) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    def case(draw: random.Random) -> dict[str, dict[str, float]]:
        ranked = partial(some_of, draw, DOC_IDS, lambda: draw.choice(TIED_SCORES), min_docs)
        return some_of(draw, QUERY_IDS, ranked, 1)

    return drawn(case)


def judgments() -> st.SearchStrategy[dict[str, dict[str, int]]]:
    def case(draw: random.Random) -> dict[str, dict[str, int]]:
        def judged() -> dict[str, int]:
            # trec_eval's own memory goes astray where every grade of a query is negative
            while max((found := some_of(draw, DOC_IDS, lambda: draw.choice(GRADES), 1)).values()) < 0:
                pass
            return found

        return some_of(draw, QUERY_IDS, judged, 1)

    return drawn(case)


Query = list[tuple[float, int | None]]  # a row's score and grade, None where nobody judged

_rows = st.tuples(st.sampled_from([-1.0, 0.0, 0.0, 0.5, 2.0]), st.integers(-2, 3) | st.none())
query_lists = st.lists(st.lists(_rows, max_size=25), min_size=1, max_size=4)


def of_scores(given_queries: list[Query], *, with_ties: bool = True) -> tuple[np.ndarray, Hits]:
    """Place the judged rows of queries given row by row; also return where each query's hits begin."""
    starts = np.cumsum([0, *map(len, given_queries)])
    flat = [row for query in given_queries for row in query]
    judged = np.array([i for i, (_, g) in enumerate(flat) if g is not None], np.int64)
    at = np.searchsorted(judged, starts)
    grade = np.array([flat[i][1] for i in judged], np.int32)
    scores = np.array([s for s, _ in flat], np.float64)
    return at, hits_of_scores(starts, scores, at, at, judged, grade, with_ties=with_ties)


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
