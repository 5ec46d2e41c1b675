"""How good each ranker is, told without a judgment: by what the rankers put on top.

Two things are asked of a ranker. Does it name documents that the others name too (agreement)? And does it answer
the query, or name the same documents whatever is asked (specificity)? Agreement alone favours whoever stands in
the middle of a group of similar rankers; specificity alone favours whoever is different for no good reason. Their
product ranks the rankers well on all the collections it was measured on (docs/unsupervised.md).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from genm._math.ascent import as_distribution
from genm._math.scaling import rank_lists
from genm.align import Aligned
from genm.errors import InputError

Array = NDArray[np.float64]
Labels = Literal["top", "threshold"]

POWER = 4.0
"""Weights grow with this power of the quality, so that small differences in agreement count."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What the rankers' tops say about the rankers, one number for each."""

    agreement: Array
    """Share of its top that another ranker has too, in the mean over the others, less what chance would give."""
    specificity: Array
    """Different documents in the tops of all queries (as an effective number), as a share of the places."""
    spread: Array
    """Standard deviation of its scores within a query, as the weights see them."""

    @property
    def overall(self) -> Array:
        """Agreement times specificity."""
        return np.asarray(self.agreement * self.specificity)

    def weights(self, *, power: float = POWER) -> Array:
        """Return weights by quality, on the scale of the scores: quality ** power / spread."""
        quality = self.overall
        best = quality.max()
        share = (quality / best) ** power if best > 0.0 else np.ones(len(quality))
        return as_distribution(np.divide(share, self.spread, out=np.zeros(len(share)), where=self.spread > 0.0))


def fake_labels(
    aligned: Aligned, *, labels: Labels = "top", n: int = 10, threshold: float = 0.5
) -> NDArray[np.bool_]:
    """Return, for each row and ranker, whether that ranker calls the document relevant (Algorithm 4).

    "top": its n best of the query, without those tied with the next one, which only their ids would put there.
    "threshold": those that it gives a (normalised) score above the threshold.
    """
    if labels not in get_args(Labels):
        raise InputError(f"labels={labels!r}: expected one of {', '.join(get_args(Labels))}.")
    if labels == "threshold":
        if not np.isfinite(threshold):
            raise InputError(f"threshold={threshold!r}: expected a finite number.")
        return np.asarray(aligned.retrieved & (aligned.scores > threshold))
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n={n!r}: expected a whole number from 1 on.")
    ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts)
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    row, ranker = np.nonzero(ranks == n + 1)
    edge = np.full((len(aligned.queries), len(aligned.rankers)), -np.inf)
    edge[query[row], ranker] = aligned.raw[row, ranker]
    return np.asarray((ranks > 0) & (ranks <= n) & (aligned.raw > edge[query]))


def estimate_quality(aligned: Aligned, marks: NDArray[np.bool_]) -> Quality:
    """Return each ranker's agreement, specificity and spread; `marks` are the fake labels. Reads no judgments.

    With a_k(q) the documents that ranker k marks for query q, agreement is the mean over the other rankers l of
    (O - E) / (1 - E), where O is the overlap of a_k(q) and a_l(q) and E that of a_k(q) and a_l(r) for other
    queries r: documents that are on top whatever is asked earn nothing.
    """
    n_rankers, n_queries = len(aligned.rankers), len(aligned.queries)
    sizes = marks.sum(axis=0).astype(np.float64)
    named = np.zeros((n_rankers, len(aligned.docs)))
    for k in range(n_rankers):
        named[k] = np.bincount(aligned.doc[marks[:, k]], minlength=len(aligned.docs))
    each = range(n_rankers)
    common = np.array([[np.count_nonzero(marks[:, k] & marks[:, other]) for other in each] for k in each])
    scale = np.maximum(np.sqrt(np.outer(sizes, sizes)), 1.0)
    observed = common / scale
    by_chance = (np.einsum("kd,ld->kl", named, named) - common) / (scale * max(n_queries - 1, 1))
    corrected = np.maximum((observed - by_chance) / np.maximum(1.0 - by_chance, 1e-12), 0.0)
    np.fill_diagonal(corrected, 0.0)
    return Quality(
        agreement=corrected.sum(axis=1) / max(n_rankers - 1, 1),
        specificity=sizes / np.maximum((named**2).sum(axis=1), 1.0),
        spread=_spread(aligned),
    )


def _spread(aligned: Aligned) -> Array:
    """Return the root of each ranker's mean variance within a query."""
    lengths = np.diff(aligned.starts)
    filled = lengths > 0
    starts, counts = aligned.starts[:-1][filled], lengths[filled]
    if len(starts) == 0:
        return np.zeros(len(aligned.rankers))
    greatest = max(float(np.abs(aligned.scores).max()), 1e-300)
    spread = np.empty(len(aligned.rankers))
    for k in range(len(spread)):
        scores = aligned.scores[:, k] / greatest
        mean = np.add.reduceat(scores, starts) / counts
        apart = (scores - np.repeat(mean, counts)) ** 2
        spread[k] = np.sqrt(np.mean(np.add.reduceat(apart, starts) / counts))
    return spread
