"""The systems whose comparison the judgments are for, given by the ranks that they give to aligned documents."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from genm._math.expected_ap import expected_ap, expected_size, ranks_of
from genm._math.fusion import weighted_sum
from genm._math.scaling import rank_lists
from genm._typing import Floats, Ints
from genm.align import Aligned
from genm.errors import InputError
from genm.evidence.evidence import current_weights
from genm.learn import CotrainFuser, ExpectedFuser
from genm.learn.relevance import (
    Features,
    Relevance,
    estimate_relevance,
    known_relevant,
    ranker_features,
    system_features,
)

EQUAL = "equal"
"""The name of the system with equal weights."""
LEARNED = "learned"
"""The name of the system with the weights that the judgments so far lead to; without any, those of UnsEnM."""
CURRENT = "current"
"""The name of the system with the weights in use."""
WEIGHTS = "weights"
"""The target "learn the weights", which compares several weightings at once."""

System = str | Mapping[str, float]
"""A ranker's name, "equal", "learned", "current", or weights by ranker."""


class Target(NamedTuple):
    """The question that judgments should answer: which of these systems is better."""

    names: tuple[str, ...]
    ranks: tuple[Ints, ...]
    """For each system the rank of every row, 0 where its list lacks the document."""
    features: Features
    """What the model of relevance knows; for two systems the same for both."""

    def relevance(self, aligned: Aligned, *, level: int = 1) -> Relevance:
        """Return how likely each document is to be relevant, given the judgments so far."""
        return estimate_relevance(aligned, self.features, level=level)

    def usefulness(self, aligned: Aligned, relevance: Relevance, *, level: int = 1) -> Floats:
        """Return how much each row's judgment could change the answer; 0 where it is judged.

        The spread, over the systems, of what the document's relevance changes in expected AP (for two systems half
        the distance: the weight of minimal test collections), times the standard deviation of its relevance.
        """
        size = expected_size(aligned.starts, relevance.p, known_relevant(aligned, level))
        influence = [expected_ap(aligned.starts, ranks, relevance.p, size).influence for ranks in self.ranks]
        counts = np.repeat(aligned.query_weights, np.diff(aligned.starts))
        return np.asarray(np.std(influence, axis=0) * np.sqrt(relevance.variance) * counts)


def target_of(
    aligned: Aligned,
    compare: Sequence[System] | None = None,
    *,
    current: Mapping[str, float] | None = None,
    level: int = 1,
) -> Target:
    """Return the target of judging: two systems, or the weights if none are named.

    For the weights the systems are equal weights and, for each ranker, the middle between equal weights and that
    ranker alone.
    """
    if compare is None:
        n = len(aligned.rankers)
        vectors = [np.full(n, 1.0 / n), *(0.5 / n + 0.5 * np.eye(n))]
        ranks = [_weighted(aligned, weights) for weights in (vectors if n > 1 else vectors[:1])]
        return Target((WEIGHTS,), tuple(ranks), ranker_features(aligned))
    if isinstance(compare, str) or len(compare) != 2:
        raise InputError(f"compare (--compare): expected two systems, such as learned,equal; found {compare!r}.")
    names = tuple(one if isinstance(one, str) else CURRENT for one in compare)
    ranks = [_ranks(aligned, one, current, level) for one in compare]
    return Target(names, tuple(ranks), system_features(aligned, ranks))


def _ranks(aligned: Aligned, system: System, current: Mapping[str, float] | None, level: int) -> Ints:
    """Return the ranks that one system gives to all rows."""
    if isinstance(system, Mapping):
        return _weighted(aligned, current_weights(system, aligned.rankers))
    if system in aligned.rankers:
        ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts)
        return np.ascontiguousarray(ranks[:, aligned.rankers.index(system)]).astype(np.int64)
    if system == EQUAL:
        return _weighted(aligned, np.full(len(aligned.rankers), 1.0 / len(aligned.rankers)))
    if system == LEARNED:
        is_judged = aligned.labelled and bool((aligned.n_relevant(level) > 0).any())
        fuser = ExpectedFuser(level=level) if is_judged else CotrainFuser()
        return _weighted(aligned, fuser.fit(aligned).weights_)
    if system == CURRENT and current is not None:
        return _weighted(aligned, current_weights(current, aligned.rankers))
    if system == CURRENT:
        raise InputError("compare (--compare) current: expected the weights in use. Give current (--current).")
    known = ", ".join((*aligned.rankers, EQUAL, LEARNED, CURRENT))
    raise InputError(f"compare (--compare) {system!r}: expected one of {known}.")


def _weighted(aligned: Aligned, weights: Floats) -> Ints:
    return ranks_of(aligned.starts, weighted_sum(aligned.scores, weights))
