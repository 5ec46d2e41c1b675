"""Write runs and qrels as TREC files. Scores are written in full, so a run that is read again ranks the same."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from genm._typing import Floats
from genm.errors import InputError
from genm.ids import Ids
from genm.io import Destination, opened
from genm.read.diagnostics import shown
from genm.records import Qrels, Run, check_kind

if TYPE_CHECKING:
    import polars as pl

_ROWS = 1 << 19  # rows turned into text at a time
_FEW_ROWS = 1 << 15
"""Up to so many rows are written by Python itself: importing polars takes longer."""
_NOT_PLAIN = re.compile(r"[\x00-\x20\ud800-\udfff]")
"""White space, control characters, and what stands for bytes of a command line that are no text."""


def write_run(run: Run, destination: Destination, *, tag: str | None = None) -> None:
    """Write a run as TREC lines `query Q0 document rank score tag`; `-` is standard output.

    Ranks start at 1. Names ending in .gz or .zst are compressed. The file appears complete or not at all.
    """
    check_kind("run", run, Run, "Judgments are written by write_qrels.")
    tag = tag if tag is not None else re.sub(r"\s+", "_", run.name.strip()) or "run"
    _check_word(tag, "tag")
    _check_ids(run.queries, "query", comment=True)
    _check_ids(run.docs, "document")
    if run.given is not None:  # equal scores are written as they were read
        order = run.given_rows()
        run = replace(run, doc=run.doc[order], score=run.score[order])
    rank = np.arange(1, len(run.doc) + 1) - np.repeat(run.starts[:-1], np.diff(run.starts))
    with opened(destination) as file:
        if len(run.doc) <= _FEW_ROWS and _has_plain_decimals(run.score):
            docs, ranked = list(run.docs), zip(run.doc.tolist(), rank.tolist(), run.score.tolist(), strict=True)
            queries = np.repeat(np.arange(len(run.queries)), np.diff(run.starts)).tolist()
            names = list(run.queries)
            lines = [
                f"{names[q]} Q0 {docs[doc]} {place} {score} {tag}\n"
                for q, (doc, place, score) in zip(queries, ranked, strict=True)
            ]
            file.write("".join(lines).encode())
            return
        for rows, query, doc in _blocks(run):
            _write(
                file,
                {"query": query, "q0": "Q0", "doc": doc, "rank": rank[rows], "score": run.score[rows], "tag": tag},
            )


def _has_plain_decimals(scores: Floats) -> bool:
    """Whether Python writes all scores as polars does: from 0.0001 on, without an exponent."""
    size = np.abs(scores)
    return bool(((size == 0.0) | ((size >= 1e-4) & (size < 1e15))).all())


def write_qrels(qrels: Qrels, destination: Destination) -> None:
    """Write judgments as TREC lines `query 0 document relevance`; `-` is standard output."""
    check_kind("qrels", qrels, Qrels, "Runs are written by write_run.")
    _check_ids(qrels.queries, "query", comment=True)
    _check_ids(qrels.docs, "document")
    with opened(destination) as file:
        for rows, query, doc in _blocks(qrels):
            _write(file, {"query": query, "iteration": "0", "doc": doc, "relevance": qrels.relevance[rows]})


def write_texts(ids: Sequence[str], texts: Sequence[str], destination: Destination) -> None:
    """Write texts as lines of id, tab and text; white space inside a text becomes single spaces."""
    for key in ids:
        _check_word(key, "id")
    with opened(destination) as file:
        for key, text in zip(ids, texts, strict=True):
            file.write(f"{key}\t{' '.join(text.split())}\n".encode())


def _blocks(records: Run | Qrels) -> "Iterator[tuple[slice, pl.Series, pl.Series]]":
    """Yield blocks of rows with the ids of their queries and documents."""
    import polars as pl

    queries, docs = (
        pl.Series(list(records.queries), dtype=pl.String),
        pl.Series(list(records.docs), dtype=pl.String),
    )
    for begin in range(0, len(records.doc), _ROWS):
        rows = slice(begin, min(begin + _ROWS, len(records.doc)))
        query = np.searchsorted(records.starts, np.arange(rows.start, rows.stop), side="right") - 1
        yield rows, queries.gather(query), docs.gather(records.doc[rows])


def _write(file: IO[bytes], columns: dict[str, Any]) -> None:
    import polars as pl

    n = len(columns["doc"])
    series = {k: pl.repeat(v, n, eager=True) if isinstance(v, str) else pl.Series(v) for k, v in columns.items()}
    pl.DataFrame(series).write_csv(file, include_header=False, separator=" ", quote_style="never")


def _check_ids(ids: Ids, what: str, *, comment: bool = False) -> None:
    """Refuse ids that a line of columns cannot hold: empty, with white space, or that make it another line.

    A line that begins with # is a comment, and a byte order mark at the beginning of a file is dropped.
    """
    lengths = np.diff(ids.starts)
    suspicious = not lengths.all() or bool((ids.text <= 32).any())
    if suspicious or (comment and bool(np.isin(ids.text[ids.starts[:-1]], (35, 0xEF)).any())):
        for text in ids:
            _check_word(text, f"{what} id", comment=comment)


def _check_word(text: str, what: str, *, comment: bool = False) -> None:
    if not text or _NOT_PLAIN.search(text) or (comment and text.startswith(("#", "\ufeff"))):
        begin = ", nor begin with # or a byte order mark" if comment else ""
        raise InputError(
            f"{what}: expected a word that a TREC line can hold; found {shown(text)}. "
            f"It must not be empty nor hold white space or control characters{begin}; rename it."
        )
