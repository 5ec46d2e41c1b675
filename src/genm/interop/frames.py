"""Runs and judgments for other tools, and from ranx: plain dictionaries, pandas and polars frames.

`read_run` and `read_qrels` read dictionaries and frames, as they read files.
"""

import importlib
from typing import TYPE_CHECKING, Any

from genm.errors import InputError
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Qrels, Run

if TYPE_CHECKING:
    import polars as pl


def to_dict(rows: Run | Qrels) -> dict[str, dict[str, Any]]:
    """Return {query id: {doc id: score or relevance}}: the same as `rows.to_dict()`."""
    return dict[str, dict[str, Any]](rows.to_dict())


def to_polars(rows: Run | Qrels) -> "pl.DataFrame":
    """Return a polars frame: query_id, doc_id, score, rank (from 1) of a run; query_id, doc_id, relevance else."""
    import polars as pl

    return pl.DataFrame(rows.to_columns(), schema_overrides={"query_id": pl.String, "doc_id": pl.String})


def to_pandas(rows: Run | Qrels) -> Any:
    """Return a pandas frame: the same as `rows.to_pandas()`."""
    return rows.to_pandas()


def to_ranx(rows: Run | Qrels) -> Any:
    """Return a ranx.Run, or a ranx.Qrels for judgments; needs ranx (`to_dict` does not)."""
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
            f"expected a ranx.Run or ranx.Qrels; found {type(theirs).__name__}. Pass dictionaries to read_run."
        )
    plain = {str(query): {str(doc): value for doc, value in table[query].items()} for query in table}
    if attribute == "qrels":
        return qrels_from_dict(plain)
    return run_from_dict(plain, name=name or getattr(theirs, "name", None) or "ranx")
