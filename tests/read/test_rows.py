"""Rows become runs and judgments: grouped, each document once, in ranking order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read.bad_cases import as_dict

from genm.errors import FormatError, InputError
from genm.ids import encode
from genm.read import read_run
from genm.read.diagnostics import Diagnostics
from genm.read.rows import Rows, as_qrels, as_run, segments, without

rows_of_source = st.lists(
    st.tuples(st.sampled_from("pqr"), st.sampled_from("abcdef"), st.sampled_from([1.0, 2.0, 3.0, -1.0])),
    max_size=25,
)


def rows_from(source: list[tuple[str, str, float]]) -> Rows:
    queries, query = encode(q for q, _, _ in source)
    docs, doc = encode(d for _, d, _ in source)
    return Rows(queries, docs, *segments(query), doc, np.array([v for _, _, v in source]), lambda row: row + 1)


@settings(deadline=None, max_examples=100)
@given(rows_of_source, st.sampled_from(["max", "first", "last"]))
def test_runs_equal_a_dictionary_that_is_sorted(source: list[tuple[str, str, float]], policy: str) -> None:
    kept: dict[str, dict[str, float]] = {}
    n_again = 0
    for query, doc, value in source:
        of_query = kept.setdefault(query, {})
        again = doc in of_query
        n_again += again
        if not again or policy == "last" or (policy == "max" and value > of_query[doc]):
            of_query[doc] = value
    report = Diagnostics("x", lenient=False)
    run = as_run(rows_from(source), "x", policy, report)  # type: ignore[arg-type]
    expected = {
        q: dict(sorted(sorted(rows.items(), reverse=True), key=lambda row: -row[1])) for q, rows in kept.items()
    }
    assert repr(as_dict(run)) == repr(expected)
    assert {n.code: n.count for n in run.notes} == ({f"duplicate-kept-{policy}": n_again} if n_again else {})


@settings(deadline=None, max_examples=60)
@given(rows_of_source)
def test_strict_runs_refuse_exactly_the_first_repeat(source: list[tuple[str, str, float]]) -> None:
    seen: set[tuple[str, str]] = set()
    first = next((i for i, row in enumerate(source, 1) if row[:2] in seen or seen.add(row[:2])), None)  # type: ignore[func-returns-value]
    if first is None:
        as_run(rows_from(source), "x", "error", Diagnostics("x", lenient=False))
    else:
        with pytest.raises(FormatError, match=rf"^x:{first}: expected each document once per query"):
            as_run(rows_from(source), "x", "error", Diagnostics("x", lenient=False))


@settings(deadline=None, max_examples=60)
@given(rows_of_source)
def test_lenient_judgments_keep_the_highest_grade(source: list[tuple[str, str, float]]) -> None:
    best: dict[tuple[str, str], float] = {}
    for query, doc, value in source:
        best[query, doc] = max(value, best.get((query, doc), -9))
    qrels = as_qrels(rows_from(source), Diagnostics("x", lenient=True))
    found = {(q, d): g for q, docs in as_dict(qrels).items() for d, g in docs.items()}
    assert found == best


def test_left_out_rows_take_their_ids_with_them() -> None:
    rows = without(rows_from([("p", "a", 1.0), ("q", "b", 2.0), ("q", "a", 3.0)]), np.array([True, False, False]))
    assert (list(rows.queries), list(rows.docs)) == (["q"], ["a", "b"])
    assert rows.place(0) == 2
    assert rows.query_of(1) == "q"


def test_an_unknown_rule_for_duplicates_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of error, max, first, last; found 'best'"):
        read_run({"q": {"a": 1.0}}, duplicates="best")  # type: ignore[arg-type]
