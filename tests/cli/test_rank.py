import pytest

from genm.cli.rank import DEFAULT, Profiles
from genm.records import Collection, make_qrels


@pytest.fixture
def beir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENM_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    texts = {"d1": "red fox red fox", "d2": "blue sea fox", "d3": "blue sky sea", "d4": ""}
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{name}", "title": "", "text": "{text}"}}\n' for name, text in texts.items())
    )
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "fox"}\n{"_id": "q2", "text": "blue sea"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t1\n")
    return folder


@pytest.mark.needs("Stemmer")
def test_texts_become_runs_and_judgments(genm, beir):
    found = genm("rank", "tiny", "--rankers", "tfidf", "--rankers", "bm25", "-o", "out/runs")
    assert (found.code, found.out) == (0, "")
    assert sorted(p.name for p in (beir.parent / "out" / "runs").iterdir()) == [
        "bm25.trec",
        "qrels.txt",
        "tfidf.trec",
    ]
    assert "wrote out/runs/tfidf.trec: 2 queries, 8 rows\n" in found.err
    assert found.err.endswith("wrote out/runs/qrels.txt\n")
    assert found.err.count("first: d4") == 1
    measured = genm("evaluate", "out/runs/qrels.txt", "out/runs/tfidf.trec", "-m", "RR", "--format", "tsv", "-q")
    assert "RR\tq2\t1.0000\n" in measured.out


def test_top_and_the_folder_without_being_asked(genm, beir):
    assert genm("rank", "tiny", "--rankers", "tfidf", "--top", "1").code == 0
    assert len((beir.parent / "runs" / "tfidf.trec").read_text().splitlines()) == 2


def test_the_default_is_the_top_thousand_and_all_is_all(genm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENM_CACHE", str(tmp_path / "cache"))
    qrels = make_qrels([("q", "d0001", 1)], query_order=["q"])
    ids = tuple(f"d{i:04}" for i in range(1200))
    texts = tuple(f"fox {'red ' * (i % 7)}sea{i}" for i in range(1200))
    large = Collection("large", ids, texts, ("q",), ("red fox",), qrels)
    monkeypatch.setattr("genm.collections.load_collection", lambda *_, **__: large)
    lines = {}
    for top in ((), ("--top", "1000"), ("--top", "all"), ("--top", "3")):
        found = genm("rank", "large", "--rankers", "tfidf", *top)
        said = "note: runs hold the top 1000 of 1,200 documents of each query; --top all writes all.\n" in found.err
        lines[top] = (tmp_path / "runs" / "tfidf.trec").read_text().splitlines(), said
    assert [(len(rows), said) for rows, said in lines.values()] == [
        (1000, True), (1000, True), (1200, False), (3, False),
    ]  # fmt: skip
    assert lines["--top", "all"][0][:1000] == lines[()][0]


def test_a_small_collection_is_written_whole_without_a_note(genm, beir):
    assert "note: runs hold" not in genm("rank", "tiny", "--rankers", "tfidf").err


@pytest.mark.parametrize("top", ["0", "none", "-1", "1.5"])
def test_a_depth_that_is_none(genm, beir, top):
    assert f"--top {top}: expected a positive integer or all." in genm("rank", "tiny", "--top", top).fault


@pytest.mark.needs("Stemmer")
def test_texts_are_written_when_asked_for(genm, beir):
    found = genm("rank", str(beir), "--rankers", "tfidf", "--texts", "--stem", "english", "-o", "out")
    assert found.code == 0
    lines = (beir.parent / "out" / "docs.tsv").read_text().splitlines()
    assert len(lines) == len((beir / "corpus.jsonl").read_text().splitlines())
    assert all(line.count("\t") == 1 for line in lines)
    assert "docs.tsv and" in found.err


def test_refusals(genm, beir, monkeypatch):
    monkeypatch.delenv("GENM_DATA", raising=False)
    assert "expected one of tfidf" in genm("rank", "tiny", "--rankers", "tfidf,nope").fault
    assert "expected one of med" in genm("rank", "nowhere").fault
    assert "smart_stopwords.txt" in genm("rank", "tiny", "--profile", "paper", "--rankers", "tfidf").fault
    assert not (beir.parent / "runs").exists()
    (beir.parent / "file").touch()
    assert "cannot make this folder" in genm("rank", "tiny", "--rankers", "tfidf", "-o", "file/runs").fault


def test_profiles_and_rankers_are_those_of_the_library():
    from genm.rankers import DEFAULT as DEFAULT_PROFILE
    from genm.rankers import PAPER_RANKERS, paper_profile

    assert ",".join(PAPER_RANKERS) == DEFAULT
    assert [p.value for p in Profiles] == [DEFAULT_PROFILE.name, paper_profile({"the"}).name]
