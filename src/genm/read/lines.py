"""Lines of white-space separated columns to arrays: the compiled part of the reading room.

The text is cut at line ends into chunks that threads share. A chunk writes its rows where the number of lines
before it says; lines that the compiled code does not understand are left as `doubts` for Python to judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges
from genm.read.decimals import UNDECIDED, decimal_bits, powers_of_ten

T = TypeVar("T", bound=np.generic)

CHUNK = 1 << 20
_ROUND = 64  # chunks between two words of progress
_MOST_COLUMNS = 16  # a line with so many is not looked at any further
_ROWS, _SEGMENTS, _DOUBTS, _COMMENTS, _AGAINST, _FIRST_AGAINST = range(6)
_SIGN, _ZERO, _ONE, _LONG = np.uint64(1 << 63), np.uint64(0), np.uint64(1), np.uint64(18)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns a line has; the query id is always the first. `rank` -1: there is no such column."""

    columns: int
    doc: int
    value: int
    rank: int = -1


@dataclass(slots=True, eq=False)
class Parsed:
    """What the lines said: rows in file order, and runs of rows ("segments") with the same query."""

    doc_at: NDArray[np.int64]
    doc_length: NDArray[np.int32]
    bits: NDArray[np.uint64]
    """The values as the bits of float64; UNDECIDED where a doubt must be judged first."""
    segment_row: NDArray[np.int64]
    segment_at: NDArray[np.int64]
    segment_length: NDArray[np.int32]
    doubt_at: NDArray[np.int64]
    """Where each doubtful line begins."""
    doubt_row: NDArray[np.int64]
    """Its row if only the value is in doubt; -1 if the line gave no row."""
    n_comments: int
    n_against: int
    """Neighbouring lines of a query whose rank column and score disagree about the order."""
    first_against: int


def parse_lines(text: NDArray[np.uint8], layout: Layout, tell: Callable[[int], None]) -> Parsed:
    """Parse all lines of `text`; `tell` is called with the number of bytes done."""
    cuts = _cuts(text)
    n_chunks = len(cuts) - 1
    sizes = np.diff(cuts)
    n_lines = np.zeros(n_chunks, np.int64)
    over_ranges(lambda a, b: _count_lines(text, cuts, n_lines, a, b), sizes)
    base = np.append(0, np.cumsum(n_lines))
    n = int(base[-1])
    # Room that is not written to costs nothing, so every array may be as long as there are lines.
    doc_at, doc_length, bits = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.uint64)
    segment_row, segment_at, segment_length = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
    doubt_at, doubt_row = np.empty(n, np.int64), np.empty(n, np.int64)
    counts = np.zeros((n_chunks, 6), np.int64)
    columns = np.array([layout.columns, layout.doc, layout.value, layout.rank])
    rows = (doc_at, doc_length, bits)
    segments = (segment_row, segment_at, segment_length)
    for begin in range(0, n_chunks, _ROUND):
        end = min(begin + _ROUND, n_chunks)

        def work(low: int, high: int, shift: int = begin) -> None:
            begins, ends = np.empty(_MOST_COLUMNS, np.uint64), np.empty(_MOST_COLUMNS, np.uint64)
            _parse_chunks(
                text, cuts, base, columns, powers_of_ten(), begins, ends, rows, segments, doubt_at, doubt_row,
                counts, shift + low, shift + high,
            )  # fmt: skip

        over_ranges(work, sizes[begin:end])
        tell(int(cuts[end]))
    found = counts[:, _ROWS]
    shifts = base[:-1] - np.append(0, np.cumsum(found))[:-1]  # how far gaps have moved each chunk's rows
    n_segments, n_doubts = counts[:, _SEGMENTS], counts[:, _DOUBTS]
    doubts = _packed(doubt_row, base, n_doubts)
    doubts -= np.where(doubts < 0, 0, np.repeat(shifts, n_doubts))
    against = np.flatnonzero(counts[:, _AGAINST])
    return Parsed(
        _packed(doc_at, base, found),
        _packed(doc_length, base, found),
        _packed(bits, base, found),
        _packed(segment_row, base, n_segments) - np.repeat(shifts, n_segments),
        _packed(segment_at, base, n_segments),
        _packed(segment_length, base, n_segments),
        _packed(doubt_at, base, n_doubts),
        doubts,
        int(counts[:, _COMMENTS].sum()),
        int(counts[:, _AGAINST].sum()),
        int(counts[against[0], _FIRST_AGAINST]) if len(against) else -1,
    )


def line_number(text: NDArray[np.uint8], at: int) -> int:
    """Return the number, from 1, of the line that holds position `at`."""
    return 1 + sum(int(np.count_nonzero(text[a : min(a + CHUNK, at)] == 10)) for a in range(0, at, CHUNK))


def line_end(text: NDArray[np.uint8], at: int) -> int:
    """Return where the line that holds position `at` ends: its line feed, or the end of the text."""
    width = 256
    while at < len(text):
        hit = np.flatnonzero(text[at : at + width] == 10)
        if len(hit):
            return at + int(hit[0])
        at, width = at + width, 2 * width
    return len(text)


def _cuts(text: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return chunk bounds, each the beginning of a line."""
    cuts = [0]
    while cuts[-1] < len(text):
        cuts.append(min(line_end(text, min(cuts[-1] + CHUNK, len(text))) + 1, len(text)))
    return np.array(cuts, np.int64)


def _packed(array: NDArray[T], base: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[T]:
    """Return the used beginnings of the chunks' rooms in a row; no copy where there are no gaps."""
    if (used == np.diff(base)).all():
        return array
    return np.concatenate([array[a : a + n] for a, n in zip(base.tolist(), used.tolist(), strict=False)])


def _count_lines(
    text: NDArray[np.uint8], cuts: NDArray[np.int64], n_lines: NDArray[np.int64], low: int, high: int
) -> None:
    """Count the lines of each chunk; only the last line of the text may lack its line feed."""
    for chunk in range(low, high):
        feeds = text[cuts[chunk] : cuts[chunk + 1]] == 10
        n_lines[chunk] = np.count_nonzero(feeds) + (not feeds[-1])


@kernel
def _parse_chunks(
    text: NDArray[np.uint8],
    cuts: NDArray[np.int64],
    base: NDArray[np.int64],
    columns: NDArray[np.int64],
    powers: NDArray[np.uint64],
    begins: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64]],
    segments: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]],
    doubt_at: NDArray[np.int64],
    doubt_row: NDArray[np.int64],
    counts: NDArray[np.int64],
    low: int,
    high: int,
) -> None:
    doc_at, doc_length, bits = rows
    segment_row, segment_at, segment_length = segments
    n_columns, doc, value, rank = columns[0], columns[1], columns[2], columns[3]
    for chunk in range(low, high):
        row, segment, doubt = base[chunk], base[chunk], base[chunk]
        query, query_end = _ZERO, _ZERO
        last_rank, last_key = np.int64(-1), _ZERO
        # Positions are unsigned: then the compiler need not ask at every byte whether to count from the end.
        i, end = np.uint64(cuts[chunk]), np.uint64(cuts[chunk + 1])
        while i < end:
            line, n, clean = i, 0, True
            # One step per column: white space, then a token of bytes above the space.
            while True:
                while i < end and (text[i] == 32 or text[i] == 9 or 11 <= text[i] <= 13):
                    i += _ONE
                if i >= end or text[i] == 10:
                    break
                begin = i
                while i < end and text[i] > 32:
                    i += _ONE
                if i == begin:
                    clean = False  # a control character
                    i += _ONE
                begins[n], ends[n] = begin, i
                n += 1
                if n == _MOST_COLUMNS:
                    while i < end and text[i] != 10:
                        i += _ONE
                    break
            i += _ONE
            if n == 0:
                continue
            if text[begins[0]] == 35:
                counts[chunk, 3] += 1
                continue
            if n != n_columns or not clean:
                doubt_at[doubt], doubt_row[doubt] = line, -1
                doubt += 1
                continue
            # The query: the same as on the line before, or a new segment.
            a, b = begins[0], query
            while b < query_end and text[a] == text[b]:
                a += _ONE
                b += _ONE
            if a == begins[0] or a != ends[0] or b != query_end:
                segment_row[segment], segment_at[segment] = row, begins[0]
                segment_length[segment] = ends[0] - begins[0]
                segment += 1
                last_rank = np.int64(-1)
            query, query_end = begins[0], ends[0]
            doc_at[row], doc_length[row] = begins[doc], ends[doc] - begins[doc]
            number = decimal_bits(text, begins[value], ends[value], powers)
            bits[row] = number
            if number == UNDECIDED:
                doubt_at[doubt], doubt_row[doubt] = line, row
                doubt += 1
            if rank >= 0:
                place = np.int64(0) if number != UNDECIDED and ends[rank] - begins[rank] < _LONG else np.int64(-1)
                k = begins[rank]
                while k < ends[rank] and place >= 0:
                    digit = np.int64(text[k]) - 48
                    place = place * 10 + digit if 0 <= digit <= 9 else np.int64(-1)
                    k += _ONE
                # Integers in the order of the scores; both zeros are one.
                key = number | _SIGN if number <= _SIGN else ~number
                against = (place > last_rank and key > last_key) or (place < last_rank and key < last_key)
                if place >= 0 and last_rank >= 0 and against:
                    if counts[chunk, 4] == 0:
                        counts[chunk, 5] = line
                    counts[chunk, 4] += 1
                last_rank, last_key = place, key
            row += 1
        counts[chunk, 0] = row - base[chunk]
        counts[chunk, 1] = segment - base[chunk]
        counts[chunk, 2] = doubt - base[chunk]
