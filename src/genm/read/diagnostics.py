"""Faults that readers find: an error, or in lenient reading a repair that is counted and reported."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from genm.errors import FormatError
from genm.records import Note

Place = int | str | None
"""A line number, words for a place that has none, or None for the whole source."""

LazyPlace = Place | Callable[[], Place]
LazyText = str | Callable[[], str]

SHOWN = 60
"""How many characters of an input a message shows."""


def shown(found: object) -> str:
    """Return a part of an input, made printable and short enough for a message."""
    if isinstance(found, bytes):
        size, unit = len(found), "bytes"
        text = found[: 4 * SHOWN].decode("utf-8", "backslashreplace")
    else:
        text = found if isinstance(found, str) else described(found)
        size, unit = len(text), "characters"
    cut = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:SHOWN])
    if size > SHOWN and len(text) > SHOWN:
        return f'"{cut}..." ({size:,} {unit})'
    return f'"{cut}"' if isinstance(found, bytes | str) else cut


def described(value: object) -> str:
    """Return a value as Python writes it."""
    try:
        return repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return f"a value of type {type(value).__name__} that cannot be written out"


class Diagnostics:
    """Collects the notes about one source; in strict reading a fault raises FormatError."""

    def __init__(self, source: str, *, lenient: bool) -> None:
        self.source, self.lenient = source, lenient
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}

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
        """Raise, or count `count` repairs of the kind `code`, of which the first is at `line`.

        `line` and `found` may be functions, called only if they are needed. `repair` says what was done.
        """
        if not self.lenient:
            place, thing = line() if callable(line) else line, found() if callable(found) else found
            if isinstance(place, str):
                raise FormatError(f"{self.source}, {place}", None, expected, thing, advice)
            raise FormatError(self.source, place, expected, thing, advice)
        self.say(
            code,
            count,
            lambda: f"expected {expected}, found {found() if callable(found) else found}: {repair}",
            line=line,
        )

    def fail(self, line: int | None, *, expected: str, found: str, advice: str) -> FormatError:
        """Return the error for a fault that lenient reading cannot repair."""
        return FormatError(self.source, line, expected, found, advice)

    def say(self, code: str, count: int, text: LazyText, *, line: LazyPlace = None) -> None:
        """Add a note that is no error; the first text of each kind is kept."""
        self._counts[code] = self._counts.get(code, 0) + count
        if code not in self._texts:
            place, words = line() if callable(line) else line, text() if callable(text) else text
            if isinstance(place, str):
                self._texts[code] = f"{self.source}, {place}: {words}"
            else:
                self._texts[code] = f"{self.source}{'' if place is None else f':{place}'}: {words}"

    def state(self) -> dict[str, tuple[int, str]]:
        """Return the count and the first text of each kind of note, to go on with later."""
        return {code: (count, self._texts[code]) for code, count in self._counts.items()}

    def restore(self, state: Mapping[str, Sequence[Any]]) -> None:
        """Go on from what `state` returned."""
        self._counts = {code: int(count) for code, (count, _) in state.items()}
        self._texts = {code: str(text) for code, (_, text) in state.items()}

    @property
    def notes(self) -> tuple[Note, ...]:
        """All notes so far, one per kind."""
        return tuple(
            Note(code, count, self._texts[code] + (f" ({count:,} times; this is the first)" if count > 1 else ""))
            for code, count in self._counts.items()
        )
