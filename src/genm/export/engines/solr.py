"""Solr: the linear model of the Learning to Rank module."""

from typing import Any

from genm.export.engines.ltr import FEATURE, feature_names, fixed_ends, line_techniques, score_candidates
from genm.export.settings import folded
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Weights, Window


def compose(order: Order) -> dict[str, Any]:
    """Return the body that uploads the model."""
    features, weights = [], {}
    for name, part in zip(feature_names(order), order.parts, strict=True):
        ends = fixed_ends(part.normalizer)
        feature: dict[str, Any] = {"name": name}
        if ends is not None:
            feature["norm"] = {
                "class": "org.apache.solr.ltr.norm.MinMaxNormalizer",
                "params": {"min": repr(ends[0]), "max": repr(ends[1])},
            }
        features.append(feature)
        weights[name] = part.weight if ends is not None else folded(part)[0]
    return {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": order.settings["name"],
        "store": order.settings["store"],
        "features": features,
        "params": {"weights": weights},
    }


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Score every candidate by every feature, 0 where a feature has no value."""
    ends = {
        feature["name"]: (float(feature["norm"]["params"]["min"]), float(feature["norm"]["params"]["max"]))
        for feature in document["features"]
        if "norm" in feature
    }
    weights = document["params"]["weights"]
    return score_candidates(lists, [(f["name"], weights[f["name"]]) for f in document["features"]], ends)


_TESTED = (
    "`make engines` starts Solr 8.11.4 with its ltr module, fills it with a test collection, "
    "pulls each ranker's list, fits, exports and uploads the model as it is. The first 10 are "
    "those of `genm fuse`, in the same order, for every query. The simulator is held to the "
    "same server with random, negative, tied, constant, single and missing scores. The module "
    "of Solr 9 and 10 is not in Maven's central repository."
)

PLACE = 90
TARGETS = (
    Target(
        name="solr",
        title="Solr Learning to Rank",
        versions="6.4 and later with the ltr module; the model is the same in 9 and 10",
        techniques=line_techniques("MinMaxNormalizer"),
        window=Window(None, rerank=True),
        weights=Weights(least=None),
        code=Code(compose, simulate),
        guide=Guide(
            index="""PUT /solr/articles/schema/feature-store
[
  {"store": "articles", "name": "bm25", "class": "org.apache.solr.ltr.feature.SolrFeature",
   "params": {"q": "{!dismax qf=text}${words}"}},
  {"store": "articles", "name": "dense", "class": "org.apache.solr.ltr.feature.SolrFeature",
   "params": {"q": "{!func}vectorSimilarity(embedding, ${vector})"}}
]""",
            runs="Ask for `fl=id,[features store=articles efi.words='red cars' efi.vector='[0.1, 0.2]']` and write "
            "every candidate's value to the run file of each ranker, so that all runs hold the same documents.",
            send="Upload the file once; searches then rerank by the model's name.",
            search="""curl -X PUT -H "Content-Type: application/json" -d @FILE \\
  localhost:8983/solr/articles/schema/model-store
curl localhost:8983/solr/articles/select --data-urlencode "q=red cars" --data-urlencode "fl=id,score" \\
  --data-urlencode "rq={!ltr model=genm reRankDocs=100 efi.words='red cars' efi.vector='[0.1, 0.2]'}\"""",
            language="bash",
            settings={"store": "articles"},
        ),
        settings=(
            Setting("name", "genm", "the model's name", "name"),
            Setting("store", "_DEFAULT_", "the feature store", "name"),
        ),
        ranker_settings=(FEATURE,),
        notes=(
            "The model reorders the candidates of the first query, as many as reRankDocs says.",
            "Only fixed bounds can be given, no statistics of the list.",
            "Equal scores come in the order in which the documents were indexed; genm orders them by doc id "
            "downwards. Scores are single precision.",
            "vectorSimilarity of a field and a vector is known from Solr 9.6 on; only candidates are compared.",
            "Solr 10's own combination of queries is RRF without weights, so weights need this model.",
        ),
        tested=_TESTED,
        sources=("solr.apache.org reference guide: learning to rank, JSON combined query DSL",),
    ),
)
