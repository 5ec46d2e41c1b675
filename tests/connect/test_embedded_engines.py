"""Engines that run from a package: each is filled with the same texts and vectors, and pulled from."""

import json
import math
import sqlite3
from contextlib import closing

import pytest

from genm.connect import connect, pull, read_config
from genm.errors import EngineError, InputError

TEXTS = {
    "d1": "red cars are fast cars",
    "d2": "the sky is blue",
    "d3": "blue cars and red bicycles",
    "d4": "bicycles are slow",
}
VECTORS = {"d1": [1.0, 0.0], "d2": [0.0, 1.0], "d3": [0.6, 0.8], "d4": [-1.0, 0.0]}
QUERIES = {"q1": 'red "cars"? } {', "q2": "slow OR bicycles; DROP TABLE articles --", "q3": "???"}
QUERY_VECTORS = {"q1": [1.0, 0.0], "q2": [0.0, 2.0], "q3": [0.6, 0.8]}


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def nearest(query_id, depth=4):
    scores = {key: cosine(QUERY_VECTORS[query_id], vector) for key, vector in VECTORS.items()}
    return dict(sorted(scores.items(), key=lambda pair: -pair[1])[:depth])


def words_match(query_id):
    words = {word.strip('"?;') for word in QUERIES[query_id].lower().split()}
    return {key for key, text in TEXTS.items() if words & set(text.split())}


def check(config, tmp_path, *, bm25=True, depth=4):
    """Pull twice: the same bytes, the nearest vectors, and documents that have the words."""
    pulled = pull(config, QUERIES, tmp_path / "one", vectors=QUERY_VECTORS, depth=depth)
    for query_id in QUERIES:
        assert pulled.runs["dense"][query_id] == pytest.approx(nearest(query_id, depth), abs=1e-6)
    if bm25:
        for query_id in ("q1", "q2"):
            found = pulled.runs["bm25"][query_id]
            assert set(found) == words_match(query_id)
            assert list(found.values()) == sorted(found.values(), reverse=True)
        assert "q3" not in pulled.runs["bm25"]
    again = pull(config, QUERIES, tmp_path / "two", vectors=QUERY_VECTORS, depth=depth)
    assert [path.read_bytes() for path in pulled.files] == [path.read_bytes() for path in again.files]
    return pulled


def opened_database(path):
    """Open an SQLite file for writing, with sqlite-vec: by apsw where Python's own library loads no extensions."""
    vectors = pytest.importorskip("sqlite_vec", reason="sqlite-vec is not installed")
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        connection = sqlite3.connect(path, isolation_level=None)
    else:
        apsw = pytest.importorskip("apsw", reason="this Python loads no SQLite extensions")
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(5000)  # as sqlite3.connect does; without it a read in progress is an error
    connection.enable_load_extension(True)
    connection.load_extension(vectors.loadable_path())
    return closing(connection)


@pytest.fixture
def database(tmp_path):
    """An SQLite file with texts and vectors."""
    path = tmp_path / "articles.db"
    with opened_database(path) as connection:
        connection.execute("CREATE VIRTUAL TABLE articles USING fts5(id UNINDEXED, text)")
        column = "embedding float[2] distance_metric=cosine"
        connection.execute(f"CREATE VIRTUAL TABLE vectors USING vec0(id TEXT PRIMARY KEY, {column})")
        connection.executemany("INSERT INTO articles VALUES (?, ?)", list(TEXTS.items()))
        rows = [(key, json.dumps(vector)) for key, vector in VECTORS.items()]
        connection.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
    return path


SQLITE = {
    "bm25": {
        "search": "SELECT id, -bm25(articles) FROM articles WHERE articles MATCH $words "
        "ORDER BY bm25(articles) LIMIT $depth"
    },
    "dense": {"search": "SELECT id, 1 - distance FROM vectors WHERE embedding MATCH $vector AND k = $depth"},
}


def test_sqlite(database, tmp_path):
    path = database
    config = {"engine": "sqlite", "address": str(path), "rankers": SQLITE}
    check(config, tmp_path)
    check({**config, "page_size": 1}, tmp_path / "pages", depth=2)
    with connect(engine="sqlite", address=str(path)) as engine:
        assert len(engine.search(SQLITE["dense"]["search"], "x", [1.0, 0.0], depth=2)) == 2
        with pytest.raises(EngineError, match="Use MATCH"):
            engine.search("SELECT id, 1 FROM articles WHERE articles MATCH $query LIMIT $depth", "a OR", depth=2)
        with pytest.raises(EngineError, match="expected two columns"):
            engine.search("SELECT id FROM articles WHERE text != $query LIMIT $depth", "a", depth=2)
        with pytest.raises(EngineError, match="readonly"):
            engine.search("DELETE FROM articles WHERE id = $query AND $depth > 0", "d1", depth=2)
        with pytest.raises(EngineError, match="expected at most 2 documents"):
            engine.search("SELECT id, $depth FROM articles WHERE text != $query", "a", depth=2)


def test_sqlite_notices_a_change_during_the_pull(database, tmp_path):
    path = database
    config = {"engine": "sqlite", "address": str(path), "rankers": {"bm25": SQLITE["bm25"]}}

    def change(*_):
        with opened_database(path) as connection:
            held = connection.execute("SELECT count(*) FROM articles").fetchone()[0]
            connection.execute("INSERT INTO articles VALUES (?, 'red')", (f"new{held}",))

    with pytest.raises(EngineError, match="found that it changed during the pull"):
        pull(config, QUERIES, tmp_path, progress=change)
    with pytest.raises(EngineError, match="found that it changed since the pull began"):
        pull(config, QUERIES, tmp_path, resume=True)
    pulled = pull(config, QUERIES, tmp_path, resume=True, allow_changes=True)
    assert "the index changed during the pull" in pulled.notes[0].text


def test_sqlite_needs_a_file_that_exists(tmp_path):
    with pytest.raises(InputError, match="expected the file of an SQLite database"):
        connect(engine="sqlite", address=str(tmp_path / "missing.db"))
    assert not (tmp_path / "missing.db").exists()


def test_pull_has_one_call_for_options_and_file(database, tmp_path):
    path = database
    config = read_config({"engine": "sqlite", "address": str(path), "rankers": SQLITE, "depth": 1})
    assert len(pull(config, QUERIES, vectors=QUERY_VECTORS, depth=2).runs["dense"]["q1"]) == 2
    lines = "".join(
        json.dumps({"_id": k, "text": t, "vector": QUERY_VECTORS[k]}) + "\n" for k, t in QUERIES.items()
    )
    (tmp_path / "queries.jsonl").write_text(lines, encoding="utf-8")
    assert len(pull(config, tmp_path / "queries.jsonl").runs["dense"]["q1"]) == 1


@pytest.mark.filterwarnings("ignore")
def test_qdrant(tmp_path):
    library = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    models, folder = library.models, str(tmp_path / "qdrant")
    client = library.QdrantClient(path=folder)
    client.create_collection(
        "articles",
        vectors_config={"embedding": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"text": models.SparseVectorParams()},
    )
    vocabulary = {word: i for i, word in enumerate(sorted({w for t in TEXTS.values() for w in t.split()}))}
    points = []
    for i, (key, text) in enumerate(TEXTS.items()):
        terms = sorted({vocabulary[word] for word in text.split()})
        words = models.SparseVector(indices=terms, values=[1.0] * len(terms))
        vector = {"embedding": VECTORS[key], "text": words}
        points.append(models.PointStruct(id=i, payload={"doc": key, "text": text}, vector=vector))
    client.upsert("articles", points)
    client.close()
    config = {
        "engine": "qdrant",
        "address": folder,
        "index": "articles",
        "id_field": "doc",
        "texts": ["text"],
        "rankers": {"dense": {"search": {"query": "$vector", "using": "embedding"}}},
    }
    pulled = check(config, tmp_path, bm25=False)
    assert pulled.texts == TEXTS
    check({**config, "page_size": 2}, tmp_path / "pages", bm25=False)
    sparse = {"indices": [vocabulary["red"], vocabulary["cars"]], "values": [1.0, 2.0]}
    with connect(engine="qdrant", address=folder, index="articles") as engine:
        assert engine.search({"query": "$vector", "using": "text"}, "x", sparse, depth=2) == [
            ("0", 3.0),
            ("2", 3.0),
        ]
        with pytest.raises(InputError, match="each prefetch is a ranker of its own"):
            engine.search({"query": "$vector", "prefetch": []}, "x", [1.0])
        with pytest.raises(InputError, match='no key "query"'):
            engine.search({"using": "$query"}, "x")
        with pytest.raises(EngineError, match="no query of Qdrant"):
            engine.search({"query": {"nearest": {"a": "$vector"}}, "params": 3}, "x", [1.0])
    with (
        connect(engine="qdrant", address=folder, index="missing") as engine,
        pytest.raises(EngineError, match="See collection"),
    ):
        engine.state()


@pytest.mark.filterwarnings("ignore")
def test_milvus(tmp_path):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    library = pytest.importorskip("pymilvus", reason="pymilvus is not installed")
    path = str(tmp_path / "milvus.db")
    client, kind = library.MilvusClient(path), library.DataType
    schema = client.create_schema()
    schema.add_field("id", kind.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("body", kind.VARCHAR, max_length=1000, enable_analyzer=True)
    schema.add_field("text", kind.SPARSE_FLOAT_VECTOR)
    schema.add_field("embedding", kind.FLOAT_VECTOR, dim=2)
    schema.add_field("other", kind.FLOAT_VECTOR, dim=2)
    schema.add_field("inner", kind.FLOAT_VECTOR, dim=2)
    bm25 = library.Function(
        "bm25", library.FunctionType.BM25, input_field_names=["body"], output_field_names=["text"]
    )
    schema.add_function(bm25)
    index = client.prepare_index_params()
    index.add_index("text", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    index.add_index("embedding", index_type="FLAT", metric_type="COSINE")
    index.add_index("other", index_type="FLAT", metric_type="L2")
    index.add_index("inner", index_type="FLAT", metric_type="IP")
    client.create_collection("articles", schema=schema, index_params=index)
    client.insert(
        "articles", [{"id": k, "body": t, "embedding": VECTORS[k], "other": VECTORS[k], "inner": VECTORS[k]}
         for k, t in TEXTS.items()],
    )  # fmt: skip
    client.close()
    config = {
        "engine": "milvus",
        "address": path,
        "index": "articles",
        "texts": ["body"],
        "rankers": {
            "bm25": {"search": {"anns_field": "text", "data": "$query"}},
            "dense": {"search": {"anns_field": "embedding", "data": "$vector"}},
        },
    }
    pulled = check(config, tmp_path, bm25=False)
    assert list(pulled.runs["bm25"]["q1"]) == ["d1", "d3"]
    assert pulled.runs["bm25"]["q1"]["d3"] > 0
    assert pulled.texts == TEXTS
    check({**config, "page_size": 3}, tmp_path / "pages", bm25=False)
    with connect(engine="milvus", address=path, index="articles") as engine:
        found = engine.search({"anns_field": "other", "data": "$vector"}, "x", [1.0, 0.0], depth=2)
        assert found == [("d1", pytest.approx(0.0)), ("d3", pytest.approx(-0.8))]  # squared distances, negative
        found = engine.search({"anns_field": "inner", "data": "$vector"}, "x", [2.0, 0.0], depth=2)
        assert found == [("d1", pytest.approx(2.0)), ("d3", pytest.approx(1.2))]
        with pytest.raises(InputError, match="arguments of a search"):
            engine.search({"data": "$query"}, "x")
        with pytest.raises(InputError, match="found 'limit'"):
            engine.search({"data": "$query", "anns_field": "text", "limit": 3}, "x")
        with pytest.raises(EngineError, match="milvus: "):
            engine.search({"data": "$vector", "anns_field": "missing"}, "x", [1.0])


def test_milvus_speaks_no_http():
    with pytest.raises(InputError, match="gRPC"):
        connect(engine="milvus", address="http://127.0.0.1:1", index="a", proxy="http://x")


@pytest.mark.filterwarnings("ignore")
def test_lancedb(tmp_path):
    library = pytest.importorskip("lancedb", reason="lancedb is not installed")
    folder = str(tmp_path / "lancedb")
    rows = [{"id": key, "text": text, "embedding": VECTORS[key]} for key, text in TEXTS.items()]
    table = library.connect(folder).create_table("articles", rows)
    table.create_fts_index("text")
    config = {
        "engine": "lancedb",
        "address": folder,
        "index": "articles",
        "rankers": {
            "bm25": {"search": {"query": "$query", "query_type": "fts", "columns": "text"}},
            "dense": {
                "search": {
                    "query": "$vector", "query_type": "vector", "columns": "embedding", "distance_type": "cosine"
                }
            },
        },
    }  # fmt: skip
    pulled = check(config, tmp_path, bm25=False)
    assert {"d1", "d3"} <= set(pulled.runs["bm25"]["q1"])
    with connect(engine="lancedb", address=folder, index="articles") as engine:
        before = engine.state()
        table.add(rows[:1])
        assert engine.state() == before or engine.state() is not None
        with pytest.raises(InputError, match="hybrid is fused already"):
            engine.search({"query": "$query", "query_type": "hybrid"}, "x")
        with pytest.raises(InputError, match="found 'limit'"):
            engine.search({"query": "$query", "query_type": "fts", "limit": 3}, "x")
        with pytest.raises(EngineError, match="lancedb: "):
            engine.search({"query": "$vector", "query_type": "vector", "columns": "missing"}, "x", [1.0])
    with pytest.raises(EngineError, match="See address and index"):
        connect(engine="lancedb", address=folder, index="missing")
    with pytest.raises(InputError, match="folder of a LanceDB database"):
        connect(engine="lancedb", address=str(tmp_path / "none"), index="a")


@pytest.fixture(scope="module")
def postgresql():
    """The address of a server with pgvector, which is filled."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from export.conftest import packaged_tools, server

    tools = packaged_tools()
    if not tools:
        pytest.skip("pgserver is not installed")
    with server(tools[0]) as psql:
        psql("CREATE EXTENSION vector;\nCREATE TABLE articles (id text, text text, embedding vector(2));\n")
        psql("".join(f"INSERT INTO articles VALUES ('{k}', '{TEXTS[k]}', '{VECTORS[k]}');\n" for k in TEXTS))
        folder = psql("SELECT current_setting('unix_socket_directories'), 'x';\n")[0][0]
        yield f"postgresql://genm@/postgres?host={folder}"


PGVECTOR = {
    "bm25": {
        "search": "SELECT id, ts_rank_cd(to_tsvector('english', text), q) AS score, text "
        "FROM articles, to_tsquery('english', $words) AS q WHERE to_tsvector('english', text) @@ q "
        "ORDER BY score DESC, id LIMIT $depth"
    },
    "dense": {
        "search": "SELECT id, 1 - (embedding <=> $vector::vector) FROM articles "
        "ORDER BY embedding <=> $vector::vector LIMIT $depth"
    },
}


def test_pgvector(postgresql, tmp_path):
    address = postgresql
    options = {"settings": {"hnsw.ef_search": 200}}
    config = {
        "engine": "pgvector",
        "address": address,
        "index": "articles",
        "rankers": PGVECTOR,
        "options": options,
    }
    pulled = check(config, tmp_path, bm25=False)
    assert set(pulled.runs["bm25"]["q2"]) == {"d3", "d4"}
    assert set(pulled.runs["bm25"]["q1"]) == {"d1", "d3"}
    assert pulled.texts["d4"] == TEXTS["d4"]
    with connect(engine="pgvector", address=address, index="articles") as engine:
        before = engine.state()
        assert before is not None
        numeric = "SELECT id, 1.5::numeric FROM articles WHERE text <> $query LIMIT $depth"
        assert engine.search(numeric, "100 % sure", depth=1)[0][1] == 1.5
        with pytest.raises(EngineError, match="read-only"):
            engine.search("INSERT INTO articles VALUES ($query, $depth)", "d9", depth=2)
        with pytest.raises(EngineError, match="syntax error"):
            engine.search("SELECT id FORM articles WHERE $query LIMIT $depth", "x", depth=2)
    with connect(engine="pgvector", address=address, index="articles", timeout=0.2) as engine:
        with pytest.raises(EngineError, match=r"within 0\.2 s") as caught:
            engine.search("SELECT $query, pg_sleep(5), $depth", "x", depth=2)
        assert caught.value.retry
    missing = connect(engine="pgvector", address=address, index="missing")
    with missing as engine, pytest.raises(EngineError, match="expected the table missing"):
        engine.state()
    with connect(engine="pgvector", address=address.replace("/postgres?", "/nothing?")) as engine:
        with pytest.raises(EngineError, match="does not exist") as caught:
            engine.version()
        assert caught.value.fatal


def test_pgvector_checks_the_server_unless_it_is_local():
    pytest.importorskip("psycopg")
    far = connect(engine="pgvector", address="postgresql://me@db.example.org/search")
    assert far._secure() == {"sslmode": "verify-full", "sslrootcert": "system"}
    assert connect(engine="pgvector", address="postgresql://me@localhost/a")._secure() == {"sslmode": "prefer"}
    asked = connect(engine="pgvector", address="postgresql://me@db.example.org/a?sslmode=require")
    assert asked._secure() == {}
    with pytest.raises(InputError, match="expected postgresql://"):
        connect(engine="pgvector", address="https://db.example.org")
    with pytest.raises(InputError, match="does not speak HTTP"):
        connect(engine="pgvector", address="postgresql://x/a", proxy="http://x")


class FakeCollection:
    """Stands in for a MongoDB collection: keeps pipelines, returns what it is given."""

    def __init__(self, answer):
        self.answer, self.pipelines = answer, []

    def aggregate(self, pipeline, **_):
        self.pipelines.append(pipeline)
        if isinstance(self.answer, Exception):
            raise self.answer
        return iter(self.answer)

    def estimated_document_count(self, **_):
        return 4


def mongodb(answer):
    pytest.importorskip("pymongo", reason="pymongo is not installed")
    engine = connect(
        engine="mongodb", address="mongodb://127.0.0.1:1", index="search.articles", text_fields=["text"]
    )
    engine._collection = FakeCollection(answer)
    return engine


def test_mongodb_runs_a_pipeline_with_the_score_of_its_first_stage():
    key = pytest.importorskip("bson", reason="pymongo is not installed").ObjectId()
    with mongodb([{"_id": key, "score": 0.75, "text": "red"}]) as engine:
        template = {"$vectorSearch": {"path": "embedding", "queryVector": "$vector", "limit": "$depth"}}
        assert engine.search(template, "x", [1.0, 0.5], depth=7) == [(str(key), 0.75)]
        assert engine._collection.pipelines[-1] == [
            {"$vectorSearch": {"path": "embedding", "queryVector": [1.0, 0.5], "limit": 7}},
            {"$project": {"_id": 1, "text": 1, "score": {"$meta": "vectorSearchScore"}}},
            {"$limit": 7},
        ]
        engine.search([{"$match": {"$text": {"$search": "$query"}}}], '"} {$ne: 1}', depth=3)
        match, _, sort, _ = engine._collection.pipelines[-1]
        assert match == {"$match": {"$text": {"$search": '"} {$ne: 1}'}}}
        assert sort == {"$sort": {"score": -1}}
        assert engine.state() == "4 documents"


@pytest.mark.parametrize("stage", ["$out", "$merge", "$limit", "$scoreFusion"])
def test_mongodb_refuses_stages_that_write_or_fuse(stage):
    with mongodb([]) as engine, pytest.raises(InputError, match="one search that only reads"):
        engine.search([{"$search": {"text": {"query": "$query"}}}, {stage: 1}], "x")


def test_mongodb_faults_say_whether_to_try_again():
    errors = pytest.importorskip("pymongo.errors")
    cases = [
        (errors.AutoReconnect("gone"), True, False),
        (errors.OperationFailure("auth", 18), False, True),
        (errors.OperationFailure("bad", 40324), False, False),
        (errors.OperationFailure("slow", 50), True, False),
    ]
    for fault, retry, fatal in cases:
        with mongodb(fault) as engine, pytest.raises(EngineError) as caught:
            engine.search({"$search": {"text": {"query": "$query"}}}, "x")
        assert (caught.value.retry, caught.value.fatal) == (retry, fatal)


def test_mongodb_needs_a_whole_address():
    pytest.importorskip("pymongo")
    for options, message in (
        ({"index": "articles"}, "database.collection"),
        ({"address": "localhost"}, "expected mongodb://"),
        ({"proxy": "http://x"}, "does not speak HTTP"),
        ({"cert": "a", "key": "b"}, "in one file"),
    ):
        given = {"address": "mongodb://127.0.0.1:1", "index": "a.b", **options}
        with pytest.raises(InputError, match=message):
            connect(engine="mongodb", **given)
    with mongodb([]) as engine, pytest.raises(InputError, match="begins with"):
        engine.search([{"$project": {"a": "$query"}}], "x")
