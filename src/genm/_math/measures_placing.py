"""Ranks of judged rows under given scores, without sorting the others."""

import numpy as np

from genm._math.hits import Codes, Floats, Hits, Ints, as_codes, as_ints, no_hits
from genm._math.parallel import kernel, over_ranges

_FEW = 100  # up to here comparing a query's rows with each judged one beats searching for their places


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
        order, precede, above, reach = (np.empty(widest + 1, np.int64) for _ in range(4))
        room = order, np.empty(widest + 1), precede, above, reach
        _place(begin, end, int(with_ties), *room, starts, score, judged_starts, rows_starts, rows, grade, *hits)

    over_ranges(work, np.diff(starts))
    return hits


@kernel
def _count_all(
    begin: int,
    end: int,
    n: int,
    with_ties: int,
    score: Floats,
    top: Floats,
    rows: Ints,
    order: Ints,
    precede: Ints,
    above: Ints,
    reach: Ints,
) -> None:
    """Count, for each of a few judged rows, the rows before it, above it, and above or level with it."""
    for i in range(n):
        own = rows[order[i]]
        before = higher = as_high = 0
        for row in range(begin, own):
            before += score[row] >= top[i]
        for row in range(own + 1, end):
            before += score[row] > top[i]
        precede[i], above[i], reach[i] = before, before, before + 1
        if with_ties:
            for row in range(begin, end):
                higher += score[row] > top[i]
                as_high += score[row] >= top[i]
            above[i], reach[i] = higher, as_high


@kernel
def _count_once(
    begin: int,
    end: int,
    n: int,
    score: Floats,
    top: Floats,
    rows: Ints,
    order: Ints,
    precede: Ints,
    above: Ints,
    reach: Ints,
) -> None:
    """Count the same for many judged rows: each row finds its place among them by halving."""
    lowest = top[n - 1]
    for row in range(begin, end):
        s = score[row]
        if s < lowest:
            continue
        a, size = 0, n  # a becomes the number of judged rows with a higher score
        while size > 0:
            half = size // 2
            if top[a + half] > s:
                a += half + 1
                size -= half + 1
            else:
                size = half
        reach[a] += 1
        if top[a] < s:
            above[a] += 1
            precede[a] += 1
            continue
        b, size = a, n - a  # b: with a score as high
        while size > 0:
            half = size // 2
            if top[b + half] >= s:
                b += half + 1
                size -= half + 1
            else:
                size = half
        above[b] += 1
        k, size = a, b - a  # k: up to this row
        while size > 0:
            half = size // 2
            if rows[order[k + half]] <= row:
                k += half + 1
                size -= half + 1
            else:
                size = half
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
    precede: Ints,
    above: Ints,
    reach: Ints,
    starts: Ints,
    score: Floats,
    judged_starts: Ints,
    rows_starts: Ints,
    rows: Ints,
    grade: Codes,
    n_hits: Ints,
    hit_rank: Ints,
    hit_grade: Codes,
    hit_first: Ints,
    hit_last: Ints,
) -> None:
    for q in range(begin, end):
        j0, n = rows_starts[q], rows_starts[q + 1] - rows_starts[q]
        n_hits[q] = n
        if n == 0:
            continue
        for i in range(n):
            order[i] = j0 + i
        gap = 1
        while gap < n:
            gap = 3 * gap + 1
        while gap > 1:  # Shell sort: the order is total, so that it need not be stable
            gap //= 3
            for i in range(gap, n):
                moved, k = order[i], i
                s = score[rows[moved]]
                while k >= gap and (
                    score[rows[order[k - gap]]] < s or (score[rows[order[k - gap]]] == s and order[k - gap] > moved)
                ):
                    order[k] = order[k - gap]
                    k -= gap
                order[k] = moved
        for i in range(n):
            top[i] = score[rows[order[i]]]
        for i in range(n + 1):
            precede[i] = above[i] = reach[i] = 0
        if n <= _FEW:
            _count_all(starts[q], starts[q + 1], n, with_ties, score, top, rows, order, precede, above, reach)
        else:
            _count_once(starts[q], starts[q + 1], n, score, top, rows, order, precede, above, reach)
        for i in range(n):
            h = judged_starts[q] + i
            hit_rank[h], hit_grade[h] = precede[i] + 1, grade[order[i]]
            hit_first[h], hit_last[h] = above[i] + 1, reach[i]
