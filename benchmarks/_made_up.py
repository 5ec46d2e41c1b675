"""Made-up runs: each ranker returns the best documents of a pool as it sees them, through noise."""

from collections.abc import Callable

import numpy as np

from genm._typing import Floats
from genm.align import Aligned
from genm.ids import Ids
from genm.normalizers import Normalizer

SeenThrough = Callable[[np.random.Generator], Floats]
"""Returns the noise of one query, (documents of the pool, rankers)."""


def truncated_lists(
    n_rankers: int, n_queries: int, noise: SeenThrough, *, pool: int, depth: int, n_relevant: int, seed: int = 0
) -> Aligned:
    """Return the aligned lists of every ranker, cut at a depth and scaled to 0 to 1."""
    rng = np.random.default_rng(seed)
    scores, retrieved, doc, relevance, counts = [], [], [], [], []
    for _ in range(n_queries):
        relevant = rng.permutation(pool) < n_relevant
        hidden = rng.normal(size=pool) + 2.0 * relevant
        seen = hidden[:, None] + noise(rng)
        edge = np.sort(seen, axis=0)[-depth]
        own = seen >= edge
        rows = np.flatnonzero(own.any(axis=1))[::-1]
        scaled = np.where(own, (seen - edge) / (seen.max(axis=0) - edge), 0.0)
        scores.append(scaled[rows])
        retrieved.append(own[rows])
        doc.append(rows.astype(np.int32))
        relevance.append(relevant[rows].astype(np.int32))
        counts.append(len(rows))
    stacked = np.concatenate(scores)
    return Aligned(
        rankers=tuple(f"r{k}" for k in range(n_rankers)),
        queries=Ids.of([f"q{i:04}" for i in range(n_queries)]),
        docs=Ids.of([f"d{i:06}" for i in range(pool)]),
        starts=np.concatenate(([0], np.cumsum(counts))),
        doc=np.concatenate(doc),
        raw=stacked,
        retrieved=np.concatenate(retrieved),
        scores=stacked,
        normalizers=(Normalizer(),) * n_rankers,
        depths=(None,) * n_rankers,
        labelled=True,
        relevance=np.concatenate(relevance),
        unretrieved_starts=np.zeros(n_queries + 1, np.int64),
        unretrieved=np.zeros(0, np.int32),
        query_weights=np.ones(n_queries),
    )
