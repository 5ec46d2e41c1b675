"""Which ranker helped and which one hurt, query by query, under the weights that are in use."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import weighted_mean
from genm.align import Aligned, drop_rankers
from genm.evaluate import AlignedEvaluator, Measure
from genm.explain.contributions import Weights
from genm.fuse import fuse_scores
from genm.ids import Ids

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class QueryGains:
    """The ensemble with and without each ranker; the remaining weights keep their proportions.

    Weights are not learned again, and these queries may be the ones they were learned from: the figures tell what
    happened on these queries, not what to expect on others.
    """

    rankers: tuple[str, ...]
    queries: Ids
    measure: Measure
    value: Array
    """(queries) the measure of the whole ensemble."""
    without: Array
    """(queries, K) the measure when a ranker is left out, and the documents that it alone returned with it."""
    query_weights: Array

    @property
    def gain(self) -> Array:
        """(queries, K) what each ranker gained, or lost where it is negative, against the ensemble without it."""
        return np.asarray(self.value[:, None] - self.without)

    def mean_gain(self) -> Array:
        """(K) the mean gain over the queries, with their weights."""
        return np.array([weighted_mean(column, self.query_weights) for column in self.gain.T])


def gains_by_query(aligned: Aligned, weights: Weights, measure: Measure) -> QueryGains:
    """Measure every query with all rankers, and with each of them left out.

    Where everything rests on one ranker, the others share its weight evenly when it leaves; a single ranker leaves
    nothing behind, which is worth 0.
    """
    fuse_scores(aligned, weights)  # refuses weights that do not fit
    used, n_rankers = np.asarray(weights, np.float64), len(aligned.rankers)
    everyone = AlignedEvaluator(aligned, [measure])
    value = everyone.values(used)[:, 0]
    without = np.zeros((len(value), n_rankers))
    for k in range(n_rankers):
        others = [j for j in range(n_rankers) if j != k]
        rest = used.copy()
        rest[k] = 0.0
        if not rest.any():
            rest[others] = 1.0
        if not others:
            continue
        if aligned.retrieved[:, others].any(axis=1).all():  # no document leaves: a weight of 0 does it
            without[:, k] = everyone.values(rest)[:, 0]
        else:
            remaining = drop_rankers(aligned, [aligned.rankers[k]])
            without[:, k] = AlignedEvaluator(remaining, [measure]).values(rest[others])[:, 0]
    return QueryGains(
        aligned.rankers, aligned.queries.take(everyone.position), measure, value, without,
        aligned.query_weights[everyone.position],
    )  # fmt: skip
