"""Milvus: hybrid search under the weighted ranker, whose normalisers are fixed maps of each metric."""

import math
from typing import Any

from genm.errors import ExportError
from genm.export.quoting import PYTHON, py_literal
from genm.export.settings import FIELD, SIZE, TYPE
from genm.export.simulation import add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Setting, Target, Technique, Weights, Window
from genm.normalizers import ENGINES, Normalizer

_METRICS = ("BM25", "COSINE", "IP", "L2")
_RAW = "norm_score off"


def compose(order: Order) -> dict[str, Any]:
    """Return the ranker and the requests."""
    raw = order.parts[0].technique == _RAW
    return {
        "collection": order.settings["collection"],
        "ranker": {
            "reranker": "weighted",
            "weights": [part.weight for part in order.parts],
            "norm_score": not raw,
        },
        "requests": [
            {
                "ranker": part.ranker,
                "anns_field": part.settings["field"],
                "metric_type": _metric(part),
                "limit": part.depth,
            }
            for part in order.parts
        ],
        "limit": order.count("size"),
    }


def render(document: Payload) -> str:
    """Return a Python function that searches."""
    requests = "\n".join(
        f"""        AnnSearchRequest(
            data=[queries[{py_literal(r["ranker"])}]],
            anns_field={py_literal(r["anns_field"])},
            param={{"metric_type": {py_literal(r["metric_type"])}}},
            limit={r["limit"]},
        ),"""
        for r in document["requests"]
    )
    return f'''"""Hybrid search with learned weights."""

from pymilvus import AnnSearchRequest, Function, FunctionType

RANKER = Function(
    name="genm",
    input_field_names=[],
    function_type=FunctionType.RERANK,
    params={py_literal(document["ranker"])},
)


def search(client, queries, limit={document["limit"]}):
    """Search with a MilvusClient; `queries` maps each ranker to the query's text or vector."""
    requests = [
{requests}
    ]
    return client.hybrid_search({py_literal(document["collection"])}, reqs=requests, ranker=RANKER, limit=limit)
'''


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Map every score by its metric and add; L2 lists hold the distances' negatives, higher is better."""
    normed = document["ranker"]["norm_score"]
    columns = [
        {
            doc: _mapped(score, r["metric_type"]) if normed else score
            for doc, score in top(scores, r["limit"]).items()
        }
        for scores, r in zip(lists, document["requests"], strict=True)
    ]
    return add_weighted(columns, document["ranker"]["weights"])


def _mapped(score: float, metric: str) -> float:
    if metric == "COSINE":
        return 0.5 * (1.0 + score)
    if metric == "IP":
        return 0.5 + math.atan(score) / math.pi
    if metric == "BM25":
        return 2.0 * math.atan(score) / math.pi
    distance = -score
    return 1.0 - 2.0 * math.atan(distance) / math.pi


def _metric(part: Part) -> str:
    if part.technique == _RAW:
        metric = part.settings["metric"] or {"text": "BM25", "vector": "COSINE"}[part.settings["type"]]
        if metric == "L2":
            raise ExportError(f"{part.ranker}.metric: L2 without norm_score ranks the nearest last here.")
        return metric
    said = part.settings["metric"]
    if said and said != part.technique:
        raise ExportError(f"{part.ranker}.metric: expected {part.technique}, as trained; found {said}.")
    return part.technique


_TESTED = (
    "`make engines` opens Milvus Lite 3.2, fills it with a test collection, pulls each "
    "ranker's list, fits, exports and calls the function as it is. The first 10 are those of "
    "`genm fuse`, in the same order, for every query. The simulator is held to the same "
    "engine with random, tied, constant, single and missing scores and small windows. A "
    "Milvus server is not among the packages that the tests can start."
)

PLACE = 70
TARGETS = (
    Target(
        name="milvus",
        title="Milvus weighted ranker",
        versions="2.6 and later",
        techniques=(
            Technique("BM25", ENGINES["milvus-bm25"], scores=(0.0, math.inf)),
            Technique("COSINE", ENGINES["milvus-cosine"], scores=(-1.0, 1.0)),
            Technique("IP", ENGINES["milvus-ip"]),
            Technique("L2", ENGINES["milvus-l2"], distances=True, scores=(-math.inf, 0.0)),
            Technique(_RAW, Normalizer("none"), group="raw"),
        ),
        window=Window(10, each=True, most=16_384),
        weights=Weights(most=1.0),
        words={"text": "BM25", "vector": "COSINE"},
        code=Code(compose, simulate, render),
        file=PYTHON,
        guide=Guide(
            index="""from pymilvus import DataType, Function, FunctionType

schema = client.create_schema()
schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
schema.add_field("body", DataType.VARCHAR, max_length=65535, enable_analyzer=True)
schema.add_field("text", DataType.SPARSE_FLOAT_VECTOR)
schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=384)
schema.add_function(
    Function("bm25", FunctionType.BM25, input_field_names=["body"], output_field_names=["text"])
)""",
            runs="Search each field alone with `limit` at the window and write every hit's id and distance to "
            "that ranker's run file; of L2 write the negative distance, so that higher is better.",
            send="Import `search` from the file and call it with a `MilvusClient` and the query in each form.",
            search="""from MODULE import search

hits = search(client, {"bm25": text, "dense": vector})[0]""",
        ),
        settings=(SIZE, Setting("collection", "articles", "the collection", "name")),
        ranker_settings=(
            TYPE,
            FIELD,
            Setting("metric", "", "the field's metric; by default the normaliser's", choices=_METRICS),
        ),
        notes=(
            "With norm_score on, scores are mapped by fixed functions of the metric, BM25 2 atan(s) / pi, COSINE "
            "(1 + s) / 2, IP 1/2 + atan(s) / pi, L2 1 - 2 atan(d) / pi: no list is looked at.",
            "Train each ranker with the normaliser of its field's metric.",
            "Equal scores are ordered by primary key upwards.",
        ),
        tested=_TESTED,
        sources=("milvus.io documentation: weighted ranker", "milvus-io/milvus: rerank weighted function"),
    ),
)
