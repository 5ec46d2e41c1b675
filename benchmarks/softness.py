"""What a softer sigmoid is worth with many rankers: held-out AP, evaluations, and the spread of refits.

    python -m benchmarks.softness [--pools merged,pydocs,12,17] [--queries 30,100] [--draws 8] [--refits 20]

With more than eight rankers `auto` maximises a MAP that is smoothed four times as much as `beta="auto"` says, and
does not polish its optimum; a beta that is given as a number is taken as it is. So `AutoFuser()` stands beside
`AutoFuser(beta=beta_of(queries))`. Each draw takes queries from the pool, learns from them both ways, and measures
AP on the rest of the pool; the difference has its standard error over the draws. `--refits` compares the spread of
refits on resampled queries, which start from the learned weights, with that of fits from scratch. Pools: MC and
pydocs under twelve rankers, the top 100 of each, of which some are near-copies; made-up ones of 12 and 17 rankers.
"""

import argparse
import json
import time
import warnings

import numpy as np

from benchmarks._made_up import truncated_lists
from benchmarks._ranked_pools import rank_pool
from genm._typing import Floats
from genm.align import Aligned, align_runs
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import parse_measure
from genm.learn import AutoFuser
from genm.learn.objectives import Problem, Scorer, beta_of
from genm.rankers import make_ranker, rank_collection

AP = parse_measure("AP")
SIZES = {12: (6, 800, 200, 6), 17: (5, 1500, 300, 12)}
"""Seed, documents of the pool, depth of the lists and relevant documents of the made-up rankers."""


def made_up(n_rankers: int, n_queries: int = 700) -> Aligned:
    """Return aligned runs of rankers that differ in how well they see; every third is much like the one before."""
    seed, pool, depth, n_relevant = SIZES[n_rankers]

    def noise(rng: np.random.Generator) -> Floats:
        own = rng.normal(size=(pool, n_rankers))
        own[:, 2::3] = 0.7 * own[:, 2::3] + 0.7 * own[:, 1 : n_rankers - 1 : 3]
        return own * (1.0 + 0.1 * np.arange(n_rankers))

    return truncated_lists(n_rankers, n_queries, noise, pool=pool, depth=depth, n_relevant=n_relevant, seed=seed)


def pool_of(name: str) -> Aligned:
    """Return the queries of a pool that have relevant documents."""
    if name.isdigit():
        aligned = made_up(int(name))
    else:
        runs, qrels = rank_pool(name)
        more = {
            "bm25, k1=.5": make_ranker("bm25", k1=0.5, b=0.9),
            "lsa, 50": make_ranker("lsa", n_factors=(50,)),
            "lsa, 200": make_ranker("lsa", n_factors=(200,)),
            "bm25, b=1": make_ranker("bm25", b=1.0),
        }
        runs = {**runs, **rank_collection(load_collection(name), more, top=100)}
        aligned = align_runs(runs, qrels, normalize="minmax")
    return aligned.select(np.flatnonzero(aligned.n_relevant() > 0))


def held_out(name: str, pool: Aligned, n_queries: int, draws: int) -> dict[str, object]:
    """Learn both ways from drawn queries, and measure on the rest of the pool."""
    whole, reached, seconds = Problem(pool), np.zeros((draws, 2)), np.zeros(2)
    for draw in range(draws):
        order = np.random.default_rng([0, n_queries, draw]).permutation(len(pool.queries))
        train, rest = pool.select(np.sort(order[:n_queries])), whole.select(np.sort(order[n_queries:]))
        for way, fuser in enumerate((AutoFuser(beta=beta_of(train)), AutoFuser())):
            begun = time.process_time()
            fuser.fit(train)
            seconds[way] += time.process_time() - begun
            reached[draw, way] = rest.exact(fuser.weights_)
    gain = reached[:, 1] - reached[:, 0]
    return {
        "pool": name,
        "rankers": len(pool.rankers),
        "queries": n_queries,
        "draws": draws,
        "sharp": round(float(reached[:, 0].mean()), 4),
        "soft": round(float(reached[:, 1].mean()), 4),
        "gain": round(float(gain.mean()), 4),
        "error": round(float(gain.std(ddof=1) / np.sqrt(draws)), 4),
        "cpu_ratio": round(float(seconds[1] / seconds[0]), 2),
    }


def spreads(name: str, pool: Aligned, n_queries: int, n_refits: int) -> dict[str, object]:
    """Compare the standard deviation of the weights over warm refits with that over fits from scratch."""
    train = pool.select(np.arange(n_queries))
    rng = np.random.default_rng(1)
    drawn = [np.sort(rng.integers(0, n_queries, n_queries)) for _ in range(n_refits)]
    found: dict[str, object] = {"pool": name, "queries": n_queries, "refits": n_refits}
    for way, beta in (("sharp", beta_of(train)), ("soft", None)):
        fuser = (AutoFuser() if beta is None else AutoFuser(beta=beta)).fit(train)
        problem = Problem(train, beta=fuser.beta_)
        refit = fuser.refits(problem, Scorer(train, problem, AP, 1), (0.05, 0.02))
        warm = np.array([refit(queries)[0] for queries in drawn]).std(axis=0).mean()
        again = [fuser.clone().fit(train.select(queries)).learned_ for queries in drawn]
        found[f"{way}_over_scratch"] = round(float(warm / np.array(again).std(axis=0).mean()), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", default="merged,pydocs,12,17")
    parser.add_argument("--queries", default="30,100")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--refits", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in options.pools.split(","):
        pool = pool_of(name)
        for n_queries in map(int, options.queries.split(",")):
            if options.draws:
                print(json.dumps(held_out(name, pool, n_queries, options.draws)), flush=True)
            if options.refits:
                print(json.dumps(spreads(name, pool, n_queries, options.refits)), flush=True)


if __name__ == "__main__":
    main()
