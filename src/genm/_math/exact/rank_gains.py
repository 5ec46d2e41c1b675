"""A ranking measure as a sum of gains of relevant documents: what the exact methods maximise.

Let the relevant rows of a query be ordered by rank and let c_1 <= c_2 <= ... be the number of other rows above
each. The i-th of them has rank i + c_i, and nearly every measure here is

    value = sum over tasks of  weight * sum over i of  position[i] * discount[i + c_i],   ranks up to `cutoff`,

with a discount that never rises. Bpref's discount goes by c_i alone, and IPrec takes the largest of the gains from
a certain i on in place of their sum; neither rises with a count, which is all that the exact methods need.
Swaps within the relevant rows change nothing, so only pairs of a relevant row and another one matter. A task is one
query, or, for graded gains, one query and one threshold of the grade: a gain is the sum of the steps of all
thresholds it reaches, and each step alone is a matter of yes and no.

Legend: N rows, K rankers, Q queries, T tasks.
"""

from typing import Literal, NamedTuple

import numpy as np

from genm._math.elementary import logarithms2
from genm._math.parallel import part
from genm._typing import Bools, Floats, Ints
from genm.errors import InputError

BinaryMeasure = Literal["AP", "P", "recall", "RR", "success", "Rprec", "judged", "IPrec"]

BLOCK = 128
"""Rows that are passed over together if none of them can swap with a relevant row."""


class Gains(NamedTuple):
    """What relevant rows add to the value, by their place among the relevant ones and by the others above."""

    weight: Floats
    """(T) what the task's sum of gains counts in the total."""
    cutoff: Ints
    """(T) ranks beyond this gain nothing."""
    by_rank: Ints
    """(T) 1 where the discount goes by rank, 0 where it goes by the number of other rows above alone."""
    base: Ints
    """(T) where the task's discounts begin in `discount`."""
    least: Ints
    """(T) 0 where the gains are added up; else only the largest gain counts, from this place on."""
    position: Floats
    """position[i] belongs to the i-th relevant row of the ranking, counted from 1."""
    discount: Floats
    """discount[base + r] belongs to rank r, counted from 1, or to r other rows above, counted from 0."""


class GainProblem(NamedTuple):
    """What is maximised over the weights: scores, relevant rows and the tables of one measure."""

    starts: Ints
    """(Q + 1) the rows of a query are starts[q]:starts[q + 1]."""
    columns: Floats
    """(K, N) the scores, one ranker after the other; the rows of a query by their mean score, downwards."""
    order: Ints
    """(N) where a row stood before it was moved; the smaller one wins a tie."""
    query: Ints
    """(T) the query of a task; tasks of one query are neighbours."""
    relevant_starts: Ints
    """(T + 1) the relevant rows of a task are relevant_rows[relevant_starts[t]:relevant_starts[t + 1]]."""
    relevant_rows: Ints
    gains: Gains
    blocks: "Blocks"


class Blocks(NamedTuple):
    """How far scores reach in blocks of rows, so that lines of weights can pass over many without looking.

    With W the sum of weights, a fused score is W * mean + sum of (w_k - W / K) * (x_k - mean), and what stands
    beside the mean is small for weights that are nearly equal.
    """

    starts: Ints
    """(Q + 1) the blocks of a query."""
    reach: Floats
    """(blocks, K + 1, 2) lowest and highest mean of a row's scores, then score less mean of each ranker."""
    size: Floats
    """(K) the largest score of each ranker, without its sign."""


@part()
def gain(gains: Gains, task: int, place: int, count: int) -> float:
    """Return what the relevant row at `place` adds with `count` other rows above it, the task's weight apart."""
    at = gains.by_rank[task] * place + count
    if at > gains.cutoff[task]:
        return 0.0
    return float(gains.position[place] * gains.discount[gains.base[task] + at])


@part()
def task_value(gains: Gains, task: int, level: Ints, begin: int, end: int) -> float:
    """Return what a task adds to the value; level[begin:end] are its counts, sorted."""
    added, largest = 0.0, 0.0
    for i in range(end - begin):
        own = gain(gains, task, i + 1, level[begin + i])
        added += own
        if i + 1 >= gains.least[task] and own > largest:
            largest = own
    return float(gains.weight[task] * (added if gains.least[task] == 0 else largest))


def binary_problem(
    starts: Ints,
    scores: Floats,
    relevant: Bools,
    n_relevant: Ints,
    query_weights: Floats,
    *,
    measure: BinaryMeasure = "AP",
    cutoff: int | None = None,
    recall: float = 0.0,
) -> GainProblem:
    """Return the problem of a measure that knows relevant and not relevant, as a weighted mean over queries.

    `n_relevant` may exceed the relevant rows, since relevant documents that no ranker returned still count in
    the denominators of AP and recall. A query without relevant rows gains nothing and stays in the mean. "judged"
    is precision with no more documents in its denominator than there are; `recall` belongs to IPrec.
    """
    longest, most = _sizes(starts, relevant)
    ranks = np.arange(1, longest + 2, dtype=np.float64)
    flat, falling, first = np.ones_like(ranks), 1.0 / ranks, np.zeros(most + 2)
    first[1] = 1.0
    counting, ones = np.arange(most + 2, dtype=np.float64), np.ones(most + 2)
    depth = np.full(len(starts) - 1, longest if cutoff is None else cutoff, np.int64)
    known, least = np.maximum(n_relevant, 1).astype(np.float64), np.zeros(len(depth), np.int64)
    if measure in ("P", "success") and cutoff is None:
        raise InputError(f"measure {measure}: expected a cutoff; found none. Ask for {measure}@10, for instance.")
    match measure:
        case "AP":
            position, discount, scale = counting, falling, 1.0 / known
        case "P":
            position, discount, scale = ones, flat, 1.0 / depth
        case "recall":
            position, discount, scale = ones, flat, 1.0 / known
        case "RR":
            position, discount, scale = first, falling, np.ones_like(known)
        case "success":
            position, discount, scale = first, flat, np.ones_like(known)
        case "Rprec":
            position, discount, scale, depth = ones, flat, 1.0 / known, n_relevant.astype(np.int64)
        case "judged":
            position, discount, scale = ones, flat, 1.0 / np.maximum(np.minimum(depth, np.diff(starts)), 1)
        case "IPrec":
            position, discount, scale = counting, falling, np.ones_like(known)
            least = np.maximum((recall * n_relevant + 0.9).astype(np.int64), 1)
        case _:
            raise InputError(f"measure {measure!r}: expected AP, P, recall, RR, success, Rprec, judged or IPrec.")
    rows, counts = _rows_of(starts, relevant)
    weight = query_weights / query_weights.sum() * scale
    nothing = np.zeros(len(depth), np.int64)
    padded = np.concatenate(([0.0], discount, [0.0]))
    gains = Gains(weight, depth, nothing + 1, nothing, least, position, padded)
    return _problem(starts, scores, np.arange(len(counts)), counts, rows, gains)


def bpref_problem(
    starts: Ints, scores: Floats, relevant: Bools, n_relevant: Ints, n_others: Ints, query_weights: Floats
) -> GainProblem:
    """Return the problem of Bpref on judged rows: those not relevant are judged so.

    Each relevant row adds 1 - min(c, R) / min(N, R), with c the others above it and R and N the documents judged
    relevant and not, in the rows or elsewhere (`n_relevant`, `n_others`).
    """
    _, most = _sizes(starts, relevant)
    rows, counts = _rows_of(starts, relevant)
    lengths = np.diff(starts) - counts + 2
    base = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    count = np.arange(base[-1]) - np.repeat(base[:-1], lengths)
    least = np.repeat(np.maximum(np.minimum(n_relevant, n_others), 1), lengths)
    discount = 1.0 - np.minimum(count, np.repeat(n_relevant, lengths)) / least
    weight = query_weights / query_weights.sum() / np.maximum(n_relevant, 1)
    nothing = np.zeros(len(weight), np.int64)
    gains = Gains(weight, nothing + base[-1], nothing, base[:-1], nothing, np.ones(most + 2), discount)
    return _problem(starts, scores, np.arange(len(counts)), counts, rows, gains)


def graded_problem(
    starts: Ints, scores: Floats, gains: Floats, ideal: Floats, query_weights: Floats, *, cutoff: int | None = None
) -> GainProblem:
    """Return the problem of nDCG: `gains` of the rows (none negative) and each query's `ideal` DCG.

    The ideal is the caller's, because documents that no ranker returned have their place in it.
    """
    if (gains < 0).any():
        raise InputError(f"gains: expected none below 0; found {gains.min()}. Raise negative gains to 0.")
    longest, most = _sizes(starts, gains > 0)
    discount = np.concatenate(([0.0], 1.0 / logarithms2(np.arange(2.0, longest + 3.0)), [0.0]))
    share = query_weights / query_weights.sum()
    query, counts, rows, weight = [], [], [], []
    for q in range(len(starts) - 1):
        own = gains[starts[q] : starts[q + 1]]
        levels = np.unique(own[own > 0])
        for level, step in zip(levels, np.diff(levels, prepend=0.0), strict=True):
            reached = np.flatnonzero(own >= level)
            query.append(q)
            counts.append(len(reached))
            rows.append(reached + starts[q])
            weight.append(share[q] * step / ideal[q] if ideal[q] > 0 else 0.0)
    nothing = np.zeros(len(query), np.int64)
    depth = nothing + (longest if cutoff is None else cutoff)
    joined = np.concatenate(rows).astype(np.int64) if rows else np.zeros(0, np.int64)
    tables = Gains(np.array(weight, np.float64), depth, nothing + 1, nothing, nothing, np.ones(most + 2), discount)
    return _problem(starts, scores, np.array(query, np.int64), np.array(counts, np.int64), joined, tables)


def _sizes(starts: Ints, relevant: Bools) -> tuple[int, int]:
    """Return the longest query's rows and the most relevant rows of any query."""
    if len(starts) < 2:
        raise InputError("starts: expected at least one query; found none.")
    before = np.concatenate(([0], np.cumsum(relevant)))
    return int(np.diff(starts).max()), int(np.diff(before[starts]).max())


def _rows_of(starts: Ints, relevant: Bools) -> tuple[Ints, Ints]:
    """Return the relevant rows and how many there are of each query."""
    rows = np.flatnonzero(relevant).astype(np.int64)
    return rows, np.diff(np.searchsorted(rows, starts)).astype(np.int64)


def by_mean_score(starts: Ints, total: Floats) -> Ints:
    """Return all rows, query by query, the highest total first.

    Rows that stand close together then swap with the same relevant rows, and whole blocks can be passed over.
    """
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.lexsort((-total, query)).astype(np.int64)


def _problem(starts: Ints, scores: Floats, query: Ints, counts: Ints, rows: Ints, gains: Gains) -> GainProblem:
    """Put the parts together; tasks that can gain nothing are left out."""
    if not np.isfinite(scores).all():
        raise InputError("scores: expected finite numbers; found nan or inf. Fill the gaps before learning.")
    live = (counts > 0) & (gains.weight > 0) & (gains.least <= counts)
    order = by_mean_score(np.ascontiguousarray(starts, np.int64), scores.sum(axis=1))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = np.concatenate(([0], np.cumsum(counts[live])))
    columns = np.ascontiguousarray(scores[order].T, np.float64)
    return GainProblem(
        np.ascontiguousarray(starts, np.int64),
        columns,
        order,
        np.ascontiguousarray(query[live], np.int64),
        ends.astype(np.int64),
        place[rows[np.repeat(live, counts)]],
        Gains(
            gains.weight[live],
            gains.cutoff[live],
            gains.by_rank[live],
            gains.base[live],
            gains.least[live],
            gains.position,
            gains.discount,
        ),
        _blocks(np.ascontiguousarray(starts, np.int64), columns),
    )


def _blocks(starts: Ints, columns: Floats) -> Blocks:
    """Bound the scores of every block of rows."""
    counts = -(-np.diff(starts) // BLOCK)
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    firsts = np.repeat(starts[:-1] - BLOCK * ends[:-1], counts) + BLOCK * np.arange(ends[-1])
    reach = np.zeros((ends[-1], len(columns) + 1, 2))
    mean = columns.mean(axis=0)
    for k, values in enumerate((mean, *columns)):
        apart = values - mean if k > 0 else values
        if len(firsts):
            reach[:, k, 0] = np.minimum.reduceat(apart, firsts)
            reach[:, k, 1] = np.maximum.reduceat(apart, firsts)
    return Blocks(ends, reach, np.abs(columns).max(axis=1, initial=0.0))
