"""Where judgments are kept: a log of opinions in a SQLite file, durable before anybody is told.

The log only grows. An opinion is what one judge said about one document for one query; a later opinion of the same
judge replaces an earlier one, and taking one back brings the one before it to light again. So nothing that a judge
said is ever lost, and several judges, people or programs, can work on one file at once.

| action | meaning |
|---|---|
| grade | the document has this grade |
| unsure | the text does not say enough to judge |
| skip | the judge would rather not say; the pair comes again for others |
| decide | the grade that ends a disagreement; it stands for all |
| undo | takes the judge's last opinion back |
"""

import csv
import io
import math
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from genm.errors import InputError, StoreError
from genm.io import PathLike
from genm.read import write_qrels
from genm.records import Qrels

Action = Literal["grade", "unsure", "skip", "decide", "undo"]
ACTIONS: tuple[str, ...] = get_args(Action)
"""What a judge can do."""
GRADES = (0, 1, 2, 3)
"""The grades of the page and of language models: not relevant, related, relevant, perfect."""
PERSON = "person"
"""The source of what people say; a language model's is `model:` and its name."""
DECIDED = "decided"
"""The source of a judgment that a person decided after a disagreement."""
STATED = 2.0
"""What a model says of its own grade counts as much as this many pairs that people judged."""

_APPLICATION = 0x67656E6D  # "genm": tells our files from other SQLite files
_SCHEMA = 1
_MOST_NOTE, _MOST_ID = 4_000, 4_096
_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The second where the schema of a damaged file is no text, which SQLite quotes in its message."""
_TABLE = """
CREATE TABLE IF NOT EXISTS opinions (
    sequence INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    judge TEXT NOT NULL,
    source TEXT NOT NULL,
    query TEXT NOT NULL,
    document TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('grade', 'unsure', 'skip', 'decide', 'undo')),
    grade INTEGER,
    confidence REAL,
    note TEXT NOT NULL,
    undoes INTEGER REFERENCES opinions (sequence),
    CHECK ((action IN ('grade', 'decide')) = (grade IS NOT NULL)),
    CHECK ((action = 'undo') = (undoes IS NOT NULL))
) STRICT
"""
_ANSWERS = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Opinion:
    """One row of the log."""

    sequence: int
    key: str
    """Unique: the same key sent again is the same opinion, so a request can be repeated."""
    at: int
    """Milliseconds since 1970."""
    judge: str
    source: str
    """person, or model: and a name."""
    query: str
    document: str
    action: Action
    grade: int | None
    confidence: float | None
    """How sure the judge is, 0 to 1; None where nobody asked."""
    note: str
    undoes: int | None
    """The sequence of the opinion that an undo takes back."""

    @property
    def pair(self) -> tuple[str, str]:
        """Query and document."""
        return self.query, self.document


@dataclass(frozen=True, slots=True)
class Judgment:
    """What all opinions on one pair come to."""

    query: str
    document: str
    grade: int
    n_judges: int
    source: str
    """`decided`, `person`, or the model whose grade it is."""
    confidence: float
    """The share of the judges who gave this grade, times their mean confidence where they gave one."""
    probability: float
    """How likely people find the document relevant: 1 or 0 if people judged it, else see `settle`."""
    is_disputed: bool
    """Whether people gave different grades and nobody has decided."""


_COLUMNS = ", ".join(field.name for field in fields(Opinion))
_MARKS = ", ".join("?" * len(fields(Opinion)))


class JudgmentStore:
    """The log of opinions in a file. Any thread may read and write; so may other processes."""

    def __init__(self, path: PathLike, *, create: bool = True) -> None:
        self.path = Path(os.fspath(path))
        self._lock = threading.Lock()
        if not create and not self.path.is_file():
            raise StoreError(f"{self.path}: expected a file of judgments; there is no such file. Check the name.")
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=30.0, isolation_level=None, check_same_thread=False
            )
            try:
                self._open()
            except BaseException:
                self._connection.close()
                raise
        except _SQLITE_ERRORS as error:
            raise self._failed(error, "Name a file that is, or can become, a store.") from error

    def _open(self) -> None:
        is_new = self._one("SELECT COUNT(*) FROM sqlite_master") == 0
        application, schema = self._one("PRAGMA application_id"), self._one("PRAGMA user_version")
        if not is_new and (application != _APPLICATION or schema != _SCHEMA):
            found = f"version {schema} of it" if application == _APPLICATION else "another SQLite file"
            raise StoreError(
                f"{self.path}: expected a file of judgments of `genm judge`, version {_SCHEMA}; found {found}. "
                "Name another file."
            )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            with self._writing():
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {_SCHEMA}")
                self._connection.execute(_TABLE)
                self._connection.execute(_ANSWERS)
                self._connection.execute("CREATE INDEX IF NOT EXISTS by_judge ON opinions (judge, sequence)")

    def _failed(self, error: Exception, advice: str) -> StoreError:
        """Return the error for what SQLite could not do, on one line."""
        return StoreError(f"{self.path}: {' '.join(str(error).split())[:300]}. {advice}")

    def _one(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchone()[0])

    def __enter__(self) -> "JudgmentStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the only writing transaction of the file; leaving it makes all durable, an error leaves nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except _SQLITE_ERRORS as error:
            raise self._failed(error, "Nothing was stored; try again.") from error

    def add(
        self,
        judge: str,
        query: str,
        document: str,
        grade: int | None = None,
        *,
        action: Action = "grade",
        key: str,
        source: str = PERSON,
        confidence: float | None = None,
        note: str = "",
    ) -> Opinion:
        """Store an opinion; when this returns, it is on disk.

        `key` names the opinion: a second call with the same key and content returns the stored opinion, and one
        with other content is refused.
        """
        _check_opinion(judge, query, document, action, grade, confidence, note)
        said = (judge, source, query, document, action, grade, confidence, note)
        with self._lock, self._writing():
            stored = self._stored(key)
            if stored is not None:
                kept = (stored.judge, stored.source, *stored.pair, stored.action, stored.grade, stored.confidence)
                if (*kept, stored.note) != said:
                    raise InputError(
                        f"key {key[:60]!r}: expected the opinion that it names; found another. Use a new key."
                    )
                return stored
            return self._append(key, said, undoes=None)

    def undo(self, judge: str, *, key: str) -> Opinion | None:
        """Take the judge's last opinion back and return it; None where there is none."""
        with self._lock, self._writing():
            stored = self._stored(key)
            if stored is not None:
                return self._by_sequence(stored.undoes)
            sql = (
                f"SELECT {_COLUMNS} FROM opinions AS one WHERE judge = ? AND action != 'undo' AND NOT EXISTS "  # noqa: S608
                "(SELECT 1 FROM opinions AS other WHERE other.undoes = one.sequence) ORDER BY sequence DESC LIMIT 1"
            )
            last = self._fetch(sql, judge)
            if not last:
                return None
            one = last[0]
            self._append(key, (judge, one.source, *one.pair, "undo", None, None, ""), undoes=one.sequence)
            return one

    def _append(self, key: str, said: tuple[Any, ...], *, undoes: int | None) -> Opinion:
        sequence = 1 + (self._connection.execute("SELECT MAX(sequence) FROM opinions").fetchone()[0] or 0)
        row = Opinion(*(sequence, key, time.time_ns() // 1_000_000, *said, undoes))
        self._connection.execute(f"INSERT INTO opinions ({_COLUMNS}) VALUES ({_MARKS})", astuple(row))  # noqa: S608
        return row

    def _stored(self, key: str) -> Opinion | None:
        if not key or len(key) > _MOST_ID:
            raise InputError(f"key: expected 1 to {_MOST_ID:,} characters; found {len(key):,}.")
        return next(iter(self._fetch(f"SELECT {_COLUMNS} FROM opinions WHERE key = ?", key)), None)  # noqa: S608

    def _by_sequence(self, sequence: int | None) -> Opinion | None:
        return next(iter(self._fetch(f"SELECT {_COLUMNS} FROM opinions WHERE sequence = ?", sequence)), None)  # noqa: S608

    def _fetch(self, sql: str, *values: object) -> list[Opinion]:
        try:
            return [Opinion(*row) for row in self._connection.execute(sql, values)]
        except _SQLITE_ERRORS as error:
            raise self._failed(error, "Restore a copy of the file.") from error

    def log(self, *, after: int = 0) -> list[Opinion]:
        """Return every row after a sequence number, the oldest first, the undone and the undoing included."""
        sql = f"SELECT {_COLUMNS} FROM opinions WHERE sequence > ? ORDER BY sequence"  # noqa: S608
        with self._lock:
            return self._fetch(sql, after)

    def keep_answer(self, key: str, source: str, body: bytes) -> None:
        """Keep what a model answered, under a key made of what it was asked."""
        with self._lock, self._writing():
            self._connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (key, source, body))

    def answers(self, source: str) -> dict[str, bytes]:
        """Return the answers of a model, by the keys of what it was asked."""
        with self._lock:
            try:
                rows = self._connection.execute("SELECT key, body FROM answers WHERE source = ?", (source,))
                return {key: bytes(body) for key, body in rows}
            except _SQLITE_ERRORS as error:
                raise self._failed(error, "Restore a copy of the file.") from error

    def opinions(self) -> list[Opinion]:
        """Return what stands: the last opinion of each judge on each pair that was not taken back."""
        return standing(self.log())

    def judgments(self, *, level: int = 1) -> list[Judgment]:
        """Return what the opinions come to, pair by pair; see `settle`."""
        return settle(self.opinions(), level=level)


def standing(log: Iterable[Opinion]) -> list[Opinion]:
    """Return the last opinion of each judge on each pair that was not taken back, in the order of the log."""
    rows = list(log)
    undone = {row.undoes for row in rows}
    last = {
        (row.judge, *row.pair, row.action == "decide"): row
        for row in rows
        if row.action != "undo" and row.sequence not in undone
    }
    return sorted(last.values(), key=lambda row: row.sequence)


def settle(opinions: Iterable[Opinion], *, level: int = 1) -> list[Judgment]:
    """Return one judgment for each pair that somebody graded, sorted by query and document.

    A decision stands for all. Otherwise the median of the people's grades counts, the lower of two middle ones: two
    judges who disagree make the smaller claim. Grades of language models count only where no person has graded.

    A model's grade is relevant with probability (r + STATED c) / (n + STATED): of n pairs that the model gave this
    grade and people judged, they found r relevant (grade `level` or higher); c is what the model says itself, its
    confidence if its grade is relevant, else 1 less it. A model that is no surer than .5 says nothing: .5.
    """
    by_pair: dict[tuple[str, str], list[Opinion]] = {}
    for opinion in opinions:
        if opinion.grade is not None:
            by_pair.setdefault(opinion.pair, []).append(opinion)
    sample: dict[tuple[str, int], list[bool]] = {}
    for given in by_pair.values():
        heard = _heard(given)
        if heard[0].source == PERSON:
            for one in given:
                if one.source != PERSON:
                    sample.setdefault((one.source, _grade(one)), []).append(_lower_median(heard) >= level)
    return [_settled(given, sample, level) for _, given in sorted(by_pair.items())]


def _heard(given: Sequence[Opinion]) -> Sequence[Opinion]:
    """Return the opinions on a pair that count: the last decision, else those of people, else of models."""
    decided = [one for one in given if one.action == "decide"]
    return decided[-1:] or [one for one in given if one.source == PERSON] or given


def _lower_median(heard: Sequence[Opinion]) -> int:
    grades = sorted(map(_grade, heard))
    return grades[(len(grades) - 1) // 2]


def _settled(given: Sequence[Opinion], sample: Mapping[tuple[str, int], Sequence[bool]], level: int) -> Judgment:
    heard, (query, document) = _heard(given), given[0].pair
    grade, is_decided = _lower_median(heard), heard[0].action == "decide"
    by_people = heard[0].source == PERSON
    sure = [one.confidence for one in heard if one.confidence is not None]
    share = sum(one.grade == grade for one in heard) / len(heard)
    likely = [float(grade >= level) if by_people else _probability(one, sample, level) for one in heard]
    people = {one.grade for one in given if one.source == PERSON and one.action == "grade"}
    return Judgment(
        query,
        document,
        grade,
        n_judges=len({one.judge for one in given}),
        source=DECIDED if is_decided else Counter(one.source for one in heard).most_common(1)[0][0],
        confidence=share * (sum(sure) / len(sure) if sure else 1.0),
        probability=sum(likely) / len(likely),
        is_disputed=not is_decided and len(people) > 1,
    )


def _probability(one: Opinion, sample: Mapping[tuple[str, int], Sequence[bool]], level: int) -> float:
    """Return how likely people find relevant what a model graded; `sample` holds what they said of its grades."""
    said, grade = 1.0 if one.confidence is None else one.confidence, _grade(one)
    if said <= 0.5:
        return 0.5
    stated, found = said if grade >= level else 1.0 - said, sample.get((one.source, grade), ())
    return (sum(found) + STATED * stated) / (len(found) + STATED)


def _grade(opinion: Opinion) -> int:
    assert opinion.grade is not None
    return opinion.grade


def qrels_of(judgments: Iterable[Judgment]) -> Qrels:
    """Return judgments as qrels, to learn from and to evaluate with; those of models with their probabilities."""
    table: dict[str, dict[str, Judgment]] = {}
    for one in judgments:
        table.setdefault(one.query, {})[one.document] = one
    grades = {query: {doc: one.grade for doc, one in by_doc.items()} for query, by_doc in table.items()}
    likely = [
        math.nan if one.source in (PERSON, DECIDED) else one.probability
        for by_doc in table.values()
        for one in by_doc.values()
    ]
    probability = None if all(map(math.isnan, likely)) else np.array(likely)
    return replace(Qrels.from_dict(grades), probability=probability)


def judgments_as(store: JudgmentStore, form: str, *, level: int = 1) -> bytes:
    """Return the judgments as TREC qrels (trec), a table with their sources (csv), or every opinion (jsonl).

    The table has a column of probabilities (see `settle`) that documents are relevant, that is have grade `level`.
    """
    if form == "jsonl":
        return b"".join(msgspec.json.encode(row) + b"\n" for row in store.log())
    judgments = store.judgments(level=level)
    if form == "trec":
        lines = io.BytesIO()
        write_qrels(qrels_of(judgments), lines)
        return lines.getvalue()
    if form != "csv":
        raise InputError(f"format {form!r}: expected one of trec, csv, jsonl.")
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("query_id", "doc_id", "relevance", "source", "confidence", "judges", "probability"))
    for one in judgments:
        sure, likely = f"{one.confidence:.4g}", f"{one.probability:.4g}"
        writer.writerow((one.query, one.document, one.grade, one.source, sure, one.n_judges, likely))
    return table.getvalue().encode()


def _check_opinion(
    judge: str, query: str, document: str, action: str, grade: int | None, confidence: float | None, note: str
) -> None:
    for what, text in (("judge", judge), ("query", query), ("document", document)):
        if not text.strip() or len(text) > _MOST_ID or not text.isprintable():
            raise InputError(f"{what}: expected 1 to {_MOST_ID:,} printable characters; found {text[:60]!r}.")
    if action not in ACTIONS or action == "undo":
        raise InputError(f"action: expected one of grade, unsure, skip, decide; found {action!r}.")
    if (grade is not None) != (action in ("grade", "decide")):
        found = "none" if grade is None else f"{grade}"
        raise InputError(f"grade: expected one with grade and decide, none otherwise; found {found} with {action}.")
    if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int) or grade not in GRADES):
        raise InputError(f"grade: expected one of 0, 1, 2, 3; found {grade!r}.")
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise InputError(f"confidence: expected a number from 0 to 1; found {confidence!r}.")
    if len(note) > _MOST_NOTE:
        raise InputError(f"note: expected at most {_MOST_NOTE:,} characters; found {len(note):,}.")
