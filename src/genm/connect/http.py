"""JSON over HTTP for engines without a client of their own, and what a status means for every engine."""

import email.utils
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from genm.connect.access import Access, load_library
from genm.errors import EngineError

RETRIED = frozenset((408, 425, 429, 502, 503, 504))
"""Statuses after which the same request may succeed."""
FATAL = frozenset((401, 403, 404, 405, 407))
"""Statuses that every other request would get too: a wrong password, a wrong index."""
MOST_BYTES = 512 * 2**20
_ADVICE = {
    401: "Check the credentials.",
    403: "Check what the user may read.",
    404: "Check address and index.",
    407: "Check the proxy and its credentials.",
    413: "Ask for a smaller page.",
    429: "Lower rate or concurrency.",
}


def status_fault(name: str, status: int, body: str, headers: Mapping[str, str]) -> EngineError:
    """Return the error for an HTTP status: whether to try again, when, and what the engine says."""
    said = error_text(body)
    advice = _ADVICE.get(status, "See the template." if status == 400 else "See the engine's log.")
    return EngineError(
        f"{name}: HTTP status {status}{f': {one_sentence(said)}' if said else ''}. {advice}",
        retry=status in RETRIED,
        after=retry_after(headers.get("retry-after", "")),
        fatal=status in FATAL,
    )


def retry_after(value: str) -> float:
    """Return the seconds of a Retry-After header: a number, or a date; 0 if there is none."""
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        when = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def one_sentence(text: str) -> str:
    """Return what an engine says on one line, short, without the full stop at its end."""
    return " ".join(text.split())[:300].rstrip(". ")


def error_text(body: str) -> str:
    """Return what an error's body says, on one line and short; a page of HTML says nothing."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "" if "<" in body[:200] else " ".join(body.split())[:200]
    for path in (
        ("error", "reason"),
        ("error", "msg"),
        ("error", "message"),
        ("error",),
        ("message",),
        ("detail",),
    ):
        value = inside(found, *path)
        if isinstance(value, str):
            return " ".join(value.split())[:300]
    return " ".join(body.split())[:200]


def inside(value: Any, *path: str | int) -> Any:
    """Return what lies at a path of keys and positions inside JSON; None where the answer has another shape."""
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def parsed_json(name: str, body: bytes, content_type: str) -> dict[str, Any]:
    """Return the JSON object of an answer; a page of HTML, as proxies and log-in pages send, is an error."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        kind = "a page of HTML" if b"<html" in body[:2000].lower() or "html" in content_type else "something else"
        raise EngineError(
            f"{name}: expected JSON; found {kind} ({content_type or 'no content type'}, {len(body):,} bytes). "
            "Is this "
            "the engine's address, or that of a proxy or a log-in page?"
        ) from None
    if not isinstance(found, dict):
        raise EngineError(
            f"{name}: expected a JSON object; found {type(found).__name__}. Is this the engine's address?"
        )
    return found


class JsonClient:
    """Sends JSON and returns JSON; every fault becomes an EngineError that says whether to try again."""

    def __init__(self, name: str, extra: str, access: Access) -> None:
        self.name, self.access = name, access
        self._httpx = load_library("httpx", f"{name} over HTTP", extra)
        headers = {"accept": "application/json", **access.headers}
        if access.token or access.api_key:
            headers["authorization"] = f"Bearer {access.token or access.api_key}"
        url = access.url()
        self._http = self._httpx.Client(
            base_url=url,
            headers=headers,
            auth=(access.user, access.password or "") if access.user else None,
            timeout=access.timeout,
            verify=access.ssl_context() if url.startswith("https:") else True,
            proxy=access.proxy,
            trust_env=False,  # nothing is guessed: no proxy and no password from the surroundings
            follow_redirects=False,
        )

    def send(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request and return the answer's JSON object."""
        deadline = time.monotonic() + 10 * self.access.timeout
        content = bytearray()
        try:
            with self._http.stream(method, path, json=body, params=params) as response:
                for part in response.iter_bytes():
                    content += part
                    if len(content) > MOST_BYTES or time.monotonic() > deadline:
                        raise EngineError(
                            f"{self.name}: expected an answer of at most {MOST_BYTES:,} bytes within "
                            f"{10 * self.access.timeout:g} s; found a longer one."
                        )
        except self._httpx.TimeoutException:
            raise EngineError(
                f"{self.name}: expected an answer within {self.access.timeout:g} s; found none. Raise the timeout.",
                retry=True,
            ) from None
        except self._httpx.TransportError as error:
            raise self._unreachable(error) from None
        if response.is_redirect:
            raise redirected(self.name)
        if not response.is_success:
            text = self.access.redacted(content.decode("utf-8", "replace"))
            raise status_fault(self.name, response.status_code, text, response.headers)
        return parsed_json(self.name, bytes(content), response.headers.get("content-type", ""))

    def _unreachable(self, error: Exception) -> EngineError:
        return unreachable(self.name, self.access.redacted(str(error) or type(error).__name__))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def redirected(name: str) -> EngineError:
    """Return the error for a redirection, which is not followed: the password must not go elsewhere."""
    return EngineError(
        f"{name}: expected an answer; found a redirection to another address. Give that address, if you trust it.",
        fatal=True,
    )


def unreachable(name: str, said: str) -> EngineError:
    """Return the error for an engine that gave no answer; a certificate that fails its check is final."""
    if "CERTIFICATE_VERIFY_FAILED" in said.upper() or "certificate verify failed" in said:
        return EngineError(
            f"{name}: the server's certificate cannot be verified: {said}. Name the certificate authority: "
            "tls.ca or "
            "--ca FILE.",
            fatal=True,
        )
    if "redirect" in said.lower():
        return redirected(name)
    return EngineError(
        f"{name}: expected an answer; {said.rstrip('.')}. Is it running at this address?", retry=True
    )
