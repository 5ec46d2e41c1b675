"""Reading a TREC run of seven million lines beside a bare polars.read_csv of the same file.

`python -m benchmarks.read [--scale 0.1] [--repeats 5] [--digits 6]`; the scale is the share of the 7,000 queries,
`--digits 17` writes scores in full. Ours gives a Run: ids as integers, duplicates checked, rows ranked; polars
gives columns. Each reading has a process of its own, in turns, so that memory can be told apart; what is compiled
at first use is compiled before the clock starts, and timed by itself with an empty cache.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

SEED = 20240611
QUERIES, DEPTH, COLLECTION = 7000, 1000, 8_841_823


def write_file(path: Path, n_queries: int, digits: int) -> None:
    rng = np.random.default_rng(SEED)
    query_ids = np.sort(rng.choice(10_000_000, n_queries, replace=False)).tolist()
    with path.open("w") as file:
        for query_id in query_ids:
            docs = rng.choice(COLLECTION, DEPTH, replace=False).tolist()
            scores = np.sort(rng.gamma(3.0, 4.0, DEPTH))[::-1].tolist()
            file.writelines(
                f"{query_id} Q0 {doc} {rank} {score:.{digits}{'g' if digits > 10 else 'f'}} bm25\n"
                for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
            )


def reader(what: str) -> Callable[[Path], object]:
    if what == "polars":
        import polars as pl

        return lambda path: pl.read_csv(path, separator=" ", has_header=False)
    from genm.read import read_run

    return read_run


def measure(what: str, path: Path) -> None:
    """Read once and print what it took; the memory is what the reading adds to the process."""
    read = reader(what)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.run"
        small.write_text("q Q0 a 1 2.0 t\nq Q0 b 2 2.0 t\nq Q0 c 2 3.0 t\n")
        cpu = time.process_time()
        read(small)
        first = time.process_time() - cpu
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    result = read(path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "peak_bytes": peak, "first_cpu_s": first}))
    del result


def measured(what: str, path: Path, **environment: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.read", "--measure", what, "--file", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--measure", choices=["genm", "polars"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.file)
        return
    n_queries = max(int(QUERIES * options.scale), 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bm25.run"
        write_file(path, n_queries, options.digits)
        size = path.stat().st_size
        print(
            json.dumps(
                {
                    "machine": platform.processor() or platform.machine(),
                    "cores": len(os.sched_getaffinity(0)),
                    "load": os.getloadavg()[0],
                    "seed": SEED,
                    "lines": n_queries * DEPTH,
                    "bytes": size,
                    "versions": {name: version(name) for name in ("genm", "numba", "numpy", "polars")},
                }
            )
        )
        turns = [{what: measured(what, path) for what in ("polars", "genm")} for _ in range(options.repeats)]
        best = {
            what: {key: min(turn[what][key] for turn in turns) for key in ("wall_s", "cpu_s", "peak_bytes")}
            for what in ("polars", "genm")
        }
        for what, figures in best.items():
            print(json.dumps({"reader": what} | {k: round(v, 3) for k, v in figures.items()}))
        compiled = measured("genm", path, NUMBA_CACHE_DIR=folder)["first_cpu_s"]
        wall = sorted(turn["genm"]["wall_s"] / turn["polars"]["wall_s"] for turn in turns)
        print(
            json.dumps(
                {
                    "wall_ratio": round(best["genm"]["wall_s"] / best["polars"]["wall_s"], 2),
                    "wall_ratio_of_turns": [round(x, 2) for x in wall],
                    "cpu_ratio": round(best["genm"]["cpu_s"] / best["polars"]["cpu_s"], 2),
                    "peak_memory_over_file": round(best["genm"]["peak_bytes"] / size, 2),
                    "first_read_with_empty_cache_cpu_s": round(compiled, 1),
                    "limits": {"wall_ratio": 3.0, "goal": 2.0, "peak_memory_over_file": 4.0},
                }
            )
        )


if __name__ == "__main__":
    main()
