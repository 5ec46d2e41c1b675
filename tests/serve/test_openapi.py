"""Requests made from the service's own description: the answer is never a 5xx, and fits the description.

GENM_TESTS_SCHEMA_CASES says how many requests are made for each operation.
"""

import os
import random
import time
from collections import Counter
from contextlib import nullcontext, suppress

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from serve.cases import judged

from genm.serve.app import Application

CASES = int(os.environ.get("GENM_TESTS_SCHEMA_CASES", "8"))


@pytest.fixture
def first_beats(monkeypatch):
    """Let the stream, which never ends, end after its first event; gives the numbers of streams open by then."""
    beats, still_open = Application._beats, []

    async def first_beat(self, caller):
        stream = beats(self, caller)
        yield await anext(stream)
        await stream.aclose()
        still_open.append(self.n_streams)

    monkeypatch.setattr(Application, "_beats", first_beat)
    return still_open


@pytest.mark.filterwarnings("ignore")
def test_no_request_fails_the_service(start, first_beats):
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    service = start()
    service.feedback(*(judged(number) for number in range(5)))
    schema = schemathesis.openapi.from_asgi("/openapi.json", service.http.app)
    begun, asked = time.monotonic(), []
    modes = schemathesis.GenerationMode
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (modes.POSITIVE, modes.NEGATIVE):
            # where nothing that the operation takes can be wrong, there is no wrong request
            with suppress(Unsatisfiable) if mode == modes.NEGATIVE else nullcontext():
                run(operation, mode, asked)
    counts = dict(sorted(Counter(asked).items()))
    print(f"{len(asked):,} requests in {time.monotonic() - begun:.0f} s, by status: {counts}")
    assert max(counts) < 500
    assert counts[200] > CASES
    assert set(first_beats) == {0}  # every stream that was closed is counted as closed


def run(operation, mode, asked):
    """Make requests of one operation: such as the description allows, or such as it forbids."""
    limits = settings(max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))

    @limits
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case):
        answer = case.call(base_url="http://testserver")
        asked.append(answer.status_code)
        assert answer.status_code < 500, (case.method, case.path, case.body, answer.text)
        if answer.status_code == 405:
            return  # another method than the one described
        assert str(answer.status_code) in operation.definition.raw["responses"], answer.text
        if answer.status_code == 200 and operation.path == "/v1/stream":
            assert answer.text.startswith("event: overview\ndata: {")
            assert answer.text.endswith("}\n\n")
        if answer.status_code >= 400:
            assert set(answer.json()["error"]) == {"code", "place", "expected", "found", "advice", "message"}

    ask()


def mutated(draw: random.Random, text: bytes) -> bytes:
    """Return JSON with a few bytes changed, dropped or doubled."""
    data = bytearray(text)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data))
        kind = draw.random()
        if kind < 0.4:
            data[at] = draw.choice(b'{}[]",:0123456789eE+-.nulltrue\\\x00\xff ')
        elif kind < 0.7:
            del data[at : at + draw.randint(1, 8)]
        else:
            data[at:at] = data[max(0, at - 10) : at]
    return bytes(data)


@pytest.mark.parametrize("path", ["/v1/fuse", "/v1/feedback", "/v1/interleave", "/v1/evaluate"])
def test_broken_bodies_are_refused_and_not_more(service, path):
    event = judged(1)
    bodies = {
        "/v1/fuse": {"runs": event.runs, "top": 3, "explain": True},
        "/v1/feedback": {"events": [event]},
        "/v1/interleave": {"runs": event.runs, "top": 5},
        "/v1/evaluate": {"measures": "AP", "last": 3},
    }
    draw = random.Random(3)
    text = msgspec.json.encode(bodies[path])
    statuses = {service.post(path, mutated(draw, text)).status_code for _ in range(150)}
    assert statuses <= {200, 400, 404, 409, 422}
    assert 400 in statuses
