"""Bodies: a key that an object holds twice is refused with its place, however it is spelled and however deep."""

import json

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from serve.cases import RANKERS, judged

from genm.serve.bodies import Body, check_keys, count_keys
from genm.serve.messages import FeedbackRequest, FuseRequest, RequestError

ROWS = '[["d1", 2.0], ["d2", 1.0]]'
COLUMNS = '{"doc_ids": ["d1", "d2"], "scores": [2.0, 1.0]}'


def runs(form):
    return ", ".join(f'"{name}": {form}' for name in RANKERS)


def refused(service, path, content, place, key, method="POST"):
    answer = service.http.request(
        method, path, content=content.encode(), headers={"content-type": "application/json"}
    )
    fault = answer.json()["error"]
    assert (answer.status_code, fault["code"], fault["place"]) == (422, "input", place)
    assert (fault["expected"], fault["found"]) == ("each key once", f"{key!r} twice")
    assert fault["advice"]


@pytest.mark.parametrize("form", [ROWS, COLUMNS])
@pytest.mark.parametrize(
    ("change", "place", "key"),
    [
        ('{{"runs": {{{runs}}}, "top": 1, "top": 2}}', "body", "top"),
        ('{{"runs": {{{runs}}}, "runs": {{{runs}}}}}', "body", "runs"),
        ('{{"runs": {{{runs}, "dense": {form}}}}}', "body.runs", "dense"),
        ('{{"runs": {{{runs}, "d\\u0065nse": {form}}}}}', "body.runs", "dense"),
        ('{{"runs": {{{runs}}}, "weights": {{"bm25": 1, "dense": 2, "bm25": 4}}}}', "body.weights", "bm25"),
        ('{{"runs": {{{runs}}}, "query_id": "a:b:c", "explain": false, "explain": true}}', "body", "explain"),
        ('{{"t\\u006fp": 3, "runs": {{{runs}}}, "top": 1}}', "body", "top"),
    ],
)  # fmt: skip
def test_a_fuse_request_with_a_key_twice_is_refused(service, form, change, place, key):
    refused(service, "/v1/fuse", change.format(runs=runs(form), form=form), place, key)


def test_a_column_given_twice_is_refused(service):
    twice = '{"doc_ids": ["d1"], "scores": [1.0], "scores": [2.0]}'
    body = f'{{"runs": {{"bm25": {COLUMNS}, "dense": {twice}, "sparse": {COLUMNS}}}}}'
    refused(service, "/v1/fuse", body, "body.runs.dense", "scores")


def test_feedback_with_a_key_twice_is_refused_and_nothing_is_stored(service):
    good, bad = msgspec.json.encode(judged(1)).decode(), msgspec.json.encode(judged(2)).decode()
    worse = bad.replace('"judgments":{', '"judgments":{"d99":1,')
    refused(service, "/v1/feedback", f'{{"events": [{good}, {worse}]}}', "body.events[1].judgments", "d99")
    worse = bad[:-1] + ',"key":"another"}'
    refused(service, "/v1/feedback", f'{{"events": [{good}, {worse}]}}', "body.events[1]", "key")
    assert service.service.status.sequence == 2


@pytest.mark.parametrize(
    ("method", "path", "content", "key"),
    [
        ("PUT", "/v1/weights", '{"weights": {"bm25": 1, "dense": 1, "sparse": 1}, "key": "a", "key": "b"}', "key"),
        ("POST", "/v1/rollback", '{"version": 1, "key": "a", "version": 1}', "version"),
        ("POST", "/v1/relearn", '{"key": "a", "last": 5, "last": 6}', "last"),
        ("POST", "/v1/evaluate", '{"last": 5, "last": 6}', "last"),
        ("POST", "/v1/interleave", f'{{"top": 1, "runs": {{{runs(ROWS)}}}, "top": 2}}', "top"),
    ],
)
def test_every_other_body_is_looked_at_too(service, method, path, content, key):
    refused(service, path, content, "body", key, method)


def test_escapes_and_colons_alone_are_no_fault(service):
    lists = {name: [['http://a:1/\\"x', 2.0], ["é:", 1.0]] for name in RANKERS}
    body = json.dumps({"runs": lists, "query_id": ":", "top": None, "explain": False})
    assert "\\u00e9" in body
    assert service.post("/v1/fuse", body).status_code == 200
    escaped = body.replace('"bm25"', '"\\u0062m25"')
    assert service.post("/v1/fuse", escaped).json() == service.post("/v1/fuse", body).json()


field = st.none() | st.text(min_size=1, max_size=3)


@given(
    st.fixed_dictionaries(
        {"runs": st.dictionaries(st.sampled_from("abc"), st.sampled_from([json.loads(ROWS), json.loads(COLUMNS)]))},
        optional={
            "query_id": field,
            "group": field,
            "text": field,
            "rankers": st.none() | st.just(["a"]),
            "weights": st.none() | st.just({"a": 1.0, "b": 2.0}),
            "version": st.none() | st.just(3),
            "top": st.none() | st.just(3),
            "explain": st.booleans(),
            "columns": st.none() | st.just({"x": ":"}),
        },
    )
)
def test_the_number_of_keys_is_never_overstated(document):
    content = msgspec.json.encode(document)
    request = Body(FuseRequest).read(content)
    found = []
    json.loads(content, object_pairs_hook=lambda pairs: found.append(len(pairs)))
    given_defaults = sum(value is None or value is False for value in document.values())
    assert count_keys(request) == sum(found) - given_defaults


def test_keys_of_different_objects_do_not_meet():
    events = [judged(number) for number in range(50)]
    check_keys(msgspec.json.encode({"events": events}))
    assert len(Body(FeedbackRequest).read(msgspec.json.encode({"events": events})).events) == 50


def test_the_outermost_fault_is_named_first():
    with pytest.raises(RequestError, match=r"body: expected each key once; found 'b' twice"):
        check_keys(b'{"a": {"x": 1, "x": 2}, "b": 1, "b": 2}')
