"""The SMART test collections MED, CRAN, CISI and CACM, read from their original files, and MC, all four merged.

Their quirks are described in docs/collections.md; `SmartSpec` holds the differences. Records start with `.I`,
fields with a dot and a capital letter. The user names the folder of the files: genm contains none of them.
"""

import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from genm.errors import FormatError, InputError
from genm.records import Collection, Note, Qrels, make_qrels

_RECORD = re.compile(r"\.I\s+([0-9]{1,18})\s*")
_FIELD = re.compile(r"\.([A-HJ-Z])\s*")

NOT_TEXT = frozenset("NX")
"""Fields that hold no text of a document or query: entry stamps or the asker's name (N), citation links (X)."""

Column = Literal["query", "doc", "code", "constant"]

VARIABLE = "GENM_DATA"


@dataclass(frozen=True, slots=True)
class SmartRecord:
    """One document or query: its number, and its fields with single spaces."""

    number: int
    fields: dict[str, str]

    def text(self, wanted: Sequence[str]) -> str:
        """Return the texts of the given fields, as far as they exist, in that order."""
        return " ".join(t for letter in wanted if (t := self.fields.get(letter)))


@dataclass(frozen=True, slots=True)
class Judgment:
    """A line of a judgment file; `code` is 1 where the file has no column of codes."""

    query: int
    doc: int
    code: int


def read_text(path: Path) -> list[str]:
    """Return the lines of a file; Windows line ends, a byte-order mark and a final Ctrl-Z are removed."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"the byte {raw[error.start]:#04x}"
        raise FormatError(str(path), line, "UTF-8 text", found, "Convert the file to UTF-8.") from None
    return text.replace("\r\n", "\n").rstrip("\x1a").split("\n")


def read_records(path: Path, *, last_field: str | None = None) -> tuple[list[SmartRecord], list[Note]]:
    """Return the records of a SMART file in their order, and notes about repairs.

    A field that occurs several times is joined. `last_field` names the field that closes a record in this file:
    a mark after it is a typing error, and what follows belongs to that field's text.
    """
    records: list[tuple[int, dict[str, list[str]]]] = []
    field: str | None = None
    strays: list[int] = []
    for n, line in enumerate(read_text(path), 1):
        marked = line.startswith(".")
        if marked and (opened := _RECORD.fullmatch(line)):
            records.append((int(opened[1]), {}))
            field = None
        elif marked and records and (mark := _FIELD.fullmatch(line)):
            if field is not None and field == last_field:
                strays.append(records[-1][0])
            else:
                field = mark[1]
                records[-1][1].setdefault(field, [])
        elif field is not None:
            records[-1][1][field].append(line)
        elif line.strip():
            expected = "a field mark such as .W" if records else "a record mark such as .I 1"
            raise FormatError(str(path), n, expected, repr(line[:40]), "Is this a SMART file?")
    notes = []
    if strays:
        listed = ", ".join(map(str, dict.fromkeys(strays)))
        text = f"{path.name}: field marks inside the text of records {listed} were left out, the text kept"
        notes.append(Note("stray-field-mark", len(strays), text))
    if records and records[-1][0] == 0 and not any("".join(t).strip() for t in records[-1][1].values()):
        records.pop()
        notes.append(Note("empty-last-record", 1, f"{path.name}: the empty record .I 0 at the end was left out"))
    _check_numbers(path, [number for number, _ in records])
    return [SmartRecord(n, {f: _even("\n".join(t)) for f, t in fields.items()}) for n, fields in records], notes


def read_judgments(path: Path, columns: Sequence[Column]) -> list[Judgment]:
    """Return the judgments of a file whose columns, split at blanks and tabs, are as named."""
    judgments = []
    for n, line in enumerate(read_text(path), 1):
        cells = line.split()
        if not cells:
            continue
        by_name = dict(zip(columns, cells, strict=False))
        try:
            if len(cells) != len(columns):
                raise ValueError
            judgments.append(Judgment(int(by_name["query"]), int(by_name["doc"]), int(by_name.get("code", "1"))))
        except ValueError:
            expected = f"{len(columns)} columns of numbers ({', '.join(columns)})"
            raise FormatError(str(path), n, expected, repr(line[:60]), "Is this the right file?") from None
    return judgments


def fingerprint(docs: Sequence[SmartRecord], queries: Sequence[SmartRecord], judged: Sequence[Judgment]) -> str:
    """Return a hash of the records, independent of line ends, spaces, file names and the order of judgments."""
    digest = sha256()
    for kind, records in (("doc", docs), ("query", queries)):
        for record in records:
            digest.update(f"{kind} {record.number}\n".encode())
            for letter in sorted(record.fields.keys() - NOT_TEXT):
                digest.update(f".{letter} {record.fields[letter]}\n".encode())
    for j in sorted(judged, key=lambda j: (j.query, j.doc, j.code)):
        digest.update(f"judged {j.query} {j.doc} {j.code}\n".encode())
    return digest.hexdigest()


def _even(text: str) -> str:
    return " ".join(text.split())


def _check_numbers(path: Path, numbers: Sequence[int]) -> None:
    if not numbers:
        raise FormatError(str(path), None, "records opened by .I", "none", "Is this a SMART file?")
    for before, number in itertools.pairwise(numbers):
        if number <= before:
            found = f".I {number} after .I {before}"
            raise FormatError(str(path), None, "ascending record numbers", found, "Is the file damaged?")


def data_folder(data: str | os.PathLike[str] | None, *, wanted: str) -> Path:
    """Return the folder of the collections: `data`, or else GENM_DATA; `wanted` is named in the error."""
    chosen = data if data is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise InputError(
            f"{wanted} is read from a folder, and none was given. Name it with --data DIR (in Python: data=...) or "
            f"set {VARIABLE}; {_how_to_get(wanted)}"
        )
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        source = "data" if data is not None else VARIABLE
        raise InputError(f"{folder}: expected the folder of the collections ({source}); found no such folder")
    return folder


def find_file(folder: Path, name: str, candidates: Sequence[str]) -> Path:
    """Return the first of the candidates in `folder`/`name` or in `folder` itself, in any letter case."""
    for place in (folder / name, folder / name.upper(), folder):
        present = {path.name.lower(): path for path in sorted(place.iterdir())} if place.is_dir() else {}
        for candidate in candidates:
            path = present.get(candidate.lower())
            if path is not None and path.is_file():
                return path
    raise InputError(
        f"{folder / name}: expected the file {candidates[0]}; found none. Point --data (in Python: data=...) or "
        f"{VARIABLE} at the folder above {name}/; {_how_to_get(name)}"
    )


def _how_to_get(wanted: str) -> str:
    return f"`genm collections get {wanted} --data DIR` downloads it where there is a network."


@dataclass(frozen=True, slots=True)
class SmartSpec:
    """What the reader must know about one collection."""

    name: str
    title: str
    columns: tuple[Column, ...]
    """Meaning of the judgment file's columns; "constant" ones carry no information."""
    sha256: str
    """`fingerprint` of the known copy."""
    docs_files: tuple[str, ...]
    queries_files: tuple[str, ...]
    judgments_files: tuple[str, ...]
    """Names under which the file is in circulation, the one we write first."""
    archive: str
    """The archive's address below the distributor's page."""
    queries_by_ordinal: bool = False
    """Judgments count the queries 1, 2, 3, ... and do not use their `.I` numbers."""
    last_field: str | None = None
    """A field mark after this one in a document is a typing error."""
    coded: bool = False
    """Judgments carry codes 1 (best) to 4 and -1, the paper that the query was written from."""


SMART = {
    spec.name: spec
    for spec in (
        SmartSpec(
            name="med",
            title="MED: 1,033 medical abstracts, 30 queries",
            columns=("query", "constant", "doc", "constant"),
            sha256="54d3df0d3f4c95f06fcce91936e0818cac1b0cda82e5ad07f89ead10567703a9",
            docs_files=("MED.ALL",),
            queries_files=("MED.QRY",),
            judgments_files=("MED.REL",),
            archive="medl/med.tar.gz",
        ),
        SmartSpec(
            name="cran",
            title="CRAN: 1,400 abstracts on aerodynamics, 225 queries",
            columns=("query", "doc", "code"),
            sha256="07b2a1e868dd83ca68e2b06b99273bf29553a93c161427545fc4dd5969dc0387",
            docs_files=("CRAN.ALL", "cran.all.1400"),
            queries_files=("CRAN.QRY",),
            judgments_files=("CRAN.REL", "cranqrel"),
            archive="cran/cran.tar.gz",
            queries_by_ordinal=True,
            last_field="W",
            coded=True,
        ),
        SmartSpec(
            name="cisi",
            title="CISI: 1,460 documents on information science, 112 queries, 76 of them judged",
            columns=("query", "doc", "constant", "constant"),
            sha256="9a211320c56787c229cd1fafadebc57ee4b5846b260f4435ecadc5f9d4ff5414",
            docs_files=("CISI.ALL",),
            queries_files=("CISI.QRY",),
            judgments_files=("CISI.REL",),
            archive="cisi/cisi.tar.gz",
        ),
        SmartSpec(
            name="cacm",
            title="CACM: 3,204 titles and abstracts on computing, 64 queries, 52 of them judged",
            columns=("query", "doc", "constant", "constant"),
            sha256="3ee66686e103d6ab02c80e450433eba493cc967d301f52fabba62fa08cc8a74d",
            docs_files=("CACM.ALL",),
            queries_files=("CACM.QRY", "query.text"),
            judgments_files=("CACM.REL", "qrels.text"),
            archive="cacm/cacm.tar.gz",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class SmartData:
    """The parsed files of one collection, with all fields and codes; queries are numbered as in the judgments."""

    docs: list[SmartRecord]
    queries: list[SmartRecord]
    judgments: list[Judgment]
    sha256: str
    notes: tuple[Note, ...]


def load_smart(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    doc_fields: Sequence[str] = ("T", "W"),
    query_fields: Sequence[str] = ("W",),
    source_paper: bool = True,
    graded: bool = False,
) -> Collection:
    """Read MED, CRAN, CISI or CACM from the folder `data` (or GENM_DATA).

    Texts are made of the fields named: T title, A authors, B source, W abstract or question, K keywords,
    C categories. All queries are returned; those without judgments are missing from `qrels`.

    CRAN alone has codes. All count as relevant (1,837 pairs); `source_paper=False` leaves out code -1, the paper
    from which the query was written; `graded=True` gives 5 minus the code, and -1 counts as code 1.
    """
    spec = smart_spec(name)
    if not spec.coded and (graded or not source_paper):
        raise InputError(f"{spec.name}: expected no grading options; found some. Only cran's judgments have codes.")
    _check_fields(doc_fields, "doc_fields")
    _check_fields(query_fields, "query_fields")
    folder = data_folder(data, wanted=spec.name)
    parsed = read_smart(
        spec,
        find_file(folder, spec.name, spec.docs_files),
        find_file(folder, spec.name, spec.queries_files),
        find_file(folder, spec.name, spec.judgments_files),
    )
    query_ids = tuple(str(q.number) for q in parsed.queries)
    judgments = [j for j in parsed.judgments if source_paper or j.code != -1]
    qrels = make_qrels(
        ((str(j.query), str(j.doc), _grade(j.code) if graded else 1) for j in judgments), query_order=query_ids
    )
    doc_texts = tuple(d.text(doc_fields) for d in parsed.docs)
    notes = [*parsed.notes, *_notes_on_texts(spec, parsed.docs, doc_texts, doc_fields)]
    if unjudged := len(query_ids) - len(qrels.queries):
        notes.append(Note("unjudged-query", unjudged, f"{spec.name}: {unjudged} queries have no judgments"))
    return Collection(
        name=spec.name,
        doc_ids=tuple(str(d.number) for d in parsed.docs),
        doc_texts=doc_texts,
        query_ids=query_ids,
        query_texts=tuple(q.text(query_fields) for q in parsed.queries),
        qrels=qrels,
        notes=tuple(notes),
    )


def smart_spec(name: str) -> SmartSpec:
    """Return what is known about the collection `name`."""
    try:
        return SMART[name.lower()]
    except KeyError:
        raise InputError(f"{name!r}: expected one of {', '.join(SMART)}; found another name") from None


def read_smart(spec: SmartSpec, docs_file: Path, queries_file: Path, judgments_file: Path) -> SmartData:
    """Parse the three files of a collection and check that they belong together."""
    docs, notes = read_records(docs_file, last_field=spec.last_field)
    queries, query_notes = read_records(queries_file)
    judgments = read_judgments(judgments_file, spec.columns)
    notes += query_notes
    if spec.queries_by_ordinal:
        renumbered = [SmartRecord(n, q.fields) for n, q in enumerate(queries, 1)]
        changed = sum(a.number != b.number for a, b in zip(queries, renumbered, strict=True))
        text = (
            f"{spec.name}: query ids are the queries' places in the file, as in the judgments, not their .I numbers"
        )
        notes.append(Note("query-numbering", changed, text))
        queries = renumbered
    known_docs, known_queries = {d.number for d in docs}, {q.number for q in queries}
    for j in judgments:
        if j.doc not in known_docs or j.query not in known_queries:
            found = f"query {j.query}, document {j.doc}"
            advice = "Do the three files belong together?"
            raise FormatError(str(judgments_file), None, "judgments of known documents", found, advice)
    sha256 = fingerprint(docs, queries, judgments)
    if sha256 != spec.sha256:
        text = f"{spec.name}: the content differs from the known copy, so figures may differ from published ones"
        notes.append(Note("unknown-copy", 1, text))
    return SmartData(docs, queries, judgments, sha256, tuple(notes))


def smart_stopwords(data: str | os.PathLike[str] | None = None) -> frozenset[str]:
    """Return the SMART stop list (570 different words) from `smart_stopwords.txt` in the data folder."""
    folder = data_folder(data, wanted="smart_stopwords.txt")
    path = folder / "smart_stopwords.txt"
    if not path.is_file():
        raise InputError(f"{path}: expected the SMART stop list, a word a line; found no such file")
    return frozenset(word for line in read_text(path) if (word := line.strip()))


def _grade(code: int) -> int:
    """Return the gain of a code of CRAN, where 1 is best; the source paper fits its query best of all."""
    return 5 - (1 if code == -1 else code)


def _check_fields(fields: Sequence[str], option: str) -> None:
    if isinstance(fields, str) or not fields or not set(fields) <= set("TABWKC"):
        hint = " N and X hold no text." if NOT_TEXT & set(fields) else ""
        raise InputError(
            f'{option}: expected letters out of T A B W K C, such as ("T", "W"); found {fields!r}.{hint}'
        )


def _notes_on_texts(
    spec: SmartSpec, docs: Sequence[SmartRecord], texts: Sequence[str], fields: Sequence[str]
) -> list[Note]:
    notes = []
    empty = [str(d.number) for d, text in zip(docs, texts, strict=True) if not text]
    if empty:
        text = f"{spec.name}: {len(empty)} documents have no text, the first is {empty[0]}; they are kept"
        notes.append(Note("empty-document", len(empty), text))
    if {"T", "W"} <= set(fields):
        twice = sum(bool(title := d.text("T")) and d.text("W").startswith(title) for d in docs)
        if 2 * twice > len(docs):  # a few titles that are also first sentences are not worth a note
            text = f"{spec.name}: {twice} abstracts begin with the title, whose words therefore count twice"
            notes.append(Note("title-repeated", twice, text))
    return notes


def load_merged(*, data: str | os.PathLike[str] | None = None, source_paper: bool = True) -> Collection:
    """Read MED, CRAN, CISI and CACM as one collection of 7,097 documents and 431 queries, 383 of them judged.

    `source_paper` is CRAN's option of `load_smart`.
    """
    parts = [
        load_smart(name, data=data, source_paper=source_paper or not spec.coded) for name, spec in SMART.items()
    ]
    return merge_collections("merged", parts)


def merge_collections(name: str, parts: Sequence[Collection]) -> Collection:
    """Merge collections; every id gets its collection's name as a prefix, as in "med-1"."""
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
