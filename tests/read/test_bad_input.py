"""The table of bad input in docs/formats.md, row by row: what strict reading says and what lenient reading does."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from read.bad_cases import CASES, Case

from genm.errors import FormatError
from genm.records import Note

DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


@dataclass(frozen=True)
class Row:
    case: str
    strict: str
    lenient: str


def table() -> list[Row]:
    text = DOCS.read_text().split("<!-- bad input: begin -->")[1].split("<!-- bad input: end -->")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [Row(case, strict, lenient) for case, _, strict, lenient in cells]


def test_the_table_and_the_cases_are_the_same() -> None:
    names = [row.case for row in table()]
    assert len(set(names)) == len(names)
    assert set(names) == set(CASES)


def quoted(cell: str) -> str:
    found = re.search(r"`([^`]+)`", cell)
    assert found is not None, f"no `...` in the cell {cell!r}"
    return found.group(1)


def check(case: Case, outcome: tuple[Any, tuple[Note, ...]], code: str | None) -> None:
    """The data are right (in their order), and exactly what should be said is said, with its count."""
    data, notes = outcome
    if callable(case.result):
        assert case.result(data)
    else:
        assert repr(data) == repr(case.result)  # the order counts, and so does int against float
    assert {n.code: n.count for n in notes if n.code != case.also} == ({} if code is None else {code: case.count})
    assert case.also == "" or case.also in {n.code for n in notes}
    for note in notes:
        assert note.text.isprintable()
        assert len(note.text) < 500


@pytest.mark.parametrize("row", table(), ids=lambda row: row.case)
def test_row_of_the_table(row: Row, tmp_path: Path) -> None:
    case = CASES[row.case]
    strict, lenient = tmp_path / "strict", tmp_path / "lenient"
    strict.mkdir()
    lenient.mkdir()
    if row.strict.startswith("error"):
        with pytest.raises(FormatError) as caught:
            case.act(strict, False)
        message = str(caught.value)
        assert caught.value.code == "format"
        assert re.search(case.place + r": expected ", message)
        assert quoted(row.strict) in caught.value.expected
        assert caught.value.found
        assert caught.value.advice
        assert message.isprintable()
        assert len(message) < 500 + len(str(tmp_path))
        if row.lenient == "error":
            with pytest.raises(FormatError, match=re.escape(quoted(row.strict))):
                case.act(lenient, True)
        else:
            assert row.lenient.startswith("note"), row
            check(case, case.act(lenient, True), quoted(row.lenient))
    else:
        assert row.lenient == "same", row
        assert row.strict == "read" or row.strict.startswith("note"), row
        code = quoted(row.strict) if row.strict.startswith("note") else None
        check(case, case.act(strict, False), code)
        check(case, case.act(lenient, True), code)
