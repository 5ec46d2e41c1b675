"""Coverage of aligned runs: shares of judged, shared, missing and tied documents, and the scales of scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genm._math.alignment import count_shared, count_tied
from genm._math.parallel import over_ranges
from genm._math.scaling import rank_lists

DEPTHS = (5, 10, 20, 100)


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Shares between 0 and 1, averaged over the queries where they are defined; arrays are (…, rankers)."""

    rankers: tuple[str, ...]
    n_queries: int
    n_empty: int
    """Queries for which no ranker returned anything."""
    n_without_relevant: int | None
    """Queries with no document of grade 1 or higher; None without judgments."""
    depths: tuple[int, ...]
    judged: NDArray[np.float64] | None
    """(depths, K): of the documents a ranker returned within that depth, the share that is judged."""
    overlap: NDArray[np.float64]
    """(depths, K, K): documents that both rankers returned within that depth over those that either did."""
    missing: NDArray[np.float64]
    """(K): of all documents that any ranker returned, the share that this one did not."""
    ties: NDArray[np.float64]
    """(K): of the documents a ranker returned, the share with the same score as another of its list."""
    scales: NDArray[np.float64]
    """(K, 3): lowest, median and highest raw score."""


def coverage_of(
    *,
    rankers: tuple[str, ...],
    starts: NDArray[np.int64],
    raw: NDArray[np.float64],
    retrieved: NDArray[np.bool_],
    judged: NDArray[np.bool_] | None,
    n_relevant: NDArray[np.int64],
    ranks: NDArray[np.int32] | None = None,
) -> Coverage:
    """Return the coverage of aligned arrays; call it as `Aligned.coverage`."""
    n_queries, n_rankers = len(starts) - 1, len(rankers)
    if ranks is None:
        ranks = rank_lists(raw, retrieved, starts)
    shared = np.zeros((len(DEPTHS), n_rankers, n_rankers))
    known = np.zeros((len(DEPTHS), n_rankers))
    marks = np.zeros(len(raw), np.bool_) if judged is None else judged
    count_shared(ranks, marks, starts, np.array(DEPTHS, np.int64), shared, known)
    n_rows = max(len(raw), 1)
    return Coverage(
        rankers=rankers,
        n_queries=n_queries,
        n_empty=int((np.diff(starts) == 0).sum()),
        n_without_relevant=None if judged is None else int((n_relevant == 0).sum()),
        depths=DEPTHS,
        judged=None if judged is None else known,
        overlap=shared,
        missing=1.0 - retrieved.sum(axis=0) / n_rows,
        ties=_tied(raw, ranks, starts),
        scales=np.array([_scale(raw[retrieved[:, k], k]) for k in range(n_rankers)]),
    )


def _tied(raw: NDArray[np.float64], ranks: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each list, the share of documents with the score of another one of the same query."""
    n_tied = np.zeros((len(starts) - 1, ranks.shape[1]), np.int64)
    n_found = np.zeros_like(n_tied)
    over_ranges(lambda low, high: count_tied(raw, ranks, starts, low, high, n_tied, n_found), np.diff(starts))
    return np.asarray(n_tied.sum(axis=0) / np.maximum(n_found.sum(axis=0), 1))


def _scale(scores: NDArray[np.float64]) -> tuple[float, float, float]:
    if not len(scores):
        return 0.0, 0.0, 0.0
    with np.errstate(over="ignore"):
        middle = float(np.median(scores))
    low, high = float(scores.min()), float(scores.max())
    return low, min(max(middle, low), high), high
