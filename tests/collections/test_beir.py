import json

import pytest

from genm.collections.beir import is_beir_folder, load_beir
from genm.errors import FormatError, InputError


def write(folder, *, corpus=None, queries=None, test=None):
    corpus = corpus or [
        {"_id": "d1", "title": "Fox", "text": "red", "metadata": {}},
        {"_id": "d2", "title": "", "text": "blue sea"},
    ]
    queries = queries or [
        {"_id": "q2", "text": "sea"},
        {"_id": "q9", "text": "of train"},
        {"_id": "q1", "text": "fox"},
    ]
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(r) + "\n" for r in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(r) + "\n" for r in queries))
    test = test or "q1\td1\t2\nq1\td2\t0\nq2\td2\t1\n"
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + test)
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq9\td1\t1\n")
    return folder


def test_a_folder_becomes_a_collection(tmp_path):
    c = load_beir(write(tmp_path))
    assert c.name == tmp_path.name
    assert c.doc_ids == ("d1", "d2")
    assert c.doc_texts == ("Fox red", "blue sea")
    assert c.query_ids == ("q2", "q1")
    assert c.query_texts == ("sea", "fox")
    assert list(c.qrels.queries) == ["q1", "q2"]
    assert c.qrels.relevance.tolist() == [2, 0, 1]
    assert [(n.code, n.count) for n in c.notes] == [("unjudged-query", 1)]


def test_split_chooses_the_queries(tmp_path):
    assert load_beir(str(write(tmp_path)), split="train").query_ids == ("q9",)


def test_judged_documents_outside_the_corpus_are_said(tmp_path):
    c = load_beir(write(tmp_path, test="q1\tgone\t1\n"))
    assert {n.code for n in c.notes} == {"unjudged-query", "judged-document-missing"}
    assert list(c.qrels.docs) == ["gone"]


def test_unknown_split_lists_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"dev\.tsv: .*split 'dev'; the splits found: test, train"):
        load_beir(write(tmp_path), split="dev")


def test_missing_files_are_named(tmp_path):
    assert not is_beir_folder(tmp_path)
    with pytest.raises(InputError, match=r"corpus\.jsonl: expected BEIR's file"):
        load_beir(tmp_path)
    write(tmp_path)
    assert is_beir_folder(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    with pytest.raises(InputError, match=r"queries\.jsonl: expected BEIR's file"):
        load_beir(tmp_path)


def test_judged_query_without_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="'q7'"):
        load_beir(write(tmp_path, test="q7\td1\t1\n"))


@pytest.mark.parametrize("line", ["not json", "[1]", '{"_id": "x"}', '{"text": "x"}', '{"_id": "x", "text": 3}'])
def test_a_bad_record_is_named_with_its_line(tmp_path, line):
    write(tmp_path)
    with (tmp_path / "corpus.jsonl").open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(FormatError, match=r"corpus\.jsonl:4: expected a JSON object with _id and text"):
        load_beir(tmp_path)


def test_a_repeated_id_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"corpus\.jsonl:2: expected distinct ids; found 'd' again"):
        load_beir(write(tmp_path, corpus=[{"_id": "d", "text": "a"}, {"_id": "d", "text": "b"}]))


@pytest.mark.parametrize("line", ["q1\td1", "q1 d1 1", "q1\td1\t0.5", "q1\td1\t1\tx"])
def test_a_bad_judgment_is_named_with_its_line(tmp_path, line):
    with pytest.raises(FormatError, match=r"test\.tsv:3: expected"):
        load_beir(write(tmp_path, test=f"q1\td1\t1\n{line}\n"))
