import io

import pytest

from genm.errors import FormatError
from genm.read import read_groups, read_queries


def file(text):
    return io.BytesIO(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "query_id,query,lang\nq1,red shoes,en\nq2,rote Schuhe,de\n",
        "lang\tid\ttext\nen\tq1\tred shoes\nde\tq2\trote Schuhe\n",
        '{"_id": "q1", "text": "red shoes", "lang": "en"}\n{"_id": "q2", "text": "rote Schuhe", "lang": "de"}\n',
    ],
)
def test_tables_keep_all_columns(text):
    assert read_queries(file(text)) == {
        "q1": {"text": "red shoes", "lang": "en"},
        "q2": {"text": "rote Schuhe", "lang": "de"},
    }


def test_other_files_have_the_text_alone():
    assert read_queries(file("q1\tred shoes\n")) == {"q1": {"text": "red shoes"}}


def test_columns_without_a_text_and_numbers():
    assert read_queries(file("qid,price\n1,2.5\n")) == {"1": {"price": "2.5"}}
    assert read_queries(file('{"id": 1, "price": 2.5, "tags": []}\n')) == {"1": {"price": "2.5"}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("id,lang\nq1,en\nq1,de\n", ':3: expected an id .*; found "q1" again'),
        ("id,lang\n,en\n", ":2: expected an id .*; found none"),
        ("id,lang\nq1\n", ":2: expected 2 columns"),
        ('{"id": "q1"}\n{"id"\n', ":2: expected one JSON object a line"),
    ],
)
def test_faulty_tables(text, fault):
    with pytest.raises(FormatError, match=fault):
        read_queries(file(text))


@pytest.mark.parametrize(
    "text",
    [
        "q1 id\nq2 long question\n",
        "q1\tid\r\nq2\tlong question\r\n",
        "query_id,x,group\nq1,0,id\nq2,0,long question\n",
    ],
)
def test_groups(text):
    assert read_groups(file(text)) == {"q1": "id", "q2": "long question"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "found none"),
        ("q1\n", ':1: expected a query and its group, each query once; found "q1"'),
        ("q1 a\nq1 b\n", ':2: .*; found "q1" again'),
    ],
)
def test_faulty_groups(text, fault):
    with pytest.raises(FormatError, match=fault):
        read_groups(file(text))
