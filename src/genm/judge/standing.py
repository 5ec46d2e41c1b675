"""What a session of judging works with: the order of the pairs, and what the judgments come to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from genm._typing import Floats
from genm.align import Aligned
from genm.errors import GenmError
from genm.judge.estimates import Estimate, estimate_difference
from genm.judge.pooling import align_all, pool
from genm.judge.session import Order, Pair, Standing
from genm.judge.store import PERSON, Judgment, Opinion, qrels_of, settle
from genm.judge.systems import EQUAL, LEARNED, System
from genm.learn import ExpectedFuser
from genm.records import Qrels, Run, merge_qrels

AHEAD = 200
"""Pairs that an order looks ahead."""
REFITS = 16
"""Resampled sets of queries on which the weights are learned again, for their intervals."""
NO_GAIN = "The judgments so far favour no weights over equal ones, so equal ones are used. Judge more documents."
MINUTES = 10.0
PACE = 6.0
"""Judgments a minute, for the outlook."""


def order_for(
    runs: Mapping[str, Run], *, compare: Sequence[System] | None = None, level: int = 1, before: Qrels | None = None
) -> Order:
    """Return an order by usefulness for the weights, or for telling two systems apart.

    `before` are judgments from elsewhere, which count and are not asked for again.
    """

    def order(judgments: Sequence[Judgment]) -> list[Pair]:
        found = pool(runs, _all(judgments, before), compare=compare, n=AHEAD, level=level)
        return [(pair.query_id, pair.doc_id) for pair in found.pairs]

    return order


def assess(
    runs: Mapping[str, Run],
    judgments: Sequence[Judgment],
    *,
    compare: Sequence[System] = (LEARNED, EQUAL),
    level: int = 1,
    before: Qrels | None = None,
    seed: int = 0,
) -> Standing:
    """Return the weights that the judgments lead to, how sure they are, and what more judgments would buy."""
    aligned = align_all(runs, _all(judgments, before))
    weights = _weights(aligned, level)
    intervals = _intervals(aligned, level, seed)
    estimate = estimate_difference(aligned, compare=compare, level=level)
    is_equal = tuple(compare) == (LEARNED, EQUAL) and not estimate.per_query.any()
    return Standing(
        dict(zip(aligned.rankers, weights.tolist(), strict=True)),
        {name: (float(low), float(high)) for name, (low, high) in zip(aligned.rankers, intervals, strict=True)},
        NO_GAIN if is_equal else estimate.verdict(),
        "" if is_equal else _outlook(estimate, aligned, compare, level),
    )


def weights_by_source(
    runs: Mapping[str, Run], opinions: Sequence[Opinion], *, level: int = 1
) -> dict[str, dict[str, float]]:
    """Return the weights that people's judgments lead to and those of each model, on the pairs that both judged.

    By source: `person`, or `model:` and its name. Without pairs in common there is nothing to compare.
    """
    people = [one for one in opinions if one.source == PERSON and one.grade is not None]
    found: dict[str, dict[str, float]] = {}
    for source in sorted({one.source for one in opinions if one.source != PERSON}):
        graded = {one.pair: one for one in opinions if one.source == source and one.grade is not None}
        shared = graded.keys() & {one.pair for one in people}
        if not shared:
            continue
        for name, said in ((PERSON, people), (source, list(graded.values()))):
            judged = qrels_of(settle(one for one in said if one.pair in shared))
            aligned = align_all(runs, judged)
            found[name] = dict(zip(aligned.rankers, _weights(aligned, level).tolist(), strict=True))
    return found


def _all(judgments: Sequence[Judgment], before: Qrels | None) -> Qrels:
    """Return the judgments of a session over those from elsewhere."""
    now = qrels_of(judgments)
    return now if before is None else merge_qrels(before, now)


def _weights(aligned: Aligned, level: int) -> Floats:
    return ExpectedFuser(level=level).fit(aligned).weights_


def _intervals(aligned: Aligned, level: int, seed: int) -> Floats:
    """Return the 10 % and 90 % quantiles of the weights over resampled queries."""
    rng = np.random.default_rng(seed)
    n = len(aligned.queries)
    found = []
    for _ in range(REFITS):
        times = np.bincount(rng.integers(0, n, n), minlength=n)
        try:
            found.append(_weights(replace(aligned, query_weights=aligned.query_weights * times), level))
        except GenmError:  # a resample without any relevant document
            continue
    if not found:
        found = [np.full(len(aligned.rankers), 1.0 / len(aligned.rankers))]
    return np.quantile(found, (0.1, 0.9), axis=0).T


def _outlook(estimate: Estimate, aligned: Aligned, compare: Sequence[System], level: int) -> str:
    """Say what ten more minutes would buy: how much of the error that is due to unjudged documents they remove.

    A pair's usefulness is half of the standard deviation that it adds to the difference of two systems, over all
    queries, so the sum of the squares is the variance that the judgments remove.
    """
    n = round(MINUTES * PACE)
    found = pool(aligned, compare=compare, n=n, level=level)
    if not found.pairs:
        return "All documents of the runs are judged; only more queries would tell more."
    removed = sum((2.0 * pair.usefulness / estimate.n_queries) ** 2 for pair in found.pairs)
    left = max(0.0, estimate.unjudged_error**2 - removed) ** 0.5
    names = " against ".join(estimate.names)
    return (
        f"Ten more minutes, about {len(found.pairs)} judgments, would lower the standard error that unjudged "
        f"documents leave in {names} from {estimate.unjudged_error:.4f} to about {left:.4f} AP."
    )
