"""Options of read_qrels, and weights of queries."""

import io
from pathlib import Path

import polars as pl
import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import read_qrels, read_query_weights


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
