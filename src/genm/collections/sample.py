"""The small files of the quickstart and of the tutorial on judging: made-up runs, judgments and texts."""

import os
import random
from pathlib import Path

from genm.errors import InputError
from genm.io import make_folder, write_text

FILES = ("bm25.trec", "dense.trec", "qrels.txt")
TEXT_FILES = ("documents.tsv", "queries.tsv")
_SEED = 20240301
_N_QUERIES, _N_DOCS, _N_CANDIDATES, _N_RETURNED = 30, 400, 40, 25
_MADE_OF = ("copper", "wooden", "tidal", "solar", "antique", "mountain")
_THINGS = ("pumps", "clocks", "bridges", "ovens", "organs")
_DEEDS = ("repair", "design", "cost", "history", "safety")


def write_sample(folder: str | os.PathLike[str], *, texts: bool = False, force: bool = False) -> tuple[Path, ...]:
    """Write bm25.trec, dense.trec and qrels.txt into a folder, and return their paths.

    With `texts`, the files documents.tsv and queries.tsv have the texts that the judgments are about.

    Thirty queries with five relevant documents each; the two rankers favour different ones, so that fusing them
    helps. The files are the same on every machine, byte by byte. A file that exists is refused unless `force`.
    """
    place = Path(folder)
    lines = sample_lines() | (sample_texts() if texts else {})
    present = [place / name for name in lines if (place / name).exists()]
    if present and not force:
        raise InputError(
            f"{present[0]}: expected no such file; found one. Choose another folder, or overwrite it with --force "
            f"(in Python: force=True)."
        )
    make_folder(place)
    for name, written in lines.items():
        write_text(place / name, "".join(f"{line}\n" for line in written))
    return tuple(place / name for name in lines)


def sample_lines() -> dict[str, list[str]]:
    """Return the lines of each file, by its name."""
    draw = random.Random(_SEED)  # noqa: S311 (made-up data, not a secret)
    lines: dict[str, list[str]] = {name: [] for name in FILES}
    for query in range(1, _N_QUERIES + 1):
        docs = draw.sample(range(1, _N_DOCS), _N_CANDIDATES)
        relevant = set(docs[:5])
        lines["qrels.txt"] += [f"{query} 0 d{doc:03} {int(doc in relevant)}" for doc in docs[:20]]
        for ranker, favoured, scale in (("bm25", docs[:3], 7.0), ("dense", docs[2:5], 0.2)):
            scores = {doc: draw.gauss(1.6 if doc in favoured else 0.0, 1.0) for doc in docs}
            best = sorted(scores, key=scores.__getitem__, reverse=True)[:_N_RETURNED]
            lines[f"{ranker}.trec"] += [
                f"{query} Q0 d{doc:03} {rank} {scale * scores[doc]:.6f} {ranker}"
                for rank, doc in enumerate(best, 1)
            ]
    return lines


def sample_texts() -> dict[str, list[str]]:
    """Return the lines of the texts: a document explains what it is relevant to, and only mentions other things."""
    subjects = [(kind, thing) for kind in _MADE_OF for thing in _THINGS]
    sentences: dict[int, list[str]] = {doc: [] for doc in range(1, _N_DOCS)}
    for line in sample_lines()["qrels.txt"]:
        query, _, doc, grade = line.split()
        kind, thing = subjects[int(query) - 1]
        deed = _DEEDS[int(query) % len(_DEEDS)]
        about = f"It explains the {deed} of {kind} {thing}, step by step."
        in_passing = f"A footnote mentions {thing} that are not {kind}."
        sentences[int(doc[1:])].append(about if grade == "1" else in_passing)
    documents = [
        f"d{doc:03}\tLeaflet {doc}. {' '.join(said) or 'It has blank pages.'}" for doc, said in sentences.items()
    ]
    queries = [
        f"{query}\t{_DEEDS[query % len(_DEEDS)]} of {kind} {thing}"
        for query, (kind, thing) in enumerate(subjects, 1)
    ]
    return {"documents.tsv": documents, "queries.tsv": queries}
