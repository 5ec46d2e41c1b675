import pytest

import genm.collections as collections
from genm.errors import InputError
from genm.records import Collection, make_qrels


def test_exported_names_exist_and_are_sorted():
    assert collections.__all__ == sorted(collections.__all__)
    assert all(hasattr(collections, name) for name in collections.__all__)


def test_every_name_has_a_line_about_it():
    assert collections.collection_names() == ("med", "cran", "cisi", "cacm", "merged", "pydocs")
    assert all(collections.DESCRIPTIONS[name] for name in collections.collection_names())


@pytest.mark.parametrize(("name", "docs"), [("med", 1033), ("CRAN", 1400), ("merged", 7097), ("mc", 7097)])
def test_names_reach_their_reader(smart_data, name, docs):
    assert len(collections.load_collection(name, data=smart_data).doc_ids) == docs


def test_the_others_reach_theirs(tmp_path, monkeypatch):
    monkeypatch.setattr(collections, "load_pydocs", lambda: "pydocs")
    monkeypatch.setattr(collections, "load_irds", lambda name: name)
    monkeypatch.setattr(collections, "read_beir", lambda name, *, split: (str(name), split))
    (tmp_path / "corpus.jsonl").touch()
    assert collections.load_collection("pydocs") == "pydocs"
    assert collections.load_collection("irds:beir/SciFact") == "beir/SciFact"
    assert collections.load_collection(str(tmp_path), split="dev") == (str(tmp_path), "dev")


def test_unknown_name_says_what_there_is(tmp_path):
    with pytest.raises(
        InputError, match=r"expected one of med, cran, .*pydocs, a folder with corpus\.jsonl, or irds:ID"
    ):
        collections.load_collection(str(tmp_path))


def test_what_is_on_this_machine_is_told_without_reading(tmp_path, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    assert not collections.is_available("med")
    (tmp_path / "med").mkdir()
    for name in ("MED.ALL", "MED.QRY", "MED.REL"):
        (tmp_path / "med" / name).touch()  # empty: reading them would fail
    assert collections.is_available("med", data=tmp_path)
    assert not collections.is_available("merged", data=tmp_path)
    with pytest.raises(InputError, match="expected the folder of the collections"):
        collections.is_available("med", data=tmp_path / "no")


def test_facts_of_a_collection():
    qrels = make_qrels([("q2", "d1", 2), ("q2", "d2", 0)], query_order=["q1", "q2"])
    one = Collection("toy", ("d1", "d2"), ("a text", " "), ("q1", "q2"), ("one  query", "other"), qrels)
    assert collections.collection_facts(one) == {
        "documents": 2, "empty_documents": 1, "queries": 2, "judged_queries": 1, "judgments": 2, "relevant": 1,
        "first_query": "q1: one query",
    }  # fmt: skip
