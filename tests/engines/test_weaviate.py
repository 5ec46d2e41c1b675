"""Weaviate's server, built from its Go module: hybrid search of a text and a vector query."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engines.downloads import CACHE, Unavailable
from engines.proof import Lists, Proof
from engines.servers import free_port, serving
from export.cases import loaded

weaviate = pytest.importorskip("weaviate", reason="the package weaviate-client is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
MODULE, VERSION = "github.com/weaviate/weaviate", "v1.35.2"
SUM = "h1:D/cB4Lz8BIhE8s6cMUa4dRhlz356r1LRqDLgr5pKhPA="
BUILDING = 480.0
WINDOW = 100


def built() -> Path:
    """Return the server's program: built once, from a module of this checksum; its go.sum holds the others."""
    program = CACHE / "weaviate" / f"weaviate-{VERSION}"
    if program.is_file():
        return program
    go = shutil.which("go")
    if go is None:
        raise Unavailable("Go is not installed")
    program.parent.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(
        [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"], capture_output=True, cwd=program.parent
    )
    found = json.loads(got.stdout or b"{}")
    if found.get("Sum") != SUM:
        raise Unavailable(f"{MODULE}: expected the sum {SUM}; found {found.get('Sum') or found.get('Error')}")
    part = program.with_suffix(f".{os.getpid()}")
    command = [
        go,
        "build",
        "-C",
        found["Dir"],
        "-mod=readonly",
        "-trimpath",
        "-o",
        str(part),
        "./cmd/weaviate-server",
    ]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=BUILDING)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"building took more than {BUILDING:g} s") from None
    if done.returncode != 0:
        raise Unavailable(f"go build failed: {done.stderr.strip().splitlines()[-1][:200]}")
    part.replace(program)
    return program


@pytest.fixture(scope="module")
def collection(proof: Proof, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A collection that holds the texts."""
    try:
        program, home = built(), tmp_path_factory.mktemp("weaviate")
        ports = [free_port() for _ in range(7)]
        names = (
            "GRPC_PORT",
            "CLUSTER_GOSSIP_BIND_PORT",
            "CLUSTER_DATA_BIND_PORT",
            "RAFT_PORT",
            "RAFT_INTERNAL_RPC_PORT",
        )
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PERSISTENCE_DATA_PATH": str(home / "data"),
            "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
            "CLUSTER_HOSTNAME": "one",
            "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
            "CLUSTER_BIND_ADDR": "127.0.0.1",
            "RAFT_BOOTSTRAP_EXPECT": "1",
            "DISABLE_TELEMETRY": "true",
            "GO_PROFILING_DISABLE": "true",
            **{name: str(port) for name, port in zip(names, ports[1:], strict=False)},
        }
        command = [program, "--host", "127.0.0.1", "--port", str(ports[0]), "--scheme", "http"]
        ready = f"http://127.0.0.1:{ports[0]}/v1/.well-known/ready"
        with serving(command, home / "log", ready, environment=environment):
            local = {"http_host": "127.0.0.1", "grpc_host": "127.0.0.1", "http_secure": False, "grpc_secure": False}
            client = weaviate.connect_to_custom(http_port=ports[0], grpc_port=ports[1], **local)
            try:
                yield _filled(client, proof)
            finally:
                client.close()
    except Unavailable as error:
        proof.skipped.append(("Weaviate", str(error)))
        pytest.skip(str(error))


def id_of(doc: str) -> str:
    """An object's id: these come downwards as the doc ids go upwards, so equal scores come in genm's order."""
    rank = 2**64 - 1 - int.from_bytes(doc.encode()[:8].ljust(8, b"\0"), "big")
    return str(uuid.UUID(int=(rank << 64) | (uuid.uuid5(uuid.NAMESPACE_OID, doc).int & (2**64 - 1))))


def _filled(client: Any, proof: Proof) -> Any:
    from weaviate.classes.config import Configure, DataType, Property
    from weaviate.classes.data import DataObject

    texts = proof.texts
    made = client.collections.create(
        "Article",
        vector_config=Configure.Vectors.self_provided(),
        properties=[
            Property(name="text", data_type=DataType.TEXT),
            Property(name="doc", data_type=DataType.TEXT, index_searchable=False),
        ],
    )
    objects = [
        DataObject(uuid=id_of(doc), properties={"text": text, "doc": doc}, vector=texts.doc_vectors[doc])
        for doc, text in texts.docs.items()
    ]
    for start in range(0, len(objects), 200):
        assert not made.data.insert_many(objects[start : start + 200]).errors
    return made


@pytest.fixture(scope="module")
def runs(collection: Any, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    """The lists of each ranker, as its page says."""
    from weaviate.classes.query import MetadataQuery

    shown = MetadataQuery(score=True, distance=True)
    pulled: dict[str, dict[str, dict[str, float]]] = {"bm25": {}, "dense": {}}
    for query, words in proof.texts.queries.items():
        found = collection.query.bm25(words, query_properties=["text"], limit=WINDOW, return_metadata=shown)
        pulled["bm25"][query] = {one.properties["doc"]: one.metadata.score for one in found.objects}
        vector = proof.texts.query_vectors[query]
        found = collection.query.near_vector(vector, limit=WINDOW, return_metadata=shown)
        pulled["dense"][query] = {one.properties["doc"]: 1.0 - one.metadata.distance for one in found.objects}
    return pulled


def order_of_equals(runs: dict[str, Lists]) -> Callable[[str], Callable[[str], tuple[float, str]]]:
    """Equal sums come by the raw score of the last list that has them, the vector's, then by the object's id."""

    def of_query(query: str) -> Callable[[str], tuple[float, str]]:
        raw = {**runs["bm25"][query], **runs["dense"][query]}
        return lambda doc: (-raw[doc], id_of(doc))

    return of_query


@pytest.mark.parametrize("technique", ["relativeScoreFusion", "rankedFusion"])
def test_the_exported_function_ranks_as_the_model(collection: Any, runs: Any, proof: Proof, technique: str) -> None:
    def ask(exported: str, query: str) -> list[str]:
        search = loaded(exported)["search"]
        found = search(collection, proof.texts.queries[query], proof.texts.query_vectors[query])
        return [one.properties["doc"] for one in found.objects]

    differing = proof.compare(
        ("Weaviate", VERSION.removeprefix("v")),
        "weaviate",
        runs,
        ask,
        options=("--technique", technique),
        tie=order_of_equals(runs),
        single=True,
    )
    assert not differing
