"""The smallest subset of the rankers that is not significantly worse than all of them together."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from genm._typing import Floats
from genm.evaluate import compare_runs
from genm.evidence.intervals import intervals_with_learning
from genm.explain.subsets import SubsetValues


@dataclass(frozen=True, slots=True)
class Choice:
    """A subset that stands for the whole, and how sure that is."""

    how: str
    """ "greedy" or "exhaustive"."""
    rankers: tuple[str, ...]
    value: float
    """Its held-out mean."""
    difference: float
    """Its held-out mean less that of all rankers."""
    p: float
    """Against all rankers, the smaller of the paired Wilcoxon test's and the paired t-test's; 1 for all rankers."""
    bound: float
    """It loses at most this, with the confidence asked for, whichever of the subsets looked at was chosen."""
    n_looks: int
    """How many subsets it was chosen from."""


def choose_greedily(values: SubsetValues, *, confidence: float) -> Choice:
    """Drop the least useful ranker repeatedly, until every smaller subset is significantly worse."""
    kept = everyone = values.everyone
    n_looks = 1
    while kept.bit_count() > 1:
        smaller = [kept & ~(1 << k) for k in range(everyone.bit_length()) if kept >> k & 1]
        values.learn(smaller)
        n_looks += len(smaller)
        best = _best_of(values, smaller, confidence)
        if best is None:
            break
        kept = best
    return _choice("greedy", values, kept, n_looks, confidence)


def choose_exhaustively(values: SubsetValues, *, confidence: float) -> Choice:
    """Find the smallest size with a subset that is not significantly worse than all; return its best subset."""
    everyone, n_rankers, n_looks = values.everyone, values.everyone.bit_length(), 0
    best: int | None = None
    for size in range(1, n_rankers):
        subsets = [sum(1 << k for k in members) for members in combinations(range(n_rankers), size)]
        values.learn(subsets)
        n_looks += len(subsets)
        best = _best_of(values, subsets, confidence)
        if best is not None:
            break
    return _choice("exhaustive", values, everyone if best is None else best, n_looks, confidence)


def _best_of(values: SubsetValues, subsets: list[int], confidence: float) -> int | None:
    """Return the subset with the greatest mean among those that are not significantly worse than all rankers."""
    fitting = (s for s in sorted(subsets, key=values.mean, reverse=True) if not _is_worse(values, s, confidence))
    return next(fitting, None)


def _is_worse(values: SubsetValues, subset: int, confidence: float) -> bool:
    """Return whether a subset is worse than all rankers, and that is not luck by one test or the other.

    Wilcoxon's test sees many small losses, the t-test few large ones, which a mean over queries feels as much.
    The level is not corrected for the number of looks: a correction would call more subsets good enough. What many
    looks can do instead is to find one that looks better than it is, and `Choice.bound` allows for that.
    """
    difference, p = _test(values, subset)
    return difference < 0.0 and p < 1.0 - confidence


def _test(values: SubsetValues, subset: int) -> tuple[float, float]:
    if subset == values.everyone:
        return 0.0, 1.0
    pair = [weighted(values, values.everyone), weighted(values, subset)]
    found = compare_runs(pair, tests=("wilcoxon", "t"), n_resamples=1).contrasts[0]
    return found.difference, min(found.p_values.values())


def _choice(how: str, values: SubsetValues, subset: int, n_looks: int, confidence: float) -> Choice:
    difference, p = _test(values, subset)
    lost = weighted(values, values.everyone) - weighted(values, subset)
    learning = np.array([values.learning_variance(values.everyone) + values.learning_variance(subset)])
    bound = float(joint_interval(lost[:, None], confidence, n_looks, learning)[1][0])
    return Choice(how, values.names(subset), values.mean(subset), difference, p, bound, n_looks)


def weighted(values: SubsetValues, subset: int) -> Floats:
    """Return the held-out values scaled by the queries' weights, so that their plain mean is the weighted one."""
    weights = values.aligned.query_weights
    return np.asarray(values.per_query(subset) * (weights / weights.mean()))


def joint_interval(columns: Floats, confidence: float, n_looks: int, learning: Floats) -> tuple[Floats, Floats]:
    """Return intervals of the columns' means that all hold together, whichever of `n_looks` is singled out.

    Student's t at the level shared out evenly (Bonferroni), with the variance of learning of each column.
    """
    return intervals_with_learning(columns, 1.0 - (1.0 - confidence) / n_looks, learning)
