"""JSON text as bytes: keys that an object may hold twice, and columns of ids that never become strings.

Every text here has been read by a JSON parser before, so its syntax is right. Hashes begin with a secret number:
nobody can send many keys or ids that meet in one place of a table. Where that happens nevertheless, or the text is
not of the simplest kind, a kernel gives up, and its caller takes the slower way.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, part
from genm._typing import Bools, Codes, Floats, Ints

Bytes = NDArray[np.uint8]

_QUOTE, _BACKSLASH, _COMMA, _SPACE, _LAST_ASCII = ord('"'), ord("\\"), ord(","), ord(" "), 126
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = ord("["), ord("]"), ord("{"), ord("}")
_PRIME = np.uint64(0x100000001B3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_EMPTY = np.uint64(0)
_DEEPEST = 64
_MOST_PROBES = 64
GAVE_UP = -1


@kernel(makes_arrays=True)
def may_repeat_a_key(text: Bytes, secret: np.uint64, table: NDArray[np.uint64]) -> bool:
    """Tell whether an object of the text may hold a key twice; False is certain.

    `table` has a power of two of places, all 0, more than there are keys. A key with a backslash may be another
    spelling of a key, so the answer is True then.
    """
    mask = np.uint64(len(table) - 1)
    object_of = np.zeros(_DEEPEST, np.uint64)  # the number of the object at each level; 0 for a list
    depth, n_objects, awaits_key, at = 0, np.uint64(0), False, 0
    while at < len(text):
        byte = text[at]
        at += 1
        if _COMMA < byte < _OPEN_LIST:  # numbers and colons
            continue
        if byte == _QUOTE:
            start = at
            while text[at] != _QUOTE:
                if text[at] == _BACKSLASH:
                    if awaits_key:
                        return True
                    at += 1
                at += 1
            if awaits_key:
                awaits_key = False
                mark = secret ^ (object_of[depth] * _STEP)
                for place in range(start, at):
                    mark = (mark ^ np.uint64(text[place])) * _PRIME
                mark ^= mark >> _HALF
                if mark == _EMPTY:
                    return True
                slot, n_probes = mark & mask, 0
                while table[slot] != _EMPTY:
                    n_probes += 1
                    if table[slot] == mark or n_probes > _MOST_PROBES:
                        return True
                    slot = (slot + np.uint64(1)) & mask
                table[slot] = mark
            at += 1
        elif byte in (_OPEN_OBJECT, _OPEN_LIST):
            depth += 1
            if depth >= _DEEPEST:
                return True
            object_of[depth] = 0
            if byte == _OPEN_OBJECT:
                n_objects += np.uint64(1)
                object_of[depth] = n_objects
            awaits_key = byte == _OPEN_OBJECT
        elif byte in (_CLOSE_OBJECT, _CLOSE_LIST):
            depth -= 1
            awaits_key = False
        elif byte == _COMMA:
            awaits_key = object_of[depth] != _EMPTY
    return False


@part()
def _after_blanks(text: Bytes, at: int) -> int:
    """Return the first place from `at` on that is not blank."""
    while at < len(text) and text[at] <= _SPACE:
        at += 1
    return at


@kernel
def enter_columns(
    text: Bytes,
    sizes: Ints,
    columns: Ints,
    scores: Floats,
    longest: int,
    secret: np.uint64,
    table: Codes,
    spans: Ints,
    raw: Floats,
    retrieved: Bools,
) -> int:
    """Return how many documents several lists hold, and enter their scores into a row per document.

    `text` has one list of strings after another, sizes[k] of them, for column columns[k]; `scores` has their
    scores. Documents are numbered as they come; spans[row] becomes where the id begins and ends in the text.
    `table` has a power of two of places, all -1, at least twice as many as there are ids. Returns GAVE_UP for
    anything but plain ASCII ids of at most `longest` characters, each once in its list.
    """
    mask = np.uint64(len(table) - 1)
    at, entry, n_docs = 0, 0, 0
    for k in range(len(sizes)):
        for number in range(sizes[k]):
            at = _after_blanks(text, at)
            if at >= len(text) or text[at] != (_OPEN_LIST if number == 0 else _COMMA):
                return GAVE_UP
            at += 1
            at = _after_blanks(text, at)
            if at >= len(text) or text[at] != _QUOTE:
                return GAVE_UP
            at += 1
            start, mark = at, secret
            while at < len(text) and text[at] != _QUOTE:
                byte = text[at]
                if byte < _SPACE or byte > _LAST_ASCII or byte == _BACKSLASH:
                    return GAVE_UP
                mark = (mark ^ np.uint64(byte)) * _PRIME
                at += 1
            if at >= len(text) or at == start or at - start > longest:
                return GAVE_UP
            slot, n_probes = (mark ^ (mark >> _HALF)) & mask, 0
            while True:
                row = table[slot]
                if row < 0:
                    row = n_docs
                    table[slot] = row
                    spans[row, 0], spans[row, 1] = start, at
                    n_docs += 1
                    break
                if spans[row, 1] - spans[row, 0] == at - start:
                    same = True
                    for place in range(at - start):
                        if text[start + place] != text[spans[row, 0] + place]:
                            same = False
                            break
                    if same:
                        break
                n_probes += 1
                if n_probes > _MOST_PROBES:
                    return GAVE_UP
                slot = (slot + np.uint64(1)) & mask
            if retrieved[row, columns[k]]:
                return GAVE_UP
            retrieved[row, columns[k]] = True
            raw[row, columns[k]] = scores[entry]
            entry += 1
            at += 1
        at = _after_blanks(text, at)
        if at >= len(text) or text[at] != _CLOSE_LIST:
            return GAVE_UP
        at += 1
    return n_docs


@kernel
def write_ids(text: Bytes, spans: Ints, order: Ints, out: Bytes) -> int:
    """Write the ids of some rows as a JSON list; returns its length. `out` is two bytes longer than the text."""
    out[0] = _OPEN_LIST
    at = 1
    for number in range(len(order)):
        if number > 0:
            out[at] = _COMMA
            at += 1
        for place in range(spans[order[number], 0] - 1, spans[order[number], 1] + 1):  # with its quotes
            out[at] = text[place]
            at += 1
    out[at] = _CLOSE_LIST
    return at + 1
