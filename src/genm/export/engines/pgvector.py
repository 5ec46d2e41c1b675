"""PostgreSQL with pgvector: the whole fusion in one SQL statement, every normaliser exactly."""

# ruff: noqa: S608 (every name in the statement went through sql_name or sql_text, every number through repr)

from typing import Any

from genm.export.fusion_sql import Dialect, fusion_statement, simulate_statement, sql_techniques
from genm.export.quoting import SQL, one_line, sql_name, sql_text
from genm.export.settings import FIELD, SIZE
from genm.export.target import Code, Guide, Order, Part, Payload, Setting, Target, Weights, Window

_DISTANCES = {"cosine": ("<=>", "1 - "), "l2": ("<->", "-"), "ip": ("<#>", "-")}


def _deviation(i: int, ddof: float) -> str:  # noqa: ARG001 (a window sees its own list)
    return f"{'stddev_samp' if ddof == 1.0 else 'stddev_pop'}(score) OVER ()"


_POSTGRESQL = Dialect(
    number=lambda value: f"({value!r}::float8)",
    downwards=lambda name: f'{name}::text COLLATE "C" DESC',
    larger="greatest",
    deviation=_deviation,
    same=lambda one, other: f"{one}::real = {other}::real",
)


def compose(order: Order) -> dict[str, Any]:
    """Return the statement's parts."""
    parameters: list[str] = []
    rankers = [_ranker(part, parameters, order) for part in order.parts]
    return {
        "table": sql_name(order.settings["table"], "table"),
        "id": sql_name(order.settings["id"], "id"),
        "parameters": parameters,
        "rankers": rankers,
        "limit": order.count("size"),
    }


def render(document: Payload) -> str:
    """Return the statement with a line for each parameter before it."""
    lines = [f"-- ${i}: {what}\n" for i, what in enumerate(document["parameters"], start=1)]
    return "".join(lines) + fusion_statement(document, _POSTGRESQL, lambda ranker: _list_sql(ranker, document))


def _list_sql(ranker: Payload, document: Payload) -> str:
    table, key, field, limit = document["table"], document["id"], ranker["field"], ranker["limit"]
    placeholder = f"${ranker['parameter']}"
    if ranker["type"] == "scores":
        return (
            f"  SELECT {key} AS id, score::float8 AS score FROM {field}\n"
            f'  ORDER BY score DESC, {key}::text COLLATE "C" DESC LIMIT {limit}'
        )
    if ranker["type"] == "vector":
        operator, sign = _DISTANCES[ranker["metric"]]
        return (
            f"  SELECT {key} AS id, ({sign}({field} {operator} {placeholder}))::float8 AS score\n"
            f"  FROM {table} ORDER BY {field} {operator} {placeholder} LIMIT {limit}"
        )
    words = f"plainto_tsquery({ranker['language']}, {placeholder})"
    if ranker["match"] == "any":  # plainto_tsquery parts its words by & only, and no word has a space in it
        words = f"replace({words}::text, ' & ', ' | ')::tsquery"
    text = f"to_tsvector({ranker['language']}, {field})"
    return (
        f"  SELECT {key} AS id, ts_rank_cd({text}, {words})::float8 AS score\n"
        f"  FROM {table} WHERE {text} @@ {words}\n"
        f'  ORDER BY score DESC, {key}::text COLLATE "C" DESC LIMIT {limit}'
    )


def _ranker(part: Part, parameters: list[str], order: Order) -> dict[str, Any]:
    kind = part.settings["type"]
    what = {"text": "the query's words (text)", "vector": f"the query's vector for {one_line(part.ranker)}"}.get(
        kind
    )
    if what is not None and what not in parameters:
        parameters.append(what)
    return {
        "ranker": part.ranker,
        "weight": part.weight,
        "limit": part.depth,
        "type": kind,
        "field": sql_name(part.settings["field"], f"{part.ranker}.field"),
        "metric": part.settings["metric"],
        "language": sql_text(order.settings["language"]),
        "match": order.settings["match"],
        "parameter": 0 if what is None else parameters.index(what) + 1,
        "normalizer": part.normalizer,
    }


_TESTED = (
    "`make engines` starts PostgreSQL (15 or 16) with pgvector, fills it with a test "
    "collection, pulls each ranker's list, fits, exports and executes the statement as it is. "
    "The first 10 are those of `genm fuse`, in the same order, for every query. The simulator "
    "is held to the same engine with random, negative, tied, constant, single and missing "
    "scores and small windows."
)

PLACE = 120
TARGETS = (
    Target(
        orders_by_id=True,
        name="pgvector",
        title="PostgreSQL with pgvector",
        versions="PostgreSQL 12 and later, pgvector 0.5 and later",
        techniques=sql_techniques(_POSTGRESQL),
        window=Window(None, each=True),
        weights=Weights(least=None),
        code=Code(compose, simulate_statement, render),
        file=SQL,
        guide=Guide(
            index="""CREATE EXTENSION vector;
CREATE TABLE articles (id text PRIMARY KEY, text text, embedding vector(384));
CREATE INDEX ON articles USING gin (to_tsvector('english', text));
CREATE INDEX ON articles USING hnsw (embedding vector_cosine_ops);""",
            runs="The statement of step 3 begins with a list for each ranker, `list1` and `list2`: run these two "
            "SELECTs by themselves for every query and write the ids and scores to that ranker's run file.",
            send="Prepare the statement and execute it with the query's words and vector, or give it to a driver "
            "that takes numbered parameters.",
            search="""{
  echo "SET hnsw.ef_search = 100;"
  echo "PREPARE learned (text, vector) AS"
  cat FILE
  echo "EXECUTE learned ('red cars', '[0.1, 0.2, 0.3]');"
} | psql""",
            language="bash",
        ),
        settings=(
            SIZE,
            Setting("table", "articles", "the table, spelt exactly; schema.table is understood", "name"),
            Setting("id", "id", "the column of document ids", "name"),
            Setting("language", "english", "the text search configuration", "name"),
            Setting(
                "match", "any", "whether a document needs any or all of the query's words", choices=("any", "all")
            ),
        ),
        ranker_settings=(
            Setting(
                "type",
                "",
                "how this ranker searches; scores: a table or view with the columns id and score",
                choices=("text", "vector", "scores"),
            ),
            FIELD,
            Setting("metric", "cosine", "the vector's distance", choices=("cosine", "l2", "ip")),
        ),
        notes=(
            "SQL expresses every normaliser, so any model can be exported here exactly.",
            "A document matches with any of the query's words. With `--set match=all` it needs all of them; of a "
            "question in plain language few documents have them.",
            "ts_rank_cd is not BM25: train on the scores that this statement computes.",
            "An approximate index may return other neighbours than an exact search; an hnsw index returns no more "
            "than hnsw.ef_search, which is 40 unless it is set: set it to the window.",
            "Equal scores are ordered by id downwards, as in genm.",
            "Vectors at exactly the same distance come in any order, since their index knows no other.",
        ),
        tested=_TESTED,
        sources=("postgresql.org: text search, window functions", "github.com/pgvector/pgvector"),
    ),
)
