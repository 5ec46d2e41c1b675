"""Held-out gains over rivals: intervals that allow for the weights having been learned from few queries.

What is estimated: the mean gain, on further queries of the same kind, of the weights that were learned from all n
queries. The estimate is the mean over the queries of the gain under weights learned without their fold. Student's
interval of that mean allows for the queries only. The weights vary, too, and the folds' weights share queries, so
that a query which pulls the weights its way counts again in the folds of its neighbours.

To second order, around the weights that endless queries would lead to: let H be the curvature of the mean measure
there, y_f the mean gradient of fold f and y that of all queries, both 0 on average, x the mean gain itself, k the
number of folds, Q = y' H^-1 y and S the mean of y_f' H^-1 y_f over the folds. Weights learned from some queries lie
H^-1 times their mean gradient away. Adding up gives, with a = (2k - 1) / (2 (k - 1)^2),

    optimism = training mean - held-out mean = a (S - Q)
    held-out mean - true mean of the weights of all queries = x + Q - optimism.

x has the variance that Student's interval knows. Of K weights K - 1 are free; if all their directions are equally
uncertain, H^-1 times the covariance of one query's gradient is v times the identity, and

    E optimism = a (k - 1) (K - 1) v / n
    Var(Q - optimism) = (2 + 2 (k - 1) a^2) (K - 1) v^2 / n^2,

of which k / (k - 1) parts of (K - 1) v^2 / n^2 show in the spread of the differences already. The rest is

    (2 + 2 (k - 1) a^2 - k / (k - 1)) / (a (k - 1))^2 * optimism^2 / (K - 1),

with 5 folds 1.09 optimism^2 / (K - 1): what `learning_variance` returns. It fades as 1 / n^2, the queries' own
variance as 1 / n.

Without another fit, optimism shows in the folds alone: the mean of a fold's weights on the queries that they were
learned from, less their mean on the fold, is k (S - Q) / (k - 1)^2 on average over the folds, which is
2k / (2k - 1) times the optimism above. `fold_learning_variance` starts from it.

The loss without a ranker is the difference of two learned systems, with K - 1 and K - 2 free directions. Its error
is the difference of their errors, and those are correlated. Let c be the correlation of the systems' gradients in a
direction that both have: the covariance of the errors is c^2 (K - 2) v^2 / n^2 times the constants above, so that
their correlation is

    r = c^2 sqrt((K - 2) / (K - 1)).

A query's own optimism, its value in training less that held out, is its gradient times the distance of two vectors
of weights. Over the queries, the optimisms of the two systems have the covariance c^2 (K - 2) v^2 / n and the
variances (K - 1) v^2 / n and (K - 2) v^2 / n, times one constant: their correlation is r as well, and can be
measured. `loss_learning_variance` returns V + W - 2 r sqrt(V W), with the variances V and W of both systems. One r
serves all rankers, the mean of theirs: where a subset ended at the weights of all rankers, its own r is 1 by
construction and says nothing about learning the subset again from scratch. Of two rankers, one is left and learns
nothing: the loss without the one is the gain over the other, and V is its variance.

Shapley values are sums over subsets with factors. The squares of the factors times the subsets' variances are
added, as if their errors were independent; so are those of both where a smaller subset stands for the whole.

A rival that was chosen because it is the best of several on these queries looks better than it is, and the gain
over it smaller. The upper end of its interval is therefore that of the gain over what the other folds would have
chosen for each query, where that is higher. The lower end needs no such care.

`python -m benchmarks.coverage` measures how often such intervals hold.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import row_products, times, weighted_mean
from genm._math.significance import rounded, student_interval
from genm._typing import Floats
from genm.evaluate import Contrast, compare_runs
from genm.evaluate.compare import Test, outcome_of

CRITERION = (
    "Better and worse mean that the interval leaves out 0; the interval allows for the weights having been "
    "learned, and holds for its own row. p is that of Wilcoxon's test over the queries and decides nothing: it "
    "does not allow for learning, and it asks how often a query gains, not by how much."
)
"""What decides whether a gain is called significant, in words."""


def learning_variance(optimism: float, n_rankers: int, n_folds: int) -> float:
    """Return the variance of a held-out mean that comes from learning, to be added to that of the queries.

    `optimism` is the mean on the training queries less the held-out mean. Where it is negative, or nothing is
    learned, there is nothing to add.
    """
    if n_rankers < 2 or optimism <= 0.0:
        return 0.0
    k = float(n_folds)
    a = (2.0 * k - 1.0) / (2.0 * (k - 1.0) ** 2)
    factor = (2.0 + 2.0 * (k - 1.0) * a**2 - k / (k - 1.0)) / (a * (k - 1.0)) ** 2
    return factor * optimism**2 / (n_rankers - 1)


def fold_learning_variance(training: float, held_out: float, n_rankers: int, n_folds: int) -> float:
    """Return the variance of a held-out mean that comes from learning, where only the folds were learned.

    `training` is the mean over the queries under the weights of the folds that learned from them.
    """
    return learning_variance((training - held_out) * (2 * n_folds - 1) / (2 * n_folds), n_rankers, n_folds)


def loss_learning_variance(held_out: Floats, training: Floats, query_weights: Floats, n_folds: int) -> Floats:
    """Return what learning adds to the variance of the loss without each ranker.

    Both tables have a row of values by query for all rankers, and then one without each ranker; the training values
    are those under the weights of the folds that learned from the query.
    """
    n_rankers = len(held_out) - 1
    sizes = [n_rankers] + [n_rankers - 1] * n_rankers
    means = [[weighted_mean(row, query_weights) for row in rows] for rows in (training, held_out)]
    variances = np.array([fold_learning_variance(t, h, k, n_folds) for t, h, k in zip(*means, sizes, strict=True)])
    optimism = np.array([counted(row, query_weights) for row in training - held_out])
    apart = optimism - optimism.mean(axis=1, keepdims=True)
    products = row_products(apart, apart)
    lengths = np.sqrt(products[0, 0] * np.diag(products)[1:])
    together = np.divide(products[0, 1:], lengths, out=np.zeros(n_rankers), where=lengths > 0.0)
    most = np.sqrt((n_rankers - 2.0) / (n_rankers - 1.0)) if n_rankers > 1 else 0.0
    correlation = float(np.clip(together.mean(), 0.0, most))
    whole, without = variances[0], variances[1:]
    return np.asarray(whole + without - 2.0 * correlation * np.sqrt(whole * without))


def intervals_with_learning(differences: Floats, confidence: float, learning: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of columns of differences, given each column's variance of learning.

    Where all queries are equal there is nothing to allow for.
    """
    differences = rounded(differences)
    return student_interval(
        differences, confidence, further_variance=np.where(differences.any(axis=0), learning, 0.0)
    )


def counted(per_query: Floats, query_weights: Floats) -> Floats:
    """Return values whose plain mean is the mean with the queries' weights, for tests and intervals of the mean."""
    return np.asarray(per_query * (query_weights * len(query_weights) / query_weights.sum()))


def best_by_fold(systems: Floats, fold: NDArray[np.int64], query_weights: Floats) -> Floats:
    """Return, for every query, the value of the system with the highest mean over the other folds' queries."""
    chosen = np.zeros(len(fold))
    for f in np.unique(fold):
        inside = fold != f
        chosen[~inside] = systems[int(np.argmax(times(systems[:, inside], query_weights[inside]))), ~inside]
    return chosen


class GainIntervals:
    """Contrasts of one set of held-out values with any rival."""

    def __init__(
        self,
        held_out: Floats,
        train: Floats,
        fold: NDArray[np.int64],
        query_weights: Floats,
        *,
        n_rankers: int,
        measure: str,
        confidence: float,
        seed: int,
    ) -> None:
        self._learned, self._weights = counted(held_out, query_weights), query_weights
        self._fold, self._measure, self._confidence, self._seed = fold, measure, confidence, seed
        optimism = weighted_mean(train, query_weights) - weighted_mean(held_out, query_weights)
        self.further_variance = learning_variance(optimism, n_rankers, len(np.unique(fold)))

    def gain_over(
        self, name: str, rival: Floats, *, chosen_from: Floats | None = None, tests: Sequence[Test] = get_args(Test)
    ) -> Contrast:
        """Return the gain over a rival with its interval; p-values are those of the tests over queries alone.

        `chosen_from` holds a row for each of several systems, of which this rival has the highest mean.
        """
        pair = {name: counted(rival, self._weights), "learned": self._learned}
        options: dict[str, Any] = {"correction": "none", "confidence": self._confidence, "seed": self._seed}
        found = compare_runs(pair, tests=tests, **options).contrasts[0]
        low, high = self._interval(counted(rival, self._weights))
        if chosen_from is not None:
            by_fold = best_by_fold(chosen_from, self._fold, self._weights)
            high = max(high, self._interval(counted(by_fold, self._weights))[1])
        n_differing = found.n_better + found.n_worse
        outcome = outcome_of(found.difference, n_differing, significant=low > 0.0 or high < 0.0)
        return replace(found, measure=self._measure, low=low, high=high, outcome=outcome)

    def interval(self) -> tuple[float, float]:
        """Return the interval of the held-out mean itself."""
        return self._interval(np.zeros(len(self._learned)))

    def _interval(self, rival: Floats) -> tuple[float, float]:
        differences, learning = (self._learned - rival)[:, None], np.array([self.further_variance])
        low, high = intervals_with_learning(differences, self._confidence, learning)
        return float(low[0]), float(high[0])
