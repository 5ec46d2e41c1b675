"""OpenSearch from its jars: hybrid queries of a text, a vector and a script query."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from connect import test_servers, test_tutorial
from engines.conftest import HERE
from engines.differential import DOCS, cases, check
from engines.downloads import Unavailable, artefacts, java, unpacked
from engines.proof import Proof
from engines.servers import call, free_port, serving
from export.cases import model

from genm.export import export_model, training_rules

PLUGINS = (
    "org.opensearch.transport.Netty4ModulePlugin",
    "org.opensearch.painless.PainlessModulePlugin",
    "org.opensearch.knn.plugin.KNNPlugin",
    "org.opensearch.neuralsearch.plugin.NeuralSearch",
)
INDEX = {
    "settings": {"number_of_shards": 1, "number_of_replicas": 0, "index.knn": True},
    "mappings": {
        "properties": {
            "id": {"type": "keyword"},
            "text": {"type": "text"},
            "embedding": {
                "type": "knn_vector",
                "dimension": 32,
                "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
            },
        }
    },
}
WINDOW = 50


@pytest.fixture(scope="module")
def opensearch(proof: Proof, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node that holds the texts."""
    try:
        files = artefacts("opensearch", "opensearch")
        jars = [path for path in files if path.suffix == ".jar"]
        jars += [jar for path in files if path.suffix == ".zip" for jar in unpacked(path, r"[^/]*\.jar")]
        home, port = tmp_path_factory.mktemp("opensearch"), free_port()
        (home / "config").mkdir()
        command = [java(21), "-Xmx512m", "--enable-native-access=ALL-UNNAMED", "-cp", ":".join(map(str, jars))]
        command += [HERE / "OpenSearchNode.java", home, str(port), *PLUGINS]
        address = f"http://127.0.0.1:{port}"
        with serving(command, home / "log", address):
            _fill(address, proof)
            yield address
    except Unavailable as error:
        pytest.skip(str(error))


def _fill(address: str, proof: Proof) -> None:
    call(f"{address}/articles", "PUT", INDEX)
    lines = []
    for doc, text in proof.texts.docs.items():
        lines.append(json.dumps({"index": {"_id": doc}}))
        lines.append(json.dumps({"id": doc, "text": text, "embedding": proof.texts.doc_vectors[doc]}))
    done = call(f"{address}/articles/_bulk?refresh=true", "POST", "\n".join(lines) + "\n", "application/x-ndjson")
    assert not done["errors"]
    call(f"{address}/articles/_forcemerge?max_num_segments=1", "POST")
    call(f"{address}/ids", "PUT", {**INDEX, "mappings": {"properties": {"id": {"type": "keyword"}}}})
    rows = [row for doc in reversed(DOCS) for row in (json.dumps({"index": {"_id": doc}}), json.dumps({"id": doc}))]
    call(f"{address}/ids/_bulk?refresh=true", "POST", "\n".join(rows) + "\n", "application/x-ndjson")


def _hits(address: str, body: object, index: str = "articles") -> dict[str, float]:
    answer = call(f"{address}/{index}/_search", "POST", body)
    assert not answer["timed_out"]
    assert answer["_shards"]["failed"] == 0
    return {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}


def _version(address: str) -> tuple[str, str]:
    return "OpenSearch", call(address)["version"]["number"]


@pytest.fixture(scope="module")
def runs(opensearch: str, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    """The lists of each ranker, as the engine returns them."""
    texts, pulled = proof.texts, {}
    for ranker in ("bm25", "dense"):
        pulled[ranker] = {
            query: _hits(opensearch, {"query": sub_query(ranker, proof, query), "size": WINDOW, "_source": False})
            for query in texts.queries
        }
    return pulled


def sub_query(ranker: str, proof: Proof, query: str) -> dict[str, Any]:
    if ranker == "bm25":
        return {"match": {"text": {"query": proof.texts.queries[query]}}}
    return {"knn": {"embedding": {"vector": proof.texts.query_vectors[query], "k": WINDOW}}}


def settings(proof: Proof, query: str) -> dict[str, str]:
    return {"query": proof.texts.queries[query], "dense.vector": json.dumps(proof.texts.query_vectors[query])}


@pytest.mark.parametrize(
    ("target", "technique"),
    [("opensearch", "min_max"), ("opensearch", "l2"), ("opensearch", "z_score"), ("opensearch-rrf", "rrf")],
)
def test_the_exported_search_ranks_as_the_model(
    opensearch: str, runs: Any, proof: Proof, target: str, technique: str
) -> None:
    differing = proof.compare(
        _version(opensearch),
        target,
        runs,
        lambda exported, query: list(_hits(opensearch, json.loads(exported))),
        options=("--technique", technique, "--window", str(WINDOW)),
        settings=lambda query: settings(proof, query),
        single=True,
    )
    assert not differing


def test_the_exported_pipeline_is_the_exported_request(opensearch: str, runs: Any, proof: Proof) -> None:
    """The weights as a pipeline of the server, named by the search, rank as those that the search carries."""
    made = model(training_rules("opensearch", ("bm25", "dense")).normalizers["bm25"], depth=WINDOW)
    pipeline = export_model(made, "opensearch", settings={"form": "pipeline"}).text
    call(f"{opensearch}/_search/pipeline/learned", "PUT", pipeline)
    for query in list(proof.texts.queries)[:5]:
        request = json.loads(export_model(made, "opensearch", settings=settings(proof, query)).text)
        carried = _hits(opensearch, request)
        del request["search_pipeline"]
        named = call(f"{opensearch}/articles/_search?search_pipeline=learned", "POST", request)["hits"]["hits"]
        assert {hit["_id"]: hit["_score"] for hit in named} == carried


def given_scores(lists: Sequence[Mapping[str, float]]) -> dict[str, str]:
    """Sub-queries that return these documents with these scores; OpenSearch takes no negative ones."""
    said = {"size": "50"}
    for ranker, scores in zip("abc", lists, strict=False):
        script = {"source": "params.scores[doc['id'].value]", "params": {"scores": scores}}
        query = {"script_score": {"query": {"terms": {"id": list(scores)}}, "script": script}}
        said[f"{ranker}.query"] = json.dumps(query)
    return said


@pytest.mark.parametrize(
    ("target", "technique", "change"),
    [
        ("opensearch", "min_max", {}),
        ("opensearch", "min_max", {"lower": 2.0, "lower_mode": "within"}),
        ("opensearch", "min_max", {"lower": 2.0, "lower_mode": "clip", "upper": 9.0, "upper_mode": "clip"}),
        ("opensearch", "min_max", {"upper": 8.0, "upper_mode": "within"}),
        ("opensearch", "l2", {}),
        ("opensearch", "z_score", {}),
        ("opensearch-rrf", "rrf", {}),
        ("opensearch-rrf", "rrf", {"k": 5.0}),
    ],
)
@pytest.mark.parametrize("rankers", [("a", "b"), ("a", "b", "c")], ids=["two", "three"])
def test_the_simulator_is_the_engine(
    opensearch: str, target: str, technique: str, change: dict[str, Any], rankers: tuple[str, ...]
) -> None:
    for case in cases(target, technique, given_scores, rankers=rankers, change=change):
        check(case, _hits(opensearch, json.loads(case.exported.text), "ids"))


def test_genm_pull_reads_it(opensearch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENM_OPENSEARCH", opensearch)
    test_servers.test_opensearch()


def test_the_tutorial_is_followed(opensearch: str, tmp_path: Path) -> None:
    """The last test: the tutorial makes the index `articles` anew."""
    test_tutorial.remove_all(opensearch)
    test_tutorial.check_tutorial(opensearch, tmp_path)
