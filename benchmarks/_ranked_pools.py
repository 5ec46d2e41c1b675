"""Ranked queries to draw from: eight runs and the judgments of a pool, which one file can carry to another machine.

    python -m benchmarks._ranked_pools ranked.npz [pydocs merged generated]

pydocs depends on the installed packages and MC (merged) on the texts of its four collections. The file holds their
runs as they are, so a study on another machine draws from the same lists and needs neither texts nor rankers. It
holds plain arrays, no pickled objects.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np

from genm.ids import Ids, unite
from genm.records import Qrels, Run

TOP = 100
POOLS = ("pydocs", "merged", "generated")
Ranked = tuple[dict[str, Run], Qrels]


def rank_pool(pool: str) -> Ranked:
    """Return eight runs, the most useful first, and the judgments."""
    if pool == "generated":
        return generate_pool()
    from genm.collections import load_collection
    from genm.rankers import make_ranker, rank_collection

    collection = load_collection(pool)
    rankers = {
        "bm25": make_ranker("bm25"),
        "lsa": make_ranker("lsa"),
        "tfidf": make_ranker("tfidf"),
        "plsi": make_ranker("plsi"),
        "bm25, b=.2": make_ranker("bm25", b=0.2),
        "tfidf, log": make_ranker("tfidf", tf="log"),
        "lsa, 20": make_ranker("lsa", n_factors=(20,)),
        "bm25, k1=3": make_ranker("bm25", k1=3.0),
    }
    return rank_collection(collection, rankers, top=TOP), collection.qrels


def generate_pool(*, n_queries: int = 3000, n_docs: int = 60, seed: int = 1) -> Ranked:
    """Return made-up runs: a document's score is its relevance, as far as the ranker sees it, plus shared noise."""
    rng = np.random.default_rng(seed)
    strength = np.array([1.0, 0.8, 0.6, 0.5, 0.3, 0.2, 0.9, 0.0])
    runs: list[dict[str, dict[str, float]]] = [{} for _ in strength]
    qrels: dict[str, dict[str, int]] = {}
    for q in range(n_queries):
        relevant = np.arange(n_docs) < min(1 + rng.geometric(0.3), n_docs // 2)
        seen = (strength + rng.normal(0.0, 0.5, len(strength))) * rng.lognormal(0.0, 0.5)
        noise = 0.6 * rng.normal(size=(n_docs, 1)) + rng.normal(size=(n_docs, len(strength)))
        scores, ids = relevant[:, None] * seen + noise, [f"d{i:02}" for i in rng.permutation(n_docs)]
        query_id = f"q{q:05}"
        qrels[query_id] = {ids[i]: 1 for i in np.flatnonzero(relevant).tolist()}
        for k, run in enumerate(runs):
            top = np.argsort(-scores[:, k], kind="stable")[:30].tolist()
            run[query_id] = {ids[i]: float(scores[i, k]) for i in top}
    return {f"r{k}": Run.from_dict(run, name=f"r{k}") for k, run in enumerate(runs)}, Qrels.from_dict(qrels)


def pack_pool(ranked: Ranked) -> dict[str, np.ndarray]:
    """Return the arrays of a pool: a table of queries, one of documents, then the rows of runs and judgments."""
    runs, qrels = ranked
    tables = [*runs.values(), qrels]
    queries, query_codes = unite([table.queries for table in tables])
    docs, doc_codes = unite([table.docs for table in tables])
    arrays = {"names": np.array(list(runs))}
    arrays |= {"queries": np.array(list(queries)), "docs": np.array(list(docs))}
    for k, (table, query, doc) in enumerate(zip(tables, query_codes, doc_codes, strict=True)):
        arrays |= {f"{k}/query": query, f"{k}/starts": table.starts, f"{k}/doc": doc[table.doc]}
        arrays[f"{k}/value"] = table.values_by_row
    return arrays


def unpack_pool(arrays: dict[str, np.ndarray]) -> Ranked:
    """Return the pool of these arrays."""
    queries, docs = Ids.of(arrays["queries"].tolist()), Ids.of(arrays["docs"].tolist())

    def rows_of(k: int) -> tuple[Ids, Ids, np.ndarray, np.ndarray, np.ndarray]:
        mine = queries.take(arrays[f"{k}/query"])
        return mine, docs, arrays[f"{k}/starts"], arrays[f"{k}/doc"], arrays[f"{k}/value"]

    names = arrays["names"].tolist()
    return {name: Run(name, *rows_of(k)) for k, name in enumerate(names)}, Qrels(*rows_of(len(names)))


@cache
def ranked_pool(pool: str, path: Path | None) -> Ranked:
    """Return a pool from the file, or ranked here if there is none or the file does not hold it."""
    if path is not None:
        with np.load(path, allow_pickle=False) as file:
            held = {key.removeprefix(f"{pool}/"): file[key] for key in file if key.startswith(f"{pool}/")}
        if held:
            return unpack_pool(held)
    return rank_pool(pool)


def write_pools(path: Path, pools: tuple[str, ...] = POOLS) -> None:
    """Rank the pools and write them to one file."""
    arrays: dict[str, np.ndarray] = {}
    for pool in pools:
        arrays |= {f"{pool}/{part}": values for part, values in pack_pool(rank_pool(pool)).items()}
        print(f"{pool}: {len(arrays[f'{pool}/queries'])} queries", flush=True)
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    write_pools(Path(sys.argv[1]), tuple(sys.argv[2:]) or POOLS)
