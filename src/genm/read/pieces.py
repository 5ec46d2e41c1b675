"""Read runs and judgments that do not fit into memory: one piece of the rows at a time.

TREC files, plain or packed, are read in pieces of whole lines by the parser of `genm.read.trec`, Parquet files in
batches of rows. Other formats are read whole.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genm.errors import FormatError, MissingExtraError
from genm.ids import Ids, intern
from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, LazyPlace, LazyText, Place, shown
from genm.read.readers import found_format, source_rows
from genm.read.rows import Rows, segments
from genm.read.sources import (
    PIECES,
    TextSource,
    as_utf8,
    check_unpacked,
    open_source,
    packing_of,
    unpack,
)
from genm.read.tables import chosen_columns, frame_rows
from genm.read.trec import Shape, read_rows

PIECE = 32 * 2**20
"""Bytes of text at a time."""
_BATCH = 1 << 19
_BLOCK = 1 << 20


class PieceDiagnostics(Diagnostics):
    """Diagnostics of a source that is read in pieces: lines are counted from the beginning of the source."""

    def __init__(self, source: str, *, lenient: bool) -> None:
        super().__init__(source, lenient=lenient)
        self.n_before = 0
        """How many lines, or rows of a table, come before the piece that is read."""

    def fault(
        self,
        code: str,
        *,
        line: LazyPlace,
        expected: str,
        found: LazyText,
        advice: str,
        repair: str,
        count: int = 1,
    ) -> None:
        """Raise, or count repairs; a piece without rows is no fault."""
        if code == "empty":
            return
        if not self.lenient:
            line = partial(self._moved, line)  # a repair is moved by `say`
        super().fault(code, line=line, expected=expected, found=found, advice=advice, repair=repair, count=count)

    def fail(self, line: int | None, *, expected: str, found: str, advice: str) -> FormatError:
        """Return the error for a fault that lenient reading cannot repair."""
        moved = None if line is None else line + self.n_before
        return super().fail(moved, expected=expected, found=found, advice=advice)

    def say(self, code: str, count: int, text: LazyText, *, line: LazyPlace = None) -> None:
        """Add a note that is no error."""
        super().say(code, count, text, line=partial(self._moved, line))

    def _moved(self, line: LazyPlace) -> Place:
        place = line() if callable(line) else line
        return place + self.n_before if isinstance(place, int) else place


def read_pieces(
    path: str | os.PathLike[str],
    shape: Shape,
    report: PieceDiagnostics,
    *,
    piece: int = PIECE,
    progress: Progress = silent,
) -> Iterator[Rows]:
    """Yield the rows of a file, piece by piece, in its order; rows know their line in the whole file.

    Ids have codes of their own in each piece. A file without rows is a fault, as in `read_run`.
    """
    n_rows = 0
    for rows in _all_pieces(Path(path), shape, report, piece, progress):
        n_rows += len(rows.doc)
        yield rows
    if not n_rows:
        report.n_before = 0
        Diagnostics.fault(
            report, "empty", line=None, expected=f"lines of {shape.columns}", found="no such line",
            advice=f"A line looks like this: {shape.example}", repair="read as empty",
        )  # fmt: skip


def _all_pieces(
    path: Path, shape: Shape, report: PieceDiagnostics, piece: int, progress: Progress
) -> Iterator[Rows]:
    try:
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            head = file.read(16)
            file.seek(0)
            packing = packing_of(head, report)
            texts = _texts(file, packing, before.st_size, report, piece, progress)
            first = next(texts, np.zeros(0, np.uint8))
            form = found_format(TextSource(report.source, first), shape)
            if form == "trec":
                yield from _trec(first, texts, shape, report)
                after = os.fstat(file.fileno())
                if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                    raise report.fail(
                        None, expected="a readable file",
                        found=f"one that changed meanwhile, from {before.st_size:,} to {after.st_size:,} bytes",
                        advice="Wait until the program that writes it has finished, then try again.",
                    )  # fmt: skip
                return
    except OSError as error:
        raise report.fail(
            None, expected="a readable file", found=f"{(error.strerror or str(error)).lower()}",
            advice="Check the path, its permissions and the disk.",
        ) from None  # fmt: skip
    if form == "parquet" and packing is None:
        yield from _parquet(path, shape, report, progress)
    else:
        yield source_rows(open_source(path, report, progress), form, shape, report, progress)


def _texts(
    file: IO[bytes], packing: str | None, size: int, report: PieceDiagnostics, piece: int, progress: Progress
) -> Iterator[NDArray[np.uint8]]:
    """Yield the text in pieces that end at line ends, but for the last."""
    rest, n_unpacked, first = bytearray(), 0, True
    step = PIECES[packing] if packing else min(_BLOCK, piece)
    for content in _unpacked(file, packing, step, size, report, progress):
        if content is None:  # damaged: lenient reading keeps whole lines
            del rest[rest.rfind(10) + 1 :]
            break
        rest += content
        n_unpacked += len(content)
        if packing:
            check_unpacked(n_unpacked, size, f"{packing} data", report)
        if len(rest) >= piece and (end := rest.rfind(10) + 1):
            text = np.frombuffer(bytes(rest[:end]), np.uint8).copy()
            yield as_utf8(text, report) if first else text
            del rest[:end]
            first = False
    if rest:
        text = np.frombuffer(bytes(rest), np.uint8).copy()
        yield as_utf8(text, report) if first else text


def _unpacked(
    file: IO[bytes], packing: str | None, step: int, size: int, report: PieceDiagnostics, progress: Progress
) -> Iterator[bytes | None]:
    """Yield the text as it comes; None after damage that lenient reading accepts."""

    def stored() -> Iterator[bytes]:
        while content := file.read(step):
            yield content
            progress(f"reading {report.source}", min(file.tell(), size), size)

    if packing is None:
        yield from stored()
    else:
        yield from unpack(stored(), packing, report, lambda: "the whole lines before it were kept")


def _trec(
    first: NDArray[np.uint8], texts: Iterator[NDArray[np.uint8]], shape: Shape, report: PieceDiagnostics
) -> Iterator[Rows]:
    text: NDArray[np.uint8] | None = first
    while text is not None:
        rows = read_rows(TextSource(report.source, text), shape, report, silent)
        yield _moved(rows, report.n_before)
        report.n_before += int(np.count_nonzero(text == 10))
        text = next(texts, None)


def _moved(rows: Rows, n_before: int) -> Rows:
    """Return the rows with places in the whole file instead of the piece."""
    own = rows.place

    def place(row: int) -> Place:
        line = own(row)
        return line + n_before if isinstance(line, int) else line

    return replace(rows, place=place)


def _parquet(path: Path, shape: Shape, report: PieceDiagnostics, progress: Progress) -> Iterator[Rows]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError(f"{path}: a Parquet file in pieces", "scale") from None
    try:
        with parquet.ParquetFile(path) as file:
            columns = chosen_columns(file.schema_arrow.names, shape.value, report, None)
            total, n_before = file.metadata.num_rows, 0
            for batch in file.iter_batches(_BATCH, columns=list(columns)):
                rows = _batch_rows(pa, batch, columns, shape, report, n_before)
                n_before += len(batch)
                progress(f"reading {report.source}", n_before, total)
                yield rows
    except pa.ArrowException as error:
        raise report.fail(
            None, expected="a Parquet file", found=f"one that cannot be read ({shown(str(error))})",
            advice="Write or fetch it again.",
        ) from None  # fmt: skip


def _batch_rows(
    pa: Any, batch: Any, columns: tuple[str, str, str], shape: Shape, report: PieceDiagnostics, n_before: int
) -> Rows:
    """Return the rows of a batch: at once where all cells are plain text and finite numbers, else cell by cell."""

    def place(row: int) -> str:
        return f"row {n_before + row} (from 0)"

    query, doc, value = (batch.column(batch.schema.get_field_index(name)) for name in columns)
    is_plain = not (query.null_count or doc.null_count or value.null_count) and len(batch) > 0
    if is_plain and pa.types.is_floating(value.type):
        scores = np.array(value.to_numpy(zero_copy_only=False), np.float64)
        queries, docs = _encoded(pa, query), _encoded(pa, doc)
        if queries is not None and docs is not None and np.isfinite(scores).all():
            return Rows(queries[0], docs[0], *segments(queries[1]), docs[1], scores, place)
    import polars as pl

    return frame_rows(pl.from_arrow(pa.Table.from_batches([batch])), shape.value, report, place)


def _encoded(pa: Any, column: Any) -> tuple[Ids, NDArray[np.int32]] | None:
    """Return the ids of a column and each row's code; None where they are not plain text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    _, starts, text = column.buffers()
    width = np.int32 if pa.types.is_string(column.type) else np.int64
    begins = np.frombuffer(starts, width)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.array(np.frombuffer(text, np.uint8)) if text is not None else np.zeros(0, np.uint8)
    lengths = np.diff(begins).astype(np.int32)
    ids, codes = intern(content, begins[:-1], lengths)
    odd = (ids.text < 32) & ((ids.text < 9) | (ids.text > 13))
    return None if not lengths.all() or odd.any() else (ids, codes)
