"""Made-up retrieval problems for the tests of learning."""

import numpy as np

from genm.align import Aligned, align_runs
from genm.ids import Ids
from genm.learn import ExactFuser
from genm.learn.objectives import Problem, Scorer
from genm.normalizers import Normalizer
from genm.records import Qrels, Run, ranked_run


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


def two_kinds(seed: int = 0, *, n_queries: int = 60, n_docs: int = 15) -> tuple[Aligned, list[str], dict[str, str]]:
    """Queries of two kinds: of "id" the first ranker is good and the second is noise, of "question" the reverse.

    Returns the aligned runs, the kind of each query, and texts that tell the kinds apart.
    """
    rng = np.random.default_rng(seed)
    runs: list[dict[str, dict[str, float]]] = [{}, {}, {}]
    qrels, kinds, texts = {}, [], {}
    for q in range(n_queries):
        name, kind = f"q{q:03}", "id" if rng.random() < 0.5 else "question"
        relevant = np.arange(n_docs) < 3
        quality = (2.0, 0.0, 0.5) if kind == "id" else (0.0, 2.0, 0.5)
        for run, strength in zip(runs, quality, strict=True):
            scores = strength * relevant + rng.normal(size=n_docs)
            run[name] = {f"d{d:02}": float(score) for d, score in enumerate(scores)}
        qrels[name] = {f"d{d:02}": 1 for d in range(3)}
        kinds.append(kind)
        texts[name] = f"AB-{q}" if kind == "id" else "how does one do such a thing"
    named = {f"r{k}": Run.from_dict(run, name=f"r{k}") for k, run in enumerate(runs)}
    return align_runs(named, Qrels.from_dict(qrels)), kinds, texts


def runs_of(aligned: Aligned) -> list[Run]:
    """Return the runs that were aligned, all documents of them."""
    ids, docs = list(aligned.queries), list(aligned.docs)
    spans = [range(aligned.starts[q], aligned.starts[q + 1]) for q in range(len(ids))]
    runs = []
    for k, name in enumerate(aligned.rankers):
        table = {
            query: {docs[aligned.doc[row]]: float(aligned.raw[row, k]) for row in span if aligned.retrieved[row, k]}
            for query, span in zip(ids, spans, strict=True)
        }
        runs.append(Run.from_dict(table, name=name))
    return runs
