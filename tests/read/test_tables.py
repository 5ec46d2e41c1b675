"""Frames and Parquet files under the column names people use."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import qrels_from_frame, read_qrels, read_run, run_from_frame
from genm.read.tables import DOC_COLUMNS, QUERY_COLUMNS, VALUE_COLUMNS

NAMES = {
    "ir_measures": ("query_id", "doc_id", "score", "relevance"),
    "PyTerrier": ("qid", "docno", "score", "label"),
    "ranx": ("q_id", "doc_id", "score", "score"),
    "trectools": ("query", "docid", "score", "rel"),
    "BEIR": ("query-id", "corpus-id", "score", "score"),
}


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
        FormatError, match=r"^qrels: expected a column named relevance or label or rel or score; found"
    ):
        read_qrels(pl.DataFrame({"qid": ["q"], "docno": ["a"]}))


def test_the_docs_name_every_column_name_in_order() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    line = " ".join(docs.split("Names of the columns")[1].split("That covers")[0].split())
    for names in (QUERY_COLUMNS, DOC_COLUMNS, *VALUE_COLUMNS.values()):
        assert ", ".join(f"`{name}`" for name in names) in line
