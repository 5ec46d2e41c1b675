"""How long work reports its progress: a callable passed down. `bars` gives one that draws.

    from genm.progress import bars

    with bars() as progress:
        held_out = cross_validate(aligned, AutoFuser, "AP", progress=progress)

Library code never draws by itself: `silent` is the default everywhere.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from genm.formatting import plain

_INTERVAL = 0.1
"""Seconds between two drawings of the same bar."""


class Progress(Protocol):
    """Called as `progress(task, done, total)`; `total` 0 means unknown; done == total closes the task."""

    def __call__(self, task: str, done: int, total: int, /) -> None:
        """Report that `done` of `total` steps of `task` are finished."""


def silent(task: str, done: int, total: int, /) -> None:
    """Show nothing: the default."""


@contextmanager
def bars() -> Iterator[Progress]:
    """Draw a bar for each task while it runs: in a notebook below the cell, on a terminal on standard error.

    Where there is neither, as in a pipe or a scheduled job, nothing is drawn. Bars disappear when their task ends.
    """
    if _is_notebook():
        with _notebook_bars() as progress:
            yield progress
    elif sys.stderr.isatty():
        with terminal_bars(sys.stderr) as progress:
            yield progress
    else:
        yield silent


@contextmanager
def terminal_bars(file: TextIO) -> Iterator[Progress]:
    """Draw bars on a terminal; what is printed meanwhile to other streams does not pass through them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(file=file), transient=True, redirect_stdout=False) as drawn:
        tasks: dict[str, Any] = {}
        last: dict[str, float] = {}

        def show(task: str, done: int, total: int, /) -> None:
            if task not in tasks:
                tasks[task] = drawn.add_task(plain(task), total=total or None)
            now = time.monotonic()
            if done >= total > 0 or now - last.get(task, 0.0) > _INTERVAL:
                last[task] = now
                drawn.update(tasks[task], completed=done, total=total or None)
            if done >= total > 0:
                drawn.remove_task(tasks.pop(task))

        yield show


def _is_notebook() -> bool:
    """Return whether this runs in a notebook: a terminal's IPython has no kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _notebook_bars() -> Iterator[Progress]:
    """Draw bars as HTML in one place of the cell's output, which needs no widgets."""
    from IPython.display import display

    from genm.templating import render

    def content(running: dict[str, tuple[int, int]]) -> dict[str, str]:
        return {"text/html": str(render("progress.html.j2", tasks=running)), "text/plain": ""}

    running: dict[str, tuple[int, int]] = {}
    place = display(content(running), raw=True, display_id=True)
    last = 0.0

    def show(task: str, done: int, total: int, /) -> None:
        nonlocal last
        running[task] = (done, total)
        ended = done >= total > 0
        if ended:
            del running[task]
        if ended or time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            place.update(content(running), raw=True)

    try:
        yield show
    finally:
        place.update(content({}), raw=True)
