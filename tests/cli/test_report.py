"""`genm report`."""

import json
import shutil

import pytest

RUNS = ("bm25.trec", "dense.trec")
CALL = ("report", "--model", "model.json", "--qrels", "qrels.txt", *RUNS)


@pytest.fixture(scope="module")
def fitted(genm, made_up, tmp_path_factory):
    """A folder with the sample, a model and its evidence."""
    folder = tmp_path_factory.mktemp("report")
    shutil.copytree(made_up, folder, dirs_exist_ok=True)
    words = ("--method", "enm", "--folds", "2", "-o", folder / "model.json")
    assert genm("fit", "--qrels", folder / "qrels.txt", *(folder / run for run in RUNS), *words).code == 0
    return folder


@pytest.fixture
def here(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_in_a_pipe_reads_the_evidence_of_fit(genm, here):
    found = genm(*CALL, "--format", "json")
    assert found.code == 0
    assert found.err == ""
    report = json.loads(found.out)
    kept = json.loads((here / "model.evidence.json").read_text(encoding="utf-8"))
    assert report["made"]["evidence"] == "read"
    assert report["queries"]["query_ids"] == kept["query_ids"]
    assert report["headline"]["folds"] == 2
    assert [one["role"] for one in report["made"]["files"]] == [
        "model", "evidence", "judgments", "run bm25", "run dense",
    ]  # fmt: skip
    assert report["made"]["command"] == (
        "genm report --model model.json --qrels qrels.txt bm25.trec dense.trec --format json -o -"
    )
    assert genm(*CALL, "--format", "json").out == found.out  # no clock, no chance
    other = json.loads(genm(*CALL, "--queries", "1", "--title", "a b", "--format", "json").out)
    assert "--queries 1 --title 'a b' bm25.trec" in other["made"]["command"]


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("r.html", "<!doctype html>"),
        ("r.md", "# model.json"),
        ("r.tex", "% Tables"),
        ("r.json", "{"),
        ("r", "<!doc"),
    ],
)
def test_the_outputs_name_decides(genm, here, name, begins):
    found = genm(*CALL, "-o", name)
    assert (found.code, found.out, found.err) == (0, "", f"wrote {name}\n")
    assert (here / name).read_text(encoding="utf-8").lower().startswith(begins.lower())


def test_the_format_is_stronger_than_the_name(genm, here):
    assert genm(*CALL, "-o", "r.html", "--format", "md", "--title", "my <title>").code == 0
    assert (here / "r.html").read_text(encoding="utf-8").startswith("# my \\<title\\>\n")


def test_without_the_file_the_evidence_is_computed(genm, here):
    read = json.loads(genm(*CALL, "--format", "json").out)
    (here / "model.evidence.json").unlink()
    found = genm(*CALL, "--format", "json")
    assert found.err == "no model.evidence.json (genm fit -o writes it): cross-validating and refitting\n"
    report = json.loads(found.out)
    assert report["made"]["evidence"] == "computed"
    assert report["headline"] == read["headline"]  # the same folds, which the model says, give the same figures
    assert not (here / "model.evidence.json").exists()


def test_evidence_of_other_data_is_not_used(genm, here):
    lines = (here / "qrels.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (here / "qrels.txt").write_text("".join(lines[:200]), encoding="utf-8")
    found = genm(*CALL, "--format", "json")
    assert "note: model.evidence.json is not used: it is of other runs, judgments or query weights." in found.err
    report = json.loads(found.out)
    assert (report["made"]["evidence"], report["made"]["matches_training"]) == ("computed", False)


def test_a_file_of_an_earlier_release_is_used_and_what_it_lacks_is_learned_again(genm, here):
    read = json.loads(genm(*CALL, "--format", "json").out)
    document = json.loads((here / "model.evidence.json").read_text(encoding="utf-8"))
    assert document.pop("without_training")
    (here / "model.evidence.json").write_text(json.dumps({**document, "version": 2}), encoding="utf-8")
    found = genm(*CALL, "--format", "json")
    assert "note: model.evidence.json: it is of version 2 and does not hold what the intervals" in found.err
    report = json.loads(found.out)
    assert report["made"]["evidence"] == "read"
    assert (report["verdicts"], report["headline"]) == (read["verdicts"], read["headline"])


def test_broken_evidence_is_refused(genm, here):
    (here / "model.evidence.json").write_text("{", encoding="utf-8")
    assert "model.evidence.json:1: expected JSON" in genm(*CALL, "--format", "json").fault


def test_texts_and_the_number_of_queries_that_open(genm, here):
    (here / "docs.tsv").write_text("".join(f"d{i:03}\ttext {i}\n" for i in range(400)), encoding="utf-8")
    (here / "topics.tsv").write_text("1\tthe first\n", encoding="utf-8")
    words = ("--texts", "docs.tsv", "--query-texts", "topics.tsv", "--queries", "4", "--format", "json")
    found = genm(*CALL, *words)
    report = json.loads(found.out)
    assert len(report["details"]) == 4
    assert "note: The queries that open to their documents are 4 of 30 queries" in found.err
    assert report["queries"]["texts"][report["queries"]["query_ids"].index("1")] == "the first"
    for detail in report["details"]:
        for doc in detail["docs"]:
            assert doc["text"] == f"text {int(doc['id'][1:])}"


def test_query_weights_belong_to_the_data(genm, here):
    (here / "weights.txt").write_text("".join(f"{q} {1 + q % 2}\n" for q in range(1, 31)), encoding="utf-8")
    fit = ("fit", "--method", "enm", "--folds", "2", "--qrels", "qrels.txt", *RUNS, "-o", "model.json")
    assert genm(*fit, "--query-weights", "weights.txt").code == 0
    weighted = json.loads(genm(*CALL, "--query-weights", "weights.txt", "--format", "json").out)
    assert weighted["made"]["evidence"] == "read"
    assert "is not used" in genm(*CALL, "--format", "json").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "nowhere/r.html"), "expected a folder to write into; found no nowhere"),
        (("-o", "bm25.trec"), "bm25.trec: expected a file that is not read here; found the same file"),
        (("-o", "model.json"), "model.json: expected a file that is not read here; found the same file"),
        (("--texts", "nothing.tsv"), "nothing.tsv"),
        (("--format", "pdf"), "--format"),
        (("third=bm25.trec",), "expected runs named bm25, dense; unknown third"),
    ],
)
def test_refusals(genm, here, words, message):
    before = (here / "model.json").read_bytes()
    assert message in genm(*CALL, *words).fault
    assert (here / "model.json").read_bytes() == before


def test_a_page_is_not_for_a_terminal(genm, here, monkeypatch):
    from genm.cli import report

    monkeypatch.setattr(
        report, "sys", type("Sys", (), {"stdout": type("Out", (), {"isatty": lambda self: True})()})
    )
    assert "expected a file for the HTML page; found a terminal" in genm(*CALL).fault
