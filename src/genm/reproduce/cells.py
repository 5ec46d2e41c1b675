"""Tables as data: cells with a meaning, written out as text, Markdown or comma-separated values."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, and how it is meant."""

    text: str
    strong: bool = False
    """The best of its row, or whatever the table's notes say that bold means."""
    number: bool = False
    """Set to the right, so that digits stand below digits."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title, and notes that say how to read it."""

    key: str
    """What its files are called: lower-case letters, digits and hyphens."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """Return the table as a section of a Markdown page."""
        numeric = [all(row[c].number for row in self.rows) for c in range(len(self.columns))]
        lines = [f"### {self.title}", "", _markdown_row(self.columns)]
        lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
        lines += [_markdown_row(_marked(row)) for row in self.rows]
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the bare cells, comma-separated, the columns' names first; title and notes are left out."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell.text for cell in row] for row in self.rows)
        return buffer.getvalue()

    def to_json(self) -> dict[str, object]:
        """Return the table as plain data."""
        return {
            "key": self.key,
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[cell.text for cell in row] for row in self.rows],
            "notes": list(self.notes),
        }


def words(*texts: str) -> tuple[Cell, ...]:
    """Return cells of words."""
    return tuple(Cell(text) for text in texts)


def figures(values: Iterable[float | None], form: str = ".4f", *, strong: Sequence[int] = ()) -> tuple[Cell, ...]:
    """Return cells of numbers, None as an empty cell; `strong` are the positions of those to stand out."""
    return tuple(
        Cell("" if value is None else format(value, form), strong=at in strong, number=True)
        for at, value in enumerate(values)
    )


def _marked(row: Sequence[Cell]) -> list[str]:
    return [f"**{cell.text}**" if cell.strong and cell.text else cell.text for cell in row]


def _markdown_row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
