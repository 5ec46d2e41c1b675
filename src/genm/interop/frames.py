"""Runs and judgments for other tools, and from ranx: plain dictionaries, pandas and polars frames.

The way in for dictionaries and frames is `read_run` and `read_qrels`, which take them like files.
"""

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from genm.errors import InputError, MissingExtraError
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Qrels, Run

if TYPE_CHECKING:
    import polars as pl


def to_dict(rows: Run | Qrels) -> dict[str, dict[str, Any]]:
    """Return {query id: {doc id: score or relevance}}, as ranx, pytrec_eval and BEIR take it, best first."""
    docs, doc, starts, values = list(rows.docs), rows.doc.tolist(), rows.starts.tolist(), _values(rows)[1].tolist()
    return {
        query: {docs[doc[i]]: values[i] for i in range(starts[q], starts[q + 1])}
        for q, query in enumerate(rows.queries)
    }


def to_polars(rows: Run | Qrels) -> "pl.DataFrame":
    """Return a polars frame: query_id, doc_id, score, rank (from 1) of a run; query_id, doc_id, relevance else."""
    import polars as pl

    return pl.DataFrame(_columns(rows), schema_overrides={"query_id": pl.String, "doc_id": pl.String})


def to_pandas(rows: Run | Qrels) -> Any:
    """Return a pandas frame: query_id, doc_id, score, rank (from 1) of a run; query_id, doc_id, relevance else."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a pandas frame", "pandas") from None
    return pd.DataFrame(_columns(rows)).astype({"query_id": str, "doc_id": str})


def to_ranx(rows: Run | Qrels) -> Any:
    """Return a ranx.Run, or ranx.Qrels of judgments; ranx must be installed. `to_dict` needs nothing."""
    try:
        ranx = importlib.import_module("ranx")
    except ImportError:
        raise InputError("to_ranx needs ranx. Install it with: pip install ranx") from None
    return ranx.Run(to_dict(rows), name=rows.name) if isinstance(rows, Run) else ranx.Qrels(to_dict(rows))


def from_ranx(theirs: Any, name: str | None = None) -> Run | Qrels:
    """Return a ranx.Run as a run, a ranx.Qrels as judgments."""
    for attribute in ("run", "qrels"):
        table = getattr(theirs, attribute, None)
        if table is not None:
            break
    else:
        raise InputError(
            f"expected a ranx.Run or ranx.Qrels; found {type(theirs).__name__}. A dictionary is for read_run."
        )
    plain = {str(query): {str(doc): value for doc, value in table[query].items()} for query in table}
    if attribute == "qrels":
        return qrels_from_dict(plain)
    return run_from_dict(plain, name=name or getattr(theirs, "name", None) or "ranx")


def _columns(rows: Run | Qrels) -> dict[str, Any]:
    lengths = np.diff(rows.starts)
    queries, docs = np.array(list(rows.queries), object), np.array(list(rows.docs), object)
    what, values = _values(rows)
    columns = {
        "query_id": np.repeat(queries, lengths).tolist(),
        "doc_id": docs[rows.doc].tolist() if len(docs) else [],
        what: values,
    }
    if isinstance(rows, Run):
        columns["rank"] = np.arange(1, len(rows.doc) + 1) - np.repeat(rows.starts[:-1], lengths)
    return columns


def _values(rows: Run | Qrels) -> tuple[str, Any]:
    return ("score", rows.score) if isinstance(rows, Run) else ("relevance", rows.relevance)
