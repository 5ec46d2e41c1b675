"""`genm explain` of twelve rankers: 200 queries x 1,000 documents, all 4,095 subsets learned and measured.

`python -m benchmarks.explain [--rankers 12] [--queries 200] [--alone]`; bars are for the full size. On a machine
with 16 cores the same runs twice more, with GENM_THREADS=2 (one process) and 16 (eight processes of two threads),
for the bar of 6 times the speed; `--alone` leaves that out.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

from benchmarks._bars import hold
from benchmarks._made_up import truncated_lists
from genm._math.parallel import n_threads
from genm._typing import Floats
from genm.align import Aligned
from genm.explain import measure_worth

QUERIES, RANKERS, POOL, DEPTH, RELEVANT = 200, 12, 2000, 1000, 10


def made_up(n_rankers: int, n_queries: int) -> Aligned:
    """Return aligned runs of rankers that differ in how well they see."""

    def noise(rng: np.random.Generator) -> Floats:
        return rng.normal(size=(POOL, n_rankers)) * (0.6 + 0.1 * np.arange(n_rankers))

    return truncated_lists(n_rankers, n_queries, noise, pool=POOL, depth=DEPTH, n_relevant=RELEVANT)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it started, which have ended."""
    return sum(os.times()[:4])


def wall_of(n_threads: int) -> float:
    """Return the seconds that the full size takes in a process of so many threads."""
    command = [sys.executable, "-m", "benchmarks.explain", "--alone"]
    environment = {**os.environ, "GENM_THREADS": str(n_threads)}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return float(json.loads(done.stdout.splitlines()[0])["wall_s"])


def hold_speedup() -> None:
    """Hold the ratio of 16 cores to two, where there are 16."""
    what, cores = "the same on 16 cores, times two (wall)", len(os.sched_getaffinity(0))
    if cores < 16:
        hold(what, None, 6.0, at_least=True, note="needs a machine with 16 cores")
        return
    two, sixteen = wall_of(2), wall_of(16)
    hold(what, two / sixteen, 6.0, at_least=True, note=f"{two:.0f} s and {sixteen:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", action="store_true", help="do not compare 2 and 16 threads")
    parser.add_argument("--rankers", type=int, default=RANKERS)
    parser.add_argument("--queries", type=int, default=QUERIES)
    options = parser.parse_args()
    measure_worth(made_up(2, 4))  # compiles
    aligned = made_up(options.rankers, options.queries)
    wall, cpu = time.perf_counter(), cpu_seconds()
    worth = measure_worth(aligned)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    figures = {
        "queries": options.queries,
        "rows": len(aligned.doc),
        "rankers": options.rankers,
        "threads": n_threads(),
        "subsets": worth.n_subsets,
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "held_out": worth.value,
        "shapley": [round(one.shapley.value, 6) for one in worth.rankers],
    }
    print(json.dumps(figures))
    if (options.rankers, options.queries) == (RANKERS, QUERIES):
        note = f"{cpu:.0f} s of CPU, {n_threads()} threads"
        hold(
            "genm explain, K = 12, 200 x 1,000, two cores (wall)",
            wall if n_threads() == 2 else None,
            60.0,
            unit="s",
            note=note,
        )
        if not options.alone:
            hold_speedup()


if __name__ == "__main__":
    main()
