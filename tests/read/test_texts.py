"""Texts with ids in the forms that people have them."""

import time
from pathlib import Path

import pytest

from genm.errors import FormatError
from genm.progress import silent
from genm.read.diagnostics import Diagnostics
from genm.read.sources import open_source
from genm.read.texts import read_texts
from genm.records import Note

DOCS = """<DOC>
<DOCNO> FT-1 </DOCNO>
<DATE_TIME>11 May</DATE_TIME>
<HEADLINE>Ships &amp; sails</HEADLINE>
<TEXT>
A ship <B>sails</B>.
</TEXT>
</DOC>
<doc><docno>FT-2</docno><text>Two</text></doc>
"""
TOPICS = """<top>
<num> Number: 301
<title> International   Crime
<desc> Description:
Identify things.
</top>
<top><num>302</num><title></title><desc>Only this</desc></top>
"""
FORMS = {
    "docs.txt": (DOCS, {"FT-1": "Ships & sails A ship sails .", "FT-2": "Two"}),
    "topics": (TOPICS, {"301": "International Crime", "302": "Only this"}),
    "t.jsonl": (
        '{"id": "a", "contents": "one"}\n\n{"id": "b", "title": "T", "text": "two"}\n',
        {"a": "one", "b": "T two"},
    ),
    "t.csv": ('id,title,text\na,T,"one, two"\nb,,x\n', {"a": "T one, two", "b": "x"}),
    "t.tsv": ("Doc ID\tBody\na\tone\n", {"a": "one"}),
    "q.tsv": ("1\twhat is it\n2\tand\tthat\n", {"1": "what is it", "2": "and\tthat"}),
}


def read(path: Path, *, lenient: bool = False) -> tuple[dict[str, str], tuple[Note, ...]]:
    report = Diagnostics(str(path), lenient=lenient)
    return read_texts(open_source(path, report, silent), report, silent), report.notes


@pytest.mark.parametrize("name", FORMS)
def test_forms(tmp_path: Path, name: str) -> None:
    content, expected = FORMS[name]
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name) == (expected, ())


FAULTS = {
    "<DOC><TEXT>x</TEXT></DOC>": ("entry", "a <DOCNO> in every <DOC>"),
    "<DOC><DOCNO>b</DOCNO>x": ("element", "<DOC> ... </DOC>"),
    "<DOC>\n<DOC><DOCNO>b</DOCNO>x</DOC>": ("element", "<DOC> ... </DOC>"),
    "<DOC><DOCNO>a</DOCNO>x</DOC>": ("id-twice", "each _id once"),
    "<DOC><DOCNO> </DOCNO>x</DOC>": ("entry", "an object with _id and text"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_documents(tmp_path: Path, fault: str) -> None:
    code, expected = FAULTS[fault]
    path = tmp_path / "docs"
    path.write_text("<DOC><DOCNO>a</DOCNO>one</DOC>\n" + fault)
    with pytest.raises(FormatError, match=r"docs:2: expected ") as caught:
        read(path)
    assert expected in caught.value.expected
    texts, notes = read(path, lenient=True)
    assert texts["a"] == "one"
    assert [note.code for note in notes] == [code]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<top><title>x</title></top>", "a <num> and a <title> or <desc>"),
        ("id,text\na\n", "2 columns, as in the header"),
        ("no tab\n", "an id, a tab and a text"),
        ('{"id": "a", "text": 7}', "an object with _id and text"),
        ('{"text": "x"}', "an object with _id and text"),
        ("<html></html>", "lines such as"),
        ("", "lines such as"),
    ],
)
def test_other_faults(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert expected in caught.value.expected
    assert "empty" in [note.code for note in read(path, lenient=True)[1]]


def test_text_outside_the_documents_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("<DOC><DOCNO>a</DOCNO>one</DOC> lost <DOC><DOCNO>b</DOCNO>two</DOC>\nlost too")
    texts, notes = read(path)
    assert list(texts) == ["a", "b"]
    assert [(note.code, note.count) for note in notes] == [("text-outside", 2)]


@pytest.mark.parametrize("piece", ["<DOC>", "<DOC><DOCNO>", "<DOCID>", "<top><num>", "<", "<title>"])
def test_broken_documents_take_no_longer_than_others(tmp_path: Path, piece: str) -> None:
    path = tmp_path / "x"
    began = time.process_time()
    for end in ("", "</DOC></top>"):
        path.write_text("<DOC>" + piece * 100_000 + end)
        with pytest.raises(FormatError):
            read(path)
    assert time.process_time() - began < 5.0
