"""Python values to ids and numbers."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from genm.errors import FormatError
from genm.read.cells import id_texts, numbers_of
from genm.read.diagnostics import Report


def words(row: int) -> str:
    return f"row {row}"


@pytest.mark.parametrize(
    ("cells", "texts", "bad", "codes"),
    [
        (["a", "7"], ["a", "7"], [], []),
        ([7, np.int32(8), 9.0], ["7", "8", "9"], [], ["integer-ids"]),
        ([2**63 + 1, 1], [str(2**63 + 1), "1"], [], ["integer-ids"]),
        (["a", 7], ["a", "7"], [], ["mixed-ids"]),
        (["a", None, float("nan"), "", 1.5, True, b"x"], ["a"], [1, 2, 3, 4, 5, 6], ["missing-id"]),
    ],
)
def test_ids(cells: list[Any], texts: list[str], bad: list[int], codes: list[str]) -> None:
    report = Report("x", lenient=True)
    found, wrong = id_texts(cells, "query", report, words)
    assert [text for text, out in zip(found, wrong, strict=True) if not out] == texts
    assert np.flatnonzero(wrong).tolist() == bad
    assert [n.code for n in report.notes] == codes


@pytest.mark.parametrize("cell", [None, "1", b"1", 1j, [1], True, np.bool_(True)])
def test_what_is_no_score(cell: Any) -> None:
    with pytest.raises(FormatError, match=r"^x, row 1: expected a number as score; found "):
        numbers_of([1.0, cell], "score", Report("x", lenient=False), words)


def test_numbers_of_many_kinds() -> None:
    cells = [1, 2.5, np.float32(0.5), np.int8(-3), Fraction(1, 4)]
    values, bad = numbers_of(cells, "score", Report("x", lenient=False), words)
    assert values.tolist() == [1.0, 2.5, 0.5, -3.0, 0.25]
    assert not bad.any()
    values, _ = numbers_of([True, np.bool_(False), Decimal(2)], "relevance", Report("x", lenient=True), words)
    assert values.tolist()[:2] == [1.0, 0.0]
