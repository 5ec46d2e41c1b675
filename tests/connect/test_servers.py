"""The same pull from real servers, where their addresses are given: GENM_OPENSEARCH, GENM_SOLR, GENM_WEAVIATE.

GENM_SOLR is the address of a core with the fields `id` and `text` (stored), such as http://127.0.0.1:8983/solr/articles.
Each test makes and removes what it needs.
"""

import json
import os
import urllib.error
import urllib.request
from contextlib import suppress

import pytest
from connect.test_embedded_engines import QUERY_VECTORS, TEXTS, VECTORS, nearest

from genm.connect import connect, pull
from genm.errors import EngineError

QUERIES = {"q1": 'red "cars"?', "q2": 'bicycles }} {"x": \\ é 😀', "q3": "nowhere"}
FOUND = {"q1": {"d1", "d3"}, "q2": {"d3", "d4"}}


def call(address, method, body=None, kind="application/json"):
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def address_of(name):
    address = os.environ.get(name, "").rstrip("/")
    if not address:
        pytest.skip(f"{name} names no server")
    return address


def check(config, *, dense=True):
    with connect(engine=config["engine"], address=config["address"], index=config["index"]) as engine:
        assert engine.version()
        assert engine.state() == engine.state()
    pulled = pull(config, QUERIES, vectors=QUERY_VECTORS, depth=4)
    assert {query_id: set(found) for query_id, found in pulled.runs["bm25"].items()} == FOUND
    for query_id in QUERIES if dense else ():
        assert pulled.runs["dense"][query_id] == pytest.approx(nearest(query_id), abs=1e-5)
    assert {**TEXTS, **pulled.texts} == TEXTS
    pages = pull({**config, "page_size": 1}, QUERIES, vectors=QUERY_VECTORS, depth=4)
    assert {name: run.to_dict() for name, run in pages.runs.items()} == {
        name: run.to_dict() for name, run in pulled.runs.items()
    }
    with pytest.raises(EngineError):
        pull({**config, "index": "Missing"}, QUERIES, vectors=QUERY_VECTORS)


def test_opensearch():
    address = address_of("GENM_OPENSEARCH")
    pytest.importorskip("opensearchpy")
    vector = {
        "type": "knn_vector", "dimension": 2,
        "method": {"name": "hnsw", "engine": "lucene", "space_type": "innerproduct"},
    }  # fmt: skip
    properties = {"text": {"type": "text"}, "embedding": vector}
    settings = {"index.knn": True, "number_of_shards": 1, "number_of_replicas": 0}
    with suppress(urllib.error.HTTPError):
        call(f"{address}/genm-pull", "DELETE")
    call(f"{address}/genm-pull", "PUT", {"settings": settings, "mappings": {"properties": properties}})
    rows = [
        line
        for key, text in TEXTS.items()
        for line in ({"index": {"_id": key}}, {"text": text, "embedding": VECTORS[key]})
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    call(f"{address}/genm-pull/_bulk?refresh=true", "POST", lines, "application/x-ndjson")
    search = {"knn": {"embedding": {"vector": "$vector", "k": "$depth"}}}
    config = {
        "engine": "opensearch", "address": address, "index": "genm-pull", "texts": ["text"],
        "rankers": {"bm25": {"search": {"match": {"text": "$query"}}}, "dense": {"search": search}},
    }  # fmt: skip
    try:
        check(config, dense=False)
    finally:
        call(f"{address}/genm-pull", "DELETE")


def test_weaviate():
    address = address_of("GENM_WEAVIATE")
    properties = [
        {"name": "text", "dataType": ["text"]},
        {"name": "doc", "dataType": ["text"], "indexSearchable": False},
    ]
    made = {"class": "GenmPull", "vectorizer": "none", "properties": properties}
    with suppress(urllib.error.HTTPError):
        call(f"{address}/v1/schema/GenmPull", "DELETE")
    call(f"{address}/v1/schema", "POST", {**made, "vectorIndexConfig": {"distance": "cosine"}})
    objects = [
        {"class": "GenmPull", "properties": {"text": text, "doc": key}, "vector": VECTORS[key]}
        for key, text in TEXTS.items()
    ]
    call(f"{address}/v1/batch/objects", "POST", {"objects": objects})
    config = {
        "engine": "weaviate", "address": address, "index": "GenmPull", "id_field": "doc", "texts": ["text"],
        "rankers": {
            "bm25": {"search": {"bm25": {"query": "$query", "properties": ["text"]}}},
            "dense": {"search": {"nearVector": {"vector": "$vector"}}},
        },
    }  # fmt: skip
    try:
        check(config)
    finally:
        call(f"{address}/v1/schema/GenmPull", "DELETE")


def test_solr():
    address, _, core = address_of("GENM_SOLR").rpartition("/")
    call(f"{address}/{core}/update?commit=true", "POST", {"delete": {"query": "*:*"}})
    call(f"{address}/{core}/update?commit=true", "POST", [{"id": key, "text": text} for key, text in TEXTS.items()])
    search = {"query": "{!dismax qf=text mm=1 v=$qq}", "params": {"qq": "$query"}}
    config = {
        "engine": "solr",
        "address": address,
        "index": core,
        "texts": ["text"],
        "rankers": {"bm25": {"search": search}},
    }
    try:
        check(config, dense=False)
    finally:
        call(f"{address}/{core}/update?commit=true", "POST", {"delete": {"query": "*:*"}})
