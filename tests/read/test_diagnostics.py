"""Messages are short, printable, and say the place."""

import pytest

from genm.errors import FormatError
from genm.read.diagnostics import Diagnostics, shown

FAULT = {"expected": "this", "found": "that", "advice": "Mend it.", "repair": "mended"}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ("abc", '"abc"'),
        (b"a\tb\xff", '"a\\tb\\xff"'),
        ("x" * 61, '"' + "x" * 60 + '..." (61 characters)'),
        (b"x" * 1_000_000, '"' + "x" * 60 + '..." (1,000,000 bytes)'),
        ("\u202e", '"\\u202e"'),
        (None, "None"),
        (7, "7"),
        ("é" * 60, '"' + "é" * 60 + '"'),
    ],
)
def test_what_was_found_is_shown_safely(found: object, text: str) -> None:
    assert shown(found) == text


def test_strict_reports_raise_with_the_place() -> None:
    report = Diagnostics("file.txt", lenient=False)
    with pytest.raises(FormatError, match=r"^file\.txt:7: expected this; found that\. Mend it\.$"):
        report.fault("x", line=lambda: 7, **FAULT)
    with pytest.raises(FormatError, match=r"^file\.txt, row 3: expected this"):
        report.fault("x", line="row 3", **FAULT)
    with pytest.raises(FormatError, match=r"^file\.txt: expected this"):
        report.fault("x", line=None, **FAULT)


def test_lenient_reports_count_and_keep_the_first_place() -> None:
    report = Diagnostics("file.txt", lenient=True)
    report.fault("x", line=7, **FAULT)
    report.fault("x", line=lambda: pytest.fail("the second place is not needed"), count=2, **FAULT)
    report.say("y", 1, "seen")
    first, second = report.notes
    assert (first.code, first.count) == ("x", 3)
    assert first.text == "file.txt:7: expected this, found that: mended (3 times; this is the first)"
    assert (second.code, second.count, second.text) == ("y", 1, "file.txt: seen")
