"""Texts of documents and queries, so that a reader sees more than ids."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from genm.progress import Progress, silent
from genm.read.diagnostics import Report as Reading
from genm.read.diagnostics import shown
from genm.read.sources import decoded, open_source
from genm.report.payload import Report

Texts = Callable[[Collection[str]], Mapping[str, str]]
"""Gives the texts of the ids it is asked for, as far as it knows them."""

LONGEST = 240
"""Letters of a text that travel with the report."""
_IDS = ("_id", "id", "doc_id", "query_id", "docno")
_EXAMPLE = '{"_id": "d1", "title": "a title", "text": "a text"}'


def read_texts(path: str, wanted: Collection[str], *, progress: Progress = silent) -> dict[str, str]:
    """Return the beginnings of the texts of the wanted ids.

    A line is `id TAB text`, or a JSON object with an id and a title, a text or both. Ids that nobody wants are
    passed over; of an id that comes twice the first text is kept.
    """
    reading = Reading(path, lenient=False)
    lines = decoded(open_source(path, reading, progress), reading).split("\n")
    parse = _parse_json if _looks_like_json(lines) else _parse_tabs
    texts: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if number % 65_536 == 0 or number == len(lines):
            progress(f"reading {path}", number, len(lines))
        if line.strip():
            key, text = parse(line, number, reading)
            if key in wanted and key not in texts:
                texts[key] = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return texts


def add_texts(report: Report, documents: Texts | None, queries: Texts | None) -> None:
    """Put texts beside the ids that the report shows; each is asked once, for all ids that are shown."""
    if documents is not None:
        shown_docs = [doc for detail in report["details"] for doc in detail["docs"]]
        texts = documents({doc["id"] for doc in shown_docs})
        for doc in shown_docs:
            doc["text"] = texts.get(doc["id"])
    if queries is not None:
        ids = report["queries"]["query_ids"]
        texts = queries(set(ids))
        report["queries"]["texts"] = [texts.get(query_id, "") for query_id in ids]


def _looks_like_json(lines: list[str]) -> bool:
    return next((line.lstrip().startswith("{") for line in lines if line.strip()), False)


def _parse_tabs(line: str, number: int, reading: Reading) -> tuple[str, str]:
    key, tab, text = line.rstrip("\r").partition("\t")
    if not tab or not key:
        raise reading.fail(
            number,
            expected="an id, a tab and a text",
            found=shown(line),
            advice=f"Or give lines such as {_EXAMPLE}.",
        )
    return key, text


def _parse_json(line: str, number: int, reading: Reading) -> tuple[str, str]:
    try:
        entry: Any = json.loads(line)
    except json.JSONDecodeError:
        entry = None
    if isinstance(entry, dict):
        key = next((entry[name] for name in _IDS if name in entry), None)
        parts = [entry.get(name) for name in ("title", "text")]
        text = ": ".join(part for part in parts if isinstance(part, str) and part)
        if isinstance(key, str | int) and not isinstance(key, bool):
            return str(key), text
    raise reading.fail(
        number, expected=f"lines such as {_EXAMPLE}", found=shown(line), advice="Give every line an id."
    )
