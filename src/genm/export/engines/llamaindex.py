"""LlamaIndex: QueryFusionRetriever in its two score modes."""

from typing import Any

from genm.export.quoting import PYTHON, py_literal
from genm.export.settings import SIZE
from genm.export.simulation import add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Payload, Target, Technique, Window
from genm.normalizers import Normalizer


def compose(order: Order) -> dict[str, Any]:
    """Return the retriever's arguments."""
    return {
        "rankers": [part.ranker for part in order.parts],
        "weights": [part.weight for part in order.parts],
        "mode": order.parts[0].technique,
        "depths": [part.depth for part in order.parts],
        "size": order.count("size"),
    }


def render(document: Payload) -> str:
    """Return a Python function that makes the retriever."""
    depths = dict(zip(document["rankers"], document["depths"], strict=True))
    return f'''"""A retriever with learned weights."""

from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever

RANKERS = {py_literal(document["rankers"])}
DEPTHS = {py_literal(depths)}  # similarity_top_k of each retriever


def learned_retriever(retrievers, similarity_top_k={document["size"]}):
    """Fuse LlamaIndex retrievers; `retrievers` maps each of RANKERS to one."""
    return QueryFusionRetriever(
        [retrievers[name] for name in RANKERS],
        llm=MockLLM(),  # never asked, since there is one query; without it the class wants OpenAI's
        mode={py_literal(document["mode"])},
        retriever_weights={py_literal(document["weights"])},
        similarity_top_k=similarity_top_k,
        num_queries=1,
        use_async=False,
    )
'''


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Scale each list between its ends, or between three deviations from its mean, and add."""
    columns = []
    for scores, depth in zip(lists, document["depths"], strict=True):
        cut = top(scores, depth)
        low, high = _ends(list(cut.values()), document["mode"])
        stuck = 1.0 if high > 0 else 0.0
        columns.append({doc: (s - low) / (high - low) if high != low else stuck for doc, s in cut.items()})
    return add_weighted(columns, document["weights"])


def _ends(values: list[float], mode: str) -> tuple[float, float]:
    if not values:
        return 0.0, 0.0
    if mode == "relative_score":
        return min(values), max(values)
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return mean - 3 * deviation, mean + 3 * deviation


_TESTED = "The exported retriever runs inside LlamaIndex in the tests, and its ranking is the simulator's."

PLACE = 140
TARGETS = (
    Target(
        name="llamaindex",
        title="LlamaIndex QueryFusionRetriever",
        versions="llama-index-core 0.11 and later",
        techniques=(
            Technique("relative_score", Normalizer("minmax"), group="relative_score"),
            Technique(
                "dist_based_score",
                Normalizer("zscore", scale=1.0 / 6.0, shift=0.5),
                group="dist_based_score",
            ),
        ),
        window=Window(2, each=True),
        code=Code(compose, simulate, render),
        file=PYTHON,
        guide=Guide(
            index="""bm25 = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=100)
dense = index.as_retriever(similarity_top_k=100)""",
            runs="Call `retrieve` of each retriever for every query and write `node.node_id` and `score` to that "
            "ranker's run file.",
            send="Import `learned_retriever` from the file and call it with the retrievers by name.",
            search="""from MODULE import learned_retriever

nodes = learned_retriever({"bm25": bm25, "dense": dense}).retrieve(text)""",
        ),
        settings=(SIZE,),
        notes=(
            "The reciprocal rank mode ignores retriever_weights, so it is not offered.",
            "num_queries is 1: with more, an LLM writes further queries and the scores are shared among them.",
            "A list of equal scores becomes 1, but 0 if these scores are not above 0; training has 1 for both.",
            "Retrievers return 2 nodes by default: set each to its depth in training.",
            "Nodes with the same text and metadata count as one: they are compared by a hash of both.",
        ),
        tested=_TESTED,
        sources=("run-llama/llama_index: QueryFusionRetriever._relative_score_fusion",),
    ),
)
