"""The files of the quickstart."""

from hashlib import sha256

import pytest

from genm.collections import write_sample
from genm.errors import InputError
from genm.read import read_qrels, read_run

HASHES = {
    "bm25.trec": "e66b3a7224fd545a70233f865feeddde41bde2d6fd86c925ad93b05955ac6c2e",
    "dense.trec": "671500850e192f557884699d2c6f90a3bad45a4e6ccef8ccb0e3e790e32b89d4",
    "qrels.txt": "5c38a197219cee00d5c284d0a3e1f619989e986ea66e4030eabab1a80d9e6d88",
}


def test_the_files_are_the_same_everywhere(tmp_path):
    paths = write_sample(tmp_path / "new" / "folder")
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in paths} == HASHES
    assert {path.parent for path in paths} == {tmp_path / "new" / "folder"}


def test_they_are_runs_and_judgments_of_thirty_queries(tmp_path):
    bm25, dense, qrels = write_sample(tmp_path)
    for path in (bm25, dense):
        run = read_run(path)
        assert (run.name, len(run.queries), len(run.doc), run.notes) == (path.stem, 30, 750, ())
    judged = read_qrels(qrels)
    assert (len(judged.queries), len(judged.doc), int(judged.relevance.sum())) == (30, 600, 150)


def test_a_file_that_exists_is_kept_unless_forced(tmp_path):
    (tmp_path / "dense.trec").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"dense\.trec: expected no such file; found one\. .*--force"):
        write_sample(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dense.trec"]
    assert (tmp_path / "dense.trec").read_text(encoding="utf-8") == "mine"
    assert len(write_sample(tmp_path, force=True)) == 3
    assert (tmp_path / "dense.trec").read_text(encoding="utf-8") != "mine"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make this folder"):
        write_sample(tmp_path / "file" / "folder")
