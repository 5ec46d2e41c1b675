"""Which format a source is in: what the caller says, else its first bytes and its name."""

from typing import Literal, get_args

from genm.errors import InputError
from genm.progress import Progress
from genm.read.delimited import SEPARATORS, has_known_names, read_delimited
from genm.read.diagnostics import Report
from genm.read.rows import Rows
from genm.read.sources import Source, text_bytes
from genm.read.tables import frame_rows, read_parquet
from genm.read.trec import Shape, read_rows

Format = Literal["trec", "csv", "tsv", "parquet"]


def source_rows(source: Source, form: Format | None, shape: Shape, report: Report, progress: Progress) -> Rows:
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


def found_format(source: Source, shape: Shape) -> Format:
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
