"""Printing: results go to standard output, everything else to standard error; ids are never read as markup.

A table that is too wide for the terminal continues below with its remaining columns; ids and numbers are never
truncated, because a truncated number is a wrong one.
"""

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.compilation import announce_compilation
from genm.formatting import plain, plain_json
from genm.progress import Progress, silent, terminal_bars

if TYPE_CHECKING:
    from genm.records import Note

_GAP = "  "
_LEAST_TEXT = 24


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
    bold: frozenset[tuple[int, int]] = frozenset(),
    width: int | None = None,
    rule: str = "-",
) -> Iterator[str]:
    """Yield the lines of a table; the first `left` columns are text, the rest numbers.

    `bold` holds (row, column) of cells to set in bold by terminal codes; `width` is the width of the terminal, None
    for no limit.
    """
    cells = [tuple(row) for row in rows]
    sizes = [max(map(_size, column)) for column in zip(header, *cells, strict=True)]
    if width is not None and left == len(header):
        header, cells, sizes = _folded(header, cells, sizes, width)
    for number, block in enumerate(_blocks(sizes, left, width)):
        if number:
            yield ""
        yield _line([_padded(header[c], sizes[c], c < left) for c in block])
        yield _line([rule * sizes[c] for c in block])
        for r, row in enumerate(cells):
            padded = [_padded(row[c], sizes[c], c < left) for c in block]
            yield _line(
                [_emphasised(cell) if (r, c) in bold else cell for c, cell in zip(block, padded, strict=True)]
            )


def _size(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # knows the letters that take two columns or none

    return cell_len(text)


def _padded(text: str, size: int, to_the_left: bool) -> str:
    space = " " * (size - _size(text))
    return text + space if to_the_left else space + text


def _emphasised(cell: str) -> str:
    text = cell.strip()
    return cell.replace(text, f"\x1b[1m{text}\x1b[22m") if text else cell


def _line(cells: Sequence[str]) -> str:
    return _GAP.join(cells).rstrip()


def _blocks(sizes: Sequence[int], left: int, width: int | None) -> list[list[int]]:
    """Return which columns stand side by side; the columns of text are repeated in each block."""
    text = list(range(left))
    blocks = [text]
    for column in range(left, len(sizes)):
        wider = [*blocks[-1], column]
        needed = sum(sizes[c] for c in wider) + len(_GAP) * (len(wider) - 1)
        if width is not None and needed > width and len(blocks[-1]) > left:
            blocks.append([*text, column])
        else:
            blocks[-1] = wider
    return blocks


def _folded(
    header: Sequence[str], rows: list[tuple[str, ...]], sizes: list[int], width: int
) -> tuple[Sequence[str], list[tuple[str, ...]], list[int]]:
    """Wrap the last column of a table of text to the width that the others leave."""
    available = max(width - sum(sizes[:-1]) - len(_GAP) * (len(sizes) - 1), _LEAST_TEXT)
    if sizes[-1] <= available:
        return header, rows, sizes
    folded = []
    for row in rows:
        lines = textwrap.wrap(row[-1], available, break_long_words=False) or [""]
        folded.append((*row[:-1], lines[0]))
        folded += [(*("" for _ in row[:-1]), line) for line in lines[1:]]
    return header, folded, [*sizes[:-1], max(_size(row[-1]) for row in folded)]


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    tsv = "tsv"
    json = "json"


Output = Annotated[Format, typer.Option("--format", help="How to print: table, tsv or json.", metavar="FORMAT")]


def show(
    output: Format,
    *,
    json: Callable[[], Any],
    tsv: Callable[[], Iterable[Sequence[str]]],
    table: Callable[[], None],
) -> None:
    """Print a result in the format asked for: one JSON document, tab-separated rows, or tables for people."""
    if output is Format.json:
        print_json(json())
    elif output is Format.tsv:
        print_tsv(tsv())
    else:
        table()


def print_json(value: Any) -> None:
    """Print one JSON document; a number that is not finite is null."""
    text = plain_json(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))
    print_lines(text.split("\n"))  # line by line: an unbuffered stream drops the rest of a partial write


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_tsv(rows: Iterable[Sequence[str]]) -> None:
    """Print rows of cells with tabs between them; a tab inside a cell is written as \\t."""
    sys.stdout.writelines("\t".join(map(plain, row)) + "\n" for row in rows)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are: no markup, no wrapping."""
    sys.stdout.writelines(line + "\n" for line in lines)


def print_text(text: str) -> None:
    """Print a sentence and an empty line; on a terminal it is wrapped between words."""
    width = shutil.get_terminal_size().columns
    print_lines([textwrap.fill(plain(text), width) if sys.stdout.isatty() else plain(text), ""])


def print_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, best: Sequence[int] = (), left: int = 1
) -> None:
    """Print a table and an empty line; the first `left` columns are text, the rest numbers.

    `best` holds, for each number column, the best row: its number, and what equals it, is bold on a terminal.
    """
    cells = [tuple(map(plain, row)) for row in rows]
    on_terminal = sys.stdout.isatty()
    styled = on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = table_lines(
        [plain(name) for name in header],
        cells,
        left=left,
        bold=_best_cells(cells, best, left) if styled else frozenset(),
        width=shutil.get_terminal_size().columns if on_terminal else None,
        rule="─" if can_print("─") else "-",
    )
    print_lines([*([title, ""] if title else []), *lines, ""])


def _best_cells(cells: Sequence[Sequence[str]], best: Sequence[int], left: int) -> frozenset[tuple[int, int]]:
    columns = enumerate(best, left)
    return frozenset((r, c) for c, top in columns for r, row in enumerate(cells) if row[c] == cells[top][c])


def can_print(letters: str) -> bool:
    """Whether the encoding of standard output has these letters."""
    try:
        letters.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def weight_text(weight: float) -> str:
    """Return a weight with four decimals; a small weight never looks like 0, unless it is rounding error."""
    return f"{weight:.4f}" if abs(weight) < 1e-12 or abs(weight) >= 0.00005 else f"{weight:.0e}"


def say(text: str) -> None:
    """Print one line that is not the result on standard error; control characters are escaped."""
    sys.stderr.write(plain(text) + "\n")


def say_notes(notes: Iterable["Note"]) -> None:
    """Print the notes of readers and aligners, each text once."""
    for text in dict.fromkeys(note.text for note in notes):
        say(f"note: {text}")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Yield a progress callable that draws bars on a terminal and nothing elsewhere.

    A line says so when kernels are being compiled, on a terminal or not.
    """
    if not sys.stderr.isatty():
        with announce_compilation(say):
            yield silent
        return
    with terminal_bars(sys.stderr) as progress, announce_compilation(say):
        yield progress
