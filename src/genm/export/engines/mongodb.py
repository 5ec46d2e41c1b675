"""MongoDB: the $scoreFusion stage."""

import json
import math
from typing import Any

from genm.errors import ExportError
from genm.export.quoting import document_field, to_json
from genm.export.settings import FIELD, QUERY, SIZE, TYPE, VECTOR, folded, vector
from genm.export.simulation import add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Setting, Target, Technique, Window
from genm.normalizers import ENGINES, Normalizer


def compose(order: Order) -> dict[str, Any]:
    """Return the aggregation's stages."""
    pipelines, weights = {}, {}
    for part in order.parts:
        name = document_field(part.settings["name"] or part.ranker, f"ranker {part.ranker}")
        if "." in name:
            raise ExportError(f"ranker {part.ranker}: a pipeline's name has no dot. Give {part.ranker}.name=...")
        pipelines[name] = _pipeline(part, order)
        weights[name] = folded(part)[0] if part.technique == "none" else part.weight
    fusion = {
        "input": {"pipelines": pipelines, "normalization": order.parts[0].technique},
        "combination": {"method": "avg", "weights": weights},
    }
    return {"pipeline": [{"$scoreFusion": fusion}, {"$limit": order.count("size")}]}


def render(document: Payload) -> str:
    """Return the list of stages as JSON."""
    return to_json(document["pipeline"])


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Normalise each pipeline's window, then average; a document that a pipeline lacks has 0 there."""
    fusion = document["pipeline"][0]["$scoreFusion"]
    pipelines, kind = fusion["input"]["pipelines"], fusion["input"]["normalization"]
    columns = [
        _normalized(top(scores, _limit(stages)), kind)
        for scores, stages in zip(lists, pipelines.values(), strict=True)
    ]
    weights = [fusion["combination"]["weights"][name] / len(pipelines) for name in pipelines]
    return add_weighted(columns, weights)


def _normalized(scores: dict[str, float], kind: str) -> dict[str, float]:
    if kind == "sigmoid":
        return {doc: 1.0 / (1.0 + math.exp(-score)) for doc, score in scores.items()}
    if kind == "none" or not scores:
        return scores
    low, high = min(scores.values()), max(scores.values())
    return {doc: (score - low) / (high - low) if high > low else 0.0 for doc, score in scores.items()}


def _limit(stages: list[dict[str, Any]]) -> int:
    last = stages[-1]
    return int(last["$limit"] if "$limit" in last else last["$vectorSearch"]["limit"])


def _pipeline(part: Part, order: Order) -> list[dict[str, Any]]:
    if part.settings["query"]:
        stages = json.loads(part.settings["query"])
        if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
            raise ExportError(f"{part.ranker}.query: expected a JSON list of stages.")
        return [*stages, {"$limit": part.depth}]
    path = document_field(part.settings["field"], f"{part.ranker}.field")
    if part.settings["type"] == "text":
        search = {
            "index": part.settings["index"] or "default",
            "text": {"query": order.settings["query"], "path": path},
        }
        return [{"$search": search}, {"$limit": part.depth}]
    return [
        {
            "$vectorSearch": {
                "index": part.settings["index"] or "vector_index",
                "path": path,
                "queryVector": vector(part),
                "numCandidates": min(10_000, max(100, 10 * (part.depth or 10))),
                "limit": part.depth,
            }
        }
    ]


_TESTED = (
    "The stages are held to the official driver's types and the ranking to a simulator "
    "written from MongoDB's documentation and source. No server runs in the tests: neither "
    "MongoDB 8.2 nor its search process is in an ordinary package registry."
)

PLACE = 100
TARGETS = (
    Target(
        name="mongodb",
        title="MongoDB $scoreFusion",
        versions="8.2 and later",
        techniques=(
            Technique("minMaxScaler", ENGINES["mongodb-minmax"], group="minMaxScaler"),
            Technique("sigmoid", ENGINES["mongodb-sigmoid"], group="sigmoid"),
            Technique("none", Normalizer("none"), line="slope", group="none"),
        ),
        window=Window(None, each=True),
        code=Code(compose, simulate, render),
        guide=Guide(
            index="""db.articles.createSearchIndex("default", {mappings: {dynamic: true}})
db.articles.createSearchIndex("vector_index", "vectorSearch", {
  fields: [{type: "vector", path: "embedding", numDimensions: 384, similarity: "cosine"}]
})""",
            runs="Run each input pipeline alone, project `{score: {$meta: 'searchScore'}}` (or "
            "`vectorSearchScore`), and write every document's _id and score to that ranker's run file.",
            send="Aggregate with the file's list of stages, the placeholders replaced; with PyMongo, `collection` "
            "being `database.articles`:",
            search="""import json
from pathlib import Path

stages = json.loads(Path("FILE").read_text(encoding="utf-8"))
pipelines = stages[0]["$scoreFusion"]["input"]["pipelines"]
pipelines["bm25"][0]["$search"]["text"]["query"] = text
pipelines["dense"][0]["$vectorSearch"]["queryVector"] = vector
documents = list(collection.aggregate(stages))""",
        ),
        settings=(QUERY, SIZE),
        ranker_settings=(
            TYPE,
            FIELD,
            VECTOR,
            Setting("index", "", "the search index: default or vector_index if left out", "name"),
            Setting("name", "", "the pipeline's name; the ranker's if left out", "name"),
            Setting("query", "", "this ranker's stages as a JSON list, in place of type and field", "json"),
        ),
        notes=(
            "minMaxScaler gives a list of equal scores, or of one hit, 0: a lone hit adds nothing.",
            "The weighted scores are averaged over all pipelines, which ranks like their sum.",
        ),
        tested=_TESTED,
        sources=(
            "mongodb.com manual: $scoreFusion, $minMaxScaler, $sigmoid",
            "mongodb/mongo: window_function_min_max_scaler_util",
        ),
    ),
)
