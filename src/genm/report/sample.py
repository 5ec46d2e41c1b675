"""Which queries a part of the report shows where it cannot show all, and how it says so."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm.align import Aligned
from genm.report.payload import Sampled

Ints = NDArray[np.int64]

DETAIL_QUERIES = 200
"""Queries that open to their documents."""
EXTREMES = 25
"""Of these, at most so many of the largest gains and as many of the largest losses."""
SLIDER_SCORES = 160_000
"""Scores that travel with the page for ranking anew; in double precision they take 1.7 MB."""
LANDSCAPE_WORK = 4_000_000
"""Rows times relevant documents, for lines and maps over the weights."""
TABLE_SCORES = 8_000_000
"""Rows times rankers, for tables, curves and coverage."""
TABLE_ROWS = 20_000
"""Queries in the table of queries."""


class Samples(NamedTuple):
    """Positions of queries, in ascending order, for each part of the report."""

    table: Ints
    """Of the measures, the curves and the coverage."""
    landscape: Ints
    """Of the lines and the map over the weights."""
    sliders: Ints
    details: Ints
    rows: Ints
    """Of the table of queries."""


def draw_samples(aligned: Aligned, delta: NDArray[np.float64], *, n_details: int, seed: int, level: int) -> Samples:
    """Draw the queries of every part by the seed.

    All parts take the beginning of one and the same random order, so that a smaller part lies within a larger one.
    Details also take the queries with the largest gains and losses, which are what a reader opens first.
    """
    n, n_rankers = len(aligned.queries), len(aligned.rankers)
    order = np.random.default_rng([seed, 3]).permutation(n)
    lengths = np.diff(aligned.starts)
    stored = np.diff(np.concatenate(([0], np.cumsum(aligned.retrieved.sum(axis=1))))[aligned.starts])
    by_delta = np.argsort(delta, kind="stable")
    extremes = min(EXTREMES, n_details // 4)
    ends = np.concatenate((by_delta[:extremes], by_delta[n - extremes :])) if extremes else by_delta[:0]
    first = np.array(list(dict.fromkeys((*ends.tolist(), *order.tolist()))), np.int64)
    return Samples(
        table=_within(order, lengths * n_rankers, TABLE_SCORES),
        landscape=_within(order, lengths * (aligned.n_relevant(level) + 8), LANDSCAPE_WORK),
        sliders=_within(order, stored, SLIDER_SCORES),
        details=np.sort(first[:n_details]),
        rows=np.sort(
            np.array(list(dict.fromkeys((*first[:n_details].tolist(), *order.tolist()))), np.int64)[:TABLE_ROWS]
        )
        if n > TABLE_ROWS
        else np.arange(n),
    )


def say_samples(samples: Samples, n_queries: int, seed: int) -> list[Sampled]:
    """Return a sentence for every part that does not show all queries."""
    parts = {
        "measures": (samples.table, "The measures other than the report's own are means over"),
        "curves": (samples.table, "The precision-recall curves are means over"),
        "coverage": (samples.table, "Coverage, ties and scales are those of"),
        "lines": (samples.landscape, "The measure along the weights is that of"),
        "ternary": (samples.landscape, "The map over the weights is that of"),
        "sliders": (samples.sliders, "The sliders rank the documents of"),
        "queries": (samples.rows, "The table of queries lists"),
        "details": (samples.details, "The queries that open to their documents are"),
    }
    drawn = f"drawn at random (seed {seed})"
    said: list[Sampled] = []
    for part, (positions, begin) in parts.items():
        if len(positions) < n_queries:
            how = "the largest gains and losses, the others " + drawn if part == "details" else drawn
            sentence = f"{begin} {len(positions):,} of {n_queries:,} queries, {how}."
            said.append({"part": part, "n_shown": len(positions), "n_all": n_queries, "sentence": sentence})
    return said


def _within(order: Ints, costs: Ints, limit: int) -> Ints:
    """Return the first queries of the order whose costs add up to no more than the limit, but at least one."""
    n = int(np.searchsorted(np.cumsum(costs[order]), limit, side="right"))
    return np.sort(order[: max(n, 1)])
