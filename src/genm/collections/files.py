"""Make a collection of files: documents, queries and judgments in the forms that people have them.

Documents and queries are TREC documents and topics, SMART files, JSON lines, tables or lines of `id TAB text`.
Documents may be spread over the files of a folder. The form of each file is found by its content.
"""

import os
from pathlib import Path

from genm.collections.smart import SmartRecord, read_records
from genm.errors import FormatError, InputError
from genm.progress import Progress, silent
from genm.read import read_qrels
from genm.read.diagnostics import Diagnostics, shown
from genm.read.sources import open_source
from genm.read.texts import read_texts
from genm.records import Collection, Note, Qrels, make_qrels

_Texts = dict[str, str]
_DOC_FIELDS, _QUERY_FIELDS = ("T", "W"), ("W", "T")


def read_collection(
    docs: str | os.PathLike[str],
    queries: str | os.PathLike[str],
    qrels: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    lenient: bool = False,
    grades: str = "whole",
    progress: Progress = silent,
) -> Collection:
    """Return the collection of these files; `docs` may be a folder, whose files are read in the order of names.

    A document's text is its title and its text; of a TREC topic the title is the query. All queries are kept; notes
    count those without judgments, and judgments about unknown queries or documents. Without `qrels` the collection
    has no judgments. `grades` is the rule of `genm.read_qrels` for fractions.
    """
    place = Path(docs).expanduser()
    report = Diagnostics(str(place), lenient=lenient)
    paths = files_of(place)
    if not paths and place.is_dir():
        raise InputError(f"{place}: expected a folder with documents; found no file in it. Name another folder.")
    texts, is_smart, notes = _read_all(paths or [place], _DOC_FIELDS, report, progress)
    topics, _, topic_notes = _read_all([Path(queries).expanduser()], _QUERY_FIELDS, report, progress)
    judged, judged_notes = _judgments(qrels, tuple(topics), is_smart, lenient, grades, progress)
    _note_unknown(report, texts, topics, judged)
    return Collection(
        name=place.resolve().name.split(".")[0] if name is None else name,
        doc_ids=tuple(texts),
        doc_texts=tuple(texts.values()),
        query_ids=tuple(topics),
        query_texts=tuple(topics.values()),
        qrels=judged,
        notes=(*notes, *topic_notes, *judged_notes, *report.notes),
    )


def files_of(place: str | os.PathLike[str]) -> list[Path]:
    """Return the file, or those of the folder and its folders; hidden ones are left out. A name has no files."""
    root = Path(place).expanduser()
    if not root.is_dir():
        return [root] if root.exists() else []
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]


def _read_all(
    paths: list[Path], fields: tuple[str, ...], report: Diagnostics, progress: Progress
) -> tuple[_Texts, bool, list[Note]]:
    """Return the texts of all files, whether they are SMART files, and what was noted about them."""
    texts: _Texts = {}
    first_place: dict[str, Path] = {}
    notes: list[Note] = []
    n_smart = 0
    for path in paths:
        own = Diagnostics(str(path), lenient=report.lenient)
        found, is_smart = _read_one(path, fields, own, progress)
        n_smart += is_smart
        for key in [key for key in found if key in first_place]:
            own.fault(
                "id-twice", line=None, expected="each document in one file", found=f"{shown(key)} again",
                advice=f"It is in {first_place[key]} as well. Remove one of the two.", repair="the first was kept",
            )  # fmt: skip
        for key, text in found.items():
            texts.setdefault(key, text)
            first_place.setdefault(key, path)
        notes += own.notes
    return texts, n_smart == len(paths), notes


def _read_one(path: Path, fields: tuple[str, ...], report: Diagnostics, progress: Progress) -> tuple[_Texts, bool]:
    source = open_source(path, report, progress)
    if not source.text[:4096].tobytes().lstrip().startswith(b".I"):
        return read_texts(source, report, progress), False
    records, notes = read_records(path)
    for note in notes:
        report.say(note.code, note.count, note.text)
    return {str(record.number): _text(record, fields) for record in records}, True


def _text(record: SmartRecord, fields: tuple[str, ...]) -> str:
    """Return a record's text; a query is its `.W`, or where there is none its title."""
    return record.text(fields) if fields == _DOC_FIELDS else record.text(fields[:1]) or record.text(fields[1:])


def _judgments(
    path: str | os.PathLike[str] | None,
    queries: tuple[str, ...],
    is_smart: bool,  # noqa: FBT001
    lenient: bool,  # noqa: FBT001
    grades: str,
    progress: Progress,
) -> tuple[Qrels, tuple[Note, ...]]:
    if path is None:
        return make_qrels((), query_order=()), ()
    place = Path(path).expanduser()
    if is_smart and (pairs := _smart_pairs(place)) is not None:
        text = f"{place.name}: every line is a relevant pair of query and document, as in SMART's files"
        unique = dict.fromkeys(pairs)
        rows = ((query, doc, 1) for query, doc in unique)
        return make_qrels(rows, query_order=queries), (Note("smart-judgments", len(pairs), text),)
    judged = read_qrels(place, lenient=lenient, grades=grades, progress=progress)
    return judged, judged.notes


def _smart_pairs(path: Path) -> list[tuple[str, str]] | None:
    """Return the pairs of SMART's own judgments, or None if the file is of another form.

    SMART's files have two columns or more, query and document first, and nothing that tells a relevant document
    from another: the rest is 0 or a code. A file of four columns that are not all 0 at the end is TREC qrels.
    """
    try:
        lines = [line.split() for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
        pairs = [(str(int(cells[0])), str(int(cells[1]))) for cells in lines]
        rest = {float(cell) for cells in lines for cell in cells[2:]}
    except (OSError, ValueError, IndexError):  # read_qrels says what is wrong
        return None
    widths = {len(cells) for cells in lines}
    return pairs if len(widths) == 1 and (widths <= {2, 3} or (widths == {4} and rest == {0.0})) else None


def _note_unknown(report: Diagnostics, texts: _Texts, topics: _Texts, qrels: Qrels) -> None:
    """Note queries without judgments, and judgments about what is not in the files."""
    judged = set(qrels.queries)
    if judged and (unjudged := [key for key in topics if key not in judged]):
        report.say("unjudged-queries", len(unjudged), f"without judgments: query {shown(unjudged[0])}; kept")
    if unknown := [key for key in judged if key not in topics]:
        report.say("unknown-queries", len(unknown), f"judged, but not among the queries: {shown(min(unknown))}")
    if unknown := [key for key in qrels.docs if key not in texts]:
        text = f"judged, but not among the documents: {shown(unknown[0])}; no run can find it"
        report.say("unknown-documents", len(unknown), text)
    if judged and not judged & topics.keys():
        raise FormatError(
            report.source, None, "judgments of the queries", "none of a query that is in the file",
            "Do the files belong together?",
        )  # fmt: skip
