import json

import pytest


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "", "text": "red fox"}\n{"_id": "d2", "title": "", "text": ""}\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "fox"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return folder


@pytest.mark.needs("sklearn")
def test_list_reads_none_of_them(genm, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    monkeypatch.setattr("genm.collections.load_collection", None)
    rows = [line.split("\t") for line in genm("collections", "list", "--format", "tsv").out.splitlines()]
    assert [row[0] for row in rows] == ["med", "cran", "cisi", "cacm", "merged", "pydocs"]
    assert [row[1] for row in rows] == ["no"] * 5 + ["yes"]
    found = json.loads(genm("collections", "list", "--format", "json").out)
    assert found[0] == {"name": "med", "here": False, "description": rows[0][2]}
    assert genm("collections").out == genm("collections", "list").out


def test_list_finds_files(genm, tmp_path):
    folder = tmp_path / "med"
    folder.mkdir()
    for name in ("MED.ALL", "MED.QRY", "MED.REL"):
        (folder / name).touch()
    rows = genm("collections", "list", "--data", tmp_path, "--format", "tsv").out.splitlines()
    assert [row.split("\t")[1] for row in rows[:2]] == ["yes", "no"]
    assert "expected the folder of the collections" in genm("collections", "list", "--data", tmp_path / "no").fault


@pytest.mark.needs("sklearn")
def test_all_that_are_listed_can_be_found(genm, smart_data):
    rows = genm("collections", "list", "--data", smart_data, "--format", "tsv").out.splitlines()
    assert [row.split("\t")[1] for row in rows] == ["yes"] * 6


def test_show(genm, beir):
    facts = json.loads(genm("collections", "show", beir, "--format", "json").out)
    assert facts == {
        "documents": 2,
        "empty_documents": 1,
        "queries": 1,
        "judged_queries": 1,
        "judgments": 1,
        "relevant": 1,
        "first_query": "q1: fox",
    }
    assert genm("collections", "show", beir, "--format", "tsv").out.splitlines()[0] == "documents\t2"
    assert "empty documents  1\n" in genm("collections", "show", beir).out


def test_refusals(genm, tmp_path, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    assert "expected one of med, cran" in genm("collections", "show", "nowhere").fault
    assert "--data DIR" in genm("collections", "show", "med").fault
    assert "expected one of med, cran, cisi, cacm" in genm("collections", "get", "pydocs").fault


def test_no_network_is_one_line(genm, tmp_path):
    found = genm("collections", "get", "med", "--data", tmp_path, "--url", "http://127.0.0.1:9/")
    assert found.fault.startswith("genm: fetch: http://127.0.0.1:9/medl/med.tar.gz: cannot be downloaded")


def test_get_tells_how_to_go_on(genm, tmp_path, monkeypatch):
    asked = []

    def get_collection(name, destination, **options):
        asked.append((name, destination, sorted(options)))
        return tmp_path / name

    monkeypatch.setattr("genm.collections.get_collection", get_collection)
    monkeypatch.setenv("GENM_DATA", "elsewhere")
    found = genm("collections", "get", "med")
    assert found.err == f"{tmp_path / 'med'} is complete; use it with --data elsewhere or GENM_DATA=elsewhere\n"
    genm("collections", "get", "cran", "--data", "here", "--url", "http://x/")
    assert asked == [("med", "elsewhere", ["progress"]), ("cran", "here", ["base_url", "progress"])]
