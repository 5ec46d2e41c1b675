"""Options of read_run do what they say."""

import io

import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import read_run

TWICE = "q Q0 a 1 2 t\nq Q0 b 2 1.5 t\nq Q0 a 3 1 t\n"


@pytest.mark.parametrize(("duplicates", "score"), [("max", 2.0), ("first", 2.0), ("last", 1.0)])
@pytest.mark.parametrize("lenient", [False, True])
def test_duplicates(duplicates: str, score: float, lenient: bool) -> None:
    run = read_run(io.StringIO(TWICE), duplicates=duplicates, lenient=lenient)  # type: ignore[arg-type]
    assert as_dict(run)["q"] == {"a": score, "b": 1.5}
    (note,) = run.notes
    assert (note.code, note.count) == (f"duplicate-kept-{duplicates}", 1)
    assert 'document "a" twice for query "q" (first in line 1)' in note.text


def test_duplicates_are_an_error_by_default() -> None:
    with pytest.raises(
        FormatError, match=r':3: expected .*; found document "a" twice for query "q" \(first in line 1\)'
    ):
        read_run(io.StringIO(TWICE))


def test_names() -> None:
    assert read_run(io.StringIO(TWICE), duplicates="max", name="bm25").name == "bm25"
