"""Read folders in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/<split>.tsv, plain or compressed."""

import os
from pathlib import Path

from genm.errors import FormatError, WrongTypeError
from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, shown
from genm.read.readers import read_qrels
from genm.read.sources import open_source
from genm.read.texts import read_texts
from genm.records import Collection, Note


def read_beir(
    folder: str | os.PathLike[str], *, split: str = "test", lenient: bool = False, progress: Progress = silent
) -> Collection:
    """Read texts, the queries judged in `split`, and their judgments.

    A document's text is its title and its text. Queries that the split does not judge are left out, as in
    BEIR; notes say how many, and how many judgments are about unknown queries or documents.
    """
    if not isinstance(folder, str | os.PathLike):
        raise WrongTypeError(f"folder: expected a path; found {type(folder).__name__}. Name a folder in BEIR form.")
    root = Path(folder)
    documents, notes = _texts(_named(root, "corpus.jsonl"), lenient, progress)
    topics, topic_notes = _texts(_named(root, "queries.jsonl"), lenient, progress)
    qrels = read_qrels(_named(root, f"qrels/{split}.tsv"), lenient=lenient, progress=progress)
    judged = set(qrels.queries)
    asked = [query_id for query_id in topics if query_id in judged]
    report = Diagnostics(str(root), lenient=lenient)
    if len(asked) < len(topics):
        report.say(
            "unjudged-queries", len(topics) - len(asked), f"queries that split {split!r} does not judge: set aside"
        )
    if len(asked) < len(judged):
        first = next(query_id for query_id in qrels.queries if query_id not in topics)
        report.say("unknown-queries", len(judged) - len(asked), f"judged, but not in queries.jsonl: {shown(first)}")
    unknown = [doc_id for doc_id in qrels.docs if doc_id not in documents]
    if unknown:
        report.say(
            "unknown-documents",
            len(unknown),
            f"judged, but not in corpus.jsonl: {shown(unknown[0])}; no run can find it",
        )
    return Collection(
        root.resolve().name, tuple(documents), tuple(documents.values()), tuple(asked),
        tuple(topics[query_id] for query_id in asked), qrels,
        notes=(*notes, *topic_notes, *qrels.notes, *report.notes),
    )  # fmt: skip


def _named(root: Path, name: str) -> Path:
    """Return the file, or its compressed form."""
    for candidate in (root / name, root / f"{name}.gz", root / f"{name}.zst"):
        if candidate.exists():
            return candidate
    here = sorted(p.name for p in (root / name).parent.glob("*"))[:8]
    raise FormatError(
        str(root), None, f"a folder in BEIR form with {name}",
        f"no {name}" + (f" beside {', '.join(here)}" if here else ""),
        "Name the folder that holds corpus.jsonl, queries.jsonl and qrels/, and a split that is there.",
    )  # fmt: skip


def _texts(path: Path, lenient: bool, progress: Progress) -> tuple[dict[str, str], tuple[Note, ...]]:  # noqa: FBT001
    """Return the text of each id."""
    report = Diagnostics(str(path), lenient=lenient)
    return read_texts(open_source(path, report, progress), report, progress), report.notes
