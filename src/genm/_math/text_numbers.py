"""Texts as integers that sort as the texts do, and the sorted union of several tables of texts.

A text's integer is written in mixed radix, one digit per position: the place of its byte among the bytes that any
text has at that position, or 0 where the text has ended and others go on. Positions where all texts agree take no
room, so the ids of most collections fit. Integers are dealt into parts by their highest bits, each with its row's
number below what is left of it. A part is sorted in a core's cache, and its texts are written from the integers.
"""

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.byte_search import load_word, store_word
from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Bools, Bytes, Codes, Ints, Words

LONGEST = 64
"""Bytes of the longest text that may become an integer."""
_BLOCK = 1 << 16
_PART_BITS = 14  # about as many rows per part: small enough for a core's cache
_LARGEST_PART = 1 << 18
_WORD = 8
_ONE, _PAIR = np.uint64(1), np.uint64(0xFFFF)
_GROUP = 1 << 14  # values of some digits that are turned into bytes at once
_DIGIT = 11  # bits that a pass of the sort looks at


class Alphabet(NamedTuple):
    """How texts and integers correspond."""

    values: Words
    """(pairs of positions, 65536) what two bytes add to the integer of a text that has them there."""
    n_bits: int
    """Of the highest integer."""
    divisors: Words
    """Of each group of neighbouring positions, what its value is multiplied by."""
    words: Words
    """(groups, values) up to eight bytes of text, the first in the lowest bits."""
    sizes: Codes
    """(groups, values) how many bytes those are."""


class Table(NamedTuple):
    """Texts: text[starts[i]:starts[i + 1]]."""

    text: Bytes
    starts: Ints


def unite_texts(tables: Sequence[Table]) -> tuple[Table, list[Codes]] | None:
    """Return all texts in ascending order, each once, and for each table the places of its texts there.

    None where the integers would not fit, or most of them fall into one part.
    """
    alphabet = _alphabet(tables)
    if alphabet is None:
        return None
    rows = _sums(np.array([len(table.starts) - 1 for table in tables]))
    n = int(rows[-1])
    shift = max(0, alphabet.n_bits - max(0, n.bit_length() - _PART_BITS))
    numbers, cuts, counts = _numbers(tables, alphabet, shift, rows)
    bounds, work = _sums(counts.sum(axis=0)), np.diff(cuts)
    sizes = np.diff(bounds)
    largest = int(sizes.max())
    place_bits = largest.bit_length()
    if largest > _LARGEST_PART or shift + place_bits > 64:
        return None
    places = np.cumsum(counts, axis=0) - counts  # inside the part
    dealt, there = np.empty(n, np.uint64), places.copy()
    over_ranges(lambda low, high: _deal(numbers, shift, place_bits, cuts, bounds, there, dealt, low, high), work)
    n_texts, n_bytes = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)

    def sort(low: int, high: int) -> None:
        spare = np.empty(largest, np.uint64)
        _sort_parts(dealt, bounds, spare, shift, place_bits, alphabet, n_texts, n_bytes, low, high)

    over_ranges(sort, sizes)
    first, at = _sums(n_texts), _sums(n_bytes)
    by_part, codes = np.empty(n, np.int32), np.empty(n, np.int32)
    text, starts = np.empty(at[-1], np.uint8), np.empty(first[-1] + 1, np.int64)
    starts[-1] = at[-1]

    def write(low: int, high: int) -> None:
        _write_texts(dealt, bounds, shift, place_bits, alphabet, first, at, text, starts, by_part, low, high)

    over_ranges(write, sizes)
    over_ranges(lambda low, high: _collect(numbers, shift, cuts, bounds, places, by_part, codes, low, high), work)
    return Table(text, starts), np.split(codes, rows[1:-1])


def _numbers(tables: Sequence[Table], alphabet: Alphabet, shift: int, rows: Ints) -> tuple[Words, Ints, Ints]:
    """Return the integers of all texts, bounds of blocks of them, and how many of a block fall into each part."""
    n_parts = 1 << (alphabet.n_bits - shift)
    blocks = [_blocks(len(table.starts) - 1) for table in tables]
    counts = [np.zeros((len(cuts) - 1, n_parts), np.int64) for cuts in blocks]
    numbers = np.empty(rows[-1], np.uint64)
    for t, (table, cuts) in enumerate(zip(tables, blocks, strict=True)):

        def number(low: int, high: int, t: int = t, table: Table = table, cuts: Ints = cuts) -> None:
            own = numbers[rows[t] : rows[t + 1]]
            _number_texts(*table, alphabet.values, shift, own, cuts, counts[t], low, high)

        over_ranges(number, np.diff(cuts))
    together = [own[:-1] + begin for own, begin in zip(blocks, rows[:-1], strict=True)]
    return numbers, np.append(np.concatenate(together), rows[-1]), np.concatenate(counts)


def _alphabet(tables: Sequence[Table]) -> Alphabet | None:
    """Return how the texts become integers; None if they are too long, hold zeros, or do not fit 63 bits."""
    lengths = [int(_longest(table.starts)) for table in tables]
    longest = max(lengths)
    if longest > LONGEST or any(table.text.min(initial=1) == 0 for table in tables):
        return None  # a zero stands for what comes after the end
    occur = _pairs_of(tables, -(-longest // _WORD) * 4)
    symbols = [np.flatnonzero(occur[j // 2].any(axis=j % 2)) for j in range(longest)]
    weights = [1] * (longest + 1)
    for j in reversed(range(longest)):
        weights[j] = weights[j + 1] * len(symbols[j])
    if weights[0] > 1 << 63:
        return None
    one = np.zeros((2 * len(occur), 256), np.uint64)
    for j, own in enumerate(symbols):
        one[j, own] = np.arange(len(own), dtype=np.uint64) * np.uint64(weights[j + 1])
    values = np.zeros((len(occur), 1 << 16), np.uint64)
    for pair, seen in enumerate(occur):
        second, first = np.nonzero(seen)
        values[pair, second * 256 + first] = one[2 * pair, first] + one[2 * pair + 1, second]
    groups = _groups([len(own) for own in symbols])
    words, sizes = np.zeros((len(groups), _GROUP), np.uint64), np.zeros((len(groups), _GROUP), np.int32)
    for g, (low, high) in enumerate(groups):
        value = np.arange(weights[low] // weights[high])
        for place, j in enumerate(range(low, high)):
            letter = symbols[j][value // (weights[j + 1] // weights[high]) % len(symbols[j])]
            words[g, : len(value)] |= letter.astype(np.uint64) << np.uint64(8 * place)
            sizes[g, : len(value)] += letter > 0
    divisors = np.array([weights[high] for _, high in groups], np.uint64)
    return Alphabet(values, (weights[0] - 1).bit_length(), divisors, words, sizes)


def _pairs_of(tables: Sequence[Table], n_pairs: int) -> Bools:
    """Return which bytes occur together at two neighbouring positions: (pairs, second byte, first byte)."""
    found, writing = np.zeros((n_pairs, 1 << 16), np.bool_), threading.Lock()
    for table in tables:
        cuts = _blocks(len(table.starts) - 1)

        def mark(low: int, high: int, table: Table = table, cuts: Ints = cuts) -> None:
            own = np.zeros_like(found)
            _mark_pairs(*table, cuts[low], cuts[high], own)
            with writing:
                np.logical_or(found, own, out=found)

        over_ranges(mark, np.diff(cuts))
    return found.reshape(n_pairs, 256, 256)


def _groups(bases: Sequence[int]) -> list[tuple[int, int]]:
    """Return ranges of positions, of up to eight bytes and _GROUP values each."""
    groups, low, n_values = list[tuple[int, int]](), 0, 1
    for j, base in enumerate(bases):
        if j - low == _WORD or n_values * base > _GROUP:
            groups.append((low, j))
            low, n_values = j, 1
        n_values *= base
    return [*groups, (low, len(bases))]


def _sums(counts: Ints) -> Ints:
    """Return what comes before each, and the sum of all."""
    return np.append(0, np.cumsum(counts))


def _blocks(n: int) -> Ints:
    """Return the bounds of blocks of n rows, the unit of work of a thread."""
    return np.append(np.arange(0, n, _BLOCK), n)


@part()
def _word(text: Bytes, at: int, n: int) -> np.uint64:
    """Return up to eight of n bytes, the first in the lowest bits, and zeros above them."""
    if n >= _WORD:
        return load_word(text, at)
    if n > 0 and at + _WORD <= len(text):
        return load_word(text, at) & ((_ONE << np.uint64(8 * n)) - _ONE)
    word = np.uint64(0)
    for j in range(n):
        word |= np.uint64(text[at + j]) << np.uint64(8 * j)
    return word


@kernel
def _longest(starts: Ints) -> np.int64:
    """Return the length of the longest text."""
    longest = np.int64(0)
    for i in range(len(starts) - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


@kernel
def _mark_pairs(text: Bytes, starts: Ints, low: int, high: int, occur: Bools) -> None:
    """Mark which pairs of bytes occur at which two positions; zeros stand for what comes after the end."""
    for i in range(low, high):
        at, n, pair = starts[i], starts[i + 1] - starts[i], 0
        while pair < len(occur):
            word = _word(text, at, n)
            for j in range(4):
                occur[pair + j, (word >> np.uint64(16 * j)) & _PAIR] = True
            at, n, pair = at + _WORD, n - _WORD, pair + 4


@kernel
def _number_texts(
    text: Bytes,
    starts: Ints,
    values: Words,
    shift: int,
    numbers: Words,
    cuts: Ints,
    counts: NDArray[np.int64],
    low: int,
    high: int,
) -> None:
    """Write the integers of the texts of some blocks and count, per block, how many fall into each part."""
    part_of = np.uint64(shift)
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            at, n, number, pair = starts[i], starts[i + 1] - starts[i], np.uint64(0), 0
            while pair < len(values):
                word = _word(text, at, n)
                for j in range(4):
                    number += values[pair + j, (word >> np.uint64(16 * j)) & _PAIR]
                at, n, pair = at + _WORD, n - _WORD, pair + 4
            numbers[i] = number
            counts[block, number >> part_of] += 1


@kernel
def _deal(
    numbers: Words,
    shift: int,
    place_bits: int,
    cuts: Ints,
    bounds: Ints,
    places: Ints,
    dealt: Words,
    low: int,
    high: int,
) -> None:
    """Move the integers to their parts: what is left of them there, and below it the place inside the part."""
    above, below, mask = np.uint64(shift), np.uint64(place_bits), (_ONE << np.uint64(shift)) - _ONE
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            own = numbers[i] >> above
            place = places[block, own]
            places[block, own] = place + 1
            dealt[bounds[own] + place] = ((numbers[i] & mask) << below) | np.uint64(place)


@kernel
def _collect(
    numbers: Words,
    shift: int,
    cuts: Ints,
    bounds: Ints,
    places: Ints,
    by_part: Codes,
    codes: Codes,
    low: int,
    high: int,
) -> None:
    """Take the codes back from the parts, the way the integers went there."""
    above = np.uint64(shift)
    for block in range(low, high):
        for i in range(cuts[block], cuts[block + 1]):
            own = numbers[i] >> above
            place = places[block, own]
            places[block, own] = place + 1
            codes[i] = by_part[bounds[own] + place]


@part()
def _number_of(own: int, shift: int, rest: np.uint64) -> np.uint64:
    return (np.uint64(own) << np.uint64(shift)) | rest


@kernel(makes_arrays=True)
def _sort_parts(
    dealt: Words,
    bounds: Ints,
    spare: Words,
    shift: int,
    place_bits: int,
    alphabet: Alphabet,
    n_texts: Ints,
    n_bytes: Ints,
    low: int,
    high: int,
) -> None:
    """Sort parts by all bits above the place, and count their different texts and the bytes of these."""
    n_passes = (shift + _DIGIT - 1) // _DIGIT
    width = (shift + n_passes - 1) // n_passes if n_passes else 0
    below, mask = np.uint64(place_bits), np.uint64((1 << width) - 1)
    counts, divisors = np.empty(1 << width, np.int64), alphabet.divisors
    for own in range(low, high):
        begin, n = bounds[own], bounds[own + 1] - bounds[own]
        source, target = dealt[begin : begin + n], spare[:n]
        for done in range(n_passes):
            digit = np.uint64(place_bits + done * width)
            counts[:] = 0
            for i in range(n):
                counts[(source[i] >> digit) & mask] += 1
            total = 0
            for slot in range(len(counts)):
                count = counts[slot]
                counts[slot] = total
                total += count
            for i in range(n):
                own_slot = (source[i] >> digit) & mask
                place = counts[own_slot]
                counts[own_slot] = place + 1
                target[place] = source[i]
            source, target = target, source
        if n_passes & 1:
            for i in range(n):
                target[i] = source[i]
        for i in range(n):
            if i == 0 or (source[i] >> below) != (source[i - 1] >> below):
                n_texts[own] += 1
                number = _number_of(own, shift, source[i] >> below)
                for g in range(len(divisors)):
                    value = number // divisors[g] if g + 1 < len(divisors) else number
                    number -= value * divisors[g]
                    n_bytes[own] += alphabet.sizes[g, value]


@kernel
def _write_texts(
    dealt: Words,
    bounds: Ints,
    shift: int,
    place_bits: int,
    alphabet: Alphabet,
    first: Ints,
    begins: Ints,
    text: Bytes,
    starts: Ints,
    by_part: Codes,
    low: int,
    high: int,
) -> None:
    """Write the different texts of sorted parts, and the number of each integer's text, at its place in the part.

    Whole words may write over the bytes of later texts, which come after them.
    """
    below, mask = np.uint64(place_bits), (_ONE << np.uint64(place_bits)) - _ONE
    end, divisors = begins[high], alphabet.divisors
    for own in range(low, high):
        code, at = first[own] - 1, begins[own]
        for i in range(bounds[own], bounds[own + 1]):
            if i == bounds[own] or (dealt[i] >> below) != (dealt[i - 1] >> below):
                code += 1
                starts[code] = at
                number = _number_of(own, shift, dealt[i] >> below)
                for g in range(len(divisors)):
                    value = number // divisors[g] if g + 1 < len(divisors) else number
                    number -= value * divisors[g]
                    word, n = alphabet.words[g, value], alphabet.sizes[g, value]
                    if at + _WORD <= end:
                        store_word(text, at, word)
                    else:
                        for j in range(n):
                            text[at + j] = np.uint8((word >> np.uint64(8 * j)) & np.uint64(255))
                    at += n
            by_part[bounds[own] + np.int64(dealt[i] & mask)] = code
