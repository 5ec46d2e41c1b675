"""What every application of ours does with HTTP: limits of bodies, refusals, files of pages, security headers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genm.errors import GenmError, StoreError
from genm.serve.messages import RequestError, invalid
from genm.serve.security import ANSWER_POLICY, PAGE_POLICY, SECURITY_HEADERS

_log = logging.getLogger("genm.serve")
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may ask of the service."""

    max_body: int = 16 * 1024 * 1024
    """Bytes."""
    body_seconds: float = 10.0
    """The whole body must be there within this time."""
    rate: float = 2000.0
    """Requests per second of one client; 0 is without limit."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body, unless it is too large, too slow or of another kind."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(
            415, "media", "header Content-Type", "application/json", f"{kind[:60]!r}", "Send JSON and say so."
        )
    packed = request.headers.get("content-encoding", "identity").lower()
    if packed != "identity":
        raise RequestError(
            415, "media", "header Content-Encoding", "none", f"{packed[:60]!r}", "Send the body unpacked."
        )
    limit = limits.max_body
    announced = request.headers.get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced) > limit:
        raise _too_large(limit, f"{int(announced):,}")
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(limit, "more")
                parts.append(part)
    except TimeoutError:
        raise RequestError(
            408, "slow", "body", f"all of it within {limits.body_seconds:g} s", f"{size:,} bytes by then",
            "Send it faster, or in parts.",
        ) from None  # fmt: skip
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def answer_or_refuse(work: Callable[[], Awaitable[Any]]) -> Response:
    """Return the answer of a piece of work, or the refusal that its error stands for."""
    try:
        answer = await work()
        return answer if isinstance(answer, Response) else json_response(answer)
    except RequestError as error:
        return refusal_response(error)
    except StoreError as error:
        return refusal_response(
            RequestError(503, "store", "the store", "that it can be written and read", str(error),
                         "Nothing was acknowledged. Send the request again, with the same key.")
        )  # fmt: skip
    except GenmError as error:
        return refusal_response(invalid("body", "usable input", str(error), "Correct it."))
    except ClientDisconnect:
        return Response(status_code=400)


def json_response(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON; bytes are JSON already."""
    content = answer if isinstance(answer, bytes) else _encoder.encode(answer)
    return Response(content, status, media_type="application/json")


def refusal_response(error: RequestError) -> Response:
    """Return the answer to a refused request."""
    response = json_response(error.answer(), error.status)
    if error.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    if error.status in (429, 503):
        response.headers["retry-after"] = "1"
    if error.status in (408, 413, 415):
        response.headers["connection"] = "close"  # the rest of the body is not read
    return response


def _too_large(limit: int, found: str) -> RequestError:
    return RequestError(
        413, "size", "body", f"at most {limit:,} bytes", found, "Send fewer documents or events at a time."
    )


def asset(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers with a file of the pages."""
    content = files("genm.serve").joinpath("assets", name).read_bytes()
    if name == "page.css":
        content = files("genm").joinpath("templates", "colours.css").read_bytes() + content

    async def respond(_: Request) -> Response:
        return Response(
            content, media_type=f"{kind}; charset=utf-8", headers={"content-security-policy": PAGE_POLICY}
        )

    return respond


async def _not_routed(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    code, expected = ("method", "another method") if status == 405 else ("path", "a path of /openapi.json")
    found = f"{request.method} {request.url.path[:80]!r}"
    response = refusal_response(RequestError(status, code, "address", expected, found, "Check the address."))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal_response(
        RequestError(500, "internal", "the service", "no error of our own", type(error).__name__, "Report it.")
    )


EXCEPTION_HANDLERS: Mapping[Any, Any] = {HTTPException: _not_routed, Exception: _failed}
"""For Starlette: what is not found, and what fails by a fault of ours."""


class SafeHeaders:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does, with the headers on top."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append((b"content-security-policy", ANSWER_POLICY.encode()))
                message["headers"] = [*headers, *SECURITY_HEADERS]
            await send(message)

        await self.app(scope, receive, send_with_headers)
