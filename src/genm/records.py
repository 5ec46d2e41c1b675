"""The records of the package: Run, Qrels, Collection and the notes that readers leave.

Records are frozen and hold arrays; ids live in tables (`genm.ids`) and rows refer to them by code.
"""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from genm import display
from genm._math.sorting import rank_order, ranked_as_given
from genm.errors import InputError
from genm.ids import Ids, byte_order, encode


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader or aligner did or saw that the user should know; never silent, never fatal."""

    code: str
    """Stable name of the kind of event, such as "duplicate-kept-max"."""
    count: int
    """How often it happened."""
    text: str
    """One sentence for a person, with the first place where it happened."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one ranker returned: for each query its documents in ranking order.

    Rows of a query are contiguous, rows[starts[q]:starts[q + 1]], and always ranked: by score downwards, ties
    by doc id downwards (byte order), as trec_eval ranks. Scores are finite float64.
    """

    name: str
    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    score: NDArray[np.float64]
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Say what it is and how much it holds, on one line."""
        return f"<Run {self.name!r}: {contents(self.notes, queries=self.queries, rows=self.doc)}>"

    def _repr_html_(self) -> str:
        return display.run(self)


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """Judgments: for each query its judged documents and their grades (negative grades are kept)."""

    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    relevance: NDArray[np.int32]
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Say how much it holds, on one line."""
        return f"<Qrels: {contents(self.notes, queries=self.queries, judgments=self.doc)}>"

    def _repr_html_(self) -> str:
        return display.qrels(self)


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

    Costs one look at scores that already fall; ids are compared only where scores are equal.
    """
    state = ranked_as_given(starts, score)
    settled = np.zeros(len(score), np.int32)
    if (state == 2).any():
        order = rank_order(starts, score, settled)
        doc, score = doc[order], score[order]
    if (state > 0).any():
        query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        same = (score[1:] == score[:-1]) & (query[1:] == query[:-1])
        tied = np.zeros(len(score), np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        if tied.any():
            codes, place = np.unique(doc[tied], return_inverse=True)
            rank = np.empty(len(codes), np.int32)
            rank[byte_order(docs.take(codes))] = np.arange(len(codes), dtype=np.int32)
            settled[tied] = -rank[place]
            order = rank_order(starts, score, settled)
            doc, score = doc[order], score[order]
    return Run(name, queries, docs, starts, doc, score, notes)


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
