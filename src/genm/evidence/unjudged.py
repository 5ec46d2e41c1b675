"""What unjudged documents can change in the evidence: the held-out gain by expected AP, and its range."""

import numpy as np

from genm._math.expected_ap import ranks_of
from genm._math.fusion import weighted_sum
from genm._math.scaling import rank_lists
from genm._typing import Ints
from genm.align import Aligned
from genm.evidence.evidence import BEST_SINGLE, RRF, TOP, UNIFORM, Evidence
from genm.formatting import between, percent, signed
from genm.fuse import rule_scores
from genm.learn.relevance import expected_difference, lists_relevant_only, system_features
from genm.records import Note

Z_95 = 1.96
LEAST_SHARE = 0.1
"""Of the top 10 without a judgment: from here on the evidence says what unjudged documents could change."""


def note_unjudged(aligned: Aligned, evidence: Evidence, level: int = 1) -> list[Note]:
    """Say what the held-out gain is if unjudged documents count by their probability of relevance.

    Nothing is said where nearly all of the top is judged or no document is judged not relevant, for measures other
    than AP, where folds normalise in their own way, and for a rival that is known by its values only.
    """
    same = all(one == aligned.normalizers for one in evidence.fold_normalizers)
    if not same or not evidence.measure.has_smoothed_form or (evidence.unjudged or 0.0) < LEAST_SHARE:
        return []
    rival = _rival_ranks(aligned, evidence)
    if rival is None or lists_relevant_only(aligned, level=level):
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
