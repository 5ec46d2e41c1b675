"""The format of the SMART system's files: records opened by `.I`, fields opened by a dot and a capital letter."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from genm.errors import FormatError
from genm.records import Note

_RECORD = re.compile(r"\.I\s+(\d+)\s*")
_FIELD = re.compile(r"\.([A-HJ-Z])\s*")

NOT_TEXT = frozenset("NX")
"""Fields that hold no text of a document or query: entry stamps or the asker's name (N), citation links (X)."""

Column = Literal["query", "doc", "code", "constant"]


@dataclass(frozen=True, slots=True)
class SmartRecord:
    """One document or query: its number, and its fields with the blanks evened out."""

    number: int
    fields: dict[str, str]

    def text(self, wanted: Sequence[str]) -> str:
        """Return the wanted fields' texts, those that are there, in the order asked for."""
        return " ".join(t for letter in wanted if (t := self.fields.get(letter)))


@dataclass(frozen=True, slots=True)
class Judgment:
    """A line of a judgment file; `code` is 1 where the file has no column that means anything."""

    query: int
    doc: int
    code: int


def read_text(path: Path) -> list[str]:
    """Return the lines of a file; Windows line ends, a byte-order mark and a final Ctrl-Z are taken off."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"the byte {raw[error.start]:#04x}"
        raise FormatError(str(path), line, "UTF-8 text", found, "Convert the file to UTF-8.") from None
    return text.replace("\r\n", "\n").rstrip("\x1a").split("\n")


def read_records(path: Path, *, last_field: str | None = None) -> tuple[list[SmartRecord], list[Note]]:
    """Return the records of a SMART file in their order, and notes about what was put right.

    A field that occurs several times is joined. `last_field` names the field that closes a record in this file:
    a mark after it is a slip of the typist, and what follows belongs to that field's text.
    """
    records: list[tuple[int, dict[str, list[str]]]] = []
    field: str | None = None
    strays: list[int] = []
    for n, line in enumerate(read_text(path), 1):
        marked = line.startswith(".")
        if marked and (opened := _RECORD.fullmatch(line)):
            records.append((int(opened[1]), {}))
            field = None
        elif marked and records and (mark := _FIELD.fullmatch(line)):
            if field is not None and field == last_field:
                strays.append(records[-1][0])
            else:
                field = mark[1]
                records[-1][1].setdefault(field, [])
        elif field is not None:
            records[-1][1][field].append(line)
        elif line.strip():
            expected = "a field mark such as .W" if records else "a record mark such as .I 1"
            raise FormatError(str(path), n, expected, repr(line[:40]), "Is this a SMART file?")
    notes = []
    if strays:
        listed = ", ".join(map(str, dict.fromkeys(strays)))
        text = f"{path.name}: field marks inside the text of records {listed} were left out, the text kept"
        notes.append(Note("stray-field-mark", len(strays), text))
    if records and records[-1][0] == 0 and not any("".join(t).strip() for t in records[-1][1].values()):
        records.pop()
        notes.append(Note("empty-last-record", 1, f"{path.name}: the empty record .I 0 at the end was left out"))
    _check_numbers(path, [number for number, _ in records])
    return [SmartRecord(n, {f: _even("\n".join(t)) for f, t in fields.items()}) for n, fields in records], notes


def read_judgments(path: Path, columns: Sequence[Column]) -> list[Judgment]:
    """Return the judgments of a file whose columns, split at blanks and tabs, are as named."""
    judgments = []
    for n, line in enumerate(read_text(path), 1):
        cells = line.split()
        if not cells:
            continue
        by_name = dict(zip(columns, cells, strict=False))
        try:
            if len(cells) != len(columns):
                raise ValueError
            judgments.append(Judgment(int(by_name["query"]), int(by_name["doc"]), int(by_name.get("code", "1"))))
        except ValueError:
            expected = f"{len(columns)} columns of numbers ({', '.join(columns)})"
            raise FormatError(str(path), n, expected, repr(line[:60]), "Is this the right file?") from None
    return judgments


def fingerprint(docs: Sequence[SmartRecord], queries: Sequence[SmartRecord], judged: Sequence[Judgment]) -> str:
    """Return a hash of what was parsed: it does not see line ends, blanks, file names or the order of judgments."""
    digest = sha256()
    for kind, records in (("doc", docs), ("query", queries)):
        for record in records:
            digest.update(f"{kind} {record.number}\n".encode())
            for letter in sorted(record.fields.keys() - NOT_TEXT):
                digest.update(f".{letter} {record.fields[letter]}\n".encode())
    for j in sorted(judged, key=lambda j: (j.query, j.doc, j.code)):
        digest.update(f"judged {j.query} {j.doc} {j.code}\n".encode())
    return digest.hexdigest()


def _even(text: str) -> str:
    return " ".join(text.split())


def _check_numbers(path: Path, numbers: Sequence[int]) -> None:
    if not numbers:
        raise FormatError(str(path), None, "records opened by .I", "none", "Is this a SMART file?")
    for before, number in itertools.pairwise(numbers):
        if number <= before:
            found = f".I {number} after .I {before}"
            raise FormatError(str(path), None, "ascending record numbers", found, "Is the file damaged?")
