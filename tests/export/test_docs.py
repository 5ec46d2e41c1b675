"""The engines' pages are made by the code; a page that differs from it fails here."""

import importlib
import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from engine_pages import example_model, overview, page, search_snippet, training_snippet

from genm.align import Aligned
from genm.export import export_model, targets
from genm.read import qrels_from_dict, run_from_dict

FOLDER = Path(__file__).parents[2] / "docs" / "engines"
ADVICE = "Write the pages again: python tools/engine_pages.py docs/engines"


@pytest.mark.parametrize("name", targets())
def test_the_page_is_what_the_code_writes(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == page(targets()[name]), ADVICE


def test_the_overview_lists_every_page_and_no_page_is_left_over() -> None:
    assert (FOLDER / "index.md").read_text(encoding="utf-8") == overview(), ADVICE
    assert {path.stem for path in FOLDER.glob("*.md")} == {"index", *targets()}


@pytest.mark.parametrize("name", targets())
def test_the_page_ends_with_a_query_that_holds_the_weights(name: str) -> None:
    text = page(targets()[name])
    model = example_model(targets()[name])
    written = export_model(model, name, settings=targets()[name].guide.settings).text
    assert written.rstrip() in text
    if not targets()[name].weights.equal and name != "azure":  # Azure: relative to the text's; RRF: not written
        assert re.search(r"0\.65", written)


@pytest.mark.parametrize("name", targets())
def test_the_training_snippet_runs(name: str) -> None:
    target, draw = targets()[name], random.Random(0)
    grades = {f"q{q}": {f"d{i}": int(draw.random() < 0.4) for i in range(9)} for q in range(8)}
    runs = {
        ranker: run_from_dict(
            {
                query: {doc: 2.0 + g + draw.gauss(0, noise) for doc, g in docs.items()}
                for query, docs in grades.items()
            },
            name=ranker,
        )
        for ranker, noise in zip(target.guide.rankers, (0.8, 1.2), strict=True)
    }
    space: dict[str, Any] = {"runs": runs, "qrels": qrels_from_dict(grades)}
    exec(training_snippet(target), space)
    assert isinstance(space["aligned"], Aligned)
    assert space["aligned"].normalizers == tuple(space["rules"].normalizers.values())
    assert sum(space["model"].weights) == pytest.approx(1.0)
    assert space["exported"].text


TEXT, VECTOR = 'red "cars"', [0.25, 0.5, 0.75]


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write a target's exported file where its page's code looks for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str) -> None:
        target = targets()[name]
        written = export_model(example_model(target), name, settings=target.guide.settings)
        (tmp_path / written.file_name).write_text(written.text, encoding="utf-8")

    return write


def searched(name: str, **given: object) -> dict[str, Any]:
    """Run the page's search with these names at hand; return all names."""
    space: dict[str, Any] = {"text": TEXT, "vector": VECTOR, **given}
    exec(compile(search_snippet(targets()[name]), name, "exec"), space)
    return space


def client_of(module: str, name: str) -> Any:
    """A stand-in that takes nothing but what the official client takes."""
    library = pytest.importorskip(module, reason=f"{module} is not installed", exc_type=ImportError)
    return create_autospec(getattr(library, name), instance=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "module", "kind"),
    [
        ("elasticsearch", "elasticsearch", "Elasticsearch"),
        ("elasticsearch-rrf", "elasticsearch", "Elasticsearch"),
        ("opensearch", "opensearchpy", "OpenSearch"),
        ("opensearch-rrf", "opensearchpy", "OpenSearch"),
    ],
)
def test_the_search_of_an_index(name: str, module: str, kind: str, exported: Callable[[str], None]) -> None:
    exported(name)
    client = client_of(module, kind)
    searched(name, client=client)
    sent = json.dumps(client.search.call_args.kwargs)
    assert all(piece in sent for piece in (json.dumps(TEXT), str(VECTOR), "0.35", "0.65"))
    assert "QUERY" not in sent


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_mongodb(exported: Callable[[str], None]) -> None:
    exported("mongodb")
    collection = client_of("pymongo.collection", "Collection")
    collection.aggregate.return_value = [{"_id": "a"}]
    found = searched("mongodb", collection=collection)
    assert found["documents"] == [{"_id": "a"}]
    sent = json.dumps(collection.aggregate.call_args.args)
    assert all(piece in sent for piece in (json.dumps(TEXT), str(VECTOR), "0.65"))


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_redis(exported: Callable[[str], None]) -> None:
    exported("redis")
    client = client_of("redis", "Redis")
    searched("redis", client=client)
    words = client.execute_command.call_args.args
    assert words[words.index("SEARCH") + 1] == r"@text:(red \"cars\")"
    assert words[-1] == b"\x00\x00\x80\x3e\x00\x00\x00\x3f\x00\x00\x40\x3f"  # as float32
    assert words[words.index("BETA") + 1] == "0.65"


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_vespa(exported: Callable[[str], None]) -> None:
    app = client_of("vespa.application", "Vespa")
    searched("vespa", app=app)
    body = app.query.call_args.kwargs["body"]
    assert (body["ranking"], body["query"], body["input.query(q_dense)"]) == ("genm", TEXT, VECTOR)
    profile = page(targets()["vespa"])
    assert "query(q_dense) tensor<float>(x[384])" in profile  # what the search gives, the profile declares


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["qdrant", "qdrant-rrf"])
def test_the_search_with_qdrant_itself(name: str, exported: Callable[[str], None]) -> None:
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    models, client = qdrant.models, qdrant.QdrantClient(":memory:")
    client.create_collection(
        "articles",
        vectors_config={"embedding": models.VectorParams(size=3, distance=models.Distance.COSINE)},
        sparse_vectors_config={"text": models.SparseVectorParams()},
    )
    sparse = models.SparseVector(indices=[1], values=[2.0])
    points = [models.PointStruct(id=i, vector={"embedding": [1.0, i, 2.0], "text": sparse}) for i in range(5)]
    client.upsert("articles", points)
    exported(name)
    assert len(searched(name, client=client, sparse=sparse)["answer"].points) == 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "library", "given", "call"),
    [
        ("weaviate", "weaviate", {"client": ("weaviate", "WeaviateClient")}, None),
        ("milvus", "pymilvus", {"client": ("pymilvus", "MilvusClient")}, "hybrid_search"),
    ],
)
def test_the_search_of_an_exported_module(
    name: str, library: str, given: dict[str, tuple[str, str]], call: str | None, exported: Callable[[str], None]
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    exported(name)
    client = client_of(*given["client"])
    if call is None:  # the collection comes from a part of the client that only a connection has
        client.collections = create_autospec(
            importlib.import_module("weaviate.collections.collections").sync._Collections
        )
    searched(name, client=client)
    sent = client.hybrid_search.call_args if call else client.collections.use.return_value.query.hybrid.call_args
    assert "0.65" in str(sent)


def test_the_search_with_sqlite(exported: Callable[[str], None]) -> None:
    pytest.importorskip("sqlite_vec", reason="sqlite-vec is not installed")
    exported("sqlite")
    connection = client_of("sqlite3", "Connection")
    searched("sqlite", connection=connection)
    statement, (words, vector) = connection.execute.call_args.args
    assert statement.startswith("-- ?1: the query for FTS5\n-- ?2: the query's vector for dense\nWITH list1")
    assert words == '"red" OR "cars"'
    assert vector == b"\x00\x00\x80\x3e\x00\x00\x00\x3f\x00\x00\x40\x3f"  # as float32


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_lancedb_itself(exported: Callable[[str], None], tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed")
    from lancedb.index import FTS

    rows = [{"id": f"d{i}", "text": "red cars " * i, "embedding": [1.0, i, 2.0]} for i in range(1, 6)]
    table = lancedb.connect(tmp_path / "data").create_table("articles", rows)
    table.create_index("text", config=FTS())
    exported("lancedb")
    assert len(searched("lancedb", table=table)["rows"]) == 5


@pytest.mark.parametrize("name", [n for n, t in targets().items() if t.guide.language == "bash"])
def test_the_search_by_a_shell(name: str, exported: Callable[[str], None], tmp_path: Path) -> None:
    """curl and psql are stand-ins that write down what they are given."""
    exported(name)
    for tool in ("curl", "psql"):
        shim = tmp_path / "bin" / tool
        shim.parent.mkdir(exist_ok=True)
        body = 'for word in "$@"; do printf "%s\\0" "$word"; done >> sent' if tool == "curl" else "cat >> sent"
        shim.write_text(f"#!/bin/sh\n{body}\n")
        shim.chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    subprocess.run(
        ["bash", "-eu", "-c", search_snippet(targets()[name])], check=True, env={"PATH": path, "KEY": "x"}
    )
    sent = (tmp_path / "sent").read_text(encoding="utf-8")
    if name == "pgvector":
        assert sent.startswith("SET hnsw.ef_search = 100;\nPREPARE learned (text, vector) AS\n-- $1")
        assert sent.endswith("EXECUTE learned ('red cars', '[0.1, 0.2, 0.3]');\n")
        return
    words = sent.split("\0")
    (file,) = (word[1:] for word in words if word.startswith("@"))
    assert json.loads((tmp_path / file).read_text(encoding="utf-8"))
    assert all(json.loads(word) for word in words if word.startswith("{"))


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_a_framework(exported: Callable[[str], None]) -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store, pipeline = InMemoryDocumentStore(), haystack.Pipeline()
    store.write_documents([haystack.Document(id=f"d{i}", content="red car " * i + "boat") for i in range(1, 4)])
    for name in ("dense", "bm25"):
        pipeline.add_component(name, InMemoryBM25Retriever(store, top_k=3))
    exported("haystack")
    searched("haystack", pipeline=pipeline)
    found = pipeline.run({"bm25": {"query": "red"}, "dense": {"query": "boat"}})["fusion"]["documents"]
    assert {document.id for document in found} == {"d1", "d2", "d3"}


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_langchain(exported: Callable[[str], None]) -> None:
    pytest.importorskip("langchain_classic", reason="langchain-classic is not installed")
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    exported("langchain")
    made = [Document(page_content="same", metadata={"id": name}) for name in ("a", "b")]
    bm25, dense = RunnableLambda(lambda _: made), RunnableLambda(lambda _: made[::-1])
    found = searched("langchain", bm25=bm25, dense=dense)["documents"]
    assert [document.metadata["id"] for document in found] == ["b", "a"]  # as the heavier has them


@pytest.mark.filterwarnings("ignore")
def test_the_search_with_llamaindex(exported: Callable[[str], None]) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(BaseRetriever):
        def __init__(self, names: str) -> None:
            self.names = names
            super().__init__()

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [
                NodeWithScore(node=TextNode(id_=n, text=n), score=1.0 / i)
                for i, n in enumerate(self.names, start=1)
            ]

    exported("llamaindex")
    found = searched("llamaindex", bm25=Fixed("ab"), dense=Fixed("ba"))["nodes"]
    assert [node.node.node_id for node in found] == ["b", "a"]  # as the heavier has them
