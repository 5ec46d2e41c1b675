"""Reading 1.85 GB of TREC text (7,000 queries x 1,000 documents x 8 runs), and reporting on it.

`python -m benchmarks.report [--scale 0.1]`; the scale is the share of the 7,000 queries, and bars are held at full
scale only. The first time is for reading eight runs and judgments and aligning them, the second for the report of
equal weights on them, in HTML; their evidence is kept beside the model. The files take their size on disk while
this runs.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks._bars import hold
from genm.align import align_runs
from genm.evidence import evidence_path, save_evidence
from genm.learn import EqualFuser
from genm.model import Model, save_model
from genm.read import read_qrels, read_run
from genm.report import render_report, report_model
from genm.report.build import compute_evidence

SEED = 20240611
QUERIES, DEPTH, RANKERS, POOL, COLLECTION, JUDGED = 7000, 1000, 8, 2500, 8_841_823, 20


def write_files(folder: Path, n_queries: int) -> None:
    """Write runs whose rankers see the same hidden quality through noise, and judgments of the best documents."""
    rng = np.random.default_rng(SEED)
    pools = rng.integers(0, COLLECTION, (n_queries, POOL), dtype=np.int32)
    pools.sort(axis=1)
    pools += np.arange(POOL, dtype=np.int32)  # distinct within a query
    quality = rng.normal(size=pools.shape).astype(np.float32)
    names = np.sort(rng.choice(1_000_000, n_queries, replace=False))
    for k in range(RANKERS):
        seen = quality + rng.normal(size=quality.shape).astype(np.float32)
        top = np.argsort(-seen, axis=1, kind="stable")[:, :DEPTH]
        columns = {
            "query": np.repeat(names, DEPTH),
            "q0": ["Q0"] * (n_queries * DEPTH),
            "doc": np.take_along_axis(pools, top, axis=1).ravel(),
            "rank": np.tile(np.arange(1, DEPTH + 1), n_queries),
            "score": np.take_along_axis(seen, top, axis=1).ravel().astype(np.float64),
            "tag": [f"r{k}"] * (n_queries * DEPTH),
        }
        frame = pl.DataFrame(columns)
        frame.write_csv(folder / f"r{k}.trec", include_header=False, separator=" ", float_precision=4)
    best = np.argsort(-quality, axis=1)[:, :JUDGED]
    judged = {
        "query": np.repeat(names, JUDGED),
        "iteration": [0] * (n_queries * JUDGED),
        "doc": np.take_along_axis(pools, best, axis=1).ravel(),
        "relevance": rng.integers(0, 2, n_queries * JUDGED),
    }
    pl.DataFrame(judged).write_csv(folder / "qrels.txt", include_header=False, separator=" ")


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, and its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def read_and_align(folder: Path) -> Any:
    qrels = read_qrels(folder / "qrels.txt")
    return align_runs({f"r{k}": read_run(folder / f"r{k}.trec") for k in range(RANKERS)}, qrels)


def save_equal(aligned: Any, path: Path) -> Model:
    """Write the model of equal weights and its evidence, as `genm fit` would leave them."""
    model = EqualFuser().fit(aligned).to_model()
    save_model(model, path)
    save_evidence(compute_evidence(aligned, model), evidence_path(path))
    return model


def report(aligned: Any, model: Model, path: Path) -> str:
    return render_report(report_model(model, aligned, path=path), "html")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, 10)
        aligned, path = read_and_align(folder), folder / "equal.json"
        report(aligned, save_equal(aligned, path), path)  # compiles
        write_files(folder, max(int(QUERIES * scale), 10))
        size = sum(path.stat().st_size for path in folder.iterdir())
        aligned, *reading = timed(lambda: read_and_align(folder))
        model = save_equal(aligned, path)
        page, *reporting = timed(lambda: report(aligned, model, path))
    figures = {
        "queries": len(aligned.queries),
        "bytes": size,
        "rows": len(aligned.doc),
        "load": os.getloadavg()[0],
        "read_and_align_wall_s": round(reading[0], 2),
        "read_and_align_cpu_s": round(reading[1], 2),
        "report_wall_s": round(reporting[0], 2),
        "report_cpu_s": round(reporting[1], 2),
        "page_bytes": len(page),
    }
    print(json.dumps(figures))
    if scale == 1.0:
        hold(
            "read and align 1.85 GB of TREC text (wall)", reading[0], 20.0, unit="s", note=f"CPU {reading[1]:.0f} s"
        )
        hold("report on it (wall)", reporting[0], 8.0, unit="s", note=f"CPU {reporting[1]:.0f} s")


if __name__ == "__main__":
    main()
