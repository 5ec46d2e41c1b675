"""Options of read_qrels, and weights of queries."""

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError, InputError
from genm.read import read_qrels, read_query_weights, read_run
from genm.read.readers import found_format
from genm.read.sources import TextSource
from genm.read.trec import QRELS, RUN, Shape

TWICE = "q Q0 a 1 2 t\nq Q0 b 2 1.5 t\nq Q0 a 3 1 t\n"


def test_all_kinds_of_sources_agree(tmp_path: Path) -> None:
    text = "q1 0 a 1\nq1 0 b 0\nq2 0 a 3\n"
    path = tmp_path / "x.qrels"
    path.write_text(text)
    data = {"q1": {"a": 1, "b": 0}, "q2": {"a": 3}}
    frame = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "b", "a"], "relevance": [1, 0, 3]})
    for source in (path, str(path), io.StringIO(text), io.BytesIO(text.encode()), data, frame):
        qrels = read_qrels(source)
        assert as_dict(qrels) == data
        assert qrels.relevance.dtype == "int32"
        assert qrels.notes == ()


def test_a_format_and_progress(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("q1 0 a 1\n")
    told: list[int] = []
    assert as_dict(read_qrels(path, format="trec", progress=lambda task, done, total: told.append(done))) == {
        "q1": {"a": 1}
    }
    assert told == [9]


def test_query_weights(tmp_path: Path) -> None:
    path = tmp_path / "x.weights"
    path.write_text("q1 0.5\n# heavy\nq2\t3\r\nq3 0\n")
    assert read_query_weights(path) == {"q1": 0.5, "q2": 3.0, "q3": 0.0}
    with pytest.raises(FormatError, match=r":1: expected 2 columns \(query weight\)"):
        read_query_weights(io.StringIO("q1\n"))
    with pytest.raises(FormatError, match=r":2: expected each query once, .*found weight 2 for query \"q1\" again"):
        read_query_weights(io.StringIO("q1 1\nq1 2\n"))


@pytest.mark.parametrize(
    ("name", "content", "shape", "form"),
    [
        ("x", "q Q0 d 1 2 t\n", RUN, "trec"),
        ("x.txt.gz", "q 0 d 1\n", QRELS, "trec"),
        ("qrels.dev.tsv", "q\t0\td\t1\n", QRELS, "trec"),
        ("run.tsv", "q\tQ0\td\t1\t2\tt\n", RUN, "trec"),
        ("test.tsv", "query-id\tcorpus-id\tscore\n", QRELS, "tsv"),
        ("test.tsv", "q\td\t1\n", QRELS, "tsv"),
        ("x", '\n"qid","docno","label"\r\n', QRELS, "csv"),
        ("x.csv.zst", "anything", RUN, "csv"),
        ("x.csv", "", RUN, "trec"),
        ("x.pq", "", RUN, "parquet"),
        ("x", "PAR1", RUN, "parquet"),
    ],
)
def test_formats_are_found(name: str, content: str, shape: Shape, form: str) -> None:
    assert found_format(TextSource(name, np.frombuffer(content.encode(), np.uint8)), shape) == form


def test_unknown_formats_are_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x"
    path.write_text("q Q0 d 1 2 t\n")
    with pytest.raises(InputError, match="format: expected one of trec, csv, tsv, parquet, json; found 'xml'"):
        read_run(path, format="xml")  # type: ignore[arg-type]


@pytest.mark.parametrize(("duplicates", "score"), [("max", 2.0), ("first", 2.0), ("last", 1.0)])
@pytest.mark.parametrize("lenient", [False, True])
def test_duplicates(duplicates: str, score: float, lenient: bool) -> None:
    run = read_run(io.StringIO(TWICE), duplicates=duplicates, lenient=lenient)  # type: ignore[arg-type]
    assert as_dict(run)["q"] == {"a": score, "b": 1.5}
    (note,) = run.notes
    assert (note.code, note.count) == (f"duplicate-kept-{duplicates}", 1)
    assert 'document "a" twice for query "q" (first in line 1)' in note.text


def test_duplicates_are_an_error_by_default() -> None:
    with pytest.raises(
        FormatError, match=r':3: expected .*; found document "a" twice for query "q" \(first in line 1\)'
    ):
        read_run(io.StringIO(TWICE))


def test_names() -> None:
    assert read_run(io.StringIO(TWICE), duplicates="max", name="bm25").name == "bm25"
