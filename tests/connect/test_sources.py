"""Retrievers of frameworks as sources: the real classes where they are installed."""

import importlib

import pytest

from genm.connect import PullError, pull
from genm.errors import EngineError, InputError

QUERIES = {"q1": "red cars", "q2": "blue cars"}
TEXTS = {"d1": "red cars are fast", "d2": "blue sky", "d3": "cars of all colours"}


def test_a_callable_may_take_the_vector():
    def source(query, *, depth, vector=None):
        return [("d1", vector[0]), ("d2", vector[1])][:depth]

    pulled = pull(source, QUERIES, vectors={"q1": [3.0, 1.0], "q2": [2.0, 1.5]})
    assert pulled.runs["run"]["q2"] == {"d1": 2.0, "d2": 1.5}


def test_a_callable_that_returns_something_else_is_said():
    with pytest.raises(PullError, match=r"expected pairs \(document id, score\)"):
        pull(lambda query, depth: ["d1", "d2"], QUERIES)


def test_a_time_out_of_a_callable_is_tried_again(monkeypatch):
    monkeypatch.setattr("genm.connect.pull_runs._Pacer.sleep", lambda *_: None)
    asked = []

    def source(query, depth):
        asked.append(query)
        if len(asked) < 3:
            raise TimeoutError("slow")
        return [("d1", 1.0)]

    assert len(pull(source, QUERIES).runs["run"]) == 2


def test_numpy_scores_are_numbers():
    import numpy as np

    pulled = pull(lambda query, depth: [("d1", np.float32(0.5)), ("d2", np.int64(0))], QUERIES)
    assert pulled.runs["run"]["q1"] == {"d1": 0.5, "d2": 0.0}


def test_a_langchain_retriever_gives_reciprocal_ranks():
    documents = pytest.importorskip("langchain_core.documents")
    retrievers = pytest.importorskip("langchain_core.retrievers")

    class Words(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            found = [key for key, text in TEXTS.items() if set(query.split()) & set(text.split())]
            return [documents.Document(TEXTS[key], id=key, metadata={"name": f"n-{key}"}) for key in found]

    pulled = pull({"words": Words()}, QUERIES, texts=True)
    assert pulled.runs["words"]["q1"] == {"d1": 1.0, "d3": 0.5}
    assert pulled.texts["d3"] == TEXTS["d3"]
    assert pull({"words": Words()}, QUERIES, id_field="name").runs["words"]["q1"] == {"n-d1": 1.0, "n-d3": 0.5}
    with pytest.raises(PullError, match="Give id_field"):
        pull({"words": Words()}, QUERIES, id_field="missing")


def test_a_llamaindex_retriever_gives_its_scores():
    schema = pytest.importorskip("llama_index.core.schema")
    base = pytest.importorskip("llama_index.core.retrievers")

    class Words(base.BaseRetriever):
        def _retrieve(self, query_bundle):
            node = schema.TextNode(id_="d1", text=TEXTS["d1"])
            return [schema.NodeWithScore(node=node, score=0.75 if "red" in query_bundle.query_str else None)]

    assert pull({"words": Words()}, {"q1": "red"}).runs["words"]["q1"] == {"d1": 0.75}
    with pytest.raises(PullError, match="expected a score for document 'd1'"):
        pull({"words": Words()}, QUERIES)


def test_a_haystack_component_is_asked_by_text_or_vector():
    haystack = pytest.importorskip("haystack")
    memory = importlib.import_module("haystack.document_stores.in_memory")
    retrievers = importlib.import_module("haystack.components.retrievers.in_memory")
    store = memory.InMemoryDocumentStore(embedding_similarity_function="dot_product")
    vectors = {"d1": [1.0, 0.0], "d2": [0.0, 1.0], "d3": [0.5, 0.5]}
    store.write_documents([haystack.Document(id=k, content=t, embedding=vectors[k]) for k, t in TEXTS.items()])
    sources = {
        "bm25": retrievers.InMemoryBM25Retriever(store),
        "dense": retrievers.InMemoryEmbeddingRetriever(store),
    }
    pulled = pull(sources, QUERIES, vectors={"q1": [1.0, 0.0], "q2": [0.0, 1.0]}, depth=2, texts=True)
    assert pulled.runs["dense"]["q1"] == {"d1": 1.0, "d3": 0.5}
    assert len(pulled.runs["bm25"]["q1"]) == 2
    assert pulled.texts["d1"] == TEXTS["d1"]
    with pytest.raises((EngineError, InputError), match="expected a vector"):
        pull(sources, QUERIES)


def test_a_pyterrier_transformer_is_asked_with_a_frame():
    pt = pytest.importorskip("pyterrier")
    pd = pytest.importorskip("pandas")

    def words(topics):
        rows = [(qid, "d2", 0.5, "two") for qid in topics["qid"]] + [
            (qid, "d1", 1.5, "one") for qid in topics["qid"]
        ]
        return pd.DataFrame(rows, columns=["qid", "docno", "score", "text"])

    pulled = pull({"words": pt.apply.generic(words)}, QUERIES, texts=True)
    assert pulled.runs["words"]["q2"] == {"d1": 1.5, "d2": 0.5}
    assert pulled.texts == {"d1": "one", "d2": "two"}
