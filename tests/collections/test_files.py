"""Collections made of files that people have."""

from pathlib import Path

import pytest
from read.bad_cases import as_dict

from genm.collections import load_collection, read_collection
from genm.errors import FormatError, InputError

SMART_DOCS = ".I 1\n.T\nShips\n.W\nA ship.\n.I 2\n.W\nTwo\n"
SMART_QUERIES = ".I 1\n.W\nships\n.I 2\n.T\ntitle only\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "b").mkdir(parents=True)
    (tmp_path / "docs" / "a.txt").write_text("<DOC><DOCNO>d1</DOCNO>ships</DOC>\n")
    (tmp_path / "docs" / "b" / "c.jsonl").write_text('{"id": "d2", "text": "trains"}\n')
    (tmp_path / "docs" / ".hidden").write_text("not read")
    (tmp_path / "queries.csv").write_text("qid,query\nq1,a ship\nq2,nothing\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d9 0\nq7 0 d1 1\n")
    return tmp_path


def test_a_folder_of_files(folder: Path) -> None:
    found = read_collection(folder / "docs", folder / "queries.csv", folder / "qrels.txt")
    assert found.name == "docs"
    assert dict(zip(found.doc_ids, found.doc_texts, strict=True)) == {"d1": "ships", "d2": "trains"}
    assert dict(zip(found.query_ids, found.query_texts, strict=True)) == {"q1": "a ship", "q2": "nothing"}
    assert as_dict(found.qrels) == {"q1": {"d1": 1, "d9": 0}, "q7": {"d1": 1}}
    assert {n.code: n.count for n in found.notes} == {
        "unjudged-queries": 1, "unknown-queries": 1, "unknown-documents": 1,
    }  # fmt: skip


def test_without_judgments(folder: Path) -> None:
    found = read_collection(str(folder / "docs"), folder / "queries.csv", name="mine")
    assert (found.name, len(found.qrels.queries), found.notes) == ("mine", 0, ())


def test_a_document_in_two_files(folder: Path) -> None:
    (folder / "docs" / "z.tsv").write_text("d1\tother\nd3\tplanes\n")
    with pytest.raises(
        FormatError, match=r"z\.tsv: expected each document in one file; found \"d1\" again. It is in"
    ):
        read_collection(folder / "docs", folder / "queries.csv")
    found = read_collection(folder / "docs", folder / "queries.csv", lenient=True)
    assert found.doc_texts == ("ships", "trains", "planes")
    assert [n.code for n in found.notes] == ["id-twice"]


@pytest.mark.parametrize(
    ("judgments", "expected", "noted"),
    [
        ("1 2 0 0.000000\n2 1 0 0\n", {"1": {"2": 1}, "2": {"1": 1}}, True),
        ("1 2\n01 2\n1 1\n", {"1": {"2": 1, "1": 1}}, True),
        ("1 2 -1\n", {"1": {"2": 1}}, True),
        ("1 0 2 1\n1 0 1 0\n", {"1": {"2": 1, "1": 0}}, False),
    ],
)
def test_smart_files_under_any_name(tmp_path: Path, judgments: str, expected: object, noted: bool) -> None:
    for name, content in (("my.docs", SMART_DOCS), ("my.queries", SMART_QUERIES), ("my.rel", judgments)):
        (tmp_path / name).write_text(content)
    found = read_collection(tmp_path / "my.docs", tmp_path / "my.queries", tmp_path / "my.rel")
    assert found.doc_texts == ("Ships A ship.", "Two")
    assert found.query_texts == ("ships", "title only")
    assert as_dict(found.qrels) == expected
    assert ("smart-judgments" in [n.code for n in found.notes]) == noted


def test_a_record_number_of_5000_digits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text(f".I {'9' * 5000}\n.W\nx\n")
    with pytest.raises(FormatError, match="expected a record mark such as"):
        read_collection(tmp_path / "docs", tmp_path / "docs")


def test_files_that_do_not_belong_together(folder: Path) -> None:
    (folder / "other.txt").write_text("x 0 d1 1\n")
    with pytest.raises(FormatError, match="Do the files belong together"):
        read_collection(folder / "docs", folder / "queries.csv", folder / "other.txt")
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="expected a folder with documents; found no file in it"):
        read_collection(folder / "empty", folder / "queries.csv")


def test_a_folder_without_queries_says_how_to_give_them(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"found other files. Documents in files need their queries too: genm rank"
    ):
        load_collection(str(folder / "docs"))
