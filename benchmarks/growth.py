"""How the cost of each algorithm grows with queries, documents, relevant documents and rankers.

Prints, for every algorithm and every size, the exponent of a power law fitted to the CPU time of one evaluation
or step (best of several) over a range of eight. An exponent of 1 is a cost in proportion. The analysis that goes
with it is in docs/complexity.md.
"""

import json
import os
import platform
import time
from collections.abc import Callable

import numpy as np

os.environ["GENM_THREADS"] = "1"

from genm._math.average_precision import exact_ap, smooth_ap, smooth_ap_one
from genm._math.fusion import weighted_sum
from genm._math.tiles import build_tiles

BASE = {"queries": 60, "documents": 1500, "relevant": 12, "rankers": 4}
FACTORS = (1, 2, 4, 8)
SEED = 7


def make(queries: int, documents: int, relevant: int, rankers: int) -> tuple[np.ndarray, ...]:
    """Scores that see relevance through noise, on the scale of cosines."""
    rng = np.random.default_rng(SEED)
    starts = np.arange(queries + 1) * documents
    marks = np.zeros((queries, documents), bool)
    marks[:, :relevant] = True
    scores = rng.normal(0.2, 0.08, (queries * documents, rankers)) + 0.15 * marks.reshape(-1, 1)
    return starts, scores, marks.ravel(), np.full(queries, relevant)


def best_time(work: Callable[[], object], seconds: float = 0.6) -> float:
    """Shortest CPU time of the calls that fit into the given time; the first call compiles and is not counted."""
    work()
    times, end = [], time.monotonic() + seconds
    while len(times) < 3 or time.monotonic() < end:
        started = time.thread_time()
        work()
        times.append(time.thread_time() - started)
    return min(times)


def algorithms(sizes: dict[str, int]) -> dict[str, Callable[[], object]]:
    starts, scores, relevant, n_relevant = make(**sizes)
    tiles = build_tiles(starts, scores, relevant, n_relevant)
    weights = np.full(sizes["rankers"], 1.0 / sizes["rankers"])
    n = sizes["documents"]
    return {
        "weighted sum": lambda: weighted_sum(scores, weights),
        "exact MAP": lambda: exact_ap(tiles, weights),
        "value and gradient": lambda: smooth_ap(tiles, weights, 200.0, order=1),
        "value, gradient, Hessian": lambda: smooth_ap(tiles, weights, 200.0, order=2),
        "online step": lambda: smooth_ap_one(scores[:n], relevant[:n], sizes["relevant"], weights, 200.0),
        "build tiles": lambda: build_tiles(starts, scores, relevant, n_relevant),
    }


def main() -> None:
    print(json.dumps({"machine": platform.processor() or platform.machine(), "base": BASE, "seed": SEED}))
    names = list(algorithms(BASE))
    for what, base in BASE.items():
        table: dict[str, list[float]] = {name: [] for name in names}
        for factor in FACTORS:
            sizes = {**BASE, what: base * factor}
            for name, work in algorithms(sizes).items():
                if what == "queries" and name == "online step":
                    table[name].append(float("nan"))  # one query whatever their number
                    continue
                table[name].append(best_time(work))
        for name, times in table.items():
            if np.isnan(times).any():
                continue
            exponent = float(np.polyfit(np.log(FACTORS), np.log(times), 1)[0])
            row = {"algorithm": name, "grows_with": what, "exponent": round(exponent, 2)}
            print(json.dumps({**row, "milliseconds": [round(1000 * t, 3) for t in times]}), flush=True)


if __name__ == "__main__":
    main()
