import subprocess
import sys

import pytest

import genm.collections as rooms
from genm.errors import InputError


def test_exported_names_exist_and_are_sorted():
    assert rooms.__all__ == sorted(rooms.__all__)
    assert all(hasattr(rooms, name) for name in rooms.__all__)


def test_every_name_has_a_line_about_it():
    assert rooms.collection_names() == ("med", "cran", "cisi", "cacm", "merged", "pydocs")
    assert all(rooms.DESCRIPTIONS[name] for name in rooms.collection_names())


@pytest.mark.parametrize(("name", "docs"), [("med", 1033), ("CRAN", 1400), ("merged", 7097), ("mc", 7097)])
def test_names_reach_their_reader(smart_data, name, docs):
    assert len(rooms.load_collection(name, data=smart_data).doc_ids) == docs


def test_the_others_reach_theirs(tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "load_pydocs", lambda: "pydocs")
    monkeypatch.setattr(rooms, "load_irds", lambda name: name)
    monkeypatch.setattr(rooms, "read_beir", lambda name, *, split: (str(name), split))
    (tmp_path / "corpus.jsonl").touch()
    assert rooms.load_collection("pydocs") == "pydocs"
    assert rooms.load_collection("irds:beir/SciFact") == "beir/SciFact"
    assert rooms.load_collection(str(tmp_path), split="dev") == (str(tmp_path), "dev")


def test_unknown_name_says_what_there_is(tmp_path):
    with pytest.raises(
        InputError, match=r"expected one of med, cran, .*pydocs, a folder with corpus\.jsonl, or irds:ID"
    ):
        rooms.load_collection(str(tmp_path))


def test_importing_the_room_loads_nothing_heavy():
    heavy = ("sklearn", "scipy.sparse", "ir_datasets", "polars")
    code = f"import sys, genm.collections; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
