"""SQLite with FTS5 and sqlite-vec, through apsw: many builds of Python's own module load no extensions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from engines.differential import cases, check
from engines.proof import Proof

apsw = pytest.importorskip("apsw", reason="the package apsw is not installed")
sqlite_vec = pytest.importorskip("sqlite_vec", reason="the package sqlite-vec is not installed")
WINDOW = 50


@pytest.fixture(scope="module")
def connection(proof: Proof) -> Iterator[Any]:
    """A database in memory that holds the texts."""
    made = apsw.Connection(":memory:")
    made.enable_load_extension(True)
    sqlite_vec.load(made)
    made.execute("CREATE VIRTUAL TABLE articles USING fts5(id UNINDEXED, text)")
    made.execute(
        "CREATE VIRTUAL TABLE vectors USING vec0(id TEXT PRIMARY KEY, embedding float[32] distance_metric=cosine)"
    )
    with made:
        made.executemany("INSERT INTO articles VALUES (?, ?)", proof.texts.docs.items())
        packed = [(doc, sqlite_vec.serialize_float32(v)) for doc, v in proof.texts.doc_vectors.items()]
        made.executemany("INSERT INTO vectors VALUES (?, ?)", packed)
    yield made
    made.close()


def parameters(proof: Proof, query: str) -> tuple[str, bytes]:
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", proof.texts.queries[query]))
    return words, sqlite_vec.serialize_float32(proof.texts.query_vectors[query])


@pytest.fixture(scope="module")
def runs(connection: Any, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    """The lists of each ranker, by the SELECTs of its page."""
    by_words = (
        "SELECT id, -bm25(articles) AS score FROM articles WHERE text MATCH ? "
        f"ORDER BY score DESC, id DESC LIMIT {WINDOW}"
    )
    by_vector = f"SELECT id, 1 - distance FROM vectors WHERE embedding MATCH ? AND k = {WINDOW}"
    pulled: dict[str, dict[str, dict[str, float]]] = {"bm25": {}, "dense": {}}
    for query in proof.texts.queries:
        words, vector = parameters(proof, query)
        pulled["bm25"][query] = dict(connection.execute(by_words, (words,)))
        pulled["dense"][query] = dict(connection.execute(by_vector, (vector,)))
    return pulled


TECHNIQUES = ["minmax", "none", "max", "sum", "zscore", "l2", "rank", "reciprocal", "affine", "atan", "sigmoid"]


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_exported_statement_ranks_as_the_model(
    connection: Any, runs: Any, proof: Proof, technique: str
) -> None:
    differing = proof.compare(
        ("SQLite", apsw.sqlite_lib_version()),
        "sqlite",
        runs,
        lambda exported, query: [row[0] for row in connection.execute(exported, parameters(proof, query))],
        options=("--technique", technique, "--window", str(WINDOW)),
    )
    assert not differing


def given_scores(lists: Sequence[Mapping[str, float]]) -> dict[str, str]:
    said = {"size": "50"}
    for ranker, _ in zip("abc", lists, strict=False):
        said |= {f"{ranker}.type": "scores", f"{ranker}.table": f"given_{ranker}", f"{ranker}.field": "score"}
    return said


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_simulator_is_the_engine(technique: str) -> None:
    for case in cases("sqlite", technique, given_scores, rankers=("a", "b", "c"), negative=True):
        made = apsw.Connection(":memory:")
        for ranker, scores in zip("abc", case.lists, strict=True):
            made.execute(f"CREATE TABLE given_{ranker} (id TEXT, score REAL)")
            made.executemany(f"INSERT INTO given_{ranker} VALUES (?, ?)", scores.items())
        check(case, dict(made.execute(case.exported.text)), relative=1e-12)
        made.close()
