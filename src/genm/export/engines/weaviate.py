"""Weaviate: hybrid search of one text and one vector query, weighted by alpha."""

from typing import Any

from genm.export.quoting import PYTHON, py_literal
from genm.export.settings import FIELD, SIZE, TYPE, one_of_each, size_within
from genm.export.simulation import add_reciprocal, add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Technique, Window
from genm.normalizers import ENGINES, Normalizer

_WORDS = {"relativeScoreFusion": "RELATIVE_SCORE", "rankedFusion": "RANKED"}


def compose(order: Order) -> dict[str, Any]:
    """Return the arguments of the hybrid query."""
    text, dense = one_of_each(order, "Weaviate hybrid search")
    return {
        "rankers": [part.ranker for part in order.parts],
        "vector_ranker": dense.ranker,
        "alpha": dense.weight / (text.weight + dense.weight),
        "fusion": order.parts[0].technique,
        "properties": [text.settings["field"]],
        "target_vector": dense.settings["target"] or None,
        "limit": size_within(order, "what Weaviate fuses"),
        "window": order.window,
    }


def render(document: Payload) -> str:
    """Return a Python function that searches a collection."""
    target = (
        f"\n        target_vector={py_literal(document['target_vector'])}," if document["target_vector"] else ""
    )
    return f'''"""Hybrid search with learned weights."""

from weaviate.classes.query import HybridFusion


def search(collection, query, vector=None, limit={document["limit"]}):
    """Search a Weaviate collection; without a vector its vectorizer makes one of the query."""
    return collection.query.hybrid(
        query=query,
        vector=vector,
        alpha={py_literal(document["alpha"])},
        fusion_type=HybridFusion.{_WORDS[document["fusion"]]},
        query_properties={py_literal(document["properties"])},{target}
        limit=limit,
    )
'''


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Scale each window to 0..1 (or take 1 / (59 + rank)) and blend by alpha."""
    alpha, window = document["alpha"], document["window"]
    weights = [alpha if name == document["vector_ranker"] else 1.0 - alpha for name in document["rankers"]]
    if document["fusion"] == "rankedFusion":
        return add_reciprocal(lists, weights, 59.0, window)
    columns = []
    for scores in lists:
        cut = top(scores, window)
        low, high = min(cut.values(), default=0.0), max(cut.values(), default=0.0)
        columns.append({doc: (s - low) / (high - low) if high != low else 1.0 for doc, s in cut.items()})
    return add_weighted(columns, weights)


_TESTED = (
    "`make engines` builds and starts Weaviate 1.35.2, fills it with a test collection, pulls "
    "each ranker's list, fits, exports and calls the function as it is. The first 10 are "
    "those of `genm fuse`, in the same order, for every query. The simulator is held to the "
    "same server with random, constant and missing scores."
)

PLACE = 50
TARGETS = (
    Target(
        name="weaviate",
        title="Weaviate hybrid search",
        versions="1.24 and later (relativeScoreFusion is the default since)",
        techniques=(
            Technique("relativeScoreFusion", ENGINES["weaviate-relative"], group="scores"),
            Technique("rankedFusion", Normalizer("reciprocal", k=59.0), group="ranks"),
        ),
        window=Window(100, least=100, most=100),
        n_rankers=(2, 2),
        pair=True,
        code=Code(compose, simulate, render),
        file=PYTHON,
        guide=Guide(
            index="""from weaviate.classes.config import Configure, DataType, Property

client.collections.create(
    "Article",
    vector_config=Configure.Vectors.self_provided(),
    properties=[Property(name="text", data_type=DataType.TEXT)],
)""",
            runs="Run `collection.query.bm25` and `collection.query.near_vector` with `limit=100` and "
            "`return_metadata=MetadataQuery(score=True, distance=True)`; write the score, or 1 - distance, of "
            "every object to the run files.",
            send="Import `search` from the file and call it with the collection and the query.",
            search="""from MODULE import search

objects = search(client.collections.use("Article"), text, vector).objects""",
        ),
        settings=(SIZE,),
        ranker_settings=(TYPE, FIELD, Setting("target", "", "the named vector, if there are several", "name")),
        notes=(
            "Weaviate fuses the 100 best of each query. More results than that make it fuse more, which is another "
            "ranking: ask for 100 at most.",
            "A list of equal scores, or of one hit, becomes 1.",
            "rankedFusion counts ranks from 0 with 60, which is 1 / (59 + rank).",
            "Documents whose sums are closer than 1e-7 are ordered by raw score (the vector's, if there is one), "
            "then by object id upwards; genm orders equal sums by doc id downwards.",
        ),
        tested=_TESTED,
        sources=("docs.weaviate.io: hybrid search operators", "weaviate/weaviate: hybrid_fusion.go"),
    ),
)
