"""Read what is known of queries: a table of texts and further columns, and lines of query and group."""

from collections.abc import Iterator

from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, shown
from genm.read.json_tables import object_lines
from genm.read.sources import FileSource, TextSource, decoded, name_of, open_source
from genm.read.tables import SEPARATORS, first_known, table_lines
from genm.read.texts import ID_NAMES, TEXT_NAMES, read_texts

QUERY_NAMES = ("query_id", "qid", *ID_NAMES)
GROUP_NAMES = ("group", "query_group", "segment", "class", "label")
_EXAMPLE = '{"_id": "q1", "text": "...", "lang": "de"}'


def read_queries(source: FileSource, *, progress: Progress = silent) -> dict[str, dict[str, str]]:
    """Read a table of queries: by query id, its columns, of which "text" is the query's text.

    JSON lines and tables with a header (CSV, TSV) have any columns beside the id; other files, such as lines of id,
    tab and text or TREC topics, have the text alone.
    """
    report = Diagnostics(name_of(source), lenient=False)
    opened = open_source(source, report, progress)
    content = decoded(opened, report)
    rows = _rows(content, opened, report)
    if rows is None:
        return {query_id: {"text": text} for query_id, text in read_texts(opened, report, progress).items()}
    found: dict[str, dict[str, str]] = {}
    for line, columns in rows:
        names = list(columns)
        id_name = first_known(names, QUERY_NAMES)
        query_id = "" if id_name is None else columns[id_name].strip()
        if not query_id or query_id in found:
            report.fault(
                "query", line=line, expected=f"an id of its own in every entry, as in {_EXAMPLE}",
                found=f"{shown(query_id)} again" if query_id else "none",
                advice="Give every query one entry with its id.", repair="",
            )  # fmt: skip
        text_name = first_known([name for name in names if name != id_name], TEXT_NAMES)
        found[query_id] = {
            "text" if name == text_name else name: value for name, value in columns.items() if name != id_name
        }
    return found


def read_groups(source: FileSource) -> dict[str, str]:
    """Read the groups of queries: lines of query and group, or a table with these columns."""
    report = Diagnostics(name_of(source), lenient=False)
    content = decoded(open_source(source, report, silent), report)
    groups: dict[str, str] = {}
    for line, cells in _pairs(content, report):
        query_id, group = (cell.strip() for cell in cells) if len(cells) == 2 else ("", "")
        if not query_id or not group or query_id in groups:
            report.fault(
                "group", line=line, expected="a query and its group, each query once",
                found=f"{shown(query_id)} again" if query_id in groups else shown(" ".join(cells)),
                advice="Write lines such as: q1 TAB product", repair="",
            )  # fmt: skip
        groups[query_id] = group
    if not groups:
        report.fault(
            "empty", line=None, expected="lines of query and group", found="none",
            advice="See how the file was made.", repair="",
        )  # fmt: skip
    return groups


def _separator_of(content: str, names: tuple[str, ...]) -> str | None:
    """Return what splits the columns if the first line is a header with an id and one of the names."""
    first = content.lstrip().split("\n", 1)[0].rstrip("\r")
    for separator in SEPARATORS.values():
        header = [name.strip().strip('"') for name in first.split(separator)]
        has_names = not names or first_known(header, names)
        if len(header) > 1 and first_known(header, QUERY_NAMES) and has_names:
            return separator
    return None


def _rows(content: str, source: TextSource, report: Diagnostics) -> Iterator[tuple[int, dict[str, str]]] | None:
    """Return line and columns of every entry; None where the file has no named columns."""
    if content.lstrip().startswith("{") or source.suffix in (".jsonl", ".ndjson"):
        return _json_rows(content, source, report)
    separator = _separator_of(content, ())
    return None if separator is None else _table_rows(content, separator, report)


def _json_rows(content: str, source: TextSource, report: Diagnostics) -> Iterator[tuple[int, dict[str, str]]]:
    for number, _, entry in object_lines(content, report, source.name):
        yield number, {name: str(value) for name, value in entry.items() if isinstance(value, str | bool)}


def _table_rows(content: str, separator: str, report: Diagnostics) -> Iterator[tuple[int, dict[str, str]]]:
    header, rows = table_lines(content, separator, report)
    names = [name.strip() for name in header]
    for number, cells in rows:
        yield number, dict(zip(names, (cell.strip() for cell in cells), strict=True))


def _pairs(content: str, report: Diagnostics) -> Iterator[tuple[int, list[str]]]:
    """Yield line, and query and group, of a table with these columns or of plain lines."""
    separator = _separator_of(content, GROUP_NAMES)
    if separator is not None:
        for number, columns in _table_rows(content, separator, report):
            names = list(columns)
            query, group = first_known(names, QUERY_NAMES), first_known(names, GROUP_NAMES)
            yield number, [columns[str(query)], columns[str(group)]]
        return
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            split = line.strip("\r\n")
            yield number, split.split("\t") if "\t" in split else split.split(None, 1)
