"""The ranks of the judged documents in a ranking, and the ranks that ties could have given them.

Ranks under given scores are counted without sorting the other rows. Hits are laid out as `measures` reads them:
those of query q start at judged_starts[q], n_hits[q] of them, in ranking order. `first` and `last` are the
lowest and highest rank that documents with the hit's score take up.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges, part
from genm._math.sorting import sort_downwards
from genm._typing import Bytes, Codes, Floats, Ints

_NEAR_BITS = 13

_FEW = 100  # up to here comparing a query's rows with each judged one beats bisection


class Hits(NamedTuple):
    """Judged documents that were retrieved."""

    n_hits: Ints
    rank: Ints
    grade: Codes
    first: Ints
    last: Ints


def as_ints(array: NDArray[np.integer]) -> Ints:
    """Return the array as the kernels know it: compiled once, for contiguous arrays that may be written."""
    return np.require(array, np.int64, ("C", "W"))


def as_codes(array: NDArray[np.integer]) -> Codes:
    """Return the array as the kernels know it."""
    return np.require(array, np.int32, ("C", "W"))


def no_hits(n_queries: int, n_judged: int) -> Hits:
    """Return arrays for as many hits as there are judged documents."""
    ranks = (np.zeros(n_judged, np.int64) for _ in range(3))
    return Hits(np.zeros(n_queries, np.int64), next(ranks), np.zeros(n_judged, np.int32), *ranks)


def descending(judged_starts: Ints, grade: Codes) -> Codes:
    """Return the grades of each query from the highest down."""
    query = np.repeat(np.arange(len(judged_starts) - 1), np.diff(judged_starts))
    key = (query << 32) + (2**31 - 1 - grade.astype(np.int64))
    key.sort()
    return (2**31 - 1 - (key & (2**32 - 1))).astype(np.int32)


def hits_of_run(
    low: Ints, high: Ints, doc: Codes, score: Floats, judged_starts: Ints, judged_doc: Codes, grade: Codes
) -> Hits:
    """Find the judged documents in ranked rows: query q's are low[q]:high[q] of `doc` and `score`.

    `judged_doc` is -1 for a document that stands nowhere in `doc`.
    """
    low, high, judged_starts = as_ints(low), as_ints(high), as_ints(judged_starts)
    doc, judged_doc, grade = as_codes(doc), as_codes(judged_doc), as_codes(grade)
    score = np.require(score, np.float64, ("C", "W"))
    hits = no_hits(len(low), len(judged_doc))
    widest = int(np.diff(judged_starts).max(initial=0))
    deepest = int((high - low).max(initial=0))

    def work(begin: int, end: int) -> None:
        near = np.zeros(1 << _NEAR_BITS, np.uint8)
        slots, maybe = np.empty(1 << _bits(4 * widest), np.int64), np.empty(deepest + 1, np.int64)
        _join(begin, end, near, slots, maybe, low, high, doc, score, judged_starts, judged_doc, grade, *hits)

    over_ranges(work, high - low)
    return hits


@part()
def _hash(doc: int) -> int:
    return (doc * 2654435769) & 0xFFFFFFFF


@kernel
def _bits(n: int) -> int:
    """Return the exponent of the first power of 2 that is at least n, and at least 4."""
    bits = 4
    while (1 << bits) < n:
        bits += 1
    return bits


@kernel
def _join(
    begin: int,
    end: int,
    near: Bytes,
    slots: Ints,
    maybe: Ints,
    low: Ints,
    high: Ints,
    doc: Codes,
    score: Floats,
    judged_starts: Ints,
    judged_doc: Codes,
    grade: Codes,
    n_hits: Ints,
    hit_rank: Ints,
    hit_grade: Codes,
    hit_first: Ints,
    hit_last: Ints,
) -> None:
    """Look every row up in a small hash table of the query's judged documents.

    Nearly all rows are strangers: `near`, a table of its own with one byte for each value of a longer hash, turns
    them away with one look.
    """
    for q in range(begin, end):
        a, b, j = low[q], high[q], judged_starts[q]
        bits = _bits(4 * (judged_starts[q + 1] - j))
        shift, mask = 32 - bits, (1 << bits) - 1
        for i in range(mask + 1):
            slots[i] = -1
        for i in range(j, judged_starts[q + 1]):
            if judged_doc[i] >= 0:
                h = _hash(judged_doc[i])
                near[h >> (32 - _NEAR_BITS)] = 1
                at = h >> shift
                while slots[at] >= 0:
                    at = (at + 1) & mask
                slots[at] = i
        n = 0
        tied_from, tied_to = a, a
        n_maybe = 0
        for row in range(a, b):
            maybe[n_maybe] = row
            n_maybe += near[_hash(doc[row]) >> (32 - _NEAR_BITS)]
        for i in range(n_maybe):
            row = maybe[i]
            at = _hash(doc[row]) >> shift
            while slots[at] >= 0 and judged_doc[slots[at]] != doc[row]:
                at = (at + 1) & mask
            if slots[at] < 0:
                continue
            if row >= tied_to:
                tied_from, tied_to = row, row + 1
                while tied_from > a and score[tied_from - 1] == score[row]:
                    tied_from -= 1
                while tied_to < b and score[tied_to] == score[row]:
                    tied_to += 1
            hit_rank[j + n], hit_grade[j + n] = row - a + 1, grade[slots[at]]
            hit_first[j + n], hit_last[j + n] = tied_from - a + 1, tied_to - a
            n += 1
        n_hits[q] = n
        for i in range(j, judged_starts[q + 1]):
            near[_hash(judged_doc[i]) >> (32 - _NEAR_BITS)] = 0


def tie_extremes(judged_starts: Ints, hits: Hits) -> tuple[Hits, Hits] | None:
    """Return the hits as the kindest and as the harshest order of tied documents would rank them.

    Kindest: in each group of equal scores the judged documents come first, the highest grade in front;
    harshest: last, the highest grade at the end. None if no hit is tied with another document.
    """
    at = np.arange(len(hits.rank)) - np.repeat(judged_starts[:-1], np.diff(judged_starts))
    valid = at < np.repeat(hits.n_hits, np.diff(judged_starts))
    tied = np.flatnonzero(valid & (hits.last > hits.first))
    if len(tied) == 0:
        return None
    query = np.searchsorted(judged_starts, tied, side="right")
    first, last, grade = hits.first[tied], hits.last[tied], hits.grade[tied].astype(np.int64)
    new_group = np.ones(len(tied), np.bool_)
    new_group[1:] = (np.diff(query) != 0) | (np.diff(first) != 0)
    group = np.cumsum(new_group) - 1
    opens = np.flatnonzero(new_group)
    place = np.arange(len(tied)) - opens[group]
    size = np.bincount(group)[group]

    def reordered(rank: Ints, key: Ints) -> Hits:
        new_rank, new_grade = hits.rank.copy(), hits.grade.copy()
        new_rank[tied], new_grade[tied] = rank, hits.grade[tied][np.lexsort((key, group))]
        return hits._replace(rank=new_rank, grade=new_grade)

    return reordered(first + place, -grade), reordered(last - size + 1 + place, grade)


def hits_of_scores(
    starts: Ints,
    score: Floats,
    judged_starts: Ints,
    rows_starts: Ints,
    rows: Ints,
    grade: Codes,
    *,
    with_ties: bool = True,
) -> Hits:
    """Rank each query's rows by score downwards, ties in row order, as far as the judged rows ask for it.

    `rows` are the judged rows of all queries, rows_starts[q]:rows_starts[q + 1] those of query q, ascending, with
    their grades. Nothing is sorted but the judged rows: every other row only counts for those it precedes. Without
    `with_ties` the hits' `first` and `last` may be their rank, which is quicker.
    """
    starts, judged_starts, rows_starts, rows = map(as_ints, (starts, judged_starts, rows_starts, rows))
    score, grade = np.require(score, np.float64, ("C", "W")), as_codes(grade)
    hits = no_hits(len(starts) - 1, int(judged_starts[-1]))
    widest = int(np.diff(rows_starts).max(initial=0))

    def work(begin: int, end: int) -> None:
        order, *counts = (np.empty(widest + 1, np.int64) for _ in range(4))
        judged = judged_starts, rows_starts, rows, grade
        top = np.empty(widest + 1)
        _place(begin, end, int(with_ties), order, top, _Counts(*counts), (starts, score), judged, hits)

    over_ranges(work, np.diff(starts))
    return hits


def hits_of_ranks(
    ranks: Codes, column: int, judged_starts: Ints, rows_starts: Ints, rows: Ints, grade: Codes
) -> Hits:
    """Return the hits of one list whose ranks are known: a column of (rows, K), 0 where a row is not in the list.

    The other arguments are those of `hits_of_scores`. The hits' `first` and `last` are their rank.
    """
    judged_starts, rows_starts, rows, grade = *map(as_ints, (judged_starts, rows_starts, rows)), as_codes(grade)
    hits = no_hits(len(rows_starts) - 1, int(judged_starts[-1]))
    judged = judged_starts, rows_starts, rows, grade

    def work(begin: int, end: int) -> None:
        _place_ranked(begin, end, ranks, column, judged, hits)

    over_ranges(work, np.diff(rows_starts))
    return hits


@kernel(makes_arrays=True)
def _place_ranked(
    begin: int, end: int, ranks: Codes, column: int, judged: tuple[Ints, Ints, Ints, Codes], hits: Hits
) -> None:
    """Write the hits of queries begin..end; `judged` is (judged_starts, rows_starts, rows, grade)."""
    judged_starts, rows_starts, rows, grade = judged
    most = 0
    for q in range(begin, end):
        most = max(most, rows_starts[q + 1] - rows_starts[q])
    order, falling = np.empty(most, np.int64), np.empty(most)
    for q in range(begin, end):
        n = np.int64(0)
        for i in range(rows_starts[q], rows_starts[q + 1]):
            rank = ranks[rows[i], column]
            if rank > 0:
                order[n], falling[n] = i, -rank
                n += 1
        sort_downwards(falling, order, np.int64(0), n)
        hits.n_hits[q] = n
        for i in range(n):
            h, rank = judged_starts[q] + i, -np.int64(falling[i])
            hits.rank[h], hits.grade[h], hits.first[h], hits.last[h] = rank, grade[order[i]], rank, rank


class _Counts(NamedTuple):
    """Of each judged row, in ranking order: how many rows precede it, score higher, score at least as high."""

    precede: Ints
    above: Ints
    reach: Ints


@part()
def _count_each(
    begin: int, end: int, n: int, ties: int, score: Floats, top: Floats, rows: Ints, order: Ints, counts: _Counts
) -> None:
    """Count for each of a few judged rows by looking at all rows."""
    for i in range(n):
        own = rows[order[i]]
        before = higher = as_high = 0
        for row in range(begin, own):
            before += score[row] >= top[i]
        for row in range(own + 1, end):
            before += score[row] > top[i]
        counts.precede[i], counts.above[i], counts.reach[i] = before, before, before + 1
        if ties:
            for row in range(begin, end):
                higher += score[row] > top[i]
                as_high += score[row] >= top[i]
            counts.above[i], counts.reach[i] = higher, as_high


@part()
def _count_once(
    begin: int, end: int, n: int, score: Floats, top: Floats, rows: Ints, order: Ints, counts: _Counts
) -> None:
    """Count for many judged rows by looking at each row once: bisection finds its place among them."""
    precede, above, reach = counts
    lowest = top[n - 1]
    for row in range(begin, end):
        s = score[row]
        if s < lowest:
            continue
        a, size = 0, n  # a becomes the number of judged rows with a higher score
        while size > 0:
            half = size // 2
            a, size = (a + half + 1, size - half - 1) if top[a + half] > s else (a, half)
        reach[a] += 1
        if top[a] < s:
            above[a] += 1
            precede[a] += 1
            continue
        b, size = a, n - a  # b: with a score at least as high
        while size > 0:
            half = size // 2
            b, size = (b + half + 1, size - half - 1) if top[b + half] >= s else (b, half)
        above[b] += 1
        k, size = a, b - a  # k: of those, the ones up to this row
        while size > 0:
            half = size // 2
            k, size = (k + half + 1, size - half - 1) if rows[order[k + half]] <= row else (k, half)
        precede[k] += 1
    for i in range(n):
        precede[i + 1] += precede[i]
        above[i + 1] += above[i]
        reach[i + 1] += reach[i]


@kernel
def _place(
    begin: int,
    end: int,
    with_ties: int,
    order: Ints,
    top: Floats,
    counts: _Counts,
    ranking: tuple[Ints, Floats],
    judged: tuple[Ints, Ints, Ints, Codes],
    hits: Hits,
) -> None:
    """Write the hits of queries begin..end.

    `ranking` is (starts, score), `judged` is (judged_starts, rows_starts, rows, grade).
    """
    starts, score = ranking
    judged_starts, rows_starts, rows, grade = judged
    for q in range(begin, end):
        n = rows_starts[q + 1] - rows_starts[q]
        hits.n_hits[q] = n
        if n == 0:
            continue
        for i in range(n):
            order[i] = rows_starts[q] + i
            top[i] = score[rows[order[i]]]
        sort_downwards(top, order, np.int64(0), n)
        for i in range(n + 1):
            counts.precede[i] = counts.above[i] = counts.reach[i] = 0
        if n <= _FEW:
            _count_each(starts[q], starts[q + 1], n, with_ties, score, top, rows, order, counts)
        else:
            _count_once(starts[q], starts[q + 1], n, score, top, rows, order, counts)
        for i in range(n):
            h = judged_starts[q] + i
            hits.rank[h], hits.grade[h] = counts.precede[i] + 1, grade[order[i]]
            hits.first[h], hits.last[h] = counts.above[i] + 1, counts.reach[i]
