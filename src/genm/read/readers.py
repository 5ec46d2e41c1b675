"""read_qrels and read_query_weights: what people said about documents, and how much a query counts."""

from collections.abc import Mapping
from typing import Any

from genm.progress import Progress, silent
from genm.read.diagnostics import Report, shown
from genm.read.formats import Format, source_rows
from genm.read.plain import qrels_from_dict
from genm.read.rows import as_qrels
from genm.read.sources import FileSource, name_of, open_source
from genm.read.tables import is_frame, qrels_from_frame
from genm.read.trec import QRELS, WEIGHTS, read_rows
from genm.records import Qrels


def read_qrels(
    source: FileSource | Mapping[str, Mapping[str, int]] | Any,
    *,
    format: Format | None = None,  # noqa: A002
    lenient: bool = False,
    progress: Progress = silent,
) -> Qrels:
    """Read judgments: a path, `-` for standard input, an open file, a dictionary, a pandas or polars frame.

    Files are TREC qrels (four columns), or CSV, TSV or Parquet tables, among them BEIR's. Grades are whole
    numbers; negative ones are kept. What is wrong raises FormatError; with `lenient` it is repaired as
    docs/formats.md says, and counted in the notes.
    """
    if isinstance(source, Mapping):
        return qrels_from_dict(source, lenient=lenient)
    if is_frame(source):
        return qrels_from_frame(source, lenient=lenient)
    report = Report(name_of(source), lenient=lenient)
    opened = open_source(source, report, progress)
    return as_qrels(source_rows(opened, format, QRELS, report, progress), report)


def read_query_weights(source: FileSource) -> dict[str, float]:
    """Read how much each query counts: lines of `query weight`, each query once, no weight negative."""
    report = Report(name_of(source), lenient=False)
    rows = read_rows(open_source(source, report, silent), WEIGHTS, report, silent)
    weights: dict[str, float] = {}
    for row, (query, weight) in enumerate(zip(rows.doc.tolist(), rows.value.tolist(), strict=True)):
        query_id = rows.docs[query]
        if weight < 0 or query_id in weights:
            report.fault(
                "weight", line=rows.place(row), expected="each query once, with a weight of 0 or more",
                found=f"weight {weight:g} for query {shown(query_id)}" + (" again" if query_id in weights else ""),
                advice="Give each query one weight that is not negative.", repair="",
            )  # fmt: skip
        weights[query_id] = weight
    return weights
