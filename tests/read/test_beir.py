"""BEIR folders become collections."""

import gzip
import json
from pathlib import Path

import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import read_beir


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "tiny"
    (root / "qrels").mkdir(parents=True)
    entries = [
        {"_id": "d1", "title": "Title", "text": "body\u2028more"},
        {"_id": "d2", "title": "", "text": "only text"},
    ]
    (root / "corpus.jsonl").write_text(
        "".join(json.dumps(e, ensure_ascii=False) + "\n" for e in entries), encoding="utf-8"
    )
    queries = [{"_id": f"q{i}", "text": f"query {i}", "metadata": {}} for i in (1, 2, 3)]
    (root / "queries.jsonl").write_text("".join(json.dumps(e) + "\n" for e in queries), encoding="utf-8")
    (root / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td2\t1\nq1\td1\t2\n", encoding="utf-8")
    (root / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n", encoding="utf-8")
    return root


def test_a_folder(folder: Path) -> None:
    collection = read_beir(folder)
    assert collection.name == "tiny"
    assert collection.doc_ids == ("d1", "d2")
    assert collection.doc_texts == ("Title body\u2028more", "only text")
    assert collection.query_ids == ("q1", "q3")
    assert collection.query_texts == ("query 1", "query 3")
    assert as_dict(collection.qrels) == {"q3": {"d2": 1}, "q1": {"d1": 2}}
    assert [(n.code, n.count) for n in collection.notes] == [("unjudged-queries", 1)]


def test_another_split_and_packed_files(folder: Path) -> None:
    packed = folder / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    (folder / "corpus.jsonl").unlink()
    told: list[str] = []
    collection = read_beir(str(folder), split="dev", progress=lambda task, done, total: told.append(task))
    assert collection.query_ids == ("q2",)
    assert len(collection.doc_ids) == 2
    assert f"reading {packed}" in told


def test_a_split_that_is_not_there(folder: Path) -> None:
    with pytest.raises(
        FormatError, match=r"tiny: expected a folder in BEIR form with qrels/train\.tsv; found no .*dev\.tsv"
    ):
        read_beir(folder, split="train")
    with pytest.raises(FormatError, match=r"expected a folder in BEIR form with corpus\.jsonl"):
        read_beir(folder / "nowhere")


def test_not_utf_8(folder: Path) -> None:
    with (folder / "corpus.jsonl").open("ab") as file:
        file.write(b'{"_id": "d3", "text": "caf\xe9"}\n')
    with pytest.raises(FormatError, match=r"corpus\.jsonl:3: expected UTF-8 text"):
        read_beir(folder)
    assert read_beir(folder, lenient=True).doc_texts[2] == "café"


def test_an_empty_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"corpus\.jsonl: expected lines such as"):
        read_beir(folder)
