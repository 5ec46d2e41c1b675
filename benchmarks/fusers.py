"""What every fuser reaches on the collections: MAP in training and held out, and CPU seconds of one fit.

    python -m benchmarks.fusers [--splits N] [--normalize KIND] [COLLECTION ...]

Two-fold cross-validation over the judged queries, averaged over seeded splits; single rankers and uniform weights
stand beside, with the gain over uniform weights and over the single ranker chosen in training, each with the
standard error of the paired difference. Rankers are TFIDF, LSA, pLSI and LDI in their default forms, whose
choice docs/rankers.md describes.
"""

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable

import numpy as np

from genm.align import Aligned, align_runs
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import parse_measure
from genm.evidence import single_values
from genm.evidence.crossval import cross_validate, measure_queries
from genm.learn import BarrierFuser, BoostFuser, CotrainFuser, Fuser, NewtonFuser, OnlineFuser
from genm.learn.auto import AutoFuser
from genm.learn.objectives import fold_of_queries
from genm.rankers import PAPER_RANKERS, rank_collection
from genm.version import __version__

AP = parse_measure("AP")
FUSERS: dict[str, Callable[[], Fuser]] = {
    "auto": AutoFuser,
    "bat": NewtonFuser,
    "bat, j smoothed": lambda: NewtonFuser(smooth_j=True),
    "ip": BarrierFuser,
    "on, adaptive": OnlineFuser,
    "on, as printed": lambda: OnlineFuser(schedule="paper"),
    "uns": CotrainFuser,
    "enm": BoostFuser,
    "enm, boosting only": lambda: BoostFuser(search=False),
}


def study(aligned: Aligned, make: Callable[[], Fuser], splits: int) -> dict[str, float | list[float]]:
    started = time.process_time()
    fuser = make().fit(aligned)
    seconds = time.process_time() - started
    train = measure_queries(fuser.prepare(aligned), fuser.weights_, AP).mean()
    held = [cross_validate(make, aligned, AP, folds=2, seed=100 + s) for s in range(splits)]
    means = [h.mean for h in held]
    return {
        "train": round(float(train), 4),
        "held_out": round(float(np.mean(means)), 4),
        "spread": round(float(np.std(means)), 4),
        "cpu_seconds": round(seconds, 2),
        "weights": fuser.weights_.round(3).tolist(),
        "per_query": np.mean([h.per_query for h in held], axis=0),
    }


def best_single(aligned: Aligned, splits: int) -> np.ndarray:
    """Per query, the value of the ranker that was best on the other fold, averaged over the same splits."""
    table = np.array([single_values(aligned, r, AP) for r in aligned.rankers])
    chosen = np.zeros((splits, table.shape[1]))
    for s in range(splits):
        fold = fold_of_queries(table.shape[1], 2, 100 + s)
        for f in range(2):
            best = int(np.argmax(table[:, fold != f].mean(axis=1)))
            chosen[s, fold == f] = table[best, fold == f]
    return chosen.mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*", default=["med", "cran", "cisi", "cacm", "merged", "pydocs"])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--normalize", default="none")
    parser.add_argument("--fusers", default=",".join(FUSERS).replace(", ", "; "))
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = {n: m for n, m in FUSERS.items() if n.replace(", ", "; ") in options.fusers.split(",")}
    about = {"genm": __version__, "machine": platform.machine(), "splits": options.splits}
    print(json.dumps({**about, "normalize": options.normalize, "rankers": PAPER_RANKERS}), flush=True)
    for name in options.collections:
        collection = load_collection(name)
        runs = rank_collection(collection, PAPER_RANKERS)
        aligned = align_runs(runs, collection.qrels, normalize=options.normalize)
        n = len(aligned.rankers)
        uniform = measure_queries(aligned, np.full(n, 1 / n), AP)
        singles = {r: round(float(single_values(aligned, r, AP).mean()), 4) for r in aligned.rankers}
        print(json.dumps({"collection": name, **singles, "uniform": round(float(uniform.mean()), 4)}), flush=True)
        rivals = {"uniform": uniform, "single": best_single(aligned, options.splits)}
        for label, make in chosen.items():
            found = study(aligned, make, options.splits)
            values = found.pop("per_query")
            row = {"collection": name, "fuser": label, **found}
            for rival, theirs in rivals.items():
                gain = values - theirs
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                row[f"over_{rival}"] = [round(float(gain.mean()), 4), round(float(error), 4)]
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
