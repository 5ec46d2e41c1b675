"""Python values, out of dictionaries and columns of objects, to ids and numbers."""

import math
import numbers
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from genm.ids import encode
from genm.read.diagnostics import Place, Report, shown
from genm.read.rows import Rows, segments, without

PlaceOf = Callable[[int], Place]


def id_texts(
    cells: Sequence[object], what: str, report: Report, place: PlaceOf
) -> tuple[list[str], NDArray[np.bool_]]:
    """Return ids as text, and which are none. All text is plain; all integers is said; a mixture is a fault."""
    bad = np.zeros(len(cells), np.bool_)
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) == len(cells) and "" not in texts:
        return texts, bad  # nearly always
    texts = []
    n_texts = n_integers = 0
    for i, cell in enumerate(cells):
        text, integer = _id_text(cell)
        n_integers, n_texts = n_integers + integer, n_texts + (text is not None and not integer)
        if text is None:
            report.fault(
                "missing-id", line=partial(place, i), expected=f"text as {what} id", found=shown(cell),
                advice="Give every row an id, as text.", repair="the row was left out",
            )  # fmt: skip
            bad[i] = True
        texts.append(text or "?")
    first_integer = next((i for i, cell in enumerate(cells) if _id_text(cell)[1]), -1)
    if n_integers and n_texts:
        report.fault(
            "mixed-ids", line=partial(place, first_integer), count=n_integers,
            expected=f"{what} ids all as text", found=f"the integer {shown(cells[first_integer])} among them",
            advice="Turn the ids into text before: 7 and '7' would become one.", repair="read as text",
        )  # fmt: skip
    elif n_integers:
        say_integers(report, what, n_integers, place(first_integer))
    else:
        pass  # all text but for what is missing
    return texts, bad


def say_integers(report: Report, what: str, count: int, place: Place) -> None:
    """Tell that a whole column of ids came as integers."""
    report.say("integer-ids", count, f"{what} ids are integers: read as text, 7 as '7' (never '07')", line=place)


def numbers_of(
    cells: Sequence[object], what: str, report: Report, place: PlaceOf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return finite numbers, and which cells are none."""
    values, bad = np.zeros(len(cells)), np.zeros(len(cells), np.bool_)
    for i, cell in enumerate(cells):
        truth = isinstance(cell, bool | np.bool_)
        if isinstance(cell, float | int | numbers.Real | np.bool_) and (not truth or what == "relevance"):
            values[i] = float(cell)
        else:
            report.fault(
                "not-a-number", line=partial(place, i), expected=f"a number as {what}", found=shown(cell),
                advice="Convert it, or drop the row.", repair="the row was left out",
            )  # fmt: skip
            bad[i] = True
    return values, bad | finite_fault(values, bad, what, report, place)


def finite_fault(
    values: NDArray[np.float64], known: NDArray[np.bool_], what: str, report: Report, place: PlaceOf
) -> NDArray[np.bool_]:
    """Refuse NaN and infinities that are not known to be bad already."""
    bad = ~np.isfinite(values) & ~known
    if bad.any():
        first = int(np.argmax(bad))
        report.fault(
            "not-finite", line=partial(place, first), count=int(np.count_nonzero(bad)),
            expected=f"a finite number as {what}", found=f"{values[first]}",
            advice="Find out what made it; such a document has no place in a ranking.",
            repair="the row was left out",
        )  # fmt: skip
    return bad


def rows_of(
    query: list[str], doc: list[str], value: NDArray[np.float64], bad: NDArray[np.bool_], place: PlaceOf
) -> Rows:
    """Put the columns of a table together, without the bad rows."""
    queries, query_code = encode(query)
    docs, doc_code = encode(doc)
    return without(Rows(queries, docs, *segments(query_code), doc_code, value, place), bad)


def _id_text(cell: object) -> tuple[str | None, bool]:
    """Return an id's text (None: it is none) and whether it was an integer."""
    if isinstance(cell, str):
        return cell or None, False
    if isinstance(cell, bool) or not isinstance(cell, numbers.Real | int | float):
        return None, False
    number = float(cell)
    if not isinstance(cell, numbers.Integral) and not (math.isfinite(number) and number == int(number)):
        return None, False
    # A column of integers with a gap in it comes as floats.
    return str(int(cell) if isinstance(cell, int | float) else int(number)), True
