"""Read logs of shown and clicked documents, of any size, and count equal lists.

What is kept is, for each query, how often each list was shown with the same clicks: all that the click models need.
Memory is bounded by MOST_LISTS different (query, list, clicks), each at most LONGEST_LIST documents: some 200 MB,
and the ids themselves. Beyond it the queries with the fewest showings are dropped, half of the lists, and counted.
Events of OpenSearch User Behavior Insights find their query among the last OPEN_SEARCHES searches; later ones are
dropped and counted.

Formats, told apart by their content:

- User Behavior Insights: JSON lines of the indices ubi_queries (`query_id`, `user_query`, `query_response_hit_ids`)
  and ubi_events (`query_id`, `action_name`, `event_attributes.object.object_id`), in one file or several. Hits as
  a search returns them, with `_source`, are read too.
- JSON lines, one for each list shown: `{"query": "...", "docs": ["d1", "d2"], "clicks": ["d2"]}`; clicks may
  also be positions, counted from 1.
- CSV with a header: `query, doc_id, position, clicked` and, to tell lists apart, `session`; without it a position
  that is not below the last one starts a new list.

White space inside queries and ids counts as one space. Control characters, a key that an object has twice, rows of
another length than the header and lines of more than LONGEST_LINE characters are refused, with the line's number.
"""

import csv
import io
import json
import re
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from genm.errors import FormatError
from genm.judge.click_models import ShownLists
from genm.read.diagnostics import Diagnostics, shown
from genm.read.sources import open_stream
from genm.strict_json import unique_keys

MOST_LISTS = 500_000
LONGEST_LIST = 20
OPEN_SEARCHES = 100_000
LONGEST_LINE = 16 << 20
CLICKS = frozenset({"click", "item_click", "result_click", "product_click", "view", "add_to_cart", "purchase"})
"""Actions of User Behavior Insights that count as a click."""

_QUERY = ("query", "user_query", "query_text", "query_id")
_DOC = ("doc_id", "document", "document_id", "doc", "object_id")
_POSITION = ("position", "rank", "ordinal")
_CLICKED = ("clicked", "click", "clicks")
_SESSION = ("session", "session_id", "search_id", "impression_id", "query_id")
_UNUSABLE = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff]")
"""What no id may hold, in any format: control characters, and halves of characters."""
_MOST_DIGITS = 18


@dataclass(slots=True)
class ClickCounts:
    """How often each list of each query was shown with the same clicks."""

    most_lists: int = MOST_LISTS
    lists: dict[str, dict[tuple[tuple[str, ...], int], int]] = field(default_factory=dict)
    """query -> (documents, bits of the clicked positions) -> count."""
    n_shown: int = 0
    """Lists read."""
    n_dropped: int = 0
    """Lists of queries that were dropped to stay within the memory."""
    n_without_search: int = 0
    """Events whose search was not found among the open ones."""
    n_not_shown: int = 0
    """Clicks on documents that their search did not return."""
    n_other_actions: int = 0
    """Events that are no clicks."""
    n_cells: int = 0

    def add(self, query: str, docs: Iterable[str], clicked: Iterable[int]) -> None:
        """Count one list; `clicked` are positions from 0."""
        shown = tuple(map(sys.intern, tuple(docs)[:LONGEST_LIST]))  # an id is kept once, however many lists hold it
        if not shown:
            return
        bits = sum(1 << position for position in set(clicked) if position < len(shown))
        of_query = self.lists.setdefault(query, {})
        key = (shown, bits)
        self.n_cells += key not in of_query
        of_query[key] = of_query.get(key, 0) + 1
        self.n_shown += 1
        if self.n_cells > self.most_lists:
            self._drop_rare()

    def _drop_rare(self) -> None:
        """Drop the queries with the fewest showings until half of the lists are left."""
        by_showings = sorted(self.lists, key=lambda query: (sum(self.lists[query].values()), query))
        for query in by_showings:
            if self.n_cells <= self.most_lists // 2 or len(self.lists) == 1:
                break
            of_query = self.lists.pop(query)
            self.n_cells -= len(of_query)
            self.n_dropped += sum(of_query.values())
        if self.n_cells > self.most_lists:  # one query alone is too much: keep its most frequent lists
            query, of_query = next(iter(self.lists.items()))
            kept = sorted(of_query.items(), key=lambda item: -item[1])[: self.most_lists // 2]
            self.n_dropped += sum(of_query.values()) - sum(count for _, count in kept)
            self.lists[query], self.n_cells = dict(kept), len(kept)

    def n_clicks(self, query: str) -> int:
        """Return the clicks of a query, over all its lists."""
        return sum(bits.bit_count() * count for (_, bits), count in self.lists[query].items())

    def n_lists(self, query: str) -> int:
        """Return how often a list was shown for a query."""
        return sum(self.lists[query].values())

    def to_arrays(self, queries: Iterable[str]) -> tuple[ShownLists, list[tuple[str, str]]]:
        """Return the lists of some queries as arrays, and the (query, document) of every pair."""
        number: dict[tuple[str, str], int] = {}
        rows, bits, count = [], [], []
        for query in queries:
            for (docs, mask), times in self.lists[query].items():
                rows.append([number.setdefault((query, doc), len(number)) for doc in docs])
                bits.append(mask)
                count.append(times)
        width = max(map(len, rows), default=0)
        pair = np.full((len(rows), width), -1, np.int64)
        for i, row in enumerate(rows):
            pair[i, : len(row)] = row
        clicked = (np.array(bits, np.int64)[:, None] >> np.arange(width)) & 1 == 1
        return ShownLists(pair, clicked, np.array(count, np.float64), len(number)), list(number)


def read_clicks(paths: Iterable[str], *, most_lists: int = MOST_LISTS) -> ClickCounts:
    """Read logs, one after the other, and count equal lists."""
    counts = ClickCounts(most_lists)
    searches = _OpenSearches(counts)
    for path in paths:
        report = Diagnostics(path, lenient=False)
        with open_stream(path, report) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            try:
                _read(path, _lines(path, text), counts, searches)
            except UnicodeDecodeError as error:
                raise report.fail(
                    None, expected="UTF-8 text, as it is or compressed", found=str(error), advice="Export it again."
                ) from None
            finally:
                text.detach()  # standard input stays open
    searches.close_all()
    return counts


def _lines(path: str, text: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    """Yield number and text of every line that is not blank."""
    n = 0
    while line := text.readline(LONGEST_LINE + 1):
        n += 1
        if len(line) > LONGEST_LINE:
            expected = f"lines of at most {LONGEST_LINE:,} characters"
            raise FormatError(path, n, expected, f"more, beginning {shown(line[:40])}", "Check the export.")
        if line.strip():
            yield n, line


def _read(path: str, lines: Iterator[tuple[int, str]], counts: ClickCounts, searches: "_OpenSearches") -> None:
    first = next(lines, None)
    if first is None:
        raise FormatError(path, None, "a log of shown and clicked documents", "an empty file", "Check the export.")
    if first[1].lstrip().startswith("{"):
        _read_json(path, chain([first], lines), counts, searches)
    else:
        _read_csv(path, chain([first], lines), counts)


class _OpenSearches:
    """The searches of User Behavior Insights that may still get events; the oldest are closed."""

    def __init__(self, counts: ClickCounts) -> None:
        self.counts = counts
        self.open: OrderedDict[str, tuple[str, tuple[str, ...], set[int]]] = OrderedDict()

    def search(self, query_id: str, query: str, docs: tuple[str, ...]) -> None:
        """Open a search; one of the same id that is still open is closed."""
        if query_id in self.open:
            self._close(*self.open.pop(query_id))
        self.open[query_id] = (query, docs, set())
        if len(self.open) > OPEN_SEARCHES:
            self._close(*self.open.popitem(last=False)[1])

    def click(self, query_id: str, doc_id: str) -> None:
        """Add a click to its search."""
        found = self.open.get(query_id)
        if found is None:
            self.counts.n_without_search += 1
        elif doc_id in found[1]:
            found[2].add(found[1].index(doc_id))
        else:
            self.counts.n_not_shown += 1

    def close_all(self) -> None:
        """Count all searches that are still open."""
        while self.open:
            self._close(*self.open.popitem(last=False)[1])

    def _close(self, query: str, docs: tuple[str, ...], clicked: set[int]) -> None:
        self.counts.add(query, docs, clicked)


def _read_json(path: str, lines: Iterable[tuple[int, str]], counts: ClickCounts, searches: _OpenSearches) -> None:
    for n, line in lines:
        entry = _object(path, n, line)
        if "action_name" in entry:
            _add_event(path, n, entry, counts, searches)
        elif "query_response_hit_ids" in entry:
            hits = _texts(path, n, "query_response_hit_ids", entry["query_response_hit_ids"] or [])
            query_id = _text(path, n, "query_id", entry.get("query_id"))
            searches.search(query_id, _text(path, n, "user_query", entry.get("user_query")), hits)
        else:
            _add_list(path, n, entry, counts)


def _object(path: str, n: int, line: str) -> dict[str, Any]:
    """Return the object of a line, or what a hit of a search holds as `_source`."""
    fault = ""
    try:
        entry = json.loads(line, object_pairs_hook=unique_keys)
    except RecursionError:
        entry, fault = None, ", nested too deeply"
    except ValueError as error:  # also an integer of thousands of digits
        entry, fault = None, "" if isinstance(error, json.JSONDecodeError) else f" ({error})"
    if isinstance(entry, dict):
        entry = entry.get("_source", entry)
    if not isinstance(entry, dict):
        found = f"{shown(line.strip())}{fault}"
        raise FormatError(path, n, "a JSON object on each line", found, "Export the log as JSON lines.")
    return entry


def _add_event(path: str, n: int, entry: dict[str, Any], counts: ClickCounts, searches: _OpenSearches) -> None:
    if _text(path, n, "action_name", entry["action_name"]) not in CLICKS:
        counts.n_other_actions += 1
        return
    attributes = entry.get("event_attributes")
    found = attributes.get("object") if isinstance(attributes, dict) else None
    doc_id = found.get("object_id") if isinstance(found, dict) else None
    searches.click(_text(path, n, "query_id", entry.get("query_id")), _text(path, n, "object_id", doc_id))


def _add_list(path: str, n: int, entry: dict[str, Any], counts: ClickCounts) -> None:
    query = next((entry[name] for name in _QUERY if name in entry), None)
    docs = _texts(path, n, "docs", entry.get("docs", entry.get("documents")))
    clicks = entry.get("clicks", [])
    if not isinstance(clicks, list):
        raise FormatError(path, n, "a list of clicks", shown(clicks), "Give documents, or positions from 1.")
    places = [_place(docs, click) for click in clicks]
    if any(not 0 <= place < len(docs) for place in places):
        advice = "Give documents of the list, or positions from 1."
        raise FormatError(path, n, f"clicks on the {len(docs)} documents shown", shown(clicks), advice)
    counts.add(_text(path, n, "query", query), docs, places)


def _place(docs: tuple[str, ...], click: object) -> int:
    """Return the place from 0 of a click, given as a document or as a position from 1; -1 if there is none."""
    if isinstance(click, int) and not isinstance(click, bool):
        return click - 1
    return docs.index(click) if isinstance(click, str) and click in docs else -1


def _read_csv(path: str, lines: Iterable[tuple[int, str]], counts: ClickCounts) -> None:
    number = 0

    def text() -> Iterator[str]:
        nonlocal number
        for number, line in lines:  # noqa: B007
            yield line

    rows = csv.reader(text(), strict=True)
    key: tuple[str, str] | None = None
    docs: list[str] = []
    clicked: list[int] = []
    last = 0
    try:
        header = [name.strip() for name in next(rows)]
        query_at, doc_at, position_at, clicked_at, session_at = _columns(path, number, header)
        for row in rows:
            if len(row) != len(header):
                raise FormatError(path, number, f"{len(header)} columns", f"{len(row)}", "Check the export.")
            query = _text(path, number, "query", row[query_at])
            position = _whole(path, number, "position", row[position_at])
            now = (query, "" if session_at is None else " ".join(row[session_at].split()))
            if now != key or (session_at is None and position <= last):
                if key is not None:
                    counts.add(key[0], docs, clicked)
                key, docs, clicked = now, [], []
            if _whole(path, number, "clicked", row[clicked_at]):
                clicked.append(len(docs))
            docs.append(_text(path, number, "doc_id", row[doc_at]))
            last = position
    except csv.Error as error:
        raise FormatError(path, number, "CSV", str(error), "Quote cells as RFC 4180 says.") from None
    if key is not None:
        counts.add(key[0], docs, clicked)


def _columns(path: str, number: int, header: list[str]) -> tuple[int, int, int, int, int | None]:
    """Return where query, doc_id, position, clicked and, if there is one, the session stand."""
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise FormatError(path, number, "each column once", f"{shown(twice)} twice", "Rename one of them.")
    found = []
    for what, names in (("query", _QUERY), ("doc_id", _DOC), ("position", _POSITION), ("clicked", _CLICKED)):
        at = next((header.index(name) for name in names if name in header), None)
        if at is None:
            expected = "a header with query, doc_id, position and clicked"
            raise FormatError(path, number, expected, shown(", ".join(header)), f"Add the column {what}.")
        found.append(at)
    others = (header.index(name) for name in _SESSION if name in header)
    return found[0], found[1], found[2], found[3], next((at for at in others if at != found[0]), None)


def _whole(path: str, n: int, name: str, text: str) -> int:
    cell = text.strip().lower()
    if name == "clicked" and cell in ("true", "false", ""):
        return int(cell == "true")
    if not (cell.isascii() and cell.isdigit() and len(cell) <= _MOST_DIGITS):
        raise FormatError(path, n, f"a whole number as {name}", shown(text), "Check the export.")
    return int(cell)


def _text(path: str, n: int, name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise FormatError(path, n, f"text as {name}", shown(value), "Check the export.")
    if _UNUSABLE.search(value):
        raise FormatError(path, n, f"{name} without control characters", shown(value), "Remove them.")
    return " ".join(value.split())


def _texts(path: str, n: int, name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise FormatError(path, n, f"a list of documents as {name}", shown(value), "Check the export.")
    return tuple(_text(path, n, name, one) for one in value)
