"""The training queries as the exact methods want them, for any measure."""

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import logarithms2
from genm._math.exact.rank_gains import BinaryMeasure, Problem, binary_problem, bpref_problem, graded_problem
from genm.align import Aligned
from genm.align.aligned import UNJUDGED, offsets, per_query
from genm.evaluate import Measure

Array = NDArray[np.float64]

_BINARY: dict[str, BinaryMeasure] = {
    "AP": "AP",
    "P": "P",
    "R": "recall",
    "RR": "RR",
    "Success": "success",
    "Rprec": "Rprec",
    "IPrec": "IPrec",
}


def tasks_of(aligned: Aligned, measure: Measure) -> Problem:
    """Return what the exact methods maximise: the measure's weighted mean over all queries of `aligned`.

    Relevant documents that no ranker returned count as everywhere else; where the measure passes over unjudged
    documents, their rows are left out. To Judged every judged document is relevant, whatever its grade.
    """
    starts, scores, relevance = aligned.starts, aligned.scores, aligned.relevance
    weights, known = aligned.query_weights, aligned.n_relevant(measure.rel)
    if measure.name == "Judged":
        judged = relevance != UNJUDGED
        counts = per_query(judged, starts)
        return binary_problem(starts, scores, judged, counts, weights, measure="judged", cutoff=measure.cutoff)
    if measure.judged_only or measure.name == "Bpref":
        judged = relevance >= 0
        starts, scores, relevance = offsets(per_query(judged, starts)), scores[judged], relevance[judged]
    if measure.name == "Bpref":
        others = aligned.n_relevant(0) - known
        return bpref_problem(starts, scores, relevance >= measure.rel, known, others, weights)
    if measure.name == "nDCG":
        gains, ideal = _gains(relevance, measure), _ideal(aligned, measure)
        return graded_problem(starts, scores, gains, ideal, weights, cutoff=measure.cutoff)
    return binary_problem(
        starts,
        scores,
        relevance >= measure.rel,
        known,
        weights,
        measure=_BINARY[measure.name],
        cutoff=measure.cutoff,
        recall=measure.recall or 0.0,
    )


def _gains(relevance: NDArray[np.int32], measure: Measure) -> Array:
    """Return what a document of each grade is worth; grades below 1, and unjudged documents, nothing."""
    grades = np.maximum(relevance, 0).astype(np.float64)
    return np.exp2(grades) - 1.0 if measure.dcg == "exp-log2" else grades


def _ideal(aligned: Aligned, measure: Measure) -> Array:
    """Return each query's DCG under the best ranking of all its judged documents, retrieved or not."""
    retrieved, missing = _gains(aligned.relevance, measure), _gains(aligned.unretrieved, measure)
    ideal = np.zeros(len(aligned.queries))
    for q in range(len(ideal)):
        own = retrieved[aligned.starts[q] : aligned.starts[q + 1]]
        others = missing[aligned.unretrieved_starts[q] : aligned.unretrieved_starts[q + 1]]
        gains = np.sort(np.concatenate((own[own > 0], others[others > 0])))[::-1][: measure.cutoff]
        ideal[q] = (gains / logarithms2(np.arange(2.0, len(gains) + 2.0))).sum()
    return ideal
