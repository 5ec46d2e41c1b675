"""Qdrant: a formula over the prefetches' scores, and its reciprocal rank fusion."""

import json
from typing import Any

from genm.errors import ExportError
from genm.export.engines.ltr import line_techniques
from genm.export.normalizer_match import line_of
from genm.export.settings import FIELD, SIZE, TYPE, VECTOR, folded, vector
from genm.export.simulation import every_doc, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Setting, Target, Technique, Weights, Window
from genm.normalizers import Normalizer

_SPARSE = Setting(
    "sparse", '{"indices": [1, 42], "values": [0.22, 0.8]}', "the query's sparse vector", "json", stands_in="text"
)


def compose_formula(order: Order) -> dict[str, Any]:
    """Return the query: each share folded into a coefficient, an offset and a default for what is missing."""
    terms: list[Any] = []
    defaults, offset = {}, 0.0
    for i, part in enumerate(order.parts):
        coefficient, constant = folded(part)
        terms.append({"mult": [coefficient, f"$score[{i}]"]})
        defaults[f"$score[{i}]"] = _raw_of_missing(part)
        offset += constant
    if offset:
        terms.append(offset)
    return {
        "prefetch": [_prefetch(part) for part in order.parts],
        "query": {"formula": {"sum": terms}, "defaults": defaults},
        "limit": order.count("size"),
    }


def compose_rrf(order: Order) -> dict[str, Any]:
    """Return the query; equal weights are written as 1, which is plain reciprocal rank fusion."""
    weights = [part.weight * len(order.parts) for part in order.parts]
    rrf: dict[str, Any] = {"k": int(order.parts[0].normalizer.k) + 1}
    if any(abs(weight - 1.0) > 1e-9 for weight in weights):
        rrf["weights"] = weights
    return {
        "prefetch": [_prefetch(part) for part in order.parts],
        "query": {"rrf": rrf},
        "limit": order.count("size"),
    }


def simulate_formula(document: Payload, lists: Lists) -> dict[str, float]:
    """Evaluate the formula for every document of the union."""
    cut = [top(scores, p["limit"]) for scores, p in zip(lists, document["prefetch"], strict=True)]
    query = document["query"]
    fused = {}
    for doc in every_doc(cut):
        values = {f"$score[{i}]": scores[doc] for i, scores in enumerate(cut) if doc in scores}
        fused[doc] = _value(query["formula"], {**query["defaults"], **values})
    return fused


def simulate_rrf(document: Payload, lists: Lists) -> dict[str, float]:
    """Add 1 / (k + (position + 1) / weight - 1), positions from 0: the weight bends the rank."""
    rrf = document["query"]["rrf"]
    fused: dict[str, float] = {}
    weights = rrf.get("weights", [1.0] * len(lists))
    for scores, weight, prefetch in zip(lists, weights, document["prefetch"], strict=True):
        for position, doc in enumerate(top(scores, prefetch["limit"])):
            share = 1.0 / (rrf["k"] + (position + 1) / weight - 1.0) if weight > 0 else 0.0
            fused[doc] = fused.get(doc, 0.0) + share
    return fused


def _value(expression: Any, scores: dict[str, float]) -> float:
    if isinstance(expression, str):
        return scores[expression]
    if isinstance(expression, dict) and "sum" in expression:
        return sum(_value(term, scores) for term in expression["sum"])
    if isinstance(expression, dict) and "mult" in expression:
        product = 1.0
        for factor in expression["mult"]:
            product *= _value(factor, scores)
        return product
    return float(expression)


def _raw_of_missing(part: Part) -> float:
    """Return the raw score that the formula turns into what the model gave a missing document."""
    line, missing = line_of(part.normalizer), part.normalizer.missing
    if line is None or line[0] == 0.0 or isinstance(missing, str):
        raise ExportError(f"{part.ranker}: a missing document needs a number; found {missing}.")
    return (missing - line[1]) / line[0]


def _prefetch(part: Part) -> dict[str, Any]:
    query = json.loads(part.settings["sparse"]) if part.settings["type"] == "text" else vector(part)
    using = part.settings["field"]
    return {"query": query, "using": using, "limit": part.depth}


_GUIDE = Guide(
    index="""PUT /collections/articles
{
  "vectors": {"embedding": {"size": 384, "distance": "Cosine"}},
  "sparse_vectors": {"text": {"modifier": "idf"}}
}""",
    runs="Query each vector alone (`using`) with `limit` at the window and write every point's id and score to "
    "that ranker's run file.",
    send="`POST /collections/articles/points/query` with the file as body, the placeholder vectors replaced; with "
    "the Python client, a `QdrantClient`:",
    search="""from pathlib import Path

from qdrant_client import models

request = models.QueryRequest.model_validate_json(Path("FILE").read_text(encoding="utf-8"))
request.prefetch[0].query, request.prefetch[1].query = sparse, vector
answer = client.query_points("articles", prefetch=request.prefetch, query=request.query, limit=request.limit)""",
)
_SOURCES = ("qdrant.tech documentation: hybrid queries, search relevance (formula)",)
_TESTED = (
    "`make engines` opens the local mode of Qdrant's client, fills it with a test collection, "
    "pulls each ranker's list, fits, exports and sends the query as it is. The first 10 are "
    "those of `genm fuse`, in the same order, for every query. The simulators are held to it, "
    "and to Qdrant Edge, the server's own code as a package, with random, negative, constant, "
    "single and missing scores and small windows. The server itself is in no package registry."
)
_COMMON: dict[str, Any] = {
    "tested": _TESTED,
    "window": Window(10, each=True),
    "guide": _GUIDE,
    "settings": (SIZE,),
    "ranker_settings": (TYPE, FIELD, VECTOR, _SPARSE),
    "sources": _SOURCES,
}

PLACE = 60
TARGETS = (
    Target(
        name="qdrant",
        title="Qdrant formula",
        versions="1.14 and later",
        techniques=line_techniques("formula"),
        weights=Weights(least=None),
        code=Code(compose_formula, simulate_formula),
        notes=(
            "The formula sees raw scores: only fixed bounds can be folded in, no statistics of the list.",
            "What a missing document gets is written as a default, since without one the query fails.",
            "Keep the formula at the top: fusion inside a prefetch is done on each shard by itself.",
            "Scores are single precision: documents closer than about 1e-7 may change places.",
            "Fields must be compared by Cosine or Dot: of Euclid and Manhattan the scores are distances, of which "
            "less is better.",
        ),
        **_COMMON,
    ),
    Target(
        name="qdrant-rrf",
        title="Qdrant RRF",
        versions="1.16 and later for k, 1.17 and later for weights",
        techniques=(Technique("rrf", Normalizer("reciprocal"), frozenset({"k"}), whole={"k": (0, 2**31 - 2)}),),
        shared=frozenset({"k"}),
        weights=Weights(equal=True),
        code=Code(compose_rrf, simulate_rrf),
        notes=(
            "A weight divides the rank, 1 / (k + (position + 1) / weight - 1), instead of multiplying the score: "
            "doubling all weights changes the ranking, and weights learned for w / (k + rank) do not transfer.",
            "k is written one higher than in training, because positions count from 0.",
            "Equal sums, which are frequent with equal weights, come in no stated order.",
        ),
        **_COMMON,
    ),
)
