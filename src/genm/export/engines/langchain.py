"""LangChain: EnsembleRetriever, weighted reciprocal ranks."""

from typing import Any

from genm.export.quoting import PYTHON, py_literal
from genm.export.simulation import add_reciprocal
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Technique, Window
from genm.normalizers import Normalizer


def compose(order: Order) -> dict[str, Any]:
    """Return the retriever's arguments."""
    return {
        "rankers": [part.ranker for part in order.parts],
        "weights": [part.weight for part in order.parts],
        "c": int(order.parts[0].normalizer.k),
        "id_key": order.settings["id_key"] or None,
        "depths": [part.depth for part in order.parts],
    }


def render(document: Payload) -> str:
    """Return a Python function that makes the retriever."""
    depths = dict(zip(document["rankers"], document["depths"], strict=True))
    return f'''"""A retriever with learned weights."""

from langchain_classic.retrievers import EnsembleRetriever

RANKERS = {py_literal(document["rankers"])}
DEPTHS = {py_literal(depths)}  # how many documents each retriever must return


def learned_retriever(retrievers):
    """Fuse LangChain retrievers; `retrievers` maps each of RANKERS to one."""
    return EnsembleRetriever(
        retrievers=[retrievers[name] for name in RANKERS],
        weights={py_literal(document["weights"])},
        c={document["c"]},
        id_key={py_literal(document["id_key"])},
    )
'''


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Add weight / (c + rank) over what each retriever returns."""
    fused: dict[str, float] = {}
    for scores, weight, depth in zip(lists, document["weights"], document["depths"], strict=True):
        for doc, share in add_reciprocal([scores], [weight], document["c"], depth).items():
            fused[doc] = fused.get(doc, 0.0) + share
    return fused


_TESTED = "The exported retriever runs inside LangChain in the tests, and its ranking is the simulator's."

PLACE = 130
TARGETS = (
    Target(
        name="langchain",
        title="LangChain EnsembleRetriever",
        versions="langchain-classic 1.0 and later; langchain before 1.0 with the import changed",
        techniques=(Technique("rrf", Normalizer("reciprocal"), frozenset({"k"}), whole={"k": (0, 10**9)}),),
        shared=frozenset({"k"}),
        window=Window(4, each=True),
        code=Code(compose, simulate, render),
        file=PYTHON,
        guide=Guide(
            index="""bm25 = BM25Retriever.from_documents(documents, k=100)
dense = vector_store.as_retriever(search_kwargs={"k": 100})""",
            runs="Invoke each retriever for every query and write the documents in the order they come, with "
            "falling scores (1/1, 1/2, 1/3, ...): only the ranks count.",
            send="Import `learned_retriever` from the file and call it with the retrievers by name.",
            search="""from MODULE import learned_retriever

documents = learned_retriever({"bm25": bm25, "dense": dense}).invoke(text)""",
            settings={"id_key": "id"},
        ),
        settings=(
            Setting("id_key", "", "the metadata key that tells documents apart; their text if left out", "name"),
        ),
        notes=(
            "Retrievers return 4 documents by default: set each to its depth in training.",
            "Documents are identified by their text, or by id_key if it is set.",
            "Equal sums keep the order in which the documents were first seen.",
        ),
        tested=_TESTED,
        sources=("langchain-ai/langchain: EnsembleRetriever.weighted_reciprocal_rank",),
    ),
)
