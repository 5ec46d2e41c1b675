"""The report of a model file in one call."""

import hashlib

import pytest

from genm.evidence import save_evidence
from genm.model import save_model
from genm.report import render_report, report_model


@pytest.fixture
def saved(built, tmp_path):
    """The model and its evidence as files."""
    save_model(built.model, tmp_path / "m.json")
    save_evidence(built.kept, tmp_path / "m.evidence.json")
    return tmp_path / "m.json"


def test_evidence_beside_the_model_is_read(built, saved):
    told = []
    report = report_model(built.model, built.aligned, path=saved, command="make it", tell=told.append)
    assert (told, report["made"]["evidence"], report["made"]["command"]) == ([], "read", "make it")
    assert report["title"] == "m.json"
    for part in ("headline", "queries", "details"):
        assert report[part] == built.report[part]
    assert render_report(report, "md").startswith("# m.json")


def test_files_are_listed_with_their_hashes_and_texts_are_read(built, saved):
    texts = saved.parent / "texts.tsv"
    texts.write_text("".join(f"d{i:03}\ttext {i}\n" for i in range(80)), encoding="utf-8")
    files = {"judgments": "-", "query weights": None, "texts": str(texts)}
    report = report_model(built.model, built.aligned, path=saved, files=files, title="t", n_details=2)
    listed = {one["role"]: one for one in report["made"]["files"]}
    assert list(listed) == ["model", "evidence", "judgments", "texts"]
    assert listed["judgments"]["sha256"] is None
    assert listed["model"]["sha256"] == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert listed["texts"]["n_bytes"] == texts.stat().st_size
    assert len(report["details"]) == 2
    assert all(doc["text"].startswith("text ") for detail in report["details"] for doc in detail["docs"])


def test_missing_evidence_and_evidence_of_other_data_are_computed_and_told(built, saved):
    told = []
    other = built.aligned.select(range(20))
    report = report_model(built.model, other, path=saved, tell=told.append)
    assert report["made"]["evidence"] == "computed"
    assert "m.evidence.json is not used: it is of other runs, judgments or query weights." in told[0]
    (saved.parent / "m.evidence.json").unlink()
    again = report_model(built.model, other, path=saved, tell=told.append)
    assert again["headline"] == report["headline"]
    assert told[1].endswith("m.evidence.json (genm fit -o writes it): cross-validating and refitting")
