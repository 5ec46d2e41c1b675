"""The records of the package: Run, Qrels, Collection and the notes that readers leave.

Records are frozen and hold arrays; ids live in tables (`genm.ids`) and rows refer to them by code. To Python a run
and a set of judgments are mappings from query id to `{doc id: number}`.
"""

import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from genm import display
from genm._math.sorting import distinct_scores, rank_order, ranked_as_given
from genm.errors import InputError, MissingExtraError
from genm.ids import Ids, byte_order, encode

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader or aligner did or saw that the user should know; never silent, never fatal."""

    code: str
    """Stable name of the kind of event, such as "duplicate-kept-max"."""
    count: int
    """How often it happened."""
    text: str
    """One sentence for a person, with the first place where it happened."""


class RowsByQuery(Mapping[str, dict[str, Number]]):
    """Documents with a number each, query by query: what runs and judgments share.

    A mapping from query id to `{doc id: number}`, in the order of the rows. It equals every mapping with the same
    content; a run's name and notes are no part of that.
    """

    __slots__ = ("_positions",)
    _positions: dict[str, int]

    value_name: ClassVar[str]
    """What the numbers are: the name of their column in a frame."""
    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]

    @property
    @abstractmethod
    def values_by_row(self) -> NDArray[Any]:
        """The number of each row."""

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._position_of_query

    def __getitem__(self, query_id: str) -> dict[str, Number]:
        """Return one query's documents with their numbers, in the order of the rows."""
        position = self._position_of_query.get(query_id)
        if position is None:
            raise KeyError(self._missing(query_id))
        rows = slice(int(self.starts[position]), int(self.starts[position + 1]))
        return dict(zip(self.docs.take(self.doc[rows]), self.values_by_row[rows].tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mapping):
            return NotImplemented
        return self.to_dict() == (other.to_dict() if isinstance(other, RowsByQuery) else dict(other))

    __hash__ = None  # type: ignore[assignment]  # equal by content, as all mappings are

    @property
    def _position_of_query(self) -> dict[str, int]:
        """Every query's position; built at the first look-up and kept."""
        try:
            return self._positions
        except AttributeError:
            object.__setattr__(self, "_positions", {query_id: q for q, query_id in enumerate(self.queries)})
            return self._positions

    def _missing(self, query_id: object) -> str:
        some = f"such as {self.queries[0]!r}" if len(self) else "none"
        return f"no query {query_id!r} in {self!r}; it has ids {some}. Query ids are text"

    def to_dict(self) -> dict[str, dict[str, Number]]:
        """Return {query id: {doc id: number}}, as ranx, pytrec_eval and BEIR take it, in the order of the rows."""
        docs, doc, starts = list(self.docs), self.doc.tolist(), self.starts.tolist()
        values = self.values_by_row.tolist()
        return {
            query_id: {docs[doc[row]]: values[row] for row in range(starts[q], starts[q + 1])}
            for q, query_id in enumerate(self.queries)
        }

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of a frame with one row per document: query_id, doc_id and the number."""
        queries, docs = np.array(list(self.queries), object), np.array(list(self.docs), object)
        return {
            "query_id": np.repeat(queries, np.diff(self.starts)).tolist(),
            "doc_id": docs[self.doc].tolist() if len(docs) else [],
            self.value_name: self.values_by_row,
        }

    def to_pandas(self) -> Any:
        """Return a pandas frame: query_id, doc_id, then score and rank (from 1), or relevance of judgments."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("a pandas frame", "pandas") from None
        return pd.DataFrame(self.to_columns()).astype({"query_id": str, "doc_id": str})


@dataclass(frozen=True, slots=True, eq=False)
class Run(RowsByQuery[float]):
    """What one ranker returned: for each query its documents in ranking order.

    A mapping: `run["q1"]` is `{doc id: score}`, best first.

    Rows of a query are contiguous, rows[starts[q]:starts[q + 1]], and always ranked: by score downwards, ties
    by doc id downwards (byte order), as trec_eval ranks. Scores are finite float64.
    """

    value_name: ClassVar[str] = "score"

    name: str
    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    score: NDArray[np.float64]
    notes: tuple[Note, ...] = ()
    tag: str = ""
    """The tag on the first line of a TREC file, which names what wrote it; empty for other sources."""
    given: NDArray[np.int32] | None = None
    """(rows) each row's place in its list, from 0, if equal scores stood as in the source; None if they do."""

    def __repr__(self) -> str:
        """Say what it is and how much it holds, on one line."""
        return f"<Run {self.name!r}: {contents(self.notes, queries=self.queries, rows=self.doc)}>"

    def _repr_html_(self) -> str:
        return display.run(self)

    @property
    def values_by_row(self) -> NDArray[np.float64]:
        """The scores."""
        return self.score

    @classmethod
    def from_dict(cls, table: Mapping[str, Mapping[str, float]], *, name: str = "run") -> "Run":
        """Return the run of {query id: {doc id: score}}; documents may come in any order.

        Ids must be text and scores finite numbers. `genm.read_run` takes dictionaries too, with more kinds of ids,
        and can repair them.
        """
        queries, docs, starts, doc, score = _columns_of(table, f"run {name!r}", _as_score)
        return ranked_run(name, queries, docs, starts, doc, np.array(score, np.float64))

    def given_rows(self) -> NDArray[np.int64]:
        """Return the rows in ranking order with equal scores as in the source: the order of the engine's list."""
        rows = np.arange(len(self.doc), dtype=np.int64)
        if self.given is None:
            return rows
        order = np.empty_like(rows)
        order[np.repeat(self.starts[:-1], np.diff(self.starts)) + self.given] = rows
        return order

    def in_given_order(self) -> "Run":
        """Return the run ranked as its source was: equal scores are lowered by the least amount that does it."""
        if self.given is None:
            return self
        rows = self.given_rows()
        return replace(self, doc=self.doc[rows], score=distinct_scores(self.starts, self.score[rows]), given=None)

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of a frame with one row per document: query_id, doc_id, score, rank (from 1)."""
        first = np.repeat(self.starts[:-1], np.diff(self.starts))
        return {**RowsByQuery.to_columns(self), "rank": np.arange(1, len(self.doc) + 1) - first}


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """Where judgments come from, row by row: who or what judged, and how sure that is."""

    names: tuple[str, ...]
    """The sources, such as "person" or "clicks-pbm"."""
    source: NDArray[np.int32]
    """(rows) the place of each judgment's source in `names`."""
    confidence: NDArray[np.float64]
    """(rows) from 0 to 1; NaN where nothing is said."""

    @classmethod
    def of(cls, sources: Sequence[str], confidence: NDArray[np.float64]) -> "Provenance":
        """Return the provenance of rows, given the name of each one's source; empty names are "unknown"."""
        names = {name or "unknown": None for name in sources}
        place = {name: i for i, name in enumerate(names)}
        codes = np.array([place[name or "unknown"] for name in sources], np.int32)
        return cls(tuple(names), codes, confidence)

    def take(self, rows: NDArray[np.int64]) -> "Provenance":
        """Return the provenance of these rows."""
        return Provenance(self.names, self.source[rows], self.confidence[rows])

    def describe(self) -> str:
        """Return how many judgments come from which source, and their mean confidence where it is said."""
        counts = np.bincount(self.source, minlength=len(self.names))
        parts = []
        for i in np.argsort(-counts, kind="stable"):
            sure = self.confidence[(self.source == i) & ~np.isnan(self.confidence)]
            mean = f" (mean confidence {sure.mean():.2f})" if len(sure) else ""
            parts += [f"{counts[i]:,} from {self.names[i]}{mean}"] if counts[i] else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Qrels(RowsByQuery[int]):
    """Judgments: for each query its judged documents and their grades (negative grades are kept).

    A mapping: `qrels["q1"]` is `{doc id: relevance}`.
    """

    value_name: ClassVar[str] = "relevance"

    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    relevance: NDArray[np.int32]
    notes: tuple[Note, ...] = ()
    provenance: Provenance | None = None
    """Where the judgments come from; None where the source does not say. Not part of the content."""
    probability: NDArray[np.float64] | None = None
    """How likely each document is relevant, for judgments that are not certain; NaN for those that are, and None
    where all are. Learning by expected AP uses it; whatever needs certainty goes by the grade. Not part of the
    content."""

    def __repr__(self) -> str:
        """Say how much it holds, on one line."""
        return f"<Qrels: {contents(self.notes, queries=self.queries, judgments=self.doc)}>"

    def _repr_html_(self) -> str:
        return display.qrels(self)

    @property
    def values_by_row(self) -> NDArray[np.int32]:
        """The grades."""
        return self.relevance

    @classmethod
    def from_dict(cls, table: Mapping[str, Mapping[str, int]]) -> "Qrels":
        """Return the judgments of {query id: {doc id: relevance}}.

        Ids must be text and grades whole numbers. `genm.read_qrels` takes dictionaries too, with more kinds of ids,
        and can repair them.
        """
        queries, docs, starts, doc, relevance = _columns_of(table, "qrels", _as_grade)
        return cls(queries, docs, starts, doc, np.array(relevance, np.int32))


def merge_qrels(before: Qrels, after: Qrels) -> Qrels:
    """Return the judgments of both; where both judge a document of a query, that of `after` counts.

    Queries and documents come in the order in which they appear first. Notes are those of `after`.
    """
    rows: dict[str, dict[str, int]] = {}
    n = 0
    for part in (before, after):
        for query_id, documents in part.to_dict().items():
            of_query = rows.setdefault(query_id, {})
            for doc_id in documents:
                of_query[doc_id] = n
                n += 1
    chosen = np.array([row for of_query in rows.values() for row in of_query.values()], np.int64)
    grades = np.concatenate((before.relevance, after.relevance))[chosen].tolist()
    each = iter(grades)
    merged = Qrels.from_dict({q: {doc: next(each) for doc in of_query} for q, of_query in rows.items()})
    probability = provenance = None
    if before.probability is not None or after.probability is not None:
        likely = [
            np.full(len(one.doc), np.nan) if one.probability is None else one.probability for one in (before, after)
        ]
        probability = np.concatenate(likely)[chosen]
    if before.provenance is not None or after.provenance is not None:
        known = [
            one.provenance or Provenance.of([""] * len(one.doc), np.full(len(one.doc), np.nan))
            for one in (before, after)
        ]
        names = [one.names[i] for one in known for i in one.source]
        provenance = Provenance.of(names, np.concatenate([one.confidence for one in known])).take(chosen)
    return replace(merged, notes=after.notes, provenance=provenance, probability=probability)


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """Texts, queries and judgments of a test collection."""

    name: str
    doc_ids: tuple[str, ...]
    doc_texts: tuple[str, ...]
    query_ids: tuple[str, ...]
    query_texts: tuple[str, ...]
    qrels: Qrels
    left_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Per query id the doc ids that must not be ranked (pydocs: the object the query came from)."""
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Say what it is and how much it holds, on one line."""
        inside = contents(self.notes, documents=self.doc_ids, queries=self.query_ids, judgments=self.qrels.doc)
        return f"<Collection {self.name!r}: {inside}>"


def _columns_of(
    table: Mapping[str, Mapping[str, Any]], what: str, convert: Callable[[object], Number | None]
) -> tuple[Ids, Ids, NDArray[np.int64], NDArray[np.int32], list[Number]]:
    """Return queries, documents, starts, document codes and numbers of a nested dictionary."""
    form = "Give {query id: {doc id: number}}, with ids as text."
    if not isinstance(table, Mapping):
        raise InputError(f"{what}: expected a dictionary; found {type(table).__name__}. {form}")
    doc_ids: list[str] = []
    values: list[Number] = []
    starts = [0]
    for query_id, documents in table.items():
        if not isinstance(query_id, str) or not query_id:
            raise InputError(f"{what}: expected text as query id; found {query_id!r}. {form}")
        if not isinstance(documents, Mapping):
            found = type(documents).__name__
            raise InputError(f"{what}[{query_id!r}]: expected a dictionary of documents; found {found}. {form}")
        for doc_id, given in documents.items():
            number = convert(given)
            if not isinstance(doc_id, str) or not doc_id:
                raise InputError(f"{what}[{query_id!r}]: expected text as doc id; found {doc_id!r}. {form}")
            if number is None:
                wanted = "a finite number" if convert is _as_score else "a whole number of at most 32 bits"
                raise InputError(f"{what}[{query_id!r}][{doc_id!r}]: expected {wanted}; found {given!r}. {form}")
            doc_ids.append(doc_id)
            values.append(number)
        starts.append(len(doc_ids))
    docs, codes = encode(doc_ids)
    return Ids.of(table), docs, np.array(starts, np.int64), codes, values


def _as_score(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    return float(value) if math.isfinite(value) else None


def _as_grade(value: object) -> int | None:
    return int(value) if isinstance(value, numbers.Integral) and -(2**31) < int(value) < 2**31 else None


def check_kind(what: str, value: object, kind: type, advice: str) -> None:
    """Refuse a value of another kind than the one that must come here; says what to do instead."""
    if not isinstance(value, kind):
        raise InputError(f"{what}: expected {kind.__name__}; found {type(value).__name__}. {advice}")


def first_few(texts: Sequence[str], most: int = 4) -> str:
    """Return the first of many on one line, and how many more there are."""
    more = [f"and {len(texts) - most:,} more"] * (len(texts) > most)
    return ", ".join([*texts[:most], *more])


def contents(notes: Sized, **parts: Sized) -> str:
    """Return how many there are of each part, under its name, and of the notes if there are any."""
    numbers = ", ".join(_counted(word, len(part)) for word, part in parts.items())
    return numbers + (f"; {_counted('notes', len(notes))}" if notes else "")


def _counted(word: str, n: int) -> str:
    one = "query" if word == "queries" else word.removesuffix("s")
    return f"{n:,} {one if n == 1 else word}"


def ranked_run(
    name: str,
    queries: Ids,
    docs: Ids,
    starts: NDArray[np.int64],
    doc: NDArray[np.int32],
    score: NDArray[np.float64],
    notes: tuple[Note, ...] = (),
) -> Run:
    """Make a Run of rows in any order within their query: sort by score downwards, ties by doc id downwards.

    Costs one look at scores that already fall; ids are compared only where scores are equal. The run remembers the
    order of equal scores that it was given (`Run.given`).
    """
    state = ranked_as_given(starts, score)
    if (state == 2).any():
        order = rank_order(starts, score, np.zeros(len(score), np.int32))
        doc, score = doc[order], score[order]
    given = None
    rows, segments = _rows_of(np.flatnonzero(state), starts)
    order = _settled_ties(segments, doc[rows], score[rows], docs)
    if (order[1:] < order[:-1]).any():
        given = np.arange(len(doc), dtype=np.int32)
        given -= np.repeat(starts[:-1].astype(np.int32), np.diff(starts))
        given[rows] = given[rows[order]]
        doc = doc.copy()
        doc[rows] = doc[rows[order]]
        if (score[rows].view(np.int64) != score[rows[order]].view(np.int64)).any():  # 0.0 and -0.0 are equal
            score = score.copy()
            score[rows] = score[rows[order]]
    return Run(name, queries, docs, starts, doc, score, notes, given=given)


def _rows_of(chosen: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the chosen segments, and where each of these begins among them (and the last ends)."""
    sizes = np.diff(starts)[chosen]
    ends = np.cumsum(sizes)
    rows = np.repeat(starts[:-1][chosen] - (ends - sizes), sizes) + np.arange(sizes.sum())
    return rows, np.append(0, ends)


def _settled_ties(
    starts: NDArray[np.int64], doc: NDArray[np.int32], score: NDArray[np.float64], docs: Ids
) -> NDArray[np.int64]:
    """Return the order of rows with falling scores that ranks equal scores by doc id downwards."""
    same = score[1:] == score[:-1]
    inner = starts[(starts > 0) & (starts < len(score))]
    same[inner - 1] = False  # the last row of a query and the first of the next
    tied = np.zeros(len(score), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    if not tied.any():
        return np.arange(len(score))
    codes, place = np.unique(doc[tied], return_inverse=True)
    rank = np.empty(len(codes), np.int32)
    rank[byte_order(docs.take(codes))] = np.arange(len(codes), dtype=np.int32)
    settled = np.zeros(len(score), np.int32)
    settled[tied] = -rank[place]
    return rank_order(starts, score, settled)


def make_qrels(
    judgments: Iterable[tuple[str, str, int]], *, query_order: Iterable[str], notes: tuple[Note, ...] = ()
) -> Qrels:
    """Return the record of (query_id, doc_id, relevance) triples; queries come as in `query_order`.

    Queries without a judgment do not occur in the result. A pair may be judged once only.
    """
    judged: dict[str, dict[str, int]] = {query_id: {} for query_id in query_order}
    for query_id, doc_id, relevance in judgments:
        of_query = judged.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(f"query {query_id!r}: expected one judgment of document {doc_id!r}; found two")
        of_query[doc_id] = relevance
    judged = {query_id: of_query for query_id, of_query in judged.items() if of_query}
    docs, codes = encode(doc_id for of_query in judged.values() for doc_id in of_query)
    starts = np.zeros(len(judged) + 1, np.int64)
    np.cumsum([len(of_query) for of_query in judged.values()], out=starts[1:])
    relevance_column = [r for of_query in judged.values() for r in of_query.values()]
    return Qrels(Ids.of(judged), docs, starts, codes, np.array(relevance_column, np.int32), notes)
