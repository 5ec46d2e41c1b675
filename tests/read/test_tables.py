"""Frames and Parquet files under the column names people use."""

import csv
import io
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import (
    qrels_from_dict,
    qrels_from_frame,
    read_qrels,
    read_run,
    run_from_dict,
    run_from_frame,
    sources,
    tables,
)
from genm.read.diagnostics import Diagnostics
from genm.read.tables import DOC_COLUMNS, QUERY_COLUMNS, VALUE_COLUMNS, id_texts, numbers_of

NAMES = {
    "ir_measures": ("query_id", "doc_id", "score", "relevance"),
    "PyTerrier": ("qid", "docno", "score", "label"),
    "ranx": ("q_id", "doc_id", "score", "score"),
    "trectools": ("query", "docid", "score", "rel"),
    "BEIR": ("query-id", "corpus-id", "score", "score"),
}

cell = st.text('ab",\n\té', min_size=1, max_size=6).filter(lambda text: text.strip() == text)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("names", NAMES.values(), ids=list(NAMES))
def test_names_of_the_neighbours(library: str, names: tuple[str, str, str, str]) -> None:
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    query, doc, score, relevance = names
    columns: dict[str, list[Any]] = {query: ["q1", "q1", "q2"], doc: ["a", "b", "a"]}
    run = run_from_frame(frames.DataFrame({**columns, score: [1.0, 2.0, 0.5]}), name="mine")
    assert run.name == "mine"
    assert repr(as_dict(run)) == "{'q1': {'b': 2.0, 'a': 1.0}, 'q2': {'a': 0.5}}"
    qrels = qrels_from_frame(frames.DataFrame({**columns, relevance: [1, 0, -1]}))
    assert as_dict(qrels) == {"q1": {"a": 1, "b": 0}, "q2": {"a": -1}}
    assert [n.code for n in qrels.notes] == ["negative-grade"]


def test_pyterriers_query_text_is_not_the_query_id() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"qid": ["1"], "query": ["some words"], "docno": ["a"], "rank": [0], "score": [2.0]})
    assert as_dict(read_run(frame)) == {"1": {"a": 2.0}}


@pytest.mark.parametrize(
    "scores",
    [
        pl.Series([2, 3], dtype=pl.Int8),
        pl.Series([2.0, 3.0], dtype=pl.Float32),
        pl.Series(["2.0", " 3e0 "]),
        pl.Series([2, 3], dtype=pl.Decimal(10, 2)),
    ],
    ids=str,
)
def test_kinds_of_numbers(scores: pl.Series) -> None:
    frame = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": scores})
    assert repr(as_dict(read_run(frame))) == "{'q': {'b': 3.0, 'a': 2.0}}"


@pytest.mark.parametrize(("library", "dtype"), [("polars", pl.Categorical), ("pandas", object), ("pandas", None)])
def test_kinds_of_ids(library: str, dtype: Any) -> None:
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    ids = frames.Series(["7", "8"], dtype=dtype)
    run = read_run(frames.DataFrame({"query_id": ids, "doc_id": ids, "score": [1.0, 2.0]}))
    assert as_dict(run) == {"7": {"7": 1.0}, "8": {"8": 2.0}}
    assert run.notes == ()


def test_truth_as_relevance() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "label": [True, False]})
    assert as_dict(read_qrels(frame)) == {"q": {"a": 1, "b": 0}}


def test_scores_keep_their_last_bit() -> None:
    values = np.random.default_rng(1).normal(size=500)
    frame = pl.DataFrame({"query_id": ["q"] * 500, "doc_id": [f"d{i}" for i in range(500)], "score": values})
    as_text = frame.with_columns(pl.col("score").map_elements(repr, pl.String))
    assert (read_run(frame).score == np.sort(values)[::-1]).all()
    assert (read_run(as_text).score == np.sort(values)[::-1]).all()


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "bm25.parquet"
    pl.DataFrame({"qid": ["q"], "docno": ["a"], "score": [1.5]}).write_parquet(path)
    run = read_run(path)
    assert as_dict(run) == {"q": {"a": 1.5}}
    assert run.name == "bm25"
    renamed = tmp_path / "bm25"
    path.rename(renamed)
    assert as_dict(read_run(renamed)) == {"q": {"a": 1.5}}


def test_missing_columns_are_named() -> None:
    with pytest.raises(
        FormatError,
        match=r"^qrels: expected a column named relevance or label or rel or rating or grade or score; found",
    ):
        read_qrels(pl.DataFrame({"qid": ["q"], "docno": ["a"]}))


def test_the_docs_name_every_column_name_in_order() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    line = " ".join(docs.split("Names of the columns")[1].split("That covers")[0].split())
    for names in (QUERY_COLUMNS, DOC_COLUMNS, *VALUE_COLUMNS.values()):
        assert ", ".join(f"`{name}`" for name in names) in line


def words(row: int) -> str:
    return f"row {row}"


@pytest.mark.parametrize(
    ("cells", "texts", "bad", "codes"),
    [
        (["a", "7"], ["a", "7"], [], []),
        ([7, np.int32(8), 9.0], ["7", "8", "9"], [], ["integer-ids"]),
        ([2**63 + 1, 1], [str(2**63 + 1), "1"], [], ["integer-ids"]),
        (["a", 7], ["a", "7"], [], ["mixed-ids"]),
        (["a", None, float("nan"), "", 1.5, True, b"x"], ["a"], [1, 2, 3, 4, 5, 6], ["missing-id"]),
    ],
)
def test_ids(cells: list[Any], texts: list[str], bad: list[int], codes: list[str]) -> None:
    report = Diagnostics("x", lenient=True)
    found, wrong = id_texts(cells, "query", report, words)
    assert [text for text, out in zip(found, wrong, strict=True) if not out] == texts
    assert np.flatnonzero(wrong).tolist() == bad
    assert [n.code for n in report.notes] == codes


@pytest.mark.parametrize("cell", [None, "1", b"1", 1j, [1], True, np.bool_(True)])
def test_what_is_no_score(cell: Any) -> None:
    with pytest.raises(FormatError, match=r"^x, row 1: expected a number as score; found "):
        numbers_of([1.0, cell], "score", Diagnostics("x", lenient=False), words)


def test_numbers_of_many_kinds() -> None:
    cells = [1, 2.5, np.float32(0.5), np.int8(-3), Fraction(1, 4)]
    values, bad = numbers_of(cells, "score", Diagnostics("x", lenient=False), words)
    assert values.tolist() == [1.0, 2.5, 0.5, -3.0, 0.25]
    assert not bad.any()
    values, _ = numbers_of([True, np.bool_(False), Decimal(2)], "relevance", Diagnostics("x", lenient=True), words)
    assert values.tolist()[:2] == [1.0, 0.0]


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t"), ("", ","), ("", "\t")])
def test_tables_by_name_or_by_header(tmp_path: Path, suffix: str, separator: str) -> None:
    path = tmp_path / f"bm25{suffix}"
    path.write_text("rank,docno,qid,score\n1,a,007,2.5\n2,b,007,1\n".replace(",", separator))
    assert as_dict(read_run(path)) == {"007": {"a": 2.5, "b": 1.0}}


def test_the_format_may_be_said() -> None:
    assert as_dict(read_run(io.StringIO("qid,docno,score\nq,a,1\n"), format="csv")) == {"q": {"a": 1.0}}
    with pytest.raises(FormatError, match=r":1: expected 6 columns"):
        read_run(io.StringIO("qid,docno,score\nq,a,1\n"), format="trec")


def test_beir_judgments() -> None:
    assert as_dict(read_qrels(io.StringIO("query-id\tcorpus-id\tscore\nq\ta\t2\n"))) == {"q": {"a": 2}}


@settings(deadline=None, max_examples=80)
@given(
    st.dictionaries(cell, st.dictionaries(cell, st.floats(-9, 9), min_size=1, max_size=3), min_size=1, max_size=3)
)
def test_quoted_cells_come_back(data: dict[str, dict[str, float]]) -> None:
    def quote(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    lines = [f"{quote(q)},{quote(d)},{s!r}" for q, docs in data.items() for d, s in docs.items()]
    assert as_dict(read_run(io.StringIO("qid,docno,score\n" + "\n".join(lines)))) == {
        q: dict(
            sorted(sorted(docs.items(), key=lambda row: row[0].encode(), reverse=True), key=lambda row: -row[1])
        )
        for q, docs in data.items()
    }


def test_both_ways_of_reading_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'qid,docno,score\n\nq,"a\nb",3\nr,c,2\n'
    fast = read_run(io.StringIO(text))
    monkeypatch.setattr(tables, "_fast", lambda *_, **__: None)
    assert as_dict(read_run(io.StringIO(text))) == as_dict(fast) == {"q": {"a\nb": 3.0}, "r": {"c": 2.0}}


@pytest.mark.parametrize("slow", [False, True])
def test_lines_are_those_of_an_editor(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    if slow:
        monkeypatch.setattr(tables, "_fast", lambda *_, **__: None)
    with pytest.raises(FormatError, match=r":6: expected a decimal number as score; found \"x\""):
        read_run(io.StringIO('\nqid,docno,score\n\nq,"a\nb",3\nr,c,x\n'))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(["q1", "d", "3", ",", ",", "\n", "\r\n", "\r", '"', " ", "x", "\0", "\x0b"]), max_size=14
    )
)
def test_the_quick_parser_agrees_with_the_csv_module(parts: list[str]) -> None:
    text = "qid,docno,score\nq0,d0,1\n" + "".join(parts)
    report = Diagnostics("x", lenient=False)
    source = sources.TextSource("x.csv", np.frombuffer(bytearray(text.encode()), np.uint8))
    header = ["qid", "docno", "score"]
    frame = tables._fast(source.text, text, ",", header, has_header=True)
    if frame is not None:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert [list(row) for row in frame.rows()] == [row for row in rows[1:] if row]
        numbers = [n for n, _ in tables._records(text, ",", header, has_header=True, report=report)]
        assert len(numbers) == len(frame)
        lines = text.replace("\r\n", "\n").split("\n")
        assert [lines[n - 1].split(",") for n in numbers] == [list(row) for row in frame.rows()]


def test_plain_tables_take_the_quick_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_records", None)
    assert as_dict(read_run(io.StringIO("qid,docno,score\r\n\r\nq,a b,3\r\n"))) == {"q": {"a b": 3.0}}


def test_a_row_of_separators_is_not_dropped() -> None:
    with pytest.raises(FormatError, match=r":3: expected text as query id"):
        read_run(io.StringIO("qid,docno,score\nq,a,3\n,,\nq,b,2\n"))


def test_a_damaged_parquet_file_is_read_or_refused(capfd: pytest.CaptureFixture[str]) -> None:
    """polars panics at some of these, which is no Exception, and writes Rust's stack to standard error."""
    file = io.BytesIO()
    columns = {"query_id": [f"q{i % 7}" for i in range(500)], "doc_id": [f"d{i}" for i in range(500)]}
    pl.DataFrame({**columns, "score": np.arange(500.0)}).write_parquet(file)
    whole, draw = file.getvalue(), np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        content = bytearray(whole)
        for at in draw.integers(4, len(content), 3):
            content[at] = draw.integers(256)
        try:
            read_run(io.BytesIO(bytes(content)))
        except FormatError:
            refused += 1
    assert refused > 50
    assert capfd.readouterr().err == ""


def test_a_panic_is_an_error_and_other_output_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    class PanicException(BaseException):  # the name that polars gives it
        pass

    @tables._quiet_panics()
    def write_and_raise(text: bytes, error: BaseException) -> None:
        os.write(2, text)
        raise error

    with pytest.raises(tables._PanicError, match="index out of bounds"):
        write_and_raise(b"thread panicked\n", PanicException("index out of bounds"))
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(b"another thread\n", KeyboardInterrupt())
    assert capfd.readouterr().err == "another thread\n"


@pytest.mark.parametrize("columns", [{"doc_id": ["d"] * 3_000_000}, {"doc_id": ["d" * 1000] * 100_000}])
def test_a_parquet_file_of_few_bytes_and_many_rows_is_refused(columns: dict[str, list[str]]) -> None:
    n, file = len(columns["doc_id"]), io.BytesIO()
    pl.DataFrame({"query_id": ["q"] * n, **columns, "score": [1.0] * n}).write_parquet(file, compression="zstd")
    with pytest.raises(FormatError, match="expected a Parquet file that unpacks to at most"):
        read_run(io.BytesIO(file.getvalue()))


def test_an_empty_table_and_one_without_header() -> None:
    with pytest.raises(FormatError, match="expected a table with rows; found none"):
        read_run(io.StringIO(""), format="csv")
    run = read_run(io.StringIO(""), format="csv", lenient=True)
    assert [(n.code, n.count) for n in run.notes] == [("empty", 1)]
    qrels = read_qrels(io.StringIO("1\t1\t1\n1\t2\t0\n"), format="tsv", lenient=True)
    assert as_dict(qrels) == {"1": {"1": 1, "2": 0}}


def test_dictionaries_and_files_agree() -> None:
    data = {"q2": {"b": 1.0, "a": 1.0}, "q1": {"c": -2.5}}
    text = "".join(f"{q} Q0 {d} 1 {s} t\n" for q, docs in data.items() for d, s in docs.items())
    from_dict, from_text = run_from_dict(data), read_run(io.StringIO(text))
    assert repr(as_dict(from_dict)) == repr(as_dict(from_text)) == repr(data)
    assert list(from_dict.docs) == list(from_text.docs)
    assert from_dict.score.dtype == np.float64
    assert (from_dict.doc.dtype, from_dict.starts.dtype) == (from_text.doc.dtype, from_text.starts.dtype)


def test_names_and_fronts() -> None:
    assert run_from_dict({"q": {"a": 1.0}}, name="bm25").name == "bm25"
    assert read_run({"q": {"a": 1.0}}, name="bm25").name == "bm25"
    assert as_dict(read_qrels({"q": {"a": 1}})) == as_dict(qrels_from_dict({"q": {"a": 1}})) == {"q": {"a": 1}}


def test_keys_that_become_equal_are_a_duplicate() -> None:
    run = run_from_dict({"q": {"7": 1.0, 7: 2.0}}, lenient=True)  # type: ignore[dict-item]
    assert as_dict(run) == {"q": {"7": 2.0}}
    assert [n.code for n in run.notes] == ["mixed-ids", "duplicate-kept-max"]


def test_source_and_confidence_of_judgments_are_kept(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text(
        "query_id,doc_id,relevance,source,confidence\nq1,d1,1,person,1\nq2,d1,0,clicks,0.25\nq1,d2,2,clicks,\n"
        "q1,d1,1,llm,0.5\n"
    )
    qrels = read_qrels(path)
    assert qrels == {"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 0}}
    provenance = qrels.provenance
    assert [provenance.names[code] for code in provenance.source] == ["person", "clicks", "clicks"]
    assert provenance.confidence.tolist()[::2] == [1.0, 0.25]
    assert np.isnan(provenance.confidence[1])
    assert provenance.describe() == "2 from clicks (mean confidence 0.25), 1 from person (mean confidence 1.00)"
    assert read_qrels({"q": {"d": 1}}).provenance is None


def test_a_confidence_that_is_none_is_refused(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("query_id,doc_id,relevance,confidence\nq1,d1,1,high\n")
    with pytest.raises(FormatError, match=r"q.csv:2: expected a confidence from 0 to 1; found \"high\""):
        read_qrels(path)
    assert np.isnan(read_qrels(path, lenient=True).provenance.confidence[0])


def test_probabilities_of_judgments(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text(
        "query_id,doc_id,relevance,probability\nq2,d1,3,0.9\nq1,d1,0.2,0.5\nq2,d2,2,0.25\nq1,d1,1,0.5\n"
    )
    found = read_qrels(path, grades="probability")
    assert found == {"q2": {"d1": 1, "d2": 0}, "q1": {"d1": 1}}
    assert found.probability.tolist() == [0.9, 0.25, 0.5]
    assert read_qrels(path, grades="from=2").probability is None, "other rules take the relevance alone"
    fractions = read_qrels({"q": {"a": 0.75, "b": 0.1, "c": 1}}, grades="probability")
    assert fractions == {"q": {"a": 1, "b": 0, "c": 1}}
    assert fractions.probability.tolist() == [0.75, 0.1, 1.0]


@pytest.mark.parametrize(("cell", "found"), [("1.5", "1.5"), ("", "none"), ("high", "none"), ("-0.1", "-0.1")])
def test_what_is_no_probability_is_refused(tmp_path, cell, found):
    path = tmp_path / "q.csv"
    path.write_text(f"query_id,doc_id,relevance,probability\nq1,d1,1,{cell}\nq1,d2,1,0.5\n")
    with pytest.raises(FormatError, match=rf"q.csv:2: expected a probability from 0 to 1.*found {found}\."):
        read_qrels(path, grades="probability")
    assert read_qrels(path, grades="probability", lenient=True) == {"q1": {"d2": 1}}
    assert read_qrels(path) == {"q1": {"d1": 1, "d2": 1}}, "the column matters to this rule alone"


def test_a_parquet_file_without_a_column_of_text(tmp_path: Path) -> None:
    """Ids that are integers are read as text, also where no other column holds any."""
    path = tmp_path / "run.parquet"
    pl.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "score": [2.0, 1.0]}).write_parquet(path)
    run = read_run(path)
    assert run.to_dict() == {"1": {"7": 2.0, "8": 1.0}}
    assert {note.code for note in run.notes} == {"integer-ids"}
