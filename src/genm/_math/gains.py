"""A ranking measure as a sum of gains of relevant documents: what the exact methods maximise.

Let the relevant rows of a query be ordered by rank and let c_1 <= c_2 <= ... be the number of other rows above
each. The i-th of them has rank i + c_i, and every measure here is

    value = sum over tasks of  weight * sum over i of  position[i] * discount[i + c_i],   ranks up to `cutoff`,

with a discount that never rises. Swaps within the relevant rows change nothing, so only pairs of a relevant row
and another one matter. A task is one query, or, for graded gains, one query and one threshold of the grade:
a gain is the sum of the steps of all thresholds it reaches, and each step alone is a matter of yes and no.

Legend: N rows, K rankers, Q queries, T tasks.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm.errors import InputError

BinaryMeasure = Literal["AP", "P", "recall", "RR", "success", "Rprec"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Problem(NamedTuple):
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
    weight: Floats
    """(T) what the task's sum of gains counts in the total."""
    cutoff: Ints
    """(T) ranks beyond this gain nothing."""
    position: Floats
    """position[i] belongs to the i-th relevant row of the ranking, counted from 1."""
    discount: Floats
    """discount[r] belongs to rank r, counted from 1."""


def binary_problem(
    starts: Ints,
    scores: Floats,
    relevant: NDArray[np.bool_],
    n_relevant: Ints,
    query_weights: Floats,
    *,
    measure: BinaryMeasure = "AP",
    cutoff: int | None = None,
) -> Problem:
    """Return the problem of a measure that knows relevant and not relevant, as a weighted mean over queries.

    `n_relevant` may exceed the relevant rows, since relevant documents that no ranker returned still count in
    the denominators of AP and recall. A query without relevant rows gains nothing and stays in the mean.
    """
    longest, most = _sizes(starts, relevant)
    ranks = np.arange(1, longest + 2, dtype=np.float64)
    flat, falling, first = np.ones_like(ranks), 1.0 / ranks, np.zeros(most + 2)
    first[1] = 1.0
    counting, ones = np.arange(most + 2, dtype=np.float64), np.ones(most + 2)
    depth = np.full(len(starts) - 1, longest if cutoff is None else cutoff, np.int64)
    known = np.maximum(n_relevant, 1).astype(np.float64)
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
        case _:
            raise InputError(f"measure {measure!r}: expected AP, P, recall, RR, success or Rprec.")
    rows = np.flatnonzero(relevant).astype(np.int64)
    counts = np.diff(np.searchsorted(rows, starts))
    weight = query_weights / query_weights.sum() * scale
    return _problem(starts, scores, np.arange(len(counts)), counts, rows, weight, depth, position, discount)


def graded_problem(
    starts: Ints, scores: Floats, gains: Floats, ideal: Floats, query_weights: Floats, *, cutoff: int | None = None
) -> Problem:
    """Return the problem of nDCG: `gains` of the rows (none negative) and each query's `ideal` DCG.

    The ideal is the caller's, because documents that no ranker returned have their place in it.
    """
    if (gains < 0).any():
        raise InputError(f"gains: expected none below 0; found {gains.min()}. Raise negative gains to 0.")
    longest, most = _sizes(starts, gains > 0)
    discount = 1.0 / np.log2(np.arange(2, longest + 3))
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
    depth = np.full(len(query), longest if cutoff is None else cutoff, np.int64)
    joined = np.concatenate(rows).astype(np.int64) if rows else np.zeros(0, np.int64)
    return _problem(
        starts,
        scores,
        np.array(query, np.int64),
        np.array(counts, np.int64),
        joined,
        np.array(weight, np.float64),
        depth,
        np.ones(most + 2),
        discount,
    )


def _sizes(starts: Ints, relevant: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the longest query's rows and the most relevant rows of any query."""
    if len(starts) < 2:
        raise InputError("starts: expected at least one query; found none.")
    before = np.concatenate(([0], np.cumsum(relevant)))
    return int(np.diff(starts).max()), int(np.diff(before[starts]).max())


def by_mean_score(starts: Ints, total: Floats) -> Ints:
    """Return all rows, query by query, the highest total first.

    Rows that stand close together then swap with the same relevant rows, and whole blocks can be passed over.
    """
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.lexsort((-total, query)).astype(np.int64)


def _problem(
    starts: Ints,
    scores: Floats,
    query: Ints,
    counts: Ints,
    rows: Ints,
    weight: Floats,
    cutoff: Ints,
    position: Floats,
    discount: Floats,
) -> Problem:
    """Put the parts together; tasks that can gain nothing are left out."""
    if not np.isfinite(scores).all():
        raise InputError("scores: expected finite numbers; found nan or inf. Fill the gaps before learning.")
    live = (counts > 0) & (weight > 0)
    order = by_mean_score(np.ascontiguousarray(starts, np.int64), scores.sum(axis=1))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = np.concatenate(([0], np.cumsum(counts[live])))
    padded = np.concatenate(([0.0], discount, [0.0]))
    return Problem(
        np.ascontiguousarray(starts, np.int64),
        np.ascontiguousarray(scores[order].T, np.float64),
        order,
        np.ascontiguousarray(query[live], np.int64),
        ends.astype(np.int64),
        place[rows[np.repeat(live, counts)]],
        np.ascontiguousarray(weight[live]),
        np.ascontiguousarray(cutoff[live]),
        position,
        padded,
    )
