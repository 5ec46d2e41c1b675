"""Read tables and dictionaries: frames, Parquet, CSV and TSV with a header, nested dictionaries.

Frames may be pandas or polars; dictionaries are {query: {document: number}}. Every cell of a text file is text
until it has been checked, so '007' stays '007'.
"""

import csv
import io
import math
import numbers
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import over_ranges
from genm.errors import FormatError
from genm.ids import encode
from genm.read.diagnostics import Diagnostics, Place, shown
from genm.read.rows import Duplicates, Rows, as_qrels, as_run, segments, without
from genm.read.sources import TextSource, decoded
from genm.read.trec import MATTERS, UNDECIDED, judge_number, powers_of_ten, read_decimals
from genm.records import Qrels, Run

if TYPE_CHECKING:
    import polars as pl

PlaceOf = Callable[[int], Place]

QUERY_COLUMNS = ("query_id", "qid", "q_id", "query-id", "query")
DOC_COLUMNS = ("doc_id", "docno", "docid", "corpus-id", "doc-id")
VALUE_COLUMNS = {"score": ("score",), "relevance": ("relevance", "label", "rel", "score")}
"""The names of ir_measures, PyTerrier, ranx, BEIR and trectools; the first that a table has is taken."""

SEPARATORS = {"csv": ",", "tsv": "\t"}


def id_texts(
    cells: Sequence[object], what: str, report: Diagnostics, place: PlaceOf
) -> tuple[list[str], NDArray[np.bool_]]:
    """Return ids as text, and which are missing. A column of integers is noted; a mixture with text is a fault."""
    bad = np.zeros(len(cells), np.bool_)
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) == len(cells) and "" not in texts:
        return texts, bad  # the usual case
    texts = []
    n_texts = n_integers = 0
    for i, cell in enumerate(cells):
        text, integer = _id_text(cell)
        n_integers, n_texts = n_integers + integer, n_texts + (text is not None and not integer)
        if text is None:
            report.fault(
                "missing-id", line=partial(place, i), expected=f"text as {what} id", found=shown(cell),
                advice="Give every row an id, as text.", repair="the row was left out",
            )  # fmt: skip
            bad[i] = True
        texts.append(text or "?")
    first_integer = next((i for i, cell in enumerate(cells) if _id_text(cell)[1]), -1)
    if n_integers and n_texts:
        report.fault(
            "mixed-ids", line=partial(place, first_integer), count=n_integers,
            expected=f"{what} ids all as text", found=f"the integer {shown(cells[first_integer])} among them",
            advice="Turn the ids into text before: 7 and '7' would become one.", repair="read as text",
        )  # fmt: skip
    elif n_integers:
        say_integers(report, what, n_integers, place(first_integer))
    else:
        pass  # all text but for what is missing
    return texts, bad


def say_integers(report: Diagnostics, what: str, count: int, place: Place) -> None:
    """Note that a column of ids holds integers."""
    report.say("integer-ids", count, f"{what} ids are integers: read as text, 7 as '7' (never '07')", line=place)


def numbers_of(
    cells: Sequence[object], what: str, report: Diagnostics, place: PlaceOf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers, and which cells hold none or one that is not finite."""
    values, bad = np.zeros(len(cells)), np.zeros(len(cells), np.bool_)
    for i, cell in enumerate(cells):
        truth = isinstance(cell, bool | np.bool_)
        if isinstance(cell, float | int | numbers.Real | np.bool_) and (not truth or what == "relevance"):
            values[i] = float(cell)
        else:
            report.fault(
                "not-a-number", line=partial(place, i), expected=f"a number as {what}", found=shown(cell),
                advice="Convert it, or drop the row.", repair="the row was left out",
            )  # fmt: skip
            bad[i] = True
    return values, bad | finite_fault(values, bad, what, report, place)


def finite_fault(
    values: NDArray[np.float64], known: NDArray[np.bool_], what: str, report: Diagnostics, place: PlaceOf
) -> NDArray[np.bool_]:
    """Refuse NaN and infinities in rows that are not yet known to be bad."""
    bad = ~np.isfinite(values) & ~known
    if bad.any():
        first = int(np.argmax(bad))
        report.fault(
            "not-finite", line=partial(place, first), count=int(np.count_nonzero(bad)),
            expected=f"a finite number as {what}", found=f"{values[first]}",
            advice="Find out what made it; such a document has no place in a ranking.",
            repair="the row was left out",
        )  # fmt: skip
    return bad


def rows_of(
    query: list[str], doc: list[str], value: NDArray[np.float64], bad: NDArray[np.bool_], place: PlaceOf
) -> Rows:
    """Make rows of the columns of a table, without the bad ones."""
    queries, query_code = encode(query)
    docs, doc_code = encode(doc)
    return without(Rows(queries, docs, *segments(query_code), doc_code, value, place), bad)


def _id_text(cell: object) -> tuple[str | None, bool]:
    """Return an id's text (None: not an id) and whether it was an integer."""
    if isinstance(cell, str):
        return cell or None, False
    if isinstance(cell, bool) or not isinstance(cell, numbers.Real | int | float):
        return None, False
    number = float(cell)
    if not isinstance(cell, numbers.Integral) and not (math.isfinite(number) and number == int(number)):
        return None, False
    # Frames store a column of integers with a gap as floats.
    return str(int(cell) if isinstance(cell, int | float) else int(number)), True


def run_from_frame(
    frame: Any, *, name: str = "run", lenient: bool = False, duplicates: Duplicates = "error"
) -> Run:
    """Make a run of a pandas or polars frame with columns for query id, doc id and score."""
    report = Diagnostics(name, lenient=lenient)
    return as_run(frame_rows(frame, "score", report, _row_place), name, duplicates, report)


def qrels_from_frame(frame: Any, *, lenient: bool = False) -> Qrels:
    """Make judgments of a pandas or polars frame with columns for query id, doc id and relevance."""
    report = Diagnostics("qrels", lenient=lenient)
    return as_qrels(frame_rows(frame, "relevance", report, _row_place), report)


def is_frame(source: object) -> bool:
    """Return whether the source is a frame that narwhals supports."""
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return False  # the usual case, without loading narwhals
    import narwhals as nw

    return nw.from_native(source, eager_only=True, pass_through=True) is not source


def known_names(what: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names that a table's three columns may have."""
    return QUERY_COLUMNS, DOC_COLUMNS, VALUE_COLUMNS[what]


def chosen_columns(columns: list[str], what: str, report: Diagnostics, line: int | None) -> tuple[str, str, str]:
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


def frame_rows(frame: Any, what: str, report: Diagnostics, place: PlaceOf, line: int | None = None) -> Rows:
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


def read_parquet(source: TextSource, report: Diagnostics) -> "pl.DataFrame":
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


def _ids(series: Any, what: str, report: Diagnostics, place: PlaceOf) -> tuple[list[str], NDArray[np.bool_]]:
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
    series: Any, what: str, report: Diagnostics, place: PlaceOf
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
    series: Any, what: str, report: Diagnostics, place: PlaceOf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of a column of text, by the rules of TREC files."""
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


def read_delimited(
    source: TextSource, form: str, what: str, report: Diagnostics
) -> tuple["pl.DataFrame", PlaceOf, int]:
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
        named = True  # unknown names are refused later, with those that are expected

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
    """Return whether the cells are a header with the columns we need."""
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
    source: str, text: str, separator: str, header: list[str], *, has_header: bool, report: Diagnostics | None
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
    """Read with polars; None if a row is incomplete, so that the slow parser can name its line."""
    import polars as pl

    try:
        frame = pl.read_csv(
            text.encode(), separator=separator, has_header=has_header, infer_schema=False, new_columns=header
        )
    except pl.exceptions.PolarsError:
        return None
    is_gap = (
        pl.all().fill_null("") == ""
    )  # an empty cell is null or an empty string, depending on the version of polars
    frame = frame.filter(~pl.all_horizontal(is_gap))
    return None if frame.select(pl.any_horizontal(is_gap.any())).item() else frame


def run_from_dict(
    mapping: Mapping[str, Mapping[str, float]],
    *,
    name: str = "run",
    lenient: bool = False,
    duplicates: Duplicates = "error",
) -> Run:
    """Make a run of {query id: {doc id: score}}."""
    report = Diagnostics(name, lenient=lenient)
    return as_run(_rows(mapping, "score", report), name, duplicates, report)


def qrels_from_dict(mapping: Mapping[str, Mapping[str, int]], *, lenient: bool = False) -> Qrels:
    """Make judgments of {query id: {doc id: relevance}}."""
    report = Diagnostics("qrels", lenient=lenient)
    return as_qrels(_rows(mapping, "relevance", report), report)


def _rows(mapping: Mapping[str, Mapping[str, float]], what: str, report: Diagnostics) -> Rows:
    keys: list[object] = []
    docs: list[object] = []
    values: list[object] = []
    sizes: list[int] = []
    for key, row in mapping.items():
        if not isinstance(row, Mapping):
            raise report.fail(
                None, expected="a dictionary of documents for each query",
                found=f"{shown(row)} for query {shown(key)}", advice="Pass {query id: {doc id: number}}.",
            )  # fmt: skip
        if not row:
            report.say("empty-query", 1, f"query {shown(key)} has no documents: left out")
            continue
        keys.append(key)
        sizes.append(len(row))
        docs += row.keys()
        values += row.values()
    if not keys:
        report.fault(
            "empty", line=None, expected="at least one query with a document", found="none",
            advice="Pass {query id: {doc id: number}}.", repair="read as empty",
        )  # fmt: skip
    starts = np.append(0, np.cumsum(sizes, dtype=np.int64))

    def place(row: int) -> str:
        return f"[{keys[int(np.searchsorted(starts, row, side='right')) - 1]!r}][{docs[row]!r}]"

    query_texts, bad_queries = id_texts(keys, "query", report, lambda i: f"[{keys[i]!r}]")
    doc_texts, bad = id_texts(docs, "document", report, place)
    numbers, bad_numbers = numbers_of(values, what, report, place)
    bad = bad | bad_numbers | np.repeat(bad_queries, sizes)
    query = [text for text, size in zip(query_texts, sizes, strict=True) for _ in range(size)]
    return rows_of(query, doc_texts, numbers, bad, place)
