"""Single queries: their documents and texts, and the scores that the page ranks by, as Python does."""

from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import weighted_mean
from genm._math.scaling import rank_lists
from genm._math.sorting import rank_order
from genm._typing import Floats
from genm.align import UNJUDGED, Aligned
from genm.evaluate import Measure, evaluate_aligned
from genm.fuse import fuse_scores
from genm.progress import Progress, silent
from genm.read import read_texts
from genm.report.payload import Detail, DetailDoc, Report, Sliders, pack

Texts = Callable[[Collection[str]], Mapping[str, str]]
"""Returns the texts of the given ids; unknown ids are missing from the result."""

LONGEST = 240
"""The largest number of characters of a text in the report."""

NAMED = 30
"""Documents in the top of any ranker or of the fusion, to this depth, are stored with their ids."""

TOP = 10


def read_beginnings(path: str, wanted: Collection[str], *, progress: Progress = silent) -> dict[str, str]:
    """Return the beginnings of the texts of the wanted ids."""
    return {
        key: text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        for key, text in read_texts(path, wanted=wanted, progress=progress).items()
    }


def add_texts(report: Report, documents: Texts | None, queries: Texts | None) -> None:
    """Add texts to the ids in the report; `documents` and `queries` are each called once, with all ids."""
    if documents is not None:
        shown_docs = [doc for detail in report["details"] for doc in detail["docs"]]
        texts = documents({doc["id"] for doc in shown_docs})
        for doc in shown_docs:
            doc["text"] = texts.get(doc["id"])
    if queries is not None:
        ids = report["queries"]["query_ids"]
        texts = queries(set(ids))
        report["queries"]["texts"] = [texts.get(query_id, "") for query_id in ids]


def sliders_of(aligned: Aligned, weights: Floats, positions: NDArray[np.int64], level: int) -> Sliders:
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


def _gaps(part: Aligned) -> tuple[NDArray[np.bool_], Floats]:
    """Return which scores must be stored, and, per query and ranker, the value of all others.

    All gaps of a ranker's list have the same value. If a normaliser ever fills gaps differently, the different
    values are stored like scores.
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


def _first_rows(part: Aligned, weights: Floats) -> NDArray[np.int64]:
    ranks = rank_lists(part.raw, part.retrieved, part.starts)
    first = np.asarray(((ranks > 0) & (ranks <= NAMED)).any(axis=1))
    order = rank_order(part.starts, fuse_scores(part, weights), np.zeros(len(part.doc), np.int32))
    place = np.arange(len(order)) - np.repeat(part.starts[:-1], np.diff(part.starts))
    first[order[place < NAMED]] = True
    return np.flatnonzero(first)


def _mean(values: Floats, query_weights: Floats) -> float:
    return weighted_mean(values, query_weights)


def details_of(aligned: Aligned, weights: Floats, positions: NDArray[np.int64], level: int) -> list[Detail]:
    """Return the details of the queries at `positions`."""
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
