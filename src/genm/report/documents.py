"""A query opened: the top 10 of each ranker and of the fusion, and what every ranker gave each document."""

import numpy as np
from numpy.typing import NDArray

from genm._math.scaling import rank_lists
from genm._math.sorting import rank_order
from genm.align import UNJUDGED, Aligned
from genm.fuse import fuse_scores
from genm.report.payload import Detail, DetailDoc

Array = NDArray[np.float64]

TOP = 10


def details_of(aligned: Aligned, weights: Array, positions: NDArray[np.int64], level: int) -> list[Detail]:
    """Return the queries at `positions`, opened."""
    part = aligned.select(positions)
    fused, ranks = fuse_scores(part, weights), rank_lists(part.raw, part.retrieved, part.starts)
    order = rank_order(part.starts, fused, np.zeros(len(fused), np.int32))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(part.starts[:-1], np.diff(part.starts)) + 1
    n_relevant = part.n_relevant(level)
    added = part.scores * weights

    def document(row: int) -> DetailDoc:
        grade = int(part.relevance[row])
        has = part.retrieved[row].tolist()
        return {
            "id": part.docs[int(part.doc[row])],
            "text": None,
            "grade": None if grade == UNJUDGED else grade,
            "relevant": grade >= level,
            "score": _short(fused[row]),
            "contributions": [_short(value) for value in added[row]],
            "ranks": [rank or None for rank in ranks[row].tolist()],
            "raw": [_short(raw) if own else None for raw, own in zip(part.raw[row], has, strict=True)],
            "fused_rank": int(place[row]),
        }

    details: list[Detail] = []
    for q, position in enumerate(positions.tolist()):
        low, high = int(part.starts[q]), int(part.starts[q + 1])
        lists = [order[low : min(low + TOP, high)].tolist()]
        for k in range(len(part.rankers)):
            own = np.flatnonzero((ranks[low:high, k] > 0) & (ranks[low:high, k] <= TOP)) + low
            lists.append(own[np.argsort(ranks[own, k])].tolist())
        shown = {row: i for i, row in enumerate(dict.fromkeys(row for rows in lists for row in rows))}
        details.append(
            {
                "query": position,
                "docs": [document(row) for row in shown],
                "fused": [shown[row] for row in lists[0]],
                "rankers": [[shown[row] for row in rows] for rows in lists[1:]],
                "n_relevant": int(n_relevant[q]),
            }
        )
    return details


def _short(value: float) -> float:
    return float(f"{value:.6g}")
