"""Weights by group of queries, pooled with the global ones (partial pooling).

Each group's own weights are learned from its queries alone. With n of them the group gets the share n / (n +
pooling) of its own weights and the rest of the global ones. The pooling, the same for all groups, is chosen by
cross-validation inside the training queries; the global weights stay unless a pooling gains more than 1.28
standard errors. A group with few queries, or whose own queries do not gain under the chosen pooling, ends at the
global weights.

In the inner folds the global weights are those of all training queries, while a group's own are learned without the
fold: the comparison favours the global weights a little, on purpose.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import weighted_mean
from genm._math.parallel import over_items
from genm._math.simplex_optimizers import Ascent, as_distribution, quasi_newton
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import InputError
from genm.evaluate import MeasureLike, parse_measure
from genm.grouping import Grouping, count_groups
from genm.learn.auto import FOLD_TOLERANCE, WarmRestart, clearly_best
from genm.learn.objectives import Beta, Problem, Scorer, direct_search, fold_of_queries
from genm.model import Groups, GroupWeights

FEWEST_QUERIES = 10
"""A group with fewer judged queries than this gets the global weights."""
POOLINGS = (0.0, 5.0, 20.0, 80.0, 320.0)
"""How many queries the global weights count for; the global weights alone come beside these."""
_STEPS = (0.1, 0.05, 0.02)
"""Of the direct search for measures that have no smoothed form."""


class GroupFit(NamedTuple):
    """Learned weights by group, and what the choice inside the training queries found."""

    groups: Groups
    inner_gain: float
    """Mean gain of the chosen pooling over the global weights, in cross-validation inside the training queries."""
    n_queries: dict[str, int]
    """Judged queries that each group was learned from."""


class _OwnWeights:
    """One group's queries: its own weights, and those learned without some of its queries."""

    def __init__(self, problem: Problem, scorer: Scorer, members: NDArray[np.intp], centre: Floats) -> None:
        self.members, self._problem, self._scorer = members, problem.select(members), scorer.select(members)
        inside = 0.75 * as_distribution(centre) + 0.25 / len(centre)  # a weight of 0 could not grow
        self._end = quasi_newton(self._problem.gradient, inside, tol=1e-5, max_iter=100)
        self._restart = WarmRestart(self._problem, self._end)
        self.learned = self._best(self._end, self._scorer, centre)

    def _best(self, end: Ascent, scorer: Scorer, centre: Floats) -> Floats:
        best = end.alpha if scorer.mean(end.alpha) > scorer.mean(centre) else centre
        return best if scorer.is_smoothed else direct_search(scorer, best, steps=_STEPS)

    def without(self, left_out: NDArray[np.bool_], centre: Floats) -> Floats:
        """Return the weights learned from the other members."""
        inside = np.flatnonzero(~left_out)
        if len(inside) == 0:
            return centre
        end = self._restart(inside, tol=FOLD_TOLERANCE, max_iter=100)
        return self._best(end, self._scorer.select(inside), centre)

    def values(self, chosen: NDArray[np.bool_], weights: Floats) -> Floats:
        """Return the measure of some of the members."""
        return self._scorer.select(np.flatnonzero(chosen)).per_query(weights)


def pooled(own: Floats, centre: Floats, n_queries: int, pooling: float) -> Floats:
    """Return the share n / (n + pooling) of a group's own weights, and the rest of the global ones."""
    share = n_queries / (n_queries + pooling) if n_queries else 0.0
    return np.asarray(share * own + (1.0 - share) * centre)


def learn_groups(
    aligned: Aligned,
    groups: Sequence[str | None],
    centre: Floats,
    *,
    grouping: Grouping | None = None,
    measure: MeasureLike = "AP",
    level: int = 1,
    beta: Beta = "auto",
    folds: int = 5,
    repeats: int = 2,
    seed: int = 0,
) -> GroupFit:
    """Learn the weights of each group of queries around the global ones.

    `aligned` has the judged queries, normalised as the global weights (`centre`) want them; `groups` names the
    group of each, None where it has none.
    """
    wanted = parse_measure(measure)
    if len(groups) != len(aligned.queries):
        raise InputError(f"groups: expected one for each of {len(aligned.queries)} queries; found {len(groups)}.")
    counts, centre = count_groups(groups), np.asarray(centre, np.float64)
    problem = Problem(aligned, level=max(level, wanted.rel), beta=beta)
    scorer = Scorer(aligned, problem, wanted, level)
    names = np.array([groups[q] or "" for q in problem.kept.tolist()])
    places = {name: np.flatnonzero(names == name) for name in counts}
    able = [name for name in counts if len(places[name]) >= FEWEST_QUERIES]
    own = {name: _OwnWeights(problem, scorer, places[name], centre) for name in able}
    pooling, gains = _choose(own, centre, scorer.query_weights, folds=folds, repeats=repeats, seed=seed)
    members = []
    for name in counts:
        weights = centre
        if pooling is not None and gains.get(name, 0.0) > 0.0:
            weights = pooled(own[name].learned, centre, len(places[name]), pooling)
        members.append(GroupWeights(name, tuple(weights.tolist()), len(places[name])))
    made = Groups(grouping or Grouping(), tuple(members), pooling)
    total = sum(float(scorer.query_weights[places[name]].sum()) for name in able)
    mean = sum(max(gains[name], 0.0) * float(scorer.query_weights[places[name]].sum()) for name in able)
    return GroupFit(
        made,
        mean / total if pooling is not None and total > 0.0 else 0.0,
        {name: len(places[name]) for name in counts},
    )


def _choose(
    own: dict[str, _OwnWeights], centre: Floats, query_weights: Floats, *, folds: int, repeats: int, seed: int
) -> tuple[float | None, dict[str, float]]:
    """Return the pooling that clearly gains inside the training queries, and every group's mean gain under it."""
    if not own:
        return None, {}
    reached = {name: np.zeros((1 + len(POOLINGS), len(group.members))) for name, group in own.items()}
    jobs = [(name, r, f) for name in own for r in range(repeats) for f in range(folds)]

    def held_out(job: tuple[str, int, int]) -> tuple[str, NDArray[np.bool_], Floats]:
        name, r, f = job
        group = own[name]
        n = len(group.members)
        outside = fold_of_queries(n, min(folds, n), seed + r) == f
        learned = group.without(outside, centre)
        tried = [centre, *(pooled(learned, centre, n - int(outside.sum()), one) for one in POOLINGS)]
        return name, outside, np.array([group.values(outside, weights) for weights in tried])

    for name, outside, values in over_items(held_out, jobs):
        reached[name][:, outside] += values / repeats
    everywhere = np.concatenate([reached[name] for name in own], axis=1)
    counted = np.concatenate([query_weights[own[name].members] for name in own])
    best = clearly_best(everywhere, counted, 0)
    gains = {
        name: weighted_mean(reached[name][best] - reached[name][0], query_weights[group.members])
        for name, group in own.items()
    }
    return (None if best == 0 else POOLINGS[best - 1]), gains
