"""Anything in Python that ranks: a callable, or a retriever of LangChain, LlamaIndex, Haystack or PyTerrier."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from genm.connect.engine import Answer, Hit, checked_answer
from genm.connect.templates import Values
from genm.errors import EngineError, MissingExtraError, WrongTypeError

Search = Callable[[Values], Iterable[Hit]]


class Source(NamedTuple):
    """A source's kind and its search."""

    kind: str
    search: Search


def open_source(name: str, source: Any, *, id_field: str | None = None) -> Source:
    """Return how to ask a source; its kind is found by its class, and no library is imported for it."""
    modules = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    if modules & {"langchain_core", "langchain", "langchain_classic", "langchain_community"}:
        return Source("LangChain", _langchain(source, id_field))
    if "llama_index" in modules:
        return Source("LlamaIndex", _llamaindex(source))
    if "pyterrier" in modules:
        return Source("PyTerrier", _pyterrier(source))
    if hasattr(type(source), "__haystack_input__") or hasattr(source, "__haystack_input__"):
        return Source("Haystack", _haystack(source))
    if callable(source):
        return Source("callable", _callable(source))
    raise WrongTypeError(
        f"{name}: expected a callable, or a retriever of LangChain, LlamaIndex, Haystack or PyTerrier; found "
        f"{type(source).__name__}. A callable takes the query's text and depth=, and returns documents with scores."
    )


def ask_source(name: str, source: Source, values: Values, duplicates: str) -> Answer:
    """Return the checked answer of a source to one query."""
    try:
        hits = list(source.search(values))
    except (TimeoutError, ConnectionError) as error:
        raise EngineError(
            f"{name}: query {values.query_id!r}: {error or type(error).__name__}.", retry=True
        ) from error
    return checked_answer(hits[: values.depth], f"{name}: query {values.query_id!r}", "", duplicates)


def _callable(source: Callable[..., Any]) -> Search:
    takes_vector = "vector" in _parameters(source)

    def search(values: Values) -> list[Hit]:
        extra = {"vector": values.vector} if takes_vector and values.vector is not None else {}
        found = source(values.query, depth=values.depth, **extra)
        pairs = found.items() if isinstance(found, Mapping) else found
        return [_pair(pair, values.query_id) for pair in pairs]

    return search


def _pair(pair: Any, query_id: str) -> Hit:
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) not in (2, 3):
        raise EngineError(
            f"callable: query {query_id!r}: expected pairs (document id, score), or with the text; found "
            f"{pair!r:.60}."
        )
    doc_id, score, *text = pair
    return Hit(doc_id, score.item() if hasattr(score, "item") else score, text[0] if text else None)


def _langchain(source: Any, id_field: str | None) -> Search:
    """Give documents 1 / rank: a retriever returns no scores, and the ensemble uses the ranks only."""

    def search(values: Values) -> list[Hit]:
        documents = source.invoke(values.query)
        hits = []
        for rank, document in enumerate(documents, 1):
            doc_id = document.id if id_field is None else document.metadata.get(id_field)
            if doc_id is None:
                raise EngineError(
                    f"LangChain: query {values.query_id!r}, rank {rank}: expected a document with an id; found "
                    "none. "
                    "Give id_field, the key of the metadata that names the document."
                )
            hits.append(Hit(doc_id, 1 / rank, document.page_content))
        return hits

    return search


def _llamaindex(source: Any) -> Search:
    def search(values: Values) -> list[Hit]:
        return [Hit(one.node.node_id, one.score, one.node.get_content()) for one in source.retrieve(values.query)]

    return search


def _haystack(source: Any) -> Search:
    names = _parameters(source.run)

    def search(values: Values) -> list[Hit]:
        asked: dict[str, Any] = {"top_k": values.depth} if "top_k" in names else {}
        if "query_embedding" in names:
            asked["query_embedding"] = values.of("vector", "Haystack retriever")
        else:
            asked["query"] = values.query
        return [Hit(one.id, one.score, one.content) for one in source.run(**asked)["documents"]]

    return search


def _pyterrier(source: Any) -> Search:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a PyTerrier transformer", "pyterrier") from None

    def search(values: Values) -> list[Hit]:
        topics = pd.DataFrame({"qid": [values.query_id], "query": [values.query]})
        found = source.transform(topics)
        texts = found["text"].tolist() if "text" in found.columns else [None] * len(found)
        rows = sorted(
            zip(found["score"].tolist(), found["docno"].tolist(), texts, strict=True), key=lambda row: -row[0]
        )
        return [Hit(doc_id, score, text) for score, doc_id, text in rows]

    return search


def _parameters(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
