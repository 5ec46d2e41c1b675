"""Small pieces of HTML: tables, facts, bars and the way numbers are written.

Cells are HTML: foreign text goes in through `isolated` or `escape`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from genm.report import words
from genm.report.html import escape

MINUS = "\u2212"
_HYPHEN = re.compile(r"(?<![\w.])-(?=\d)")


def with_minus(text: str) -> str:
    """Return a text with real minus signs before its numbers."""
    return _HYPHEN.sub(MINUS, text)


def decimals(value: float | None, places: int = 4) -> str:
    """Write a number with a fixed number of places; one that does not exist is a dash."""
    return words.NONE if value is None else with_minus(f"{value:.{places}f}")


def signed(value: float | None, places: int = 4) -> str:
    """Write a difference, always with its sign."""
    return with_minus(words.signed(value, places))


def between(low: float | None, high: float | None, places: int = 4) -> str:
    """Write an interval of differences."""
    return with_minus(words.between(low, high, places))


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: frozenset[int] | set[int] = frozenset(),
    marked: Mapping[int, str] | None = None,
    identity: str = "",
) -> str:
    """Return a table whose first cell of each row is its header; `numbers` are columns that align to the right.

    A column without a name has no header cell, which would be read out. `marked` gives rows a class. The box
    scrolls sideways when the table is wider than the page.
    """

    def kind(column: int) -> str:
        return ' class="number"' if column in numbers else ""

    parts = [f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(_plain(caption))}">']
    parts.append(f"<table{_attribute('id', identity)}><caption><span>{caption}</span></caption><thead><tr>")
    parts += [
        f'<th scope="col"{kind(i)}>{cell}</th>' if cell else f"<td{kind(i)}></td>" for i, cell in enumerate(head)
    ]
    parts.append("</tr></thead><tbody>")
    for number, row in enumerate(rows):
        parts.append(f"<tr{_attribute('class', (marked or {}).get(number, ''))}>")
        parts += [
            f'<th scope="row"{kind(i)}>{cell}</th>' if i == 0 else f"<td{kind(i)}>{cell}</td>"
            for i, cell in enumerate(row)
        ]
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    return "".join(parts)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of names with what they stand for."""
    return '<dl class="facts">' + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs) + "</dl>"


def folded(summary: str, inside: str) -> str:
    """Return a part that opens on demand, and by itself on paper."""
    return f'<details class="numbers"><summary>{summary}</summary>{inside}</details>'


def bar(parts: Sequence[tuple[str, float]], total: float) -> str:
    """Return a bar of pieces next to each other, each with its class; the numbers stand beside it as text."""
    x, shapes = 0.0, []
    for name, size in parts:
        width = 100.0 * max(size, 0.0) / total if total > 0 else 0.0
        shapes.append(f'<rect class="{name}" x="{x:.2f}" width="{width:.2f}" height="8"/>')
        x += width
    drawn = "".join(shapes)
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""


def _plain(caption: str) -> str:
    """Return a caption's first sentence without its markup, to name the box around the table."""
    return caption.partition(". ")[0].partition("<")[0].strip().rstrip(".")
