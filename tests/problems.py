"""Made-up retrieval problems for the tests of learning."""

import numpy as np

from genm.align import Aligned, align_runs
from genm.ids import Ids
from genm.learn import ExactFuser
from genm.learn.objectives import Problem, Scorer
from genm.normalizers import Normalizer
from genm.records import Qrels, ranked_run


class QuickExact(ExactFuser):
    """The exact fuser from simple weights on: to have three smoothed fusers find others takes most of its time."""

    def _starts(self, smooth: Problem, scorer: Scorer) -> list[np.ndarray]:
        n = len(smooth.rankers)
        return [np.full(n, 1.0 / n), max(np.eye(n), key=scorer.mean)][: min(n, self.n_climbs)]


def made_up(
    seed: int,
    *,
    quality: tuple[float, ...] = (1.0, 0.6, 0.2),
    n_queries: int = 12,
    n_docs: int = 60,
    n_relevant: int = 5,
    labelled: bool = True,
    normalize: str | Normalizer = "minmax",
) -> Aligned:
    """Rankers that see relevance through noise: a document's score is quality * relevant + normal noise."""
    rng = np.random.default_rng(seed)
    docs = Ids.of(f"d{i:04}" for i in range(n_docs))
    queries = Ids.of(f"q{i:03}" for i in range(n_queries))
    relevant = np.zeros((n_queries, n_docs), bool)
    for q in range(n_queries):
        relevant[q, rng.choice(n_docs, n_relevant, replace=False)] = True
    starts = np.arange(n_queries + 1) * n_docs
    doc = np.tile(np.arange(n_docs, dtype=np.int32), n_queries)
    runs = {
        f"r{k}": ranked_run(
            f"r{k}", queries, docs, starts, doc, (q * relevant + rng.normal(size=relevant.shape) * 0.5).ravel()
        )
        for k, q in enumerate(quality)
    }
    rows = np.argwhere(relevant)
    qrels = Qrels(
        queries,
        docs,
        np.arange(n_queries + 1) * n_relevant,
        rows[:, 1].astype(np.int32),
        np.ones(len(rows), np.int32),
    )
    return align_runs(runs, qrels if labelled else None, normalize=normalize)
