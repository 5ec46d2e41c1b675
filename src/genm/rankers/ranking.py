"""From a collection to runs: read the texts once, fit the rankers asked for, keep the best of their scores."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genm._typing import Floats
from genm.cache import Arrays, cached, content_key
from genm.errors import InputError
from genm.ids import Ids
from genm.io import make_folder
from genm.progress import Progress, silent
from genm.rankers.base import Ranker, content
from genm.rankers.bm25 import Bm25Ranker
from genm.rankers.dense import DenseRanker
from genm.rankers.ldi import LdiRanker
from genm.rankers.lsa import LsaRanker
from genm.rankers.plsi import PlsiRanker
from genm.rankers.text import DEFAULT, TextProfile, Texts, read_documents, read_queries
from genm.rankers.tfidf import TfidfRanker
from genm.read import write_qrels, write_run, write_texts
from genm.records import Collection, Note, Run, ranked_run

PAPER_RANKERS = ("tfidf", "lsa", "plsi", "ldi")
"""The constituents of the paper's ensemble."""
ALL_DOCUMENTS_UP_TO = 10_000
TOP_OF_LARGER = 1_000

_RANKERS: Mapping[str, type[Ranker]] = {
    r.name: r for r in (TfidfRanker, LsaRanker, PlsiRanker, LdiRanker, Bm25Ranker, DenseRanker)
}
_BLOCK = 2**24
"""Scores held at a time: 128 MB."""


def ranker_names() -> tuple[str, ...]:
    """Return the names that `make_ranker` knows; the paper's four come first."""
    return tuple(_RANKERS)


def make_ranker(name: str, **options: Any) -> Ranker:
    """Return an unfitted ranker by its name; `options` are those of its class."""
    if name not in _RANKERS:
        raise InputError(f"ranker: expected one of {', '.join(_RANKERS)}; found {name!r}.")
    try:
        return _RANKERS[name](**options)
    except TypeError:
        known = ", ".join(_RANKERS[name]().options())
        raise InputError(f"ranker {name}: expected options among {known}; found {', '.join(options)}.") from None


def rank_collection(
    collection: Collection,
    rankers: Sequence[str] | Mapping[str, Ranker] = PAPER_RANKERS,
    *,
    profile: TextProfile = DEFAULT,
    top: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> dict[str, Run]:
    """Return the run of every ranker, by its name, over all queries of the collection.

    `rankers` are names of `ranker_names`, or unfitted rankers under names of your own.
    `top` documents are kept for each query; None keeps all of a collection of up to 10,000, else 1,000. Documents
    that `left_out` names for a query are not ranked for it. With `cache`, what was fitted and ranked
    before for the same texts, options and profile is read back from disk.
    """
    if top is not None and top < 1:
        raise InputError(f"rank_collection: expected top of at least 1; found {top}.")
    chosen = dict(rankers) if isinstance(rankers, Mapping) else {name: make_ranker(name) for name in rankers}
    documents = read_documents(collection.doc_texts, profile)
    queries = read_queries(collection.query_texts, documents)
    depth = top or (len(documents.raw) if len(documents.raw) <= ALL_DOCUMENTS_UP_TO else TOP_OF_LARGER)
    notes = _notes(collection, documents, queries)
    tables = Ids.of(collection.query_ids), Ids.of(collection.doc_ids)
    left_out = _left_out(collection)
    by_id = np.array(sorted(range(len(documents.raw)), key=collection.doc_ids.__getitem__, reverse=True), np.int32)

    def rows(ranker: Ranker) -> Arrays:
        ranker.fit(documents, progress=progress, cache=cache)
        return _best_rows(ranker, queries, depth, left_out, by_id)

    runs = {}
    for name, ranker in chosen.items():
        if cache:
            parts = (content_key(*ranker.key(documents)), content(queries, ranker.reads), depth, by_id, *left_out)
            found = cached("scores", parts, lambda ranker=ranker: rows(ranker))  # type: ignore[misc]
        else:
            found = rows(ranker)
        runs[name] = ranked_run(name, *tables, found["starts"], found["doc"], found["score"], notes)
    return runs


def write_rankings(
    collection: Collection,
    runs: Mapping[str, Run],
    folder: str | os.PathLike[str],
    *,
    texts: bool = False,
    progress: Progress = silent,
) -> dict[str, Path]:
    """Write NAME.trec for every run, and qrels.txt; return the paths by file name.

    With `texts` also docs.tsv and queries.tsv, which `genm report` reads. The folder is made if need be.
    """
    place = make_folder(folder)
    for n, (name, run) in enumerate(runs.items()):
        progress("writing", n, len(runs))
        write_run(run, place / f"{name}.trec")
    write_qrels(collection.qrels, place / "qrels.txt")
    names = [*(f"{name}.trec" for name in runs), "qrels.txt"]
    if texts:
        write_texts(collection.doc_ids, collection.doc_texts, place / "docs.tsv")
        write_texts(collection.query_ids, collection.query_texts, place / "queries.tsv")
        names += ["docs.tsv", "queries.tsv"]
    progress("writing", len(runs), len(runs))
    return {name: place / name for name in names}


def _best_rows(
    ranker: Ranker, queries: Texts, depth: int, left_out: tuple[NDArray[np.int64], ...], by_id: NDArray[np.int32]
) -> Arrays:
    """Return starts, doc and score of the `depth` best documents per query, ranked; ties by doc id downwards."""
    n_queries, n_docs = len(queries.raw), len(by_id)
    query_of, doc_of = left_out
    place = np.empty(n_docs, np.int64)
    place[by_id] = np.arange(n_docs)
    step = max(1, _BLOCK // max(1, n_docs))
    docs: list[NDArray[np.int32]] = []
    scores: list[Floats] = []
    for low in range(0, n_queries, step):
        block = ranker.score(_some(queries, low, min(n_queries, low + step)))[:, by_id]
        here = (query_of >= low) & (query_of < low + step)
        block[query_of[here] - low, place[doc_of[here]]] = -np.inf
        for row in block:
            best = _best(row, depth)
            docs.append(by_id[best])
            scores.append(row[best])
    starts = np.zeros(n_queries + 1, np.int64)
    np.cumsum([len(d) for d in docs], out=starts[1:])
    return {
        "starts": starts,
        "doc": np.concatenate([np.zeros(0, np.int32), *docs]),
        "score": np.concatenate([np.zeros(0), *scores]),
    }


def _best(row: Floats, depth: int) -> NDArray[np.int64]:
    """Return the positions of the `depth` best scores, downwards; equal scores in the order given, -inf never."""
    if depth < len(row):
        edge = -np.partition(-row, depth - 1)[depth - 1]
        above, level = np.flatnonzero(row > edge), np.flatnonzero(row == edge)
        kept = np.sort(np.concatenate((above, level[: depth - len(above)])))
    else:
        kept = np.arange(len(row))
    kept = kept[row[kept] > -np.inf]
    return kept[np.argsort(-row[kept], kind="stable")]


def _some(texts: Texts, low: int, high: int) -> Texts:
    return Texts(texts.raw[low:high], texts.vocabulary, texts.counts[low:high], texts.profile)


def _left_out(collection: Collection) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the (query, document) pairs that must not be ranked, by position; unknown names are ignored."""
    query_at = {q: i for i, q in enumerate(collection.query_ids)}
    doc_at = {d: i for i, d in enumerate(collection.doc_ids)}
    pairs = sorted(
        (query_at[q], doc_at[d])
        for q, left in collection.left_out.items()
        if q in query_at
        for d in left
        if d in doc_at
    )
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def _notes(collection: Collection, documents: Texts, queries: Texts) -> tuple[Note, ...]:
    found = []
    for kind, texts, ids in (
        ("document", documents, collection.doc_ids),
        ("query", queries, collection.query_ids),
    ):
        empty = np.flatnonzero(np.diff(texts.counts.indptr) == 0)
        if len(empty):
            text = f"{kind} without a word of the vocabulary: term rankers score it 0; first: {ids[empty[0]]}"
            found.append(Note(f"empty-{kind}", len(empty), text))
    return tuple(found)
