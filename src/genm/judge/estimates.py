"""Estimates from incomplete judgments: a difference with an interval, and the bias of a pool.

A difference of two systems is estimated by expected AP: unjudged documents count by their probability of relevance
(`genm.learn.relevance`). Its interval accounts for the unjudged documents and, as in any mean, for the choice of
the queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from genm._math.expected_ap import expected_ap, expected_size
from genm._math.linear_algebra import weighted_mean
from genm._math.scaling import rank_lists
from genm._math.significance import rounded, student_interval
from genm._typing import Bools, Floats, Ints
from genm.align import Aligned, AlignedOrRuns, Depths, as_aligned
from genm.errors import InputError
from genm.formatting import between, percent, signed
from genm.judge.pooling import align_all
from genm.judge.systems import System, Target, target_of
from genm.learn.relevance import expected_difference, is_judged, known_relevant
from genm.records import Qrels

SMALLEST_DECIDED = 0.01
"""Differences in AP below this are not called: in the study no order of judging decides them by 2,000 judgments."""
TOP = 10
"""How far down the share of judged documents is counted."""
OVERSTATED = ((0, 0.003), (1, 0.004), (5, 0.005), (20, 0.018))
"""By how much expected AP overstated fusion against the best single ranker where both lists were judged completely
down to a depth and not below (docs/judging.md, 16 draws)."""
LEAST_OVERSTATED = 0.005
"""From here on the verdict says so."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The difference in mean AP of two systems, from incomplete judgments."""

    names: tuple[str, ...]
    """The two systems; a positive difference speaks for the first."""
    difference: float
    """Of expected AP: unjudged documents count by their probability."""
    low: float
    """Lower end of the interval, which accounts for unjudged documents and for the choice of queries."""
    high: float
    """Upper end of the interval."""
    unjudged_error: float
    """The standard error that is due to unjudged documents alone: what more judgments can remove."""
    if_nonrelevant: float
    """The difference if every unjudged document counts as not relevant, as trec_eval has it."""
    judged_share: float
    """Of the two systems' top 10 documents, the share that is judged."""
    judged_depth: int
    """The rank down to which both systems' lists are judged completely, for half of the queries or more."""
    overstated: float
    """By how much pools of this depth overstate the difference, for fusion against a single ranker; negative where
    the single ranker comes first, 0 for other systems and where all documents are judged."""
    n_judged: int
    n_queries: int
    n_informative: int
    """Queries with a document judged relevant."""
    confidence: float
    per_query: Floats
    """The difference of every query."""

    @property
    def is_decided(self) -> bool:
        """Whether the sign can be told: the difference is not too small to call, and the interval leaves out 0.

        For fusion against a single ranker it must do so also after `overstated` is taken off.
        """
        low, high = self.low - max(self.overstated, 0.0), self.high - min(self.overstated, 0.0)
        return abs(self.difference) >= SMALLEST_DECIDED and (low > 0.0 or high < 0.0)

    def to_dict(self) -> dict[str, object]:
        """Return the figures by name, without those of the single queries."""
        names = ("difference", "low", "high", "unjudged_error", "if_nonrelevant", "judged_share", "judged_depth",
                 "overstated", "n_judged", "n_queries", "n_informative", "confidence")  # fmt: skip
        figures = {name: getattr(self, name) for name in names}
        return {"systems": list(self.names), **figures, "decided": self.is_decided, "verdict": self.verdict()}

    def verdict(self) -> str:
        """Say in a sentence what the judgments show so far."""
        a, b = self.names
        figures = f"{signed(self.difference)} AP, {self.confidence:.0%} interval {between(self.low, self.high)}"
        rest = f"{percent(self.judged_share)} of the top {TOP} is judged"
        if abs(self.overstated) >= LEAST_OVERSTATED:
            fused = a if self.overstated > 0.0 else b
            rest += (
                f"; lists judged down to about rank {self.judged_depth} and not below overstate {fused} by some "
                f"{abs(self.overstated):.3f}"
            )
        if self.is_decided:
            better, worse = (a, b) if self.difference > 0.0 else (b, a)
            return f"{better} is better than {worse} ({figures}; {rest})."
        if abs(self.difference) < SMALLEST_DECIDED and max(-self.low, self.high) < 2 * SMALLEST_DECIDED:
            return (
                f"{a} and {b} are within {SMALLEST_DECIDED} AP ({figures}; {rest}): further judgments will hardly "
                f"tell them apart."
            )
        return f"Not decided yet: {a} against {b} {figures}; {rest}. Judge more documents."


def estimate_difference(
    runs: AlignedOrRuns,
    qrels: Qrels | None = None,
    *,
    compare: Sequence[System],
    current: Mapping[str, float] | None = None,
    level: int = 1,
    depth: Depths = None,
    confidence: float = 0.95,
) -> Estimate:
    """Return how much better the first of two systems is, from the judgments so far.

    `compare` is as in `genm.judge.pool`. All queries of the runs count, also those without a judgment.
    """
    aligned = align_all(runs, qrels, depth=depth)
    return difference_of(aligned, target_of(aligned, compare, current=current, level=level), level, confidence)


def difference_of(aligned: Aligned, target: Target, level: int = 1, confidence: float = 0.95) -> Estimate:
    """Return the difference of a target's two systems on aligned runs."""
    if len(target.ranks) != 2:
        raise InputError("compare (--compare): expected two systems to estimate a difference of.")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence={confidence!r}: expected a share between 0 and 1.")
    found = expected_difference(aligned, (target.ranks[0], target.ranks[1]), target.features, level)
    n_queries, judged = len(aligned.queries), found.relevance.judged
    if n_queries > 1:
        counts = aligned.query_weights * n_queries / aligned.query_weights.sum()
        counted = rounded(found.per_query * counts)[:, None]
        low, high = (
            float(end[0]) for end in student_interval(counted, confidence, further_variance=found.error**2)
        )
    else:
        reach = float(ndtri(0.5 + confidence / 2.0)) * found.error
        low, high = found.mean - reach, found.mean + reach
    depth = _judged_depth(aligned, target.ranks, judged)
    top = np.any([(ranks > 0) & (ranks <= TOP) for ranks in target.ranks], axis=0)
    return Estimate(
        names=target.names,
        difference=found.mean,
        low=low,
        high=high,
        unjudged_error=found.error,
        if_nonrelevant=found.if_nonrelevant,
        judged_share=float(judged[top].mean()) if top.any() else 0.0,
        judged_depth=depth,
        overstated=0.0 if judged.all() else _overstated(target.names, aligned.rankers, depth),
        n_judged=int(judged.sum()),
        n_queries=n_queries,
        n_informative=int((aligned.n_relevant(level) > 0).sum()) if aligned.labelled else 0,
        confidence=confidence,
        per_query=found.per_query,
    )


def _judged_depth(aligned: Aligned, lists: Sequence[Ints], judged: Bools) -> int:
    """Return the rank above which all documents of both lists are judged, the median over the queries."""
    depths = []
    for ranks in lists:
        first = np.diff(aligned.starts) + 1
        rows = np.flatnonzero(~judged & (ranks > 0))
        query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))[rows]
        np.minimum.at(first, query, ranks[rows])
        depths.append(first - 1)
    return int(np.median(np.min(depths, axis=0))) if len(aligned.queries) else 0


def _overstated(names: tuple[str, ...], rankers: tuple[str, ...], depth: int) -> float:
    """Return by how much pools of a depth overstate the difference of these systems."""
    first_is_fused, second_is_fused = (name not in rankers for name in names)
    if first_is_fused == second_is_fused:
        return 0.0
    size = float(np.interp(depth, [at for at, _ in OVERSTATED], [error for _, error in OVERSTATED]))
    return size if first_is_fused else -size


@dataclass(frozen=True, slots=True)
class PoolBias:
    """How much a ranker's AP owes to its own part in the pool."""

    ranker: str
    judged_share: float
    """Of its top 10, the share that is judged; much less than the others': it was not pooled."""
    value: float
    """Its mean AP; unjudged documents count as not relevant."""
    value_if_not_pooled: float
    """The same without the judgments of documents that no other ranker returned."""


def pool_bias(runs: AlignedOrRuns, qrels: Qrels | None = None, *, level: int = 1) -> tuple[PoolBias, ...]:
    """Return, for each ranker, what its AP would be had it not been pooled (leaving out its unique documents).

    The fall is what pooled judgments take from a new ranker that finds as many documents of its own.
    """
    aligned = as_aligned(runs, qrels)
    if not aligned.labelled:
        raise InputError("these runs carry no judgments. Give qrels.")
    ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts).astype(np.int64)
    relevant, judged = aligned.relevance >= level, is_judged(aligned)
    found = []
    for k, name in enumerate(aligned.rankers):
        own = aligned.retrieved[:, k] & ~np.delete(aligned.retrieved, k, axis=1).any(axis=1)
        top = (ranks[:, k] > 0) & (ranks[:, k] <= TOP)
        found.append(
            PoolBias(
                name,
                float(judged[top].mean()) if top.any() else 0.0,
                _mean_ap(aligned, ranks[:, k], relevant, level),
                _mean_ap(aligned, ranks[:, k], relevant & ~own, level),
            )
        )
    return tuple(found)


def _mean_ap(aligned: Aligned, ranks: Ints, relevant: Bools, level: int) -> float:
    """Return the mean AP of a list; documents that are not marked are not relevant."""
    p = relevant.astype(np.float64)
    size = expected_size(aligned.starts, p, known_relevant(aligned, level))
    return weighted_mean(expected_ap(aligned.starts, ranks, p, size).value, aligned.query_weights)
