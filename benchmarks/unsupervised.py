"""What UnsEnM reaches without labels, beside the untrained rules, on the collections with the paper's rankers.

Judgments are read only to measure. Needs the SMART collections (GENM_DATA); rankers come from the cache if they
were made before. For every collection and normaliser it prints MAP of: the five rules, uniform weights, each
ranker, the estimate (CotrainFuser's default; fitted on all queries without labels), the same fitted on one half of
the queries and measured on the other (mean over splits), co-training from the estimate, and, with --starts,
Algorithm 4 as printed from all binary starts: the one with the highest objective, the best and the worst. With
--depths it prints instead what truncated lists give: uniform weights and the estimate on z-scores, gaps filled with
0 and with the list's minimum, beside RRF, with standard errors.
"""

import argparse
import importlib.metadata
import itertools
import json
import platform
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import n_threads
from genm.align import Aligned, align_runs, renormalize
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import AlignedEvaluator
from genm.fuse import rule_scores
from genm.learn import CotrainFuser
from genm.learn.objectives import fold_of_queries
from genm.normalizers import Normalizer
from genm.rankers import DEFAULT, rank_collection

RANKERS = ("tfidf", "lsa", "plsi", "ldi")
RULES = {
    "CombSUM, min-max": ("minmax", "combsum"),
    "CombSUM, z-score": ("zscore", "combsum"),
    "CombMNZ": ("minmax", "combmnz"),
    "RRF(60)": ("none", "rrf"),
    "ISR": ("none", "isr"),
}
PRINTED: dict[str, Any] = {"schedule": "paper", "sigma": 0.0, "trust": 1.0, "min_iter": 1, "max_iter": 10}


def load(name: str, stem: str | None) -> Aligned:
    """Return the judged queries of a collection, ranked by the paper's four, raw cosines of all documents."""
    collection = load_collection(name)
    runs = rank_collection(collection, RANKERS, profile=replace(DEFAULT, stem=stem))
    aligned = align_runs(runs, collection.qrels, normalize="none")
    return aligned.select(np.flatnonzero(aligned.n_relevant() > 0))


def per_query(aligned: Aligned, blend: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the average precision of every query."""
    return AlignedEvaluator(aligned, "AP").values(blend)[:, 0]


def inductive(aligned: Aligned, splits: int, **options: Any) -> float:
    """Return MAP of queries that the weights were not fitted on: halves, both ways, pooled, over the splits."""
    reached = []
    for seed in range(splits):
        half = fold_of_queries(len(aligned.queries), 2, seed)
        for side in (0, 1):
            fuser = CotrainFuser(**options).fit(aligned.select(np.flatnonzero(half != side)))
            reached.append(per_query(aligned.select(np.flatnonzero(half == side)), fuser.weights_))
    return float(np.concatenate(reached).mean())


def from_binary_starts(aligned: Aligned, **options: Any) -> dict[str, float]:
    """Return MAP of the printed algorithm's ends: by the highest objective, the best and the worst."""
    points = [p for p in itertools.product((0.0, 1.0), repeat=len(aligned.rankers)) if any(p)]
    ends = [CotrainFuser(starts=[p], **PRINTED, **options).fit(aligned) for p in points]
    reached = [float(per_query(aligned, end.weights_).mean()) for end in ends]
    chosen = int(np.argmax([end.objective_ for end in ends]))
    return {
        "highest objective": round(reached[chosen], 4),
        "best": round(max(reached), 4),
        "worst": round(min(reached), 4),
    }


def measure(name: str, splits: int, *, starts: bool, stem: str | None) -> None:
    """Print one line for each normaliser."""
    raw = load(name, stem)
    rules = {
        rule: float(per_query(raw, rule_scores(renormalize(raw, kind), method)).mean())
        for rule, (kind, method) in RULES.items()
    }
    singles = {r: round(float(per_query(raw, unit).mean()), 4) for r, unit in zip(RANKERS, np.eye(4), strict=True)}
    settings: dict[str, dict[str, Any]] = {"none": {"beta": 200.0}, "minmax": {}, "zscore": {}}
    for kind, options in settings.items():
        aligned = raw if kind == "none" else renormalize(raw, kind)
        CotrainFuser(**options).fit(aligned)
        cpu, wall = time.process_time(), time.perf_counter()
        fuser = CotrainFuser(**options).fit(aligned)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        reached = float(per_query(aligned, fuser.weights_).mean())
        best = max(rules, key=lambda rule: rules[rule])
        line = {
            "collection": name,
            "stem": stem,
            "queries": len(raw.queries),
            "rows": len(raw.doc),
            "normalize": kind,
            "rules": {rule: round(value, 4) for rule, value in rules.items()},
            "best_rule": best,
            "singles": singles,
            "uniform": round(float(per_query(aligned, np.full(4, 0.25)).mean()), 4),
            "uns": round(reached, 4),
            "uns_minus_best_rule": round(reached - rules[best], 4),
            "uns_inductive": round(inductive(aligned, splits, **options), 4),
            "weights": dict(zip(RANKERS, fuser.weights_.round(3).tolist(), strict=True)),
            "agreement": fuser.quality_.agreement.round(3).tolist(),
            "specificity": fuser.quality_.specificity.round(3).tolist(),
            "cpu_s": round(cpu, 3),
            "wall_s": round(wall, 3),
        }
        cpu = time.process_time()
        trained = CotrainFuser(trust=1.0, **options).fit(aligned)
        line["cotrained"] = round(float(per_query(aligned, trained.weights_).mean()), 4)
        line["cotrained_cpu_s"] = round(time.process_time() - cpu, 3)
        if starts:
            line["printed, 15 starts"] = from_binary_starts(aligned, **options)
        print(json.dumps(line), flush=True)


def measure_truncated(name: str, depths: list[int]) -> None:
    """Print one line for each set of rankers and depth: two rules for gaps under z-scores, and RRF."""
    collection = load_collection(name)
    for rankers in (RANKERS, ("bm25", *RANKERS[:3])):
        runs = rank_collection(collection, rankers)
        for depth in depths:
            raw = align_runs(runs, collection.qrels, normalize="none", depth=depth)
            raw = raw.select(np.flatnonzero(raw.n_relevant() > 0))
            rrf = per_query(raw, rule_scores(raw, "rrf"))
            line: dict[str, Any] = {
                "collection": name,
                "rankers": rankers,
                "depth": depth,
                "rrf": round(rrf.mean(), 4),
            }
            reached: dict[str, NDArray[np.float64]] = {}
            for gap in (0.0, "minimum"):
                scores = renormalize(raw, Normalizer("zscore", missing=gap))
                uniform = per_query(scores, np.full(len(rankers), 1.0 / len(rankers)))
                learned = per_query(scores, CotrainFuser().fit(scores).weights_)
                reached |= {f"uniform, gaps {gap}": uniform, f"uns, gaps {gap}": learned}
            line |= {label: round(float(values.mean()), 4) for label, values in reached.items()}
            changes = {
                "uniform: minimum - 0": reached["uniform, gaps minimum"] - reached["uniform, gaps 0.0"],
                "uns, gaps 0 - rrf": reached["uns, gaps 0.0"] - rrf,
                "uns, gaps minimum - rrf": reached["uns, gaps minimum"] - rrf,
            }
            for label, change in changes.items():
                error = change.std(ddof=1) / np.sqrt(len(change))
                line[label] = [round(float(change.mean()), 4), round(float(error), 4)]
            print(json.dumps(line), flush=True)


def main() -> None:
    """Measure the collections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collections", nargs="*", default=["med", "cran", "cisi", "cacm", "merged"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--starts", action="store_true", help="also run Algorithm 4 from all binary starts")
    parser.add_argument("--stem", help="a Snowball language, such as english; none by default")
    parser.add_argument(
        "--depths", type=int, nargs="*", help="only this: lists cut at these depths, such as 20 100"
    )
    asked = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in ("genm", "numpy", "numba", "scipy")}
    print(json.dumps({"machine": platform.platform(), "threads": n_threads(), "seeds": asked.splits, **versions}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the printed steps are stopped after a few rounds
        for name in asked.collections:
            if asked.depths:
                measure_truncated(name, asked.depths)
                continue
            measure(name, asked.splits, starts=asked.starts, stem=asked.stem)


if __name__ == "__main__":
    main()
