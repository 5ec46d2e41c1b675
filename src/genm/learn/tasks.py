"""The training queries as the exact methods want them, for any measure that those can follow."""

import numpy as np
from numpy.typing import NDArray

from genm._math.gains import BinaryMeasure, Problem, binary_problem, graded_problem
from genm.align import Aligned
from genm.align.aligned import offsets, per_query
from genm.errors import InputError
from genm.evaluate import Measure

Array = NDArray[np.float64]

_BINARY: dict[str, BinaryMeasure] = {
    "AP": "AP",
    "P": "P",
    "R": "recall",
    "RR": "RR",
    "Success": "success",
    "Rprec": "Rprec",
}


def check_measure(measure: Measure) -> Measure:
    """Return the measure if its value can be followed from swap to swap."""
    if measure.name != "nDCG" and measure.name not in _BINARY:
        known = ", ".join([*_BINARY, "nDCG"])
        raise InputError(
            f"method 'exact' cannot maximise {measure}: expected one of {known}, with or without a cutoff. "
            f"Use one of these, or method 'auto'."
        )
    return measure


def tasks_of(aligned: Aligned, measure: Measure) -> Problem:
    """Return what the exact methods maximise: the measure's weighted mean over all queries of `aligned`.

    Relevant documents that no ranker returned count as everywhere else; where the measure passes over unjudged
    documents, their rows are left out.
    """
    check_measure(measure)
    starts, scores, relevance = aligned.starts, aligned.scores, aligned.relevance
    if measure.judged_only:
        judged = relevance >= 0
        starts, scores, relevance = offsets(per_query(judged, starts)), scores[judged], relevance[judged]
    if measure.name != "nDCG":
        return binary_problem(
            starts,
            scores,
            relevance >= measure.rel,
            aligned.n_relevant(measure.rel),
            aligned.query_weights,
            measure=_BINARY[measure.name],
            cutoff=measure.cutoff,
        )
    gains = _gains(relevance, measure)
    ideal = _ideal(aligned, measure)
    return graded_problem(starts, scores, gains, ideal, aligned.query_weights, cutoff=measure.cutoff)


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
        ideal[q] = (gains / np.log2(np.arange(2.0, len(gains) + 2.0))).sum()
    return ideal
