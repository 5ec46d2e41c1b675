"""`genm pull` on a small SQLite file: nothing but Python's own library is needed."""

import json
import sqlite3
from contextlib import closing

import pytest

from genm.connect.registry import ENGINES

ROWS = [("d1", "red cars"), ("d2", "blue cars cars"), ("d3", "green trees")]
SEARCH = "SELECT id, -bm25(articles) FROM articles WHERE articles MATCH $words ORDER BY 2 DESC LIMIT $depth"
CONFIG = f"""
engine = "sqlite"
address = "articles.db"
queries = "queries.tsv"

[rankers.bm25]
search = "{SEARCH}"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a database, queries and a configuration; the working folder."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("articles.db")) as connection:
        connection.execute("CREATE VIRTUAL TABLE articles USING fts5(id UNINDEXED, text)")
        connection.executemany("INSERT INTO articles VALUES (?, ?)", ROWS)
        connection.commit()
    (tmp_path / "queries.tsv").write_text('q1\tred "cars"\nq2\ttrees?\n', encoding="utf-8")
    (tmp_path / "pull.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def run_of(path):
    return [tuple(line.split()[i] for i in (0, 2, 3, 5)) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_configuration_gives_runs(genm, folder):
    done = genm("pull", "pull.toml", "-o", "out")
    assert done.code == 0, done.err
    assert run_of(folder / "out" / "bm25.trec") == [
        ("q1", "d1", "1", "bm25"),
        ("q1", "d2", "2", "bm25"),
        ("q2", "d3", "1", "bm25"),
    ]
    assert "wrote out/bm25.trec" in done.err.replace("\\", "/")
    first = (folder / "out" / "bm25.trec").read_bytes()
    assert genm("pull", "pull.toml", "-o", "out").code == 0
    assert (folder / "out" / "bm25.trec").read_bytes() == first
    assert genm("inspect", "out/bm25.trec").code == 0


def test_options_do_without_a_file_and_replace_its_keys(genm, folder):
    given = (
        "--engine",
        "sqlite",
        "--address",
        "articles.db",
        "--ranker",
        f"words={SEARCH}",
        "--queries",
        "queries.tsv",
    )
    done = genm("pull", *given, "--depth", 1, "--format", "json", "-o", "out")
    summary = json.loads(done.out)
    assert summary["rankers"] == [
        {"ranker": "words", "queries": 2, "without documents": 0, "documents": 2, "partial": 0}
    ]
    assert genm("pull", "pull.toml", "--depth", 1, "--set", "rankers.bm25.depth=2", "-o", "two").code == 0
    assert len(run_of(folder / "two" / "bm25.trec")) == 3
    assert genm("pull", "pull.toml", "--format", "tsv", "-o", "two").out == "bm25\t2\t0\t3\t0\n"


def test_a_log_gives_queries(genm, folder):
    (folder / "searches.log").write_text("red cars\nred cars\ntrees\n", encoding="utf-8")
    done = genm("pull", "pull.toml", "--log", "searches.log", "-o", "out")
    assert done.code == 0, done.err
    texts = (folder / "out" / "queries.tsv").read_text(encoding="utf-8")
    assert [line.split("\t")[1] for line in texts.splitlines()] == ["red cars", "trees"]
    assert "2 distinct queries" in done.err
    assert "one of them" in genm("pull", "pull.toml", "--log", "a", "--queries", "b").fault


def test_failures_are_summed_up_and_end_with_code_2(genm, folder):
    broken = SEARCH.replace("$words", "$query")
    done = genm("pull", "pull.toml", "--ranker", f"bm25={broken}", "-o", "out")
    assert done.code == 2
    assert "failed: bm25, query q2: sqlite: query 'q2': fts5: syntax error" in done.err
    assert "1 of 2 searches failed, so no run was written" in done.err
    assert not (folder / "out" / "bm25.trec").exists()
    assert "Continue it with --resume" in genm("pull", "pull.toml", "-o", "out").fault
    assert "found other rankers" in genm("pull", "pull.toml", "-o", "out", "--resume").fault
    skipped = genm("pull", "pull.toml", "--ranker", f"bm25={broken}", "-o", "out", "--resume", "--skip-failed")
    assert skipped.code == 0
    assert "note: 1 queries failed and were left out: q2" in skipped.err
    assert {row[0] for row in run_of(folder / "out" / "bm25.trec")} == {"q1"}


@pytest.mark.parametrize("engine", ENGINES)
def test_init_writes_an_example_for_every_engine(genm, tmp_path, engine):
    printed = genm("pull", "--init", engine)
    assert printed.out.startswith("# genm pull")
    path = tmp_path / "pull.toml"
    assert genm("pull", "--init", engine, path).code == 0
    assert path.read_text(encoding="utf-8") == printed.out
    assert "expected a new file" in genm("pull", "--init", engine, path).fault


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--init", "solar"), "Did you mean solr"),
        ((), "expected engine; found none"),
        (("missing.toml",), "missing.toml: expected a TOML file"),
        (("pull.toml", "--set", "x"), "expected KEY=VALUE"),
        (("pull.toml", "--set", "engine.x=1"), "expected a table engine"),
        (("pull.toml", "--ranker", "x"), "expected NAME=TEMPLATE"),
        (("pull.toml", "--set", "dept=1"), "found 'dept'"),
        (("pull.toml", "--password", "hunter2"), "expected no secret"),
        (("pull.toml", "--api-key", "hunter2"), "expected no secret"),
        pytest.param(
            ("pull.toml", "--engine", "solr", "--address", "localhost:8983"),
            "address: expected a URL",
            marks=pytest.mark.needs("httpx"),
        ),
        (("pull.toml", "--queries", "missing.tsv"), "missing.tsv"),
        (
            ("pull.toml", "--ranker", "dense=SELECT id, $vector LIMIT $depth"),
            "rankers.dense: expected vectors of the queries",
        ),
        (("pull.toml", "-o", "."), "found the same file as queries.tsv"),
    ],
)
def test_a_wrong_call_is_one_line(genm, folder, words, message):
    fault = genm("pull", *words).fault
    assert message in fault
    assert "hunter2" not in fault


def test_a_configuration_that_an_output_would_replace_is_kept(genm, folder):
    (folder / "pull.toml").rename(folder / "pull.json")
    (folder / "out").mkdir()
    (folder / "out" / "pull.json").hardlink_to(folder / "pull.json")
    assert "found the same file as pull.json" in genm("pull", "pull.json", "-o", "out").fault


def test_unchecked_certificates_are_said(genm, folder):
    done = genm("pull", "pull.toml", "--insecure", "-o", "out")
    assert "note: certificates are not checked" in done.err
