"""Runs for and from other tools: plain dictionaries, ranx, pandas and polars frames."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from genm.errors import InputError, MissingExtraError
from genm.ids import Ids
from genm.records import Qrels, Run, ranked_run

if TYPE_CHECKING:
    import polars as pl


def run_to_dict(run: Run) -> dict[str, dict[str, float]]:
    """Return {query id: {doc id: score}}, as ranx, pytrec_eval and BEIR take it, best document first."""
    return _nested(run, run.score.tolist())


def qrels_to_dict(qrels: Qrels) -> dict[str, dict[str, int]]:
    """Return {query id: {doc id: relevance}}."""
    return _nested(qrels, qrels.relevance.tolist())


def run_from_dict(table: Mapping[str, Mapping[str, float]], name: str) -> Run:
    """Make a run of {query id: {doc id: score}}; scores must be finite numbers."""
    queries = list(table)
    docs: dict[str, int] = {}
    code = [docs.setdefault(_text(doc, "doc id"), len(docs)) for q in queries for doc in table[q]]
    try:
        score = np.array([value for q in queries for value in table[q].values()], np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers for scores; {error}.") from None
    if not np.isfinite(score).all():
        raise InputError(f"{name}: expected finite scores; found {score[~np.isfinite(score)][0]}.")
    starts = np.concatenate(([0], np.cumsum([len(table[q]) for q in queries], dtype=np.int64)))
    texts = Ids.of(_text(query, "query id") for query in queries)
    return ranked_run(name, texts, Ids.of(docs), starts, np.array(code, np.int32), score)


def to_ranx(run: Run) -> Any:
    """Return a ranx.Run; ranx must be installed. `run_to_dict` gives the same without it."""
    try:
        ranx = importlib.import_module("ranx")
    except ImportError:
        raise InputError("to_ranx needs ranx. Install it with: pip install ranx") from None
    return ranx.Run(run_to_dict(run), name=run.name)


def from_ranx(run: Any, name: str | None = None) -> Run:
    """Make a run of a ranx.Run, or of anything whose `run` attribute maps query ids to scored documents."""
    table = getattr(run, "run", None)
    if table is None:
        raise InputError(f"expected a ranx.Run; found {type(run).__name__}. For a dictionary use run_from_dict.")
    plain = {str(query): {str(doc): float(score) for doc, score in table[query].items()} for query in table}
    return run_from_dict(plain, name or getattr(run, "name", None) or "ranx")


def run_to_polars(run: Run) -> "pl.DataFrame":
    """Return a polars frame with the columns query_id, doc_id, score, rank (from 1)."""
    import polars as pl

    return pl.DataFrame(_columns(run))


def run_to_pandas(run: Run) -> Any:
    """Return a pandas frame with the columns query_id, doc_id, score, rank (from 1)."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a pandas frame", "pandas") from None
    return pd.DataFrame(_columns(run))


def _columns(run: Run) -> dict[str, Any]:
    lengths = np.diff(run.starts)
    queries, docs = np.array(list(run.queries), object), np.array(list(run.docs), object)
    return {
        "query_id": np.repeat(queries, lengths).tolist(),
        "doc_id": docs[run.doc].tolist() if len(docs) else [],
        "score": run.score,
        "rank": np.arange(1, len(run.doc) + 1) - np.repeat(run.starts[:-1], lengths),
    }


def _nested(rows: Run | Qrels, values: list[Any]) -> dict[str, dict[str, Any]]:
    docs, doc, starts = list(rows.docs), rows.doc.tolist(), rows.starts.tolist()
    return {
        query: {docs[doc[i]]: values[i] for i in range(starts[q], starts[q + 1])}
        for q, query in enumerate(rows.queries)
    }


def _text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    raise InputError(f"expected text for a {what}; found {type(value).__name__} {value!r:.40}.")
