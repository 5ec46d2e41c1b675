"""The nouns of the package: Run, Qrels, Collection, Normalizer and the notes that readers leave.

Records are frozen and hold arrays; ids live in tables (`genm.ids`) and rows refer to them by code.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from genm._math.sorting import rank_order, ranked_as_given
from genm.errors import InputError
from genm.ids import Ids, byte_order


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


NormalizerKind = Literal[
    "none", "minmax", "max", "sum", "zscore", "l2", "rank", "reciprocal", "affine", "atan", "sigmoid"
]
BoundMode = Literal["ignore", "apply", "clip", "within"]


@dataclass(frozen=True, slots=True)
class Normalizer:
    """How one ranker's list of scores becomes comparable with another's.

    The engines' variants are values of this record, not code of their own: docs/normalizers.md lists them.
    """

    kind: NormalizerKind = "minmax"
    lower: float | None = None
    """A fixed lower bound (theoretical or of the data set); None takes the list's own."""
    upper: float | None = None
    lower_mode: BoundMode = "apply"
    """apply: use the bound in place of the list's, whatever lies beyond it; clip: also cut scores at it;
    within: use it for the scores inside it only, the others keep the list's own (OpenSearch's "apply");
    ignore: as if not given."""
    upper_mode: BoundMode = "apply"
    floor: float | None = None
    """What normalised scores at or below `floor_at` become (OpenSearch: 0.001)."""
    floor_at: float | None = None
    """None is the floor itself: a plain lower limit."""
    constant: float | Literal["raw"] = 1.0
    """What a list becomes that cannot be scaled: equal scores or a single hit for minmax, sum and zscore,
    zeros for max and l2; "raw" keeps the scores (Elasticsearch)."""
    constant_within: float = 0.0
    """A list whose spread (for max and l2: size) is at most this counts as one that cannot be scaled."""
    ddof: float = 0.0
    """Of zscore: the variance divides by n - ddof; 1 gives the sample's (OpenSearch, Qdrant)."""
    at_mean: float | Literal["max"] | None = None
    """Of zscore: what a score equal to the mean (in single precision) becomes instead of 0; "max" is the
    list's highest raw score (OpenSearch)."""
    k: float = 60.0
    """The constant of "reciprocal": 1 / (k + rank)."""
    scale: float = 1.0
    shift: float = 0.0
    """The normalised score is scale * value + shift (Qdrant's DBSF is a z-score with 1/6 and 1/2)."""
    missing: float | Literal["minimum"] = 0.0
    """What a document that the ranker did not return gets, after normalising."""

    def __repr__(self) -> str:
        """Write what makes it again, without what is as usual."""
        changed = [f for f in fields(self)[1:] if getattr(self, f.name) != f.default]
        return (
            f"Normalizer({', '.join([repr(self.kind), *(f'{f.name}={getattr(self, f.name)!r}' for f in changed)])})"
        )


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
