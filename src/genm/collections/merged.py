"""MC, the merger of the four SMART collections: one pool of documents, every collection's queries."""

import os
from collections.abc import Sequence

from genm.collections.judgments import make_qrels
from genm.collections.smart import SMART, load_smart
from genm.records import Collection, Qrels


def load_merged(*, data: str | os.PathLike[str] | None = None, source_paper: bool = True) -> Collection:
    """Read MED, CRAN, CISI and CACM as one collection of 7,097 documents and 431 queries, 383 of them judged.

    `source_paper` is CRAN's option of `load_smart`.
    """
    parts = [
        load_smart(name, data=data, source_paper=source_paper or not spec.coded) for name, spec in SMART.items()
    ]
    return merge_collections("merged", parts)


def merge_collections(name: str, parts: Sequence[Collection]) -> Collection:
    """Put collections together; every id gets its collection's name in front, as in "med-1"."""
    query_ids = tuple(f"{p.name}-{q}" for p in parts for q in p.query_ids)
    judgments = [
        (f"{p.name}-{query_id}", f"{p.name}-{doc_id}", relevance)
        for p in parts
        for query_id, doc_id, relevance in _rows(p.qrels)
    ]
    return Collection(
        name=name,
        doc_ids=tuple(f"{p.name}-{d}" for p in parts for d in p.doc_ids),
        doc_texts=tuple(t for p in parts for t in p.doc_texts),
        query_ids=query_ids,
        query_texts=tuple(t for p in parts for t in p.query_texts),
        qrels=make_qrels(judgments, query_order=query_ids),
        left_out={
            f"{p.name}-{query_id}": frozenset(f"{p.name}-{d}" for d in doc_ids)
            for p in parts
            for query_id, doc_ids in p.left_out.items()
        },
        notes=tuple(note for p in parts for note in p.notes),
    )


def _rows(qrels: Qrels) -> list[tuple[str, str, int]]:
    docs = list(qrels.docs)
    return [
        (query_id, docs[qrels.doc[row]], int(qrels.relevance[row]))
        for code, query_id in enumerate(qrels.queries)
        for row in range(qrels.starts[code], qrels.starts[code + 1])
    ]
