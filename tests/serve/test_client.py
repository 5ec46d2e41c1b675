"""The clients against a live service, and what they do when it is away or busy."""

import asyncio
import random

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import httpx
from serve.cases import judged, lists

from genm import client as module
from genm.client import AsyncClient, Client, clicked_event, interleaved_event, judged_event
from genm.errors import ServiceError

RUNS = lists(random.Random(5))


@pytest.fixture
def no_waiting(monkeypatch):
    waits = []
    monkeypatch.setattr(module.time, "sleep", waits.append)
    return waits


def test_everything_through_the_client(live):
    service = live()
    event = judged(1)
    with Client(service.url) as client:
        fused = client.fuse(RUNS, top=3, explain=True)
        assert len(fused["doc_ids"]) == 3
        assert client.fuse({name: dict(rows) for name, rows in RUNS.items()}, top=3)["doc_ids"] == fused["doc_ids"]
        answer = client.feedback([judged_event("q1", event.runs, event.judgments, key="mine", client="user")])
        assert answer["events"][0]["outcome"] == "learned"
        shown = fused["doc_ids"]
        client.feedback([clicked_event("q2", RUNS, shown, shown[:1])])
        given = client.interleave(RUNS, versions=(1, 2), top=4)
        client.feedback([interleaved_event("q3", RUNS, given["id"], given["doc_ids"][:1])])
        assert sum(client.comparison(1, 2)[name] for name in ("wins", "losses", "ties")) == 1
        assert client.weights()["version"] == client.weights(3)["version"] == 3
        assert client.set_weights({"bm25": 1, "dense": 1, "sparse": 2})["version"] == 4
        assert client.rollback(1)["version"] == 1
        assert [one["version"] for one in client.versions(limit=2)["versions"]] == [4, 3]
        assert client.evaluate(versions=[1], measures="AP")["n_queries"] == 1


def test_everything_through_asyncio(live):
    service = live()

    async def use():
        async with AsyncClient(service.url) as client:
            answers = await asyncio.gather(
                *(client.feedback([judged_event(f"q{n}", judged(n).runs, judged(n).judgments)]) for n in range(5))
            )
            return answers, await client.weights()

    answers, weights = asyncio.run(use())
    assert sorted(answer["events"][0]["sequence"] for answer in answers) == [3, 4, 5, 6, 7]
    assert weights["sequence"] == 7


def test_a_token_is_sent(live, tokens):
    secret = tokens.add("one", ["fuse"])
    service = live(tokens=tokens)
    with Client(service.url, token=secret) as client:
        assert client.weights()["version"] == 1
        with pytest.raises(ServiceError, match="403: token: expected the role admin") as caught:
            client.rollback(1)
    assert caught.value.status == 403


def test_a_busy_service_is_asked_again_with_the_same_key(no_waiting):
    seen = []

    def answer(request):
        seen.append(request.content)
        if len(seen) == 1:
            return httpx.Response(503, headers={"retry-after": "2"}, json={"error": {"message": "no"}})
        if len(seen) == 2:
            raise httpx.ConnectError("away")
        return httpx.Response(200, json={"events": [], "champion": 1})

    client = Client("http://service")
    client._http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://service")
    client.feedback([judged_event("q", RUNS, {"d01": 1})])
    client.close()
    assert len(set(seen)) == 1
    assert len(seen) == 3
    assert 1.0 <= no_waiting[0] <= 2.0
    assert 0.1 <= no_waiting[1] <= 0.2


def test_a_refused_request_is_not_sent_again(no_waiting):
    seen = []

    def answer(request):
        seen.append(request)
        return httpx.Response(422, json={"error": {"message": "body.runs: expected other things"}})

    client = Client("http://service")
    client._http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://service")
    with pytest.raises(ServiceError, match=r"422: body\.runs: expected other things"):
        client.fuse(RUNS)
    client.close()
    assert len(seen) == 1


def test_a_service_that_stays_away_is_an_error(no_waiting):
    with Client("http://127.0.0.1:1", retries=2) as client, pytest.raises(ServiceError, match="Is it running"):
        client.weights()
    assert len(no_waiting) == 2
