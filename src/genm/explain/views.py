"""Aligned queries as some of the rankers see them: stored once for all subsets, wherever no document leaves.

A subset is an integer with a bit for each ranker. Its view is the store of all rankers with the other weights held
at 0, or a copy of its columns; where documents leave with the others, those of the rest.
"""

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import smooth_ap
from genm._math.linear_algebra import row_products
from genm._math.thinning import Thinner
from genm._math.tiles import mean
from genm.align import Aligned, select_rankers
from genm.evaluate import Measure
from genm.learn.objectives import Problem, sharpness_for
from genm.learn.scorer import Scorer

Array = NDArray[np.float64]

WINDOW = 8.0
"""Sigmoids further from their middle, in units of beta times score, count as 0 or 1 in a climb.

They are within 0.0004 of that. The slope changes in its fourth digit, and takes two thirds of the time."""


DEEP = 1000
"""Documents that no ranker has among its first so many take no part in a climb; all are measured."""


def members_of(subset: int) -> list[int]:
    """Return the rankers of a subset."""
    return [k for k in range(subset.bit_length()) if subset >> k & 1]


class View(NamedTuple):
    """Some queries as some of the rankers see them; weights are those of the subset alone."""

    problem: Problem
    """The smoothed MAP; of long lists, over the documents near their tops."""
    scorer: Scorer
    columns: list[int]
    """Where the subset's weights stand among those that problem and scorer take."""
    n_columns: int

    def whole(self, weights: Array) -> Array:
        """Return weights for all columns: 0 for rankers outside the subset."""
        spread = np.zeros(self.n_columns)
        spread[self.columns] = weights
        return spread

    def gradient(self, weights: Array) -> tuple[float, Array]:
        """Return the smoothed MAP and its gradient (Eq. 16)."""
        tiles = self.problem.tiles
        found = smooth_ap(tiles, self.whole(weights), self.problem.beta, order=1, window=WINDOW)
        return float(mean(tiles, found.value)), mean(tiles, found.gradient)[self.columns]

    def per_query(self, weights: Array) -> Array:
        """Return the exact measure of every query."""
        return self.scorer.per_query(self.whole(weights))

    def mean(self, weights: Array) -> float:
        """Return the exact measure's mean."""
        return self.scorer.mean(self.whole(weights))

    @property
    def as_scorer(self) -> Scorer:
        """Itself, for those who ask a scorer for means: theirs is the subset's, in the subset's weights."""
        return cast("Scorer", self)

    @property
    def is_smoothed(self) -> bool:
        """Whether the smoothed objective climbs this very measure."""
        return self.scorer.is_smoothed

    def select(self, queries: NDArray[np.integer]) -> "View":
        """Return the view of some of the queries."""
        return self._replace(problem=self.problem.select(queries), scorer=self.scorer.select(queries))


class Views:
    """Makes the views of one set of aligned queries."""

    def __init__(self, aligned: Aligned, measure: Measure) -> None:
        self.aligned, self.measure = aligned, measure
        self.problem = Problem(aligned, level=measure.rel)
        self.scorer = Scorer(aligned, self.problem, measure, measure.rel)
        self._covariances = _covariances(aligned)
        self._gaps = ~aligned.retrieved[~aligned.retrieved.all(axis=1)]
        """(rows that not everyone returned, K) who did not."""
        self._thinner = Thinner(self.problem.tiles) if len(self._gaps) and self.scorer.is_smoothed else None
        self._returned = None if self._thinner is None else aligned.retrieved[self._thinner.row]
        self._near = self.problem
        if self._thinner is None and np.diff(aligned.starts).max(initial=0) > 2 * DEEP:
            everyone, thinner = list(range(len(aligned.rankers))), Thinner(self.problem.tiles)
            tiles = thinner.thin(_near_the_top(aligned)[thinner.row], everyone)
            self._near = self.problem.with_rankers(everyone, tiles)

    def of(self, subset: int) -> View:
        """Return the view of a subset of the rankers."""
        aligned, columns = self.aligned, members_of(subset)
        leaves = bool(self._gaps[:, columns].all(axis=1).any())
        if leaves and not self.scorer.is_smoothed:
            own = select_rankers(aligned, [aligned.rankers[k] for k in columns])
            problem = Problem(own, level=self.measure.rel)
            return self._alone(problem, Scorer(own, problem, self.measure, self.measure.rel))
        if leaves and self._thinner is not None and self._returned is not None:
            kept = np.asarray(self._returned[:, columns].any(axis=1), np.bool_)
            problem = self.problem.with_rankers(columns, self._thinner.thin(kept, columns))
            variances = np.ldexp(self._thinner.variances(kept, columns), 2 * problem.tiles.exponent)
        else:
            # nothing leaves: one and the same store serves, and only the sharpness follows the subset's scale
            variances = self._covariances[:, columns][:, :, columns].sum(axis=(1, 2)) / len(columns) ** 2
            variances = np.maximum(variances, 0.0)  # rounding may leave constant scores a hair below
            is_narrow = 2 * len(columns) <= len(aligned.rankers) and self.scorer.is_smoothed
            if self._near is not self.problem or not is_narrow:
                problem = self._near.with_beta(sharpness_for(variances))
                return View(problem, self.scorer, columns, len(aligned.rankers))
            problem = self.problem.with_rankers(columns)  # reading many columns of 0 takes longer than a copy
        problem = problem.with_beta(sharpness_for(variances))
        return self._alone(problem, Scorer(aligned, problem, self.measure, self.measure.rel))

    def _alone(self, problem: Problem, scorer: Scorer) -> View:
        return View(problem, scorer, list(range(len(problem.rankers))), len(problem.rankers))


def _covariances(aligned: Aligned) -> Array:
    """Return (queries of more than one document, K, K) how the rankers' scores vary together within a query."""
    found = []
    for begin, end in zip(aligned.starts[:-1].tolist(), aligned.starts[1:].tolist(), strict=True):
        if end - begin > 1:
            scores = aligned.scores[begin:end]
            apart = scores - scores.mean(axis=0)
            found.append(row_products(apart.T, apart.T) / (end - begin))
    return np.array(found).reshape(-1, len(aligned.rankers), len(aligned.rankers))


def _near_the_top(aligned: Aligned) -> NDArray[np.bool_]:
    """Return which rows some ranker has among its first `DEEP`; where scores are level, the first of them."""
    near = np.zeros(len(aligned.doc), np.bool_)
    for begin, end in zip(aligned.starts[:-1].tolist(), aligned.starts[1:].tolist(), strict=True):
        for column in aligned.scores[begin:end].T:
            near[begin + _highest(column, DEEP)] = True
    return near


def _highest(values: Array, n: int) -> NDArray[np.intp]:
    """Return where the n highest values stand; among equals the first, on every processor."""
    if len(values) <= n:
        return np.arange(len(values))
    edge = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > edge)
    return np.concatenate((above, np.flatnonzero(values == edge)[: n - len(above)]))
