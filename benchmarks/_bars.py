"""The bars of speed: every benchmark holds its figures to some, and a run ends with one table of them all.

A figure is a ratio to something measured in the same run, or seconds. `hold` prints it with its bar at once, and
keeps it in the file that the environment names, from which `python -m benchmarks` makes the table. A bar that this
machine cannot show is listed with what it needs.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

WIDTHS = (58, 10, 10, 6)
KEPT_IN = "GENM_BARS"
"""The environment variable with the file that bars are kept in, a line of JSON each."""


@dataclass(frozen=True)
class Bar:
    """One figure and what it is held to."""

    what: str
    figure: float | None
    """None: it could not be measured here."""
    bar: float
    unit: str
    at_least: bool
    note: str

    @property
    def verdict(self) -> str:
        """Whether the bar is met."""
        if self.figure is None:
            return "-"
        met = self.figure >= self.bar if self.at_least else self.figure <= self.bar
        return "pass" if met else "FAIL"

    def line(self) -> str:
        """Return a row of the table."""
        figure = "-" if self.figure is None else f"{self.figure:.2f} {self.unit}"
        bound = f"{'>=' if self.at_least else '<='} {self.bar:g} {self.unit}"
        cells = (self.what, figure, bound, self.verdict)
        row = "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
        return f"{row}  {self.note}".rstrip()


def hold(
    what: str, figure: float | None, bar: float, *, unit: str = "x", at_least: bool = False, note: str = ""
) -> None:
    """Print a figure with its bar, and keep it for the table if there will be one."""
    found = Bar(what, figure, bar, unit, at_least, note)
    print(f"bar: {found.line()}", flush=True)
    if kept := os.environ.get(KEPT_IN):
        with Path(kept).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")


def read(kept: Path) -> list[Bar]:
    """Return the bars that were kept in a file; none if no benchmark held any."""
    if not kept.is_file():
        return []
    return [Bar(**json.loads(line)) for line in kept.read_text("utf-8").splitlines()]


def print_table(held: Sequence[Bar]) -> None:
    """Print the bars, and how busy the machine was."""
    if not held:
        return
    heads = ("what", "today", "bar", "")
    print("== all bars")
    print("  ".join(head.ljust(width) for head, width in zip(heads, WIDTHS, strict=True)).rstrip())
    for found in held:
        print(found.line())
    met = sum(found.verdict == "pass" for found in held)
    measured = sum(found.figure is not None for found in held)
    load = f"; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    print(f"{met} of {measured} measured bars met, {len(held) - measured} not measured here{load}")
