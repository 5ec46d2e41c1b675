"""Queries opened to their documents."""

import numpy as np
import pytest

from genm.fuse import fuse_runs
from genm.report.documents import details_of


def test_the_fused_list_is_the_run_that_the_model_gives(built) -> None:
    run = fuse_runs(built.aligned, built.model.weights, top=10)
    for q, detail in enumerate(built.report["details"]):
        shown = [detail["docs"][i] for i in detail["fused"]]
        assert [doc["id"] for doc in shown] == [
            run.docs[int(d)] for d in run.doc[run.starts[q] : run.starts[q + 1]]
        ]
        assert [doc["fused_rank"] for doc in shown] == list(range(1, 11))


def test_contributions_sum_to_the_score(built) -> None:
    for detail in built.report["details"]:
        for doc in detail["docs"]:
            assert sum(doc["contributions"]) == pytest.approx(doc["score"], abs=5e-6)


def test_each_rankers_list_is_its_own_order(built) -> None:
    aligned = built.aligned
    for q, detail in enumerate(built.report["details"]):
        rows = np.arange(aligned.starts[q], aligned.starts[q + 1])
        for k, listed in enumerate(detail["rankers"]):
            own = rows[aligned.retrieved[rows, k]]
            order = own[np.argsort(-aligned.raw[own, k], kind="stable")][:10]
            assert [detail["docs"][i]["id"] for i in listed] == [aligned.docs[int(aligned.doc[r])] for r in order]
            assert [detail["docs"][i]["ranks"][k] for i in listed] == list(range(1, len(listed) + 1))


def test_grades_and_gaps_are_told_apart(built) -> None:
    docs = [doc for detail in built.report["details"] for doc in detail["docs"]]
    assert {doc["grade"] for doc in docs} == {None, 0, 1}
    for doc in docs:
        assert doc["relevant"] == (doc["grade"] == 1)
        assert [rank is None for rank in doc["ranks"]] == [raw is None for raw in doc["raw"]]


def test_a_query_without_documents_opens_to_empty_lists(plain_problem) -> None:
    from dataclasses import replace

    starts = plain_problem.starts.copy()
    kept = slice(starts[1], None)
    empty = replace(
        plain_problem,
        starts=np.concatenate(([0, 0], starts[2:] - starts[1])),
        doc=plain_problem.doc[kept],
        raw=plain_problem.raw[kept],
        scores=plain_problem.scores[kept],
        retrieved=plain_problem.retrieved[kept],
        relevance=plain_problem.relevance[kept],
    )
    first = details_of(empty, np.full(3, 1 / 3), np.array([0, 1]), 1)[0]
    assert (first["docs"], first["fused"], first["rankers"]) == ([], [], [[], [], []])
