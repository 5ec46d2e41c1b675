"""`genm explain` of twelve rankers: 200 queries x 1,000 documents, all 4,095 subsets learned and measured.

`python -m benchmarks.explain [--rankers 12] [--queries 200]`; the bar is for the full size on two cores. That of 16
cores, 6 times the speed of two, needs such a machine.
"""

import argparse
import json
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rankers", type=int, default=RANKERS)
    parser.add_argument("--queries", type=int, default=QUERIES)
    options = parser.parse_args()
    measure_worth(made_up(2, 4))  # compiles
    aligned = made_up(options.rankers, options.queries)
    wall, cpu = time.perf_counter(), time.process_time()
    worth = measure_worth(aligned)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
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
    hold("the same on 16 cores, times two (wall)", None, 6.0, at_least=True, note="needs a machine with 16 cores")


if __name__ == "__main__":
    main()
