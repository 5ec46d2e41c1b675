"""The Learning to Rank plugin of OpenSearch and of Elasticsearch (o19s): a linear model over features."""

import json
from collections.abc import Mapping
from typing import Any

from genm.errors import ExportError
from genm.export.settings import folded
from genm.export.simulation import every_doc
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Technique, Weights, Window
from genm.normalizers import Normalizer

FEATURE = Setting("feature", "", "the feature's name in the store; the ranker's if left out", "name")


def compose(order: Order) -> dict[str, Any]:
    """Return the body that creates the model."""
    names = feature_names(order)
    normalizers, definition = {}, {}
    for name, part in zip(names, order.parts, strict=True):
        ends = fixed_ends(part.normalizer)
        if ends is not None:
            normalizers[name] = {"min_max": {"minimum": ends[0], "maximum": ends[1]}}
        definition[name] = part.weight if ends is not None else folded(part)[0]
    inner: dict[str, Any] = {"type": "model/linear"}
    if normalizers:
        inner["feature_normalizers"] = normalizers
    inner["definition"] = json.dumps(definition, ensure_ascii=False)
    return {"model": {"name": order.settings["name"], "model": inner}}


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Score every candidate by every feature, 0 where the feature's query does not match."""
    inner = document["model"]["model"]
    weights = json.loads(inner["definition"])
    ends = {
        name: (rule["min_max"]["minimum"], rule["min_max"]["maximum"])
        for name, rule in inner.get("feature_normalizers", {}).items()
    }
    return score_candidates(lists, list(weights.items()), ends)


def score_candidates(
    lists: Lists, weights: list[tuple[str, float]], ends: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Return the linear model's score of every document that any ranker returned."""
    fused = {}
    for doc in every_doc(lists):
        total = 0.0
        for (name, weight), scores in zip(weights, lists, strict=True):
            low, high = ends.get(name, (0.0, 1.0))
            total += weight * (scores.get(doc, 0.0) - low) / (high - low)
        fused[doc] = total
    return fused


def feature_names(order: Order) -> list[str]:
    """Return the features' names in the store, which must differ."""
    names = [part.settings["feature"] or part.ranker for part in order.parts]
    if len(set(names)) != len(names):
        raise ExportError(f"feature: expected different names; found {', '.join(names)}.")
    return names


def fixed_ends(normalizer: Normalizer) -> tuple[float, float] | None:
    """Return the two fixed bounds of a normaliser that is nothing but them."""
    if normalizer.kind != "affine" or (normalizer.scale, normalizer.shift) != (1.0, 0.0):
        return None
    if normalizer.lower is None or normalizer.upper is None:
        return None
    return normalizer.lower, normalizer.upper


def line_techniques(word: str) -> tuple[Technique, ...]:
    """Return the techniques of an engine that takes straight lines of the scores and nothing else."""
    fixed = Normalizer("affine", lower=0.0, upper=1.0)
    any_missing = frozenset({"missing"})
    return (
        Technique(word, fixed, any_missing, line="any"),
        Technique("none", Normalizer("none"), any_missing, line="any"),
    )


_TESTED = (
    "The ranking is compared with a simulator written from the plugin's source. No server "
    "runs in the tests: Maven's central repository has OpenSearch but not this plugin. The "
    "same linear model with the same normaliser is tested in [Solr](solr.md)."
)

PLACE = 30
TARGETS = (
    Target(
        name="ltr",
        title="Learning to Rank plugin (OpenSearch, Elasticsearch)",
        versions="OpenSearch 2.19 and later with opensearch-learning-to-rank; Elasticsearch with the o19s plugin",
        techniques=line_techniques("min_max"),
        window=Window(10, rerank=True),
        weights=Weights(least=None),
        code=Code(compose, simulate),
        guide=Guide(
            index="""PUT /_ltr

POST /_ltr/_featureset/articles
{
  "featureset": {
    "features": [
      {"name": "title", "params": ["keywords"], "template": {"match": {"title": "{{keywords}}"}}},
      {"name": "body", "params": ["keywords"], "template": {"match": {"body": "{{keywords}}"}}}
    ]
  }
}""",
            runs="Log the features of the candidates (`ext.ltr_log`) and write every candidate's value to the "
            "run file of each ranker, so that all runs hold the same documents.",
            send="Upload the file once; searches then rescore by the model's name.",
            search="""curl -H "Content-Type: application/json" -d @FILE \\
  localhost:9200/_ltr/_featureset/articles/_createmodel
curl -H "Content-Type: application/json" localhost:9200/articles/_search -d '{
  "query": {"match": {"body": "red cars"}},
  "rescore": {
    "window_size": 100,
    "query": {
      "rescore_query": {"sltr": {"model": "genm", "params": {"keywords": "red cars"}}},
      "query_weight": 0
    }
  }
}'""",
            language="bash",
            rankers=("title", "body"),
        ),
        settings=(Setting("name", "genm", "the model's name", "name"),),
        ranker_settings=(FEATURE,),
        notes=(
            "The model reorders the candidates of the first query: rescore's window_size is 10 unless it is set.",
            "Only fixed bounds can be given, no statistics of the list.",
        ),
        tested=_TESTED,
        sources=(
            "docs.opensearch.org: learning to rank, uploading trained models",
            "o19s/elasticsearch-learning-to-rank: training models",
        ),
    ),
)
