"""Rows become a Run in trec_eval's order, however they came; runs and judgments are mappings."""

import copy
import io
import pickle
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.sorting import distinct_scores
from genm.errors import InputError
from genm.ids import Ids
from genm.normalizers import Normalizer
from genm.read import qrels_from_dict, read_qrels, read_run, run_from_dict, write_run
from genm.records import Collection, Provenance, Qrels, Run, make_qrels, merge_qrels, ranked_run

NAMES = ["a", "b", "ab", "é", "z9", "document-10", "document-9", ""]
query_rows = st.dictionaries(
    st.sampled_from(range(len(NAMES))), st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.0, 1.0000000000000002])
)


@settings(deadline=None, max_examples=80)
@given(st.lists(query_rows, max_size=4))
def test_ranked_run_equals_a_slow_sort(queries: list[dict[int, float]]) -> None:
    starts = np.cumsum([0] + [len(q) for q in queries])
    doc = np.array([d for q in queries for d in q], np.int32)
    score = np.array([s for q in queries for s in q.values()], np.float64)
    run = ranked_run("x", Ids.of(str(i) for i in range(len(queries))), Ids.of(NAMES), starts, doc, score)
    for i, rows in enumerate(queries):
        ranked = [NAMES[d] for d in run.doc[starts[i] : starts[i + 1]]]
        by_id = sorted(rows, key=lambda d: NAMES[d].encode(), reverse=True)
        assert ranked == [NAMES[d] for d in sorted(by_id, key=lambda d: -rows[d])]
        assert run.score[starts[i] : starts[i + 1]].tolist() == sorted(rows.values(), reverse=True)


def test_rows_already_ranked_are_not_copied() -> None:
    doc, score = np.array([0, 1], np.int32), np.array([2.0, 1.0])
    run = ranked_run("x", Ids.of(["q"]), Ids.of(["a", "b"]), np.array([0, 2]), doc, score)
    assert run.doc is doc
    assert run.score is score


def test_records_are_shown_on_one_line() -> None:
    run = run_from_dict({"q1": {"a": 1.0, "b": 2.0}, "q2": {"a": 1.0}}, name="bm25")
    qrels = qrels_from_dict({1: {"a": 1}})
    assert repr(run) == "<Run 'bm25': 2 queries, 3 rows>"
    assert repr(qrels) == "<Qrels: 1 query, 1 judgment; 1 note>"
    collection = Collection("mine", ("a",), ("text",), ("1", "2"), ("x", "y"), qrels)
    assert repr(collection) == "<Collection 'mine': 1 document, 2 queries, 1 judgment>"


def test_a_normaliser_is_shown_as_it_is_written() -> None:
    for normalizer, text in (
        (Normalizer(), "Normalizer('minmax')"),
        (Normalizer("zscore", ddof=1.0, missing="minimum"), "Normalizer('zscore', ddof=1.0, missing='minimum')"),
    ):
        assert repr(normalizer) == text
        assert eval(text) == normalizer


def test_queries_come_in_the_order_given_and_unjudged_ones_are_missing():
    qrels = make_qrels([("b", "x", 1), ("a", "y", 2), ("b", "y", 0)], query_order=["a", "c", "b"])
    assert list(qrels.queries) == ["a", "b"]
    assert list(qrels.docs) == ["y", "x"]
    assert qrels.starts.tolist() == [0, 1, 3]
    assert qrels.doc.tolist() == [0, 1, 0]
    assert qrels.relevance.tolist() == [2, 1, 0]


def test_query_that_was_not_announced_is_kept_at_the_end():
    assert list(make_qrels([("z", "x", 1)], query_order=[]).queries) == ["z"]


def test_no_judgments_make_an_empty_record():
    qrels = make_qrels([], query_order=["a"])
    assert (len(qrels.queries), len(qrels.docs), qrels.starts.tolist()) == (0, 0, [0])


def test_a_pair_judged_twice_is_refused():
    with pytest.raises(InputError, match="query 'a': expected one judgment of document 'x'; found two"):
        make_qrels([("a", "x", 1), ("a", "x", 1)], query_order=["a"])


TABLES = st.dictionaries(
    st.text("abé9", min_size=1, max_size=3),
    st.dictionaries(st.text("xyz-1", min_size=1, max_size=3), st.integers(-3, 4), max_size=5),
    max_size=5,
)
RUN = Run.from_dict({"q1": {"a": 1.0, "b": 2.0, "c": 1.0}, "q2": {}, "q3": {"a": -1}}, name="bm25")
QRELS = Qrels.from_dict({"q1": {"a": 0, "b": 2}})


@settings(deadline=None, max_examples=60)
@given(TABLES)
def test_records_are_mappings_that_hold_what_they_were_made_of(table: dict[str, dict[str, int]]) -> None:
    for record in (Run.from_dict(table), Qrels.from_dict(table)):
        assert isinstance(record, Mapping)
        assert record == table == dict(record) == record.to_dict()
        assert (len(record), list(record), list(record.keys())) == (len(table), list(table), list(table))
        assert dict(record.items()) == table
        assert all(query_id in record and record[query_id] == rows for query_id, rows in table.items())
        assert type(record).from_dict(record) == record
        assert record != {**table, "another": {"x": 1}}


def test_a_runs_documents_come_best_first_and_ties_by_id_downwards() -> None:
    assert list(RUN["q1"].items()) == [("b", 2.0), ("c", 1.0), ("a", 1.0)]
    assert RUN["q2"] == {}
    assert RUN.get("q9") is None
    assert ("q9" in RUN, 1 in RUN, None in RUN) == (False, False, False)


def test_a_query_that_is_not_there_is_a_key_error_that_says_what_is() -> None:
    with pytest.raises(KeyError, match=r"no query 'q9' in <Run 'bm25': 3 queries, 4 rows>; .* such as 'q1'"):
        RUN["q9"]
    with pytest.raises(KeyError, match=r"no query 1 in <Qrels: 1 query, 2 judgments>.* Query ids are text"):
        QRELS[1]  # type: ignore[index]
    with pytest.raises(KeyError, match="it has ids none"):
        Run.from_dict({})["q1"]


def test_equality_looks_at_the_content_alone() -> None:
    assert Run.from_dict({"q": {"a": 1.0}}, name="x") == Run.from_dict({"q": {"a": 1}}, name="y")
    assert Run.from_dict({"q": {"a": 1.0}}) != Run.from_dict({"q": {"a": 2.0}})
    assert Run.from_dict({"q": {"a": 1.0}}) != Run.from_dict({"q": {"b": 1.0}})
    assert RUN != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(RUN)
    assert copy.deepcopy(RUN) == replace(RUN, name="other") == pickle.loads(pickle.dumps(RUN)) == RUN


@pytest.mark.needs("pandas")
def test_frames_have_the_rows_of_the_record() -> None:
    assert RUN.to_pandas().to_dict("list") == {
        "query_id": ["q1", "q1", "q1", "q3"],
        "doc_id": ["b", "c", "a", "a"],
        "score": [2.0, 1.0, 1.0, -1.0],
        "rank": [1, 2, 3, 1],
    }
    assert list(QRELS.to_pandas()["relevance"]) == [0, 2]
    assert read_run(RUN.to_pandas()) == {query_id: rows for query_id, rows in RUN.items() if rows}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a.trec", r"run 'run': expected a dictionary; found str\. Give \{query id"),
        ({1: {"a": 1.0}}, "run 'run': expected text as query id; found 1"),
        ({"q": ["a"]}, r"run 'run'\['q'\]: expected a dictionary of documents; found list"),
        ({"q": {2: 1.0}}, r"run 'run'\['q'\]: expected text as doc id; found 2"),
        ({"q": {"a": float("nan")}}, r"run 'run'\['q'\]\['a'\]: expected a finite number; found nan"),
        ({"q": {"a": True}}, "expected a finite number; found True"),
        ({"q": {"a": "1"}}, "expected a finite number; found '1'"),
    ],
)
def test_what_is_no_run_is_refused(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Run.from_dict(table)


@pytest.mark.parametrize("grade", [0.5, 1.0, "1", 2**31])
def test_grades_are_whole_numbers(grade: Any) -> None:
    with pytest.raises(InputError, match=r"qrels\['q'\]\['a'\]: expected a whole number"):
        Qrels.from_dict({"q": {"a": grade}})


def test_reading_a_record_returns_it() -> None:
    assert read_run(RUN) is RUN
    assert read_run(RUN, name="other").name == "other"
    assert read_qrels(QRELS) is QRELS


@given(
    st.lists(st.lists(st.sampled_from([-1.5, 0.0, 1.0, 1.0000000000000002]), max_size=12), min_size=1, max_size=4)
)
def test_a_run_remembers_the_order_of_equal_scores(lists: list[list[float]]) -> None:
    """Ids that are not in their order of bytes, so that ties by doc id are another order than the source's."""
    table = {
        f"q{q}": {f"d{(i * 7) % 12:02}": score for i, score in enumerate(scores)}
        for q, scores in enumerate(lists)
        if scores
    }
    run = Run.from_dict(table)
    told_apart = run.in_given_order()
    for query, docs in table.items():
        expected = sorted(docs, key=lambda doc: -docs[doc])  # stable
        assert list(told_apart[query]) == expected
        assert all(a > b for a, b in pairwise(told_apart[query].values())) or run.given is None
        assert list(told_apart[query].values()) == pytest.approx(
            [docs[doc] for doc in expected], rel=1e-14, abs=1e-300
        )
    assert (run.given is None) == (list(map(list, run.values())) == list(map(list, told_apart.values())))
    out = io.BytesIO()
    write_run(run, out)
    if table:
        again = read_run(io.BytesIO(out.getvalue()))
        assert again == run
        assert again.in_given_order() == told_apart


def test_scores_are_lowered_no_more_than_needed() -> None:
    close = np.array([2.0, 2.0, np.nextafter(2.0, 0.0), 1.0, 0.0, -0.0, -3.0, 5.0, 5.0])
    lowered = distinct_scores(np.array([0, 7, 9]), close)
    below = np.nextafter(2.0, 0.0)
    assert lowered.tolist() == [
        2.0,
        below,
        np.nextafter(below, 0.0),
        1.0,
        0.0,
        -5e-324,
        -3.0,
        5.0,
        np.nextafter(5.0, 0.0),
    ]
    assert np.isfinite(distinct_scores(np.array([0, 2]), np.full(2, -np.finfo(float).max))).all()


def test_merged_judgments_keep_the_later_grade_and_where_it_comes_from() -> None:
    before = replace(
        Qrels.from_dict({"q1": {"a": 1, "b": 0}, "q2": {"a": 2}}),
        provenance=Provenance.of(["person"] * 3, np.array([1.0, 0.5, 0.25])),
    )
    after = replace(Qrels.from_dict({"q3": {"c": 1}, "q1": {"b": 3}}), probability=np.array([0.8, np.nan]))
    merged = merge_qrels(before, after)
    assert list(merged) == ["q1", "q2", "q3"]
    assert merged == {"q1": {"a": 1, "b": 3}, "q2": {"a": 2}, "q3": {"c": 1}}
    assert np.array_equal(merged.probability, [np.nan, np.nan, np.nan, 0.8], equal_nan=True)
    assert merged.provenance is not None
    assert [merged.provenance.names[i] for i in merged.provenance.source] == [
        "person",
        "unknown",
        "person",
        "unknown",
    ]
    empty = Qrels.from_dict({"q9": {}})
    assert merge_qrels(empty, before).to_dict() == {"q9": {}, **before.to_dict()}
    assert merge_qrels(before, empty).probability is None


def test_both_zeros_are_ranked_by_doc_id_and_kept() -> None:
    run = Run.from_dict({"q": {"c": 1.0}, "r": {"a": 0.0, "b": -0.0, "c": 0.0}})
    assert repr(run["r"]) == "{'c': 0.0, 'b': -0.0, 'a': 0.0}"
    assert run.given is not None
    assert run.given.tolist() == [0, 2, 1, 0]
    assert repr(run.in_given_order()["q"]) == "{'c': 1.0}"
