"""Taking a docstring of the scientific Python libraries apart: summary, "See Also", and the rest."""

import inspect
import re
from dataclasses import dataclass

_SIGNATURE = re.compile(r"[A-Za-z_][\w.]*\(.*\)(\s*->.*)?", re.DOTALL)
_UNDERLINE = re.compile(r"[-=]{3,}\s*")
_NAME = r"(?::[\w:]+:)?`{0,2}~?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`{0,2}(?:\(\))?"
_ENTRY = re.compile(rf"{_NAME}(?:\s*,\s*{_NAME})*\s*,?\s*(?::(?:\s.*)?)?")
_SEPARATOR = re.compile(r"\s+:(?=\s|$)|(?<=[\w`)]):(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Docstring:
    """The parts of a docstring."""

    summary: str
    """Its first paragraph, on one line; a signature before it does not count."""
    body: str
    """What remains without the summary and without "See Also"."""
    see_also: tuple[str, ...]
    """The names listed under "See Also", as written there, each once."""


def split_docstring(text: str) -> Docstring:
    """Take a docstring apart by numpydoc's conventions; one that keeps to none of them is all summary and body."""
    lines = inspect.cleandoc(text).splitlines()
    start, summary = 0, ""
    while start < len(lines) and not summary:
        end = next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines))
        paragraph = " ".join(" ".join(lines[start:end]).split())
        if not _SIGNATURE.fullmatch(paragraph):
            summary = paragraph
        start = end + 1
    body: list[str] = []
    listed: list[str] = []
    inside = False
    for n in range(start, len(lines)):
        if _opens_section(lines, n):
            inside = lines[n].strip().rstrip(":").lower() == "see also"
        (listed if inside else body).append(lines[n])
    return Docstring(summary, "\n".join(body).strip(), _names(listed[2:]))


def _opens_section(lines: list[str], n: int) -> bool:
    title = lines[n]
    return (
        bool(title.strip())
        and not title[0].isspace()
        and n + 1 < len(lines)
        and _UNDERLINE.fullmatch(lines[n + 1]) is not None
    )


def _names(lines: list[str]) -> tuple[str, ...]:
    """Return the names of the entries; descriptions are indented, and what is no list of names is prose."""
    names: dict[str, None] = {}
    for line in lines:
        if line[:1].isspace() or not _ENTRY.fullmatch(line.rstrip()):
            continue
        head = _SEPARATOR.split(line, maxsplit=1)[0]
        names.update((found[1], None) for found in re.finditer(_NAME, head))
    return tuple(names)
