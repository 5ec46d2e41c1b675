"""A gate: weights of each query from its own features, by ascent on the smoothed MAP (experimental).

The gate (`genm.gating`) adds a linear function of a query's features to the logarithms of the global weights. Its
coefficients maximise the smoothed MAP less a ridge penalty, which pulls towards the global weights. The gate is
used only if its gain over the global weights exceeds 1.28 standard errors in cross-validation inside the training
queries.

D is the derivative of a query's smoothed AP by its logits. The kernels know one vector of weights for all queries;
with a query's scores multiplied by its weights, the gradient at weights of 1 is g_k = w_k dAP/dw_k, and
D_k = g_k - w_k sum(g).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import smooth_ap
from genm._math.linear_algebra import dot, norm, times, weighted_mean
from genm._math.parallel import over_items
from genm._math.tiles import NO_SUMS, Tiles
from genm._typing import Floats
from genm.align import Aligned
from genm.evaluate import AlignedEvaluator, MeasureLike, parse_measure
from genm.fuse import fuse_scores_by_query
from genm.gating import Gate, QueryFeatures, raw_features, softmax, standardised
from genm.grouping import Queries
from genm.learn.auto import clearly_best
from genm.learn.objectives import Beta, Problem, fold_of_queries, with_level

RIDGE = 0.002
"""The penalty on half the squared length of the coefficients, in units of the measure."""
LEAST_WEIGHT = 0.01
"""A global weight below this has the logit of this: the gate could hardly raise it otherwise."""
MOST_STEPS = 12
"""Iterations: the coefficients are shrunk anyway, and the last digits are noise."""
STIFFNESS = 4.0
"""How much more a ranker's own coefficients are penalised than those that all rankers share."""
FIRST_STEP = 1.0
"""Length of the first step, in standardised features, before any curvature is known."""
FEWEST_QUERIES = 30
"""Fewer queries with relevant documents than this teach no gate: the global weights stay."""


class GateFit(NamedTuple):
    """A learned gate, and what the choice inside the training queries found."""

    gate: Gate | None
    """None where its gain inside the training queries is not clear."""
    inner_gain: float
    """Mean gain over the global weights, in cross-validation inside the training queries."""


class _Design:
    """The training queries as the ascent sees them: standardised features, base logits, tiles."""

    def __init__(self, problem: Problem, own: Floats, shared: Floats, logits: Floats) -> None:
        self.own, self.shared, self.logits = own, shared, logits
        self.n_rankers, self.n_own, self.n_shared = own.shape[1], own.shape[2], shared.shape[1]
        self._problem = problem
        self._query_of_tile = np.zeros(len(problem.tiles.sizes), np.int64)
        for q, (first, last) in enumerate(problem.tiles.tile_spans.tolist()):
            self._query_of_tile[first:last] = q
        spans = problem.tiles.relevant_spans
        self._query_of_relevant = np.zeros(len(problem.tiles.relevant_scores), np.int64)
        for q, (first, last) in enumerate(spans.tolist()):
            self._query_of_relevant[first:last] = q

    @property
    def penalties(self) -> Floats:
        """How much of the ridge each coefficient feels: those that all rankers share feel the least."""
        common = self.n_own + self.n_rankers
        return np.concatenate((np.ones(common), np.full(self.n_rankers * (self.n_own + self.n_shared), STIFFNESS)))

    def split(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the logits, and the coefficients of the lists' features and of the query's, a row per ranker."""
        common, shifts, rest = np.split(theta, [self.n_own, self.n_own + self.n_rankers])
        rows = rest.reshape(self.n_rankers, self.n_own + self.n_shared)
        return self.logits + shifts, common[None] + rows[:, : self.n_own], rows[:, self.n_own :]

    def weights(self, theta: Floats) -> Floats:
        """Return the weights of every query."""
        logits, own, shared = self.split(theta)
        parts = (self.own * own[None]).sum(axis=2) + (self.shared[:, None, :] * shared[None]).sum(axis=2)
        return softmax(logits[None] + parts)

    def loss(self, theta: Floats, queries: NDArray[np.intp], ridge: float) -> tuple[float, Floats]:
        """Return the penalty less the smoothed MAP of some queries, and its gradient."""
        weights = self.weights(theta)
        problem = self._problem.select(queries)
        tiles = self._scaled(problem.tiles, weights)
        found = smooth_ap(tiles, np.ones(self.n_rankers), problem.beta, order=1)
        share = tiles.query_weights / tiles.query_weights.sum()
        slopes = found.gradient - weights[queries] * found.gradient.sum(axis=1, keepdims=True)
        slopes *= share[:, None]
        own = (slopes[:, :, None] * self.own[queries]).sum(axis=0)
        shared = (slopes[:, :, None] * self.shared[queries][:, None, :]).sum(axis=0)
        gradient = np.concatenate(
            (own.sum(axis=0), slopes.sum(axis=0), np.concatenate((own, shared), axis=1).reshape(-1))
        )
        value, pull = float((found.value * share).sum()), ridge * self.penalties * theta
        return 0.5 * dot(pull, theta) - value, pull - gradient

    def _scaled(self, tiles: Tiles, weights: Floats) -> Tiles:
        """Return the tiles with all scores multiplied by the weights of their query."""
        by_tile = weights[self._query_of_tile]
        return replace(
            tiles,
            scores=tiles.scores * by_tile[:, :, None],
            low=tiles.low * by_tile,
            high=tiles.high * by_tile,
            sums=NO_SUMS,
            relevant_scores=tiles.relevant_scores * weights[self._query_of_relevant],
        )

    def learn(self, queries: NDArray[np.intp]) -> Floats:
        """Return the coefficients that are learned from some queries."""
        start = np.zeros(len(self.penalties))
        return minimise(partial(self.loss, queries=queries, ridge=RIDGE), start, max_iter=MOST_STEPS)


def minimise(loss: Callable[[Floats], tuple[float, Floats]], start: Floats, *, max_iter: int) -> Floats:
    """Return a point that BFGS reaches within so many steps; scipy's would depend on the linear algebra library."""
    at, (value, gradient) = start, loss(start)
    inverse = np.eye(len(start)) * (FIRST_STEP / max(norm(gradient), 1e-12))
    for _ in range(max_iter):
        step = -times(inverse, gradient)
        slope, length = dot(step, gradient), 1.0
        trial, (new, new_gradient) = at + step, loss(at + step)
        while new > value + 1e-4 * length * slope and length > 0.05:
            length *= 0.4
            trial = at + length * step
            new, new_gradient = loss(trial)
        if not new < value - 1e-6:
            return trial if new < value else at
        moved, turned = trial - at, new_gradient - gradient
        curve = dot(moved, turned)
        if curve > 1e-12:
            along = times(inverse, turned)
            inverse += np.outer(moved, moved) * ((1.0 + dot(turned, along) / curve) / curve)
            inverse -= (np.outer(along, moved) + np.outer(moved, along)) / curve
        at, value, gradient = trial, new, new_gradient
    return at


def learn_gate(
    aligned: Aligned,
    centre: Floats,
    *,
    queries: Queries | None = None,
    measure: MeasureLike = "AP",
    level: int = 1,
    beta: Beta = "auto",
    folds: int = 5,
    seed: int = 0,
    always: bool = False,
) -> GateFit:
    """Learn a gate around the global weights (`centre`); none where its gain is not clear, unless `always`."""
    wanted = with_level(parse_measure(measure), level)
    problem = Problem(aligned, level=max(level, wanted.rel), beta=beta)
    n = len(problem.kept)
    if n < FEWEST_QUERIES and not always:
        return GateFit(None, 0.0)
    taught = aligned if n == len(aligned.queries) else aligned.select(problem.kept)
    known = QueryFeatures.of(list(taught.queries), queries)
    own, shared = raw_features(taught, known, queries)
    scales = _scales(own), _scales(shared)
    logits = np.log(np.maximum(centre, LEAST_WEIGHT))
    design = _Design(problem, standardised(own, *scales[0]), standardised(shared, *scales[1]), logits)
    evaluator = AlignedEvaluator(taught, [wanted])

    def measured(weights: Floats) -> Floats:
        return evaluator.values(fuse_scores_by_query(taught, weights))[:, 0]

    fold = fold_of_queries(n, min(folds, n), seed)

    def held_out(f: int) -> tuple[NDArray[np.bool_], Floats]:
        outside = fold == f
        theta = design.learn(np.flatnonzero(~outside))
        return outside, measured(design.weights(theta))[outside]

    reached = np.zeros((2, n))
    reached[0] = measured(np.tile(np.asarray(centre, np.float64), (n, 1)))
    for outside, values in over_items(held_out, range(int(fold.max()) + 1)):
        reached[1, outside] = values
    gain = weighted_mean(reached[1] - reached[0], taught.query_weights)
    if clearly_best(reached, taught.query_weights, 0) == 0 and not always:
        return GateFit(None, gain)
    theta = design.learn(np.arange(n))
    shifted, own_rows, shared_rows = design.split(theta)
    gate = Gate(
        logits=tuple(shifted.tolist()),
        own_mean=_rows(scales[0][0]),
        own_scale=_rows(scales[0][1]),
        own=_rows(own_rows),
        shared_mean=tuple(scales[1][0].tolist()),
        shared_scale=tuple(scales[1][1].tolist()),
        shared=_rows(shared_rows),
        features=known,
        ridge=RIDGE,
    )
    return GateFit(gate, gain)


def _scales(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every feature; 0 and 1 where it does not vary, or is not known."""
    known = ~np.isnan(values)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / n
    spread = np.sqrt(np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / n)
    return mean, np.where(spread > 1e-12, spread, 1.0)


def _rows(values: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.tolist())
