"""AP, P@10 and nDCG@10 of 7,000 queries x 1,000 documents held in memory, with ranx beside it.

ranx comes with the project's `bench` dependency group: pip install --group bench
"""

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import time
from collections.abc import Callable

import numpy as np

from genm._math.parallel import n_threads
from genm.evaluate import evaluate_run
from genm.ids import Ids
from genm.records import Qrels, Run

MEASURES = "AP,P@10,nDCG@10"
RANX_MEASURES = ["map", "precision@10", "ndcg@10"]


def make(n_queries: int, n_docs: int, n_judged: int, seed: int) -> tuple[Run, Qrels]:
    """Make a run over a collection of two million documents, and judgments of some of what it found."""
    rng = np.random.default_rng(seed)
    n_corpus = max(2_000_000, n_docs)
    # one document from each of n_docs equal parts of the collection: distinct without a costly draw
    part = n_corpus // n_docs
    doc = rng.integers(0, part, (n_queries, n_docs)) + part * rng.permuted(
        np.tile(np.arange(n_docs), (n_queries, 1)), axis=1
    )
    score = -np.sort(-rng.random((n_queries, n_docs)), axis=1)
    used, codes = np.unique(doc, return_inverse=True)
    queries = Ids.of(f"q{q}" for q in range(n_queries))
    starts = np.arange(n_queries + 1) * n_docs
    run = Run(
        "bench", queries, Ids.of(f"D{d}" for d in used), starts, codes.ravel().astype(np.int32), score.ravel()
    )

    places = np.minimum(rng.geometric(0.02, (n_queries, 4 * n_judged)) - 1, n_docs - 1)
    rows = [np.unique(p)[:n_judged] for p in places]
    judged = np.concatenate([doc[q, r] for q, r in enumerate(rows)])
    known, judged_codes = np.unique(judged, return_inverse=True)
    judged_starts = np.cumsum([0, *map(len, rows)])
    grades = rng.integers(0, 3, len(judged)).astype(np.int32)
    return run, Qrels(queries, Ids.of(f"D{d}" for d in known), judged_starts, judged_codes.astype(np.int32), grades)


def best(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the least processor time and the least wall time of some repeats, in seconds."""
    cpu, wall = [], []
    for _ in range(repeats):
        c, w = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - c)
        wall.append(time.perf_counter() - w)
    return min(cpu), min(wall)


def ranx_times(run: Run, qrels: Qrels, repeats: int) -> tuple[tuple[float, float], list[float]]:
    """Evaluate the same data with ranx, its kernels warm."""
    import ranx

    docs, judged_docs = list(run.docs), list(qrels.docs)
    as_run = {
        query_id: {docs[d]: s for d, s in zip(run.doc[a:b].tolist(), run.score[a:b].tolist(), strict=True)}
        for query_id, a, b in zip(run.queries, run.starts[:-1], run.starts[1:], strict=True)
    }
    as_qrels = {
        query_id: {
            judged_docs[d]: g for d, g in zip(qrels.doc[a:b].tolist(), qrels.relevance[a:b].tolist(), strict=True)
        }
        for query_id, a, b in zip(qrels.queries, qrels.starts[:-1], qrels.starts[1:], strict=True)
    }
    their_run, their_qrels = ranx.Run(as_run), ranx.Qrels(as_qrels)

    def work() -> dict[str, float]:
        return ranx.evaluate(their_qrels, their_run, RANX_MEASURES, save_results_in_run=False)

    found = work()
    return best(work, repeats), [float(found[m]) for m in RANX_MEASURES]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--queries", type=int, default=7000)
    options.add_argument("--documents", type=int, default=1000)
    options.add_argument("--judged", type=int, default=10)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--repeats", type=int, default=5)
    asked = options.parse_args()
    run, qrels = make(asked.queries, asked.documents, asked.judged, asked.seed)
    start = time.perf_counter()
    means = evaluate_run(run, qrels, MEASURES).means.tolist()
    first = time.perf_counter() - start
    cpu, wall = best(lambda: evaluate_run(run, qrels, MEASURES).means, asked.repeats)
    versions = {p: importlib.metadata.version(p) for p in ("numpy", "numba")}
    print(json.dumps({"machine": platform.machine(), "threads": n_threads(), **vars(asked), "versions": versions}))
    print(json.dumps({"genm": {"cpu_s": cpu, "wall_s": wall, "first_call_s": first, MEASURES: means}}))
    if importlib.util.find_spec("ranx") is None:
        print("ranx is not installed, so there is no ratio: pip install --group bench")
        return
    (their_cpu, their_wall), theirs = ranx_times(run, qrels, asked.repeats)
    version = importlib.metadata.version("ranx")
    print(json.dumps({f"ranx {version}": {"cpu_s": their_cpu, "wall_s": their_wall, MEASURES: theirs}}))
    difference = max(abs(a - b) for a, b in zip(means, theirs, strict=True))
    ratios = {"ranx_cpu / genm_cpu": their_cpu / cpu, "ranx_wall / genm_wall": their_wall / wall}
    print(json.dumps({**ratios, "largest difference of the means": difference}))


if __name__ == "__main__":
    main()
