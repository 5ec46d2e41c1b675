"""The measures of ranked lists, as trec_eval defines them, from the ranks of the judged documents alone.

No measure looks at an unjudged document other than by counting it, so a ranking comes here as its hits: the
judged documents that were retrieved, with rank and grade. Hits of query q lie at judged_starts[q] onwards,
n_hits[q] of them, in ranking order; its judged grades, retrieved or not, lie at
judged_starts[q]:judged_starts[q + 1], highest first. A negative grade means in the pool but not judged: never
relevant, no gain, and unseen by bpref and by `judged_only`.
"""

import math
from typing import NamedTuple

import numpy as np

from genm._math.elementary import logarithm2
from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Codes, Floats, Ints

AP, P, R, NDCG, RR, RPREC, BPREF, JUDGED, SUCCESS, IPREC = range(10)
"""What column 0 of a plan may hold."""

NO_CUTOFF = 2**62


def measure_values(
    plan: Ints, recall: Floats, judged_starts: Ints, judged: Codes, hits: tuple[Ints, Ints, Codes], depth: Ints
) -> Floats:
    """Return the (queries, measures) values.

    A row of `plan` is (kind, cutoff, rel, judged_only, exponential gain), `recall` holds IPrec's levels, `hits` is
    (n_hits, rank, grade) and `depth` the number of documents retrieved for each query.
    """
    judged_starts = np.require(judged_starts, np.int64, ("C", "W"))
    depth = np.require(depth, np.int64, ("C", "W"))
    values = np.zeros((len(depth), len(plan)))

    def work(low: int, high: int) -> None:
        _values(low, high, plan, recall, judged_starts, judged, hits, depth, values)

    over_ranges(work, np.diff(judged_starts) * len(plan))
    return values


@part()
def _gain(grade: int, exponential: int) -> float:
    return math.ldexp(1.0, grade) - 1.0 if exponential else float(grade)


class _Sums(NamedTuple):
    """What the hits of one query add up to, down to the cutoff."""

    n_seen: int
    """Hits, as far as they count."""
    n_found: int
    """Relevant ones."""
    precisions: float
    """Precision at each relevant hit, added up."""
    dcg: float
    preferred: float
    """What each relevant hit adds to bpref."""
    reciprocal: float
    """Precision at the first relevant hit."""
    highest: float
    """Highest precision at a relevant hit from the recall level of IPrec on."""


class _Pool(NamedTuple):
    """What the judged documents of one query add up to, retrieved or not."""

    n_relevant: int
    n_nonrelevant: int
    ideal: float
    """DCG of the best ranking."""


@part()
def _pooled(judged: Codes, cutoff: int, rel: int, exponential: int) -> _Pool:
    """Count one query's grades, which come highest first."""
    n_relevant = n_nonrelevant = 0
    ideal = 0.0
    for i in range(len(judged)):
        g = judged[i]
        if g >= rel:
            n_relevant += 1
        elif g >= 0:
            n_nonrelevant += 1
        if g > 0 and i < cutoff:
            ideal += _gain(g, exponential) / logarithm2(i + 2.0)
    return _Pool(n_relevant, n_nonrelevant, ideal)


@part()
def _summed(
    rank: Ints, grade: Codes, pool: _Pool, cutoff: int, rel: int, judged_only: int, exponential: int, needed: int
) -> _Sums:
    """Add up one query's hits, which come in ranking order.

    Every sum is built up whatever the measure is: hits are few, and one short loop compiles in a fraction of the
    time that ten loops would take.
    """
    n_seen = n_found = n_passed = 0
    precisions = dcg = preferred = reciprocal = highest = 0.0
    for h in range(len(rank)):
        g = grade[h]
        if judged_only and g < 0:
            continue
        r = n_seen + 1 if judged_only else rank[h]
        if r > cutoff:
            break
        n_seen += 1
        if g > 0:
            dcg += _gain(g, exponential) / logarithm2(r + 1.0)
        if g < rel:
            n_passed += g >= 0
            continue
        n_found += 1
        precision = n_found / r
        precisions += precision
        if n_found == 1:
            reciprocal = precision
        if n_found >= needed:
            highest = max(highest, precision)
        if n_passed > 0:  # no document can be passed by more non-relevant ones than bpref looks at
            preferred += 1.0 - min(n_passed, pool.n_relevant) / min(pool.n_nonrelevant, pool.n_relevant)
        else:
            preferred += 1.0
    return _Sums(n_seen, n_found, precisions, dcg, preferred, reciprocal, highest)


@part()
def _value(kind: int, cutoff: int, sums: _Sums, pool: _Pool, depth: int) -> float:
    """Return one measure of one query."""
    if kind == NDCG:
        return sums.dcg / pool.ideal if pool.ideal > 0.0 else 0.0
    if kind == JUDGED:
        return sums.n_seen / min(cutoff, depth) if depth > 0 else 0.0
    if kind == P:
        return sums.n_found / cutoff
    if sums.n_found == 0:
        return 0.0
    if kind == AP:
        return sums.precisions / pool.n_relevant
    if kind == RR:
        return sums.reciprocal
    if kind == BPREF:
        return sums.preferred / pool.n_relevant
    if kind == SUCCESS:
        return 1.0
    if kind == IPREC:
        return sums.highest
    return sums.n_found / pool.n_relevant  # R and Rprec


@kernel
def _values(
    low: int, high: int, plan: Ints, recall: Floats, judged_starts: Ints, judged: Codes,
    hits: tuple[Ints, Ints, Codes], depth: Ints, values: Floats,
) -> None:  # fmt: skip
    """Write the values of queries low..high."""
    n_hits, rank, grade = hits
    for q in range(low, high):
        begin, end = judged_starts[q], judged_starts[q + 1]
        last = begin + n_hits[q]
        for m in range(len(plan)):
            kind, cutoff, rel, judged_only, exponential = plan[m]
            pool = _pooled(judged[begin:end], cutoff, rel, exponential)
            needed = int(recall[m] * pool.n_relevant + 0.9)
            if kind == RPREC:
                cutoff = pool.n_relevant
            sums = _summed(rank[begin:last], grade[begin:last], pool, cutoff, rel, judged_only, exponential, needed)
            values[q, m] = _value(kind, cutoff, sums, pool, depth[q])
