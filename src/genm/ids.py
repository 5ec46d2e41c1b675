"""Tables of distinct ids: each id's text is stored once, and everything else uses integer codes.

Ids are strings of UTF-8 text. Their order is the order of their bytes, which is also the order of Python's
`str` and of trec_eval's `strcmp`. Equal ids are found by hash, and their bytes are compared.

docs/complexity.md has the figures beside polars.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Self

import numpy as np
from numpy.typing import NDArray

from genm._math.byte_search import load_word, reversed_bytes, store_word
from genm._math.parallel import kernel, over_ranges, part
from genm._math.text_numbers import Table, unite_texts

_BLOCK = 1 << 16
_PART = 1 << 14  # ids per hash table: small enough for a core's cache
_MOST_PARTS = 1 << 12  # with more, a block has few ids for each
_SHORT = 7  # the hash of an id of up to this many bytes is unique, so the text need not be compared
_ONE, _BYTE, _HALF = np.uint64(1), np.uint64(8), np.uint64(32)
_WORD = 8
_SEVEN_BYTES = np.uint64(56)
_LOW63 = np.uint64((1 << 63) - 1)
_NOTHING = np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int32)
_NO_LENGTHS = np.zeros(0, np.uint16)
_MIX_1, _MIX_2 = np.uint64(0x2545F4914F6CDD1D), np.uint64(0x5851F42D4C957F2D)


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """Distinct ids; the id with code i is the bytes text[starts[i]:starts[i + 1]]."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __repr__(self) -> str:
        """Say how many there are and show the first few, on one line."""
        first = ", ".join(repr(self[code]) for code in range(min(3, len(self))))
        return f"<Ids of {len(self):,}{': ' if first else ''}{first}{', ...' if len(self) > 3 else ''}>"

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, code: int) -> str:
        if not 0 <= code < len(self):
            raise IndexError(code)
        return bytes(self.text[self.starts[code] : self.starts[code + 1]]).decode()

    def __iter__(self) -> Iterator[str]:
        text, starts = self.text.tobytes(), self.starts.tolist()
        return (text[a:b].decode() for a, b in itertools.pairwise(starts))

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Make a table of the given strings, which must be distinct, in their order."""
        return cls(*_joined(strings))

    def take(self, codes: NDArray[np.integer]) -> "Ids":
        """Return the table of the ids at `codes`, in that order."""
        if len(codes) and not (codes.min() >= 0 and codes.max() < len(self)):
            raise IndexError(f"codes must lie in 0..{len(self) - 1}")
        return _gathered(self.text, self.starts[:-1], _lengths(self), np.asarray(codes, np.int32))


def encode(strings: Iterable[str]) -> tuple[Ids, NDArray[np.int32]]:
    """Return the table of distinct strings, in order of first appearance, and each string's code."""
    text, starts = _joined(strings)
    return intern(text, starts[:-1], np.diff(starts).astype(np.int32))


def intern(
    text: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int32]
) -> tuple[Ids, NDArray[np.int32]]:
    """Return the table of distinct pieces text[at:at + length], by first appearance, and each piece's code."""
    pieces = _Placed(text, at, length)
    found = _dealt(pieces).table(by_text=False) or _dealt(pieces).table(by_text=True)
    assert found is not None
    return found


class Interning:
    """Gives codes to pieces of texts that need not be kept: they are copied, block by block, without gaps.

    Threads may add blocks at the same time and in any order.
    """

    LONGEST = (1 << 16) - 1
    """How many bytes a piece may have."""

    def __init__(self, most: int, most_bytes: int, most_blocks: int, expected: int) -> None:
        """Make room for so many pieces, bytes and blocks, where `expected` pieces are likely to come."""
        self._copies = _Copied(most, most_bytes, most_blocks)
        self._dealt = _Dealt(self._copies, most, most_blocks, expected)

    def add(
        self, block: int, before: int, text: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int32]
    ) -> None:
        """Add the pieces text[at:at + length] as this block; `before` pieces come before them."""
        kept = self._copies.place(block, before, length)
        self._dealt.deal(block, before, text, at, length, np.array([0, len(at)]), *kept)

    def table(self, cuts: NDArray[np.int64]) -> tuple[Ids, NDArray[np.int32]] | None:
        """Return what `intern` returns, after all pieces of the blocks with these bounds were added.

        Return None if different pieces have the same hash.
        """
        self._copies.cuts = cuts
        return self._dealt.table(by_text=False)


_Sizes = tuple[NDArray[np.int32], int, int, int]
"""Lengths of pieces, the number of the first of them, and a range of blocks."""
_Places = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32], int, int, int]
"""A text, where pieces of it are, and what `_Sizes` holds."""


class _Placed:
    """Pieces text[at:at + length], in blocks."""

    def __init__(self, text: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int32]) -> None:
        self.text = _plain(text)
        self.at, self.length = np.require(at, np.int64, ("C", "W")), np.require(length, np.int32, ("C", "W"))
        self.cuts = _blocks(len(at))

    def sizes(self, low: int, high: int) -> Iterator[_Sizes]:
        """Yield how long the pieces of some blocks are."""
        yield self.length, 0, low, high

    def of(self, low: int, high: int) -> Iterator[_Places]:
        """Yield where the pieces of some blocks are."""
        yield self.text, self.at, self.length, 0, low, high


class _Copied:
    """Copies of pieces, block by block."""

    def __init__(self, most: int, most_bytes: int, most_blocks: int) -> None:
        # Memory that is never written costs nothing.
        self._text, self._length = np.empty(most_bytes, np.uint8), np.empty(most, np.uint16)
        self._begins = np.zeros(most_blocks, np.int64)
        self._n_bytes, self._lock = 0, Lock()
        self.cuts = np.zeros(1, np.int64)

    def place(
        self, block: int, before: int, length: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        """Return where the bytes and the lengths of a block belong; `before` pieces come before it."""
        n_bytes = int(length.sum())
        with self._lock:
            begin = self._n_bytes
            self._n_bytes += n_bytes
        self._begins[block] = begin
        return self._text[begin : begin + n_bytes], self._length[before : before + len(length)]

    def sizes(self, low: int, high: int) -> Iterator[_Sizes]:
        """Yield how long the copies of some blocks are."""
        for block in range(low, high):
            first = int(self.cuts[block])
            yield self._length[first : self.cuts[block + 1]].astype(np.int32), first, block, block + 1

    def of(self, low: int, high: int) -> Iterator[_Places]:
        """Yield where the copies of some blocks are."""
        for length, first, block, stop in self.sizes(low, high):
            at = np.cumsum(length, dtype=np.int64)
            at += self._begins[block] - length
            yield self._text, at, length, first, block, stop


class _Dealt:
    """The hashes of pieces, dealt block by block into parts, each of which fits a core's cache.

    Every block and every part has its own place, so threads need no lock.
    """

    def __init__(self, pieces: _Placed | _Copied, most: int, most_blocks: int, expected: int) -> None:
        n_parts = min(1 << max(0, (expected // _PART).bit_length()), _MOST_PARTS)
        self._pieces = pieces
        self._hashes, self._rows = np.empty(most, np.uint64), np.empty(most, np.int32)
        self._ends = np.empty((most_blocks, n_parts), np.int32)
        """Where each part ends within each block."""

    def deal(
        self,
        block: int,
        before: int,
        text: NDArray[np.uint8],
        at: NDArray[np.int64],
        length: NDArray[np.int32],
        cuts: NDArray[np.int64],
        copies: NDArray[np.uint8] = _NOTHING[0],
        lengths: NDArray[np.uint16] = _NO_LENGTHS,
    ) -> None:
        """Deal at[cuts[0]:cuts[1]] as this block, and so on; `before` pieces come before at[0].

        If there is room for copies, the pieces and their lengths are copied too.
        """
        n, spare = len(cuts) - 1, np.empty(int(np.diff(cuts).max()), np.uint64)
        ends = self._ends[block : block + n]
        _deal(text, at, length, cuts, before, spare, self._hashes, self._rows, ends, copies, lengths, 0, n)

    def first_equal(self, *, by_text: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return for each piece the number of the first one with the same bytes, or only the same hash.

        Return also for each block how many pieces no equal one precedes, and the bytes of these. What was dealt is
        used up.
        """
        pieces, cuts = self._pieces, self._pieces.cuts
        sizes = np.diff(cuts)
        ends, hashes, rows = self._ends[: len(sizes)], self._hashes, self._rows[: cuts[-1]]
        work = np.diff(ends.sum(axis=0, dtype=np.int64), prepend=0)
        n_slots = 1 << max(3, int(2 * work.max() - 1).bit_length())
        text, at, length = _NOTHING
        if by_text:
            text, at, length, *_ = next(pieces.of(0, len(sizes)))

        def match(low: int, high: int) -> None:
            keys, owners = np.empty(n_slots, np.uint64), np.empty(n_slots, np.int32)
            _match(text, at, length, hashes, rows, cuts, ends, work, keys, owners, low, high)

        over_ranges(match, work)
        new, most = np.zeros((len(sizes), 2), np.int64), int(sizes.max(initial=0))

        def reorder(a: int, b: int) -> None:
            spare = np.empty(most, np.int32)
            for length, before, low, high in pieces.sizes(a, b):
                _reorder(hashes, rows, length, before, cuts, spare, new, low, high)

        over_ranges(reorder, sizes)
        self._hashes = np.empty(0, np.uint64)
        return rows, new

    def table(self, *, by_text: bool) -> tuple[Ids, NDArray[np.int32]] | None:
        """Return the table of distinct pieces, by first appearance, and each piece's code.

        Return None if only hashes were compared and different pieces have the same one.
        """
        codes, new = self.first_equal(by_text=by_text)
        pieces, cuts = self._pieces, self._pieces.cuts
        sizes, before = np.diff(cuts), np.zeros((len(new) + 1, 2), np.int64)
        np.cumsum(new, axis=0, out=before[1:])
        starts, text = np.empty(before[-1, 0] + 1, np.int64), np.empty(before[-1, 1], np.uint8)
        starts[-1] = before[-1, 1]

        def number_new(a: int, b: int) -> None:
            for given, at, length, skipped, low, high in pieces.of(a, b):
                _number_new(given, at, length, skipped, cuts, before, codes, starts, text, low, high)

        over_ranges(number_new, sizes)
        unequal = np.zeros(len(sizes), np.int64)

        def number_others(a: int, b: int) -> None:
            for given, at, length, skipped, low, high in pieces.of(a, b):
                _number_others(given, at, length, skipped, cuts, codes, starts, text, unequal, low, high)

        over_ranges(number_others, sizes)
        if unequal.any():
            return None

        def uncover(a: int, b: int) -> None:
            for begin, end in itertools.pairwise(cuts[a : b + 1].tolist()):
                part = codes[begin:end]
                np.maximum(part, ~part, out=part)  # those of new pieces were inverted, to tell them from rows

        over_ranges(uncover, sizes)
        return Ids(text, starts), codes


def _dealt(pieces: _Placed) -> _Dealt:
    """Return all pieces, dealt into parts."""
    n, cuts = len(pieces.at), pieces.cuts
    dealt = _Dealt(pieces, n, len(cuts) - 1, n)
    text, at, length = pieces.text, pieces.at, pieces.length
    over_ranges(lambda a, b: dealt.deal(a, 0, text, at, length, cuts[a : b + 1]), np.diff(cuts))
    return dealt


def byte_order(ids: Ids) -> NDArray[np.int32]:
    """Return the codes in ascending order of their ids."""
    text, starts = _plain(ids.text), ids.starts
    order, same, skip = _order_of_beginnings(text, starts, _common_prefix(ids))
    tied, group = _groups(same)
    rows = np.flatnonzero(tied)
    while len(rows):
        codes = order[rows]
        keys = _sort_keys(text, starts, codes, skip)
        by = np.lexsort((keys, group))
        codes, keys, group = codes[by], keys[by], group[by]
        order[rows] = codes
        # Ids with the same seven bytes and more bytes after them are sorted again, group by group.
        same = (keys[1:] == keys[:-1]) & (group[1:] == group[:-1]) & (keys[1:] & np.uint64(255) == np.uint64(8))
        tied, group = _groups(same)
        rows = rows[tied]
        skip += _SHORT
    return order


def _order_of_beginnings(
    text: NDArray[np.uint8], starts: NDArray[np.int64], skip: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_], int]:
    """Sort ids by some bytes after the first `skip`; return also which neighbours tie, and the bytes seen then.

    The bytes that occur are numbered, so that more of them fit a word, with the id's code in its lowest bits: numpy
    sorts numbers in a third of the time that it takes to sort by them.
    """
    n = len(starts) - 1
    occur = np.zeros(256, np.bool_)
    _mark_bytes(text, occur)
    number = np.cumsum(occur).astype(np.uint64)  # 0 is the end of an id
    width, code_bits = int(number[-1]).bit_length(), max(n - 1, 1).bit_length()
    n_bytes = (64 - code_bits) // max(width, 1)
    packed, cuts = np.empty(n, np.uint64), _blocks(n)
    sizes = np.array([skip, n_bytes, width, code_bits])
    over_ranges(lambda a, b: _pack(text, starts, number, sizes, packed, cuts[a], cuts[b]), np.diff(cuts))
    packed.sort()
    order = (packed & np.uint64((1 << code_bits) - 1)).astype(np.int32)
    packed >>= np.uint64(code_bits)
    return order, packed[1:] == packed[:-1], skip + n_bytes


def _groups(same: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Return which rows tie with a neighbour, and the number of the group of each of these; same: with the next."""
    tied = np.zeros(len(same) + 1, np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    begins = tied.copy()
    begins[1:] &= ~same
    return tied, np.cumsum(begins, dtype=np.int32)[tied] - np.int32(1)


def hashes_of(ids: Ids) -> NDArray[np.uint64]:
    """Return 64-bit hashes of the ids; ids of up to 7 bytes never share one."""
    text, lengths = _plain(ids.text), _lengths(ids)
    cuts = _blocks(len(ids))
    hashes, at = np.empty(len(ids), np.uint64), np.require(ids.starts[:-1], np.int64, ("C", "W"))
    over_ranges(lambda a, b: _hash(text, at, lengths, hashes, cuts[a], cuts[b]), np.diff(cuts))
    return hashes


def find(table: Ids, wanted: Ids) -> NDArray[np.int32]:
    """Return, for every id of `wanted`, its code in `table`, or -1."""
    first = _dealt(_Placed(*_stacked((table, wanted)))).first_equal(by_text=True)[0][len(table) :]
    return np.where(first < len(table), first, np.int32(-1))


def find_one(table: Ids, wanted: str) -> int:
    """Return the code of an id, or -1; what is no UTF-8, such as a word of the command line, is in no table."""
    try:
        one = Ids.of([wanted])
    except UnicodeEncodeError:
        return -1
    return int(find(table, one)[0])


def unite(tables: Sequence[Ids]) -> tuple[Ids, list[NDArray[np.int32]]]:
    """Return one table of all ids in ascending order, and for each given table its codes in it."""
    if not tables:
        return Ids.of(()), []
    if sum(map(len, tables)) > _PART:
        found = unite_texts([Table(_plain(t.text), np.require(t.starts, np.int64, ("C", "W"))) for t in tables])
        if found is not None:
            return Ids(*found[0]), found[1]
    different, codes = intern(*_stacked(tables))
    order = byte_order(different)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ends = np.cumsum([len(t) for t in tables])
    return different.take(order), np.split(rank[codes], ends[:-1])


def _joined(strings: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of all strings together, and where each begins (and the last ends)."""
    parts = [s.encode() for s in strings]
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=starts[1:])
    return np.frombuffer(bytearray().join(parts), np.uint8), starts


def _lengths(ids: Ids) -> NDArray[np.int32]:
    return np.diff(ids.starts).astype(np.int32)


def _stacked(tables: Sequence[Ids]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]]:
    """Return one text with where each id of all tables begins and how long it is."""
    text = np.concatenate([t.text for t in tables])
    shifts = np.cumsum([0] + [len(t.text) for t in tables[:-1]])
    at = np.concatenate([t.starts[:-1] + shift for t, shift in zip(tables, shifts, strict=True)])
    return text, at, np.concatenate([_lengths(t) for t in tables])


def _plain(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the text as the one array type that the kernels are compiled for."""
    return np.require(text, np.uint8, ("C", "W"))


def _common_prefix(ids: Ids) -> int:
    """Return how many leading bytes all ids share (up to 64: it only saves work)."""
    if len(ids) < 2:
        return 0
    lengths = np.diff(ids.starts)
    n = min(int(lengths.min()), 64)
    for skip in range(n):
        column = ids.text[ids.starts[:-1] + skip]
        if (column != column[0]).any():
            return skip
    return n


def _blocks(n: int) -> NDArray[np.int64]:
    """Return the bounds of blocks of n rows, the unit of work of a thread."""
    return np.append(np.arange(0, n, _BLOCK), n)


def _sort_keys(
    text: NDArray[np.uint8], starts: NDArray[np.int64], codes: NDArray[np.int32], skip: int
) -> NDArray[np.uint64]:
    """Return integers that sort as the seven bytes after `skip` do, then as what is left of the id."""
    keys = np.empty(len(codes), np.uint64)
    cuts = _blocks(len(codes))
    over_ranges(lambda a, b: _write_keys(text, starts, codes, skip, keys, cuts[a], cuts[b]), np.diff(cuts))
    return keys


def _gathered(
    text: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int32], chosen: NDArray[np.int32]
) -> Ids:
    """Return the table of the pieces text[at:at + length] that are chosen, in that order."""
    text, chosen = _plain(text), np.require(chosen, np.int32, ("C", "W"))
    at, length = np.require(at, np.int64, ("C", "W")), np.require(length, np.int32, ("C", "W"))
    starts, cuts = np.zeros(len(chosen) + 1, np.int64), _blocks(len(chosen))
    over_ranges(lambda a, b: _write_lengths(length, chosen, starts, cuts[a], cuts[b]), np.diff(cuts))
    np.cumsum(starts, out=starts)
    out = np.empty(starts[-1], np.uint8)
    over_ranges(lambda a, b: _copy(text, at, chosen, starts, out, cuts[a], cuts[b]), np.diff(cuts))
    return Ids(out, starts)


@kernel
def _mark_bytes(text: NDArray[np.uint8], occur: NDArray[np.bool_]) -> None:
    for i in range(len(text)):
        occur[text[i]] = True


@kernel
def _pack(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    number: NDArray[np.uint64],
    sizes: NDArray[np.int64],
    packed: NDArray[np.uint64],
    low: int,
    high: int,
) -> None:
    """Write the numbers of an id's bytes after the first `skip`, and its code."""
    skip, n_bytes, width, code_bits = sizes[0], sizes[1], np.uint64(sizes[2]), np.uint64(sizes[3])
    for i in range(low, high):
        at, end, x = starts[i] + skip, starts[i + 1], np.uint64(0)
        for j in range(at, at + n_bytes):
            x = (x << width) | (number[text[j]] if j < end else np.uint64(0))
        packed[i] = (x << code_bits) | np.uint64(i)


@part()
def _leading_bytes(text: NDArray[np.uint8], at: int, n: int) -> np.uint64:
    """Return text[at:at + n], up to 8 bytes, as one number: the first byte is the most significant."""
    if n > 0 and at + _WORD <= len(text):
        return reversed_bytes(load_word(text, at)) >> (_BYTE * np.uint64(_WORD - n))
    x = np.uint64(0)
    for j in range(at, at + n):
        x = (x << _BYTE) | np.uint64(text[j])
    return x


@kernel
def _write_keys(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    codes: NDArray[np.int32],
    skip: int,
    keys: NDArray[np.uint64],
    low: int,
    high: int,
) -> None:
    """Write seven bytes, most significant first, and how many are left (8: more than these)."""
    for i in range(low, high):
        a = starts[codes[i]] + skip
        n = starts[codes[i] + 1] - a
        n = 8 if n > _SHORT else n if n > 0 else 0
        held = min(n, _SHORT)
        keys[i] = np.uint64(n) | _leading_bytes(text, a, held) << (_SEVEN_BYTES - _BYTE * np.uint64(held)) << _BYTE


@part()
def _copy_piece(text: NDArray[np.uint8], at: int, out: NDArray[np.uint8], begin: int, stop: int, end: int) -> int:
    """Copy a piece to out[begin:stop] and return where it stops; whole words may be written up to `end`."""
    j, shift = begin, at - begin
    while j < stop and j + _WORD <= end and j + _WORD + shift <= len(text):
        store_word(out, j, load_word(text, j + shift))
        j += _WORD
    while j < stop:
        out[j] = text[j + shift]
        j += 1
    return stop


@kernel
def _reorder(
    found: NDArray[np.uint64],
    rows: NDArray[np.int32],
    length: NDArray[np.int32],
    skipped: int,
    cuts: NDArray[np.int64],
    spare: NDArray[np.int32],
    new: NDArray[np.int64],
    low: int,
    high: int,
) -> None:
    """Put what was found for the pieces of each block in their order, over `rows`.

    Count the pieces that no equal one precedes, and their bytes. `length` is without those of `skipped` pieces.
    """
    for block in range(low, high):
        begin, end = cuts[block], cuts[block + 1]
        for k in range(begin, end):
            spare[rows[k] - begin] = found[k]
        for i in range(begin, end):
            first = spare[i - begin]
            rows[i] = first
            if first == i:
                new[block, 0] += 1
                new[block, 1] += length[i - skipped]


@kernel
def _number_new(
    given: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    skipped: int,
    cuts: NDArray[np.int64],
    before: NDArray[np.int64],
    codes: NDArray[np.int32],
    starts: NDArray[np.int64],
    text: NDArray[np.uint8],
    low: int,
    high: int,
) -> None:
    """Give each distinct piece of some blocks a number, written inverted. Write its bytes and where they begin."""
    for block in range(low, high):
        n, j = before[block, 0], before[block, 1]
        end = before[block + 1, 1]  # whole words may write into the pieces after them, which come later
        for i in range(cuts[block], cuts[block + 1]):
            if codes[i] == i:
                codes[i], starts[n] = ~n, j
                n += 1
                j = _copy_piece(given, at[i - skipped], text, j, j + length[i - skipped], end)


@kernel
def _number_others(
    given: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    skipped: int,
    cuts: NDArray[np.int64],
    codes: NDArray[np.int32],
    starts: NDArray[np.int64],
    text: NDArray[np.uint8],
    unequal: NDArray[np.int64],
    low: int,
    high: int,
) -> None:
    """Write the number of every other piece: that of the first equal one. Count those with other bytes."""
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            if codes[i] >= 0:
                code = ~codes[codes[i]]
                codes[i] = code
                n = length[i - skipped]
                if n > _SHORT and not (
                    n == starts[code + 1] - starts[code] and _equal(given, at[i - skipped], text, starts[code], n)
                ):
                    unequal[block] += 1


@kernel
def _write_lengths(
    length: NDArray[np.int32], chosen: NDArray[np.int32], starts: NDArray[np.int64], low: int, high: int
) -> None:
    for i in range(low, high):
        starts[i + 1] = length[chosen[i]]


@kernel
def _copy(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    chosen: NDArray[np.int32],
    starts: NDArray[np.int64],
    out: NDArray[np.uint8],
    low: int,
    high: int,
) -> None:
    """Copy the pieces low:high; whole words may write into the pieces after them, which come later."""
    end = starts[high]
    for i in range(low, high):
        _copy_piece(text, at[chosen[i]], out, starts[i], starts[i + 1], end)


@part()
def _hash_of(text: NDArray[np.uint8], at: int, n: int) -> np.uint64:
    """Return the hash of a piece: a one-to-one mixing of its bytes and length if it is short (even), else odd."""
    if n <= _SHORT:
        x = np.uint64(n) << (_BYTE * np.uint64(n)) | _leading_bytes(text, at, n)
        x = (x * _MIX_1) & _LOW63
        x ^= x >> _HALF
        return ((x * _MIX_2) & _LOW63) << _ONE
    x = np.uint64(n) * _MIX_1
    for j in range(0, n, _WORD):
        x = (x ^ _leading_bytes(text, at + j, min(n - j, _WORD))) * _MIX_2
        x ^= x >> _HALF
    return (x * _MIX_1) | _ONE


@kernel
def _hash(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    low: int,
    high: int,
) -> None:
    for i in range(low, high):
        hashes[i] = _hash_of(text, at[i], length[i])


@kernel
def _deal(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    cuts: NDArray[np.int64],
    before: int,
    spare: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    rows: NDArray[np.int32],
    ends: NDArray[np.int32],
    copies: NDArray[np.uint8],
    lengths: NDArray[np.uint16],
    low: int,
    high: int,
) -> None:
    """Write the hashes of each block's pieces part by part, and which piece each is; parts keep the order.

    If there is room for copies, copy the pieces one after another, and their lengths.
    """
    j = 0
    n_parts = ends.shape[1]
    parts = np.uint64(n_parts - 1)
    for block in range(low, high):
        begin, end = cuts[block], cuts[block + 1]
        for own in range(n_parts):
            ends[block, own] = 0
        for i in range(begin, end):
            x = _hash_of(text, at[i], length[i])
            spare[i - begin] = x
            ends[block, (x >> _ONE) & parts] += 1
            if len(lengths):
                lengths[i] = length[i]
                j = _copy_piece(text, at[i], copies, j, j + length[i], len(copies))
        total = 0
        for own in range(n_parts):
            size = ends[block, own]
            ends[block, own] = total
            total += size
        for i in range(begin, end):
            x = spare[i - begin]
            own = (x >> _ONE) & parts
            place = before + begin + ends[block, own]
            ends[block, own] += 1
            hashes[place] = x
            rows[place] = before + i


@part()
def _equal(text: NDArray[np.uint8], a: int, other: NDArray[np.uint8], b: int, n: int) -> bool:
    """Tell whether two pieces of n bytes are the same."""
    j = 0
    while j + _WORD <= n:
        if load_word(text, a + j) != load_word(other, b + j):
            return False
        j += _WORD
    while j < n:
        if text[a + j] != other[b + j]:
            return False
        j += 1
    return True


@kernel
def _match(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    rows: NDArray[np.int32],
    cuts: NDArray[np.int64],
    ends: NDArray[np.int32],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
    owners: NDArray[np.int32],
    low: int,
    high: int,
) -> None:
    """Find each piece's first equal within its part by open addressing, and write it over the hash.

    `keys` is large enough for any part. Without lengths, only hashes are compared.
    """
    for own in range(low, high):
        bits = 3
        while (1 << bits) < 2 * sizes[own]:
            bits += 1
        shift, mask = np.uint64(64 - bits), (1 << bits) - 1
        for free in range(1 << bits):
            owners[free] = -1
        for block in range(len(cuts) - 1):
            begin = cuts[block] + (ends[block, own - 1] if own else 0)
            for k in range(begin, cuts[block] + ends[block, own]):
                h, row = hashes[k], rows[k]
                s = np.int64(h >> shift)
                while owners[s] >= 0:
                    other = owners[s]
                    if keys[s] == h and (
                        h & _ONE == 0
                        or len(length) == 0
                        or (length[other] == length[row] and _equal(text, at[row], text, at[other], length[row]))
                    ):
                        break
                    s = (s + 1) & mask
                if owners[s] < 0:
                    keys[s], owners[s] = h, row
                hashes[k] = owners[s]
