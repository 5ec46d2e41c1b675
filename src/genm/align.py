"""From K runs to one matrix per query: the union of their documents, a column per ranker."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genm.ids import Ids
from genm.records import Normalizer, Note

UNJUDGED = np.int32(-(2**31))
"""Stands in `Aligned.relevance` for a document nobody judged."""


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Scores of K rankers for the same queries and documents, with judgments if there are any.

    Rows of a query are contiguous, rows[starts[q]:starts[q + 1]], ordered by doc id downwards, so that
    a stable sort by score breaks ties as trec_eval does and no kernel ever sees an id.
    """

    rankers: tuple[str, ...]
    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    raw: NDArray[np.float64]
    """(rows, K) scores as the rankers gave them; 0 where `retrieved` is False."""
    retrieved: NDArray[np.bool_]
    """(rows, K) whether the ranker returned the document (within its depth)."""
    scores: NDArray[np.float64]
    """(rows, K) normalised scores with the gaps filled: what weights multiply."""
    normalizers: tuple[Normalizer, ...]
    depths: tuple[int | None, ...]
    labelled: bool
    """Whether judgments were given."""
    relevance: NDArray[np.int32]
    """Grade of each row, UNJUDGED where there is none."""
    unretrieved_starts: NDArray[np.int64]
    unretrieved: NDArray[np.int32]
    """Grades of judged documents that no run holds, per query; they count in AP's denominator."""
    query_weights: NDArray[np.float64]
    notes: tuple[Note, ...] = ()
