from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_cases import judgments, qrels_of, run_of, tied_runs
from thread_counts import use_threads

from genm.align import UNJUDGED, Aligned, align_runs, as_aligned
from genm.errors import InputError
from genm.ids import Ids
from genm.normalizers import Normalizer
from genm.records import Qrels, Run

Scores = Mapping[str, Mapping[str, float]]

BM25 = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d1": 5.0}}
DENSE = {"q1": {"d3": 0.9, "d4": 0.1}, "q3": {"d7": 0.5}}
GRADES = {"q1": {"d1": 1, "d4": 0}, "q2": {"d1": 1}, "q3": {"d7": 1}}


def rows_of(aligned: Aligned) -> dict[str, list[tuple[str, list[float | None], int | None]]]:
    """Return per query its documents in row order with their raw scores (None: not retrieved) and grade."""
    found = {}
    for q, query_id in enumerate(aligned.queries):
        found[query_id] = [
            (
                aligned.docs[aligned.doc[row]],
                [float(s) if r else None for s, r in zip(aligned.raw[row], aligned.retrieved[row], strict=True)],
                None if aligned.relevance[row] == UNJUDGED else int(aligned.relevance[row]),
            )
            for row in range(aligned.starts[q], aligned.starts[q + 1])
        ]
    return found


def test_documents_of_all_rankers_stand_once_by_doc_id_downwards() -> None:
    aligned = align_runs({"bm25": run_of(BM25), "dense": run_of(DENSE)})
    assert aligned.rankers == ("bm25", "dense")
    assert rows_of(aligned) == {
        "q1": [
            ("d4", [None, 0.1], None),
            ("d3", [1.0, 0.9], None),
            ("d2", [2.0, None], None),
            ("d1", [3.0, None], None),
        ],
        "q2": [("d1", [5.0, None], None)],
        "q3": [("d7", [None, 0.5], None)],
    }
    np.testing.assert_array_equal(aligned.raw[0], [0.0, 0.1])
    np.testing.assert_allclose(aligned.scores, [[0, 0], [0, 1], [0.5, 0], [1, 0], [1, 0], [0, 1]])
    assert list(aligned.docs) == sorted(aligned.docs)
    assert not aligned.labelled
    assert [(n.code, n.count) for n in aligned.notes] == [("queries-missing-from-run", 1)] * 2
    assert "'bm25' returned nothing for 1 of 3 queries, the first is 'q3'" in aligned.notes[0].text


def test_judgments_choose_the_queries_and_their_order() -> None:
    qrels = qrels_of({"q9": {"d1": 1}, "q3": {"d7": 0, "d8": 2}, "q1": {"d9": -1, "d1": 2, "d0": 3}})
    aligned = align_runs({"bm25": run_of(BM25), "dense": run_of(DENSE)}, qrels)
    found = rows_of(aligned)
    assert list(found) == ["q9", "q3", "q1"]
    assert found["q9"] == []
    assert found["q3"] == [("d7", [None, 0.5], 0)]
    assert [grade for _, _, grade in found["q1"]] == [None, None, None, 2]
    np.testing.assert_array_equal(aligned.unretrieved_starts, [0, 1, 2, 4])
    np.testing.assert_array_equal(aligned.unretrieved, [1, 2, 3, -1])
    np.testing.assert_array_equal(aligned.n_relevant(), [1, 1, 2])
    np.testing.assert_array_equal(aligned.n_relevant(2), [0, 1, 2])
    np.testing.assert_array_equal(aligned.n_relevant(level=3), [0, 0, 1])
    assert [(n.code, n.count) for n in aligned.notes] == [
        ("unjudged-queries", 1),
        ("queries-missing-from-run", 2),
        ("queries-missing-from-run", 1),
        ("queries-without-documents", 1),
    ]
    assert "skipped, the first is 'q2'" in aligned.notes[0].text


def test_depth_keeps_the_top_of_each_list_and_its_normaliser_sees_no_more() -> None:
    runs = {"bm25": run_of(BM25), "dense": run_of(DENSE)}
    aligned = align_runs(runs, depth={"bm25": 2, "dense": None})
    assert aligned.depths == (2, None)
    assert rows_of(aligned)["q1"] == [
        ("d4", [None, 0.1], None),
        ("d3", [None, 0.9], None),
        ("d2", [2.0, None], None),
        ("d1", [3.0, None], None),
    ]
    np.testing.assert_allclose(aligned.scores[:4, 0], [0, 0, 0, 1])
    assert len(align_runs(runs, depth=1).doc) == 4
    assert len(align_runs(runs, depth=[1, 2]).doc) == 5


def test_normalisers_come_per_ranker() -> None:
    runs = {"bm25": run_of(BM25), "dense": run_of(DENSE)}
    aligned = align_runs(runs, normalize={"dense": Normalizer("none", missing=-1.0), "bm25": "rank"})
    assert aligned.normalizers == (Normalizer("rank"), Normalizer("none", missing=-1.0))
    np.testing.assert_allclose(aligned.scores[:4], [[0, 0.1], [1 / 3, 0.9], [2 / 3, -1], [1, -1]])


def test_a_sequence_takes_the_names_of_its_runs() -> None:
    assert align_runs([run_of(BM25, "x"), run_of(DENSE, "y")]).rankers == ("x", "y")


def test_query_weights_are_carried_along_and_strangers_noted() -> None:
    aligned = align_runs([run_of(BM25, "x")], query_weights={"q2": 3, "q8": 1.0})
    np.testing.assert_array_equal(aligned.query_weights, [1.0, 3.0])
    assert [(n.code, n.count) for n in aligned.notes] == [("query-weights-unused", 1), ("query-weights-default", 1)]
    assert "'q8'" in aligned.notes[0].text


def test_progress_is_told_from_start_to_end() -> None:
    told: list[tuple[str, int, int]] = []
    align_runs([run_of(BM25, "x")], progress=lambda *step: told.append(step))
    assert told[0][1] == 0
    assert told[-1][1] == told[-1][2]
    assert [step[1] for step in told] == sorted(step[1] for step in told)


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ([], {}, "expected at least one run; found none"),
        ({}, {}, "expected at least one run; found none"),
        ([run_of(BM25, "x"), run_of(DENSE, "x")], {}, "expected a different name for each ranker; found 'x' twice"),
        ([run_of(BM25, "")], {}, "expected every ranker to have a name"),
        ([run_of(BM25, "x")], {"depth": 0}, "depth: expected a positive integer of 64 bits, or None; found 0"),
        ([run_of(BM25, "x")], {"depth": True}, "depth: expected a positive integer"),
        ([run_of(BM25, "x")], {"depth": {"y": 1}}, "found unknown y"),
        ([run_of(BM25, "x")], {"normalize": ["minmax", "max"]}, "normalize: expected 1 values.*found 2"),
        (
            [run_of(BM25, "x")],
            {"query_weights": {"q1": -1.0}},
            "expected finite numbers >= 0; found -1.0 for query 'q1'",
        ),
        ([run_of(BM25, "x")], {"query_weights": {"q1": float("nan")}}, "found nan for query 'q1'"),
        (
            [run_of(BM25, "x")],
            {"qrels": qrels_of({"01": {"d1": 1}})},
            "run 'x' and the judgments: expected queries in common; found none .*'q1', the judgments' '01'",
        ),
    ],
)
def test_what_cannot_be_aligned_is_refused(runs: list[Run], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        align_runs(runs, **options)


def test_empty_runs_and_judgments_are_no_trouble() -> None:
    empty = run_of({}, "empty")
    aligned = align_runs([run_of(BM25, "x"), empty])
    assert not aligned.retrieved[:, 1].any()
    assert len(align_runs([empty]).doc) == 0
    no_qrels = Qrels(Ids.of([]), Ids.of([]), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert len(align_runs([run_of(BM25, "x")], no_qrels).queries) == 0
    assert len(align_runs([empty], qrels_of({"q": {"d": 1}})).queries) == 1


def test_read_only_arrays_are_taken() -> None:
    run = run_of(BM25, "x")
    for array in (run.starts, run.doc, run.score):
        array.flags.writeable = False
    assert rows_of(align_runs([run]))["q2"] == [("d1", [5.0], None)]


def slow_rows(
    runs: list[Scores], grades: Mapping[str, Mapping[str, int]] | None, depth: int | None
) -> tuple[dict[str, list[tuple[str, list[float | None], int | None]]], dict[str, list[int]]]:
    """Align by dictionaries, one query and document at a time."""
    queries = list(dict.fromkeys(q for run in runs for q in run)) if grades is None else list(grades)
    rows: dict[str, list[tuple[str, list[float | None], int | None]]] = {}
    left: dict[str, list[int]] = {}
    for query_id in queries:
        tops = []
        for run in runs:
            ranked = sorted(run.get(query_id, {}).items(), key=lambda i: (i[1], i[0].encode()), reverse=True)
            tops.append(dict(ranked[:depth]))
        documents = sorted({d for top in tops for d in top}, key=str.encode, reverse=True)
        judged = {} if grades is None else grades[query_id]
        rows[query_id] = [(d, [top.get(d) for top in tops], judged.get(d)) for d in documents]
        left[query_id] = sorted((g for d, g in judged.items() if d not in documents), reverse=True)
    return rows, left


@settings(deadline=None, max_examples=60)
@given(
    st.lists(tied_runs(min_docs=0), min_size=1, max_size=4),
    st.one_of(st.none(), judgments()),
    st.sampled_from([None, 1, 3]),
)
def test_aligning_agrees_with_dictionaries(
    runs: list[dict[str, dict[str, float]]], grades: dict[str, dict[str, int]] | None, depth: int | None
) -> None:
    named = {f"r{k}": run_of(run) for k, run in enumerate(runs)}
    strangers = grades is not None and any(run and not set(run) & set(grades) for run in runs)
    qrels = None if grades is None else qrels_of(grades)
    if strangers:
        with pytest.raises(InputError, match="in common"):
            align_runs(named, qrels, depth=depth)
        return
    aligned = align_runs(named, qrels, depth=depth)
    rows, left = slow_rows(runs, grades, depth)
    assert rows_of(aligned) == rows
    assert {
        query_id: aligned.unretrieved[aligned.unretrieved_starts[q] : aligned.unretrieved_starts[q + 1]].tolist()
        for q, query_id in enumerate(aligned.queries)
    } == left
    assert not aligned.raw[~aligned.retrieved].any()


def test_many_long_queries_agree_with_dictionaries_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    names = [f"doc{n}" for n in rng.permutation(6000)]
    runs: list[Scores] = [
        {
            f"q{q}": {
                names[d]: float(rng.integers(0, 50)) for d in rng.choice(6000, rng.integers(1, 1500), replace=False)
            }
            for q in rng.permutation(20)[:18]
        }
        for _ in range(3)
    ]
    grades = {f"q{q}": {names[d]: int(rng.integers(-1, 3)) for d in rng.choice(6000, 40)} for q in range(20)}
    named = {f"r{k}": run_of(run) for k, run in enumerate(runs)}
    rows, _ = slow_rows(runs, grades, None)
    for threads in ("1", "3"):
        use_threads(monkeypatch, threads)
        assert rows_of(align_runs(named, qrels_of(grades))) == rows


@pytest.mark.parametrize(
    ("runs", "qrels", "message"),
    [
        (run_of(BM25), None, r"runs: expected several runs; found Run. Give runs by name, or a list"),
        ({"bm25": "bm25.trec"}, None, r"runs\['bm25'\]: expected Run; found str. Read it first, by genm.read_run"),
        ("bm25.trec", None, r"runs\[0\]: expected Run; found str"),
        ([run_of(BM25)], "qrels.txt", r"qrels: expected Qrels; found str. Read them first"),
        ([run_of(BM25)], run_of(BM25), r"qrels: expected Qrels; found Run"),
    ],
)
def test_what_is_no_run_and_no_judgments(runs: object, qrels: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        align_runs(runs, qrels)  # type: ignore[arg-type]


def test_aligned_runs_are_taken_as_they_are_and_others_are_aligned() -> None:
    runs, qrels = [run_of(BM25, "bm25"), run_of(DENSE, "dense")], qrels_of(GRADES)
    aligned = align_runs(runs, qrels, normalize="zscore", depth=2)
    assert as_aligned(aligned) is aligned
    again = as_aligned(runs, qrels, normalize="zscore", depth=2)
    assert (again.scores.tobytes(), again.depths) == (aligned.scores.tobytes(), aligned.depths)
    assert as_aligned(runs).normalizers == align_runs(runs).normalizers


@pytest.mark.parametrize("beside", [{"qrels": qrels_of(GRADES)}, {"normalize": "max"}, {"depth": 3}])
def test_rules_beside_aligned_runs_are_refused(beside: dict[str, Any]) -> None:
    (name,) = beside
    message = rf"{name}: expected None with runs that are aligned already.*align_runs"
    with pytest.raises(InputError, match=message):
        as_aligned(align_runs([run_of(BM25)]), **beside)


@pytest.mark.parametrize("n", [20, 300, 3000])
def test_long_lists_are_joined_as_sets_are(n: int) -> None:
    """Few, some and many entries are sorted in different ways."""
    rng = np.random.default_rng(n)
    tables = [
        {f"q{q}": {f"d{i}": float(i) for i in rng.permutation(2 * n)[:n].tolist()} for q in range(3)}
        for _ in range(2)
    ]
    grades = {f"q{q}": {f"d{i}": 1 for i in rng.permutation(3 * n)[:9].tolist()} for q in range(3)}
    aligned = align_runs({f"r{k}": run_of(table) for k, table in enumerate(tables)}, qrels_of(grades))
    for q, rows in rows_of(aligned).items():
        wanted = sorted({doc for table in tables for doc in table[q]}, reverse=True)
        assert [doc for doc, _, _ in rows] == wanted
        assert [scores for _, scores, _ in rows] == [[table[q].get(doc) for table in tables] for doc in wanted]
        assert [grade for _, _, grade in rows] == [grades[q].get(doc) for doc in wanted]
