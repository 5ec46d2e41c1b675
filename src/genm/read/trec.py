"""TREC runs and judgments, and other lines of columns between white space, to rows."""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from genm.ids import Ids, intern
from genm.progress import Progress
from genm.read.decimals import judge_number
from genm.read.diagnostics import Report, shown
from genm.read.lines import Layout, Parsed, line_end, line_number, parse_lines
from genm.read.rows import Rows, segments, without
from genm.read.sources import Source, Text, latin_1_lines, not_utf_8, text_bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """What a line is made of, in the words of a message."""

    name: str
    layout: Layout
    columns: str
    value: str
    example: str


RUN = Shape(
    "a run",
    Layout(6, doc=2, value=4, rank=3),
    "6 columns (query Q0 document rank score tag)",
    "score",
    "7 Q0 d12 1 14.2 bm25",
)
QRELS = Shape(
    "judgments",
    Layout(4, doc=2, value=3),
    "4 columns (query iteration document relevance)",
    "relevance",
    "7 0 d12 1",
)
WEIGHTS = Shape("query weights", Layout(2, doc=0, value=1), "2 columns (query weight)", "weight", "7 0.5")

_MANY = 1000
WHITE = b" \t\n\r\x0b\x0c"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_LEFT_OUT = "the line was left out"
MATTERS = {
    "not-a-number": (
        "a decimal number as {}",
        "Ids and the tag must not hold white space, and a header line has no place here.",
        _LEFT_OUT,
    ),
    "not-finite": (
        "a finite number as {}",
        "Find out what made it; such a document has no place in a ranking.",
        _LEFT_OUT,
    ),
    "too-large": ("a number below 1.8e308 as {}", "Scale the numbers down.", _LEFT_OUT),
    "too-small": (
        "a number that float64 can tell from 0 as {}",
        "Scale the numbers up, or write logarithms.",
        "read as 0",
    ),
    "decimal-comma": ("a decimal point in {}", "Write 3.5, not 3,5.", "the comma was read as a point"),
}
"""What `judge_number` may say: expected, advice, repair."""


def read_rows(source: Source, shape: Shape, report: Report, progress: Progress) -> Rows:
    """Parse a text into rows; every line is understood, repaired and counted, or an error."""
    text, task = source.text, f"reading {source.name}"
    parsed = parse_lines(text, shape.layout, lambda done: progress(task, done, len(text)))
    queries, docs = _interned(text, parsed)
    broken = _broken_line(text, parsed, queries, docs)
    if broken >= 0:
        line = text_bytes(text, broken, line_end(text, broken)).rstrip(b"\r")
        text, count, _ = latin_1_lines(text)
        not_utf_8(report, line_number(source.text, broken), count, line)
        parsed = parse_lines(text, shape.layout, lambda done: progress(task, done, len(text)))
        queries, docs = _interned(text, parsed)
    if parsed.n_comments:
        report.say("comment-lines", parsed.n_comments, "lines that begin with # were passed over")
    bad = _judged(text, parsed, shape, report)
    if parsed.n_against:
        report.say(
            "rank-against-score", parsed.n_against, "the rank column contradicts the scores: the scores decide",
            line=line_number(text, parsed.first_against),
        )  # fmt: skip
    if not len(parsed.bits):
        report.fault(
            "empty", line=None, expected=f"lines of {shape.columns}", found="no such line",
            advice=f"A line looks like this: {shape.example}", repair="read as empty",
        )  # fmt: skip
    starts, query = _segments(parsed, queries[1])
    at = parsed.doc_at
    rows = Rows(
        queries[0],
        docs[0],
        starts,
        query,
        docs[1],
        parsed.bits.view(np.float64),
        lambda row: line_number(text, int(at[row])),
    )
    return without(rows, bad)


_Interned = tuple[Ids, NDArray[np.int32]]


def _interned(text: Text, parsed: Parsed) -> tuple[_Interned, _Interned]:
    return (
        intern(text, parsed.segment_at, parsed.segment_length),
        intern(text, parsed.doc_at, parsed.doc_length),
    )


def _segments(parsed: Parsed, codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Join segments that only a chunk's end has parted."""
    joined, query = segments(codes)
    return np.append(parsed.segment_row[joined[:-1]], len(parsed.bits)), query


def first_broken(ids: Ids) -> int:
    """Return the first id that is not UTF-8, or -1.

    The whole text is decoded at once; if that works, an id can only be broken by beginning inside a character.
    """
    try:
        ids.text.tobytes().decode()
    except UnicodeDecodeError as error:
        return int(np.searchsorted(ids.starts, error.start, side="right")) - 1
    filled = np.flatnonzero(np.diff(ids.starts))
    inside = (ids.text[ids.starts[filled]] & 0xC0) == 0x80
    return int(filled[np.argmax(inside)]) if inside.any() else -1


def _broken_line(text: Text, parsed: Parsed, queries: _Interned, docs: _Interned) -> int:
    """Return where the first line with an id that is not UTF-8 begins, or -1."""
    places = [
        int(at[np.argmax(codes == broken)])
        for (ids, codes), at in ((queries, parsed.segment_at), (docs, parsed.doc_at))
        if (broken := first_broken(ids)) >= 0
    ]
    if not places:
        return -1
    before = np.flatnonzero(text[: min(places)] == 10)
    return int(before[-1]) + 1 if len(before) else 0


def _judged(text: Text, parsed: Parsed, shape: Shape, report: Report) -> NDArray[np.bool_]:
    """Go through the lines the compiled reader left open; return which rows are to be left out."""
    bad = np.zeros(len(parsed.bits), np.bool_)
    values = parsed.bits.view(np.float64)
    doubts = zip(parsed.doubt_at.tolist(), parsed.doubt_row.tolist(), strict=True)
    whole = text.tobytes() if len(parsed.doubt_at) > _MANY else b""  # then worth a copy, which is quicker to search
    for at, row in doubts:
        if whole:
            end = whole.find(b"\n", at)
            line = whole[at : end if end >= 0 else len(whole)]
        else:
            line = text_bytes(text, at, line_end(text, at))
        if row < 0:
            _refuse_line(text, at, line, shape, report)
            continue
        token = line.split()[shape.layout.value]
        value, matter = judge_number(token)
        if matter:
            expected, advice, repair = MATTERS[matter]
            report.fault(
                matter, line=partial(line_number, text, at), expected=expected.format(shape.value),
                found=partial(shown, token), advice=advice, repair=repair,
            )  # fmt: skip
        values[row] = value
        bad[row] = value != value
    return bad


def _looks_like(line: bytes, shape: Shape) -> bool:
    """Whether a line has the columns of this shape, numbers where it has numbers."""
    words = line.split()
    if len(words) != shape.layout.columns:
        return False
    return not judge_number(words[shape.layout.value])[1] and (
        shape.layout.rank < 0 or words[shape.layout.rank].isdigit()
    )


def _refuse_line(text: Text, at: int, line: bytes, shape: Shape, report: Report) -> None:
    """Say what is wrong with a line that gives no row."""
    control = _CONTROL.search(line)
    if control:
        expected, found = "text", f"the control character {control.group()[0]:#04x} in {shown(line)}"
        advice = "See whether this is a text file at all, then remove the character."
    else:
        n = len(line.split())
        expected, found = shape.columns, f"{n} column{'s' * (n != 1)} in {shown(line.rstrip(WHITE))}"
        if other := next(
            (known for known in (RUN, QRELS) if known is not shape and _looks_like(line, known)), None
        ):
            advice = f"This looks like {other.name}: are two files in each other's place?"
        elif n > shape.layout.columns:
            advice = "Ids and the tag must not hold white space."
        elif at + len(line) == len(text):
            advice = "It is the last line and has no line end: the file may be cut short."
        else:
            advice = f"A line looks like this: {shape.example}"
    report.fault(
        "control-character" if control else "columns", line=partial(line_number, text, at), expected=expected,
        found=found, advice=advice, repair="the line was left out",
    )  # fmt: skip
