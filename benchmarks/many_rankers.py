"""Learning from 17 rankers, 100 queries and about 416,000 rows: one fit, a fit with its evidence, and Newton.

`python -m benchmarks.many_rankers [--rankers 17] [--queries 100] [--only fit,evidence,bat]`; bars are held at the
full size only. Figures are CPU seconds of all threads; kernels are compiled before the clock starts. The evidence
is what `genm fit` keeps beside the model: cross-validation, refits on resampled queries, learning from fewer
queries. The means in training and held out stand beside the times, so that a faster search that finds less is
seen. On a busy machine CPU seconds grow, too: one value and gradient, measured in the same run, says by how much.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._bars import hold
from benchmarks._made_up import truncated_lists
from benchmarks.kernels import best
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.evidence import gather_evidence, keep_evidence
from genm.learn import AutoFuser, Fuser, NewtonFuser
from genm.learn.objectives import Problem

RANKERS, QUERIES, POOL, DEPTH, RELEVANT, SEED = 17, 100, 5000, 1000, 15, 0
BARS = {"fit": 1.5, "evidence": 12.0, "bat": 10.0}
"""CPU seconds."""


def made_up(n_rankers: int, n_queries: int, seed: int = SEED) -> Aligned:
    """Return aligned runs of rankers that differ in how well they see.

    Every third shares half of its noise with the one before it.
    """

    def noise(rng: np.random.Generator) -> Floats:
        own = rng.normal(size=(POOL, n_rankers))
        own[:, 2::3] = 0.7 * own[:, 2::3] + 0.7 * own[:, 1 : n_rankers - 1 : 3]
        return own * (1.0 + 0.1 * np.arange(n_rankers))

    return truncated_lists(n_rankers, n_queries, noise, pool=POOL, depth=DEPTH, n_relevant=RELEVANT, seed=seed)


def learn(aligned: Aligned, make: Callable[[], Fuser]) -> dict[str, Any]:
    """Fit once."""
    fuser = make().fit(aligned)
    return {
        "smoothed": fuser.objective_,
        "exact": fuser.history_[-1].exact,
        "weights": fuser.weights_.round(3).tolist(),
    }


def with_evidence(aligned: Aligned) -> dict[str, Any]:
    """Fit with everything that `genm fit` keeps beside the model."""
    fuser, evidence = gather_evidence(aligned, AutoFuser, "AP")
    kept = keep_evidence(aligned, fuser, evidence)
    spread = kept.refits.weights.std(axis=0) if len(kept.refits.weights) else np.zeros(0)
    return {
        "train": float(evidence.train.mean()),
        "held_out": evidence.held_out.mean,
        "from_fewer": kept.fewer.per_query.mean(axis=1).round(4).tolist(),
        "refits": len(kept.refits.weights),
        "mean_spread": float(spread.mean()) if len(spread) else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rankers", type=int, default=RANKERS)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--only", default=",".join(BARS), help="some of these, separated by commas")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    works: dict[str, Callable[[Aligned], dict[str, Any]]] = {
        "fit": lambda aligned: learn(aligned, AutoFuser),
        "evidence": with_evidence,
        "bat": lambda aligned: learn(aligned, NewtonFuser),
    }
    small, aligned = made_up(9, 10), made_up(options.rankers, options.queries)
    problem, uniform = Problem(aligned), np.full(options.rankers, 1.0 / options.rankers)
    unit = best(lambda: problem.gradient(uniform), 1.0, time.process_time)
    size = f"{options.rankers} rankers, {options.queries} queries, {len(aligned.doc):,} rows"
    for name in options.only.split(","):
        works[name](small)  # compiles
        spent = []
        for _ in range(options.repeats):
            begun = time.process_time()
            found = works[name](aligned)
            spent.append(time.process_time() - begun)
        print(
            json.dumps(
                {"work": name, "size": size, "cpu_s": round(min(spent), 2), "gradient_ms": round(unit, 1), **found}
            ),
            flush=True,
        )
        if (options.rankers, options.queries) == (RANKERS, QUERIES):
            title = {"fit": "one fit", "evidence": "fit with evidence", "bat": "--method bat, one fit"}[name]
            hold(
                f"{title}, {RANKERS} rankers, {QUERIES} queries, CPU",
                min(spent),
                BARS[name],
                unit="s",
                note=f"one gradient {unit:.1f} ms",
            )


if __name__ == "__main__":
    main()
