"""Every endpoint, and every way in which a request can be wrong."""

import random

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
import numpy as np
from serve.cases import RANKERS, judged, lists, model, poisoned

from genm.align import align_runs
from genm.evaluate import evaluate_run
from genm.learn.auto import AutoFuser
from genm.read import qrels_from_dict, run_from_dict
from genm.serve.http import Limits
from genm.serve.interleaving import team_draft
from genm.serve.learner import Rules
from genm.serve.replay import check_store

RUNS = lists(random.Random(5))
COLUMNS = {
    name: {"doc_ids": [doc_id for doc_id, _ in rows], "scores": [score for _, score in rows]}
    for name, rows in RUNS.items()
}


def expected_list(weights=None, top=None):
    given = model() if weights is None else model(weights=weights)
    run = given.fuse({name: run_from_dict({"q": dict(rows)}, name=name) for name, rows in RUNS.items()}, top=top)
    docs = list(run.docs)
    return [[docs[code], score] for code, score in zip(run.doc, run.score.tolist(), strict=True)]


def test_fusing_rows_gives_rows(service):
    answer = service.post("/v1/fuse", {"runs": RUNS, "query_id": "q", "top": 5})
    assert answer.status_code == 200
    assert answer.json() == {"version": 1, "query_id": "q", "results": expected_list(top=5)}


def test_fusing_columns_gives_columns(service):
    answer = service.post("/v1/fuse", {"runs": COLUMNS}).json()
    assert [list(pair) for pair in zip(answer["doc_ids"], answer["scores"], strict=True)] == expected_list()


def test_weights_of_the_request_are_used(service):
    answer = service.post("/v1/fuse", {"runs": RUNS, "weights": {"bm25": 1, "dense": 0, "sparse": -0.5}}).json()
    assert answer["results"] == expected_list(weights=(1.0, 0.0, -0.5))
    assert answer["version"] is None


def test_a_version_can_be_named(service):
    service.feedback(judged(1))
    assert service.post("/v1/fuse", {"runs": RUNS, "version": 1}).json()["results"] == expected_list()
    assert service.post("/v1/fuse", {"runs": RUNS}).json()["version"] == 2
    refused = service.post("/v1/fuse", {"runs": RUNS, "version": 7})
    assert refused.status_code == 404
    assert refused.json()["error"]["expected"] == "one of 1 to 2"


def test_a_subset_of_rankers_can_be_fused(service):
    some = {name: RUNS[name] for name in ("bm25", "dense")}
    refused = service.post("/v1/fuse", {"runs": some})
    assert refused.status_code == 422
    assert "sparse" in refused.json()["error"]["found"]
    answer = service.post("/v1/fuse", {"runs": some, "rankers": ["dense", "bm25"]}).json()
    assert {doc_id for doc_id, _ in answer["results"]} == {doc_id for rows in some.values() for doc_id, _ in rows}
    same = service.post(
        "/v1/fuse", {"runs": some, "rankers": ["bm25", "dense"], "weights": {"bm25": 0.2, "dense": 0.3}}
    )
    assert same.json()["results"] == answer["results"]


def test_explaining_adds_up_to_the_score(service):
    answer = service.post("/v1/fuse", {"runs": RUNS, "explain": True}).json()
    parts = np.array([answer["contributions"][name] for name in RANKERS])
    assert parts.sum(axis=0) == pytest.approx([score for _, score in answer["results"]])


@pytest.mark.parametrize(
    ("body", "status", "code", "place"),
    [
        (b"", 400, "json", "body"),
        (b"{", 400, "json", "body"),
        (b"\xff\xfe", 400, "json", "body"),
        (b'{"runs": {"bm25": [["a", NaN]]}}', 400, "json", "body"),
        (b'{"runs": {"bm25": [["a", Infinity]]}}', 400, "json", "body"),
        (b'{"runs": {"bm25": [["a", 1e400]]}}', 422, "input", "body.runs[...][0][1]"),
        (b'{"runs": {"bm25": [["a", "1"]]}}', 422, "input", "body.runs[...][0][1]"),
        (b'{"runs": {"bm25": [["a", null]]}}', 422, "input", "body.runs[...][0][1]"),
        (b'{"runs": {"bm25": [["", 1]]}}', 422, "input", "body.runs[...][0][0]"),
        (b'{"runs": {"bm25": ' + b"[" * 100_000, 422, "input", "body.runs[...][0][0]"),
        (b"[" * 100_000, 422, "input", "body"),
        (b'{"runs": {}}', 422, "input", "body.runs"),
        (b'{"runs": {"bm25": []}, "rankers": ["bm25"]}', 422, "input", "body.runs.bm25"),
        (b'{"runs": {"bm25": [["a", 1], ["a", 2]]}, "rankers": ["bm25"]}', 422, "input", "body.runs.bm25"),
        (b'{"runs": {"other": [["a", 1]]}}', 422, "input", "body.runs"),
        (b'{"ruhns": {}}', 422, "input", "body"),
        (b'{"top": 3}', 422, "input", "body"),
        (b'{"runs": {"bm25": [["a", 1]]}, "rankers": ["bm25"], "top": 0}', 422, "input", "body.top"),
        (b'{"runs": {"bm25": [["a", 1]]}, "rankers": []}', 422, "input", "body.rankers"),
        (
            b'{"runs": {"bm25": [["a", 1]]}, "rankers": ["bm25"], "weights": {"bm25": 0}}',
            422,
            "input",
            "body.weights",
        ),
        (b'{"runs": {"bm25": [["a", 1]]}, "rankers": ["bm25"], "weights": {"x": 1}}', 422, "input", "body.weights"),
        (b'{"runs": {"bm25": [["\\ud800", 1]]}}', 400, "json", "body"),
        (b"null", 422, "input", "body"),
    ],
)
def test_a_bad_body_is_refused_with_its_place(service, body, status, code, place):
    answer = service.post("/v1/fuse", body)
    found = answer.json()["error"]
    assert (answer.status_code, found["code"], found["place"]) == (status, code, place)
    assert all(found[name] for name in ("expected", "found", "advice", "message"))


def test_other_media_other_paths_and_other_methods_are_refused(service):
    assert service.post("/v1/fuse", {}, headers={"content-type": "text/plain"}).status_code == 415
    assert service.post("/v1/fuse", {}, headers={"content-encoding": "gzip"}).status_code == 415
    for answer, status in ((service.http.get("/v1/nothing"), 404), (service.http.get("/v1/fuse"), 405)):
        assert answer.status_code == status
        assert answer.json()["error"]["advice"]
    assert service.http.get("/v1/fuse").headers["allow"] == "POST"
    assert service.http.get("/v1/weights?vers=1").json()["error"]["found"] == "'vers'"
    assert service.http.get("/v1/weights?version=0").status_code == 422
    assert service.http.get("/v1/weights?version=x").status_code == 422


def test_a_large_body_is_refused_before_and_while_it_is_read(start):
    service = start(limits=Limits(max_body=1000))
    big = b'{"runs": {"bm25": [["' + b"a" * 2000 + b'", 1]]}}'
    assert service.post("/v1/fuse", big).status_code == 413

    def parts():
        for _ in range(10):
            yield big

    answer = service.http.post("/v1/fuse", content=parts(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"


def test_too_many_requests_are_refused(start):
    service = start(limits=Limits(rate=1.0))
    answers = [service.http.get("/v1/weights") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert answers[-1].headers["retry-after"] == "1"


def test_feedback_is_learned_once(service):
    answer = service.feedback(judged(1), judged(2)).json()
    assert [event["sequence"] for event in answer["events"]] == [3, 4]
    assert [event["outcome"] for event in answer["events"]] == ["learned", "learned"]
    assert service.feedback(judged(1), judged(2)).json() == answer
    assert service.feedback(judged(3, key="event-1")).status_code == 409
    weights = service.http.get("/v1/weights").json()
    assert (weights["version"], weights["champion"], weights["sequence"]) == (2, 2, 4)
    assert sum(weights["weights"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"judgments": {}}, "body.events[0].judgments"),
        ({"judgments": {"a": 2**40}}, "body.events[0].judgments[...]"),
        ({"judgments": {"a": 1.5}}, "body.events[0].judgments[...]"),
        ({"impression": {"shown": ["a"], "clicks": []}}, "body.events[0]"),
        ({"judgments": None}, "body.events[0]"),
        ({"judgments": None, "impression": {"shown": ["a"], "clicks": ["b"]}}, "body.events[0].impression.clicks"),
        ({"judgments": None, "impression": {"shown": [], "clicks": []}}, "body.events[0].impression.shown"),
        ({"judgments": None, "impression": {"shown": ["a", "a"], "clicks": []}}, "body.events[0].impression.shown"),
        ({"judgments": None, "interleaved": {"id": "x", "clicks": []}}, "body.events[0].interleaved.id"),
        ({"runs": {name: [["a", 1], ["a", 1]] for name in RANKERS}}, "body.events[0].runs.bm25"),
        ({"runs": {}}, "body.events[0].runs"),
        ({"key": ""}, "body.events[0].key"),
        ({"key": "x" * 600}, "body.events[0].key"),
    ],
)  # fmt: skip
def test_bad_events_are_refused_and_nothing_is_stored(service, change, place):
    event = {**msgspec.to_builtins(judged(1)), **change}
    answer = service.feedback(event, judged(2))
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["place"] == place
    assert service.engine.status.sequence == 2


def test_of_several_wrong_events_the_first_is_named(service):
    twice = judged(2, runs={**RUNS, "dense": [RUNS["dense"][0]] * 2})
    unknown = judged(3, runs={**RUNS, "other": RUNS["dense"]})
    for events, place in (((judged(1), twice, unknown), ".dense"), ((judged(1), unknown, twice), "")):
        answer = service.feedback(*events)
        assert (answer.status_code, answer.json()["error"]["place"]) == (422, f"body.events[1].runs{place}")


def test_one_key_twice_in_a_request_is_refused(service):
    assert service.feedback(judged(1), judged(1)).json()["error"]["place"] == "body.events"


def clicked(number, shown, clicks, **changes):
    event = {**msgspec.to_builtins(judged(number)), "impression": {"shown": shown, "clicks": clicks}, **changes}
    del event["judgments"]
    return event


def test_a_click_far_down_counts_more_than_one_on_top(start, tmp_path):
    top, low = (start(path=tmp_path / f"{name}.sqlite") for name in ("top", "low"))
    event = judged(4)
    docs = [doc_id for doc_id, _ in event.runs["bm25"]]
    clicked_doc = docs[0]
    assert top.feedback(clicked(4, docs, [clicked_doc])).json()["events"][0]["outcome"] == "learned"
    low.feedback(clicked(4, [*docs[1:], clicked_doc], [clicked_doc]))

    def gradients(service):
        return service.engine.status.current.state.memory[0]

    assert gradients(low) > 10 * gradients(top) > 0.0


def test_without_position_bias_all_clicks_count_the_same(start, tmp_path):
    event = judged(4)
    docs = [doc_id for doc_id, _ in event.runs["bm25"]]
    states = []
    for number, shown in enumerate((docs, [*docs[1:], docs[0]])):
        service = start(path=tmp_path / f"{number}.sqlite", rules=Rules(influence=None, position_bias=0.0))
        service.feedback(clicked(4, shown, [docs[0]]))
        states.append(service.engine.status.current.state)
    assert states[0] == states[1]


def test_clicks_that_no_list_explains_are_skipped(service):
    answer = service.feedback(clicked(4, ["nowhere"], ["nowhere"]), clicked(5, ["d01"], []))
    assert [event["outcome"] for event in answer.json()["events"]] == ["skipped", "skipped"]


def test_weights_can_be_set_and_taken_back(service):
    answer = service.http.put("/v1/weights", json={"weights": {"bm25": 2, "dense": 1, "sparse": 1}, "key": "set"})
    assert answer.json() == {"key": "set", "sequence": 3, "version": 2}
    assert service.http.get("/v1/weights").json()["weights"] == {"bm25": 0.5, "dense": 0.25, "sparse": 0.25}
    assert service.post("/v1/rollback", {"version": 1, "key": "back"}).json()["version"] == 1
    assert service.http.get("/v1/weights").json()["weights"]["bm25"] == 0.2
    assert service.post("/v1/rollback", {"version": 9, "key": "far"}).status_code == 404
    versions = service.http.get("/v1/versions?limit=1").json()
    assert (versions["champion"], versions["latest"], len(versions["versions"])) == (1, 2, 1)
    assert versions["versions"][0]["reason"] == "set"
    older = service.http.get("/v1/versions?before=2").json()["versions"]
    assert [entry["version"] for entry in older] == [1]
    with service.engine.store.snapshot() as session:
        assert [(row.actor, row.action) for row in session.audit(5)] == [
            ("local", "rollback"),
            ("local", "weights"),
        ]


@pytest.mark.parametrize(
    "weights",
    [{"bm25": 1}, {"bm25": 1, "dense": -1, "sparse": 1}, {"a": 1}, {}, {"bm25": 0, "dense": 0, "sparse": 0}],
)
def test_bad_weights_are_refused(service, weights):
    assert service.http.put("/v1/weights", json={"weights": weights, "key": "set"}).status_code == 422


def test_stored_judgments_are_measured(service):
    assert service.post("/v1/evaluate", {}).json()["error"]["code"] == "no-judgments"
    service.feedback(*(judged(number) for number in range(6)))
    weights = {"bm25": 1.0, "dense": 0.0, "sparse": 0.0}
    answer = service.post(
        "/v1/evaluate", {"versions": [1, 2], "weights": weights, "measures": "AP,nDCG@10", "last": 5}
    )
    found = answer.json()
    assert found["n_queries"] == 5
    assert [system["version"] for system in found["systems"]] == [None, 1, 2]
    assert set(found["systems"][0]["means"]) == {"AP", "nDCG@10"}
    events = [judged(number) for number in range(1, 6)]
    qrels = qrels_from_dict({event.query_id: dict(event.judgments) for event in events})
    runs = {
        name: run_from_dict({event.query_id: dict(event.runs[name]) for event in events}, name=name)
        for name in RANKERS
    }
    expected = evaluate_run(model().fuse(runs), qrels, "AP,nDCG@10").means
    assert list(found["systems"][1]["means"].values()) == pytest.approx(expected.tolist())
    assert service.post("/v1/evaluate", {"measures": "nonsense"}).status_code == 422
    assert service.post("/v1/evaluate", {"versions": [99]}).status_code == 404


def test_interleaved_lists_are_credited(service):
    service.http.put("/v1/weights", json={"weights": {"bm25": 1, "dense": 0, "sparse": 0}, "key": "set"})
    wins = 0
    for number in range(20):
        answer = service.post("/v1/interleave", {"runs": RUNS, "versions": [1, 2], "top": 6}).json()
        lists_of = [
            [
                doc_id
                for doc_id, _ in service.post("/v1/fuse", {"runs": RUNS, "version": v, "top": 6}).json()["results"]
            ]
            for v in (1, 2)
        ]
        seed = answer["id"].split("-")[3]
        shown, teams = team_draft(lists_of[0], lists_of[1], 6, seed)
        assert shown == answer["doc_ids"]
        click = shown[teams.index(1)]
        wins += 1
        event = {
            "key": f"i{number}",
            "query_id": "q",
            "runs": RUNS,
            "interleaved": {"id": answer["id"], "clicks": [click]},
        }
        assert service.feedback(event).json()["events"][0]["outcome"] == "counted"
    found = service.http.get("/v1/interleave?first=1&second=2").json()
    assert (found["wins"], found["losses"], found["verdict"]) == (0, wins, "the second is better")
    turned = service.http.get("/v1/interleave?first=2&second=1").json()
    assert (turned["wins"], turned["verdict"]) == (wins, "the first is better")
    assert turned["e_value"] == found["e_value"] > 20
    assert service.http.get("/v1/interleave?first=1&second=99").status_code == 404


def test_health_readiness_and_metrics(service):
    service.feedback(judged(1))
    assert service.http.get("/healthz").json() == {"status": "up"}
    assert service.http.get("/readyz").json() == {"status": "ready"}
    text = service.http.get("/metrics").text
    for line in (
        'genm_requests_total{route="/v1/feedback",status="200"} 1',
        'genm_request_seconds_count{route="/v1/feedback"} 1',
        'genm_events_total{outcome="learned"} 1',
        "genm_champion_version 2",
        "genm_sequence 3",
        "genm_store_failing 0.0",
    ):
        assert line in text.splitlines()
    assert text.endswith("\n")


def test_a_store_that_fails_is_a_503_and_is_told(service, monkeypatch):
    service.feedback(judged(1))
    writer = service.engine.store._writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count={pages}")
    big = judged(2, runs={name: [(f"{name}-{i:05}" * 8, float(i)) for i in range(400)] for name in RANKERS})
    answer = service.feedback(big)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "store"
    assert "same key" in answer.json()["error"]["advice"]
    assert service.http.get("/readyz").status_code == 503
    assert "genm_store_failing 1.0" in service.http.get("/metrics").text
    assert service.post("/v1/fuse", {"runs": RUNS}).status_code == 200  # fusing goes on
    assert service.feedback(big).status_code == 200
    assert service.http.get("/readyz").status_code == 200


def test_every_answer_has_the_security_headers(service):
    for answer in (
        service.http.get("/"),
        service.http.get("/healthz"),
        service.http.get("/nowhere"),
        service.post("/v1/fuse", b""),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_the_description_names_every_path(service):
    described = service.http.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    assert set(described["paths"]) == {
        "/v1/fuse", "/v1/feedback", "/v1/weights", "/v1/versions", "/v1/rollback", "/v1/relearn", "/v1/evaluate",
        "/v1/interleave", "/v1/overview", "/v1/stream", "/metrics", "/healthz", "/readyz",
    }  # fmt: skip


def test_the_overview_has_what_the_page_shows(service):
    service.feedback(*(judged(number) for number in range(12)))
    found = service.http.get("/v1/overview").json()
    assert found["champion"] == found["latest"] == 2
    assert found["running_ap"]["n_queries"] == 12
    assert found["running_ap"]["low"] <= found["running_ap"]["mean"] <= found["running_ap"]["high"]
    assert [event["sequence"] for event in found["events"]] == list(range(14, 0, -1))
    assert found["may_roll_back"] is True
    assert "/v1/feedback" in found["latency_ms"]


def test_learning_anew_gives_the_weights_of_auto_and_is_replayed(service):
    assert service.post("/v1/relearn", {"key": "early"}).json()["error"]["code"] == "no-judgments"
    events = [judged(number) for number in range(12)]
    for start in range(0, 12, 4):
        service.feedback(*events[start : start + 4])
    answer = service.post("/v1/relearn", {"key": "anew"})
    assert answer.json() == {"key": "anew", "sequence": 15, "version": 5}
    assert service.post("/v1/relearn", {"key": "anew"}).json() == answer.json(), "a retry changes nothing"
    assert service.post("/v1/relearn", {"key": "anew", "last": 5}).status_code == 409
    runs = {
        name: run_from_dict({event.query_id: dict(event.runs[name]) for event in events}, name=name)
        for name in RANKERS
    }
    qrels = qrels_from_dict({event.query_id: event.judgments for event in events})
    expected = AutoFuser().fit(align_runs(runs, qrels)).weights_
    served = service.http.get("/v1/weights").json()
    assert served["version"] == served["champion"] == 5
    assert list(served["weights"].values()) == pytest.approx(expected, abs=1e-12)
    newest = service.http.get("/v1/versions", params={"limit": 1}).json()["versions"][0]
    assert (newest["reason"], newest["promoted"]) == ("relearn", True)
    service.feedback(judged(20))
    assert service.http.get("/v1/weights").json()["version"] == 6, "the stream goes on from it"
    assert check_store(service.engine.store).faults == ()


def test_weights_learned_anew_that_lose_on_recent_queries_are_not_served(start):
    service = start(rules=Rules(influence=None, max_ap_loss=0.0, n_recent=8))
    service.feedback(*(poisoned(number) for number in range(40)))
    service.feedback(*(judged(number) for number in range(100, 108)))
    best = service.post("/v1/relearn", {"key": "newest", "last": 8}).json()["version"]
    worse = service.post("/v1/relearn", {"key": "all"}).json()["version"]
    versions = service.http.get("/v1/versions").json()
    assert worse == best == versions["champion"] == versions["latest"] - 1
    assert not versions["versions"][0]["promoted"]
    assert check_store(service.engine.store).faults == ()
