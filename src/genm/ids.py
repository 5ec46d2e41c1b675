"""Tables of distinct ids: each id's text is stored once, and everything else uses integer codes.

Ids are strings of UTF-8 text. Their order is the order of their bytes, which is also the order of Python's
`str` and of trec_eval's `strcmp`. Equal ids are found by hash, and their bytes are compared.

docs/complexity.md has the figures beside polars.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from genm._math.byte_search import load_word, reversed_bytes, store_word
from genm._math.parallel import kernel, over_ranges, part
from genm._math.text_numbers import Table, unite_texts

_BLOCK = 1 << 16
_PART = 1 << 14  # ids per hash table: small enough for a core's cache
_SHORT = 7  # the hash of an id of up to this many bytes is unique, so the text need not be compared
_ONE, _BYTE, _HALF = np.uint64(1), np.uint64(8), np.uint64(32)
_WORD = 8
_SEVEN_BYTES = np.uint64(56)
_LOW63 = np.uint64((1 << 63) - 1)
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
    first, cuts = _first_equal(text, at, length), _blocks(len(at))
    work, n_new = np.diff(cuts), np.zeros(len(cuts) - 1, np.int64)
    over_ranges(lambda a, b: _count_new(first, cuts, n_new, a, b), work)
    before = np.append(0, np.cumsum(n_new))
    codes, where = np.empty(len(first), np.int32), np.empty(before[-1], np.int32)
    over_ranges(lambda a, b: _number_new(first, cuts, before, codes, where, a, b), work)
    over_ranges(lambda a, b: _number_others(first, cuts, codes, a, b), work)
    return _gathered(text, at, length, where), codes


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
    hashes, counts = np.empty(len(ids), np.uint64), np.zeros((len(cuts) - 1, 1), np.int64)
    at = np.require(ids.starts[:-1], np.int64, ("C", "W"))
    over_ranges(lambda a, b: _hash(text, at, lengths, hashes, cuts, counts, a, b), np.diff(cuts))
    return hashes


def find(table: Ids, wanted: Ids) -> NDArray[np.int32]:
    """Return, for every id of `wanted`, its code in `table`, or -1."""
    first = _first_equal(*_stacked((table, wanted)))[len(table) :]
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


def _first_equal(text: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return for each piece text[at:at + length] the number of the first piece with the same bytes.

    Pieces are partitioned by hash, in order, so that each part fits a core's cache and threads need no lock.
    """
    n = len(at)
    text, at, length = (
        _plain(text),
        np.require(at, np.int64, ("C", "W")),
        np.require(length, np.int32, ("C", "W")),
    )
    cuts = _blocks(n)
    work = np.diff(cuts)
    n_parts = 1 << max(0, (n // _PART).bit_length())
    hashes = np.empty(n, np.uint64)
    counts = np.zeros((len(work), n_parts), np.int64)
    over_ranges(lambda a, b: _hash(text, at, length, hashes, cuts, counts, a, b), work)
    ends = np.cumsum(counts.T.ravel()).reshape(n_parts, len(work))
    places = np.ascontiguousarray(ends.T) - counts
    bounds = np.append(0, ends[:, -1]) if n else np.zeros(n_parts + 1, np.int64)
    dealt, rows = np.empty(n, np.uint64), np.empty(n, np.int32)
    over_ranges(lambda a, b: _deal(hashes, cuts, places, dealt, rows, a, b), work)
    first = hashes.view(np.int32)[:n]  # the hashes have been copied, so their memory is reused
    sizes = np.diff(bounds)
    n_slots = 1 << max(3, int(2 * sizes.max() - 1).bit_length())

    def match(low: int, high: int) -> None:
        _match(text, at, length, dealt, rows, bounds, np.empty(n_slots, np.int32), first, low, high)

    over_ranges(match, sizes)
    return first


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


@kernel
def _count_new(
    first: NDArray[np.int32], cuts: NDArray[np.int64], n_new: NDArray[np.int64], low: int, high: int
) -> None:
    """Count, per block, the pieces that no equal one precedes."""
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            n_new[block] += first[i] == i


@kernel
def _number_new(
    first: NDArray[np.int32],
    cuts: NDArray[np.int64],
    before: NDArray[np.int64],
    codes: NDArray[np.int32],
    where: NDArray[np.int32],
    low: int,
    high: int,
) -> None:
    """Give each distinct piece of some blocks a number; write it, and which piece it is."""
    for block in range(low, high):
        n = before[block]
        for i in range(cuts[block], cuts[block + 1]):
            if first[i] == i:
                codes[i], where[n] = n, i
                n += 1


@kernel
def _number_others(
    first: NDArray[np.int32], cuts: NDArray[np.int64], codes: NDArray[np.int32], low: int, high: int
) -> None:
    """Write the number of every other piece: that of the first equal one."""
    for i in range(cuts[low], cuts[high]):
        if first[i] != i:
            codes[i] = codes[first[i]]


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
        shift = at[chosen[i]] - starts[i]
        j, stop = starts[i], starts[i + 1]
        while j < stop and j + _WORD <= end and j + _WORD + shift <= len(text):
            store_word(out, j, load_word(text, j + shift))
            j += _WORD
        while j < stop:
            out[j] = text[j + shift]
            j += 1


@kernel
def _hash(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    cuts: NDArray[np.int64],
    counts: NDArray[np.int64],
    low: int,
    high: int,
) -> None:
    """Hash the pieces of some blocks and count, per block, how many fall into each part.

    A short piece's hash is a one-to-one mixing of its bytes and length (even); a long piece's is odd.
    """
    parts = np.uint64(counts.shape[1] - 1)
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            a, n = at[i], length[i]
            if n <= _SHORT:
                x = np.uint64(n) << (_BYTE * np.uint64(n)) | _leading_bytes(text, a, n)
                x = (x * _MIX_1) & _LOW63
                x ^= x >> _HALF
                x = ((x * _MIX_2) & _LOW63) << _ONE
            else:
                x = np.uint64(n) * _MIX_1
                for j in range(0, n, _WORD):
                    x = (x ^ _leading_bytes(text, a + j, min(n - j, _WORD))) * _MIX_2
                    x ^= x >> _HALF
                x = (x * _MIX_1) | _ONE
            hashes[i] = x
            counts[block, (x >> _ONE) & parts] += 1


@kernel
def _deal(
    hashes: NDArray[np.uint64],
    cuts: NDArray[np.int64],
    places: NDArray[np.int64],
    dealt: NDArray[np.uint64],
    rows: NDArray[np.int32],
    low: int,
    high: int,
) -> None:
    """Move hashes to their parts, keeping their order, and note which piece each belongs to."""
    parts = np.uint64(places.shape[1] - 1)
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            own = (hashes[i] >> _ONE) & parts
            place = places[block, own]
            places[block, own] = place + 1
            dealt[place] = hashes[i]
            rows[place] = i


@part()
def _equal(text: NDArray[np.uint8], a: int, b: int, n: int) -> bool:
    """Tell whether two pieces of n bytes are the same."""
    j = 0
    while j + _WORD <= n:
        if load_word(text, a + j) != load_word(text, b + j):
            return False
        j += _WORD
    while j < n:
        if text[a + j] != text[b + j]:
            return False
        j += 1
    return True


@kernel
def _match(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    dealt: NDArray[np.uint64],
    rows: NDArray[np.int32],
    bounds: NDArray[np.int64],
    slots: NDArray[np.int32],
    first: NDArray[np.int32],
    low: int,
    high: int,
) -> None:
    """Find each piece's first equal within its part by open addressing; `slots` is large enough for any part."""
    for own in range(low, high):
        begin, end = bounds[own], bounds[own + 1]
        bits = 3
        while (1 << bits) < 2 * (end - begin):
            bits += 1
        shift, mask = np.uint64(64 - bits), (1 << bits) - 1
        for free in range(1 << bits):
            slots[free] = 0
        for k in range(begin, end):
            h, row = dealt[k], rows[k]
            s = np.int64(h >> shift)
            first[row] = row
            while slots[s]:  # 0 is free, 1 the first of the part
                other = rows[begin + slots[s] - 1]
                if dealt[begin + slots[s] - 1] == h:
                    same = h & _ONE == 0 or length[other] == length[row]
                    if same and h & _ONE:
                        same = _equal(text, at[row], at[other], length[row])
                    if same:
                        first[row] = other
                        break
                s = (s + 1) & mask
            if first[row] == row:
                slots[s] = k - begin + 1
