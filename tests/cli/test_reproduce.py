"""`genm reproduce`."""

import json

import pytest

from genm.cli.reproduce import PAPERS
from genm.reproduce.figures import Drawing
from genm.reproduce.paper import COLLECTIONS


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    pytest.importorskip("Stemmer", reason="PyStemmer is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENM_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    texts = ["red fox forest", "blue sea tide", "red sea ship", "blue sky bird", "forest bird fox", "ship tide sea"]
    docs = [{"_id": f"d{i}", "title": "", "text": f"{text} {texts[i - 1]}"} for i, text in enumerate(texts)]
    queries = [
        {"_id": f"q{i}", "text": text} for i, text in enumerate(("red fox", "blue sea", "ship", "forest bird"))
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    judged = "q0\td0\t1\nq1\td1\t1\nq1\td2\t1\nq2\td5\t1\nq3\td4\t1\n"
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


def test_a_folder_with_the_page_and_a_summary(genm, tiny):
    found = genm("reproduce", "--collections", "tiny", "--splits", "1", "-o", "out", "--no-figures")
    assert found.code == 0
    assert found.out.startswith("Held out, mean over 1 split into halves\n")
    assert max(map(len, found.out.splitlines())) <= 80
    assert found.err.endswith("wrote out/index.html\n")
    assert "BM25" in (tiny.parent / "out" / "tables" / "more-rankers.md").read_text()
    manifest = json.loads((tiny.parent / "out" / "manifest.json").read_text())
    assert manifest["command"] == ("genm reproduce --collections tiny --splits 1 --seed 0 -o out --no-figures")
    assert not (tiny.parent / "out" / "figures").exists()


def test_json_figures_and_the_papers_rankers_alone(genm, tiny, monkeypatch):
    drawn = Drawing("dot", "A dot", "One dot.", "<svg></svg>")
    monkeypatch.setattr("genm.reproduce.page.draw_figures", lambda *_, **__: (drawn,))
    options = ("--splits", "1", "--seed", "2", "--paper-rankers", "--format", "json")
    found = genm("reproduce", "--collections", "tiny", *options)
    assert found.code == 0
    plain = json.loads(found.out)
    assert (plain["splits"], plain["seed"]) == (1, 2)
    assert plain["collections"]["tiny"]["more"] == {}
    assert (tiny.parent / "results" / "figures" / "dot.svg").read_text() == "<svg></svg>"


def test_tsv(genm, tiny):
    found = genm(
        "reproduce", "--collections", "tiny", "--splits", "1", "--no-figures", "--paper-rankers", "--format", "tsv"
    )
    assert [line.split("\t")[:3] for line in found.out.splitlines()[1:]] == [
        ["tiny", "MAP", "-"],
        ["tiny", "Pr@1", "-"],
        ["tiny", "Pr@5", "-"],
    ]


@pytest.mark.needs("Stemmer")
def test_refusals_come_before_the_work(genm, tiny, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    assert "GENM_DATA" in genm("reproduce", "--collections", "med", "--splits", "1").fault
    assert "expected one of med" in genm("reproduce", "--collections", "nowhere").fault
    (tiny.parent / "file").touch()
    assert "cannot make this folder" in genm("reproduce", "--collections", "tiny", "-o", "file/out").fault
    monkeypatch.setattr("genm.reproduce.page.new_figure", _missing)
    monkeypatch.setattr("genm.reproduce.page.reproduce", None)
    assert "genm[plots]" in genm("reproduce", "--collections", "tiny").fault


def _missing(*_args, **_options):
    from genm.errors import MissingExtraError

    raise MissingExtraError("drawing", "plots")


def test_the_default_is_the_papers_five():
    assert PAPERS.split(",") == list(COLLECTIONS)
