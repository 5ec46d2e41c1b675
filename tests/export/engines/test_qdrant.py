import json
import random

import pytest
from export.cases import ExportError, model, own_fusion, simulated

from genm.export import export_model, measured_loss, ranking
from genm.normalizers import Normalizer
from genm.read import run_from_dict

FIXED = Normalizer("affine", lower=2.0, upper=12.0)


def test_the_formula_is_the_weighted_sum_of_scaled_scores() -> None:
    made = model([FIXED, Normalizer("none")])
    fused = simulated(made, "qdrant", [{"a": 12.0, "b": 7.0}, {"b": 0.5, "c": 1.0}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.175 + 0.325, "c": 0.65})


def test_a_missing_document_gets_what_it_got_in_training() -> None:
    made = model([Normalizer("affine", lower=2.0, upper=12.0, missing=0.1), Normalizer("none", missing=-1.0)])
    fused = simulated(made, "qdrant", [{"a": 12.0}, {"c": 1.0}])
    assert fused == pytest.approx({"a": 0.35 - 0.65, "c": 0.035 + 0.65})
    defaults = json.loads(export_model(made, "qdrant").text)["query"]["defaults"]
    assert defaults == {"$score[0]": pytest.approx(3.0), "$score[1]": -1.0}


def test_each_prefetch_has_its_own_limit() -> None:
    query = json.loads(export_model(model(FIXED, depth=(30, 50)), "qdrant").text)
    assert [p["limit"] for p in query["prefetch"]] == [30, 50]


def test_statistics_of_the_list_are_refused() -> None:
    with pytest.raises(ExportError, match=r"bm25 and dense is minmax, not affine \(fixed bounds\)") as caught:
        export_model(model(Normalizer("minmax")), "qdrant")
    assert "goes exactly to weaviate, pgvector, sqlite, llamaindex" in str(caught.value)


def test_rrf_of_equal_weights_is_the_usual_one() -> None:
    made = model(Normalizer("reciprocal", k=60.0), weights=(0.5, 0.5))
    document = export_model(made, "qdrant-rrf").document
    assert document["query"] == {"rrf": {"k": 61}}
    fused = simulated(made, "qdrant-rrf", [{"a": 2.0, "b": 1.0}, {"b": 1.0}])
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61})


def test_rrf_weights_do_not_transfer() -> None:
    made = model(Normalizer("reciprocal", k=60.0))
    with pytest.raises(ExportError, match="only equal weights keep their meaning"):
        export_model(made, "qdrant-rrf")
    exported = export_model(made, "qdrant-rrf", approximate=True)
    assert exported.document["query"]["rrf"] == {"k": 61, "weights": [0.7, 1.3]}
    assert exported.notes[0].code == "approximate"


def test_the_loss_of_approximate_weights_is_measured() -> None:
    made = model(Normalizer("reciprocal", k=2.0), weights=(0.9, 0.1))
    draw = random.Random(7)
    runs = {
        name: run_from_dict({f"q{q}": {f"d{i}": draw.random() for i in range(30)} for q in range(20)}, name=name)
        for name in made.rankers
    }
    loss = measured_loss(made, "qdrant-rrf", runs)
    assert loss.n_queries == 20
    assert loss.share > 0.5  # a weight that divides ranks is another ranking
    assert measured_loss(made, "langchain", runs).share == 0.0


@pytest.mark.filterwarnings("ignore")
def test_qdrant_itself_ranks_as_the_model() -> None:
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from qdrant_client import models

    client, draw = qdrant.QdrantClient(":memory:"), random.Random(1)
    client.create_collection(
        "articles",
        vectors_config={"embedding": models.VectorParams(size=3, distance=models.Distance.DOT)},
        sparse_vectors_config={"text": models.SparseVectorParams()},
    )
    points = [
        models.PointStruct(
            id=i,
            vector={
                "embedding": [draw.uniform(-1, 1) for _ in range(3)],
                "text": models.SparseVector(indices=[1, 42], values=[draw.uniform(0, 9), draw.uniform(0, 9)]),
            },
        )
        for i in range(40)
    ]
    client.upsert("articles", points)
    made = model([Normalizer("affine", lower=0.5, upper=11.0, missing=0.2), Normalizer("none")], depth=(12, 9))
    request = models.QueryRequest.model_validate_json(export_model(made, "qdrant", settings={"size": "30"}).text)
    answer = client.query_points("articles", prefetch=request.prefetch, query=request.query, limit=request.limit)
    lists = [
        {
            str(p.id): p.score
            for p in client.query_points("articles", query=one.query, using=one.using, limit=one.limit).points
        }
        for one in request.prefetch
    ]
    ours = own_fusion(made, [lists])[0]
    assert [str(point.id) for point in answer.points] == ranking(ours)
    assert [point.score for point in answer.points] == pytest.approx(sorted(ours.values(), reverse=True), rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_qdrant_itself_fuses_by_rank_as_simulated() -> None:
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from qdrant_client import models

    client, draw = qdrant.QdrantClient(":memory:"), random.Random(2)
    vectors = {name: models.VectorParams(size=3, distance=models.Distance.DOT) for name in ("text", "embedding")}
    client.create_collection("articles", vectors_config=vectors)
    points = [
        models.PointStruct(id=i, vector={name: [draw.uniform(-1, 1) for _ in range(3)] for name in vectors})
        for i in range(30)
    ]
    client.upsert("articles", points)
    made = model(Normalizer("reciprocal", k=3.0), depth=8)
    said = {"bm25.type": "vector", "bm25.field": "text", "size": "16"}
    exported = export_model(made, "qdrant-rrf", settings=said, approximate=True)
    request = models.QueryRequest.model_validate_json(exported.text)
    answer = client.query_points("articles", prefetch=request.prefetch, query=request.query, limit=request.limit)
    lists = [
        {
            str(p.id): p.score
            for p in client.query_points("articles", query=one.query, using=one.using, limit=one.limit).points
        }
        for one in request.prefetch
    ]
    from genm.export import find_target

    fused = find_target("qdrant-rrf").code.simulate(exported.document, lists)
    found = {str(point.id): point.score for point in answer.points}
    assert found == pytest.approx(fused, rel=1e-6)
