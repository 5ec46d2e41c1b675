"""Haystack: DocumentJoiner, by raw scores or by reciprocal ranks."""

from typing import Any

from genm.errors import ExportError
from genm.export.quoting import PYTHON, plain_name, py_literal
from genm.export.settings import SIZE, folded
from genm.export.simulation import add_reciprocal, add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Technique, Window
from genm.normalizers import Normalizer


def compose(order: Order) -> dict[str, Any]:
    """Return the joiner's arguments."""
    mode = order.parts[0].technique
    return {
        "inputs": _inputs(order),
        "weights": [folded(part)[0] if mode == "merge" else part.weight for part in order.parts],
        "mode": mode,
        "depths": [part.depth for part in order.parts],
        "size": order.count("size"),
    }


def render(document: Payload) -> str:
    """Return a Python component with one named input for each ranker.

    A plain DocumentJoiner would not do: a pipeline gives it the lists in the order in which the retrievers have
    run, whatever the order of the connections, and so the weights would go to the wrong lists.
    """
    depths = dict(zip(document["inputs"], document["depths"], strict=True))
    return f'''"""A document joiner with learned weights."""

from haystack import Document, component
from haystack.components.joiners import DocumentJoiner

INPUTS = {py_literal(document["inputs"])}
DEPTHS = {py_literal(depths)}  # top_k of each retriever


@component
class LearnedJoiner:
    """Join lists of documents; every retriever has an input of its own, named in INPUTS."""

    def __init__(self, top_k: int = {document["size"]}):
        self.top_k = top_k
        self.joiner = DocumentJoiner(
            join_mode={py_literal(document["mode"])},
            weights={py_literal(document["weights"])},
            top_k=top_k,
            sort_by_score=True,
        )
        component.set_input_types(self, **{{name: list[Document] for name in INPUTS}})

    @component.output_types(documents=list[Document])
    def run(self, **lists):
        return self.joiner.run([lists[name] for name in INPUTS])
'''


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Add weighted raw scores, or weight / (60 + rank); the joiner first makes the weights sum to 1."""
    total = sum(document["weights"])
    weights = [weight / total for weight in document["weights"]]
    cut = [top(scores, depth) for scores, depth in zip(lists, document["depths"], strict=True)]
    if document["mode"] == "merge":
        return add_weighted(cut, weights)
    return add_reciprocal(cut, weights, 60.0, None)


def _inputs(order: Order) -> list[str]:
    """Return the names of the component's inputs, which a pipeline writes behind a dot."""
    names = [part.settings["input"] or part.ranker for part in order.parts]
    for name, part in zip(names, order.parts, strict=True):
        plain_name(name, f"ranker {part.ranker}", f"Give an input's name with {part.ranker}.input=...")
        if names.count(name) > 1:
            raise ExportError(f"{part.ranker}.input: expected different names; found {name} twice.")
    return names


_TESTED = "The exported component runs inside Haystack in the tests, and its ranking is the simulator's."

PLACE = 150
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
        code=Code(compose, simulate, render),
        file=PYTHON,
        guide=Guide(
            index="""bm25 = InMemoryBM25Retriever(document_store=store, top_k=100)
dense = InMemoryEmbeddingRetriever(document_store=store, top_k=100)""",
            runs="Run each retriever for every query and write the id and score of every document to that ranker's "
            "run file.",
            send="Import `LearnedJoiner` from the file, add it to the pipeline and connect each retriever to the "
            "input of its name; the query goes to the retrievers as before.",
            search="""from MODULE import LearnedJoiner

pipeline.add_component("fusion", LearnedJoiner())
pipeline.connect("bm25.documents", "fusion.bm25")
pipeline.connect("dense.documents", "fusion.dense")""",
        ),
        settings=(SIZE,),
        ranker_settings=(
            Setting("input", "", "the input's name, if the ranker's is not of letters, digits and _", "name"),
        ),
        notes=(
            "A plain DocumentJoiner takes the lists in the order in which the retrievers have run, not in that of "
            "the connections, and gives weights to the wrong lists. This component therefore has named inputs.",
            "merge adds raw scores, so rankers must already be on one scale; the distribution-based mode ignores "
            "weights and is not offered.",
            "Equal sums keep the order in which the documents were first seen.",
        ),
        tested=_TESTED,
        sources=("deepset-ai/haystack: DocumentJoiner, reciprocal rank fusion in utils",),
    ),
)
