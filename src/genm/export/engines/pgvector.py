"""PostgreSQL with pgvector: the whole fusion in one SQL statement, every normaliser exactly."""

# ruff: noqa: S608 (every name in the statement went through sql_name or sql_text, every number through repr)

from typing import Any, Literal

from genm.export.quoting import SQL, one_line, sql_name, sql_text
from genm.export.settings import FIELD, SIZE
from genm.export.simulation import add_weighted, every_doc, filled, normalized, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Setting, Target, Technique, Weights, Window
from genm.normalizers import Normalizer, NormalizerKind

_LOW, _HIGH = "min(score) OVER ()", "max(score) OVER ()"
_PLACE = 'row_number() OVER (ORDER BY score DESC, id::text COLLATE "C" DESC)'

_DISTANCES = {"cosine": ("<=>", "1 - "), "l2": ("<->", "-"), "ip": ("<#>", "-")}
_FREE = frozenset(
    {"floor", "floor_at", "constant", "constant_within", "ddof", "at_mean", "k", "scale", "shift", "missing"}
)
_KINDS: tuple[NormalizerKind, ...] = (
    "minmax",
    "none",
    "max",
    "sum",
    "zscore",
    "l2",
    "rank",
    "reciprocal",
    "affine",
    "atan",
    "sigmoid",
)


def normalized_sql(normalizer: Normalizer) -> str:
    """Return the expression of the normalised score."""
    kind = normalizer.kind
    if kind == "none":
        return _finished("score", normalizer)
    if kind == "atan":
        return _finished("atan(score)", normalizer)
    if kind == "sigmoid":
        return _finished("1 / (1 + exp(-score))", normalizer)
    if kind == "reciprocal":
        return _finished(f"1 / ({_number(normalizer.k)} + {_PLACE})", normalizer)
    if kind == "rank":
        return _finished(f"(count(*) OVER () - {_PLACE} + 1)::float8 / count(*) OVER ()", normalizer)
    if kind == "affine":
        return _between(normalizer)
    if kind == "minmax":
        return _unless_stuck(f"{_HIGH} - {_LOW}", _between(normalizer), normalizer)
    if kind == "max":
        size = f"greatest(abs({_LOW}), abs({_HIGH}))"
        return _unless_stuck(size, _finished(f"score / {size}", normalizer), normalizer)
    if kind == "l2":
        size = "sqrt(sum(score * score) OVER ())"
        return _unless_stuck(size, _finished(f"score / {size}", normalizer), normalizer)
    if kind == "sum":
        over = f"(sum(score) OVER () - count(*) OVER () * {_LOW})"
        value = _finished(f"(score - {_LOW}) / {over}", normalizer)
        return _unless_stuck(f"{_HIGH} - {_LOW}", value, normalizer)
    deviation = "stddev_samp" if normalizer.ddof == 1.0 else "stddev_pop"
    value = _finished(f"(score - avg(score) OVER ()) / {deviation}(score) OVER ()", normalizer)
    if normalizer.at_mean is not None:
        there = _HIGH if normalizer.at_mean == "max" else _number(float(normalizer.at_mean))
        value = f"CASE WHEN score::real = (avg(score) OVER ())::real THEN {there} ELSE {value} END"
    return _unless_stuck(f"{_HIGH} - {_LOW}", value, normalizer)


def _between(normalizer: Normalizer) -> str:
    """Scale by the list's ends or by fixed bounds; a list wholly beyond a bound keeps its own end."""
    if normalizer.kind == "minmax" and normalizer.lower is None and normalizer.upper is None:
        return _finished(f"(score - {_LOW}) / ({_HIGH} - {_LOW})", normalizer)
    bounded = [
        (normalizer.lower is not None and normalizer.lower_mode == "apply"),
        (normalizer.upper is not None and normalizer.upper_mode == "apply"),
    ]
    fixed = normalizer.kind == "affine" or all(bounded)
    bottom = _end(normalizer, "lower", fixed=fixed)
    top = _end(normalizer, "upper", fixed=fixed)
    value = _finished(f"(score - {bottom}) / ({top} - {bottom})", normalizer)
    cases = []
    if normalizer.lower is not None and normalizer.lower_mode == "clip":
        cases.append(f"WHEN score < {bottom} THEN {_finished('0.0', normalizer)}")
    if normalizer.upper is not None and normalizer.upper_mode == "clip":
        cases.append(f"WHEN score > {top} THEN {_finished('1.0', normalizer)}")
    cases.append(f"WHEN {top} > {bottom} THEN {value}")
    return f"CASE {' '.join(cases)} ELSE {_stuck(normalizer)} END"


def _end(normalizer: Normalizer, end: Literal["lower", "upper"], *, fixed: bool) -> str:
    bound = normalizer.lower if end == "lower" else normalizer.upper
    mode = normalizer.lower_mode if end == "lower" else normalizer.upper_mode
    own, other = (_LOW, _HIGH) if end == "lower" else (_HIGH, _LOW)
    beyond, inside = ("<", "<=") if end == "lower" else (">", ">=")
    if bound is None or mode == "ignore":
        return own
    number = _number(bound)
    if fixed:
        return number
    cases = [f"WHEN {other} {beyond if mode == 'clip' else inside} {number} THEN {own}"]
    if mode == "within":
        cases.append(f"WHEN score {inside} {number} THEN {own}")
    return f"(CASE {' '.join(cases)} ELSE {number} END)"


def _unless_stuck(size: str, value: str, normalizer: Normalizer) -> str:
    within = _number(normalizer.constant_within)
    return f"CASE WHEN {size} <= {within} THEN {_stuck(normalizer)} ELSE {value} END"


def _stuck(normalizer: Normalizer) -> str:
    return "score" if normalizer.constant == "raw" else _number(float(normalizer.constant))


def _finished(value: str, normalizer: Normalizer) -> str:
    if normalizer.scale != 1.0:
        value = f"{_number(normalizer.scale)} * ({value})"
    if normalizer.shift != 0.0:
        value = f"({value}) + {_number(normalizer.shift)}"
    if normalizer.floor is None:
        return value
    at = normalizer.floor if normalizer.floor_at is None else normalizer.floor_at
    return f"CASE WHEN {value} <= {_number(at)} THEN {_number(normalizer.floor)} ELSE {value} END"


def _number(value: float) -> str:
    return f"({value!r}::float8)"


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
    """Return the statement; every ranker has a list, cut at its window, and its normalised scores."""
    lines = [f"-- ${i}: {what}" for i, what in enumerate(document["parameters"], start=1)]
    ctes = []
    for i, ranker in enumerate(document["rankers"], start=1):
        ctes.append(f"list{i} AS (  -- {one_line(ranker['ranker'])}\n{_list_sql(ranker, document)}\n)")
        ctes.append(
            f"ranker{i} AS (\n  SELECT id, {normalized_sql(ranker['normalizer'])} AS score\n  FROM list{i}\n)"
        )
    everyone = "\n  UNION\n".join(f"  SELECT id FROM list{i + 1}" for i in range(len(document["rankers"])))
    ctes.append(f"found AS (\n{everyone}\n)")
    lines.append("WITH " + ", ".join(ctes))
    terms = [
        f"{r['weight']!r} * COALESCE(ranker{i}.score, {_missing_sql(r['normalizer'], i)})"
        for i, r in enumerate(document["rankers"], start=1)
    ]
    lines.append("SELECT found.id, " + "\n  + ".join(terms) + " AS score\nFROM found")
    lines += [f"LEFT JOIN ranker{i + 1} ON ranker{i + 1}.id = found.id" for i in range(len(document["rankers"]))]
    lines.append(f'ORDER BY score DESC, found.id::text COLLATE "C" DESC\nLIMIT {document["limit"]};')
    return "\n".join(lines) + "\n"


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Cut each list, normalise it step by step, give the missing their value, add."""
    cut = [top(scores, r["limit"]) for scores, r in zip(lists, document["rankers"], strict=True)]
    docs = every_doc(cut)
    columns = []
    for scores, ranker in zip(cut, document["rankers"], strict=True):
        normalizer: Normalizer = ranker["normalizer"]
        columns.append(filled(normalized(scores, normalizer), docs, normalizer))
    return add_weighted(columns, [ranker["weight"] for ranker in document["rankers"]])


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
    text = f"to_tsvector({ranker['language']}, {field})"
    return (
        f"  SELECT {key} AS id, ts_rank_cd({text}, {words})::float8 AS score\n"
        f"  FROM {table} WHERE {text} @@ {words}\n"
        f'  ORDER BY score DESC, {key}::text COLLATE "C" DESC LIMIT {limit}'
    )


def _missing_sql(normalizer: Normalizer, i: int) -> str:
    if normalizer.missing == "minimum":
        return f"(SELECT min(score) FROM ranker{i}), 0"
    return repr(float(normalizer.missing))


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
        "parameter": 0 if what is None else parameters.index(what) + 1,
        "normalizer": part.normalizer,
    }


PLACE = 120
TARGETS = (
    Target(
        name="pgvector",
        title="PostgreSQL with pgvector",
        versions="PostgreSQL 12 and later, pgvector 0.5 and later",
        techniques=tuple(
            Technique(
                kind,
                Normalizer(kind, lower=0.0, upper=1.0) if kind == "affine" else Normalizer(kind),
                _FREE,
                bounds=frozenset({"apply", "clip", "within"}),
                whole={"ddof": (0, 1)},
            )
            for kind in _KINDS
        ),
        window=Window(None, each=True),
        weights=Weights(least=None),
        code=Code(compose, simulate, render),
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
            "ts_rank_cd is not BM25: train on the scores that this statement computes.",
            "An approximate index may return other neighbours than an exact search; an hnsw index returns no more "
            "than hnsw.ef_search, which is 40 unless it is set: set it to the window.",
            "Vectors at exactly the same distance come in any order, since their index knows no other.",
        ),
        sources=("postgresql.org: text search, window functions", "github.com/pgvector/pgvector"),
    ),
)
