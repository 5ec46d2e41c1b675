"""Query sets of the studies of learning, kept in one file so that a study needs neither texts nor rankers.

    python -m benchmarks._pools pools.npz [SET ...]

The sets are MED, CRAN, CISI, CACM, MC (the four merged) and pydocs, each ranked by BM25, TFIDF, LSA and pLSI in
their default forms. The top 100 of each ranker are kept, min-max normalised; queries without a relevant document
are left out. Scores are rounded to float32. The file holds plain arrays, no pickled objects.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from genm.align import Aligned, align_runs
from genm.ids import Ids
from genm.normalizers import normalizers_for

SETS = ("med", "cran", "cisi", "cacm", "merged", "pydocs")
RANKERS = ("bm25", "tfidf", "lsa", "plsi")
TOP = 100
PARTS = ("starts", "scores", "retrieved", "relevance", "unretrieved_starts", "unretrieved")


def make_pools(sets: list[str]) -> dict[str, np.ndarray]:
    """Return the arrays of these sets, under names such as "med/scores"."""
    from genm.collections import load_collection
    from genm.rankers import rank_collection

    found: dict[str, np.ndarray] = {}
    for name in sets:
        collection = load_collection(name)
        aligned = align_runs(rank_collection(collection, RANKERS, top=TOP), collection.qrels, normalize="minmax")
        aligned = aligned.select(np.flatnonzero(aligned.n_relevant() > 0))
        found |= {f"{name}/{part}": getattr(aligned, part) for part in PARTS}
        found[f"{name}/scores"] = aligned.scores.astype(np.float32)
        print(f"{name}: {len(aligned.queries)} queries, {len(aligned.doc)} rows", flush=True)
    return found


def pools_at(path: Path | None) -> Path:
    """Return the path, or where the sets were written if none is given."""
    if path is not None:
        return path
    made = Path(tempfile.mkdtemp()) / "pools.npz"
    np.savez_compressed(made, **make_pools(list(SETS)))
    return made


def load_pools(path: Path) -> dict[str, Aligned]:
    """Return the sets of a file as aligned runs; documents and queries are named by their position."""
    pools = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in dict.fromkeys(key.split("/")[0] for key in arrays):
            parts = {part: arrays[f"{name}/{part}"] for part in PARTS}
            scores = parts.pop("scores").astype(np.float64)
            n_queries, n_rows = len(parts["starts"]) - 1, len(scores)
            pools[name] = Aligned(
                rankers=RANKERS,
                queries=Ids.of(f"q{q:05}" for q in range(n_queries)),
                docs=Ids.of(["d"]),
                doc=np.zeros(n_rows, np.int32),
                raw=scores,
                scores=scores,
                normalizers=normalizers_for("none", RANKERS, scores, parts["retrieved"]),
                depths=(TOP,) * len(RANKERS),
                labelled=True,
                query_weights=np.ones(n_queries),
                **parts,
            )
    return pools


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **make_pools(sys.argv[2:] or list(SETS)))
