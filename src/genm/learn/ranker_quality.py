"""How much each ranker is worth to an ensemble, told without a judgment: by what the rankers put on top.

Three things are asked. Does a ranker name documents that the others name too (agreement)? Does it answer the
query, or name the same documents whatever is asked (specificity)? And does it say something that its fellows do
not say already (redundancy)? Agreement alone favours whoever stands in the middle of a group of similar rankers,
specificity alone whoever is different for no good reason; docs/unsupervised.md shows what each is worth.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import nonnegative_solution, product, row_products, symmetric_eigen
from genm._math.scaling import rank_lists
from genm._math.simplex_optimizers import as_distribution
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import InputError

Labels = Literal["top", "threshold"]

RIDGE = 0.2
"""Added to the diagonal of the overlaps: how far similar rankers are kept from shutting each other out."""
LUCK = 2.0
"""Standard deviations above chance that an overlap must reach to count: what few queries show may be luck."""
COPY = 0.8
"""From this overlap on a ranker is less and less of a witness for the other; a copy is none."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What the rankers' tops say about the rankers."""

    overlap: Floats
    """(K, K) share of one ranker's top that another has too, less what chance would give; 1 with itself."""
    specificity: Floats
    """Different documents in a ranker's tops of all queries (an effective number), as a share of the places."""
    height: Floats
    """How far a ranker's top stands above its mean score of the query, on the scale that the weights see."""

    @property
    def agreement(self) -> Floats:
        """Each ranker's overlap with the others, in the mean; copies of it have no say, unless all are copies."""
        others = ~np.eye(len(self.overlap), dtype=np.bool_)
        say = np.where(others, np.clip((1.0 - self.overlap) / (1.0 - COPY), 0.0, 1.0), 0.0)
        say = np.where(say.sum(axis=1, keepdims=True) > 1e-9, say, others)
        return np.asarray((say * self.overlap).sum(axis=1) / np.maximum(say.sum(axis=1), 1e-9))

    @property
    def merit(self) -> Floats:
        """The root of agreement times specificity: an estimate of quality, up to a factor.

        The root, because agreement is partly a matter of standing in the middle of similar rankers; a ranker that
        nobody bears out has none all the same.
        """
        return np.asarray(np.sqrt(self.agreement) * self.specificity)

    def shares(self) -> Floats:
        """Return each ranker's share of the say: the best blend if merit were correlation with relevance.

        That blend is the inverse of the rankers' correlations times merit, here with overlaps for correlations,
        a ridge, and no share below 0. Equal shares if no ranker agrees with any other.
        """
        best = self.merit.max()
        if not best > 0.0:
            return np.ones(len(self.height))
        sizes, axes = symmetric_eigen(self.overlap + RIDGE * np.eye(len(self.height)))
        sizes = np.maximum(sizes, RIDGE)  # less what chance would give, overlaps may lose a square's shape
        return nonnegative_solution(product(axes * sizes, axes.T), self.merit / best)

    def weights(self) -> Floats:
        """Return the shares as weights: a ranker whose top stands high above the rest needs less."""
        return as_distribution(self.shares() * units_of(self.height))


def units_of(height: Floats) -> Floats:
    """Return 1 / height, 0 for a ranker without one, and 1 for all if none has."""
    if not (height > 0.0).any():
        return np.ones(len(height))
    return np.asarray(np.divide(height.max(), height, out=np.zeros(len(height)), where=height > 0.0))


def pseudo_labels(
    aligned: Aligned, *, labels: Labels = "top", n: int = 5, threshold: float = 0.5
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
    marks = (ranks > 0) & (ranks <= n)
    row, ranker = np.nonzero(marks)
    marks[row, ranker] = aligned.raw[row, ranker] > edge[query[row], ranker]
    return np.asarray(marks)


def estimate_quality(aligned: Aligned, marks: NDArray[np.bool_]) -> Quality:
    """Return what the fake labels `marks` say about the rankers. Reads no judgments.

    With a_k(q) the documents that ranker k marks for query q, the overlap of k and l is (O - E) / (1 - E), where O
    compares a_k(q) with a_l(q) and E compares it with a_l(r) for the other queries r: documents that are on top
    whatever is asked earn nothing. Two standard deviations of E, the places being few, are taken off O as well.
    """
    each = range(len(aligned.rankers))
    named = np.zeros((len(aligned.rankers), len(aligned.docs)))
    for k in each:
        named[k] = np.bincount(aligned.doc[marks[:, k]], minlength=len(aligned.docs))
    common = np.array([[np.count_nonzero(marks[:, k] & marks[:, other]) for other in each] for k in each])
    return quality_of_marks(named, common.astype(np.float64), _heights(aligned, marks), len(aligned.queries))


def quality_of_marks(named: Floats, common: NDArray[np.float64], height: Floats, n_queries: int) -> Quality:
    """Return what marked documents say, given by counts.

    `named` (K, documents) is how often each ranker marks each document, `common` (K, K) how many documents of
    the same query two rankers mark, `height` (K) how far they stand above the mean score.
    """
    sizes = np.diagonal(common)
    scale = np.maximum(np.sqrt(np.outer(sizes, sizes)), 1.0)
    by_chance = (row_products(named, named) - common) / (scale * max(n_queries - 1, 1))
    luck = by_chance + LUCK * np.sqrt(by_chance / scale)
    overlap = np.maximum((common / scale - luck) / np.maximum(1.0 - by_chance, 1e-12), 0.0)
    np.fill_diagonal(overlap, 1.0)
    return Quality(overlap, sizes / np.maximum((named**2).sum(axis=1), 1.0), height)


def _heights(aligned: Aligned, marks: NDArray[np.bool_]) -> Floats:
    """Return the mean, over a ranker's marked documents, of their scores less the query's mean score."""
    lengths = np.diff(aligned.starts)
    filled = lengths > 0
    heights = np.zeros(len(aligned.rankers))
    query = np.repeat(np.arange(int(filled.sum())), lengths[filled])
    for k in range(len(heights)):
        at = np.flatnonzero(marks[:, k])
        if len(at):
            column = np.ascontiguousarray(aligned.scores[:, k])
            greatest = max(float(np.abs(column).max()), 1e-300)  # the sums below must not overflow
            mean = np.add.reduceat(column / greatest, aligned.starts[:-1][filled]) / lengths[filled]
            heights[k] = max(float(np.mean(column[at] / greatest - mean[query[at]])), 0.0) * greatest
    return heights
