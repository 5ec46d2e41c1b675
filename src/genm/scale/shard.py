"""Make a score table of runs and judgments of any size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from genm.align import Depths, align_runs, named_runs
from genm.io import PathLike
from genm.normalizers import Normalize
from genm.records import Qrels, Run, ranked_run
from genm.scale.table import ScoreTable, ScoreType, TableWriter, rows_per_shard


def write_table(
    runs: Mapping[str, Run] | Sequence[Run],
    qrels: Qrels | None,
    to: PathLike,
    *,
    normalize: Normalize = "minmax",
    depth: Depths = None,
    dtype: ScoreType = "float32",
    shard_rows: int | None = None,
    query_weights: Mapping[str, float] | None = None,
) -> ScoreTable:
    """Write a score table of these runs and judgments, and open it."""
    given = named_runs(runs)
    if dtype == "float32":
        given = {name: _rounded(run) for name, run in given.items()}
    aligned = align_runs(given, qrels, normalize=normalize, depth=depth, query_weights=query_weights)
    writer = TableWriter(
        to, aligned.rankers, normalize=normalize, depths=aligned.depths, labelled=aligned.labelled, dtype=dtype
    )
    most = shard_rows or rows_per_shard(len(aligned.rankers), dtype)
    for first, last in cuts(aligned.starts, most):
        writer.add(aligned.select(np.arange(first, last)))
    return writer.finish(aligned.notes)


def cuts(starts: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of queries that make the shards: as many as have at most so many rows, at least one."""
    first, n = 0, len(starts) - 1
    while first < n:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def _rounded(run: Run) -> Run:
    score = run.score.astype(np.float32).astype(np.float64)
    ranked = ranked_run(run.name, run.queries, run.docs, run.starts, run.doc, score, run.notes)
    return replace(ranked, tag=run.tag)
