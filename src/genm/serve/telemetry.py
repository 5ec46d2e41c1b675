"""Spans of requests for OpenTelemetry. None are made unless `genm serve --telemetry` names a collector.

A span holds the route, the status, and how many bytes or events there were: no ids, texts, scores or tokens. Errors
of refused requests quote the input, so spans do not record exceptions. Needs the extra `telemetry`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from genm.errors import InputError
from genm.version import __version__

EXPORT_SECONDS = 5.0
"""A collector that takes longer to answer loses the spans; no request waits for it."""
QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/v1/stream"})
"""Routes without spans: probes, and a stream that may last for days."""


class Telemetry:
    """Makes spans of requests and hands them to a processor."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "genm", "service.version": __version__}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("genm.serve", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def request(self, method: str, route: str, headers: Mapping[str, str]) -> AbstractContextManager[Span | None]:
        """Return the span of a request; the caller's trace goes on in it if a `traceparent` came."""
        if route in QUIET:
            return nullcontext()
        return self._tracer.start_as_current_span(
            f"{method} {route}",
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
            record_exception=False,
        )

    def step(self, name: str, attributes: Mapping[str, int]) -> AbstractContextManager[Span]:
        """Return the span of one part of the request that is under way."""
        return self._tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        )

    def note_status(self, span: Span, status: int) -> None:
        """Note the status of the answer; one of the service's own failures marks the span."""
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))

    def close(self) -> None:
        """Send what is left, and stop."""
        self._provider.shutdown()


def telemetry_to(url: str) -> Telemetry:
    """Return what sends spans to the OpenTelemetry collector at `url`, by OTLP over HTTP."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"--telemetry {url}: expected the address of a collector that takes OTLP over HTTP. "
            "Give one such as http://127.0.0.1:4318"
        )
    endpoint = f"{url.rstrip('/')}/v1/traces"
    return Telemetry(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)))
