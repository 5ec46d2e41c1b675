"""Texts beside ids."""

import gzip

import pytest
from report.examples import example_report

from genm.errors import FormatError
from genm.report.queries import LONGEST, add_texts, read_texts


@pytest.mark.parametrize(
    "content",
    [
        "d1\tone <b>\tand two\nd2\tnobody asked\r\nd3\tthree\n",
        '{"_id": "d1", "title": "one <b>\\tand", "text": "two"}\n\n{"id": "d2"}\n{"id": "d3", "text": "three"}\n',
    ],
)
def test_both_forms(tmp_path, content) -> None:
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(content.encode()))
    found = read_texts(str(path), {"d1", "d3", "d9"})
    assert set(found) == {"d1", "d3"}
    assert found["d1"].startswith("one <b>")
    assert found["d3"] == "three"


def test_long_texts_are_cut_and_the_first_of_two_is_kept(tmp_path) -> None:
    path = tmp_path / "texts.tsv"
    path.write_text(f"d1\t{'x' * 1000}\nd1\tagain\n")
    assert read_texts(str(path), {"d1"}) == {"d1": "x" * (LONGEST - 1) + "…"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("d1 no tab\n", ":1: expected an id, a tab and a text"),
        ('{"_id": "a"}\n{"text": 1}\n', ":2: expected lines"),
    ],
)
def test_lines_that_are_neither(tmp_path, content, message) -> None:
    (tmp_path / "t").write_text(content)
    with pytest.raises(FormatError, match=message):
        read_texts(str(tmp_path / "t"), {"a"})


def test_they_are_asked_for_once_and_put_where_ids_are() -> None:
    report, asked = example_report(n_queries=8), []

    def texts(wanted):
        asked.append(wanted)
        return {"q7": "seven", "d0030": "thirty"}

    add_texts(report, texts, texts)
    assert len(asked) == 2
    assert report["queries"]["texts"][7] == "seven"
    assert report["queries"]["texts"][0] == ""
    docs = [doc for detail in report["details"] for doc in detail["docs"]]
    assert {doc["text"] for doc in docs if doc["id"] == "d0030"} == {"thirty"}
    assert {doc["text"] for doc in docs if doc["id"] != "d0030"} == {None}
