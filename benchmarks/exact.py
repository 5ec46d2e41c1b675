"""Exact line search and certified optimum: time on one thread for lines, wall and CPU time for the search.

    python -m benchmarks.exact [line] [search]
    python -m benchmarks.exact --collections [NAME:RANKERS ...]

Data of the first form are made up, of the size of the merged collection for lines (431 queries, 7,097 documents, 4
rankers, 15 relevant) and of MED for the search. The second form certifies the best MAP on the collections, with the
raw scores of TFIDF, LSA, pLSI, LDI and BM25, the first so many of them.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial

import numba
import numpy as np

from genm._math.exact.branch_and_bound import best_weights
from genm._math.exact.line_search import Buffers, line_profile, value_at
from genm._math.exact.rank_gains import GainProblem, binary_problem

SEED = 1
RANKERS = ("tfidf", "lsa", "plsi", "ldi", "bm25")
LIMITS = {
    "med:2": (0.0, 60.0),
    "med:3": (0.0, 60.0),
    "med:4": (0.0, 60.0),
    "med:5": (0.0, 120.0),
    "cacm:4": (0.0, 60.0),
    "cran:4": (0.001, 600.0),
    "cisi:4": (0.001, 600.0),
    "merged:3": (0.005, 600.0),
}
"""The gap to reach and the seconds for it."""


def made_up(n_queries: int, n: int, n_rankers: int, n_relevant: int) -> GainProblem:
    """Return a problem whose single rankers reach a MAP near .3 and whose mean reaches about twice that."""
    rng = np.random.default_rng(SEED)
    relevant = np.zeros((n_queries, n), bool)
    for row in relevant:
        row[rng.choice(n, n_relevant, replace=False)] = True
    strength = 2.6 * (1 + 0.35 * rng.standard_normal((n_queries, n, 1)))
    scores = 0.5 * rng.standard_normal((n_queries, n, 1)) + relevant[..., None] * strength
    scores = scores + rng.standard_normal((n_queries, n, n_rankers)) * np.linspace(0.9, 1.1, n_rankers)
    scores -= scores.min(axis=1, keepdims=True)
    scores /= scores.max(axis=1, keepdims=True)
    starts = np.arange(n_queries + 1) * n
    counts = np.full(n_queries, n_relevant)
    return binary_problem(starts, scores.reshape(-1, n_rankers), relevant.ravel(), counts, np.ones(n_queries))


def quickest(work: Callable[[], object], repeats: int = 7) -> float:
    """Return the least CPU time of this thread in ms."""
    times = []
    for _ in range(repeats):
        begun = time.thread_time()
        work()
        times.append(time.thread_time() - begun)
    return round(1e3 * min(times), 1)


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def lines() -> None:
    os.environ["GENM_THREADS"] = "1"
    problem = made_up(431, 7097, 4, 15)
    buffers: Buffers = []
    middle, unit = np.full(4, 0.25), np.eye(4)
    line_profile(problem, middle, unit[0] - middle, 0.0, 0.01)
    value_at(problem, middle)
    for k in range(4):
        others = (1.0 - unit[k]) / 3.0
        direction = unit[k] - others
        whole = line_profile(problem, others, direction, 0.0, 1.0)
        tell(
            what="line",
            ranker=k,
            n_swaps=whole.n_swaps,
            best=whole.value,
            width=whole.width,
            agrees=abs(value_at(problem, others + whole.middle * direction) - whole.value) < 1e-12,
            full_ms=quickest(partial(line_profile, problem, others, direction, 0.0, 1.0, buffers=buffers)),
            bracket_ms=quickest(partial(line_profile, problem, others, direction, 0.15, 0.35, buffers=buffers)),
            value_ms=quickest(partial(value_at, problem, others)),
        )


def searches() -> None:
    os.environ.pop("GENM_THREADS", None)
    best_weights(made_up(2, 50, 3, 5))
    for n_rankers in (2, 3, 4):
        problem = made_up(30, 1033, n_rankers, 23)
        wall, cpu = time.perf_counter(), time.process_time()
        found = best_weights(problem, gap=0.001, seconds=300.0)
        tell(
            what="search",
            n_rankers=n_rankers,
            value=found.value,
            gap=found.gap,
            n_cells=found.n_cells,
            wall_s=round(time.perf_counter() - wall, 2),
            cpu_s=round(time.process_time() - cpu, 2),
        )


def collections(asked: list[str], normalize: str) -> None:
    from genm.align import align_runs
    from genm.collections import load_collection
    from genm.evaluate import parse_measure
    from genm.learn.exact import gain_problem
    from genm.rankers import rank_collection

    best_weights(made_up(2, 50, 3, 5))
    for name in asked or LIMITS:
        gap, seconds = LIMITS.get(name, (0.0, 600.0))
        title, n_rankers = name.split(":")
        collection = load_collection(title)
        runs = rank_collection(collection, RANKERS[: int(n_rankers)])
        problem = gain_problem(align_runs(runs, collection.qrels, normalize=normalize), parse_measure("AP"))
        wall, cpu = time.perf_counter(), time.process_time()
        found = best_weights(problem, gap=gap, seconds=seconds)
        tell(
            what="certified",
            collection=title,
            n_rankers=int(n_rankers),
            best=round(found.value, 6),
            left=float(f"{max(found.gap, 0.0):.2g}"),
            asked=gap,
            weights=[float(f"{w:.4g}") for w in found.weights],
            n_cells=found.n_cells,
            wall_s=round(time.perf_counter() - wall, 1),
            cpu_s=round(time.process_time() - cpu, 1),
            limit_s=seconds,
        )


def main() -> None:
    """Print the figures as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--collections", action="store_true")
    parser.add_argument("--normalize", default="none")
    options = parser.parse_args()
    tell(
        machine=platform.machine(),
        processors=os.cpu_count(),
        python=platform.python_version(),
        numba=numba.__version__,
        numpy=np.__version__,
        seed=SEED,
    )
    if options.collections:
        collections(options.parts, options.normalize)
        return
    asked = options.parts or ["line", "search"]
    if "line" in asked:
        lines()
    if "search" in asked:
        searches()


if __name__ == "__main__":
    main()
