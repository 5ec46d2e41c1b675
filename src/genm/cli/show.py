"""What a person sees: tables, notes and progress bars. Results go to stdout, all else to stderr."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from genm.progress import Progress, silent

if TYPE_CHECKING:
    from genm.records import Note


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    tsv = "tsv"
    json = "json"


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are, ids included: no markup, no wrapping."""
    sys.stdout.writelines(line + "\n" for line in lines)


def print_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, best: Sequence[int] = (), left: int = 1
) -> None:
    """Print a table; the first `left` columns are text, the rest numbers.

    `best` holds, for each number column, the row to set in bold, or -1. Cells are text, never markup.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title) if title else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    for i, name in enumerate(header):
        # ids and names may fold, numbers never
        table.add_column(Text(name), justify="left" if i < left else "right", overflow="fold", no_wrap=i >= left)
    for r, row in enumerate(rows):
        cells = [
            Text(cell, style="bold" if i >= left and i - left < len(best) and best[i - left] == r else "")
            for i, cell in enumerate(row)
        ]
        table.add_row(*cells)
    Console(file=sys.stdout, soft_wrap=False).print(table)


def say(text: str) -> None:
    """Tell the user something that is not the result: a line on standard error."""
    sys.stderr.write(text + "\n")


def say_notes(notes: Iterable["Note"]) -> None:
    """Tell what readers and aligners saw or repaired."""
    for note in notes:
        say(f"note: {note.text}")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Give a progress callable that draws bars on a terminal and nothing in a pipe."""
    if not sys.stderr.isatty():
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
    with Bars(*columns, console=Console(file=sys.stderr), transient=True) as bars:
        tasks: dict[str, Any] = {}
        last: dict[str, float] = {}

        def show(task: str, done: int, total: int, /) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total or None)
            now = time.monotonic()
            if done >= total > 0 or now - last.get(task, 0.0) > 0.1:
                last[task] = now
                bars.update(tasks[task], completed=done, total=total or None)
            if done >= total > 0:
                bars.remove_task(tasks.pop(task))

        yield show
