"""Dictionaries {query: {document: number}}, the form of pytrec_eval, ranx and BEIR."""

from collections.abc import Mapping

import numpy as np

from genm.read.cells import id_texts, numbers_of, rows_of
from genm.read.diagnostics import Report, shown
from genm.read.rows import Duplicates, Rows, as_qrels, as_run
from genm.records import Qrels, Run


def run_from_dict(
    mapping: Mapping[str, Mapping[str, float]],
    *,
    name: str = "run",
    lenient: bool = False,
    duplicates: Duplicates = "error",
) -> Run:
    """Make a run of {query id: {doc id: score}}."""
    report = Report(name, lenient=lenient)
    return as_run(_rows(mapping, "score", report), name, duplicates, report)


def qrels_from_dict(mapping: Mapping[str, Mapping[str, int]], *, lenient: bool = False) -> Qrels:
    """Make judgments of {query id: {doc id: relevance}}."""
    report = Report("qrels", lenient=lenient)
    return as_qrels(_rows(mapping, "relevance", report), report)


def _rows(mapping: Mapping[str, Mapping[str, float]], what: str, report: Report) -> Rows:
    keys: list[object] = []
    docs: list[object] = []
    values: list[object] = []
    sizes: list[int] = []
    for key, row in mapping.items():
        if not isinstance(row, Mapping):
            raise report.fail(
                None, expected="a dictionary of documents for each query",
                found=f"{shown(row)} for query {shown(key)}", advice="Pass {query id: {doc id: number}}.",
            )  # fmt: skip
        if not row:
            report.say("empty-query", 1, f"query {shown(key)} has no documents: left out")
            continue
        keys.append(key)
        sizes.append(len(row))
        docs += row.keys()
        values += row.values()
    if not keys:
        report.fault(
            "empty", line=None, expected="at least one query with a document", found="none",
            advice="Pass {query id: {doc id: number}}.", repair="read as empty",
        )  # fmt: skip
    starts = np.append(0, np.cumsum(sizes, dtype=np.int64))

    def place(row: int) -> str:
        return f"[{keys[int(np.searchsorted(starts, row, side='right')) - 1]!r}][{docs[row]!r}]"

    query_texts, bad_queries = id_texts(keys, "query", report, lambda i: f"[{keys[i]!r}]")
    doc_texts, bad = id_texts(docs, "document", report, place)
    numbers, bad_numbers = numbers_of(values, what, report, place)
    bad = bad | bad_numbers | np.repeat(bad_queries, sizes)
    query = [text for text, size in zip(query_texts, sizes, strict=True) for _ in range(size)]
    return rows_of(query, doc_texts, numbers, bad, place)
