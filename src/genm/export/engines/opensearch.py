"""OpenSearch: hybrid queries under the normalization-processor and under the score-ranker-processor (RRF)."""

import math
from collections.abc import Mapping
from typing import Any

from genm.errors import ExportError
from genm.export.settings import FIELD, OWN, QUERY, SIZE, TYPE, VECTOR, own_query, vector
from genm.export.simulation import add_reciprocal, every_doc, single, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Setting, Target, Technique, Weights, Window
from genm.normalizers import ENGINES, Normalizer

_LEAST = 0.001  # what a retrieved document keeps where the formula gives 0
_FARTHEST_BOUND = 10_000.0
_MODES = {"within": "apply", "clip": "clip", "apply": "apply"}  # its apply is our within; ours is bent to it

_FORM = Setting(
    "form",
    "request",
    "request: one search that carries the pipeline; pipeline: the body to PUT under /_search/pipeline",
    choices=("request", "pipeline"),
)


def compose_scores(order: Order) -> dict[str, Any]:
    """Return the search with its pipeline inside, or the pipeline alone."""
    normalization: dict[str, Any] = {"technique": order.parts[0].technique}
    bounds = {
        f"{end}_bounds": [_bound(part.normalizer, end) for part in order.parts]
        for end in ("lower", "upper")
        if any(getattr(part.normalizer, end) is not None for part in order.parts)
    }
    if bounds:
        normalization["parameters"] = bounds
    combination = {
        "technique": "arithmetic_mean",
        "parameters": {"weights": [part.weight for part in order.parts]},
    }
    processor = {"normalization": normalization, "combination": combination}
    return _search(order, {"normalization-processor": processor})


def compose_rrf(order: Order) -> dict[str, Any]:
    """Return the search with its pipeline inside, or the pipeline alone."""
    combination = {
        "technique": "rrf",
        "rank_constant": int(order.parts[0].normalizer.k),
        "parameters": {"weights": [part.weight for part in order.parts]},
    }
    return _search(order, {"score-ranker-processor": {"combination": combination}})


def simulate_scores(document: Payload, lists: Lists) -> dict[str, float]:
    """Normalise each window, then take the weighted mean; a negative score is left out of the mean."""
    processor, window = _processor(document, "normalization-processor")
    normalization, weights = processor["normalization"], processor["combination"]["parameters"]["weights"]
    parameters = normalization.get("parameters", {})
    columns = []
    for i, scores in enumerate(lists):
        lower = parameters.get("lower_bounds", [{}] * len(lists))[i]
        upper = parameters.get("upper_bounds", [{}] * len(lists))[i]
        columns.append(_normalized(top(_matched(scores), window), normalization["technique"], lower, upper))
    fused = {}
    for doc in every_doc(columns):
        counted = [(weight, column.get(doc, 0.0)) for weight, column in zip(weights, columns, strict=True)]
        counted = [(weight, score) for weight, score in counted if score >= 0.0]
        total = sum(weight for weight, _ in counted)
        fused[doc] = sum(weight * score for weight, score in counted) / total if total else 0.0
    return fused


def simulate_rrf(document: Payload, lists: Lists) -> dict[str, float]:
    """Add weight / (rank_constant + rank) over the windows."""
    processor, window = _processor(document, "score-ranker-processor")
    combination = processor["combination"]
    matched = [_matched(scores) for scores in lists]
    return add_reciprocal(matched, combination["parameters"]["weights"], combination["rank_constant"], window)


def _matched(scores: Mapping[str, float]) -> dict[str, float]:
    """Return a sub-query's list as a hybrid query has it: a score of 0 counts as no match."""
    return {doc: score for doc, score in scores.items() if score != 0.0}


def _normalized(scores: dict[str, float], technique: str, lower: Payload, upper: Payload) -> dict[str, float]:
    values = list(scores.values())
    if not values:
        return {}
    if technique == "l2":
        norm = math.sqrt(sum(value * value for value in values))
        return {doc: score / norm if norm else 0.0 for doc, score in scores.items()}
    if technique == "z_score":
        mean = sum(values) / len(values)
        squares = sum((value - mean) ** 2 for value in values)
        sd = math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
        return {doc: _z_score(score, mean, sd, max(values), min(values)) for doc, score in scores.items()}
    low, high = min(values), max(values)
    return {doc: _min_max(score, low, high, lower, upper) for doc, score in scores.items()}


def _z_score(score: float, mean: float, sd: float, high: float, low: float) -> float:
    if single(score) == single(mean):
        return high
    if sd == 0.0:
        return low
    return max((score - mean) / sd, 0.0) or _LEAST


def _min_max(score: float, low: float, high: float, lower: Payload, upper: Payload) -> float:
    if low == high:
        return 1.0
    bottom, top_end = low, high
    if lower.get("mode") == "apply" and high > lower["min_score"] and score > lower["min_score"]:
        bottom = lower["min_score"]
    if lower.get("mode") == "clip" and high >= lower["min_score"]:
        bottom = lower["min_score"]
        if score < bottom:
            return _LEAST
    if upper.get("mode") == "apply" and low < upper["max_score"] and score < upper["max_score"]:
        top_end = upper["max_score"]
    if upper.get("mode") == "clip" and low <= upper["max_score"]:
        top_end = upper["max_score"]
        if score > top_end:
            return 1.0
    if bottom == top_end:
        return 1.0
    return (score - bottom) / (top_end - bottom) or _LEAST


def _bound(normalizer: Normalizer, end: str) -> dict[str, Any]:
    value = getattr(normalizer, end)
    if value is None:
        return {"mode": "ignore"}
    if abs(value) > _FARTHEST_BOUND:
        raise ExportError(f"the {end} bound: expected -10000 to 10000, as OpenSearch takes it; found {value:g}.")
    key = "min_score" if end == "lower" else "max_score"
    return {"mode": _MODES[getattr(normalizer, f"{end}_mode")], key: value}


def _search(order: Order, processor: dict[str, Any]) -> dict[str, Any]:
    pipeline: dict[str, Any] = {"phase_results_processors": [processor]}
    if order.settings["form"] == "pipeline":
        return {"description": "weights learned by genm", **pipeline}
    queries = [_sub_query(part, order) for part in order.parts]
    hybrid = {"hybrid": {"queries": queries, "pagination_depth": order.window}}
    return {"query": hybrid, "search_pipeline": pipeline, "size": order.count("size")}


def _sub_query(part: Part, order: Order) -> dict[str, Any]:
    own, field = own_query(part), part.settings["field"]
    if own is not None:
        return own
    if part.settings["type"] == "text":
        return {"match": {field: {"query": order.settings["query"]}}}
    return {"knn": {field: {"vector": vector(part), "k": order.window}}}


def _processor(document: Payload, processor: str) -> tuple[dict[str, Any], int | None]:
    pipeline = document.get("search_pipeline", document)
    hybrid = document.get("query", {}).get("hybrid", {})
    return pipeline["phase_results_processors"][0][processor], hybrid.get("pagination_depth")


_GUIDE = Guide(
    index="""PUT /articles
{
  "settings": {"index.knn": true, "number_of_shards": 1},
  "mappings": {
    "properties": {
      "text": {"type": "text"},
      "embedding": {"type": "knn_vector", "dimension": 384, "space_type": "cosinesimil"}
    }
  }
}""",
    runs="Send each query once per ranker with `size` at the window, and write `_id` and `_score` of every hit "
    "to that ranker's run file.",
    send="`POST /articles/_search` with the file as body, the placeholders replaced by the query's words and "
    "vector. With `--set form=pipeline` the file is the body of `PUT /_search/pipeline/learned`; then search "
    "with `?search_pipeline=learned`. With the Python client, an `OpenSearch`:",
    search="""import json
from pathlib import Path

request = json.loads(Path("FILE").read_text(encoding="utf-8"))
words, nearest = request["query"]["hybrid"]["queries"]
words["match"]["text"]["query"] = text
nearest["knn"]["embedding"]["vector"] = vector
hits = client.search(index="articles", body=request)["hits"]["hits"]""",
)
_SOURCES = (
    "docs.opensearch.org: normalization processor, score ranker processor, hybrid query, pagination",
    "opensearch-project/neural-search: Min-max, L2, Z-score and RRF normalization techniques, "
    "ArithmeticMeanScoreCombinationTechnique, LowerBound, UpperBound",
)
_NOTES = (
    "A hybrid query leaves out a document that a sub-query gives a score of 0, though the sub-query alone returns "
    "it: leave such lines out of the run file too. BM25 and vectors give none.",
    "Equal scores come in the order in which the documents were indexed (one shard with one segment); genm orders "
    "them by doc id downwards.",
    "pagination_depth (2.19 and later) is the window of each shard: with several shards the lists are longer "
    "than in training, so the weights hold exactly on one shard.",
    "Scores are single precision: documents closer than about 1e-7 may change places.",
)
_TESTED = (
    "`make engines` starts OpenSearch 3.6.0 with its k-NN and neural-search plugins, fills it "
    "with a test collection, pulls each ranker's list, fits, exports and sends the request as "
    "it is. The first 10 are those of `genm fuse`, in the same order, for every query. The "
    "simulator is held to the same engine with random, tied, constant, single and missing "
    "scores and small windows; it takes no negative scores."
)
_COMMON: dict[str, Any] = {
    "tested": _TESTED,
    "window": Window(10, most=10_000),
    "weights": Weights(most=1.0, sum_to_one=True),
    "guide": _GUIDE,
    "n_rankers": (1, 5),
    "settings": (QUERY, SIZE, _FORM),
    "ranker_settings": (TYPE, FIELD, VECTOR, OWN),
    "sources": _SOURCES,
}

PLACE = 20
TARGETS = (
    Target(
        name="opensearch",
        title="OpenSearch normalization processor",
        versions="2.19 and later (z_score and lower bounds from 3.0, upper bounds from 3.2)",
        techniques=(
            Technique(
                "min_max",
                ENGINES["opensearch-minmax"],
                bounds=frozenset({"within", "clip"}),
                group="min_max",
            ),
            Technique("l2", ENGINES["opensearch-l2"], group="l2", scores=(0.0, math.inf)),
            Technique(
                "z_score",
                ENGINES["opensearch-zscore"],
                group="z_score",
            ),
        ),
        code=Code(compose_scores, simulate_scores),
        notes=(
            "min_max gives the lowest retrieved document 0.001, not 0; z_score gives every document below the "
            "mean 0.001.",
            "z_score gives a document exactly at the mean the list's highest raw score, and a list of equal "
            "scores keeps its raw scores.",
            *_NOTES,
        ),
        **_COMMON,
    ),
    Target(
        name="opensearch-rrf",
        title="OpenSearch weighted RRF",
        versions="2.19 and later (weights from 3.1)",
        techniques=(Technique("rrf", ENGINES["opensearch-rrf"], frozenset({"k"}), whole={"k": (1, 10_000)}),),
        shared=frozenset({"k"}),
        code=Code(compose_rrf, simulate_rrf),
        notes=_NOTES,
        **_COMMON,
    ),
)
