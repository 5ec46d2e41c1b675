"""Single queries: their documents and texts, and the scores that the page ranks by, as Python does."""

from collections.abc import Callable, Collection, Mapping
from itertools import chain, islice

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

_POWERS = np.array([10.0**n for n in range(23)])
"""The powers of ten that are float64 numbers."""


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
    query = np.repeat(np.arange(len(positions)), np.diff(part.starts))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - part.starts[query] + 1
    tops = np.full((len(positions), len(part.rankers) + 1, TOP), -1)  # the fusion's rows, then each ranker's
    for column, own in enumerate((place, *ranks.T)):
        rows = np.flatnonzero((own > 0) & (own <= TOP))
        tops[query[rows], column, own[rows] - 1] = rows
    lists = [[[row for row in rows if row >= 0] for rows in of_query] for of_query in tops.tolist()]
    shown = [list(dict.fromkeys(row for rows in of_query for row in rows)) for of_query in lists]
    documents = iter(
        _documents(part, weights, fused, ranks, place, level, np.array([*chain.from_iterable(shown)], np.int64))
    )
    details: list[Detail] = []
    for position, n_relevant, own, tops_of_query in zip(
        positions.tolist(), part.n_relevant(level).tolist(), shown, lists, strict=True
    ):
        at = {row: i for i, row in enumerate(own)}
        first, *others = [[at[row] for row in rows] for rows in tops_of_query]
        docs = list(islice(documents, len(own)))
        details.append(
            {"query": position, "docs": docs, "fused": first, "rankers": others, "n_relevant": n_relevant}
        )
    return details


def _documents(
    part: Aligned,
    weights: Floats,
    fused: Floats,
    ranks: NDArray[np.int32],
    place: NDArray[np.int64],
    level: int,
    rows: NDArray[np.int64],
) -> list[DetailDoc]:
    """Describe the documents of some rows, in that order."""
    raw = np.where(part.retrieved[rows], six_digits(part.raw[rows]), np.nan)
    columns = (
        part.docs.take(part.doc[rows]),
        part.relevance[rows].tolist(),
        six_digits(fused[rows]).tolist(),
        six_digits(part.scores[rows] * weights).tolist(),
        ranks[rows].tolist(),
        raw.tolist(),
        place[rows].tolist(),
    )
    return [
        {
            "id": doc_id,
            "text": None,
            "grade": None if grade == UNJUDGED else grade,
            "relevant": grade >= level,
            "score": score,
            "contributions": contributions,
            "ranks": [rank or None for rank in own_ranks],
            "raw": [None if value != value else value for value in own_raw],
            "fused_rank": fused_rank,
        }
        for doc_id, grade, score, contributions, own_ranks, own_raw, fused_rank in zip(*columns, strict=True)
    ]


def six_digits(values: Floats) -> Floats:
    """Round to 6 significant digits: `float(f"{value:.6g}")` of each, most of them without the text.

    An integer of 6 digits and a power of ten up to 10^22 are float64 numbers, so one division rounds correctly. A
    value so near to half of the last digit that the product might be on the wrong side goes by the text.
    """
    usual = (np.abs(values) > 1e-16) & (np.abs(values) < 1e22)
    tame = np.where(usual, values, 1.0)
    shift = 5 - np.floor(np.log10(np.abs(tame))).astype(np.int64)
    power = _POWERS[np.abs(shift)]
    scaled = np.where(shift >= 0, tame * power, tame / power)
    whole = np.rint(scaled)
    found = np.where(shift >= 0, whole / power, whole * power)
    unsure = (values != 0.0) & (~usual | (np.abs(np.abs(scaled - whole) - 0.5) < 1e-6))
    found[unsure] = [float(f"{value:.6g}") for value in values[unsure].tolist()]
    return np.where(values == 0.0, values, found)
