"""Read texts with ids: JSON lines, tables, lines of `id TAB text`, TREC documents (<DOC>) and topics (<top>)."""

import html
import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from genm.progress import Progress
from genm.read.diagnostics import Diagnostics, shown
from genm.read.json_tables import is_number, object_lines
from genm.read.sources import TextSource, decoded
from genm.read.tables import SEPARATORS, first_known, table_lines

EXAMPLE = '{"_id": "d1", "title": "...", "text": "..."}'

ID_NAMES = ("_id", "id", "doc_id", "docno", "docid", "query_id", "qid", "document_id")
TEXT_NAMES = ("text", "contents", "content", "body", "abstract", "query", "query_text", "question")
TITLE_NAMES = ("title", "headline")

_DOC, _DOC_END = re.compile(r"<DOC>", re.IGNORECASE), re.compile(r"</DOC>", re.IGNORECASE)
_DOCNO = re.compile(r"<DOCNO>([^<]*)</DOCNO>", re.IGNORECASE)
_TOP, _TOP_END = re.compile(r"<top>", re.IGNORECASE), re.compile(r"</top>", re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?([^<]*)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?([^<]*)", re.IGNORECASE)
_DESCRIPTION = re.compile(r"<desc>\s*(?:Description:)?([^<]*)", re.IGNORECASE)
_NOT_TEXT = re.compile(r"<(DOCNO|DOCID|DOCHDR|FILEID|DOCTYPE|DATE_TIME)>[^<]*</\1>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class _Entry(NamedTuple):
    line: int
    key: object
    text: object
    shown: str
    """What a message shows of the entry."""


def read_texts(
    source: TextSource, report: Diagnostics, progress: Progress, *, wanted: Collection[str] | None = None
) -> dict[str, str]:
    """Return the text of each id, or of the wanted ids; the form is found by the content."""
    content = decoded(source, report)
    texts: dict[str, str] = {}
    is_empty = True
    for line, key, text, described in _reader(content, source)(content, source, report, progress):
        name = str(key) if isinstance(key, str) else ""
        is_empty = False
        if wanted is not None and name.strip() and name not in wanted:
            continue
        if is_number(key):
            report.say("integer-ids", 1, f"the id is the integer {shown(name)}: read as text", line=line)
        broken = _SURROGATE.search(name) or (isinstance(text, str) and _SURROGATE.search(text))
        if not name.strip() or not isinstance(text, str) or is_number(text) or broken:
            report.fault(
                "entry", line=line, expected=f"an object with _id and text, such as {EXAMPLE}", found=described,
                advice="Give every entry both, as text.", repair="the entry was left out",
            )  # fmt: skip
        elif name in texts:
            report.fault(
                "id-twice", line=line, expected="each _id once", found=f"{shown(name)} again",
                advice="Remove one of the two.", repair="the first was kept",
            )  # fmt: skip
        else:
            texts[name] = text.strip()
    if not texts and (is_empty or wanted is None):
        report.fault(
            "empty", line=None, expected=f"lines such as {EXAMPLE}", found="none",
            advice="See how the file was made.", repair="read as empty",
        )  # fmt: skip
    return texts


_Reader = Callable[[str, TextSource, Diagnostics, Progress], Iterator[_Entry]]


def _reader(content: str, source: TextSource) -> _Reader:
    """Return the reader of the form that the text has."""
    head = content[:4096].lstrip()
    if head.startswith("{") or source.suffix in (".jsonl", ".ndjson"):
        return _json_lines
    if head.startswith("<"):
        top, doc = _TOP.search(content), _DOC.search(content)
        return _topics if top and not (doc and doc.start() < top.start()) else _trec_documents
    first = head.split("\n", 1)[0].rstrip("\r")
    for separator in SEPARATORS.values():
        names = [name.strip().strip('"') for name in first.split(separator)]
        if first_known(names, ID_NAMES) and first_known(names, (*TEXT_NAMES, *TITLE_NAMES)):
            return _table(separator)
    return _tab_lines


def _json_lines(content: str, source: TextSource, report: Diagnostics, progress: Progress) -> Iterator[_Entry]:
    for number, line, entry in object_lines(content, report, source.name, progress):
        names = list(entry)
        key, text, title = (
            entry.get(first_known(names, known) or "") for known in (ID_NAMES, TEXT_NAMES, TITLE_NAMES)
        )
        if title is not None and text is not None:
            text = f"{title} {text}" if isinstance(title, str) and isinstance(text, str) else None
        yield _Entry(number, key, title if text is None and "text" not in entry else text, shown(line))


def _table(separator: str) -> _Reader:
    def read(content: str, source: TextSource, report: Diagnostics, progress: Progress) -> Iterator[_Entry]:
        header, rows = table_lines(content, separator, report)
        known = [first_known(header, names) for names in (ID_NAMES, TITLE_NAMES, TEXT_NAMES)]
        places = [header.index(name) for name in known if name is not None]
        for number, cells in rows:
            key, *parts = (cells[place].strip() for place in places)
            yield _Entry(number, key, " ".join(parts), shown(separator.join(cells)))
        progress(f"reading {source.name}", len(content), len(content))

    return read


def _tab_lines(content: str, source: TextSource, report: Diagnostics, progress: Progress) -> Iterator[_Entry]:
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            key, tab, text = line.rstrip("\r").partition("\t")
            if not tab:
                report.fault(
                    "columns", line=number, expected="an id, a tab and a text", found=shown(line),
                    advice=f"Or give lines such as {EXAMPLE}, or a table with the columns id and text.",
                    repair="the line was left out",
                )  # fmt: skip
                continue
            yield _Entry(number, key, text, shown(line))
    progress(f"reading {source.name}", len(content), len(content))


def _trec_documents(content: str, source: TextSource, report: Diagnostics, progress: Progress) -> Iterator[_Entry]:
    for line, body in _elements(content, _DOC, _DOC_END, "<DOC> ... </DOC>", source, report, progress):
        number = _DOCNO.search(body)
        if number is None:
            report.fault(
                "entry", line=line, expected="a <DOCNO> in every <DOC>", found=shown(body.strip()),
                advice="Give every document an id: <DOCNO> d1 </DOCNO>.", repair="the document was left out",
            )  # fmt: skip
            continue
        text = html.unescape(_TAG.sub(" ", _NOT_TEXT.sub(" ", body)))
        yield _Entry(line, number[1].strip(), " ".join(text.split()), shown(body.strip()))


def _topics(content: str, source: TextSource, report: Diagnostics, progress: Progress) -> Iterator[_Entry]:
    for line, body in _elements(content, _TOP, _TOP_END, "<top> ... </top>", source, report, progress):
        number, title = _NUMBER.search(body), _TITLE.search(body)
        words = " ".join(html.unescape(title[1] if title else "").split())
        if not words and (description := _DESCRIPTION.search(body)):
            words = " ".join(html.unescape(description[1]).split())
        if number is None or not words:
            report.fault(
                "entry", line=line, expected="a <num> and a <title> or <desc> in every <top>",
                found=shown(body.strip()), advice="Give every topic both.", repair="the topic was left out",
            )  # fmt: skip
            continue
        yield _Entry(line, number[1].strip(), words, shown(body.strip()))


def _elements(
    content: str,
    begin: re.Pattern[str],
    end: re.Pattern[str],
    form: str,
    source: TextSource,
    report: Diagnostics,
    progress: Progress,
) -> Iterator[tuple[int, str]]:
    """Yield line and content of every element; one that is not closed is a fault, text outside is noted."""
    at, line, outside = 0, 1, 0
    closed = end.search(content)
    while opened := begin.search(content, at):
        outside += bool(content[at : opened.start()].strip()) and at > 0
        line += content.count("\n", at, opened.start())
        if closed is not None and closed.start() < opened.end():
            closed = end.search(content, opened.end())
        again = begin.search(content, opened.end(), closed.start() if closed else len(content))
        if closed is None or again is not None:
            report.fault(
                "element", line=line, expected=form, found=shown(content[opened.start() : opened.start() + 80]),
                advice="Close every element; see that the file is not cut short.",
                repair="the element was left out",
            )  # fmt: skip
            if closed is None or again is None:
                at = len(content)  # nothing is closed from here on
                break
            line += content.count("\n", opened.start(), again.start())
            at = again.start()
            continue
        yield line, content[opened.end() : closed.start()]
        line += content.count("\n", opened.start(), closed.end())
        at = closed.end()
        progress(f"reading {source.name}", at, len(content))
    if outside or content[at:].strip():
        report.say("text-outside", outside + 1, f"text outside {form} is not read")
