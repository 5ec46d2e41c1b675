"""The scores that travel with the page, so that it ranks and measures anew exactly as Python does."""

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import weighted_mean
from genm._math.scaling import rank_lists
from genm._math.sorting import rank_order
from genm.align import UNJUDGED, Aligned
from genm.evaluate import Measure, evaluate_aligned
from genm.fuse import fuse_scores
from genm.report.packing import pack
from genm.report.payload import Sliders

Array = NDArray[np.float64]

NAMED = 30
"""Documents among the first so many of some ranker or of the fusion travel with their ids."""


def sliders_of(aligned: Aligned, weights: Array, positions: NDArray[np.int64], level: int) -> Sliders:
    """Return the scores of the queries at `positions`."""
    part = aligned.select(positions)
    measure = Measure("AP", rel=level)
    ap = evaluate_aligned(part, weights, [measure]).values[:, 0]
    whole = (
        ap if len(positions) == len(aligned.queries) else evaluate_aligned(aligned, weights, [measure]).values[:, 0]
    )
    stored, fill = _gaps(part)
    marks = np.where(part.relevance == UNJUDGED, 0, np.where(part.relevance >= level, 2, 1))
    named = _first_rows(part, weights)
    return {
        "queries": pack(positions, "int32"),
        "row_starts": pack(part.starts, "int32"),
        "stored": pack(np.packbits(stored.ravel()), "uint8"),
        "values": pack(part.scores[stored], "float64"),
        "fill": pack(fill, "float64"),
        "marks": pack(marks, "uint8"),
        "n_relevant": pack(part.n_relevant(level), "int32"),
        "query_weights": pack(part.query_weights, "float64"),
        "named_rows": pack(named, "int32"),
        "names": list(part.docs.take(part.doc[named])),
        "measure": str(measure),
        "ap": ap.tolist(),
        "map": _mean(ap, part.query_weights),
        "map_all": _mean(whole, aligned.query_weights),
        "n_scores": part.scores.size,
    }


def _gaps(part: Aligned) -> tuple[NDArray[np.bool_], Array]:
    """Return which scores must be kept, and per query and ranker what all the others are.

    A gap is filled with the same number throughout a ranker's list; should a normaliser ever do otherwise, the
    odd ones are kept like scores.
    """
    n_queries, n_rankers = len(part.queries), len(part.rankers)
    query = np.repeat(np.arange(n_queries), np.diff(part.starts))
    fill = np.zeros((n_queries, n_rankers))
    stored = part.retrieved.copy()
    for k in range(n_rankers):
        rows = np.flatnonzero(~part.retrieved[:, k])
        fill[query[rows], k] = part.scores[rows, k]
        stored[rows, k] = part.scores[rows, k] != fill[query[rows], k]
    return stored, fill


def _first_rows(part: Aligned, weights: Array) -> NDArray[np.int64]:
    ranks = rank_lists(part.raw, part.retrieved, part.starts)
    first = np.asarray(((ranks > 0) & (ranks <= NAMED)).any(axis=1))
    order = rank_order(part.starts, fuse_scores(part, weights), np.zeros(len(part.doc), np.int32))
    place = np.arange(len(order)) - np.repeat(part.starts[:-1], np.diff(part.starts))
    first[order[place < NAMED]] = True
    return np.flatnonzero(first)


def _mean(values: Array, query_weights: Array) -> float:
    return weighted_mean(values, query_weights)
