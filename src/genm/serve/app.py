"""The HTTP application: routes, strict bodies, tokens, limits, and errors that say what to do."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from genm.errors import StoreError
from genm.serve.bodies import Body
from genm.serve.guards import RequestRate
from genm.serve.http import EXCEPTION_HANDLERS, Limits, SafeHeaders, answer_or_refuse, asset, read_body
from genm.serve.messages import (
    ActionAnswer,
    ComparisonAnswer,
    EvaluateAnswer,
    EvaluateRequest,
    FeedbackAnswer,
    FeedbackRequest,
    FuseAnswer,
    FuseRequest,
    InterleaveAnswer,
    InterleaveRequest,
    RelearnRequest,
    RequestError,
    RollbackRequest,
    VersionsAnswer,
    WeightsAnswer,
    WeightsRequest,
    invalid,
)
from genm.serve.openapi import Operation, describe
from genm.serve.security import Caller, Gate, Tokens
from genm.serve.service import Overview, Service

if TYPE_CHECKING:
    from genm.serve.telemetry import Telemetry

_log = logging.getLogger("genm.serve")
_encoder = msgspec.json.Encoder()

_LARGE = 256 * 1024
"""Bodies from this size on are worked on in a thread, so that other requests need not wait."""

_MOST_STREAMS = 100
_BEAT = 1.0
"""Seconds between two looks for something new to send to the page."""

PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Health(msgspec.Struct):
    """Whether the service is up."""

    status: str


T = TypeVar("T")
Handler = Callable[[Caller, Any, Request], Awaitable[Any]]


class Application:
    """Binds the service's operations to paths."""

    def __init__(self, service: Service, gate: Gate, limits: Limits, telemetry: "Telemetry | None" = None) -> None:
        self.service, self.gate, self.limits, self.telemetry = service, gate, limits, telemetry
        self.rate = RequestRate(limits.rate)
        self.n_streams = 0
        self._overviews: dict[bool, tuple[float, bytes]] = {}
        self.stopping = asyncio.Event()
        self.table = self._table()
        self.description = _encoder.encode(describe(operation for operation, _ in self.table))

    def _table(self) -> list[tuple[Operation, Handler]]:
        version = ("version", PositiveInt, "The version; the champion if it is not given.")
        page = (("limit", Limit, "How many."), ("before", PositiveInt, "Only versions before this one."))
        pair = (
            ("first", PositiveInt, "The champion if it is not given."),
            ("second", PositiveInt, "The newest version if it is not given."),
        )
        found: list[tuple[Handler, str, str, str, Any, dict[str, Any]]] = [
            (self._fuse, "POST", "/v1/fuse", "Fuse one query's lists.", FuseAnswer,
             {"body": FuseRequest, "role": "fuse"}),
            (self._feedback, "POST", "/v1/feedback", "Learn from judgments or clicks.", FeedbackAnswer,
             {"body": FeedbackRequest, "role": "feedback"}),
            (self._weights, "GET", "/v1/weights", "The weights of a version.", WeightsAnswer,
             {"parameters": (version,)}),
            (self._set_weights, "PUT", "/v1/weights", "Set the weights.", ActionAnswer,
             {"body": WeightsRequest, "role": "admin"}),
            (self._versions, "GET", "/v1/versions", "Versions, the newest first.", VersionsAnswer,
             {"parameters": page}),
            (self._roll_back, "POST", "/v1/rollback", "Go back to a version.", ActionAnswer,
             {"body": RollbackRequest, "role": "admin"}),
            (self._relearn, "POST", "/v1/relearn", "Learn from the stored judgments anew.", ActionAnswer,
             {"body": RelearnRequest, "role": "admin"}),
            (self._evaluate, "POST", "/v1/evaluate", "Measure weights on the stored judgments.", EvaluateAnswer,
             {"body": EvaluateRequest}),
            (self._interleave, "POST", "/v1/interleave", "Interleave the lists of two versions.", InterleaveAnswer,
             {"body": InterleaveRequest, "role": "fuse"}),
            (self._comparison, "GET", "/v1/interleave", "How two versions stand.", ComparisonAnswer,
             {"parameters": pair}),
            (self._overview, "GET", "/v1/overview", "Everything that the page shows.", Overview, {}),
            (self._stream, "GET", "/v1/stream", "The same as server-sent events.", "text/event-stream", {}),
            (self._metrics, "GET", "/metrics", "Figures for Prometheus.", "text/plain", {}),
            (self._health, "GET", "/healthz", "Whether the process is up.", Health, {"is_open": True}),
            (self._ready, "GET", "/readyz", "Whether requests can be served.", Health, {"is_open": True}),
        ]  # fmt: skip
        return [
            (Operation(path, method, summary, answer, **others), handler)
            for handler, method, path, summary, answer, others in found
        ]

    def build(self) -> ASGIApp:
        """Return the ASGI application."""
        by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
        for operation, handler in self.table:
            by_path.setdefault(operation.path, {})[operation.method] = self._endpoint(operation, handler)
        routes = [Route(path, _by_method(methods), methods=list(methods)) for path, methods in by_path.items()]
        routes.append(Route("/openapi.json", self._openapi, methods=["GET"]))
        for path, name, kind in (
            ("/", "page.html", "text/html"),
            ("/page.css", "page.css", "text/css"),
            ("/page.js", "page.js", "text/javascript"),
        ):
            routes.append(Route(path, asset(name, kind), methods=["GET"]))
        app = Starlette(
            routes=routes,
            exception_handlers=EXCEPTION_HANDLERS,
            lifespan=self._lifespan,
        )
        return SafeHeaders(app)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self.stopping.set()

    def _endpoint(self, operation: Operation, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        body = None if operation.body is None else Body(operation.body)
        known = {name for name, _, _ in operation.parameters}

        async def respond(request: Request) -> Response:
            begun = time.perf_counter()
            status = 500
            try:
                response = await answer_or_refuse(lambda: self._answer(operation, body, known, handler, request))
                status = response.status_code
                return response
            finally:
                self.service.metrics.request(operation.path, status, time.perf_counter() - begun)

        telemetry = self.telemetry
        if telemetry is None:
            return respond

        async def respond_in_a_span(request: Request) -> Response:
            with telemetry.request(operation.method, operation.path, request.headers) as span:
                response = await respond(request)
                if span is not None:
                    telemetry.note_status(span, response.status_code)
                return response

        return respond_in_a_span

    def _step(self, name: str, **attributes: int) -> contextlib.AbstractContextManager[object]:
        """Return the span of a part of a request, where spans are wanted."""
        return contextlib.nullcontext() if self.telemetry is None else self.telemetry.step(name, attributes)

    async def _answer(
        self, operation: Operation, body: Body | None, known: set[str], handler: Handler, request: Request
    ) -> Any:
        caller = Caller("", frozenset(), trusted=False)
        if not operation.is_open:
            if self.gate.tokens is not None:
                self.gate.tokens.refresh()
            caller = self.gate.caller(request.headers, operation.role)
            self._check_rate(caller)
        strange = next((name for name in request.query_params if name not in known), None)
        if strange is not None:
            expected = f"only {', '.join(sorted(known))}" if known else "none"
            raise invalid("query", expected, f"{strange[:60]!r}", "Check the address.")
        content = None if body is None else await read_body(request, self.limits)
        return await handler(caller, content if body is None else (body, content), request)

    def _check_rate(self, caller: Caller) -> None:
        wait = self.rate.wait(caller.name, time.monotonic())
        if wait > 0.0:
            raise RequestError(
                429, "rate", "client", f"at most {self.rate.rate:g} requests a second", "more",
                f"Send it again in {max(1, round(wait))} s.",
            )  # fmt: skip

    async def _fuse(self, _: Caller, given: tuple[Body, bytes], __: Request) -> bytes:
        with self._step("genm.fuse", **{"genm.body_bytes": len(given[1])}):
            return await _work(given, lambda body, content: _encoder.encode(self.service.fuse_body(body, content)))

    async def _feedback(self, caller: Caller, given: tuple[Body, bytes], _: Request) -> FeedbackAnswer:
        with self._step("genm.feedback.prepare", **{"genm.body_bytes": len(given[1])}):
            work = await _work(
                given, lambda body, content: self.service.prepare_feedback(caller, body.read(content))
            )
        with self._step("genm.feedback.store", **{"genm.events": len(work.lessons)}):
            return await self.service.feedback(work)

    async def _weights(self, _: Caller, __: None, request: Request) -> WeightsAnswer:
        version = _number(request, "version", PositiveInt, None)
        return await asyncio.to_thread(self.service.weights, version)

    async def _set_weights(self, caller: Caller, given: tuple[Body, bytes], _: Request) -> ActionAnswer:
        return await self.service.set_weights(caller, given[0].read(given[1]))

    async def _versions(self, _: Caller, __: None, request: Request) -> VersionsAnswer:
        limit, before = _number(request, "limit", Limit, 50), _number(request, "before", PositiveInt, None)
        return await asyncio.to_thread(self.service.versions, limit or 50, before)

    async def _roll_back(self, caller: Caller, given: tuple[Body, bytes], _: Request) -> ActionAnswer:
        return await self.service.roll_back(caller, given[0].read(given[1]))

    async def _relearn(self, caller: Caller, given: tuple[Body, bytes], _: Request) -> ActionAnswer:
        return await self.service.relearn(caller, given[0].read(given[1]))

    async def _evaluate(self, _: Caller, given: tuple[Body, bytes], __: Request) -> EvaluateAnswer:
        body = given[0].read(given[1])
        return await asyncio.to_thread(self.service.evaluate, body)

    async def _interleave(self, _: Caller, given: tuple[Body, bytes], __: Request) -> InterleaveAnswer:
        return await _work(given, lambda body, content: self.service.interleave(body.read(content)))

    async def _comparison(self, _: Caller, __: None, request: Request) -> ComparisonAnswer:
        first, second = (_number(request, name, PositiveInt, None) for name in ("first", "second"))
        return await asyncio.to_thread(self.service.comparison, first, second)

    async def _overview(self, caller: Caller, _: None, __: Request) -> Overview:
        return await asyncio.to_thread(self.service.overview, caller)

    async def _stream(self, caller: Caller, _: None, __: Request) -> Response:
        if self.n_streams >= _MOST_STREAMS:
            raise RequestError(
                429, "streams", "client", f"at most {_MOST_STREAMS} open streams", "more", "Close a page."
            )
        return StreamingResponse(self._beats(caller), media_type="text/event-stream")

    async def _beats(self, caller: Caller) -> AsyncIterator[bytes]:
        self.n_streams += 1
        try:
            while not self.stopping.is_set():
                yield b"event: overview\ndata: " + await self._shared_overview(caller) + b"\n\n"
                await asyncio.sleep(_BEAT)
        finally:
            self.n_streams -= 1

    async def _shared_overview(self, caller: Caller) -> bytes:
        """Return what the page shows, made once a beat for all pages of callers who may do the same."""
        kind = caller.may("admin")
        made_at, overview = self._overviews.get(kind, (-_BEAT, b""))
        if time.monotonic() - made_at >= 0.5 * _BEAT:
            overview = await asyncio.to_thread(lambda: _encoder.encode(self.service.overview(caller)))
            self._overviews[kind] = time.monotonic(), overview
        return overview

    async def _metrics(self, _: Caller, __: None, ___: Request) -> Response:
        return Response(self.service.metrics_text(), media_type="text/plain; version=0.0.4")

    async def _health(self, _: Caller, __: None, ___: Request) -> Health:
        return Health("up")

    async def _ready(self, _: Caller, __: None, ___: Request) -> Health:
        if self.service.engine.failure is not None or not self.service.engine.is_running:
            raise StoreError(self.service.engine.failure or "the writer has stopped.")
        return Health("ready")

    async def _openapi(self, _: Request) -> Response:
        return Response(self.description, media_type="application/json")


async def _work(given: tuple[Body, bytes], function: Callable[[Body, bytes], T]) -> T:
    """Decode and work on a body: at once if it is small, else in a thread."""
    if len(given[1]) < _LARGE:
        return function(*given)
    return await asyncio.to_thread(function, *given)


def _number(request: Request, name: str, kind: Any, default: int | None) -> int | None:
    """Return a number of the query."""
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        return int(msgspec.convert(text, kind, strict=False))
    except msgspec.ValidationError as error:
        raise invalid(f"query.{name}", "a positive integer", f"{text[:40]!r}", f"{error}.") from None


def _by_method(
    methods: dict[str, Callable[[Request], Awaitable[Response]]],
) -> Callable[[Request], Awaitable[Response]]:
    if len(methods) == 1:
        return next(iter(methods.values()))

    async def respond(request: Request) -> Response:
        return await methods["GET" if request.method == "HEAD" else request.method](request)

    return respond


def create_app(
    service: Service,
    *,
    tokens: Tokens | None,
    hosts: tuple[str, ...],
    limits: Limits,
    telemetry: "Telemetry | None" = None,
) -> ASGIApp:
    """Return the ASGI application over a service whose engine has started; spans go to `telemetry`, if given."""
    return Application(service, Gate(tokens, hosts), limits, telemetry).build()
