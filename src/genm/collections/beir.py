"""Folders in the layout of the BEIR benchmark: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from genm.errors import FormatError, InputError
from genm.records import Collection, Note


def is_beir_folder(folder: Path) -> bool:
    """Tell whether the folder has BEIR's corpus file."""
    return (folder / "corpus.jsonl").is_file()


def load_beir(folder: str | os.PathLike[str], *, split: str = "test") -> Collection:
    """Read a folder in BEIR's layout: a document is its title and text; queries are those that `split` judges.

    The queries of other splits stand in the same file; a note says how many were left out.
    """
    from genm.read import read_qrels  # it brings polars along, which a user of other collections need not wait for

    base = Path(folder).expanduser()
    for name in ("corpus.jsonl", "queries.jsonl"):
        if not (base / name).is_file():
            raise InputError(f"{base / name}: expected BEIR's file of this name; found none")
    docs = {
        doc_id: f"{record.get('title') or ''} {record['text']}".strip()
        for doc_id, record in _read_records(base / "corpus.jsonl")
    }
    queries = {query_id: record["text"] for query_id, record in _read_records(base / "queries.jsonl")}
    qrels = read_qrels(_qrels_path(base, split))
    judged = set(qrels.queries)
    if unknown := sorted(judged - queries.keys()):
        raise InputError(f"{base}: expected the text of every judged query; found none for {unknown[0]!r}")
    kept = {query_id: text for query_id, text in queries.items() if query_id in judged}
    notes = []
    if others := len(queries) - len(kept):
        text = f"{base.name}: {others} queries without judgments in the split {split} were left out"
        notes.append(Note("unjudged-query", others, text))
    if missing := sum(doc_id not in docs for doc_id in qrels.docs):
        text = f"{base.name}: {missing} judged documents are not in the corpus"
        notes.append(Note("judged-document-missing", missing, text))
    return Collection(
        name=base.resolve().name,
        doc_ids=tuple(docs),
        doc_texts=tuple(docs.values()),
        query_ids=tuple(kept),
        query_texts=tuple(kept.values()),
        qrels=qrels,
        notes=(*qrels.notes, *notes),
    )


def _qrels_path(base: Path, split: str) -> Path:
    path = base / "qrels" / f"{split}.tsv"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in (base / "qrels").glob("*.tsv"))) or "none"
        raise InputError(f"{path}: expected the judgments of the split {split!r}; the splits found: {there}")
    return path


def _read_records(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the id and the record of each line of a JSON-lines file."""
    seen: set[str] = set()
    with path.open(encoding="utf-8-sig") as file:
        for n, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                record_id, _ = str(record["_id"]), record["text"].strip()
            except (ValueError, KeyError, TypeError, AttributeError):
                expected = "a JSON object with _id and text"
                raise FormatError(
                    str(path), n, expected, repr(line[:60]), "Each line is one document or query."
                ) from None
            if record_id in seen:
                raise FormatError(str(path), n, "distinct ids", f"{record_id!r} again", "Remove one of them.")
            seen.add(record_id)
            yield record_id, record
