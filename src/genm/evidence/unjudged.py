"""What unjudged documents can change in the difference of two systems.

Each counts by its probability of relevance (`genm.learn.relevance`), so a difference of AP becomes one of expected
AP. Its variance has three parts: the unjudged documents themselves, p (1 - p); the effect of each query on all its
documents; and the coefficients of the model, which all queries share. All vanish when every document is judged.
Together they are enlarged by MODEL_ERROR, which was measured.
"""

from typing import NamedTuple

import numpy as np

from genm._math.expected_ap import expected_ap, expected_size, ranks_of
from genm._math.fusion import weighted_sum
from genm._math.linear_algebra import weighted_mean
from genm._math.scaling import rank_lists
from genm._typing import Floats, Ints
from genm.align import Aligned
from genm.evidence.evidence import BEST_SINGLE, RRF, TOP, UNIFORM, Evidence
from genm.formatting import between, percent, signed
from genm.fuse import rule_scores
from genm.learn.relevance import Features, Relevance, estimate_relevance, system_features
from genm.records import Note

MODEL_ERROR = 3.5
"""By how much the error of unjudged documents exceeds what the model says: relevance does not fall off with the
rank as the model has it. Chosen so that 95% intervals held in 95% of the cases of the study's first draws."""
Z_95 = 1.96
LEAST_SHARE = 0.1
"""Of the top 10 without a judgment: from here on the evidence says what unjudged documents could change."""


class ExpectedDifference(NamedTuple):
    """The difference of two systems where unjudged documents may be relevant."""

    per_query: Floats
    """Of expected AP."""
    mean: float
    error: float
    """The standard error that is due to unjudged documents."""
    if_nonrelevant: float
    """The mean difference if every unjudged document counts as not relevant."""
    relevance: Relevance


def known_relevant(aligned: Aligned, level: int = 1) -> Floats:
    """Return each query's number of documents judged relevant that no run holds."""
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.unretrieved_starts))
    return np.bincount(query, aligned.unretrieved >= level, len(aligned.queries)).astype(np.float64)


def expected_difference(
    aligned: Aligned, ranks: tuple[Ints, Ints], features: Features, level: int = 1
) -> ExpectedDifference:
    """Return how much better the first of two systems is, given by the ranks of all rows (0: not in its list)."""
    relevance, others = estimate_relevance(aligned, features, level=level), known_relevant(aligned, level)
    starts, n_queries = aligned.starts, len(aligned.queries)
    query = np.repeat(np.arange(n_queries), np.diff(starts))
    size = expected_size(starts, relevance.p, others)
    first, second = (expected_ap(starts, one, relevance.p, size) for one in ranks)
    share = aligned.query_weights / aligned.query_weights.sum()
    influence = first.influence - second.influence
    pull = influence * relevance.variance
    own = np.bincount(query, pull * influence, n_queries)
    shared = np.bincount(query, pull, n_queries) ** 2 * relevance.query_variance
    slope = np.array([(pull * share[query] * column).sum() for column in features.columns.T])
    of_model = float((slope * (relevance.covariance * slope).sum(axis=1)).sum())
    variance = float((share**2 * (own + shared)).sum()) + of_model
    known = np.where(relevance.judged, relevance.p, 0.0)
    known_size = expected_size(starts, known, others)
    plain = [expected_ap(starts, one, known, known_size).value for one in ranks]
    per_query = first.value - second.value
    return ExpectedDifference(
        per_query,
        weighted_mean(per_query, aligned.query_weights),
        MODEL_ERROR * max(variance, 0.0) ** 0.5,
        weighted_mean(plain[0] - plain[1], aligned.query_weights),
        relevance,
    )


def note_unjudged(aligned: Aligned, evidence: Evidence, level: int = 1) -> list[Note]:
    """Say what the held-out gain is if unjudged documents count by their probability of relevance.

    Nothing is said where nearly all of the top is judged, for measures other than AP, where folds normalise in
    their own way, and for a rival that is known by its values only.
    """
    same = all(one == aligned.normalizers for one in evidence.fold_normalizers)
    if not same or not evidence.measure.has_smoothed_form or (evidence.unjudged or 0.0) < LEAST_SHARE:
        return []
    rival = _rival_ranks(aligned, evidence)
    if rival is None:
        return []
    fold = np.repeat(evidence.held_out.fold, np.diff(aligned.starts))
    scores = np.zeros(len(fold))
    for f, weights in enumerate(evidence.held_out.weights):
        scores[fold == f] = weighted_sum(np.ascontiguousarray(aligned.scores[fold == f]), weights)
    ranks = (ranks_of(aligned.starts, scores), rival)
    found = expected_difference(aligned, ranks, system_features(aligned, list(ranks)), level)
    low, high = found.mean - Z_95 * found.error, found.mean + Z_95 * found.error
    text = (
        f"{percent(evidence.unjudged)} of the top {TOP} is unjudged. If these documents count by their probability "
        f"of relevance, the held-out gain over {evidence.label(evidence.strongest)} is {signed(found.mean)} AP; "
        f"further judgments of these queries could put it anywhere from {between(low, high)}."
    )
    return [Note("unjudged-gain", 1, text)]


def _rival_ranks(aligned: Aligned, evidence: Evidence) -> Ints | None:
    """Return the ranks of the strongest rival; None for a ranking that is known by its values only."""
    strongest = evidence.strongest
    if strongest == BEST_SINGLE:
        ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts)
        return np.ascontiguousarray(ranks[:, aligned.rankers.index(evidence.best_name)]).astype(np.int64)
    if strongest == UNIFORM:
        n = len(aligned.rankers)
        return ranks_of(aligned.starts, weighted_sum(aligned.scores, np.full(n, 1.0 / n)))
    return ranks_of(aligned.starts, rule_scores(aligned, "rrf")) if strongest == RRF else None
