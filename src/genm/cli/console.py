"""What a person sees: results on standard output, all else on standard error. Nothing in an id is ever markup."""

import json
import math
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.compiling import telling_of_compiling
from genm.cli.tables import table_lines
from genm.progress import Progress, silent

if TYPE_CHECKING:
    from genm.records import Note

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    tsv = "tsv"
    json = "json"


Output = Annotated[Format, typer.Option("--format", help="How to print: table, tsv or json.", metavar="FORMAT")]


def plain(text: str) -> str:
    """Return text on one line: control characters, tabs among them, are written as Python writes them."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def print_json(value: Any) -> None:
    """Print one JSON document; a number that is not finite is null."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    print_lines(text.split("\n"))  # in pieces: an unbuffered stream drops the rest of a write cut short


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
    """Print a sentence and an empty line; on a terminal it is folded between words."""
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
        rule=_rule(),
    )
    print_lines([*([title, ""] if title else []), *lines, ""])


def _best_cells(cells: Sequence[Sequence[str]], best: Sequence[int], left: int) -> frozenset[tuple[int, int]]:
    columns = enumerate(best, left)
    return frozenset((r, c) for c, top in columns for r, row in enumerate(cells) if row[c] == cells[top][c])


def _rule() -> str:
    try:
        "─".encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "-"
    return "─"


def weight_text(weight: float) -> str:
    """Return a weight with four decimals; one that is small but not 0 never looks like 0."""
    return f"{weight:.4f}" if weight == 0.0 or abs(weight) >= 0.00005 else f"{weight:.0e}"


def say(text: str) -> None:
    """Tell the user something that is not the result: one line on standard error, whatever it quotes."""
    sys.stderr.write(plain(text) + "\n")


def say_notes(notes: Iterable["Note"]) -> None:
    """Tell what readers and aligners saw or repaired; what several say in the same words is said once."""
    for text in dict.fromkeys(note.text for note in notes):
        say(f"note: {text}")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Give a progress callable that draws bars on a terminal and nothing in a pipe.

    If the wait is for the compiler, a line says so, on a terminal or not.
    """
    if not sys.stderr.isatty():
        with telling_of_compiling(say):
            yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Bars are drawn on standard error only: what a verb prints meanwhile must not pass through their console.
    console = Console(file=sys.stderr)
    with Bars(*columns, console=console, transient=True, redirect_stdout=False) as bars, telling_of_compiling(say):
        tasks: dict[str, Any] = {}
        last: dict[str, float] = {}

        def show(task: str, done: int, total: int, /) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(plain(task), total=total or None)
            now = time.monotonic()
            if done >= total > 0 or now - last.get(task, 0.0) > 0.1:
                last[task] = now
                bars.update(tasks[task], completed=done, total=total or None)
            if done >= total > 0:
                bars.remove_task(tasks.pop(task))

        yield show
