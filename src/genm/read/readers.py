"""read_run, read_qrels and read_query_weights: find the format of a source and read it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from genm.errors import InputError
from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, shown
from genm.read.rows import Duplicates, Rows, as_qrels, as_run
from genm.read.sources import FileSource, TextSource, name_of, open_source, text_bytes
from genm.read.tables import (
    SEPARATORS,
    frame_rows,
    has_known_names,
    is_frame,
    qrels_from_dict,
    qrels_from_frame,
    read_delimited,
    read_parquet,
    run_from_dict,
    run_from_frame,
)
from genm.read.trec import QRELS, RUN, WEIGHTS, Shape, read_rows
from genm.records import Qrels, Run

Format = Literal["trec", "csv", "tsv", "parquet"]


def source_rows(
    source: TextSource, form: Format | None, shape: Shape, report: Diagnostics, progress: Progress
) -> Rows:
    """Read the rows of a file in the format named, or found."""
    if form is not None and form not in get_args(Format):
        raise InputError(f"format: expected one of {', '.join(get_args(Format))}; found {form!r}.")
    form = form or found_format(source, shape)
    if form == "trec":
        return read_rows(source, shape, report, progress)
    if form == "parquet":
        return frame_rows(read_parquet(source, report), shape.value, report, lambda row: f"row {row} (from 0)")
    frame, place, line = read_delimited(source, form, shape.value, report)
    return frame_rows(frame, shape.value, report, place, line)


def found_format(source: TextSource, shape: Shape) -> Format:
    """Tell the format: Parquet by its mark, tables by a header line we know, or by a name that says so."""
    if text_bytes(source.text, 0, 4) == b"PAR1" or source.suffix in (".parquet", ".pq"):
        return "parquet"
    head = text_bytes(source.text, 0, 4096).lstrip(b"\r\n")
    line = head.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
    for form, separator in SEPARATORS.items():
        if has_known_names([cell.strip('"') for cell in line.split(separator)], shape.value):
            return "csv" if form == "csv" else "tsv"
    if source.suffix == ".csv" and head:
        return "csv"
    if source.suffix == ".tsv" and head and len(line.split()) != shape.layout.columns:
        return "tsv"
    return "trec"


def read_qrels(
    source: FileSource | Mapping[str, Mapping[str, int]] | Any,
    *,
    format: Format | None = None,  # noqa: A002
    lenient: bool = False,
    progress: Progress = silent,
) -> Qrels:
    """Read judgments: a path, `-` for standard input, an open file, a dictionary, a pandas or polars frame.

    Files are TREC qrels (four columns), or CSV, TSV or Parquet tables, among them BEIR's. Grades are whole
    numbers; negative ones are kept. What is wrong raises FormatError; with `lenient` it is repaired as
    docs/formats.md says, and counted in the notes.
    """
    if isinstance(source, Qrels):
        return source
    if isinstance(source, Mapping):
        return qrels_from_dict(source, lenient=lenient)
    if is_frame(source):
        return qrels_from_frame(source, lenient=lenient)
    report = Diagnostics(name_of(source), lenient=lenient)
    opened = open_source(source, report, progress)
    return as_qrels(source_rows(opened, format, QRELS, report, progress), report)


def read_query_weights(source: FileSource) -> dict[str, float]:
    """Read how much each query counts: lines of `query weight`, each query once, no weight negative."""
    report = Diagnostics(name_of(source), lenient=False)
    rows = read_rows(open_source(source, report, silent), WEIGHTS, report, silent)
    weights: dict[str, float] = {}
    for row, (query, weight) in enumerate(zip(rows.doc.tolist(), rows.value.tolist(), strict=True)):
        query_id = rows.docs[query]
        if weight < 0 or query_id in weights:
            report.fault(
                "weight", line=rows.place(row), expected="each query once, with a weight of 0 or more",
                found=f"weight {weight:g} for query {shown(query_id)}" + (" again" if query_id in weights else ""),
                advice="Give each query one weight that is not negative.", repair="",
            )  # fmt: skip
        weights[query_id] = weight
    return weights


def read_run(
    source: FileSource | Mapping[str, Mapping[str, float]] | Any,
    *,
    name: str | None = None,
    format: Format | None = None,  # noqa: A002
    lenient: bool = False,
    duplicates: Duplicates = "error",
    progress: Progress = silent,
) -> Run:
    """Read a run: a path, `-` for standard input, an open file, a dictionary, a pandas or polars frame.

    Files are TREC runs (six columns), or CSV, TSV or Parquet tables; packed by gzip or zstandard or not. The
    order is by score downwards, ties by doc id downwards; the rank column is not used. What is wrong raises
    FormatError; with `lenient` it is repaired as docs/formats.md says, and counted in the run's notes.
    `duplicates` says which score stands if a document comes twice for a query.
    """
    if duplicates not in get_args(Duplicates):
        raise InputError(f"duplicates: expected one of {', '.join(get_args(Duplicates))}; found {duplicates!r}.")
    if isinstance(source, Run):
        return source if name is None else replace(source, name=name)
    if isinstance(source, Mapping):
        return run_from_dict(source, name=name or "run", lenient=lenient, duplicates=duplicates)
    if is_frame(source):
        return run_from_frame(source, name=name or "run", lenient=lenient, duplicates=duplicates)
    report = Diagnostics(name_of(source), lenient=lenient)
    opened = open_source(source, report, progress)
    rows = source_rows(opened, format, RUN, report, progress)
    return as_run(rows, name or opened.stem, duplicates, report)
