"""Milvus Lite inside this process: hybrid search under the weighted ranker."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pytest
from engines.differential import DOCS, cases, check, ties_matter
from engines.proof import Proof
from export.cases import loaded

pytest.importorskip("milvus_lite", reason="the package milvus-lite is not installed")
pymilvus = pytest.importorskip("pymilvus", reason="the package pymilvus is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
WINDOW = 50
METRICS = {"cosine": "COSINE", "inner": "IP", "euclid": "L2"}
TECHNIQUES = [
    ("cosine", "bm25=BM25,dense=COSINE"),
    ("inner", "bm25=BM25,dense=IP"),
    ("euclid", "bm25=BM25,dense=L2"),
    ("cosine", "norm_score off"),
]


@pytest.fixture(scope="module")
def client(proof: Proof, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A collection that holds the texts, for BM25, and their vectors under each metric."""
    made, kind = pymilvus.MilvusClient(str(tmp_path_factory.mktemp("milvus") / "milvus.db")), pymilvus.DataType
    schema, index = made.create_schema(), made.prepare_index_params()
    schema.add_field("id", kind.VARCHAR, is_primary=True, max_length=200)
    schema.add_field("body", kind.VARCHAR, max_length=65_535, enable_analyzer=True)
    schema.add_field("text", kind.SPARSE_FLOAT_VECTOR)
    bm25 = pymilvus.Function(
        "bm25", pymilvus.FunctionType.BM25, input_field_names=["body"], output_field_names=["text"]
    )
    schema.add_function(bm25)
    index.add_index("text", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    for field, metric in METRICS.items():
        schema.add_field(field, kind.FLOAT_VECTOR, dim=32)
        index.add_index(field, index_type="FLAT", metric_type=metric)
    made.create_collection("articles", schema=schema, index_params=index)
    texts = proof.texts
    rows = [
        {"id": doc, "body": text, **dict.fromkeys(METRICS, texts.doc_vectors[doc])}
        for doc, text in texts.docs.items()
    ]
    made.insert("articles", rows)
    yield made
    made.close()


def test_the_exported_function_ranks_as_the_model(client: Any, proof: Proof) -> None:
    texts = proof.texts

    def pulled(field: str, metric: str, data: Any) -> dict[str, float]:
        words = {"anns_field": field, "limit": WINDOW, "search_params": {"metric_type": metric}}
        hits = client.search("articles", [data], **words)[0]
        return {hit["id"]: -hit["distance"] if metric == "L2" else hit["distance"] for hit in hits}

    bm25 = {query: pulled("text", "BM25", words) for query, words in texts.queries.items()}
    differing = []
    for field, technique in TECHNIQUES:
        metric = METRICS[field]
        runs = {"bm25": bm25, "dense": {q: pulled(field, metric, v) for q, v in texts.query_vectors.items()}}

        def ask(exported: str, query: str) -> list[str]:
            given = {"bm25": texts.queries[query], "dense": texts.query_vectors[query]}
            return [hit["id"] for hit in loaded(exported)["search"](client, given)[0]]

        differing += proof.compare(
            ("Milvus", f"Lite {version('milvus-lite')}"),
            "milvus",
            runs,
            ask,
            options=("--technique", technique, "--window", str(WINDOW)),
            settings=lambda query, field=field: {"dense.field": field},
            tie=lambda query: lambda doc: doc,
            single=True,
        )
    assert not differing


@pytest.fixture(scope="module")
def one_hot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A row for each document, found by its own term only: a query's weights, not below 0, are the scores."""
    made, kind = pymilvus.MilvusClient(str(tmp_path_factory.mktemp("milvus") / "small.db")), pymilvus.DataType
    schema, index = made.create_schema(), made.prepare_index_params()
    schema.add_field("id", kind.VARCHAR, is_primary=True, max_length=20)
    for field in "abc":
        schema.add_field(field, kind.SPARSE_FLOAT_VECTOR)
        index.add_index(field, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    made.create_collection("articles", schema=schema, index_params=index)
    made.insert("articles", [{"id": doc, **{field: {i: 1.0} for field in "abc"}} for i, doc in enumerate(DOCS)])
    yield made
    made.close()


@pytest.mark.parametrize("technique", ["IP", "norm_score off"])
def test_the_simulator_is_the_engine(one_hot: Any, technique: str) -> None:
    def settings(lists: Sequence[Mapping[str, float]]) -> dict[str, str]:
        named = [ranker for ranker, _ in zip("abc", lists, strict=False)]
        said = {
            f"{ranker}.{key}": value for ranker in named for key, value in (("field", ranker), ("metric", "IP"))
        }
        return {"size": "50", **said}

    for case in cases("milvus", technique, settings, rankers=("a", "b", "c")):
        no_hit = any(
            not scores or 0.0 in scores.values() for scores in case.lists
        )  # a term of weight 0 finds nothing
        if no_hit or ties_matter(case.lists, case.window, by_rank=False):
            continue
        given = {
            ranker: {DOCS.index(doc): score for doc, score in scores.items()}
            for ranker, scores in zip("abc", case.lists, strict=True)
        }
        found = loaded(case.exported.text)["search"](one_hot, given)[0]
        check(case, {hit["id"]: hit["distance"] for hit in found})
