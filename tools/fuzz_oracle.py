"""What a reader must make of a file, written a second time and slowly, from docs/formats.md alone.

Each function takes the bytes of a file and returns {query: {document: number}}, or None where strict reading
refuses the file. Nothing here is shared with genm, so that a fault in one is seen in the other.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

Table = dict[str, dict[str, float]]
Lists = dict[str, dict[tuple[tuple[str, ...], int], int]]
"""Of each query, how often each list was shown with the same clicks; the clicks are bits."""
Found = TypeVar("Found")

BLANKS = " \t\r\x0b\x0c"
MARK = "\ufeff"
QUERY = ["query_id", "qid", "q_id", "query-id", "query", "query_text"]
DOC = ["doc_id", "docno", "docid", "corpus-id", "doc-id", "document_id"]
VALUE = {"score": ["score"], "relevance": ["relevance", "label", "rel", "rating", "grade", "score"]}


class Refused(Exception):  # noqa: N818 (an answer, not an error)
    """Strict reading refuses the file."""


def trec_run(content: bytes) -> Table | None:
    """Six columns, or more after a complete line with a tag that is no number."""
    return _answer(lambda: _trec(content, 6, 2, 4, "score"))


def trec_qrels(content: bytes) -> Table | None:
    """Four columns."""
    return _answer(lambda: _trec(content, 4, 2, 3, "relevance"))


def table(content: bytes, separator: str, what: str) -> Table | None:
    """CSV or TSV with a header."""
    return _answer(lambda: _table(content, separator, what))


def json_file(content: bytes, what: str) -> Table | None:
    """Nested objects, or judgment lists."""
    return _answer(lambda: _json(content, what))


def click_log(content: bytes) -> Lists | None:
    """User Behavior Insights, JSON lines, or CSV with a header."""
    return _answer(lambda: _clicks(content))


def _answer(read: Callable[[], Found]) -> Found | None:
    try:
        return read()
    except Refused:
        return None


def number(token: str) -> float:
    """Return the float64 of a decimal number."""
    plain = re.match(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", token, re.ASCII)
    if plain is None or token != token.strip():
        raise Refused
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise Refused
    mantissa = re.split("[eE]", token)[0]
    if value == 0.0 and any(digit in mantissa for digit in "123456789"):
        raise Refused
    return value


def _collected(rows: list[tuple[str, str, float]], what: str) -> Table:
    """Group the rows; the rules about documents that come twice, and about grades."""
    found: Table = {}
    for query, doc, value in rows:
        if what == "relevance" and not (value == int(value) and -(2**31) <= value < 2**31):
            raise Refused
        of_query = found.setdefault(query, {})
        if doc in of_query and (what == "score" or of_query[doc] != value):
            raise Refused
        of_query[doc] = value
    if not found:
        raise Refused
    return found


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused from None
    return text.removeprefix(MARK)


def _trec(content: bytes, n_columns: int, doc: int, value: int, what: str) -> Table:
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
    rows = []
    for line in content.split(b"\n"):
        letters = line.decode("latin-1")
        if letters.startswith("#"):
            continue
        words = [word for word in re.split(f"[{BLANKS}]+", letters) if word]
        if not words:
            continue
        if any(letter < " " and letter not in BLANKS for letter in letters) or len(words) < n_columns:
            raise Refused
        if len(words) > n_columns:
            shifted = (
                what == "relevance" or not words[3].isascii() or not words[3].isdigit() or _like_number(words[5])
            )
            if shifted:
                raise Refused
        try:
            query, name = (words[i].encode("latin-1").decode("utf-8") for i in (0, doc))
        except UnicodeDecodeError:
            raise Refused from None
        if query.startswith(MARK):
            raise Refused
        rows.append((query, name, number(words[value])))
    return _collected(rows, what)


def _like_number(word: str) -> bool:
    """Whether a word could be a score, right or wrong: 3, 1e400, nan, 3,5."""
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", word, re.IGNORECASE | re.ASCII):
        return True
    digits = word.replace(",", ".", 1) if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", word, re.ASCII) else word
    try:
        Decimal(digits)
    except InvalidOperation:
        return False
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", digits, re.ASCII) is not None


def _cells(text: str, separator: str) -> list[list[str]]:
    """Parse letter by letter; lines end in LF, CR LF or CR."""
    lines: list[list[str]] = []
    line: list[str] = []
    cell, state, began = "", "start", False
    i = 0
    while i <= len(text):
        letter = text[i] if i < len(text) else "end"
        if state == "quoted":
            if letter == "end":
                raise Refused
            if letter == '"':
                state = "closed"
            else:
                cell += letter
        elif letter in (separator, "\n", "\r", "end"):
            if began or line or cell or letter == separator:
                line.append(cell)
            cell, state, began = "", "start", letter == separator
            if letter != separator:
                if line:
                    lines.append(line)
                line = []
                if letter == "\r" and text[i + 1 : i + 2] == "\n":
                    i += 1
        elif state == "closed":
            if letter != '"':
                raise Refused
            cell, state = cell + '"', "quoted"
        elif letter == '"' and state == "start":
            state, began = "quoted", True
        else:
            cell, state, began = cell + letter, "plain", True
        i += 1
    return lines


def _column(header: list[str], names: list[str]) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    spelled = [re.sub(r"[\s-]", "_", name.strip().lower()) for name in header]
    for name in names:
        if name.replace("-", "_") in spelled:
            return spelled.index(name.replace("-", "_"))
    raise Refused


def _id(text: str) -> str:
    if not text or re.search("[\x00-\x08\x0e-\x1f\ud800-\udfff]", text):
        raise Refused
    return text


def _table(content: bytes, separator: str, what: str) -> Table:
    lines = _cells(_text(content), separator)
    if not lines:
        raise Refused
    header = lines[0]
    if len(set(header)) < len(header):
        raise Refused
    query, doc, value = (_column(header, names) for names in (QUERY, DOC, VALUE[what]))
    rows = []
    for cells in lines[1:]:
        if len(cells) != len(header):
            raise Refused
        rows.append((_id(cells[query]), _id(cells[doc]), number(cells[value].strip())))
    return _collected(rows, what)


class _Digits(str):
    """A number of a JSON file, as it is written."""


def _json(content: bytes, what: str) -> Table:
    try:
        document = json.loads(
            _text(content),
            object_pairs_hook=lambda pairs: ("object", pairs),
            parse_int=_Digits,
            parse_float=_Digits,
            parse_constant=_Digits,
        )
    except (json.JSONDecodeError, RecursionError):
        raise Refused from None
    rows = []
    lists = _lists(document)
    if lists is not None:
        for entry in lists:
            fields = _fields(entry)
            ratings = fields.get("ratings")
            if not isinstance(fields.get("query"), str) or not isinstance(ratings, list):
                raise Refused
            for rating in ratings:
                one = _fields(rating)
                if not isinstance(one.get("docId"), str) or not isinstance(one.get("rating"), str):
                    raise Refused
                rows.append((_id(str(fields["query"])), _id(str(one["docId"])), number(one["rating"].strip())))
        return _collected(rows, what)
    for query, docs in _pairs(document):
        for doc, value in _pairs(docs):
            if not isinstance(value, _Digits):
                raise Refused
            rows.append((_id(query), _id(doc), number(value)))
    return _collected(rows, what)


def _pairs(value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, tuple):
        raise Refused
    return list(value[1])


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object; of a key that comes twice the first."""
    return dict(reversed(_pairs(value)))


def _lists(document: Any) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if not isinstance(document, tuple):
        return None
    fields = _fields(document)
    if isinstance(fields.get("judgmentRatings"), list):
        return list(fields["judgmentRatings"])
    if isinstance(fields.get("_source"), tuple):
        return _lists(fields["_source"])
    hits = fields.get("hits")
    found = _fields(hits).get("hits") if isinstance(hits, tuple) else None
    if not isinstance(found, list):
        return None
    inside = [_lists(hit) for hit in found]
    return None if None in inside else [entry for one in inside for entry in one or []]


LONGEST_LIST = 20
CLICKS = {"click", "item_click", "result_click", "product_click", "view", "add_to_cart", "purchase"}


def _clicks(content: bytes) -> Lists:
    lines = [line for line in re.findall("[^\r\n]*(?:\r\n|\r|\n|$)", _text(content)) if line.strip()]
    if not lines:
        raise Refused
    shown = _json_lists(lines) if lines[0].lstrip()[0] == "{" else _csv_lists("".join(lines))
    found: dict[str, Counter[tuple[tuple[str, ...], int]]] = {}
    for query, docs, clicked in shown:
        kept = tuple(docs[:LONGEST_LIST])
        if kept:
            bits = sum(2**place for place in set(clicked) if place < len(kept))
            found.setdefault(query, Counter())[kept, bits] += 1
    return {query: dict(of_query) for query, of_query in found.items()}


Shown = tuple[str, list[str], list[int]]
"""Query, documents, clicked places from 0."""


def _json_lists(lines: list[str]) -> list[Shown]:
    shown: list[Shown] = []
    searches: dict[str, Shown] = {}
    for line in lines:
        entry = _entry(line)
        if "action_name" in entry:
            if _spaced(entry["action_name"]) not in CLICKS:
                continue
            thing = _object(_object(entry.get("event_attributes")).get("object")).get("object_id")
            search_id, doc = _spaced(entry.get("query_id")), _spaced(thing)
            if search_id in searches and doc in searches[search_id][1]:
                searches[search_id][2].append(searches[search_id][1].index(doc))
        elif "query_response_hit_ids" in entry:
            docs = _documents(entry["query_response_hit_ids"] or [])
            search: Shown = (_spaced(entry.get("user_query")), docs, [])
            searches[_spaced(entry.get("query_id"))] = search
            shown.append(search)
        else:
            names = [name for name in ("query", "user_query", "query_text", "query_id") if name in entry]
            docs = _documents(entry["docs"] if "docs" in entry else entry.get("documents"))
            shown.append(
                (_spaced(entry[names[0]] if names else None), docs, _places(entry.get("clicks", []), docs))
            )
    return shown


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line, object_pairs_hook=lambda pairs: ("object", pairs))
    except (ValueError, RecursionError):
        raise Refused from None
    plain = _plain(entry)
    if isinstance(plain, dict) and "_source" in plain:
        plain = plain["_source"]
    if not isinstance(plain, dict):
        raise Refused
    return plain


def _plain(value: Any) -> Any:
    """Return an object as a dictionary; a key that comes twice is refused."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, tuple):
        return value
    if len({key for key, _ in value[1]}) < len(value[1]):
        raise Refused
    return {key: _plain(one) for key, one in value[1]}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _spaced(value: Any) -> str:
    """Return an id or a query, its white space as single spaces."""
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not text.strip():
        raise Refused
    return " ".join(_id(text).split())


def _documents(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise Refused
    return [_spaced(one) for one in value]


def _places(clicks: Any, docs: list[str]) -> list[int]:
    if not isinstance(clicks, list):
        raise Refused
    places = []
    for click in clicks:
        if type(click) is int and 1 <= click <= len(docs):
            places.append(click - 1)
        elif isinstance(click, str) and click in docs:
            places.append(docs.index(click))
        else:
            raise Refused
    return places


def _csv_lists(text: str) -> list[Shown]:
    header, *rows = _cells(text, ",")
    names = [name.strip() for name in header]
    if len(set(names)) < len(names):
        raise Refused

    def column(*known: str) -> int:
        for name in known:
            if name in names:
                return names.index(name)
        raise Refused

    query_at = column("query", "user_query", "query_text", "query_id")
    doc_at = column("doc_id", "document", "document_id", "doc", "object_id")
    position_at, clicked_at = column("position", "rank", "ordinal"), column("clicked", "click", "clicks")
    sessions = ["session", "session_id", "search_id", "impression_id", "query_id"]
    session_at = [names.index(name) for name in sessions if name in names and names.index(name) != query_at]
    shown: list[Shown] = []
    before: tuple[str, str, int] | None = None
    for cells in rows:
        if len(cells) != len(names):
            raise Refused
        query, doc, position = _spaced(cells[query_at]), _spaced(cells[doc_at]), _count(cells[position_at])
        session = " ".join(cells[session_at[0]].split()) if session_at else ""
        if before is None or before[:2] != (query, session) or (not session_at and position <= before[2]):
            shown.append((query, [], []))
        before = (query, session, position)
        word = cells[clicked_at].strip().lower()
        if word == "true" or (word not in ("", "false") and _count(word)):
            shown[-1][2].append(len(shown[-1][1]))
        shown[-1][1].append(doc)
    return shown


def _count(cell: str) -> int:
    digits = cell.strip()
    if not re.fullmatch("[0-9]{1,18}", digits):
        raise Refused
    return int(digits)
