"""docs/pull.md lists every key and engine, and its Python runs."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from genm.connect.config import PullConfig
from genm.connect.registry import ENGINES
from genm.connect.templates import NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "pull.md").read_text(encoding="utf-8")
CONFIG = """
engine = "sqlite"
address = "articles.db"
queries = "queries.tsv"
[rankers.bm25]
search = "SELECT id, -bm25(articles) FROM articles WHERE articles MATCH $words LIMIT $depth"
"""


def first_cells(title):
    part = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in part.splitlines() if line.startswith("| `")]


def test_every_key_is_listed():
    keys = {name.split(".")[0] for cell in first_cells("The configuration") for name in cell}
    assert keys - {""} == set(PullConfig.__struct_fields__)


def test_every_engine_is_listed():
    assert {cell[0] for cell in first_cells("Engines")} == set(ENGINES)


def test_every_name_of_templates_is_listed():
    assert {cell[0] for cell in first_cells("Templates")} == {f"${name}" for name in NAMES}


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("articles.db")) as connection:
        connection.execute("CREATE VIRTUAL TABLE articles USING fts5(id UNINDEXED, text)")
        connection.execute("INSERT INTO articles VALUES ('d1', 'red cars')")
        connection.commit()
    Path("queries.tsv").write_text("q1\tred\n", encoding="utf-8")
    Path("pull.toml").write_text(CONFIG, encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/pull.md", "exec"), names)
    assert names["pulled"].runs["length"]["q2"] == {"bicycles": 8.0}
    assert [doc_id for doc_id, _ in names["hits"]] == ["d1"]
