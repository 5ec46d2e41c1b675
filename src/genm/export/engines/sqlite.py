"""SQLite with FTS5 and sqlite-vec: the whole fusion in one SQL statement."""

# ruff: noqa: S608 (every name in the statement went through sql_name, every number through repr)

from typing import Any

from genm.errors import ExportError
from genm.export.fusion_sql import Dialect, fusion_statement, simulate_statement, sql_techniques
from genm.export.quoting import SQL, one_line, sql_name
from genm.export.settings import FIELD, SIZE
from genm.export.target import Code, Guide, Order, Part, Payload, Setting, Target, Weights, Window

_MOST_NEIGHBOURS = 4096  # the largest k that sqlite-vec takes
_TABLES = {"text": "articles", "vector": "vectors"}
_SIGNS = {"cosine": "1 - ", "l2": "-", "l1": "-"}


def _deviation(i: int, ddof: float) -> str:
    from_mean = f"(score - (SELECT avg(score) FROM list{i}))"
    return f"sqrt(sum({from_mean} * {from_mean}) OVER () / (count(*) OVER () - {ddof!r}))"


_SQLITE = Dialect(
    number=lambda value: f"({value!r})",
    downwards=lambda name: f"CAST({name} AS TEXT) DESC",
    larger="max",
    deviation=_deviation,
    materialized="MATERIALIZED",  # bm25() works in no query but the one that matches
)


def compose(order: Order) -> dict[str, Any]:
    """Return the statement's parts."""
    parameters: list[str] = []
    rankers = [_ranker(part, parameters) for part in order.parts]
    return {
        "id": sql_name(order.settings["id"], "id"),
        "parameters": parameters,
        "rankers": rankers,
        "limit": order.count("size"),
    }


def render(document: Payload) -> str:
    """Return the statement with a line for each parameter before it."""
    lines = [f"-- ?{i}: {what}\n" for i, what in enumerate(document["parameters"], start=1)]
    return "".join(lines) + fusion_statement(document, _SQLITE, lambda ranker: _list_sql(ranker, document["id"]))


def _list_sql(ranker: Payload, key: str) -> str:
    table, field, limit = ranker["table"], ranker["field"], ranker["limit"]
    cut = f"  ORDER BY score DESC, {_SQLITE.downwards(key)} LIMIT {limit}"
    if ranker["type"] == "scores":
        return f"  SELECT {key} AS id, CAST({field} AS REAL) AS score FROM {table}\n{cut}"
    if ranker["type"] == "vector":
        return (
            f"  SELECT {key} AS id, {_SIGNS[ranker['metric']]}distance AS score\n"
            f"  FROM {table} WHERE {field} MATCH ?{ranker['parameter']} AND k = {limit}"
        )
    return (
        f"  SELECT {key} AS id, -bm25({table}) AS score\n"
        f"  FROM {table} WHERE {field} MATCH ?{ranker['parameter']}\n{cut}"
    )


def _ranker(part: Part, parameters: list[str]) -> dict[str, Any]:
    kind, name = part.settings["type"], part.ranker
    what = {"text": "the query for FTS5", "vector": f"the query's vector for {one_line(name)}"}.get(kind)
    if what is not None and what not in parameters:
        parameters.append(what)
    if kind == "vector" and (part.depth or 0) > _MOST_NEIGHBOURS:
        raise ExportError(f"window: expected at most {_MOST_NEIGHBOURS} for {name}; found {part.depth}.")
    table = part.settings["table"] or _TABLES.get(kind, "")
    return {
        "ranker": name,
        "weight": part.weight,
        "limit": part.depth,
        "type": kind,
        "table": sql_name(table, f"{name}.table"),
        "field": sql_name(part.settings["field"], f"{name}.field"),
        "metric": part.settings["metric"],
        "parameter": 0 if what is None else parameters.index(what) + 1,
        "normalizer": part.normalizer,
    }


_TESTED = (
    "`make engines` opens a SQLite database with FTS5 and sqlite-vec, fills it with a test "
    "collection, pulls each ranker's list, fits, exports and executes the statement as it is. "
    "The first 10 are those of `genm fuse`, in the same order, for every query. The simulator "
    "is held to the same engine with random, negative, tied, constant, single and missing "
    "scores and small windows."
)

PLACE = 125
TARGETS = (
    Target(
        orders_by_id=True,
        name="sqlite",
        title="SQLite with FTS5 and sqlite-vec",
        versions="SQLite 3.35 and later with the mathematical functions, sqlite-vec 0.1 and later",
        techniques=sql_techniques(_SQLITE),
        window=Window(None, each=True),
        weights=Weights(least=None),
        code=Code(compose, simulate_statement, render),
        file=SQL,
        guide=Guide(
            index="""CREATE VIRTUAL TABLE articles USING fts5(id UNINDEXED, text);
CREATE VIRTUAL TABLE vectors USING vec0(id TEXT PRIMARY KEY, embedding float[384] distance_metric=cosine);""",
            runs="The statement of step 3 begins with a list for each ranker, `list1` and `list2`: run these two "
            "SELECTs by themselves for every query and write the ids and scores to that ranker's run file.",
            send="Execute the statement with the query for FTS5 and the vector. Every word is quoted, because FTS5 "
            "reads punctuation as syntax, and OR stands between them, because it otherwise wants all of them. "
            "`connection` has loaded sqlite-vec (`sqlite_vec.load`):",
            search="""import re
from pathlib import Path

import sqlite_vec

words = " OR ".join(f'"{word}"' for word in re.findall(r"\\w+", text))
statement = Path("FILE").read_text(encoding="utf-8")
rows = connection.execute(statement, (words, sqlite_vec.serialize_float32(vector))).fetchall()""",
        ),
        settings=(SIZE, Setting("id", "id", "the column of document ids, in every table", "name")),
        ranker_settings=(
            Setting(
                "type",
                "",
                "how this ranker searches; scores: a table or view with the document ids and a column of scores",
                choices=("text", "vector", "scores"),
            ),
            Setting("table", "", "its table: articles (FTS5) or vectors (vec0) if left out", "name"),
            FIELD,
            Setting("metric", "cosine", "the vector table's distance_metric", choices=tuple(_SIGNS)),
        ),
        notes=(
            "SQL expresses every normaliser but OpenSearch's z_score, which compares in single precision.",
            "The text's score is the negative of FTS5's bm25(), which is below 0 for a match: higher is better.",
            "Equal scores are ordered by id downwards, as in genm. Of vectors at exactly the same distance at the "
            "end of the window, any may be left out.",
            f"sqlite-vec compares every vector, so the search is exact; it returns at most {_MOST_NEIGHBOURS}.",
        ),
        tested=_TESTED,
        sources=("sqlite.org: FTS5, window functions", "github.com/asg017/sqlite-vec: vec0, KNN queries"),
    ),
)
