"""The bars of speed: every benchmark holds its figures to some, and a run ends with one table of them all.

A figure is a ratio to something measured in the same run, or seconds. `hold` prints it with its bar at once;
`print_table` prints all that were held since the program began. A bar that this machine cannot show is listed
with what it needs.
"""

import os
from dataclasses import dataclass

WIDTHS = (58, 10, 10, 6)


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


HELD: list[Bar] = []


def hold(
    what: str, figure: float | None, bar: float, *, unit: str = "x", at_least: bool = False, note: str = ""
) -> None:
    """Print a figure with its bar, and keep it for the table."""
    found = Bar(what, figure, bar, unit, at_least, note)
    HELD.append(found)
    print(f"bar: {found.line()}", flush=True)


def print_table() -> None:
    """Print all bars that were held, and how busy the machine was."""
    if not HELD:
        return
    heads = ("what", "today", "bar", "")
    print("== all bars")
    print("  ".join(head.ljust(width) for head, width in zip(heads, WIDTHS, strict=True)).rstrip())
    for found in HELD:
        print(found.line())
    met = sum(found.verdict == "pass" for found in HELD)
    measured = sum(found.figure is not None for found in HELD)
    load = f"; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    print(f"{met} of {measured} measured bars met, {len(HELD) - measured} not measured here{load}")
