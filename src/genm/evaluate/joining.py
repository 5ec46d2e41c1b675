"""Which documents of a run are judged: the one place where evaluating meets ids.

A run's table holds millions of ids, the judgments' far fewer. Most of the run's ids are told to be strangers by a
glance at their last eight bytes; only the others are compared in full.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges
from genm.ids import Ids, find

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_WORD = 8
_BLOCK = 1 << 16
_MANY = 8
"""How many times larger a table must be before looking at its ids one by one pays."""
_BITS_EACH = 16
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def codes_in(table: Ids, wanted: Ids) -> NDArray[np.int32]:
    """Return, for every id of `wanted`, its code in `table`, or -1: `find` for a few ids in a large table."""
    if table is wanted:
        return np.arange(len(wanted), dtype=np.int32)
    if len(table) <= _MANY * len(wanted):
        return find(table, wanted)
    known = _possible(table, wanted)
    found = find(wanted, table.take(known))
    codes = np.full(len(wanted), -1, np.int32)
    hit = found >= 0
    codes[found[hit]] = known[hit]
    return codes


def _possible(table: Ids, wanted: Ids) -> Ints:
    """Return the codes of all ids of `table` that are in `wanted`, and of some that are not."""
    n_bits = max(10, (_BITS_EACH * len(wanted)).bit_length())
    seen = np.zeros(1 << (n_bits - 6), np.uint64)
    before = np.zeros(_WORD, np.uint8)  # so that a whole word can be read at the end of every id
    _mark(np.concatenate((before, wanted.text)), wanted.starts + _WORD, seen, 64 - n_bits)

    text, starts = np.require(table.text, np.uint8, ("C", "W")), np.require(table.starts, np.int64, ("C", "W"))
    cuts = np.append(np.arange(0, len(table), _BLOCK), len(table))
    codes, counts = np.empty(len(table), np.int64), np.zeros(len(cuts) - 1, np.int64)

    def work(low: int, high: int) -> None:
        _look_up(low, high, text, starts, seen, 64 - n_bits, cuts, codes, counts)

    over_ranges(work, np.diff(cuts))
    return np.concatenate([codes[a : a + n] for a, n in zip(cuts[:-1], counts, strict=True)])


@kernel
def _glance(text: Bytes, begin: int, end: int, shift: int) -> int:
    """Return a number made of an id's length and its last eight bytes, or all of a shorter one."""
    # written out, as the compiler makes one load of it
    word = (
        np.uint64(text[end - 8])
        | np.uint64(text[end - 7]) << np.uint64(8)
        | np.uint64(text[end - 6]) << np.uint64(16)
        | np.uint64(text[end - 5]) << np.uint64(24)
        | np.uint64(text[end - 4]) << np.uint64(32)
        | np.uint64(text[end - 3]) << np.uint64(40)
        | np.uint64(text[end - 2]) << np.uint64(48)
        | np.uint64(text[end - 1]) << np.uint64(56)
    )
    if end - begin < 8:
        word = word >> np.uint64(64 - 8 * (end - begin)) if end > begin else np.uint64(0)
    word = (word ^ np.uint64(end - begin) * _MIX) * _SPREAD
    word ^= word >> np.uint64(32)
    return np.int64((word * _MIX) >> np.uint64(shift))  # type: ignore[return-value]  # an int to the compiler


@kernel
def _mark(text: Bytes, starts: Ints, seen: Words, shift: int) -> None:
    for i in range(len(starts) - 1):
        at = _glance(text, starts[i], starts[i + 1], shift)
        seen[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@kernel
def _look_up(
    low: int,
    high: int,
    text: Bytes,
    starts: Ints,
    seen: Words,
    shift: int,
    cuts: Ints,
    codes: Ints,
    counts: Ints,
) -> None:
    """Write the codes whose number was seen, each block's from its own beginning on."""
    for block in range(low, high):
        at = cuts[block]
        for i in range(cuts[block], cuts[block + 1]):
            codes[at] = i
            if starts[i + 1] < 8:
                at += 1  # no whole word to look at
            else:
                number = _glance(text, starts[i], starts[i + 1], shift)
                at += np.int64((seen[number >> 6] >> np.uint64(number & 63)) & np.uint64(1))
        counts[block] = at - cuts[block]
