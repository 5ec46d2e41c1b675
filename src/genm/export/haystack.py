"""Haystack: DocumentJoiner, by raw scores or by reciprocal ranks."""

from typing import Any

from genm.export.asking import SIZE, folded
from genm.export.names import py_literal
from genm.export.simulation import add_reciprocal, add_weighted, top
from genm.export.target import Document, Guide, Lists, Order, Target, Technique, WeightRule, Window
from genm.records import Normalizer


def compose(order: Order) -> dict[str, Any]:
    """Return the joiner's arguments."""
    mode = order.parts[0].technique
    return {
        "rankers": [part.ranker for part in order.parts],
        "weights": [folded(part)[0] if mode == "merge" else part.weight for part in order.parts],
        "mode": mode,
        "depths": [part.depth for part in order.parts],
        "size": order.count("size"),
    }


def render(document: Document) -> str:
    """Return a Python function that makes the joiner."""
    depths = dict(zip(document["rankers"], document["depths"], strict=True))
    return f'''"""A document joiner with learned weights."""

from haystack.components.joiners import DocumentJoiner

RANKERS = {py_literal(document["rankers"])}
DEPTHS = {py_literal(depths)}  # top_k of each retriever


def learned_joiner(top_k={document["size"]}):
    """Join lists of documents; connect the retrievers in the order of RANKERS."""
    return DocumentJoiner(
        join_mode={py_literal(document["mode"])},
        weights={py_literal(document["weights"])},
        top_k=top_k,
        sort_by_score=True,
    )
'''


def simulate(document: Document, lists: Lists) -> dict[str, float]:
    """Add weighted raw scores, or weight / (60 + rank); the joiner first makes the weights sum to 1."""
    total = sum(document["weights"])
    weights = [weight / total for weight in document["weights"]]
    cut = [top(scores, depth) for scores, depth in zip(lists, document["depths"], strict=True)]
    if document["mode"] == "merge":
        return add_weighted(cut, weights)
    return add_reciprocal(cut, weights, 60.0, None)


TARGETS = (
    Target(
        name="haystack",
        title="Haystack DocumentJoiner",
        versions="haystack-ai 2.0 and later",
        techniques=(
            Technique("reciprocal_rank_fusion", Normalizer("reciprocal", k=60.0), group="ranks"),
            Technique("merge", Normalizer("none"), line="slope", group="scores"),
        ),
        window=Window(10, each=True),
        weights=WeightRule(),
        compose=compose,
        render=render,
        simulate=simulate,
        media_type="text/x-python",
        suffix="py",
        guide=Guide(
            index="""bm25 = InMemoryBM25Retriever(document_store=store, top_k=100)
dense = InMemoryEmbeddingRetriever(document_store=store, top_k=100)""",
            runs="Run each retriever for every query and write the id and score of every document to that ranker's "
            "run file.",
            send="Import `learned_joiner` from the file, add it to the pipeline and connect the retrievers in the "
            "order of `RANKERS`.",
            search="""from MODULE import learned_joiner

pipeline.add_component("fusion", learned_joiner())
pipeline.connect("bm25", "fusion.documents")
pipeline.connect("dense", "fusion.documents")""",
        ),
        settings=(SIZE,),
        notes=(
            "merge adds raw scores, so rankers must already be on one scale; the distribution-based mode ignores "
            "weights and is not offered.",
            "Equal sums keep the order in which the documents were first seen.",
        ),
        sources=("deepset-ai/haystack: DocumentJoiner, reciprocal rank fusion in utils",),
    ),
)
