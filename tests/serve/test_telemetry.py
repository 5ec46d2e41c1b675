"""Spans are made where a collector is named, go on from the caller's trace, and hold nothing of the input."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra telemetry")

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from serve.cases import judged

from genm.errors import InputError, MissingExtraError
from genm.serve.server import Settings, serve
from genm.serve.telemetry import Telemetry, telemetry_to

EVENT = judged(1)
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans(start):
    """A service with spans, and what it has exported so far, by name."""
    exporter = InMemorySpanExporter()
    telemetry = Telemetry(SimpleSpanProcessor(exporter))
    service = start(telemetry=telemetry)

    def made():
        found = {span.name: span for span in exporter.get_finished_spans()}
        exporter.clear()
        return found

    yield service, made
    telemetry.close()


def test_fusing_and_feedback_have_spans_with_their_parts(spans):
    service, made = spans
    body = {"runs": EVENT.runs}
    traced = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    assert service.post("/v1/fuse", body, headers=traced).status_code == 200
    found = made()
    assert set(found) == {"POST /v1/fuse", "genm.fuse"}
    whole, part = found["POST /v1/fuse"], found["genm.fuse"]
    assert f"{whole.context.trace_id:032x}" == TRACE
    assert f"{whole.parent.span_id:016x}" == PARENT
    assert part.parent.span_id == whole.context.span_id
    assert dict(whole.attributes) == {
        "http.request.method": "POST", "http.route": "/v1/fuse", "http.response.status_code": 200,
    }  # fmt: skip
    assert dict(part.attributes)["genm.body_bytes"] > 100
    assert service.feedback(EVENT, judged(2)).status_code == 200
    found = made()
    assert set(found) == {"POST /v1/feedback", "genm.feedback.prepare", "genm.feedback.store"}
    assert dict(found["genm.feedback.store"].attributes) == {"genm.events": 2}
    assert found["POST /v1/feedback"].parent is None  # no trace came with it
    assert whole.resource.attributes["service.name"] == "genm"


def test_large_bodies_are_worked_on_in_a_thread_within_their_span(spans, monkeypatch):
    monkeypatch.setattr("genm.serve.app._LARGE", 1)
    service, made = spans
    assert service.post("/v1/fuse", {"runs": EVENT.runs}).status_code == 200
    found = made()
    assert found["genm.fuse"].parent.span_id == found["POST /v1/fuse"].context.span_id


def test_a_refused_request_is_no_error_of_ours_and_its_span_quotes_nothing(spans):
    service, made = spans
    twice = {"runs": {name: [["secret-doc", 1.0], ["secret-doc", 2.0]] for name in EVENT.runs}}
    assert service.post("/v1/fuse", twice).status_code == 422
    found = made()
    whole = found["POST /v1/fuse"]
    assert whole.attributes["http.response.status_code"] == 422
    assert whole.status.status_code is StatusCode.UNSET
    for span in found.values():
        assert span.events == ()
        assert "secret-doc" not in span.to_json()


def test_a_failing_store_marks_the_span(spans, monkeypatch):
    monkeypatch.setattr("genm.serve.service._PATIENCE", 0.1)
    service, made = spans
    service.engine.stop()
    assert service.feedback(EVENT).status_code == 503
    assert made()["POST /v1/feedback"].status.status_code is StatusCode.ERROR


def test_probes_figures_and_the_page_have_no_spans(spans):
    service, made = spans
    for path in ("/healthz", "/readyz", "/metrics", "/"):
        service.http.get(path)
    assert made() == {}
    service.http.get("/v1/weights")
    assert set(made()) == {"GET /v1/weights"}


def test_without_telemetry_no_span_is_made(service, monkeypatch):
    monkeypatch.setattr(Telemetry, "request", None)
    assert service.post("/v1/fuse", {"runs": EVENT.runs}).status_code == 200


def test_spans_reach_a_collector_by_otlp_over_http():
    got = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    telemetry = telemetry_to(f"http://127.0.0.1:{server.server_port}/")
    with telemetry.request("POST", "/v1/fuse", {}):
        pass
    telemetry.close()  # sends what is left
    server.shutdown()
    server.server_close()
    thread.join()
    ((path, body),) = got
    assert path == "/v1/traces"
    assert b"POST /v1/fuse" in body


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "file:///tmp/x"])
def test_an_address_that_is_none_is_refused_before_anything_starts(url, tmp_path):
    with pytest.raises(InputError, match="expected the address of a collector"):
        serve(Settings(store=str(tmp_path / "store.sqlite"), telemetry=url))
    assert list(tmp_path.iterdir()) == []


def test_the_extra_is_named_where_it_is_missing(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "genm.serve.telemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtraError, match=r"pip install \'genm\[serve,telemetry\]\'"):
        serve(Settings(store=str(tmp_path / "store.sqlite"), telemetry="http://127.0.0.1:4318"))
