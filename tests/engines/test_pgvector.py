"""PostgreSQL with pgvector: the system's, or the one of the package pgserver."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from engines.differential import cases, check
from engines.proof import Proof
from export.conftest import installed_tools, packaged_tools, server

Psql = Callable[[str], list[list[str]]]
WINDOW = 50
TECHNIQUES = ["minmax", "none", "max", "sum", "zscore", "l2", "rank", "reciprocal", "affine", "atan", "sigmoid"]


@pytest.fixture(scope="module")
def psql(proof: Proof) -> Iterator[Psql]:
    """A server that holds the texts; it listens on a socket in its own folder only."""
    reason = "PostgreSQL with pgvector is not installed, neither the system's nor pgserver's"
    for tools in [*installed_tools(), *packaged_tools()]:
        with server(tools) as run:
            if run("SELECT name, 'here' FROM pg_available_extensions WHERE name = 'vector';\n"):
                _fill(run, proof)
                yield run
                return
    pytest.skip(reason)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _fill(run: Psql, proof: Proof) -> None:
    """Some of the documents are enough: PostgreSQL parses each again for every query that it matches."""
    rows = [
        f"({quoted(doc)}, {quoted(text)}, '{proof.texts.doc_vectors[doc]}')"
        for doc, text in list(proof.texts.docs.items())[:400]
    ]
    run(
        "CREATE EXTENSION vector;\nCREATE TABLE articles (id text PRIMARY KEY, text text, embedding vector(32));\n"
        f"INSERT INTO articles VALUES {', '.join(rows)};\n"
        "CREATE INDEX ON articles USING gin (to_tsvector('english', text));\nANALYZE articles;\n"
    )


def by_query(run: Psql, statements: Mapping[str, str]) -> dict[str, list[list[str]]]:
    """Run a statement for each query in one session and return the rows of each."""
    script = "".join(f"SELECT 'query', {quoted(query)};\n{sql}\n" for query, sql in statements.items())
    found: dict[str, list[list[str]]] = {}
    for row in run(script):
        if row[0] == "query":
            rows = found.setdefault(row[1], [])
        else:
            rows.append(row)
    return found


@pytest.fixture(scope="module")
def runs(psql: Psql, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    """The lists of each ranker, by the SELECTs of its page."""
    texts = proof.texts
    words = {
        q: f"replace(plainto_tsquery('english', {quoted(t)})::text, ' & ', ' | ')::tsquery"
        for q, t in texts.queries.items()
    }
    statements = {
        "bm25": {
            query: f"SELECT id, ts_rank_cd(to_tsvector('english', text), {asked})::float8 AS score FROM articles "
            f"WHERE to_tsvector('english', text) @@ {asked} "
            f'ORDER BY score DESC, id COLLATE "C" DESC LIMIT {WINDOW};'
            for query, asked in words.items()
        },
        "dense": {
            query: f"SELECT id, (1 - (embedding <=> '{vector}'))::float8 FROM articles "
            f"ORDER BY embedding <=> '{vector}' LIMIT {WINDOW};"
            for query, vector in texts.query_vectors.items()
        },
    }
    return {
        ranker: {query: {doc: float(score) for doc, score in rows} for query, rows in by_query(psql, asked).items()}
        for ranker, asked in statements.items()
    }


def test_every_query_matches_something(runs: Any, proof: Proof) -> None:
    assert all(runs["bm25"].get(query) for query in proof.texts.queries)


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_exported_statement_ranks_as_the_model(psql: Psql, runs: Any, proof: Proof, technique: str) -> None:
    def ask(exported: str, query: str) -> list[str]:
        words, vector = quoted(proof.texts.queries[query]), proof.texts.query_vectors[query]
        return [
            row[0]
            for row in psql(f"PREPARE learned (text, vector) AS {exported}EXECUTE learned ({words}, '{vector}');\n")
        ]

    differing = proof.compare(
        ("PostgreSQL", psql("SELECT current_setting('server_version'), '';\n")[0][0].split()[0]),
        "pgvector",
        runs,
        ask,
        options=("--technique", technique, "--window", str(WINDOW)),
    )
    assert not differing


def given_scores(lists: Sequence[Mapping[str, float]]) -> dict[str, str]:
    said = {"size": "50"}
    for ranker, _ in zip("abc", lists, strict=False):
        said |= {f"{ranker}.type": "scores", f"{ranker}.field": f"given_{ranker}"}
    return said


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_simulator_is_the_engine(psql: Psql, technique: str) -> None:
    made = list(cases("pgvector", technique, given_scores, rankers=("a", "b", "c"), negative=True))
    statements = {}
    for i, case in enumerate(made):
        tables = ""
        for ranker, scores in zip("abc", case.lists, strict=True):
            rows = ", ".join(f"('{doc}', {score!r})" for doc, score in scores.items())
            tables += f"DROP TABLE IF EXISTS given_{ranker}; CREATE TABLE given_{ranker} (id text, score float8);\n"
            tables += f"INSERT INTO given_{ranker} VALUES {rows};\n" if rows else ""
        statements[str(i)] = tables + case.exported.text
    answers = by_query(psql, statements)
    for i, case in enumerate(made):
        check(case, {doc: float(score) for doc, score in answers.get(str(i), [])}, relative=1e-12)
