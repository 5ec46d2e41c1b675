"""A model explained in one call: over all queries with judgments, or one query and its documents."""

from dataclasses import dataclass

import numpy as np

from genm.align import Aligned
from genm.evaluate import Measure, parse_measure
from genm.explain.attribution import Explained, QueryGains, explain_documents, gains_by_query, position_of
from genm.explain.worth import Worth, measure_worth
from genm.learn import METHODS
from genm.learn.objectives import with_level
from genm.model import Model
from genm.progress import Progress, silent
from genm.records import Note


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What each ranker contributes over all queries."""

    worth: Worth
    """Cross-validated: shares of the measure, losses, pairs, the smallest subset that is not worse."""
    gains: QueryGains
    """Query by query, under the model's own weights."""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class QueryExplanation:
    """What each ranker contributes to one query."""

    query_id: str
    documents: tuple[Explained, ...]
    gains: QueryGains | None
    """None without judgments."""


def explain_model(
    model: Model,
    aligned: Aligned,
    *,
    measure: str | None = None,
    method: str | None = None,
    folds: int = 5,
    orders: int | None = None,
    confidence: float = 0.95,
    margin: float = 0.005,
    seed: int = 0,
    progress: Progress = silent,
) -> Explanation:
    """Measure what each ranker is worth, by the model's measure and method unless others are given.

    `aligned` must be aligned for the model, with judgments (`Model.align`). The other parameters are those of
    `measure_worth`. Subsets of a model whose method is not one of ours are learned by "auto", and a note says so.
    """
    notes: tuple[Note, ...] = ()
    if method is None:
        method = model.method
        if method not in METHODS:
            text = f"the model's method {method!r} cannot be learned again; subsets are learned by 'auto'."
            method, notes = "auto", (Note("other-method", 1, text),)
    worth = measure_worth(
        aligned,
        method=method,
        measure=_measure(model, measure),
        level=model.relevance_level,
        folds=folds,
        orders=orders,
        confidence=confidence,
        margin=margin,
        seed=seed,
        progress=progress,
    )
    return Explanation(worth, gains_by_query(aligned, model.weights, worth.measure), notes)


def explain_query(
    model: Model,
    aligned: Aligned,
    query_id: str,
    *,
    doc_id: str | None = None,
    top: int = 10,
    measure: str | None = None,
) -> QueryExplanation:
    """Explain one query under the model's weights: its top documents or the named one, and each ranker's gain.

    `aligned` must be aligned for the model (`Model.align`); without judgments there are no gains.
    """
    wanted = _measure(model, measure)
    documents = explain_documents(aligned, model.weights, query_id, doc_id=doc_id, top=top)
    gains = None
    if aligned.labelled:
        one = aligned.select(np.array([position_of(aligned, query_id)]))
        gains = gains_by_query(one, model.weights, wanted)
    return QueryExplanation(query_id, tuple(documents), gains)


def _measure(model: Model, measure: str | None) -> Measure:
    return with_level(parse_measure(measure or model.measure), model.relevance_level)
