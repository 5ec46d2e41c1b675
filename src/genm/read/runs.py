"""read_run: what a ranker returned, from wherever it lies."""

from collections.abc import Mapping
from typing import Any, get_args

from genm.errors import InputError
from genm.progress import Progress, silent
from genm.read.diagnostics import Report
from genm.read.formats import Format, source_rows
from genm.read.plain import run_from_dict
from genm.read.rows import Duplicates, as_run
from genm.read.sources import FileSource, name_of, open_source
from genm.read.tables import is_frame, run_from_frame
from genm.read.trec import RUN
from genm.records import Run


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
    if isinstance(source, Mapping):
        return run_from_dict(source, name=name or "run", lenient=lenient, duplicates=duplicates)
    if is_frame(source):
        return run_from_frame(source, name=name or "run", lenient=lenient, duplicates=duplicates)
    report = Report(name_of(source), lenient=lenient)
    opened = open_source(source, report, progress)
    rows = source_rows(opened, format, RUN, report, progress)
    return as_run(rows, name or opened.stem, duplicates, report)
