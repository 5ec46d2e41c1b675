"""Tables: pandas and polars frames, Parquet files, and what the delimited reader makes of CSV and TSV."""

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import over_ranges
from genm.read.cells import PlaceOf, finite_fault, id_texts, numbers_of, rows_of, say_integers
from genm.read.decimals import UNDECIDED, judge_number, powers_of_ten, read_decimals
from genm.read.diagnostics import Report, shown
from genm.read.rows import Duplicates, Rows, as_qrels, as_run
from genm.read.sources import Source
from genm.read.trec import MATTERS
from genm.records import Qrels, Run

if TYPE_CHECKING:
    import polars as pl

QUERY_COLUMNS = ("query_id", "qid", "q_id", "query-id", "query")
DOC_COLUMNS = ("doc_id", "docno", "docid", "corpus-id", "doc-id")
VALUE_COLUMNS = {"score": ("score",), "relevance": ("relevance", "label", "rel", "score")}
"""The names of ir_measures, PyTerrier, ranx, BEIR and trectools; the first that a table has is taken."""


def run_from_frame(
    frame: Any, *, name: str = "run", lenient: bool = False, duplicates: Duplicates = "error"
) -> Run:
    """Make a run of a pandas or polars frame with columns for query id, doc id and score."""
    report = Report(name, lenient=lenient)
    return as_run(frame_rows(frame, "score", report, _row_place), name, duplicates, report)


def qrels_from_frame(frame: Any, *, lenient: bool = False) -> Qrels:
    """Make judgments of a pandas or polars frame with columns for query id, doc id and relevance."""
    report = Report("qrels", lenient=lenient)
    return as_qrels(frame_rows(frame, "relevance", report, _row_place), report)


def is_frame(source: object) -> bool:
    """Tell whether the source is a table that narwhals knows."""
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return False  # nearly always, and then narwhals need not be loaded
    import narwhals as nw

    return nw.from_native(source, eager_only=True, pass_through=True) is not source


def known_names(what: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names a table's three columns may have."""
    return QUERY_COLUMNS, DOC_COLUMNS, VALUE_COLUMNS[what]


def chosen_columns(columns: list[str], what: str, report: Report, line: int | None) -> tuple[str, str, str]:
    """Return the table's names of query, document and value."""
    found = [next((c for c in names if c in columns), None) for names in known_names(what)]
    query, doc, value = found
    if query is None or doc is None or value is None:
        missing = next(names for names, c in zip(known_names(what), found, strict=True) if c is None)
        raise report.fail(
            line, expected=f"a column named {' or '.join(missing)}", found=f"columns {shown(', '.join(columns))}",
            advice=f"Rename the columns, for instance to query_id, doc_id, {what}.",
        )  # fmt: skip
    return query, doc, value


def frame_rows(frame: Any, what: str, report: Report, place: PlaceOf, line: int | None = None) -> Rows:
    """Read the rows of a frame."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    query, doc, value = chosen_columns(list(table.columns), what, report, line)
    if not len(table):
        report.fault(
            "empty", line=None, expected="a table with rows", found="none",
            advice="See whether the query that made it found anything.", repair="read as empty",
        )  # fmt: skip
    query_texts, bad_query = _ids(table[query], "query", report, place)
    doc_texts, bad_doc = _ids(table[doc], "document", report, place)
    values, bad_value = _values(table[value], what, report, place)
    return rows_of(query_texts, doc_texts, values, bad_query | bad_doc | bad_value, place)


def read_parquet(source: Source, report: Report) -> "pl.DataFrame":
    """Read a Parquet file."""
    import polars as pl

    try:
        return pl.read_parquet(source.text.tobytes())
    except pl.exceptions.PolarsError as error:
        raise report.fail(
            None, expected="a Parquet file", found=f"one that cannot be read ({shown(str(error))})",
            advice="Write or fetch it again.",
        ) from error  # fmt: skip


def _row_place(row: int) -> str:
    return f"row {row} (from 0)"


def _ids(series: Any, what: str, report: Report, place: PlaceOf) -> tuple[list[str], NDArray[np.bool_]]:
    """Return a column of ids as text, and which rows have none."""
    import narwhals as nw

    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        series = series.cast(nw.String)
    cells = series.to_list()
    if series.dtype.is_integer() and not series.is_null().any():
        if cells:
            say_integers(report, what, len(cells), None)
        return list(map(str, cells)), np.zeros(len(cells), np.bool_)
    return id_texts(cells, what, report, place)


def _values(
    series: Any, what: str, report: Report, place: PlaceOf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column of numbers, and which rows have none."""
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.String):
        return _text_values(series, what, report, place)
    if dtype.is_numeric() and not series.is_null().any():
        values = np.array(series.cast(nw.Float64).to_numpy(), np.float64)
        return values, finite_fault(values, np.zeros(len(values), np.bool_), what, report, place)
    return numbers_of(series.to_list(), what, report, place)


def _text_values(
    series: Any, what: str, report: Report, place: PlaceOf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of a column of text, by the same rules as in a file of lines."""
    parts = [(cell or "").strip().encode() for cell in series.to_list()]
    length = np.fromiter(map(len, parts), np.int32, len(parts))
    at = np.cumsum(length, dtype=np.int64) - length
    text, bits = np.frombuffer(bytearray().join(parts), np.uint8), np.empty(len(parts), np.uint64)
    powers = powers_of_ten()
    over_ranges(
        lambda low, high: read_decimals(text, at, length, powers, bits, low, high), np.ones(len(parts), np.int64)
    )
    values, bad = bits.view(np.float64), np.zeros(len(parts), np.bool_)
    for row in np.flatnonzero(bits == UNDECIDED).tolist():
        values[row], matter = judge_number(parts[row])
        if matter:
            expected, advice, repair = MATTERS[matter]
            report.fault(
                matter, line=partial(place, row), expected=expected.format(what), found=shown(parts[row]),
                advice=advice, repair=repair,
            )  # fmt: skip
        bad[row] = values[row] != values[row]
    return values, bad
