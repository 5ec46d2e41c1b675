"""Read tables and dictionaries: frames, Parquet, CSV and TSV with a header, nested dictionaries.

Frames may be pandas or polars; dictionaries are {query: {document: number}}. Every cell of a text file is text
until it has been checked, so '007' stays '007'.
"""

import csv
import io
import itertools
import math
import numbers
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import over_ranges
from genm.errors import WrongTypeError
from genm.ids import Ids, encode
from genm.read.diagnostics import Diagnostics, Place, described, shown
from genm.read.rows import WHOLE_GRADES, Duplicates, Rows, as_qrels, as_run, segments, without
from genm.read.sources import TextSource, check_unpacked, decoded
from genm.read.trec import MATTERS, UNDECIDED, judge_number, powers_of_ten, read_decimals
from genm.records import Provenance, Qrels, Run

if TYPE_CHECKING:
    import polars as pl

PlaceOf = Callable[[int], Place]

QUERY_COLUMNS = ("query_id", "qid", "q_id", "query-id", "query", "query_text")
DOC_COLUMNS = ("doc_id", "docno", "docid", "corpus-id", "doc-id", "document_id")
VALUE_COLUMNS = {"score": ("score",), "relevance": ("relevance", "label", "rel", "rating", "grade", "score")}
"""The names of ir_measures, PyTerrier, ranx, BEIR, trectools and Quepid; the first that a table has is taken.

Upper and lower case are alike, and so are spaces, `-` and `_`.
"""

SEPARATORS = {"csv": ",", "tsv": "\t"}

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CELL_BYTES = 16
"""The least that a cell of a frame takes in memory."""


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
            values[i], matter = _as_float(cell)
            if matter:
                expected, advice, repair = MATTERS[matter]
                report.fault(
                    matter, line=partial(place, i), expected=expected.format(what), found=shown(cell),
                    advice=advice, repair=repair,
                )  # fmt: skip
                bad[i] = matter == "too-large"
        else:
            report.fault(
                "not-a-number", line=partial(place, i), expected=f"a number as {what}", found=shown(cell),
                advice="Convert it, or drop the row.", repair="the row was left out",
            )  # fmt: skip
            bad[i] = True
    return values, bad | finite_fault(values, bad, what, report, place)


def _as_float(number: Any) -> tuple[float, str]:
    """Return a number as float64 and "", or the value that a repair would give and the fault."""
    try:
        value = float(number)
    except OverflowError:
        return math.nan, "too-large"
    return value, "too-small" if value == 0.0 and number != 0 else ""


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
    query: list[str],
    doc: list[str],
    value: NDArray[np.float64],
    bad: NDArray[np.bool_],
    report: Diagnostics,
    place: PlaceOf,
    provenance: Provenance | None = None,
    probability: NDArray[np.float64] | None = None,
) -> Rows:
    """Make rows of the columns of a table, without the bad ones."""
    queries, query_code, bad_query = _encoded(query, "query", report, place)
    docs, doc_code, bad_doc = _encoded(doc, "document", report, place)
    rows = Rows(queries, docs, *segments(query_code), doc_code, value, place, provenance, probability)
    return without(rows, bad | bad_query | bad_doc)


def _encoded(
    texts: list[str], what: str, report: Diagnostics, place: PlaceOf
) -> tuple[Ids, NDArray[np.int32], NDArray[np.bool_]]:
    """Return the distinct ids, each row's code, and which rows have an id that no id may be.

    Such an id holds a control character other than white space, or half of a surrogate pair.
    """
    bad = np.zeros(len(texts), np.bool_)
    try:
        ids, codes = encode(texts)
    except UnicodeEncodeError:
        bad |= [bool(_SURROGATE.search(text)) for text in texts]
        ids, codes = encode("?" if is_bad else text for text, is_bad in zip(texts, bad.tolist(), strict=True))
    if ((ids.text < 32) & ((ids.text < 9) | (ids.text > 13))).any():
        bad |= np.array([bool(_CONTROL.search(text)) for text in ids])[codes]
    if bad.any():
        first = int(np.argmax(bad))
        report.fault(
            "control-character", line=partial(place, first), count=int(np.count_nonzero(bad)),
            expected=f"printable text as {what} id", found=shown(texts[first]),
            advice="See what wrote the id, then remove the character.", repair="the row was left out",
        )  # fmt: skip
    return ids, codes, bad


def _id_text(cell: object) -> tuple[str | None, bool]:
    """Return an id's text (None: not an id) and whether it was an integer."""
    if isinstance(cell, str):
        return cell or None, False
    if isinstance(cell, bool) or not isinstance(cell, numbers.Real | int | float):
        return None, False
    try:
        # Frames store a column of integers with a gap as floats.
        number = int(cell)  # type: ignore[arg-type]  # numbers.Real has __trunc__ at run time
        return (str(number), True) if number == cell else (None, False)
    except (OverflowError, ValueError):  # an infinity, NaN, more digits than Python writes
        return None, False


def run_from_frame(
    frame: Any, *, name: str = "run", lenient: bool = False, duplicates: Duplicates = "error"
) -> Run:
    """Make a run of a pandas or polars frame with columns for query id, doc id and score."""
    report = Diagnostics(name, lenient=lenient)
    return as_run(frame_rows(frame, "score", report, _row_place), name, duplicates, report)


def qrels_from_frame(frame: Any, *, lenient: bool = False, grades: str = WHOLE_GRADES) -> Qrels:
    """Make judgments of a pandas or polars frame with columns for query id, doc id and relevance."""
    report = Diagnostics("qrels", lenient=lenient)
    return as_qrels(frame_rows(frame, "relevance", report, _row_place), report, grades)


def is_frame(source: object) -> bool:
    """Return whether the source is a frame that narwhals supports."""
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return False  # the usual case, without loading narwhals
    import narwhals as nw

    return nw.from_native(source, eager_only=True, pass_through=True) is not source


def known_names(what: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names that a table's three columns may have."""
    return QUERY_COLUMNS, DOC_COLUMNS, VALUE_COLUMNS[what]


def first_known(columns: list[str], names: tuple[str, ...]) -> str | None:
    """Return the column with the first of the names that any has: as it is written here, else spelled otherwise."""
    spelled = {_plain_name(column): column for column in reversed(columns)}
    exact = next((name for name in names if name in columns), None)
    return exact or next((spelled[_plain_name(name)] for name in names if _plain_name(name) in spelled), None)


def _plain_name(name: str) -> str:
    return re.sub(r"[\s-]", "_", name.strip().lower())


def chosen_columns(columns: list[str], what: str, report: Diagnostics, line: int | None) -> tuple[str, str, str]:
    """Return the table's names of query, document and value."""
    found = [first_known(columns, names) for names in known_names(what)]
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

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise WrongTypeError(
            f"{report.source}: expected a pandas or polars frame; found {type(frame).__name__}. Collect lazy ones."
        ) from None
    query, doc, value = chosen_columns(list(table.columns), what, report, line)
    if not len(table):
        report.fault(
            "empty", line=None, expected="a table with rows", found="none",
            advice="See whether the query that made it found anything.", repair="read as empty",
        )  # fmt: skip
    query_texts, bad_query = _ids(table[query], "query", report, place)
    doc_texts, bad_doc = _ids(table[doc], "document", report, place)
    values, bad_value = _values(table[value], what, report, place)
    bad = bad_query | bad_doc | bad_value
    if what != "relevance":
        return rows_of(query_texts, doc_texts, values, bad, report, place)
    provenance, probability = _provenance(table, report, place), _probability(table)
    return rows_of(query_texts, doc_texts, values, bad, report, place, provenance, probability)


def _probability(table: Any) -> NDArray[np.float64] | None:
    """Return the column probability, NaN where a cell is empty or no number; None if the table has none."""
    column = first_known(list(table.columns), ("probability",))
    if column is None:
        return None
    found = np.full(len(table), np.nan)
    for row, cell in enumerate(table[column].to_list()):
        try:
            found[row] = np.nan if cell in (None, "") else float(cell)
        except (TypeError, ValueError):
            continue  # the rule for grades that reads the column refuses it
    return found


def _provenance(table: Any, report: Diagnostics, place: PlaceOf) -> Provenance | None:
    """Return what the columns source and confidence say; None if the table has neither."""
    columns = list(table.columns)
    source, confidence = first_known(columns, ("source",)), first_known(columns, ("confidence",))
    if source is None and confidence is None:
        return None
    n = len(table)
    names = [""] * n if source is None else ["" if cell is None else str(cell) for cell in table[source].to_list()]
    sure = np.full(n, np.nan)
    for row, cell in enumerate([] if confidence is None else table[confidence].to_list()):
        if cell is None or cell == "":
            continue
        try:
            sure[row] = float(cell)
        except (TypeError, ValueError):
            sure[row] = -1.0
        if not (np.isnan(sure[row]) or 0.0 <= sure[row] <= 1.0):
            report.fault(
                "confidence", line=place(row), expected="a confidence from 0 to 1", found=shown(cell),
                advice="Correct it, or leave the cell empty.", repair="the confidence was left out",
            )  # fmt: skip
            sure[row] = np.nan
    return Provenance.of(names, sure)


def read_parquet(source: TextSource, report: Diagnostics) -> "pl.DataFrame":
    """Read a Parquet file."""
    import polars as pl

    content, rows = source.text.tobytes(), pl.len()
    try:
        with _quiet_panics():
            columns = pl.scan_parquet(io.BytesIO(content)).collect_schema()
            n_rows = pl.scan_parquet(io.BytesIO(content)).select(rows).collect().item()
            check_unpacked(n_rows * len(columns) * _CELL_BYTES, len(content), "a Parquet file", report)
            frame = pl.read_parquet(io.BytesIO(content))
            texts = sum(column.str.len_bytes().sum() for column in frame if column.dtype == pl.String)
    except (pl.exceptions.PolarsError, _PanicError) as error:
        raise report.fail(
            None, expected="a Parquet file", found=f"one that cannot be read ({shown(str(error))})",
            advice="Write or fetch it again.",
        ) from None  # fmt: skip
    check_unpacked(int(texts), len(content), "a Parquet file", report)
    return frame


class _PanicError(Exception):
    """A panic of polars, which is a BaseException there and would pass every handler."""


@contextmanager
def _quiet_panics() -> Iterator[None]:
    """Turn a panic of polars into an exception, without the stack that Rust writes to standard error.

    What other threads write to standard error meanwhile is written after it.
    """
    with tempfile.TemporaryFile() as held_back:
        if sys.stderr is not None:
            sys.stderr.flush()
        try:
            before = os.dup(2)
        except OSError:  # there is no standard error
            before = -1
        panicked = False
        try:
            if before >= 0:
                os.dup2(held_back.fileno(), 2)
            yield
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            panicked = True
            raise _PanicError(str(error)) from None
        finally:
            if before >= 0:
                os.dup2(before, 2)
                os.close(before)
            if not panicked:
                held_back.seek(0)
                for line in held_back:
                    os.write(2, line)


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
    header, line = next(((cells, line) for line, cells in delimited_lines(text, separator, None)), (None, 1))
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
        return [n for n, _ in _records(text, separator, header, has_header=named, report=None)]

    frame = _fast(source.text, text, separator, header, has_header=named)
    if frame is None:
        pairs = list(_records(text, separator, header, has_header=named, report=report))
        frame = pl.DataFrame([cells for _, cells in pairs], dict.fromkeys(header, pl.String), orient="row")
        lines = [n for n, _ in pairs]
        return frame, lines.__getitem__, line
    return frame, lambda row: numbers()[row], line


def has_known_names(header: list[str], what: str) -> bool:
    """Return whether the cells are a header with the columns we need."""
    return all(first_known(header, names) is not None for names in known_names(what))


def _nowhere(_: int) -> None:
    return None


def delimited_lines(text: str, separator: str, report: Diagnostics | None) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line that is not blank; wrong quotes are a fault (with a report)."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if report is not None:
                line = next(itertools.islice(io.StringIO(text, newline=""), begin - 1, None), "").rstrip("\r\n")
                report.fault(
                    "quoting", line=begin,
                    expected=f"cells that are plain or in quotes, of at most {csv.field_size_limit():,} characters",
                    found=f"{shown(line)} ({error})", advice='Close every quote, and write a quote inside as "".',
                    repair="the line was left out",
                )  # fmt: skip
            continue
        if cells:
            yield begin, cells


def table_lines(
    content: str, separator: str, report: Diagnostics
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header, and number and cells of every further line; one with more or fewer cells is a fault."""
    lines = delimited_lines(content, separator, report)
    number, header = next(lines, (0, []))
    raw_lines = enumerate(io.StringIO(content, newline=""), 1)  # split as the reader of cells splits
    first, line = next(((i, line) for i, line in raw_lines if line.rstrip("\r\n")), (1, ""))
    if number != first:  # reading leniently has left it out, but the rows mean nothing without it
        raise report.fail(
            first, expected="a header with the names of the columns", found=shown(line.rstrip("\r\n")),
            advice="Close every quote in it.",
        )  # fmt: skip

    def rows() -> Iterator[tuple[int, list[str]]]:
        for number, cells in lines:
            if len(cells) == len(header):
                yield number, cells
                continue
            report.fault(
                "columns", line=number, expected=f"{len(header)} columns, as in the header",
                found=f"{len(cells)} in {shown(separator.join(cells))}",
                advice="Quote cells that hold the separator.", repair="the line was left out",
            )  # fmt: skip

    return header, rows()


def _records(
    text: str, separator: str, header: list[str], *, has_header: bool, report: Diagnostics | None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with as many cells as the header has; the others are a fault (with a report)."""
    lines = delimited_lines(text, separator, report)
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


def _fast(
    content: NDArray[np.uint8], text: str, separator: str, header: list[str], *, has_header: bool
) -> "pl.DataFrame | None":
    """Read a plain table with polars; None if the slow parser must decide, which also names lines.

    Plain means that both parsers surely agree: no quotes, no carriage return but before a line feed, and on every
    line that is not blank as many separators as in the header, with no cell empty.
    """
    import polars as pl

    if content[:2].tobytes() in (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"):
        return None  # so begins data packed by zlib, which polars would unpack; here it is text
    is_return, is_end = content == 13, content == 10
    if (content == 34).any() or (is_return[:-1] & ~is_end[1:]).any() or is_return[-1:].any():
        return None
    filled = ~(is_return | is_end)
    n_lines = int(np.count_nonzero(filled[1:] & ~filled[:-1])) + int(filled[:1].sum())
    if np.count_nonzero(content == ord(separator)) != n_lines * (len(header) - 1):
        return None
    try:
        with _quiet_panics():
            frame = pl.read_csv(
                text.encode(), separator=separator, has_header=has_header, infer_schema=False, new_columns=header,
                quote_char=None, truncate_ragged_lines=False,
            )  # fmt: skip
    except (pl.exceptions.PolarsError, _PanicError, OSError):
        return None
    # An empty cell is null or an empty string, depending on the version of polars.
    is_gap = pl.all().fill_null("") == ""
    frame = frame.filter(~pl.all_horizontal(is_gap))
    has_gap = frame.select(pl.any_horizontal(is_gap.any())).item()
    return None if has_gap or len(frame) != n_lines - has_header else frame


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


def qrels_from_dict(
    mapping: Mapping[str, Mapping[str, float]], *, lenient: bool = False, grades: str = WHOLE_GRADES
) -> Qrels:
    """Make judgments of {query id: {doc id: relevance}}."""
    report = Diagnostics("qrels", lenient=lenient)
    return as_qrels(_rows(mapping, "relevance", report), report, grades)


def _rows(mapping: Mapping[str, Mapping[str, float]], what: str, report: Diagnostics) -> Rows:
    if not isinstance(mapping, Mapping):
        raise WrongTypeError(
            f"{report.source}: expected a dictionary; found {type(mapping).__name__}. "
            "Pass {query id: {doc id: number}}."
        )
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
        return f"[{described(keys[int(np.searchsorted(starts, row, side='right')) - 1])}][{described(docs[row])}]"

    query_texts, bad_queries = id_texts(keys, "query", report, lambda i: f"[{described(keys[i])}]")
    doc_texts, bad = id_texts(docs, "document", report, place)
    numbers, bad_numbers = numbers_of(values, what, report, place)
    bad = bad | bad_numbers | np.repeat(bad_queries, sizes)
    query = [text for text, size in zip(query_texts, sizes, strict=True) for _ in range(size)]
    return rows_of(query, doc_texts, numbers, bad, report, place)
