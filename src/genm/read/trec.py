"""Parse TREC runs, qrels and other lines of columns separated by white space.

Threads share the text in chunks that end at line ends. The number of lines before a chunk says where its rows go.
Lines that the compiled code does not understand are listed as `doubts`, which Python checks.

Numbers are rounded correctly. The compiled reader multiplies the digits by a 128-bit power of ten and keeps the
result only if the dropped bits cannot change the rounding (Lemire, "Number parsing at a gigabyte per second",
2021). The few other numbers, and text that is no number, go to `judge_number`, which uses Python's parser.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from genm._math.byte_search import (
    WIDTH,
    bits_of,
    blanks,
    leading_zeros,
    line_feeds,
    ones,
    trailing_zeros,
)
from genm._math.parallel import kernel, over_ranges, part
from genm.ids import Ids, intern
from genm.progress import Progress
from genm.read.diagnostics import Diagnostics, shown
from genm.read.rows import Rows, segments, without
from genm.read.sources import Text, TextSource, latin_1_lines, not_utf_8, text_bytes

LOWEST, HIGHEST = -330, 308
"""The powers of ten in the table. With at most 19 digits, numbers beyond them underflow or overflow."""

UNDECIDED = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The compiled reader's result for text that Python must check; these are the bits of a NaN."""

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_COMMA = re.compile(rb"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")

_0, _1, _3, _9 = (np.uint64(i) for i in (0, 1, 3, 9))
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_TEN = np.uint64(10)
_HIDDEN, _TOP = np.uint64(1 << 52), np.uint64(1 << 63)
_EXACT = np.uint64(1 << 53)
"""Integers up to here are float64 numbers."""
_EXACT_POWERS = np.array([10.0**n for n in range(23)])
"""The powers of ten that are float64 numbers."""
_FEW = np.uint64(18)
"""Bytes of a number whose digits fit 64 bits."""

T = TypeVar("T", bound=np.generic)

CHUNK = 1 << 20
ROUND = 64  # chunks between two reports of progress
_SEARCHED = np.uint64(WIDTH)
_MOST_COLUMNS = 16  # the rest of a line with so many columns is skipped
_ROWS, _SEGMENTS, _DOUBTS, _COMMENTS, _AGAINST, _FIRST_AGAINST = range(6)
_SIGN, _ZERO, _ONE, _LONG = np.uint64(1 << 63), np.uint64(0), np.uint64(1), np.uint64(18)

_MANY = 1000
WHITE = b" \t\n\r\x0b\x0c"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_MARK = b"\xef\xbb\xbf"  # UTF-8's byte order mark
_MARKED = re.compile(rb"(^[ \t\r\x0b\x0c]*)(?:\xef\xbb\xbf)+", re.MULTILINE)
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
"""For each fault that `judge_number` may find: expected, advice, repair."""

_Interned = tuple[Ids, NDArray[np.int32]]


@functools.cache
def powers_of_ten() -> NDArray[np.uint64]:
    """Return the leading 128 bits of 10^LOWEST .. 10^HIGHEST, as rows of (high, low) words."""
    words = []
    for exponent in range(LOWEST, HIGHEST + 1):
        power = 5 ** abs(exponent)
        if exponent >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            # Down to 10^-27 a product with the power rounded up is exact; below, the method needs it rounded down.
            bits = (1 << (power.bit_length() + 127)) // power + (exponent >= -27)
        words.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(words, np.uint64)


def judge_number(token: bytes) -> tuple[float, str]:
    """Return a token's value and "", or the value that a repair would give (NaN: none) and the fault.

    The faults: "not-a-number", "not-finite", "too-large", "too-small", "decimal-comma".
    """
    if _NUMBER.fullmatch(token):
        value = float(token)
        if value in (float("inf"), float("-inf")):
            return float("nan"), "too-large"
        if value == 0.0 and re.search(rb"[1-9]", re.split(rb"[eE]", token)[0]):
            return value, "too-small"
        return value, ""
    if _NOT_FINITE.fullmatch(token):
        return float("nan"), "not-finite"
    if _COMMA.fullmatch(token):
        value, matter = judge_number(token.replace(b",", b"."))
        return (value, "decimal-comma") if not matter else (value, matter)
    return float("nan"), "not-a-number"


@part()
def _product(x: np.uint64, y: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high and low words of the 128-bit product."""
    x1, x0, y1, y0 = x >> _HALF, x & _LOW_HALF, y >> _HALF, y & _LOW_HALF
    low = x0 * y0
    middle = x1 * y0 + (low >> _HALF)
    other = x0 * y1 + (middle & _LOW_HALF)
    return x1 * y1 + (middle >> _HALF) + (other >> _HALF), x * y


@part()
def _rounded(digits: np.uint64, exponent: int, powers: NDArray[np.uint64]) -> np.uint64:
    """Return the bits of digits * 10^exponent rounded to float64, or UNDECIDED; digits is not 0."""
    if exponent < LOWEST or exponent > HIGHEST:
        return UNDECIDED
    zeros = leading_zeros(digits)
    x = digits << zeros
    high, low = _product(x, powers[exponent - LOWEST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        # Near a rounding boundary: use the second word of the power too.
        more, _ = _product(x, powers[exponent - LOWEST, 1])
        low += more
        if low < more:
            high += _1
        if low == UNDECIDED and (exponent < -27 or exponent > 55):
            return UNDECIDED
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = high >> shift
    # floor(exponent * log2(10)) + 63, in integers
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    if power <= 0:
        return UNDECIDED
    exact = low <= _1 and -4 <= exponent <= 23
    if exact and mantissa & _3 == _1 and mantissa << shift == high:
        mantissa &= ~_1  # half way between two numbers: to the even one
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >= _HIDDEN << _1:
        mantissa = _HIDDEN
        power += 1
    if power >= 2047:
        return UNDECIDED
    return (mantissa & ~_HIDDEN) | (np.uint64(power) << np.uint64(52))


@part()
def short_decimal_bits(text: NDArray[np.uint8], begin: np.uint64, end: np.uint64) -> np.uint64:
    """Return the bits of the float64 nearest to text[begin:end] if it has few digits and no exponent, or UNDECIDED.

    The digits and the power of ten are exact then, and one division rounds correctly (Clinger, 1990).
    """
    i = begin
    sign = _TOP if text[i] == 45 else _0
    if text[i] == 45 or text[i] == 43:
        i += _1
    digits, fraction, n_after, n = _0, _0, _0, end - i
    if n > _FEW:
        return UNDECIDED
    while i < end:
        c = np.uint64(text[i]) - np.uint64(48)
        if c <= _9:
            digits = digits * _TEN + c
            n_after += fraction
        elif text[i] == 46 and fraction == _0:
            fraction = _1
        else:
            return UNDECIDED
        i += _1
    if n == fraction or digits > _EXACT:
        return UNDECIDED
    return sign | bits_of(np.float64(digits) / _EXACT_POWERS[n_after])


@part()
def decimal_bits(
    text: NDArray[np.uint8], begin: np.uint64, end: np.uint64, powers: NDArray[np.uint64]
) -> np.uint64:
    """Return the bits of the float64 nearest to text[begin:end], or UNDECIDED.

    Positions are unsigned, so the compiler need not handle negative indices at every byte.
    """
    i = begin
    sign = _TOP if text[i] == 45 else _0
    if text[i] == 45 or text[i] == 43:
        i += _1
    digits, n_digits, seen, exponent, fraction = _0, 0, 0, 0, 0
    while i < end:
        c = np.uint64(text[i]) - np.uint64(48)
        if c <= _9:
            seen = 1
            if n_digits < 19:
                digits = digits * _TEN + c
                exponent -= fraction
            else:
                exponent += 1 - fraction
            if digits != _0:
                n_digits += 1
        elif text[i] == 46 and fraction == 0:
            fraction = 1
        else:
            break
        i += _1
    if seen == 0:
        return UNDECIDED
    if i < end and (text[i] == 101 or text[i] == 69):
        i += _1
        down = i < end and text[i] == 45
        if i < end and (text[i] == 45 or text[i] == 43):
            i += _1
        if i == end:
            return UNDECIDED
        number = 0
        while i < end and 48 <= text[i] <= 57 and number < 100_000:
            number = number * 10 + text[i] - 48
            i += _1
        exponent += -number if down else number
    if i != end:
        return UNDECIDED
    if digits == _0:
        return sign
    bits = _rounded(digits, exponent, powers)
    if n_digits > 19 and bits != _rounded(digits + _1, exponent, powers):
        return UNDECIDED  # the digits after the nineteenth decide
    return bits if bits == UNDECIDED else bits | sign


@kernel
def read_decimals(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    powers: NDArray[np.uint64],
    bits: NDArray[np.uint64],
    low: int,
    high: int,
) -> None:
    """Write the bits of the numbers text[at:at + length]; an empty piece is UNDECIDED."""
    for i in range(low, high):
        begin, end = np.uint64(at[i]), np.uint64(at[i] + length[i])
        bits[i] = UNDECIDED if begin == end else short_decimal_bits(text, begin, end)
        if bits[i] == UNDECIDED and begin < end:
            bits[i] = decimal_bits(text, begin, end, powers)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns a line has; the query id is always the first. `rank` -1: there is no such column."""

    columns: int
    doc: int
    value: int
    rank: int = -1


@dataclass(slots=True, eq=False)
class Parsed:
    """The parsed lines: rows in file order, and runs of rows with the same query ("segments")."""

    doc_at: NDArray[np.int64]
    doc_length: NDArray[np.int32]
    bits: NDArray[np.uint64]
    """The values as the bits of float64; UNDECIDED where Python must check a doubt first."""
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
    # Memory that is never written costs nothing, so every array may have one place per line.
    doc_at, doc_length, bits = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.uint64)
    segment_row, segment_at, segment_length = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
    doubt_at, doubt_row = np.empty(n, np.int64), np.empty(n, np.int64)
    counts = np.zeros((n_chunks, 6), np.int64)
    columns = np.array([layout.columns, layout.doc, layout.value, layout.rank])
    rows = (doc_at, doc_length, bits)
    segments = (segment_row, segment_at, segment_length)
    for begin in range(0, n_chunks, ROUND):
        end = min(begin + ROUND, n_chunks)

        def work(low: int, high: int, shift: int = begin) -> None:
            begins, ends = np.empty(_MOST_COLUMNS, np.uint64), np.empty(_MOST_COLUMNS, np.uint64)
            _parse_chunks(
                text, cuts, base, columns, powers_of_ten(), begins, ends, rows, segments, doubt_at, doubt_row,
                counts, shift + low, shift + high,
            )  # fmt: skip

        over_ranges(work, sizes[begin:end])
        tell(int(cuts[end]))
    found = counts[:, _ROWS]
    shifts = base[:-1] - np.append(0, np.cumsum(found))[:-1]  # how far the gaps before each chunk move its rows
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


class ChunkParser:
    """Parses chunks one at a time, into arrays that the next chunk overwrites; each thread has one.

    Only plain chunks are taken: every line is a row, without a doubt.
    """

    def __init__(self, layout: Layout, most: int) -> None:
        """Make room for chunks of at most so many lines."""
        self._columns = np.array([layout.columns, layout.doc, layout.value, layout.rank])
        self._begins, self._ends = np.empty(_MOST_COLUMNS, np.uint64), np.empty(_MOST_COLUMNS, np.uint64)
        self._at, self._length = np.empty(most, np.int64), np.empty(most, np.int32)
        self._segments = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int32)
        self._doubts = np.empty(most, np.int64), np.empty(most, np.int64)

    def parse(self, text: NDArray[np.uint8], size: int, n_lines: int, bits: NDArray[np.uint64]) -> Parsed | None:
        """Parse text[:size], which ends with a line feed; None if it is not plain. Values are written to `bits`."""
        counts, at, length = np.zeros((1, 6), np.int64), self._at, self._length
        _parse_chunks(
            text, np.array([0, size]), np.zeros(2, np.int64), self._columns, powers_of_ten(), self._begins,
            self._ends, (at, length, bits), self._segments, *self._doubts, counts, 0, 1,
        )  # fmt: skip
        found = counts[0].tolist()
        if found[_ROWS] != n_lines or found[_DOUBTS] or found[_COMMENTS]:
            return None
        own, doubt = slice(found[_SEGMENTS]), self._doubts[0][:0]
        row, segment_at, segment_length = self._segments
        return Parsed(
            at[:n_lines], length[:n_lines], bits, row[own], segment_at[own], segment_length[own], doubt, doubt,
            0, found[_AGAINST], found[_FIRST_AGAINST],
        )  # fmt: skip


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
    """Return the used parts of all chunks without gaps; no copy where there are none."""
    if (used == np.diff(base)).all():
        return array
    return np.concatenate([array[a : a + n] for a, n in zip(base.tolist(), used.tolist(), strict=False)])


@kernel
def count_lines(text: NDArray[np.uint8], begin: int, end: int) -> int:
    """Return how many lines text[begin:end] has; the last one may lack its line feed."""
    n, i = np.uint64(0), begin
    while i + WIDTH <= end:
        n += ones(line_feeds(text, i))
        i += WIDTH
    while i < end:
        n += np.uint64(text[i] == 10)
        i += 1
    return int(n) + (begin < end and text[end - 1] != 10)


def _count_lines(
    text: NDArray[np.uint8], cuts: NDArray[np.int64], n_lines: NDArray[np.int64], low: int, high: int
) -> None:
    """Count the lines of each chunk."""
    for chunk in range(low, high):
        n_lines[chunk] = count_lines(text, cuts[chunk], cuts[chunk + 1])


@part()
def _split_regular(
    text: NDArray[np.uint8], line: np.uint64, begins: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> tuple[int, np.uint64]:
    """Find the columns of a line with one space between them; return how many, and where the next line begins.

    0 columns: the line is another one, or the text ends soon after it.
    """
    size = np.uint64(len(text))
    if line + _SEARCHED > size:
        return 0, line
    base, begin, found, n = line, line, blanks(text, line), 0
    while n < _MOST_COLUMNS:
        while found == _ZERO:
            base += _SEARCHED
            if base + _SEARCHED > size:
                return 0, line
            found = blanks(text, base)
        stop = base + trailing_zeros(found)
        if stop == begin:
            return 0, line
        begins[n], ends[n] = begin, stop
        n += 1
        begin = stop + _ONE
        if text[stop] == 10:
            return n, begin
        if text[stop] != 32:
            return 0, line
        found &= found - _ONE
    return 0, line


@part()
def _split_any(
    text: NDArray[np.uint8],
    line: np.uint64,
    end: np.uint64,
    begins: NDArray[np.uint64],
    ends: NDArray[np.uint64],
) -> tuple[int, np.uint64, bool]:
    """Find the columns of a line; return how many, where the next line begins, and whether all of it is text.

    One step per column: white space, then a token of bytes above the space character.
    """
    i, n, clean = line, 0, True
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
    return n, i + _ONE, clean


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
        # Positions are unsigned, so the compiler need not handle negative indices at every byte.
        i, end = np.uint64(cuts[chunk]), np.uint64(cuts[chunk + 1])
        while i < end:
            line, clean = i, True
            n, i = _split_regular(text, line, begins, ends)
            if n == 0:
                n, i, clean = _split_any(text, line, end, begins, ends)
            if n == 0:
                continue
            if text[line] == 35:
                counts[chunk, 3] += 1
                continue
            more = n > n_columns and rank >= 0  # text after the tag, or an id with a space: Python decides
            if (n != n_columns and not more) or not clean:
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
            number = short_decimal_bits(text, begins[value], ends[value])
            if number == UNDECIDED:
                number = decimal_bits(text, begins[value], ends[value], powers)
            bits[row] = number
            if number == UNDECIDED or more:
                doubt_at[doubt], doubt_row[doubt] = line, row
                doubt += 1
            if rank >= 0:
                place = np.int64(0) if number != UNDECIDED and ends[rank] - begins[rank] < _LONG else np.int64(-1)
                k = begins[rank]
                while k < ends[rank] and place >= 0:
                    digit = np.int64(text[k]) - 48
                    place = place * 10 + digit if 0 <= digit <= 9 else np.int64(-1)
                    k += _ONE
                # Integers that sort as the scores do; both zeros are equal.
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


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a line, and the words that messages use for them."""

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


def read_rows(source: TextSource, shape: Shape, report: Diagnostics, progress: Progress) -> Rows:
    """Parse a text into rows; a line that cannot be parsed is an error, or is repaired and counted."""
    text, task = source.text, f"reading {source.name}"
    parsed = parse_lines(text, shape.layout, lambda done: progress(task, done, len(text)))
    queries, docs = _interned(text, parsed)
    marked = _marked_line(queries[0], parsed, queries[1])
    if marked >= 0:
        lines, count = _MARKED.subn(rb"\1", text.tobytes())
        report.fault(
            "byte-order-mark", line=line_number(text, marked), count=count,
            expected="a byte order mark only at the beginning of the file", found="one in front of a query id",
            advice="Files that begin with one were joined: remove it from each before.",
            repair="it was removed",
        )  # fmt: skip
        text = np.frombuffer(bytearray(lines), np.uint8)
        parsed = parse_lines(text, shape.layout, lambda done: progress(task, done, len(text)))
        queries, docs = _interned(text, parsed)
    broken = _broken_line(text, parsed, queries, docs)
    if broken >= 0:
        line, number = text_bytes(text, broken, line_end(text, broken)).rstrip(b"\r"), line_number(text, broken)
        text, count, _ = latin_1_lines(text)
        not_utf_8(report, number, count, line)
        parsed = parse_lines(text, shape.layout, lambda done: progress(task, done, len(text)))
        queries, docs = _interned(text, parsed)
    if parsed.n_comments:
        report.say("comment-lines", parsed.n_comments, "lines that begin with # were skipped")
    bad = _judged(text, parsed, shape, report)
    if parsed.n_against:
        say_against(report, parsed.n_against, line_number(text, parsed.first_against))
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


def say_against(report: Diagnostics, count: int, line: int) -> None:
    """Note that some ranks contradict the scores, first in this line."""
    report.say(
        "rank-against-score", count, "the rank column contradicts the scores: the scores decide", line=line
    )  # fmt: skip


def _marked_line(queries: Ids, parsed: Parsed, codes: NDArray[np.int32]) -> int:
    """Return the first position of a query id that begins a line with a byte order mark, or -1."""
    code = first_marked(queries)
    return -1 if code < 0 else int(parsed.segment_at[np.argmax(codes == code)])


def first_marked(ids: Ids) -> int:
    """Return the first id that begins with a byte order mark, or -1."""
    begins = ids.starts[:-1]
    for code in np.flatnonzero(ids.text[begins] == _MARK[0]).tolist():
        if ids.text[begins[code] : begins[code] + 3].tobytes() == _MARK:
            return code
    return -1


def first_tag(source: TextSource) -> str:
    """Return the tag of a run's first line, or "" if there is none near the beginning."""
    for line in source.head.tobytes().split(b"\n")[:100]:
        words = line.split()
        if len(words) >= RUN.layout.columns and not line.startswith(b"#"):
            return words[RUN.layout.columns - 1].decode("utf-8", "replace")
    return ""


def _interned(text: Text, parsed: Parsed) -> tuple[_Interned, _Interned]:
    return (
        intern(text, parsed.segment_at, parsed.segment_length),
        intern(text, parsed.doc_at, parsed.doc_length),
    )


def _segments(parsed: Parsed, codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Join segments that were split only by the end of a chunk."""
    joined, query = segments(codes)
    return np.append(parsed.segment_row[joined[:-1]], len(parsed.bits)), query


def first_broken(ids: Ids) -> int:
    """Return the first id that is not UTF-8, or -1.

    The text is decoded at once. If that works, an id can be broken only if it begins inside a character.
    """
    if ids.text.max(initial=0) < 0x80:
        return -1  # ASCII is UTF-8
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


def _judged(text: Text, parsed: Parsed, shape: Shape, report: Diagnostics) -> NDArray[np.bool_]:
    """Check the lines that the compiled reader left undecided, and return which rows to leave out."""
    bad = np.zeros(len(parsed.bits), np.bool_)
    values = parsed.bits.view(np.float64)
    doubts = zip(parsed.doubt_at.tolist(), parsed.doubt_row.tolist(), strict=True)
    whole = text.tobytes() if len(parsed.doubt_at) > _MANY else b""  # a copy is faster to search
    for at, row in doubts:
        if whole:
            end = whole.find(b"\n", at)
            line = whole[at : end if end >= 0 else len(whole)]
        else:
            line = text_bytes(text, at, line_end(text, at))
        words = line.split()
        is_long = len(words) > shape.layout.columns
        if row < 0 or (is_long and (_CONTROL.search(line) or not _has_long_tag(words, shape))):
            _refuse_line(text, at, line, shape, report)
            if row >= 0:
                bad[row] = True
            continue
        if is_long:
            report.say(
                "text-after-tag", 1, partial(_said_after_tag, words, shape), line=partial(line_number, text, at)
            )  # fmt: skip
        token = words[shape.layout.value]
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


def _has_long_tag(words: list[bytes], shape: Shape) -> bool:
    """Whether a line with more columns than a run has is a complete one with text after it, as trec_eval reads it.

    If the sixth column is a number too, the columns may be shifted by a doc id that holds a space.
    """
    layout = shape.layout
    return (
        words[layout.rank].isdigit()
        and not judge_number(words[layout.value])[1]
        and judge_number(words[layout.columns - 1])[1] == "not-a-number"
    )


def _said_after_tag(words: list[bytes], shape: Shape) -> str:
    return f"text after the tag is not read: {shown(b' '.join(words[shape.layout.columns :]))}"


def looks_like(line: bytes, shape: Shape) -> bool:
    """Whether a line has the columns of this shape, numbers where it has numbers."""
    words = line.split()
    if len(words) != shape.layout.columns:
        return False
    return not judge_number(words[shape.layout.value])[1] and (
        shape.layout.rank < 0 or words[shape.layout.rank].isdigit()
    )


def _refuse_line(text: Text, at: int, line: bytes, shape: Shape, report: Diagnostics) -> None:
    """Report what is wrong with a line that gives no row."""
    control = _CONTROL.search(line)
    if control:
        expected, found = "text", f"the control character {control.group()[0]:#04x} in {shown(line)}"
        advice = "See whether this is a text file at all, then remove the character."
    else:
        n = len(line.split())
        expected, found = shape.columns, f"{n} column{'s' * (n != 1)} in {shown(line.rstrip(WHITE))}"
        if other := next((known for known in (RUN, QRELS) if known is not shape and looks_like(line, known)), None):
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
