"""Turn rows in the order of a source into Run and Qrels: grouped by query, each document once."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges
from genm.errors import InputError
from genm.ids import Ids
from genm.read.diagnostics import Diagnostics, Place, shown
from genm.records import Provenance, Qrels, Run, ranked_run

Duplicates = Literal["error", "max", "first", "last"]

WHOLE_GRADES = "whole"
"""The rule for grades that refuses fractions."""

_LOWEST_GRADE, _HIGHEST_GRADE = -(2**31), 2**31 - 1


@dataclass(slots=True, eq=False)
class Rows:
    """Rows in the order of the source; neighbours with the same query form a segment."""

    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    """Where each segment begins, and the number of rows."""
    query: NDArray[np.int32]
    """The query of each segment."""
    doc: NDArray[np.int32]
    value: NDArray[np.float64]
    place: Callable[[int], Place]
    """The line (or words for the place) of a row."""
    provenance: Provenance | None = None
    """Where judgments come from, if the source says so."""

    def query_of(self, row: int) -> str:
        """Return the query id of a row."""
        return self.queries[int(self.query[np.searchsorted(self.starts, row, side="right") - 1])]


def as_run(rows: Rows, name: str, duplicates: Duplicates, report: Diagnostics) -> Run:
    """Group, resolve documents that appear twice for a query, and rank."""
    starts, doc, score, order = _grouped(rows)
    again = _repeats(starts, doc)
    if again.any():
        starts, doc, score = _settled(rows, (starts, doc, score, order), again, duplicates, report)
    return ranked_run(name, rows.queries, rows.docs, starts, doc, score, report.notes)


def check_grades(rule: str) -> None:
    """Refuse a rule for grades that is none of those in docs/formats.md."""
    _grade_rule(rule)


def _grade_rule(rule: str) -> tuple[str, float]:
    """Return the word of a rule for grades, and its number."""
    word, _, number = rule.partition("=") if isinstance(rule, str) else ("", "", "")
    value = float(number) if re.fullmatch(r"[+-]?[0-9]{0,9}\.?[0-9]{1,9}", number) else math.nan
    if word in (WHOLE_GRADES, "round") and rule == word:
        return word, 1.0
    if (word == "from" and value == value) or (word == "times" and value > 0.0):
        return word, value
    raise InputError(
        f"grades: expected whole, round, times=NUMBER or from=NUMBER, such as from=0.5; found {shown(rule)}."
    )


def _mapped_grades(rows: Rows, rule: str, report: Diagnostics) -> Rows:
    """Turn grades into integers by the rule, and say how many were changed."""
    word, number = _grade_rule(rule)
    if word == WHOLE_GRADES:
        return rows
    before = rows.value
    if word == "from":
        after = (before >= number).astype(np.float64)
    else:
        with np.errstate(over="ignore"):  # too large is refused below
            after = np.floor(before * number + 0.5)
    changed = after != before
    if changed.any():
        first = int(np.argmax(changed))
        report.say(
            "grades-mapped", int(np.count_nonzero(changed)),
            f"grade {before[first]:g} became {after[first]:g} by the rule {rule}", line=rows.place(first),
        )  # fmt: skip
    return replace(rows, value=after)


def as_qrels(rows: Rows, report: Diagnostics, grades: str = WHOLE_GRADES) -> Qrels:
    """Group, turn grades into integers or refuse fractions, and resolve pairs that are judged twice."""
    rows = whole_grades(rows, grades, report)
    n_negative = int(np.count_nonzero(rows.value < 0))
    if n_negative:
        line = rows.place(int(np.argmax(rows.value < 0)))
        report.say("negative-grade", n_negative, "a negative grade: kept, counts as not relevant", line=line)
    starts, doc, value, order = _grouped(rows)
    again = _repeats(starts, doc)
    kept = np.arange(len(doc)) if order is None else order
    if again.any():
        grouped, keep = (starts, doc, value, order), np.ones(len(doc), np.bool_)
        keep[_judged_again(rows, grouped, again, report)] = False
        starts, doc, value, kept = np.append(0, np.cumsum(keep))[starts], doc[keep], value[keep], kept[keep]
    provenance = None if rows.provenance is None else rows.provenance.take(kept)
    return Qrels(rows.queries, rows.docs, starts, doc, value.astype(np.int32), report.notes, provenance)


def without(rows: Rows, bad: NDArray[np.bool_]) -> Rows:
    """Return the rows that are not bad; queries and documents that then have no row are removed too."""
    if not bad.any():
        return rows
    keep = np.flatnonzero(~bad)
    query = np.repeat(rows.query, np.diff(rows.starts))[keep]
    queries, query = _compact(rows.queries, query)
    docs, doc = _compact(rows.docs, rows.doc[keep])
    starts, query = segments(query)
    old = rows.place
    provenance = None if rows.provenance is None else rows.provenance.take(keep)
    return Rows(queries, docs, starts, query, doc, rows.value[keep], lambda row: old(int(keep[row])), provenance)


def segments(query: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where runs of the same query begin (and the number of rows), and the query of each."""
    new = np.flatnonzero(np.diff(query)) + 1 if len(query) else np.zeros(0, np.int64)
    begins = np.append(0, new) if len(query) else new
    return np.append(begins, len(query)), query[begins]


def _compact(ids: Ids, codes: NDArray[np.int32]) -> tuple[Ids, NDArray[np.int32]]:
    used = np.zeros(len(ids), np.bool_)
    used[codes] = True
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return ids.take(np.flatnonzero(used)), number[codes]


_Grouped = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64] | None]


def _grouped(rows: Rows) -> _Grouped:
    """Return starts, doc, value with each query's rows together, and the rows' order (None: as they were)."""
    if len(rows.query) == len(rows.queries):
        return rows.starts, rows.doc, rows.value, None  # the rows of every query are together
    sizes = np.diff(rows.starts)
    by = np.argsort(rows.query, kind="stable")
    ends = np.cumsum(sizes[by])
    order = np.repeat(rows.starts[:-1][by] - ends + sizes[by], sizes[by]) + np.arange(len(rows.doc))
    n_rows = np.bincount(rows.query, sizes, len(rows.queries)).astype(np.int64)
    return np.append(0, np.cumsum(n_rows)), rows.doc[order], rows.value[order], order


def _repeats(starts: NDArray[np.int64], doc: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return, for each row, whether its document occurred before in the same query."""
    again = np.zeros(len(doc), np.bool_)
    sizes = np.diff(starts)
    n_slots = 1 << max(3, int(2 * sizes.max(initial=1) - 1).bit_length())
    over_ranges(lambda a, b: _mark_repeats(starts, doc, np.empty(n_slots, np.int32), again, a, b), sizes)
    return again


def _pairs(grouped: _Grouped, again: NDArray[np.bool_]) -> list[list[int]]:
    """Return, for each (query, document) that occurs more than once, its rows in the order of the source."""
    starts, doc, _, order = grouped
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    key = query * (int(doc.max()) + 1) + doc
    members = np.flatnonzero(np.isin(key, key[again]))
    together: dict[int, list[int]] = {}
    for row in members.tolist():
        together.setdefault(int(key[row]), []).append(row)
    at = (lambda row: row) if order is None else (lambda row: int(order[row]))
    return sorted(together.values(), key=lambda rows: at(rows[1]))


def _kept(grouped: _Grouped, drop: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    starts, doc, value, _ = grouped
    keep = np.ones(len(doc), np.bool_)
    keep[drop] = False
    return np.append(0, np.cumsum(keep))[starts], doc[keep], value[keep]


def _settled(
    rows: Rows, grouped: _Grouped, again: NDArray[np.bool_], duplicates: Duplicates, report: Diagnostics
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Keep one row of each document that a query lists more than once."""
    _, _, score, order = grouped
    policy = "max" if duplicates == "error" else duplicates
    drop: list[int] = []
    for copies in _pairs(grouped, again):
        first, second = (row if order is None else int(order[row]) for row in copies[:2])
        if policy == "max":
            kept = max(copies, key=lambda row: score[row])
        else:
            kept = copies[0] if policy == "first" else copies[-1]
        drop += [row for row in copies if row != kept]
        said, count = "document {doc} twice for query {query} (first in {first})", len(copies) - 1
        if duplicates == "error":
            report.fault(
                "duplicate-kept-max", line=partial(rows.place, second), count=count,
                expected="each document once per query", found=partial(_told, said, rows, first),
                advice="Remove one, or say which to keep: duplicates max, first or last.",
                repair="the highest score was kept",
            )  # fmt: skip
        else:
            report.say(
                f"duplicate-kept-{policy}", count, partial(_told, f"{said}: kept the {_KEPT[policy]}", rows, first),
                line=partial(rows.place, second),
            )  # fmt: skip
    return _kept(grouped, drop)


_KEPT = {"max": "highest score", "first": "first", "last": "last"}


def _told(form: str, rows: Rows, row: int) -> str:
    """Insert a row's document, query and place into a sentence."""
    place = rows.place(row)
    where = f"line {place}" if isinstance(place, int) else place or "the source"
    return form.format(doc=shown(rows.docs[int(rows.doc[row])]), query=shown(rows.query_of(row)), first=where)


def _judged_again(rows: Rows, grouped: _Grouped, again: NDArray[np.bool_], report: Diagnostics) -> list[int]:
    """Return the rows to drop, so that each pair has one judgment.

    The same grade twice is a note, different grades are a fault.
    """
    _, _, grade, order = grouped
    drop: list[int] = []
    for copies in _pairs(grouped, again):
        first, second = (row if order is None else int(order[row]) for row in copies[:2])
        grades = sorted({int(grade[row]) for row in copies})
        said, count = "document {doc} of query {query}", len(copies) - 1
        kept = max(copies, key=lambda row: grade[row])
        drop += [row for row in copies if row != kept]
        if len(grades) == 1:
            said += f" judged twice with grade {grades[0]} (first in {{first}}): kept once"
            report.say(
                "judged-twice", count, partial(_told, said, rows, first), line=partial(rows.place, second),
            )  # fmt: skip
        else:
            said = f"grades {', '.join(map(str, grades))} for {said} (first in {{first}})"
            report.fault(
                "judged-differently", line=partial(rows.place, second), count=count,
                expected="one grade for each document of a query",
                found=partial(_told, said, rows, first),
                advice="Decide for one and remove the other.", repair="the highest grade was kept",
            )  # fmt: skip
    return drop


def whole_grades(rows: Rows, grades: str, report: Diagnostics) -> Rows:
    """Turn grades into integers by the rule, and refuse those that are not integers of 32 bits."""
    rows = _mapped_grades(rows, grades, report)
    bad = (rows.value != np.rint(rows.value)) | (rows.value > _HIGHEST_GRADE) | (rows.value < _LOWEST_GRADE)
    if bad.any():
        row = int(np.argmax(bad))
        report.fault(
            "grade-not-whole", line=rows.place(row), count=int(np.count_nonzero(bad)),
            expected="a whole number as relevance", found=f"{float(rows.value[row])!r}",
            advice="Say how to read fractions (grades, --grades): from=0.5 makes 0.5 and more relevant, times=100 "
            "and round keep grades.",
            repair="the judgment was left out",
        )  # fmt: skip
    return without(rows, bad)


@kernel
def _mark_repeats(
    starts: NDArray[np.int64],
    doc: NDArray[np.int32],
    table: NDArray[np.int32],
    again: NDArray[np.bool_],
    low: int,
    high: int,
) -> None:
    """Put each query's documents into a small hash table and mark those that are already in it."""
    for q in range(low, high):
        bits = 3
        while (1 << bits) < 2 * (starts[q + 1] - starts[q]):
            bits += 1
        mask = (1 << bits) - 1
        for free in range(1 << bits):
            table[free] = 0
        for i in range(starts[q], starts[q + 1]):
            s = ((np.int64(doc[i]) * 2654435769) >> 8) & mask
            while table[s] and table[s] != doc[i] + 1:
                s = (s + 1) & mask
            again[i] = table[s] != 0
            table[s] = doc[i] + 1
