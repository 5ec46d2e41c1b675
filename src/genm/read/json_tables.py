"""Read runs and judgments from JSON: {query: {document: number}}, and the judgment lists of OpenSearch.

OpenSearch's Search Relevance Workbench writes `judgmentRatings`, a list of queries with their `ratings`, alone or
inside the answer to a search. Numbers stay text until they are checked, and a key that is given twice is two rows,
so JSON follows the rules of the other formats.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, Place, shown
from genm.read.rows import Rows
from genm.read.sources import TextSource, decoded
from genm.read.tables import id_texts, rows_of
from genm.read.trec import MATTERS, judge_number

_EXAMPLE = '{"query": {"document": 1}}'
_RATINGS = "judgmentRatings"


class _Number(str):
    """A number as it is written in the file."""

    __slots__ = ()


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object as its keys and values, in their order."""

    __slots__ = ()

    def get(self, key: str) -> Any:
        """Return the value of a key, or None."""
        return next((value for name, value in self if name == key), None)


def parse_pairs(text: str) -> tuple[Any, str, int]:
    """Return a JSON document, what is wrong with it ("" if nothing is) and the line of the fault."""
    try:
        document = json.loads(
            text, object_pairs_hook=_Pairs, parse_float=_Number, parse_int=_Number, parse_constant=_Number
        )
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        return None, "the file ends in the middle" if cut else error.msg, error.lineno
    except RecursionError:
        return None, "lists or objects nested too deeply", 1
    return document, "", 0


def parse_object(line: str) -> tuple[dict[str, Any], str]:
    """Return a JSON object, and what is wrong with it ("" if nothing is)."""
    document, fault, _ = parse_pairs(line)
    if fault:
        return {}, fault
    if not isinstance(document, _Pairs):
        return {}, "not an object"
    entry = dict(document)
    return (entry, "") if len(entry) == len(document) else ({}, "a key twice")


def object_lines(
    content: str, report: Diagnostics, name: str, progress: Progress = silent
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield number, text and object of every line of JSON that is not blank; what is no object is a fault."""
    lines = content.split("\n")  # not splitlines: a text may hold other separators
    for number, line in enumerate(lines, 1):
        if number % 65_536 == 0 or number == len(lines):
            progress(f"reading {name}", number, len(lines))
        if not line.strip():
            continue
        entry, fault = parse_object(line)
        if not fault:
            yield number, line, entry
            continue
        report.fault(
            "json", line=number, expected="one JSON object a line", found=f"{shown(line)} ({fault})",
            advice="See that the file is not cut short.", repair="the line was left out",
        )  # fmt: skip


def is_number(value: object) -> bool:
    """Whether a value of a parsed document is a number, not a text."""
    return isinstance(value, _Number)


def read_json(source: TextSource, what: str, report: Diagnostics) -> Rows:
    """Read the rows of a JSON file; `what` is "score" or "relevance"."""
    document, fault, line = parse_pairs(decoded(source, report))
    if fault:
        raise report.fail(
            line, expected="JSON", found=fault, advice=f"The file looks like this: {_EXAMPLE}"
        )  # fmt: skip
    queries: list[object] = []
    docs: list[object] = []
    values: list[object] = []
    lists = _judgment_lists(document)
    entries = _listed(lists, report) if lists is not None else _nested(document, report)
    for query, doc, value in entries:
        queries.append(query)
        docs.append(doc)
        values.append(value)
    if not queries:
        report.fault(
            "empty", line=None, expected="at least one query with a document", found="none",
            advice=f"The file looks like this: {_EXAMPLE}", repair="read as empty",
        )  # fmt: skip

    def place(row: int) -> Place:
        return f"query {shown(queries[row])}, document {shown(docs[row])}"

    query_texts, bad = id_texts(queries, "query", report, place)
    doc_texts, bad_docs = id_texts(docs, "document", report, place)
    numbers = np.zeros(len(values))
    bad |= bad_docs
    for row, value in enumerate(values):
        # The Workbench writes ratings in quotes: "3.000".
        is_text = isinstance(value, _Number) or (lists is not None and isinstance(value, str))
        numbers[row], matter = judge_number(str(value).strip().encode()) if is_text else (np.nan, "not-a-number")
        if matter:
            expected, advice, repair = MATTERS[matter]
            report.fault(
                matter, line=partial(place, row), expected=expected.format(what), found=shown(value), advice=advice,
                repair=repair.replace("line", "row"),
            )  # fmt: skip
        bad[row] |= numbers[row] != numbers[row]
    return rows_of(query_texts, doc_texts, numbers, bad, report, place)


def _judgment_lists(document: Any) -> list[Any] | None:
    """Return the queries of OpenSearch's judgment lists; None if the document is none."""
    if isinstance(document, list):
        return document
    if not isinstance(document, _Pairs):
        return None
    if isinstance(ratings := document.get(_RATINGS), list):
        return ratings
    source, hits = document.get("_source"), document.get("hits")
    if isinstance(source, _Pairs):
        return _judgment_lists(source)
    found = hits.get("hits") if isinstance(hits, _Pairs) else None
    if not isinstance(found, list):
        return None
    lists = [_judgment_lists(hit) for hit in found]
    return None if None in lists else [query for one in lists if one is not None for query in one]


def _listed(lists: list[Any], report: Diagnostics) -> list[tuple[object, object, object]]:
    """Return query, document and rating of every entry of the judgment lists."""
    rows = []
    for number, entry in enumerate(lists):
        query = entry.get("query") if isinstance(entry, _Pairs) else None
        ratings = entry.get("ratings") if isinstance(entry, _Pairs) else None
        if not isinstance(query, str) or not isinstance(ratings, list):
            raise report.fail(
                None, expected='queries such as {"query": "red dress", "ratings": [{"docId": "7", "rating": "3"}]}',
                found=f"{shown(_described(entry))} in place {number} (from 0)", advice="See how the file was made.",
            )  # fmt: skip
        if not ratings:
            report.say("empty-query", 1, f"query {shown(query)} has no documents: left out")
        for rating in ratings:
            if not isinstance(rating, _Pairs):
                raise report.fail(
                    None, expected='ratings such as {"docId": "7", "rating": "3"}',
                    found=f"{shown(_described(rating))} for query {shown(query)}",
                    advice="See how the file was made.",
                )  # fmt: skip
            rows.append((str(query), rating.get("docId"), rating.get("rating")))
    return [(query, str(doc) if isinstance(doc, str) else None, value) for query, doc, value in rows]


def _nested(document: Any, report: Diagnostics) -> list[tuple[object, object, object]]:
    """Return query, document and number of {query: {document: number}}."""
    if not isinstance(document, _Pairs):
        raise report.fail(
            None, expected="an object of queries", found=shown(_described(document)),
            advice=f"The file looks like this: {_EXAMPLE}",
        )  # fmt: skip
    rows: list[tuple[object, object, object]] = []
    for query, inside in document:
        if not isinstance(inside, _Pairs):
            raise report.fail(
                None, expected="an object of documents for each query",
                found=f"{shown(_described(inside))} for query {shown(query)}",
                advice=f"The file looks like this: {_EXAMPLE}",
            )  # fmt: skip
        if not inside:
            report.say("empty-query", 1, f"query {shown(query)} has no documents: left out")
        rows += [(query, doc, value) for doc, value in inside]
    return rows


def _described(value: object) -> str:
    if isinstance(value, _Pairs):
        return f"an object with {', '.join(name for name, _ in value) or 'no keys'}"
    return f"a list of {len(value)}" if isinstance(value, list) else str(value)
