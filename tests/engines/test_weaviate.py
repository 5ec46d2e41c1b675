"""Weaviate's server, built from its Go module: hybrid search of a text and a vector query."""

import json
import os
import random
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from engines.differential import DOCS, Case, check, ties_matter
from engines.downloads import CACHE, Unavailable
from engines.proof import Lists, Proof
from engines.servers import free_port, serving
from export.cases import loaded, model

from genm.export import export_model, find_target, training_rules

weaviate = pytest.importorskip("weaviate", reason="the package weaviate-client is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
MODULE, VERSION = "github.com/weaviate/weaviate", "v1.35.2"
SUM = "h1:D/cB4Lz8BIhE8s6cMUa4dRhlz356r1LRqDLgr5pKhPA="
BUILDING = 360.0
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
def client(proof: Proof, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a server of its own.

    Weaviate binds its gRPC port and a port for other nodes to all interfaces: it has no setting for that.
    """
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
                yield client
            finally:
                client.close()
    except Unavailable as error:
        pytest.skip(str(error))


def id_of(doc: str) -> str:
    """An object's id: these come downwards as the doc ids go upwards, so equal scores come in genm's order."""
    rank = 2**64 - 1 - int.from_bytes(doc.encode()[:8].ljust(8, b"\0"), "big")
    return str(uuid.UUID(int=(rank << 64) | (uuid.uuid5(uuid.NAMESPACE_OID, doc).int & (2**64 - 1))))


def filled(client: Any, name: str, texts: Mapping[str, str], vectors: Mapping[str, list[float]]) -> Any:
    from weaviate.classes.config import Configure, DataType, Property
    from weaviate.classes.data import DataObject

    made = client.collections.create(
        name,
        vector_config=Configure.Vectors.self_provided(),
        properties=[
            Property(name="text", data_type=DataType.TEXT),
            Property(name="doc", data_type=DataType.TEXT, index_searchable=False),
        ],
    )
    objects = [
        DataObject(uuid=id_of(doc), properties={"text": text, "doc": doc}, vector=vectors[doc])
        for doc, text in texts.items()
    ]
    for start in range(0, len(objects), 200):
        assert not made.data.insert_many(objects[start : start + 200]).errors
    return made


@pytest.fixture(scope="module")
def collection(client: Any, proof: Proof) -> Any:
    """A collection that holds the texts."""
    return filled(client, "Article", proof.texts.docs, proof.texts.doc_vectors)


def pulled(collection: Any, words: str, vector: list[float]) -> list[dict[str, float]]:
    """The list of each ranker, as its page says."""
    from weaviate.classes.query import MetadataQuery

    shown = MetadataQuery(score=True, distance=True)
    by_words = collection.query.bm25(words, query_properties=["text"], limit=WINDOW, return_metadata=shown)
    by_vector = collection.query.near_vector(vector, limit=WINDOW, return_metadata=shown)
    return [
        {one.properties["doc"]: one.metadata.score for one in by_words.objects},
        {one.properties["doc"]: 1.0 - one.metadata.distance for one in by_vector.objects},
    ]


@pytest.fixture(scope="module")
def runs(collection: Any, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    texts = proof.texts
    lists = {q: pulled(collection, words, texts.query_vectors[q]) for q, words in texts.queries.items()}
    return {name: {q: both[k] for q, both in lists.items()} for k, name in enumerate(("bm25", "dense"))}


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


WORDS = ["red", "blue", "car", "boat", "sky"]
TEXTS = {
    "random": lambda draw: " ".join(draw.choices(WORDS, k=4)),
    "equal": lambda draw: "red car",
    "none": lambda draw: "green tree",
}


@pytest.mark.parametrize("technique", ["relativeScoreFusion", "rankedFusion"])
@pytest.mark.parametrize("texts", TEXTS)
def test_the_simulator_is_the_engine(client: Any, texts: str, technique: str) -> None:
    """Scores are Weaviate's own, so the lists are pulled and both fusions compared."""
    from weaviate.classes.query import HybridFusion, MetadataQuery

    draw = random.Random(3)
    documents = {doc: TEXTS[texts](draw) for doc in DOCS}
    vectors = {doc: [draw.randint(1, 3) / 2, draw.randint(-2, 2) / 2] for doc in DOCS}
    if texts == "none":
        vectors = {doc: [1.0, 0.5] for doc in DOCS}  # all at one distance
    collection = filled(client, f"Small{texts}{technique}", documents, vectors)
    normalizer = training_rules("weaviate", ("bm25", "dense"), techniques={"*": technique}).normalizers["bm25"]
    for number in range(8):
        words, vector = " ".join(draw.sample(WORDS, draw.randint(1, 2))), [draw.random(), draw.random() - 0.5]
        share = draw.randint(1, 9) / 10
        made = model(normalizer, weights=(1.0 - share, share))
        exported = export_model(made, "weaviate")
        lists = pulled(collection, words, vector)
        if ties_matter(lists, None, by_rank=technique == "rankedFusion"):
            continue
        found = collection.query.hybrid(
            words,
            vector=vector,
            alpha=exported.document["alpha"],
            fusion_type={"relativeScoreFusion": HybridFusion.RELATIVE_SCORE, "rankedFusion": HybridFusion.RANKED}[
                technique
            ],
            query_properties=["text"],
            limit=50,
            return_metadata=MetadataQuery(score=True),
        )
        answer = {one.properties["doc"]: one.metadata.score for one in found.objects}
        fused = find_target("weaviate").code.simulate(exported.document, lists)
        check(Case(f"{texts} {number}", None, lists, exported, fused), answer)
