"""Azure AI Search: reciprocal rank fusion of a text query and vector queries with weights."""

from typing import Any

from genm.errors import ExportError
from genm.export.quoting import to_json
from genm.export.settings import FIELD, QUERY, SIZE, TYPE, VECTOR, vector
from genm.export.simulation import add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Payload, Target, Technique, Weights, Window
from genm.normalizers import Normalizer

_TEXT_WINDOW = 1000  # what the text query recalls unless a preview parameter says otherwise


def compose(order: Order) -> dict[str, Any]:
    """Return the search request; the text query's weight is 1, the others are relative to it."""
    text = [part for part in order.parts if part.settings["type"] == "text"]
    if len(text) > 1:
        names = ", ".join(part.ranker for part in text)
        raise ExportError(f"Azure AI Search has one text query; found {names}. Set RANKER.type=vector.")
    unit = text[0].weight if text else max(part.weight for part in order.parts)
    request: dict[str, Any] = {}
    if text:
        request |= {"search": order.settings["query"], "searchFields": text[0].settings["field"]}
    request["vectorQueries"] = [
        {
            "kind": "vector",
            "vector": vector(part),
            "fields": part.settings["field"],
            "k": part.depth,
            "weight": part.weight / unit,
        }
        for part in order.parts
        if part not in text
    ]
    if text and text[0].depth != _TEXT_WINDOW:
        request["hybridSearch"] = {"maxTextRecallSize": text[0].depth}
    request["top"] = order.count("size")
    queries = [*text, *(part for part in order.parts if part not in text)]
    return {"request": request, "lists": [order.parts.index(part) for part in queries]}


def render(document: Payload) -> str:
    """Return the request as JSON."""
    return to_json(document["request"])


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Add weight / (60 + rank); the text query's weight is 1."""
    request = document["request"]
    weights, windows = [], []
    if "search" in request:
        weights.append(1.0)
        windows.append(request.get("hybridSearch", {}).get("maxTextRecallSize", _TEXT_WINDOW))
    weights += [query["weight"] for query in request["vectorQueries"]]
    windows += [query["k"] for query in request["vectorQueries"]]
    columns = [
        {doc: 1.0 / (60.0 + rank) for rank, doc in enumerate(top(lists[i], window), start=1)}
        for i, window in zip(document["lists"], windows, strict=True)
    ]
    return add_weighted(columns, weights)


_TESTED = (
    "The request is held to the official client's types and the ranking to a simulator "
    "written from Microsoft's documentation. No server runs in the tests: Azure AI Search is "
    "a service."
)

PLACE = 80
TARGETS = (
    Target(
        name="azure",
        title="Azure AI Search hybrid query",
        versions="API 2024-07-01 and later (a text window other than 1000: preview versions with hybridSearch)",
        techniques=(Technique("rrf", Normalizer("reciprocal", k=60.0)),),
        window=Window(50, each=True, most=10_000),
        weights=Weights(above=True),
        code=Code(compose, simulate, render),
        guide=Guide(
            index="""PUT https://SERVICE.search.windows.net/indexes/articles?api-version=2024-07-01
{
  "name": "articles",
  "fields": [
    {"name": "id", "type": "Edm.String", "key": true},
    {"name": "text", "type": "Edm.String", "searchable": true},
    {"name": "embedding", "type": "Collection(Edm.Single)", "searchable": true,
     "dimensions": 384, "vectorSearchProfile": "default"}
  ],
  "vectorSearch": {
    "profiles": [{"name": "default", "algorithm": "hnsw"}],
    "algorithms": [{"name": "hnsw", "kind": "hnsw"}]
  }
}""",
            runs="Send the text query and each vector query alone with `top` at the window, and write the key and "
            "`@search.score` of every result to that ranker's run file.",
            send="`POST https://SERVICE.search.windows.net/indexes/articles/docs/search` "
            "with the file as body, the placeholders replaced by the query's words and vector.",
            search="""curl -H "Content-Type: application/json" -H "api-key: $KEY" -d @FILE \\
  "https://SERVICE.search.windows.net/indexes/articles/docs/search?api-version=2025-05-01-preview\"""",
            language="bash",
        ),
        settings=(QUERY, SIZE),
        ranker_settings=(TYPE, FIELD, VECTOR),
        notes=(
            "The text query has no weight of its own: the vectors' weights are relative to it.",
            "The constant is documented as a small value such as 60 and cannot be set.",
        ),
        tested=_TESTED,
        sources=("learn.microsoft.com: hybrid search ranking, VectorQuery.weight, hybridSearch.maxTextRecallSize",),
    ),
)
