"""The page on which people judge: one document at a time, by keyboard, and nothing is told before it is on disk.

Scores and rankers are never sent to the page, so they cannot influence a judge.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from genm.judge.agreement import agreement_of
from genm.judge.session import Pair, Progress, Session
from genm.judge.store import judgments_as
from genm.serve.bodies import Body
from genm.serve.http import EXCEPTION_HANDLERS, Limits, SafeHeaders, answer_or_refuse, asset, read_body
from genm.serve.messages import RequestError, invalid
from genm.serve.security import Caller, Gate, Tokens
from genm.serve.server import listen, tokens_for

LABELS = ("not relevant", "related", "relevant", "perfect")
"""What the grades mean, on the page and in the rubric."""
MOST_TEXT = 20_000
"""Characters of a document that the page shows; the rest is cut, and the page says so."""

Key = Annotated[str, msgspec.Meta(min_length=8, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class OpinionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What a judge says about a pair."""

    key: Key
    query: str
    document: str
    action: Literal["grade", "unsure", "skip", "decide"]
    grade: Literal[0, 1, 2, 3] | None = None
    note: Annotated[str, msgspec.Meta(max_length=4000)] = ""
    judge: Name | None = None
    """Who says it; with tokens, the token's name counts instead."""


class UndoRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Take the last opinion back."""

    key: Key
    judge: Name | None = None


class Shown(msgspec.Struct):
    """A pair as the page shows it."""

    query_id: str
    query: str
    document_id: str
    text: str
    n_cut: int
    """Characters that were left out at the end."""


class Disputed(msgspec.Struct):
    """A pair on which people disagree."""

    shown: Shown
    grades: dict[str, int]


class Answer(msgspec.Struct):
    """What the page needs after every step."""

    judge: str
    next: Shown | None
    progress: Progress
    labels: tuple[str, ...] = LABELS


class JudgingApplication:
    """Binds a session to paths."""

    def __init__(self, session: Session, gate: Gate, limits: Limits) -> None:
        self.session, self.gate, self.limits = session, gate, limits

    def build(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/v1/next", self._handled(self._next), methods=["GET"]),
            Route("/v1/opinions", self._handled(self._add, OpinionRequest), methods=["POST"]),
            Route("/v1/undo", self._handled(self._undo, UndoRequest), methods=["POST"]),
            Route("/v1/disputed", self._handled(self._disputed), methods=["GET"]),
            Route("/v1/judgments", self._handled(self._judgments), methods=["GET"]),
        ]
        for path, name, kind in (
            ("/", "judge.html", "text/html"),
            ("/page.css", "page.css", "text/css"),
            ("/judge.css", "judge.css", "text/css"),
            ("/judge.js", "judge.js", "text/javascript"),
        ):
            routes.append(Route(path, asset(name, kind), methods=["GET"]))
        return SafeHeaders(Starlette(routes=routes, exception_handlers=dict(EXCEPTION_HANDLERS)))

    def _handled(
        self, handler: Callable[[str, Any, Request], Any], kind: type | None = None
    ) -> Callable[[Request], Awaitable[Response]]:
        body = None if kind is None else Body(kind)

        async def work(request: Request) -> Any:
            if self.gate.tokens is not None:
                self.gate.tokens.refresh()
            caller = self.gate.caller(request.headers, "feedback")
            given = None if body is None else body.read(await read_body(request, self.limits))
            named = request.query_params.get("judge") if given is None else given.judge
            judge = self._judge(caller, named)
            return await asyncio.to_thread(handler, judge, given, request)

        async def respond(request: Request) -> Response:
            return await answer_or_refuse(lambda: work(request))

        return respond

    def _judge(self, caller: Caller, named: str | None) -> str:
        """Return who judges: the owner of the token; without tokens, the name that the page gives."""
        if self.gate.tokens is not None:
            return caller.name
        name = caller.name if named is None else named
        if not name.strip() or len(name) > 64 or not name.isprintable():
            raise invalid(
                "judge", "a name of 1 to 64 printable characters", f"{name[:40]!r}", "Choose another name."
            )
        return name

    def _answer(self, judge: str, pair: Pair | None) -> Answer:
        return Answer(judge, None if pair is None else self._shown(pair), self.session.progress(judge))

    def _shown(self, pair: Pair) -> Shown:
        query, document = pair
        text = self.session.documents[document]
        return Shown(query, self.session.queries[query], document, text[:MOST_TEXT], max(0, len(text) - MOST_TEXT))

    def _next(self, judge: str, _: None, __: Request) -> Answer:
        return self._answer(judge, self.session.next(judge))

    def _add(self, judge: str, given: OpinionRequest, _: Request) -> Answer:
        pair = given.query, given.document
        self.session.add(judge, pair, given.action, given.grade, key=given.key, note=given.note)
        return self._answer(judge, self.session.next(judge))

    def _undo(self, judge: str, given: UndoRequest, _: Request) -> Answer:
        pair = self.session.undo(judge, key=given.key)
        if pair is None:
            raise RequestError(409, "undo", "judge", "an opinion to take back", "none", "Judge something first.")
        return self._answer(judge, pair)

    def _disputed(self, _: str, __: None, ___: Request) -> list[Disputed]:
        known = self.session.queries, self.session.documents
        return [
            Disputed(self._shown((one.query, one.document)), dict(one.grades))
            for one in agreement_of(self.session.store.opinions()).disagreements
            if not one.is_decided and one.query in known[0] and one.document in known[1]
        ][:200]

    def _judgments(self, _: str, __: None, request: Request) -> Response:
        form = request.query_params.get("format", "trec")
        if form not in MEDIA:
            raise invalid("query.format", f"one of {', '.join(MEDIA)}", f"{form[:20]!r}", "Check the address.")
        content, kind = judgments_as(self.session.store, form, level=self.session.level), MEDIA[form]
        disposition = f'attachment; filename="judgments.{form if form != "trec" else "qrels"}"'
        return Response(content, media_type=kind, headers={"content-disposition": disposition})


MEDIA = {"trec": "text/plain; charset=utf-8", "csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}


def judging_app(session: Session, *, tokens: Tokens | None, hosts: tuple[str, ...]) -> ASGIApp:
    """Return the ASGI application of a session that has started."""
    return JudgingApplication(session, Gate(tokens, hosts), Limits(max_body=64 * 1024)).build()


def serve_judging(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tokens: str | None = None,
    certificate: str | None = None,
    private_key: str | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until a signal stops it; `ready` is called with its address."""
    known = tokens_for(host, tokens)
    hosts = tuple(dict.fromkeys(("127.0.0.1", "localhost", "::1", host)))
    session.start()
    try:
        listen(
            judging_app(session, tokens=known, hosts=hosts),
            host,
            port,
            certificate=certificate,
            private_key=private_key,
            ready=ready,
        )
    finally:
        session.stop()
