"""Qdrant's local mode, which its client brings: a formula over two prefetches, and RRF."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pytest
from engines.differential import DOCS, cases, check, ties_matter
from engines.proof import Lists, Proof, term_vectors

qdrant = pytest.importorskip("qdrant_client", reason="the package qdrant-client is not installed")
models = qdrant.models
pytestmark = pytest.mark.filterwarnings("ignore")  # local mode warns that it is not the server
WINDOW = 50


@pytest.fixture(scope="module")
def sparse(proof: Proof) -> tuple[dict[str, Any], dict[str, Any]]:
    """The weights of terms in documents and queries: Qdrant is given them, it does not read texts."""
    docs, queries = term_vectors(list(proof.texts.docs.values()), list(proof.texts.queries.values()))
    return dict(zip(proof.texts.docs, docs, strict=True)), dict(zip(proof.texts.queries, queries, strict=True))


@pytest.fixture(scope="module")
def client(proof: Proof, sparse: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    """A collection that holds the texts; a point's id is its document's place."""
    made = qdrant.QdrantClient(":memory:")
    made.create_collection(
        "articles",
        vectors_config={"embedding": models.VectorParams(size=32, distance=models.Distance.COSINE)},
        sparse_vectors_config={"text": models.SparseVectorParams()},
    )
    points = [
        models.PointStruct(
            id=i,
            payload={"id": doc},
            vector={"embedding": proof.texts.doc_vectors[doc], "text": models.SparseVector(**sparse[0][doc])},
        )
        for i, doc in enumerate(proof.texts.docs)
    ]
    made.upsert("articles", points)
    return made


@pytest.fixture(scope="module")
def runs(client: Any, proof: Proof, sparse: Any) -> dict[str, dict[str, dict[str, float]]]:
    """The lists of each ranker, as its page says."""

    def pulled(query: Any, using: str) -> dict[str, float]:
        found = client.query_points("articles", query=query, using=using, limit=WINDOW).points
        return {point.payload["id"]: point.score for point in found}

    return {
        "bm25": {q: pulled(models.SparseVector(**terms), "text") for q, terms in sparse[1].items()},
        "dense": {q: pulled(vector, "embedding") for q, vector in proof.texts.query_vectors.items()},
    }


@pytest.mark.parametrize(
    ("target", "technique"), [("qdrant", "formula"), ("qdrant", "none"), ("qdrant-rrf", "rrf")]
)
def test_the_exported_query_ranks_as_the_model(
    client: Any, runs: Any, proof: Proof, sparse: Any, target: str, technique: str
) -> None:
    def settings(query: str) -> Mapping[str, str]:
        vector = json.dumps(proof.texts.query_vectors[query])
        return {"bm25.sparse": json.dumps(sparse[1][query]), "dense.vector": vector}

    differing = proof.compare(
        ("Qdrant", f"local {version('qdrant-client')}"),
        target,
        runs,
        lambda exported, query: [point.payload["id"] for point in asked(client, exported)],
        options=("--technique", technique, "--window", str(WINDOW)),
        settings=settings,
        tie=in_order_of_prefetches(runs) if target == "qdrant-rrf" else None,
    )
    assert not differing


def in_order_of_prefetches(runs: Mapping[str, Lists]) -> Callable[[str], Callable[[str], int]]:
    """Local mode's order of equal sums: the first prefetch's documents, then the second's."""

    def of_query(query: str) -> Callable[[str], int]:
        found = dict.fromkeys(doc for lists in runs.values() for doc in lists[query])
        return list(found).index

    return of_query


def asked(client: Any, exported: str) -> list[Any]:
    request = models.QueryRequest.model_validate_json(exported)
    words = {"prefetch": request.prefetch, "query": request.query, "limit": request.limit}
    return list(client.query_points("articles", **words).points)


@pytest.fixture(scope="module")
def one_hot() -> Any:
    """A point for each document, found by its own term only: a query's weights are then the scores."""
    made = qdrant.QdrantClient(":memory:")
    fields = {name: models.SparseVectorParams() for name in "abc"}
    made.create_collection("articles", vectors_config={}, sparse_vectors_config=fields)
    points = [
        models.PointStruct(
            id=i,
            payload={"id": doc},
            vector={name: models.SparseVector(indices=[i], values=[1.0]) for name in "abc"},
        )
        for i, doc in enumerate(DOCS)
    ]
    made.upsert("articles", points)
    return made


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same in a shard of Qdrant Edge, which is the server's own code as a package."""
    edge = pytest.importorskip("qdrant_edge", reason="the package qdrant-edge-py is not installed")
    folder = tmp_path_factory.mktemp("qdrant")
    config = edge.EdgeConfig(sparse_vectors={name: edge.EdgeSparseVectorParams() for name in "abc"})
    made = edge.EdgeShard.create(str(folder), config)
    points = [
        edge.Point(i, {name: edge.SparseVector([i], [1.0]) for name in "abc"}, {"id": doc})
        for i, doc in enumerate(DOCS)
    ]
    made.update(edge.UpdateOperation.upsert_points(points))
    yield made
    made.close()


def edge_request(exported: str) -> Any:
    """An exported query in the types of Qdrant Edge, which reads no JSON."""
    import qdrant_edge as edge

    def expression(value: Any) -> Any:
        if isinstance(value, str):
            return edge.Expression.Variable(value)
        if not isinstance(value, dict):
            return edge.Expression.Constant(value)
        terms = [expression(term) for terms in value.values() for term in terms]
        return edge.Expression.Sum(terms) if "sum" in value else edge.Expression.Mult(terms)

    request = json.loads(exported)
    prefetches = [
        edge.Prefetch(
            limit=one["limit"],
            query=edge.Query.Nearest(
                edge.SparseVector(one["query"]["indices"], one["query"]["values"]), one["using"]
            ),
        )
        for one in request["prefetch"]
    ]
    query = request["query"]
    if "rrf" in query:
        fused = edge.Fusion.Rrf(query["rrf"]["k"], query["rrf"].get("weights"))
    else:
        fused = edge.Formula(expression(query["formula"]), query["defaults"])
    return edge.QueryRequest(limit=request["limit"], query=fused, prefetches=prefetches, with_payload=True)


def given_scores(lists: Sequence[Mapping[str, float]]) -> dict[str, str]:
    said = {"size": "50"}
    for ranker, scores in zip("abc", lists, strict=False):
        terms = {"indices": [DOCS.index(doc) for doc in scores], "values": list(scores.values())}
        said |= {f"{ranker}.type": "text", f"{ranker}.field": ranker, f"{ranker}.sparse": json.dumps(terms)}
    return said


@pytest.mark.parametrize(
    ("target", "technique", "change"),
    [
        ("qdrant", "none", {}),
        ("qdrant", "formula", {"lower": -2.0, "upper": 9.0, "missing": 0.25}),
        ("qdrant-rrf", "rrf", {}),
        ("qdrant-rrf", "rrf", {"k": 3.0}),
    ],
)
@pytest.mark.parametrize("mode", ["local", "edge"])
def test_the_simulator_is_the_engine(
    request: pytest.FixtureRequest, mode: str, target: str, technique: str, change: dict[str, Any]
) -> None:
    engine = request.getfixturevalue("one_hot" if mode == "local" else "shard")
    for case in cases(target, technique, given_scores, rankers=("a", "b", "c"), negative=True, change=change):
        no_hit = any(
            not scores or 0.0 in scores.values() for scores in case.lists
        )  # a term of weight 0 finds nothing
        if no_hit or ties_matter(case.lists, case.window, by_rank=target == "qdrant-rrf"):
            continue  # no order of equal scores is stated
        text = case.exported.text
        found = asked(engine, text) if mode == "local" else engine.query(edge_request(text))
        check(case, {point.payload["id"]: point.score for point in found})
