"""What each ranker gave: to a document's fused score, and to the measure of each query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from genm._math.linear_algebra import weighted_mean
from genm._math.scaling import rank_lists
from genm._math.sorting import rank_order
from genm._typing import Floats
from genm.align import UNJUDGED, Aligned
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, Measure, parse_measure
from genm.fuse import fuse_scores
from genm.grouping import Queries
from genm.ids import Ids, find_one
from genm.learn.objectives import with_level
from genm.model import Model
from genm.records import Note

Weights = Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class Explained:
    """One document of one query; tuples hold an entry for each ranker."""

    doc_id: str
    rank: int
    """Its rank in the fused ranking, counted from 1."""
    score: float
    """Exactly the contributions added up from the first ranker to the last."""
    relevance: int | None
    """Its grade; None if it is unjudged."""
    contributions: tuple[float, ...]
    """Weight times normalised score, or times what a missing document gets."""
    ranks: tuple[int | None, ...]
    """Its place in each ranker's own list; None where the ranker did not return it."""


def contributions(aligned: Aligned, weights: Weights) -> Floats:
    """Return (rows, K) what each ranker adds to each fused score; summed left to right they equal it to the bit."""
    fuse_scores(aligned, weights)  # checks the weights
    return np.asarray(aligned.scores * np.asarray(weights, np.float64))


def explain_documents(
    aligned: Aligned, weights: Weights, query_id: str, *, doc_id: str | None = None, top: int = 10
) -> list[Explained]:
    """Explain the top documents of a query, or the one that is named, best first."""
    one = aligned.select(np.array([position_of(aligned, query_id)]))
    added = contributions(one, weights)
    fused = fuse_scores(one, weights)
    order = rank_order(one.starts, fused, np.zeros(len(fused), np.int32))
    ranks = rank_lists(one.raw, one.retrieved, one.starts)
    if doc_id is None:
        if top < 1:
            raise InputError(f"top: expected a positive integer; found {top}.")
        shown = np.arange(min(top, len(order)))
    else:
        shown = np.flatnonzero(one.doc[order] == _document(one, query_id, doc_id))
    return [
        Explained(
            doc_id=one.docs[int(one.doc[row])],
            rank=int(place) + 1,
            score=float(fused[row]),
            relevance=None if one.relevance[row] == UNJUDGED else int(one.relevance[row]),
            contributions=tuple(added[row].tolist()),
            ranks=tuple(rank or None for rank in ranks[row].tolist()),
        )
        for place, row in zip(shown.tolist(), order[shown].tolist(), strict=True)
    ]


def position_of(aligned: Aligned, query_id: str) -> int:
    """Return where a query stands, or say that there is none of that name."""
    found = find_one(aligned.queries, query_id)
    if found < 0:
        first = aligned.queries[0] if len(aligned.queries) else "none"
        where = "the judged queries" if aligned.labelled else "the runs"
        raise InputError(f"query {query_id!r}: expected one of {where}, such as {first!r}; found no such query.")
    return found


def _document(one: Aligned, query_id: str, doc_id: str) -> int:
    code = find_one(one.docs, doc_id)
    if code < 0 or not (one.doc == code).any():
        raise InputError(
            f"document {doc_id!r}: expected one that a ranker returned for query {query_id!r}; found none. "
            f"Name no document to see the top ones."
        )
    return code


@dataclass(frozen=True, slots=True, eq=False)
class QueryGains:
    """The ensemble with and without each ranker; the remaining weights keep their proportions.

    Weights are not learned again, and these queries may be the ones they were learned from: the figures tell what
    happened on these queries, not what to expect on others.
    """

    rankers: tuple[str, ...]
    queries: Ids
    measure: Measure
    value: Floats
    """(queries) the measure of the whole ensemble."""
    without: Floats
    """(queries, K) the measure when a ranker is left out, and the documents that it alone returned with it."""
    query_weights: Floats

    @property
    def gain(self) -> Floats:
        """(queries, K) what each ranker gained, or lost where it is negative, against the ensemble without it."""
        return np.asarray(self.value[:, None] - self.without)

    def mean_gain(self) -> Floats:
        """(K) the mean gain over the queries, with their weights."""
        return np.array([weighted_mean(column, self.query_weights) for column in self.gain.T])


def gains_by_query(aligned: Aligned, weights: Weights, measure: Measure) -> QueryGains:
    """Measure every query with all rankers, and with each of them left out.

    Where everything rests on one ranker, the others share its weight evenly when it leaves; a single ranker leaves
    nothing behind, which is worth 0.
    """
    fuse_scores(aligned, weights)  # checks the weights
    used, n_rankers = np.asarray(weights, np.float64), len(aligned.rankers)
    everyone = AlignedEvaluator(aligned, [measure])
    value = everyone.values(used)[:, 0]
    without = np.zeros((len(value), n_rankers))
    for k in range(n_rankers if n_rankers > 1 else 0):
        rest = used.copy()
        rest[k] = 0.0
        if not rest.any():
            rest += np.arange(n_rankers) != k
        without[:, k] = everyone.values_without(rest, k)[:, 0]
    return QueryGains(
        aligned.rankers, aligned.queries.take(everyone.position), measure, value, without,
        aligned.query_weights[everyone.position],
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class QueryExplanation:
    """What each ranker contributes to one query."""

    query_id: str
    documents: tuple[Explained, ...]
    gains: QueryGains | None
    """None without judgments."""
    weights: tuple[float, ...] = ()
    """The weights of this query: those of its group, where the model has such."""
    notes: tuple[Note, ...] = ()


def explain_query(
    model: Model,
    aligned: Aligned,
    query_id: str,
    *,
    doc_id: str | None = None,
    top: int = 10,
    measure: str | None = None,
    queries: Queries | None = None,
    groups: Mapping[str, str] | None = None,
) -> QueryExplanation:
    """Explain one query under the model's weights: its top documents or the named one, and each ranker's gain.

    `aligned` must be aligned for the model (`Model.align`); without judgments there are no gains. Where the model
    has weights by group, or a gate, the weights are those of the query: `queries` and `groups` are as in
    `Model.fuse`.
    """
    wanted = measure_of(model, measure)
    one = aligned.select(np.array([position_of(aligned, query_id)]))
    rows, notes = model.query_weights(one, queries=queries, groups=groups)
    weights = tuple(rows[0].tolist())
    documents = explain_documents(aligned, weights, query_id, doc_id=doc_id, top=top)
    gains = gains_by_query(one, weights, wanted) if aligned.labelled else None
    return QueryExplanation(query_id, tuple(documents), gains, weights, notes)


def measure_of(model: Model, measure: str | None) -> Measure:
    """Return the named measure, or the model's, at the model's relevance level."""
    return with_level(parse_measure(measure or model.measure), model.relevance_level)
