"""CSV and TSV files with a header line. Every cell is text until we have looked at it, so '007' stays '007'."""

import csv
import io
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from genm.errors import FormatError
from genm.read.cells import PlaceOf
from genm.read.decimals import judge_number
from genm.read.diagnostics import Report, shown
from genm.read.sources import Source, decoded
from genm.read.tables import known_names

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {"csv": ",", "tsv": "\t"}


def read_delimited(source: Source, form: str, what: str, report: Report) -> tuple["pl.DataFrame", PlaceOf, int]:
    """Return the table as text, a function from its rows to their lines, and the line of its header."""
    import polars as pl

    text, separator = decoded(source, report), SEPARATORS[form]
    header, line = next(((cells, line) for line, cells in _lines(source.name, text, separator)), (None, 1))
    if header is None:
        return pl.DataFrame(schema=dict.fromkeys(["query_id", "doc_id", what], pl.String)), _nowhere, 1
    named = has_known_names(header, what)
    if not named and len(header) == 3 and not judge_number(header[2].strip().encode())[1]:
        report.fault(
            "no-header", line=line, expected="a header line, such as query-id, corpus-id, score",
            found=shown(separator.join(header)), advice="Add the header line.",
            repair="the columns were taken as query id, doc id and value",
        )  # fmt: skip
        header = ["query_id", "doc_id", what]
    elif len(set(header)) < len(header):
        raise report.fail(
            line, expected="each column name once", found=shown(separator.join(header)),
            advice="Rename or drop one of the two.",
        )  # fmt: skip
    else:
        named = True  # names that do not suit are refused later, with the names that would

    @cache
    def numbers() -> list[int]:
        return [n for n, _ in _records(source.name, text, separator, header, has_header=named, report=None)]

    frame = _fast(text, separator, header, has_header=named)
    if frame is None:
        pairs = list(_records(source.name, text, separator, header, has_header=named, report=report))
        frame = pl.DataFrame([cells for _, cells in pairs], dict.fromkeys(header, pl.String), orient="row")
        lines = [n for n, _ in pairs]
        return frame, lines.__getitem__, line
    return frame, lambda row: numbers()[row], line


def has_known_names(header: list[str], what: str) -> bool:
    """Tell whether a line of cells is a header we can use."""
    return all(any(name in header for name in names) for names in known_names(what))


def _nowhere(_: int) -> None:
    return None


def _lines(source: str, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    begin = 1
    try:
        for cells in reader:
            if cells:
                yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        found = shown(text.splitlines()[begin - 1]) if begin <= text.count("\n") + 1 else "the end"
        raise FormatError(
            source, begin, "quoted or plain cells of moderate length", f"{found} ({error})", "See how it is quoted."
        ) from error


def _records(
    source: str, text: str, separator: str, header: list[str], *, has_header: bool, report: Report | None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with as many cells as the header has; the others are a fault (with a report)."""
    lines = _lines(source, text, separator)
    if has_header:
        next(lines)
    for number, cells in lines:
        if len(cells) == len(header):
            yield number, cells
        elif report is not None:
            report.fault(
                "columns", line=number, expected=f"{len(header)} columns, as in the header",
                found=f"{len(cells)} column{'s' * (len(cells) != 1)} in {shown(separator.join(cells))}",
                advice="Quote cells that hold the separator; see that the file is not cut short.",
                repair="the line was left out",
            )  # fmt: skip


def _fast(text: str, separator: str, header: list[str], *, has_header: bool) -> "pl.DataFrame | None":
    """Read with polars; None where a row is not complete and the slow way must say which."""
    import polars as pl

    try:
        frame = pl.read_csv(
            text.encode(), separator=separator, has_header=has_header, infer_schema=False, new_columns=header
        )
    except pl.exceptions.PolarsError:
        return None
    is_gap = pl.all().fill_null("") == ""  # an empty cell is null or empty text, by the version of polars
    frame = frame.filter(~pl.all_horizontal(is_gap))
    return None if frame.select(pl.any_horizontal(is_gap.any())).item() else frame
