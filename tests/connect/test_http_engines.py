"""Engines over HTTP against a local server that plays them: right answers, and slow, wrong and hostile ones."""

import base64
import math
import threading
import time
from contextlib import suppress
from functools import partial

import pytest
from connect.stub import Reply, serving
from hypothesis import given
from hypothesis import strategies as st

from genm.connect import connect, pull
from genm.connect.registry import ENGINES
from genm.errors import EngineError, InputError

pytest.importorskip("httpx")

HOSTILE = 'say "hi"}}, {"match_all": {}} \\ $vector {!func}1 \n é 😀'
PRODUCT = {"X-Elastic-Product": "Elasticsearch"}
DOCS = [("d1", 2.5), ("d2", 1.25), ("d3", 0.5)]


def search_api(hits, start, size, **more):
    chosen = [{"_id": key, "_score": score, "_source": {"text": f"text of {key}"}} for key, score in hits]
    answer = {"_shards": {"total": 2, "failed": 0}, "hits": {"hits": chosen[start : start + size]}, **more}
    return Reply(answer, headers=PRODUCT)


def play_search_api(hits, method, path, body, **more):
    if "/_stats/" in path:
        totals = {"docs": {"count": 3, "deleted": 0}, "indexing": {"index_total": 3, "delete_total": 0}}
        return Reply({"_all": {"primaries": totals}}, headers=PRODUCT)
    if path.partition("?")[0] == "/":
        return Reply({"version": {"number": "9.9.9"}}, headers=PRODUCT)
    return search_api(hits, body["from"], body["size"], **more)


def play_solr(hits, method, path, body, **more):
    if "/admin/luke" in path:
        return Reply({"index": {"version": 7, "numDocs": 3, "deletedDocs": 0}})
    if "/admin/info/system" in path:
        return Reply({"lucene": {"solr-spec-version": "9.9.9"}})
    docs = [{"id": key, "score": score, "text": [f"text of {key}"]} for key, score in hits]
    found = docs[body["offset"] : body["offset"] + body["limit"]]
    return Reply({"responseHeader": {**more}, "response": {"docs": found}})


def play_vespa(hits, method, path, body, **more):
    children = [
        {"id": f"id:ns:article::{key}", "relevance": score, "fields": {"text": f"text of {key}"}}
        for key, score in hits
    ]
    part = children[body["offset"] : body["offset"] + body["hits"]]
    return Reply({"root": {"coverage": {"coverage": 100, "full": True}, "children": part, **more}})


def play_weaviate(hits, method, path, body, **more):
    if path.endswith("/meta"):
        return Reply({"version": "9.9.9"})
    if "Aggregate" in body["query"]:
        return Reply({"data": {"Aggregate": {"Article": [{"meta": {"count": 3}}]}}})
    start, size = (
        int(body["query"].rpartition(f"{name}: ")[2].split(",")[0].split(")")[0]) for name in ("offset", "limit")
    )
    found = [{"text": f"text of {key}", "_additional": {"id": key, "score": str(score)}} for key, score in hits]
    return Reply({"data": {"Get": {"Article": found[start : start + size]}}, **more})


PLAYERS = {
    "opensearch": (play_search_api, {"match": {"text": "$query"}}, "articles"),
    "elasticsearch": (play_search_api, {"match": {"text": "$query"}}, "articles"),
    "solr": (play_solr, {"query": "{!edismax qf=text v=$qq}", "params": {"qq": "$query"}}, "articles"),
    "vespa": (play_vespa, {"yql": "select * from article where userQuery()", "query": "$query"}, ""),
    "weaviate": (play_weaviate, {"bm25": {"query": "$query"}}, "Article"),
}
ENDINGS = {
    "opensearch": "/_search",
    "elasticsearch": "/_search",
    "solr": "/select",
    "vespa": "/",
    "weaviate": "/graphql",
}
KEYS = (
    "hits", "_id", "_score", "_source", "_shards", "failed", "failures", "timed_out", "response", "docs", "id",
    "score", "root", "children", "fields", "relevance", "errors", "coverage", "data", "Get", "Article",
    "_additional", "Aggregate", "responseHeader", "_all", "primaries", "index", "version", "message",
)  # fmt: skip
CLIENTS = {"opensearch": "opensearchpy", "elasticsearch": "elasticsearch"}
every_engine = pytest.mark.parametrize("name", PLAYERS)


def need_client(name):
    """Skip the test where the engine's official client is not installed; the others need httpx alone."""
    if name in CLIENTS:
        pytest.importorskip(CLIENTS[name], reason=f"the client of {name} is not installed")


def opened(name, stub, **options):
    need_client(name)
    return connect(engine=name, address=stub.address, index=PLAYERS[name][2], **options)


def config(name, stub, **options):
    need_client(name)
    return {
        "engine": name,
        "address": stub.address,
        "index": PLAYERS[name][2],
        "rankers": {"bm25": {"search": PLAYERS[name][1]}},
        **options,
    }


@every_engine
def test_a_search_returns_ids_and_raw_scores(name):
    play, template, _ = PLAYERS[name]
    with serving(partial(play, DOCS)) as stub, opened(name, stub) as engine:
        assert engine.search(template, "red cars", depth=10) == DOCS
        assert engine.search(template, "red cars", depth=2) == DOCS[:2]
        assert engine.state() == engine.state()
        assert engine.version() == (None if name == "vespa" else "9.9.9")


@every_engine
def test_a_hostile_query_arrives_as_data(name):
    play, template, _ = PLAYERS[name]
    with serving(partial(play, DOCS)) as stub, opened(name, stub) as engine:
        engine.search(template, HOSTILE, depth=10)
        body = stub.bodies(ENDINGS[name])[-1]
    if name == "weaviate":
        from genm.connect.engines.weaviate import to_graphql

        inside = "bm25: " + to_graphql({"query": HOSTILE}, "") + ", limit: 10, offset: 0"
        assert body == {"query": f"{{Get {{Article({inside}) {{ _additional {{id score distance}}}}}}}}"}
    elif name == "solr":
        assert body["params"] == {"qq": HOSTILE}
        assert body["query"] == template["query"]
    elif name == "vespa":
        assert (body["query"], body["yql"]) == (HOSTILE, template["yql"])
    else:
        assert body["query"] == {"match": {"text": HOSTILE}}


@every_engine
def test_lists_come_page_by_page_with_texts(name):
    play, _, _ = PLAYERS[name]
    with serving(partial(play, DOCS)) as stub:
        pulled = pull(config(name, stub, texts=["text"], page_size=2, depth=3), {"q1": "a"})
        bodies = stub.bodies(ENDINGS[name])
    assert pulled.runs["bm25"]["q1"] == dict(DOCS)
    assert pulled.texts == {key: f"text of {key}" for key, _ in DOCS}
    sizes = [
        body.get("size") or body.get("limit") or body.get("hits") for body in bodies if "Aggregate" not in str(body)
    ]
    assert len(sizes) == 2
    assert name == "weaviate" or sizes == [2, 1]


@every_engine
@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ([("d1", 2.0), ("d1", 1.0)], "rank 2: expected each document once; found 'd1' again"),
        ([("d1", None)], "rank 1: expected a score for document 'd1'; found none"),
        ([("d1", math.nan)], "expected a finite score for document 'd1'; found nan"),
        ([("d1", math.inf)], "expected a finite score"),
        ([("d1", 0.1), ("d2", 0.4)], "expected scores of which higher is better; found scores that rise"),
        ([("a b", 1.0)], "without white space; found 'a b'"),
        ([("", 1.0)], "expected a document id"),
    ],
)
def test_a_list_that_cannot_be_right_is_refused(name, hits, message):
    play, template, _ = PLAYERS[name]
    if name == "weaviate":
        hits = [(key, "x" if score is None else score) for key, score in hits]
    with serving(partial(play, hits)) as stub, opened(name, stub) as engine:
        if name == "vespa" and hits[0][0] == "":
            message = "expected a document id"
        with pytest.raises(EngineError, match=message):
            engine.search(template, "a", depth=10)


def fault_of(name, reply, **options):
    _, template, _ = PLAYERS[name]
    with (
        serving(lambda *_: reply) as stub,
        opened(name, stub, **options) as engine,
        pytest.raises(EngineError) as caught,
    ):
        engine.search(template, "a", depth=10)
    return caught.value


@every_engine
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_html_in_place_of_json_is_said(name, kind):
    fault = fault_of(name, Reply(b"<!doctype html><html>Log in</html>", kind=kind))
    assert "a page of HTML" in str(fault)
    assert "log-in page" in str(fault)
    assert not fault.retry


@every_engine
@pytest.mark.parametrize("body", [[1, 2], {"nothing": 1}, {"hits": None, "response": None, "root": 3, "data": []}])
def test_json_of_another_shape_is_said(name, body):
    assert "expected" in str(fault_of(name, Reply(body, headers=PRODUCT)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def unreached(request):
    """An engine that nothing is sent to."""
    need_client(request.param)
    with connect(engine=request.param, address="http://127.0.0.1:1", index=PLAYERS[request.param][2]) as engine:
        yield request.param, engine


@pytest.mark.parametrize("unreached", PLAYERS, indirect=True)
@given(answer=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
def test_no_answer_breaks_the_reader(unreached, answer):
    """Whatever JSON comes, a list is returned or an EngineError says what is wrong."""
    name, engine = unreached
    template = PLAYERS[name][1]
    if name in CLIENTS:
        engine._send = lambda *_: answer
    else:
        engine._client.send = lambda *_, **__: answer
    for ask in (lambda: engine.search(template, "a", depth=5), engine.state, engine.version):
        with suppress(EngineError):
            ask()


@every_engine
@pytest.mark.parametrize(
    ("status", "retry"), [(429, True), (502, True), (503, True), (504, True), (500, False), (400, False)]
)
def test_a_status_says_whether_to_try_again(name, status, retry):
    fault = fault_of(
        name, Reply({"error": {"reason": "why it failed", "msg": "why it failed"}}, status, {"Retry-After": "7"})
    )
    assert (fault.retry, fault.fatal) == (retry, False)
    assert f"HTTP status {status}" in str(fault)
    assert "why it failed" in str(fault)
    assert fault.after == 7.0


@every_engine
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_status_that_all_requests_would_get_is_fatal(name, status):
    assert fault_of(name, Reply({}, status)).fatal


@every_engine
def test_a_redirection_is_not_followed(name):
    with serving(lambda *_: Reply({})) as other:
        fault = fault_of(name, Reply({}, 302, {"Location": f"{other.address}/x"}))
        assert other.requests == []
    assert "redirection" in str(fault)


@every_engine
def test_a_slow_answer_times_out_and_may_be_asked_again(name):
    fault = fault_of(name, Reply({}, delay=5.0), timeout=0.1)
    assert fault.retry
    assert "within 0.1 s" in str(fault)


@every_engine
def test_an_engine_that_is_away_may_come_back(name):
    with serving(lambda *_: Reply({})) as stub:
        pass
    with opened(name, stub) as engine, pytest.raises(EngineError, match="Is it running") as caught:
        engine.search(PLAYERS[name][1], "a")
    assert caught.value.retry


PARTIAL = {
    "opensearch": {"_shards": {"total": 3, "failed": 1, "failures": [{"reason": {"reason": "broken"}}]}},
    "elasticsearch": {"timed_out": True},
    "solr": {"partialResults": True},
    "vespa": {"coverage": {"coverage": 50, "full": False}},
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_part_of_the_index_is_refused_unless_it_is_allowed(name, tmp_path):
    play, template, _ = PLAYERS[name]
    with serving(partial(play, DOCS, **PARTIAL[name])) as stub:
        with opened(name, stub) as engine, pytest.raises(EngineError, match="found a part: "):
            engine.search(template, "a")
        with pytest.raises(EngineError, match="--allow-partial"):
            pull(config(name, stub), {"q1": "a"}, tmp_path)
        assert not (tmp_path / "bm25.trec").exists()
        pulled = pull(config(name, stub), {"q1": "a"}, tmp_path, allow_partial=True, resume=True)
    assert pulled.runs["bm25"].notes[0].code == "partial"
    lines = (tmp_path / "bm25.trec").read_text(encoding="utf-8").splitlines()
    assert all(line.endswith(" bm25:partial") for line in lines)
    assert '"partial"' in (tmp_path / "pull.json").read_text(encoding="utf-8")


@every_engine
def test_errors_inside_an_answer_are_errors(name):
    answers = {
        "opensearch": {"error": "x"}, "elasticsearch": {"error": "x"}, "solr": {"error": {"msg": "x"}},
        "vespa": {"root": {"errors": [{"code": 12, "message": "timed out"}]}},
        "weaviate": {"errors": [{"message": "no such class"}]},
    }  # fmt: skip
    fault = fault_of(name, Reply(answers[name], headers=PRODUCT))
    assert fault.retry == (name == "vespa")


@every_engine
@pytest.mark.parametrize("auth", [{"user": "me", "password": "env:SECRET"}, {"token": "env:SECRET"}])
def test_credentials_travel_in_a_header_and_nowhere_else(name, auth, monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET", "hunter2-hunter2")
    play, _, _ = PLAYERS[name]
    with serving(partial(play, DOCS)) as stub:
        pulled = pull(config(name, stub, auth=auth, headers={"x-own": "env:SECRET"}), {"q1": "a"}, tmp_path)
        sent = {key.lower(): value for key, value in stub.headers[-1].items()}
        paths = [path for _, path, _ in stub.requests]
    basic = base64.b64encode(b"me:hunter2-hunter2").decode()
    assert sent["authorization"] == (f"Basic {basic}" if "user" in auth else "Bearer hunter2-hunter2")
    assert sent["x-own"] == "hunter2-hunter2"
    written = "".join(path.read_text(encoding="utf-8") for path in pulled.files)
    assert "hunter2" not in written + "".join(paths)


@every_engine
def test_a_secret_that_the_engine_repeats_is_not_shown(name, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2-hunter2")
    reply = Reply(
        {"error": {"reason": "token hunter2-hunter2 is wrong", "msg": "token hunter2-hunter2 is wrong"}}, 401
    )
    fault = fault_of(name, reply, token="env:SECRET")
    assert "hunter2" not in str(fault)
    assert "***" in str(fault)


@every_engine
def test_a_proxy_is_used_only_if_it_is_named(name, monkeypatch):
    play, template, _ = PLAYERS[name]
    with serving(partial(play, DOCS)) as stub, serving(partial(play, DOCS)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        with opened(name, stub) as engine:
            engine.search(template, "a", depth=10)
        assert proxy.requests == []
        address = "http://engine.invalid:9200"
        engine = connect(engine=name, address=address, index=PLAYERS[name][2], proxy=proxy.address)
        with engine, suppress(EngineError):  # the stub sees whole URLs, which not every player understands
            engine.search(template, "a", depth=10)
        assert all("engine.invalid" in path for _, path, _ in proxy.requests)
        assert proxy.requests


BAD_TEMPLATES = [
    ("opensearch", {"query": {"match": {"t": "$query"}}, "size": 3}, "expected no size"),
    ("opensearch", {"query": {"match": {"t": "$query"}}, "sort": ["x"]}, "expected no sort"),
    ("opensearch", {"hybrid": {"queries": [{"match": {"t": "$query"}}]}}, "fused already"),
    ("opensearch", [{"match": {"t": "$query"}}], "found a list"),
    ("solr", {"params": {"q": "$query"}}, 'no key "query"'),
    ("solr", {"query": "x", "params": {"q": "$query"}, "limit": 3}, "expected no limit"),
    ("vespa", {"query": "$query"}, 'no key "yql"'),
    ("vespa", {"yql": "x", "query": "$query", "hits": 3}, "expected no hits"),
    ("weaviate", {"hybrid": {"query": "$query"}}, "fused already"),
    ("weaviate", {"bm25": {"query": "$query"}, "limit": 3}, "expected no limit"),
    ("weaviate", {"bm25": {"query": "$query", "x{y": 1}}, "letters, digits"),
]


@pytest.mark.parametrize(("name", "template", "message"), BAD_TEMPLATES)
def test_a_template_that_cannot_work_is_refused_before_anything_is_sent(name, template, message):
    with serving(lambda *_: Reply({})) as stub, opened(name, stub) as engine:
        with pytest.raises(InputError, match=message):
            engine.search(template, "a", [1.0])
        assert stub.requests == []


def test_opensearch_takes_bodies_and_switches_pipelines_off():
    template = {"query": {"match": {"text": "$query"}}, "min_score": 0.1}
    with serving(partial(play_search_api, DOCS)) as stub, opened("opensearch", stub, id_field="text") as engine:
        with pytest.raises(EngineError, match="white space"):
            engine.search(template, "a", depth=10)
        _, path, body = stub.requests[-1]
    assert "search_pipeline=_none" in path
    assert "preference=genm" in path
    assert body == {**template, "query": {"match": {"text": "a"}}, "from": 0, "size": 10, "_source": ["text"]}


def test_opensearch_can_be_measured_with_a_pipeline():
    template = {"hybrid": {"queries": [{"match": {"text": "$query"}}]}}
    options = {"search_pipeline": "learned"}
    with serving(partial(play_search_api, DOCS)) as stub, opened("opensearch", stub, options=options) as engine:
        assert engine.search(template, "a", depth=10) == DOCS
        assert "search_pipeline=learned" in stub.requests[-1][1]


def test_statistics_that_a_user_may_not_see_are_not_needed():
    def play(method, path, body):
        return Reply({}, 403) if "_stats" in path else play_search_api(DOCS, method, path, body)

    with serving(play) as stub, opened("opensearch", stub) as engine:
        assert engine.state() is None


def test_vespa_takes_a_match_feature_as_score():
    def play(method, path, body):
        assert "score" not in body
        fields = {"documentid": "id:ns:article::a::b", "matchfeatures": {"cosine": 0.25}}
        return Reply({"root": {"children": [{"id": "x", "relevance": 9.0, "fields": fields}]}})

    with serving(play) as stub, opened("vespa", stub) as engine:
        template = {"yql": "x", "query": "$query", "score": "cosine"}
        assert engine.search(template, "a", depth=5) == [("b", 0.25)]


def test_weaviate_turns_distances_into_similarities():
    def play(method, path, body):
        found = [{"doc": "d7", "_additional": {"id": "u", "score": "", "distance": 0.25}}]
        return Reply({"data": {"Get": {"Article": found}}})

    with serving(play) as stub, opened("weaviate", stub, id_field="doc") as engine:
        assert engine.search({"nearVector": {"vector": "$vector"}}, "a", [1.0, 0.5], depth=5) == [("d7", 0.75)]
        assert "nearVector: {vector: [1.0, 0.5]}" in stub.requests[-1][2]["query"]


def test_every_engine_over_http_is_played():
    assert set(PLAYERS) | {"lancedb", "milvus", "mongodb", "pgvector", "qdrant", "sqlite"} == set(ENGINES)


def test_many_threads_ask_at_once():
    running, most = 0, 0
    lock, together = threading.Lock(), threading.Event()

    def play(method, path, body):
        nonlocal running, most
        if "_search" not in path:
            return play_search_api(DOCS, method, path, body)
        with lock:
            running, most = running + 1, max(most, running + 1)
            if running > 1:
                together.set()
        together.wait(60)  # the first one waits for the second, however busy the machine is
        together.set()
        time.sleep(0.05)
        with lock:
            running -= 1
        return play_search_api(DOCS, method, path, body)

    with serving(play) as stub:
        pull(config("opensearch", stub, concurrency=4), {f"q{i}": "a" for i in range(12)})
    assert 2 <= most <= 4
