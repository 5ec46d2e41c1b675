"""Small runs and judgments written as dicts, and random ones full of ties."""

from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

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
tied_scores = st.sampled_from([-2.0, 0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1024.25])
grades = st.sampled_from([-2, -1, 0, 0, 1, 1, 2, 3, 7])


def tied_runs(*, min_docs: int = 1) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    ranked = st.dictionaries(st.sampled_from(DOC_IDS), tied_scores, min_size=min_docs, max_size=16)
    return st.dictionaries(st.sampled_from(QUERY_IDS), ranked, min_size=1)


def judgments() -> st.SearchStrategy[dict[str, dict[str, int]]]:
    judged = st.dictionaries(st.sampled_from(DOC_IDS), grades, min_size=1, max_size=16)
    # trec_eval's own memory goes astray where every grade of a query is negative
    judged = judged.filter(lambda of_query: max(of_query.values()) >= 0)
    return st.dictionaries(st.sampled_from(QUERY_IDS), judged, min_size=1)
