import random
from pathlib import Path

import pytest
from export.cases import ExportError, model, own_fusion, simulated

from genm.export import export_model
from genm.normalizers import ENGINES, Normalizer

BM25, COSINE, IP = ENGINES["milvus-bm25"], ENGINES["milvus-cosine"], ENGINES["milvus-ip"]
L2 = ENGINES["milvus-l2"]


@pytest.mark.parametrize(
    ("normalizer", "score", "expected"),
    [
        (BM25, 1.0, 0.5),
        (BM25, 0.0, 0.0),
        (COSINE, 0.0, 0.5),
        (COSINE, -1.0, 0.0),
        (IP, 1.0, 0.75),
        (IP, -1.0, 0.25),
        (L2, -1.0, 0.5),  # a distance of 1
        (L2, 0.0, 1.0),
    ],
)
def test_fixed_maps_of_each_metric(normalizer: Normalizer, score: float, expected: float) -> None:
    fused = simulated(model([normalizer, BM25]), "milvus", [{"a": score}, {}])
    assert fused == pytest.approx({"a": 0.35 * expected})


def test_no_list_is_looked_at() -> None:
    fused = simulated(model([BM25, COSINE]), "milvus", [{"a": 1.0, "b": 1.0}, {"b": 0.2, "c": 0.0}])
    assert fused == pytest.approx({"a": 0.35 * 0.5, "b": 0.35 * 0.5 + 0.65 * 0.6, "c": 0.65 * 0.5})


def test_the_metric_follows_from_the_normaliser() -> None:
    text = export_model(model([BM25, IP]), "milvus").text
    assert '"metric_type": "BM25"' in text
    assert '"metric_type": "IP"' in text
    with pytest.raises(ExportError, match=r"dense.metric: expected IP, as trained; found COSINE"):
        export_model(model([BM25, IP]), "milvus", settings={"dense.metric": "COSINE"})


def test_raw_and_mapped_scores_do_not_mix() -> None:
    with pytest.raises(ExportError, match="cannot be combined"):
        export_model(model([Normalizer("none"), COSINE]), "milvus")


def test_raw_scores_are_added_as_they_are() -> None:
    made = model(Normalizer("none"))
    assert simulated(made, "milvus", [{"a": 3.0}, {"a": 0.5}]) == pytest.approx({"a": 1.05 + 0.325})
    assert '"norm_score": False' in export_model(made, "milvus").text


@pytest.mark.filterwarnings("ignore")
def test_milvus_itself_ranks_as_the_model(tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    pymilvus = pytest.importorskip("pymilvus", reason="pymilvus is not installed")
    client, kind = pymilvus.MilvusClient(str(tmp_path / "milvus.db")), pymilvus.DataType
    schema = client.create_schema()
    schema.add_field("id", kind.VARCHAR, is_primary=True, max_length=8)
    fields = {"a": "IP", "b": "COSINE"}
    index = client.prepare_index_params()
    for name, metric in fields.items():
        schema.add_field(name, kind.FLOAT_VECTOR, dim=3)
        index.add_index(name, index_type="FLAT", metric_type=metric)
    client.create_collection("articles", schema=schema, index_params=index)
    draw = random.Random(3)
    rows = [{"id": f"d{i:02}", **{n: [draw.uniform(-2, 2) for _ in range(3)] for n in fields}} for i in range(40)]
    client.insert("articles", rows)
    made = model([IP, COSINE], rankers=("first", "second"), depth=(12, 9))
    space: dict[str, object] = {}
    said = {"first.field": "a", "second.field": "b"}
    exec(compile(export_model(made, "milvus", settings=said).text, "exported", "exec"), space)
    query = [0.3, -0.5, 0.8]
    found = space["search"](client, {"first": query, "second": query}, limit=30)[0]  # type: ignore[operator]
    lists = [
        {hit["id"]: hit["distance"] for hit in client.search("articles", [query], anns_field=n, limit=limit)[0]}
        for n, limit in (("a", 12), ("b", 9))
    ]
    ours = own_fusion(made, [lists])[0]
    assert {hit["id"]: hit["distance"] for hit in found} == pytest.approx(ours, rel=1e-5)
    client.close()
