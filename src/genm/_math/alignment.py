"""From lists of document codes per query to one block of rows per query: the union, code downwards.

Every list (K rankers, then perhaps the judgments) writes its codes into one long array of entries, grouped by
query and then by list. One sort per query finds equal codes; afterwards the same array holds, for each entry,
its row inside the query, or NOWHERE for a judged document that no ranker returned.
"""

import numpy as np

from genm._math.parallel import kernel, part
from genm._typing import Bools, Codes, Floats, Ints, Words

NOWHERE = -1

_FEW = 24  # so many entries are sorted by insertion
_MANY, _NARROW, _WIDEST = 1024, 8, 12  # bits of a digit of a code, for fewer entries and for so many
_DIGITS = 4  # of the largest code
_ENTRY_BITS, _ENTRY = np.uint64(32), np.uint64((1 << 32) - 1)


@kernel
def enter_codes(
    starts: Ints, doc: Codes, code: Codes, own: Ints, at: Ints, after: Ints, low: int, high: int, entries: Codes
) -> None:
    """Write the documents of one list, as codes of the common table, into entries[at[q]:after[q]].

    own[q] is the list's own number of the common query q, or negative where it has none.
    """
    for q in range(low, high):
        if own[q] < 0:
            continue
        shift = starts[own[q]] - at[q]
        for entry in range(at[q], after[q]):
            entries[entry] = code[doc[entry + shift]]


@kernel(makes_arrays=True)
def match_entries(
    bounds: Ints,
    judged: Ints,
    n_codes: int,
    low: int,
    high: int,
    entries: Codes,
    codes: Codes,
    n_rows: Ints,
    n_left: Ints,
) -> None:
    """Turn entries[bounds[q]:bounds[q + 1]] from codes into rows; judged[q] is where the judgments begin.

    The rows' codes go to codes[bounds[q]:], their number to n_rows[q]; n_left[q] counts judged documents
    without a row.
    """
    longest = 1
    for q in range(low, high):
        longest = max(longest, bounds[q + 1] - bounds[q])
    keys, spare = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    counts = np.empty((_DIGITS, 1 << _WIDEST), np.int32)
    for q in range(low, high):
        begin, n = bounds[q], bounds[q + 1] - bounds[q]
        _sort_entries(entries[begin : begin + n], n_codes, keys, spare, counts)
        rows, left, row, last = np.int64(0), np.int64(0), np.int64(NOWHERE), ~np.uint64(0)
        n_held = np.uint64(judged[q] - begin)
        for i in range(n):
            place, code = keys[i] & _ENTRY, keys[i] >> _ENTRY_BITS
            is_new = np.int64(
                code != last
            )  # without a branch: no processor predicts how many lists hold a document
            last = code
            rows += is_new
            row = rows - 1 if row != NOWHERE or is_new else row
            if place >= n_held and is_new:
                # The sort is stable, so a group begins with its earliest list; judgments come last.
                row = np.int64(NOWHERE)
                rows -= 1
                left += 1
            if row != NOWHERE:
                codes[begin + row] = np.int32(np.int64(n_codes - 1) - np.int64(code))
            entries[begin + np.int64(place)] = row
        n_rows[q], n_left[q] = rows, left


@part()
def _sort_entries(entries: Codes, n_codes: int, keys: Words, spare: Words, counts: Codes) -> None:
    """Write keys, in ascending order, of which the lowest 32 bits are an entry's place.

    They sort by code downwards, equal codes by place. A radix sort that counts all digits in one pass.
    """
    n = len(entries)
    if n <= _FEW:
        for i in range(n):
            key, j = (np.uint64(n_codes - 1 - entries[i]) << _ENTRY_BITS) | np.uint64(i), i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = key
        return
    bits, most = 1, _WIDEST if n >= _MANY else _NARROW
    while n_codes - 1 >> bits > 0:
        bits += 1
    n_digits = (bits + most - 1) // most
    width = (bits + n_digits - 1) // n_digits
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for digit in range(n_digits):
        for value in range(1 << width):
            counts[digit, value] = 0
    for i in range(n):
        code = np.uint64(n_codes - 1 - entries[i])
        keys[i] = (code << _ENTRY_BITS) | np.uint64(i)
        for digit in range(n_digits):
            counts[digit, (code >> np.uint64(width * digit)) & mask] += np.int32(1)
    source, target = keys, spare
    for digit in range(n_digits):
        total, own = np.int32(0), counts[digit]
        for value in range(1 << width):
            count = own[value]
            own[value] = total
            total += count
        shift = _ENTRY_BITS + np.uint64(width * digit)
        for i in range(n):
            value = (source[i] >> shift) & mask
            place = own[value]
            own[value] = place + np.int32(1)
            target[np.uint64(place)] = source[i]
        source, target = target, source
    if n_digits & 1:
        for i in range(n):
            keys[i] = source[i]


@kernel
def place_scores(
    starts: Ints,
    score: Floats,
    own: Ints,
    at: Ints,
    after: Ints,
    entries: Codes,
    row_starts: Ints,
    column: int,
    low: int,
    high: int,
    raw: Floats,
    retrieved: Bools,
) -> None:
    """Write one ranker's scores into its column of (rows, K)."""
    for q in range(low, high):
        if own[q] < 0:
            continue
        shift = starts[own[q]] - at[q]
        for entry in range(at[q], after[q]):
            row = row_starts[q] + entries[entry]
            raw[row, column] = score[entry + shift]
            retrieved[row, column] = True


@kernel
def place_codes(bounds: Ints, codes: Codes, row_starts: Ints, low: int, high: int, doc: Codes) -> None:
    """Close the gaps between the queries' codes."""
    for q in range(low, high):
        shift = bounds[q] - row_starts[q]
        for row in range(row_starts[q], row_starts[q + 1]):
            doc[row] = codes[row + shift]


@kernel
def count_marks(marks: Bools, starts: Ints, low: int, high: int, counts: Ints) -> None:
    """Count each query's marks."""
    for q in range(low, high):
        n = np.int64(0)
        for i in range(starts[q], starts[q + 1]):
            n += np.int64(marks[i])
        counts[q] = n


@kernel(makes_arrays=True)
def count_shared(ranks: Codes, marks: Bools, starts: Ints, depths: Ints, shared: Floats, marked: Floats) -> None:
    """Average over the queries, at each depth, of the lists' overlap and of their share of marked rows.

    Depths rise. Overlap is intersection over union. Queries for which a list (for overlap: both lists) is empty do
    not count; without any other, the share is 0.
    """
    n_depths, n_lists = len(depths), ranks.shape[1]
    level = np.empty(n_lists, np.int64)
    n_both, n_known = np.zeros((n_depths, n_lists, n_lists)), np.zeros((n_depths, n_lists))
    for q in range(len(starts) - 1):
        both, known = np.zeros((n_depths, n_lists, n_lists)), np.zeros((n_depths, n_lists))
        for row in range(starts[q], starts[q + 1]):
            for a in range(n_lists):
                level[a] = n_depths
                if 0 < ranks[row, a] <= depths[n_depths - 1]:
                    d = 0
                    while ranks[row, a] > depths[d]:
                        d += 1
                    level[a] = d
                    known[d, a] += marks[row]
                    for b in range(a + 1):
                        if level[b] < n_depths:
                            both[max(d, level[b]), a, b] += 1.0
        for d in range(n_depths):
            for a in range(n_lists):
                if d > 0:  # a depth holds what the lower ones hold
                    known[d, a] += known[d - 1, a]
                    for b in range(a + 1):
                        both[d, a, b] += both[d - 1, a, b]
                if both[d, a, a] > 0.0:
                    marked[d, a] += known[d, a] / both[d, a, a]
                    n_known[d, a] += 1.0
                for b in range(a + 1):
                    union = both[d, a, a] + both[d, b, b] - both[d, a, b]
                    if union > 0.0:
                        shared[d, a, b] += both[d, a, b] / union
                        n_both[d, a, b] += 1.0
    for d in range(n_depths):
        for a in range(n_lists):
            marked[d, a] /= max(n_known[d, a], 1.0)
            for b in range(a + 1):
                shared[d, a, b] /= max(n_both[d, a, b], 1.0)
                shared[d, b, a] = shared[d, a, b]


@kernel(makes_arrays=True)
def count_tied(raw: Floats, ranks: Codes, starts: Ints, low: int, high: int, n_tied: Ints, n_found: Ints) -> None:
    """Count, per query and list, the documents, and those with the score of another one of the list."""
    longest = 1
    for q in range(low, high):
        longest = max(longest, starts[q + 1] - starts[q])
    scores = np.empty(longest)  # by rank
    for q in range(low, high):
        for k in range(ranks.shape[1]):
            n = 0
            for row in range(starts[q], starts[q + 1]):
                if ranks[row, k] > 0:
                    scores[ranks[row, k] - 1] = raw[row, k]
                    n += 1
            for i in range(n):
                after = i + 1 < n and scores[i + 1] == scores[i]
                n_tied[q, k] += after or (i > 0 and scores[i - 1] == scores[i])
            n_found[q, k] = n
