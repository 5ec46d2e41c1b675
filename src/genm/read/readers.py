"""read_run, read_qrels, read_texts and read_query_weights: find the format of a source and read it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

from genm.errors import InputError
from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, shown
from genm.read.json_tables import read_json
from genm.read.plain_lines import read_trec
from genm.read.rows import WHOLE_GRADES, Duplicates, Rows, as_qrels, as_run, check_grades
from genm.read.sources import FileSource, TextSource, name_of, open_rows, open_source, text_bytes
from genm.read.tables import (
    SEPARATORS,
    frame_rows,
    has_known_names,
    is_frame,
    qrels_from_dict,
    qrels_from_frame,
    read_delimited,
    read_parquet,
    run_from_dict,
    run_from_frame,
)
from genm.read.texts import read_texts as texts_of_source
from genm.read.trec import QRELS, RUN, WEIGHTS, Shape, first_tag, looks_like, read_rows
from genm.records import Qrels, Run

Format = Literal["trec", "csv", "tsv", "parquet", "json"]


def _never(_: TextSource, __: Shape) -> bool:
    return False


class _FormatReader(NamedTuple):
    """How a format is recognised and read."""

    read: Callable[[TextSource, Shape, Diagnostics, Progress], Rows]
    is_marked: Callable[[TextSource, Shape], bool] = _never
    """Whether the file is surely of this format."""
    is_named: Callable[[TextSource, Shape], bool] = _never
    """Whether its name says so; asked only if no format is marked."""


def _read_parquet(source: TextSource, shape: Shape, report: Diagnostics, _: Progress) -> Rows:
    return frame_rows(read_parquet(source, report), shape.value, report, lambda row: f"row {row} (from 0)")


def _read_table(form: str, source: TextSource, shape: Shape, report: Diagnostics, _: Progress) -> Rows:
    frame, place, line = read_delimited(source, form, shape.value, report)
    return frame_rows(frame, shape.value, report, place, line)


def _read_json(source: TextSource, shape: Shape, report: Diagnostics, _: Progress) -> Rows:
    return read_json(source, shape.value, report)


def _is_json(source: TextSource, shape: Shape) -> bool:
    """Whether the text begins as JSON does; a query id hardly begins with these signs."""
    head = text_bytes(source.head, 0, 4096).lstrip()
    first, second = head[:1], head[1:].lstrip()[:1]
    if looks_like(_first_line(source).encode(), shape):
        return False
    return (first == b"{" and second in (b'"', b"}")) or (first == b"[" and second in (b"{", b"]"))


def _is_parquet(source: TextSource, shape: Shape) -> bool:
    marked = text_bytes(source.head, 0, 4) == b"PAR1" and not looks_like(_first_line(source).encode(), shape)
    return marked or source.suffix in (".parquet", ".pq")


def _first_line(source: TextSource) -> str:
    """Return the first line that is not blank, or what a long one begins with."""
    head = text_bytes(source.head, 0, 4096).lstrip(b"\r\n")
    return head.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")


def _has_header(form: str, source: TextSource, shape: Shape) -> bool:
    cells = _first_line(source).split(SEPARATORS[form])
    return has_known_names([cell.strip('"') for cell in cells], shape.value)


def _is_named_csv(source: TextSource, _: Shape) -> bool:
    return source.suffix == ".csv" and _first_line(source) != ""


def _is_named_tsv(source: TextSource, shape: Shape) -> bool:
    line = _first_line(source)  # TREC files are sometimes called .tsv: then the number of columns decides
    return source.suffix == ".tsv" and line != "" and len(line.split()) != shape.layout.columns


_FORMATS: dict[Format, _FormatReader] = {
    "parquet": _FormatReader(_read_parquet, _is_parquet),
    "csv": _FormatReader(partial(_read_table, "csv"), partial(_has_header, "csv"), _is_named_csv),
    "tsv": _FormatReader(partial(_read_table, "tsv"), partial(_has_header, "tsv"), _is_named_tsv),
    "json": _FormatReader(_read_json, _is_json),
    "trec": _FormatReader(read_trec),
}
"""To add a format, write its reader and add it here and to `Format`."""


def source_rows(
    source: TextSource, form: Format | None, shape: Shape, report: Diagnostics, progress: Progress
) -> Rows:
    """Read the rows of a file in the given format, or in the format that is found."""
    if form is not None and form not in _FORMATS:
        raise InputError(f"format: expected one of {', '.join(get_args(Format))}; found {form!r}.")
    return _FORMATS[form or found_format(source, shape)].read(source, shape, report, progress)


def found_format(source: TextSource, shape: Shape) -> Format:
    """Return the format of a file: by its content, such as a header line we know, else by its name, else TREC."""
    marked = (form for form, reader in _FORMATS.items() if reader.is_marked(source, shape))
    named = (form for form, reader in _FORMATS.items() if reader.is_named(source, shape))
    return next(chain(marked, named), "trec")


def read_qrels(
    source: FileSource | Mapping[str, Mapping[str, int]] | Any,
    *,
    format: Format | None = None,  # noqa: A002
    lenient: bool = False,
    grades: str = WHOLE_GRADES,
    progress: Progress = silent,
) -> Qrels:
    """Read judgments: a path, `-` for standard input, an open file, a dictionary, a pandas or polars frame.

    Files are TREC qrels (four columns), CSV, TSV or Parquet tables, such as BEIR's or Quepid's, or JSON. Grades are
    integers, and negative ones are kept. `grades` says what becomes of fractions: "whole" refuses them, "round"
    takes the nearest integer, "times=100" multiplies before that, "from=0.5" gives 1 from 0.5 on and 0 below. A
    fault raises FormatError; with `lenient` it is repaired as docs/formats.md says, and counted in the notes.
    """
    check_grades(grades)
    if isinstance(source, Qrels):
        return source
    if isinstance(source, Mapping):
        return qrels_from_dict(source, lenient=lenient, grades=grades)
    if is_frame(source):
        return qrels_from_frame(source, lenient=lenient, grades=grades)
    report = Diagnostics(name_of(source), lenient=lenient)
    opened = open_rows(source, report, progress)
    return as_qrels(source_rows(opened, format, QRELS, report, progress), report, grades)


def read_texts(
    source: FileSource,
    *,
    wanted: Collection[str] | None = None,
    lenient: bool = False,
    progress: Progress = silent,
) -> dict[str, str]:
    """Read texts with ids: JSON lines, a table, lines of `id TAB text`, TREC documents or topics.

    Of a file that is much larger than what is needed of it, only the texts of the `wanted` ids are kept.
    """
    report = Diagnostics(name_of(source), lenient=lenient)
    return texts_of_source(open_source(source, report, progress), report, progress, wanted=wanted)


def read_query_weights(source: FileSource) -> dict[str, float]:
    """Read the weights of queries: lines of `query weight`, each query once, no weight negative."""
    report = Diagnostics(name_of(source), lenient=False)
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


def read_run(
    source: FileSource | Mapping[str, Mapping[str, float]] | Any,
    *,
    name: str | None = None,
    format: Format | None = None,  # noqa: A002
    lenient: bool = False,
    duplicates: Duplicates = "error",
    progress: Progress = silent,
) -> Run:
    """Read a run: a path, `-` for standard input, an open file, a dictionary, a pandas or polars frame.

    Files are TREC runs (six columns), CSV, TSV or Parquet tables, or JSON, also compressed by gzip or zstandard.
    Rows are sorted by score downwards, ties by doc id downwards; the rank column is not used. A fault raises
    FormatError. With `lenient` it is repaired as docs/formats.md says, and counted in the run's notes. `duplicates`
    says which score is kept if a query lists a document twice.
    """
    if duplicates not in get_args(Duplicates):
        raise InputError(f"duplicates: expected one of {', '.join(get_args(Duplicates))}; found {duplicates!r}.")
    if isinstance(source, Run):
        return source if name is None else replace(source, name=name)
    if isinstance(source, Mapping):
        return run_from_dict(source, name=name or "run", lenient=lenient, duplicates=duplicates)
    if is_frame(source):
        return run_from_frame(source, name=name or "run", lenient=lenient, duplicates=duplicates)
    report = Diagnostics(name_of(source), lenient=lenient)
    opened = open_rows(source, report, progress)
    rows = source_rows(opened, format, RUN, report, progress)
    run = as_run(rows, name or opened.stem, duplicates, report)
    return replace(run, tag=first_tag(opened)) if (format or found_format(opened, RUN)) == "trec" else run
