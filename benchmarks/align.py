"""Aligning four runs of seven million lines with judgments, beside the reading of one of them.

`python -m benchmarks.align [--scale 0.1]`; the scale is the share of the 7,000 queries.
"""

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._bars import hold
from genm.align import align_runs, renormalize
from genm.fuse import fuse_runs
from genm.ids import Ids
from genm.records import Qrels, Run

SEED = 20240611
QUERIES, DEPTH, POOL, COLLECTION, RANKERS = 7000, 1000, 2500, 8_841_823, 4


def decimal_ids(numbers: np.ndarray, width: int) -> Ids:
    """Return ids of digits without leading noughts, as MS MARCO numbers its passages."""
    digits = np.char.mod("%d", numbers) if len(numbers) < 100_000 else numbers.astype(f"S{width}")
    raw = np.asarray(digits, f"S{width}")
    table = raw.view(np.uint8).reshape(len(raw), width)
    used = table != 0
    starts = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(used.sum(axis=1), out=starts[1:])
    return Ids(table[used], starts)


def runs_and_qrels(scale: float) -> tuple[dict[str, Run], Qrels]:
    rng = np.random.default_rng(SEED)
    n_queries = max(int(QUERIES * scale), 2)
    pools = rng.integers(0, COLLECTION, (n_queries, POOL), dtype=np.int32)
    pools.sort(axis=1)
    pools += np.arange(POOL, dtype=np.int32)  # distinct within a query
    quality = rng.normal(size=(n_queries, POOL)).astype(np.float32)
    queries = decimal_ids(np.sort(rng.choice(1_000_000, n_queries, replace=False)), 8)
    starts = np.arange(n_queries + 1, dtype=np.int64) * DEPTH
    runs = {}
    for k in range(RANKERS):
        noisy = quality + rng.normal(size=quality.shape).astype(np.float32)
        top = np.argsort(-noisy, axis=1, kind="stable")[:, :DEPTH]
        number = np.take_along_axis(pools, top, axis=1).ravel()
        score = np.take_along_axis(noisy, top, axis=1).ravel().astype(np.float64) * (k + 1)
        used, doc = np.unique(number, return_inverse=True)
        # Tables are in order of first appearance, as a reader meets the ids.
        first = np.full(len(used), len(doc))
        np.minimum.at(first, doc, np.arange(len(doc)))
        order = np.argsort(first)
        code = np.empty(len(used), np.int32)
        code[order] = np.arange(len(used), dtype=np.int32)
        name = f"ranker{k}"
        runs[name] = Run(name, queries, decimal_ids(used[order], 8), starts, code[doc], score)
    judged = np.take_along_axis(pools, np.argsort(-quality, axis=1)[:, :20], axis=1).ravel()
    used, doc = np.unique(judged, return_inverse=True)
    grades = rng.integers(0, 3, len(doc)).astype(np.int32)
    qrels = Qrels(
        queries,
        decimal_ids(used, 8),
        np.arange(n_queries + 1, dtype=np.int64) * 20,
        doc.astype(np.int32),
        grades,
    )
    return runs, qrels


def timed(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the best wall and process seconds."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        del result
    return min(walls), min(cpus)


def reading(run: Run, repeats: int) -> tuple[float, float] | None:
    """Return how long reading one run from a file takes, where the reader is there."""
    try:
        from genm.read import read_run
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.trec"
        doc_ids, query_ids = list(run.docs), list(run.queries)
        with path.open("w") as file:
            for q, query_id in enumerate(query_ids):
                rows = range(run.starts[q], run.starts[q + 1])
                file.writelines(
                    f"{query_id} Q0 {doc_ids[run.doc[i]]} {i - rows.start + 1} {run.score[i]:.6f} r\n" for i in rows
                )
        return timed(lambda: read_run(path), repeats)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    small_runs, small_qrels = runs_and_qrels(0.001)
    small = align_runs(small_runs, small_qrels)  # compiles
    fuse_runs(small)
    runs, qrels = runs_and_qrels(options.scale)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = timed(lambda: align_runs(runs, qrels), options.repeats)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    aligned = align_runs(runs, qrels)
    figures = {
        "machine": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seed": SEED,
        "lines_per_run": len(runs["ranker0"].doc),
        "rankers": RANKERS,
        "rows": len(aligned.doc),
        "docs": len(aligned.docs),
        "align_wall_s": round(wall, 3),
        "align_cpu_s": round(cpu, 3),
        "peak_mb_before": before // 1024,
        "peak_mb_after": after // 1024,
    }
    for name in ("minmax", "zscore", "reciprocal"):
        figures[f"renormalize_{name}_wall_s"] = round(timed(lambda n=name: renormalize(aligned, n), 2)[0], 3)
    for method in ("sum", "rrf", "combmnz"):
        figures[f"fuse_{method}_wall_s"] = round(timed(lambda m=method: fuse_runs(aligned, method=m), 2)[0], 3)
    read = reading(runs["ranker0"], options.repeats)
    if read is not None:
        figures |= {
            "read_one_wall_s": round(read[0], 3),
            "read_one_cpu_s": round(read[1], 3),
            "align_over_read_wall": round(wall / read[0], 2),
            "align_over_read_cpu": round(cpu / read[1], 2),
        }
    print(json.dumps(figures, indent=1))
    if read is not None:
        lines = f"{len(runs['ranker0'].doc):,}"
        hold(f"align {RANKERS} x {lines} lines, over reading one (wall)", wall / read[0], 2.0)
        hold(f"align {RANKERS} x {lines} lines, over reading one (cpu)", cpu / read[1], 2.0)


if __name__ == "__main__":
    main()
