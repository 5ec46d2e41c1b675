"""Elasticsearch: the `linear` retriever and the weighted `rrf` retriever."""

import math
from typing import Any

from genm.export.settings import FIELD, OWN, QUERY, SIZE, TYPE, VECTOR, folded, own_query, size_within, vector
from genm.export.simulation import add_reciprocal, add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Target, Technique, Window
from genm.normalizers import ENGINES, Normalizer

_EQUAL_WITHIN = 1e-6  # the spread (and the norm) at which Elasticsearch gives up scaling


def compose_linear(order: Order) -> dict[str, Any]:
    """Return the search request; a scale that the normaliser has goes into the weight."""
    retrievers = [
        {
            "retriever": _retriever(part, order),
            "weight": folded(part)[0] if part.technique == "none" else part.weight,
            "normalizer": part.technique,
        }
        for part in order.parts
    ]
    fused = {"linear": {"retrievers": retrievers, "rank_window_size": order.window}}
    return {"retriever": fused, "size": size_within(order, "rank_window_size")}


def compose_rrf(order: Order) -> dict[str, Any]:
    """Return the search request."""
    retrievers = [{"retriever": _retriever(part, order), "weight": part.weight} for part in order.parts]
    fused = {
        "rrf": {
            "retrievers": retrievers,
            "rank_constant": int(order.parts[0].normalizer.k),
            "rank_window_size": order.window,
        }
    }
    return {"retriever": fused, "size": size_within(order, "rank_window_size")}


def simulate_linear(document: Payload, lists: Lists) -> dict[str, float]:
    """Normalise each window, add the weighted scores, keep a window of the sum."""
    linear = document["retriever"]["linear"]
    columns = [
        _normalized(top(scores, linear["rank_window_size"]), retriever["normalizer"])
        for scores, retriever in zip(lists, linear["retrievers"], strict=True)
    ]
    fused = add_weighted(columns, [retriever["weight"] for retriever in linear["retrievers"]])
    return top(fused, linear["rank_window_size"])


def simulate_rrf(document: Payload, lists: Lists) -> dict[str, float]:
    """Add weight / (rank_constant + rank) over the windows, keep a window of the sum."""
    rrf = document["retriever"]["rrf"]
    weights = [retriever["weight"] for retriever in rrf["retrievers"]]
    fused = add_reciprocal(lists, weights, rrf["rank_constant"], rrf["rank_window_size"])
    return top(fused, rrf["rank_window_size"])


def _normalized(scores: dict[str, float], normalizer: str) -> dict[str, float]:
    if not scores or normalizer == "none":
        return scores
    if normalizer == "l2_norm":
        norm = sum(score * score for score in scores.values()) ** 0.5
        return scores if norm < _EQUAL_WITHIN else {doc: score / norm for doc, score in scores.items()}
    low, high = min(scores.values()), max(scores.values())
    if abs(high - low) < _EQUAL_WITHIN:
        return dict.fromkeys(scores, low)  # the raw score, not 0 or 1
    return {doc: (score - low) / (high - low) for doc, score in scores.items()}


def _retriever(part: Part, order: Order) -> dict[str, Any]:
    own = own_query(part)
    if own is not None:
        return {"standard": {"query": own}}
    field = part.settings["field"]
    if part.settings["type"] == "text":
        return {"standard": {"query": {"match": {field: order.settings["query"]}}}}
    return {
        "knn": {
            "field": field,
            "query_vector": vector(part),
            "k": order.window,
            "num_candidates": min(10_000, max(2 * order.window, 100)),
        }
    }


_GUIDE = Guide(
    index="""PUT /articles
{
  "mappings": {
    "properties": {
      "text": {"type": "text"},
      "embedding": {"type": "dense_vector", "dims": 384, "similarity": "cosine"}
    }
  }
}""",
    runs="Send each query once per ranker with `size` at the window, and write `_id` and `_score` of every hit "
    "to that ranker's run file.",
    send="`POST /articles/_search` with the file as body, the placeholders replaced by the query's words and "
    "vector; with the Python client, an `Elasticsearch`:",
    search="""import json
from pathlib import Path

request = json.loads(Path("FILE").read_text(encoding="utf-8"))
(fused,) = request["retriever"].values()
words, nearest = (one["retriever"] for one in fused["retrievers"])
words["standard"]["query"]["match"]["text"] = text
nearest["knn"]["query_vector"] = vector
hits = client.search(index="articles", **request)["hits"]["hits"]""",
)
_SOURCES = (
    "elastic.co reference: linear retriever, RRF retriever",
    "elastic/elasticsearch: LinearRetrieverBuilder, MinMaxScoreNormalizer, L2ScoreNormalizer",
)
_NOTES = (
    "rank_window_size is 10 unless it is said, and it also limits the results: the request sets it.",
    "More than 10,000 documents need another index.max_result_window, and a knn retriever takes no more.",
    "Equal scores are ordered by the shard and the internal number of the document.",
    "Scores are single precision: documents closer than about 1e-7 may change places.",
)

_TESTED = (
    "The request is built with the official client's types, and the ranking is compared with "
    "a simulator written from Elasticsearch's source. No server runs in the tests: Maven's "
    "central repository has the server's jars, but not the module with the linear and rrf "
    "retrievers (x-pack rank-rrf)."
)

PLACE = 10
TARGETS = (
    Target(
        name="elasticsearch",
        title="Elasticsearch linear retriever",
        versions="8.18, 9.0 and later (l2_norm from 8.19 and 9.1); a licensed feature",
        techniques=(
            Technique("minmax", ENGINES["elasticsearch-minmax"]),
            Technique("l2_norm", ENGINES["elasticsearch-l2"]),
            Technique("none", Normalizer("none"), line="slope", scores=(0.0, math.inf)),
        ),
        window=Window(10, most=10_000),
        code=Code(compose_linear, simulate_linear),
        guide=_GUIDE,
        settings=(QUERY, SIZE),
        ranker_settings=(TYPE, FIELD, VECTOR, OWN),
        notes=(
            "A list of equal scores, or of one hit, keeps its raw score: a lone BM25 hit of 14 outweighs every "
            "normalised score. Training with this target learns weights that know it.",
            "The normaliser is named for each retriever, since its default changed between versions.",
            *_NOTES,
        ),
        tested=_TESTED,
        sources=_SOURCES,
    ),
    Target(
        name="elasticsearch-rrf",
        title="Elasticsearch weighted RRF",
        versions="9.2 and later; a licensed feature",
        techniques=(Technique("rrf", ENGINES["elasticsearch-rrf"], frozenset({"k"}), whole={"k": (1, 2**31 - 1)}),),
        window=Window(10, most=10_000),
        shared=frozenset({"k"}),
        code=Code(compose_rrf, simulate_rrf),
        guide=_GUIDE,
        settings=(QUERY, SIZE),
        ranker_settings=(TYPE, FIELD, VECTOR, OWN),
        notes=_NOTES,
        tested=_TESTED,
        sources=_SOURCES,
    ),
)
