"""Score tables of any size with planted weights, written directly: no runs, no alignment.

    python -m benchmarks._tables table/ --queries 100000 --documents 1000 --rankers 8

Every document has independent normal scores; the `relevant` relevant ones of each query are moved up by a part of
`signal` that is in proportion to the planted weight of the ranker. The planted weights are then the best linear
direction. Scores need no normaliser ("none"). Shard s is drawn with the seed (seed, s), so a table has the same
bytes whatever the number of threads. A million rows of 8 rankers take about 0.4 s of CPU and 32 MB: 100,000 queries
of 1,000 documents 40 s and 3.2 GB, 1,000,000 queries ten times as much.
"""

import argparse
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from genm.align import UNJUDGED, Aligned
from genm.ids import Ids
from genm.normalizers import normalizers_of
from genm.scale import ScoreTable, Shard, TableWriter
from genm.scale.table import ScoreType, encode_shard, rows_per_shard


def planted_weights(n_rankers: int) -> np.ndarray:
    """Return the weights that `write_planted` plants: falling, and 1 in all."""
    weights = np.arange(n_rankers, 0, -1, dtype=np.float64)
    return weights / weights.sum()


def planted_shard(
    first: int,
    n_queries: int,
    n_docs: int,
    n_rankers: int,
    *,
    relevant: int = 5,
    signal: float = 3.0,
    seed: object = 0,
) -> Aligned:
    """Return queries first:first + n_queries with all their documents, as `ScoreTable.read_shard` would."""
    rng = np.random.default_rng(seed)
    rankers = tuple(f"r{k}" for k in range(n_rankers))
    raw = rng.standard_normal((n_queries * n_docs, n_rankers), np.float32)
    relevance = np.full(len(raw), UNJUDGED)
    places = rng.random((n_queries, n_docs), np.float32).argpartition(relevant, axis=1)[:, :relevant]
    rows = (places + np.arange(n_queries)[:, None] * n_docs).ravel()
    relevance[rows] = 1
    direction = planted_weights(n_rankers)
    raw[rows] += (signal * direction / np.linalg.norm(direction)).astype(np.float32)
    return Aligned(
        rankers=rankers,
        queries=Ids.of(f"q{q:08}" for q in range(first, first + n_queries)),
        docs=Ids.of(f"d{d:06}" for d in range(n_docs)),
        starts=np.arange(n_queries + 1) * n_docs,
        doc=np.tile(np.arange(n_docs - 1, -1, -1, dtype=np.int32), n_queries),
        raw=raw,
        retrieved=np.ones(raw.shape, np.bool_),
        scores=raw,
        normalizers=normalizers_of("none", rankers),
        depths=(None,) * n_rankers,
        labelled=True,
        relevance=relevance,
        unretrieved_starts=np.zeros(n_queries + 1, np.int64),
        unretrieved=np.zeros(0, np.int32),
        query_weights=np.ones(n_queries),
    )


def write_planted(
    to: str,
    n_queries: int,
    n_docs: int = 1000,
    n_rankers: int = 8,
    *,
    relevant: int = 5,
    signal: float = 3.0,
    seed: int = 0,
    dtype: ScoreType = "float32",
    shard_rows: int | None = None,
    threads: int | None = None,
) -> ScoreTable:
    """Write the table and open it; see the top of the module."""
    rankers = [f"r{k}" for k in range(n_rankers)]
    writer = TableWriter(to, rankers, normalize="none", dtype=dtype)
    step = max(1, (shard_rows or rows_per_shard(n_rankers, dtype)) // n_docs)

    def make(number: int) -> Shard:
        first = number * step
        aligned = planted_shard(
            first, min(step, n_queries - first), n_docs, n_rankers, relevant=relevant, signal=signal,
            seed=(seed, number),
        )  # fmt: skip
        content, shard = encode_shard(aligned, number, dtype)
        writer.storage.write(shard.file, content)
        return shard

    workers = threads or os.cpu_count() or 1
    negative = np.ones(n_rankers, np.bool_)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Shard]] = deque()
        for number in range(-(-n_queries // step)):
            waiting.append(pool.submit(make, number))
            if len(waiting) > workers:
                writer.append(waiting.popleft().result(), negative)
        for future in waiting:
            writer.append(future.result(), negative)
    return writer.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("to")
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rankers", type=int, default=8)
    parser.add_argument("--relevant", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(
        write_planted(
            given.to, given.queries, given.documents, given.rankers, relevant=given.relevant, seed=given.seed
        )
    )
