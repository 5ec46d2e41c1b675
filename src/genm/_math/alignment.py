"""From lists of document codes per query to one block of rows per query: the union, code downwards.

Every list (K rankers, then perhaps the judgments) writes its codes into one long array of entries, grouped by
query and then by list. One sort per query finds equal codes; afterwards the same array holds, for each entry,
its row inside the query, or NOWHERE for a judged document that no ranker returned.
"""

import numpy as np

from genm._math.parallel import kernel
from genm._math.sorting import N_COUNTS, sort_pairs
from genm._typing import Bools, Codes, Floats, Ints

NOWHERE = -1


@kernel
def enter_codes(
    starts: Ints, doc: Codes, code: Codes, place: Ints, at: Ints, after: Ints, low: int, high: int, entries: Codes
) -> None:
    """Write the documents of one list, as codes of the common table, into entries[at[q]:after[q]].

    place[query] is the list's query in the common order, or negative where it has none.
    """
    for query in range(low, high):
        q = place[query]
        if q < 0:
            continue
        shift = starts[query] - at[q]
        for entry in range(at[q], after[q]):
            entries[entry] = code[doc[entry + shift]]


@kernel
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
    keys, items = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    spare_keys, spare_items = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    counts = np.empty(N_COUNTS, np.int64)
    bits = 0
    while (1 << bits) < n_codes:
        bits += 1
    for q in range(low, high):
        begin, n = bounds[q], bounds[q + 1] - bounds[q]
        for i in range(n):
            keys[i], items[i] = np.uint64(n_codes - 1 - entries[begin + i]), i
        sort_pairs(keys, items, n, bits, spare_keys, spare_items, counts)
        rows, left, row = 0, 0, NOWHERE
        for i in range(n):
            if i == 0 or keys[i] != keys[i - 1]:
                # The sort is stable, so a group begins with its earliest list; judgments come last.
                if begin + items[i] < judged[q]:
                    row = rows
                    codes[begin + row] = np.int32(n_codes - 1 - np.int64(keys[i]))
                    rows += 1
                else:
                    row = NOWHERE
                    left += 1
            entries[begin + items[i]] = row
        n_rows[q], n_left[q] = rows, left


@kernel
def place_scores(
    starts: Ints,
    score: Floats,
    place: Ints,
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
    for query in range(low, high):
        q = place[query]
        if q < 0:
            continue
        shift = starts[query] - at[q]
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
def count_shared(ranks: Codes, marks: Bools, starts: Ints, depths: Ints, shared: Floats, marked: Floats) -> None:
    """Average over the queries, at each depth, of the lists' overlap and of their share of marked rows.

    Overlap is intersection over union. Queries for which a list (for overlap: both lists) is empty do not
    count; without any other, the share is 0.
    """
    n_lists = ranks.shape[1]
    both, known = np.zeros((n_lists, n_lists)), np.zeros(n_lists)
    for d in range(len(depths)):
        n_both, n_known = np.zeros((n_lists, n_lists)), np.zeros(n_lists)
        for q in range(len(starts) - 1):
            both[:] = 0.0
            known[:] = 0.0
            for row in range(starts[q], starts[q + 1]):
                for a in range(n_lists):
                    if 0 < ranks[row, a] <= depths[d]:
                        known[a] += marks[row]
                        for b in range(a + 1):
                            both[a, b] += 0 < ranks[row, b] <= depths[d]
            for a in range(n_lists):
                if both[a, a] > 0.0:
                    marked[d, a] += known[a] / both[a, a]
                    n_known[a] += 1.0
                for b in range(a + 1):
                    union = both[a, a] + both[b, b] - both[a, b]
                    if union > 0.0:
                        shared[d, a, b] += both[a, b] / union
                        n_both[a, b] += 1.0
        for a in range(n_lists):
            marked[d, a] /= max(n_known[a], 1.0)
            for b in range(a + 1):
                shared[d, a, b] /= max(n_both[a, b], 1.0)
                shared[d, b, a] = shared[d, a, b]
