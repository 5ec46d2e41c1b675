"""Ways to maximise MAP beside each other, and which optimum is the best choice for queries not seen.

    python -m benchmarks.optimizers [peers] [choices] [--collections NAME ...] [--only TEXT ...]
                                    [--splits N] [--limit SECONDS]

`peers`: train MAP, MAP in two-fold cross-validation (the same seeded folds for all), CPU and wall seconds of one
fit on all queries, on the paper's collections and four rankers with their raw scores. Our methods and the two
written here see every document; the libraries get the union of the top documents of each ranker (20 for ranx, 100
for the others), to keep the run short; whatever they learn is measured on all documents like everything else.
Ours, Nelder-Mead and ranx stay on the simplex; the others may take negative weights. A library that is not
installed is left out, and said so. Each optimiser has a process of its own, compiles what it compiles beforehand,
and has `--limit` seconds of wall time for a collection: its fit on all queries and the two on halves. One that
needs longer is ended and shown as such. The tables of the run come last. `--only` keeps those whose name holds one
of the texts.

`choices`: the best point that exact lines find, the centre of its plateau and the optimum of the smoothed MAP, each
as it is and three quarters of the way to uniform weights, beside `auto`; held-out MAP over several two-fold splits,
with the standard error of the paired difference from the smoothed optimum.
"""

import argparse
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks import _optimizer_peers as peers
from benchmarks._optimizer_turns import one_after_the_other, tables
from genm.align import Aligned, align_runs
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import parse_measure
from genm.evidence.crossval import measure_queries
from genm.learn import ExactFuser, NewtonFuser
from genm.learn.auto import AutoFuser
from genm.learn.objectives import fold_of_queries
from genm.rankers import PAPER_RANKERS, rank_collection
from genm.version import __version__

Array = NDArray[np.float64]
Optimizer = Callable[[Aligned], Array]

AP = parse_measure("AP")
COLLECTIONS = ("med", "cran", "cisi", "cacm", "merged")
CERTIFIED = ("med", "cacm")
"""Where branch and bound closes its gap within a minute."""
FEW, MORE = 20, 100
"""Documents of each ranker that ranx and the other libraries get."""
SEED = 7


def optimizers(name: str) -> dict[str, Optimizer]:
    """Return every way by its name, ours first."""
    ours: dict[str, Optimizer] = {
        "genm auto": lambda a: AutoFuser().fit(a).weights_,
        "genm bat": lambda a: NewtonFuser().fit(a).weights_,
        "genm exact, best": lambda a: ExactFuser().fit(a).weights_,
        "genm exact, centre": lambda a: ExactFuser(weights="centre").fit(a).weights_,
    }
    if name in CERTIFIED:
        ours["genm exact, certified"] = lambda a: ExactFuser(certify=True, seconds=90.0).fit(a).weights_
    return ours | {
        "coordinate ascent, step grid": peers.coordinate_ascent,
        "Nelder-Mead": peers.nelder_mead,
        f"ranx optimize_fusion, top {FEW}": lambda a: peers.ranx_grid(a, FEW),
        f"XGBoost gblinear rank:map, top {MORE}": lambda a: peers.gblinear(a, MORE),
        f"FastRank coordinate ascent, top {MORE}": lambda a: peers.fastrank_ascent(a, MORE),
    }


def wanted(only: list[str]) -> list[str]:
    every = optimizers(CERTIFIED[0])
    return [label for label in every if not only or any(text in label for text in only)]


def study_peers(collections: dict[str, Aligned], only: list[str], limit: float) -> None:
    """Send every optimiser through the collections and print the tables of the run."""
    begun, tiny = time.perf_counter(), peers.tiny()
    found: dict[str, list[dict[str, object]]] = {}
    for label in wanted(only):

        def learn_on(name: str, label: str = label) -> Optimizer | None:
            return optimizers(name).get(label)

        turns = one_after_the_other(learn_on, tiny, collections, limit=limit, seed=SEED)
        found[label] = []
        for facts in turns:
            tell(optimizer=label, **facts)
            found[label].append(facts)
    tell(peers_took_s=round(time.perf_counter() - begun), limit_s=limit)
    print("\n".join(tables(found, list(collections))), flush=True)


def study_choices(name: str, aligned: Aligned, splits: int) -> None:
    n, K = len(aligned.queries), len(aligned.rankers)
    uniform = np.full(K, 1.0 / K)
    held: dict[str, Array] = {}
    for split in range(splits):
        fold = fold_of_queries(n, 2, 100 + split)
        for f in range(2):
            inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            train, test = aligned.select(inside), aligned.select(outside)
            exact, auto = ExactFuser(weights="centre").fit(train), AutoFuser().fit(train)
            points = {"best": exact.best_weights_, "centre": exact.weights_, "smooth": auto.learned_}
            ways = {"auto": auto.weights_, "uniform": uniform, **points}
            ways |= {f"{point}, 3/4 shrunk": 0.25 * w + 0.75 * uniform for point, w in points.items()}
            for way, weights in ways.items():
                found = held.setdefault(way, np.zeros(n))
                found[outside] += measure_queries(test, weights, AP) / splits
    for way, values in held.items():
        gain = values - held["smooth"]
        error = float(gain.std(ddof=1) / np.sqrt(n))
        tell(
            collection=name, choice=way, held_out=round(float(values.mean()), 4),
            over_smooth=[round(float(gain.mean()), 4), round(error, 4)], splits=splits,
        )  # fmt: skip


def load(name: str) -> Aligned:
    """Return the scores of a collection; threads would not survive the fork into the optimisers' processes."""
    os.environ["GENM_THREADS"] = "1"
    collection = load_collection(name)
    aligned = align_runs(rank_collection(collection, PAPER_RANKERS), collection.qrels, normalize="none")
    measured = measure_queries(aligned, np.full(len(aligned.rankers), 0.25), AP).mean()
    tell(collection=name, queries=len(aligned.queries), rows=len(aligned.doc), uniform=round(float(measured), 4))
    return aligned


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["peers", "choices"])
    parser.add_argument("--collections", nargs="+", default=list(COLLECTIONS))
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one optimiser on one collection")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    tell(
        genm=__version__, python=sys.version.split()[0], machine=platform.machine(), cores=cores, seed=SEED,
        rankers=PAPER_RANKERS, scores="raw", **peers.versions(),
    )  # fmt: skip
    collections = {name: load(name) for name in options.collections}
    if "peers" in options.parts:
        study_peers(collections, options.only, options.limit)
    del os.environ["GENM_THREADS"]
    if "choices" in options.parts:
        for name, aligned in collections.items():
            study_choices(name, aligned, options.splits)


if __name__ == "__main__":
    main()
