"""The client of `genm serve`: sync and async, with retries that are safe because every change has a key.

    with Client("http://127.0.0.1:8000") as client:
        fused = client.fuse({"bm25": {"d1": 12.3, "d2": 9.1}, "dense": {"d2": 0.8}}, top=10)
        client.feedback([judged_event("q1", runs, {"d2": 1})])

Answers are the JSON objects that the service's OpenAPI description names.
"""

import asyncio
import hashlib
import itertools
import random
import ssl
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import httpx

from genm.errors import ServiceError
from genm.records import Qrels, Run

Runs: TypeAlias = Mapping[str, Mapping[str, float] | Sequence[tuple[str, float]]]
"""Each ranker's list: scores by document, or pairs."""

_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))
_SLOWEST = 10.0


R = TypeVar("R")


class Call(NamedTuple):
    """One request; sent again, it changes nothing more."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, int] | None = None


def new_key() -> str:
    """Return a key for an event that has none of its own."""
    return str(uuid.uuid4())


def judged_event(
    query_id: str, runs: Runs, judgments: Mapping[str, int], *, key: str | None = None, client: str | None = None
) -> dict[str, Any]:
    """Return an event with judgments; without a key it gets one of its own."""
    return _event(query_id, runs, key, client, judgments=dict(judgments))


def judged_events(runs: Mapping[str, Run], qrels: Qrels) -> Iterator[dict[str, Any]]:
    """Yield an event for each judged query that every run holds.

    Keys are made of the content, so that sending the same queries again changes nothing.
    """
    lists = {name: run.to_dict() for name, run in runs.items()}
    for query_id, judgments in qrels.to_dict().items():
        if not all(by_query.get(query_id) for by_query in lists.values()):
            continue
        event = judged_event(query_id, {name: lists[name][query_id] for name in lists}, judgments, key="-")
        digest = hashlib.blake2b(repr(event).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        yield {**event, "key": f"file-{digest}"}


def clicked_event(
    query_id: str,
    runs: Runs,
    shown: Sequence[str],
    clicks: Sequence[str],
    *,
    key: str | None = None,
    client: str | None = None,
) -> dict[str, Any]:
    """Return an event with what was shown, from the first place down, and what was clicked."""
    return _event(query_id, runs, key, client, impression={"shown": list(shown), "clicks": list(clicks)})


def interleaved_event(
    query_id: str, runs: Runs, interleaving: str, clicks: Sequence[str], *, key: str | None = None
) -> dict[str, Any]:
    """Return an event with the clicks on an interleaved list; `interleaving` is the id that came with it."""
    return _event(query_id, runs, key, None, interleaved={"id": interleaving, "clicks": list(clicks)})


def _event(query_id: str, runs: Runs, key: str | None, client: str | None, **feedback: Any) -> dict[str, Any]:
    event = {"key": key or new_key(), "query_id": query_id, "runs": _columns(runs), **feedback}
    return event if client is None else {**event, "client": client}


def _columns(runs: Runs) -> dict[str, dict[str, list[Any]]]:
    """Return the lists in the form that is read quickest."""
    found: dict[str, dict[str, list[Any]]] = {}
    for name, given in runs.items():
        pairs = list(given.items() if isinstance(given, Mapping) else given)
        found[name] = {"doc_ids": [doc_id for doc_id, _ in pairs], "scores": [score for _, score in pairs]}
    return found


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


class _Calls(ABC, Generic[R]):
    """Every request that the service takes; R is what a call gives: the answer, or something to await."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 35.0,
        retries: int = 5,
        verify: bool | str = True,
    ) -> None:
        """Name the service.

        Args:
            url: Where the service is.
            token: A bearer token, if the service wants one.
            timeout: Seconds to wait for an answer. The service gives up on its disk after 30.
            retries: How often a request is sent again when the service is busy, failing or away.
            verify: Whether to check the certificate, or a file of certificates to trust.
        """
        self.url, self.retries = url.rstrip("/"), retries
        self._options: dict[str, Any] = {
            "base_url": self.url,
            "timeout": timeout,
            "headers": {} if token is None else {"authorization": f"Bearer {token}"},
        }
        if self.url.startswith("https:"):
            trusted = ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify
            self._options["verify"] = trusted

    @abstractmethod
    def _send(self, call: Call) -> R: ...

    def fuse(self, runs: Runs, **options: Any) -> R:
        """Fuse one query's lists; options: query_id, rankers, weights, version, top, explain.

        Where the model has weights by group, or a gate: group, text and columns of the query as well.
        """
        return self._send(Call("POST", "/v1/fuse", {"runs": _columns(runs), **options}))

    def feedback(self, events: Iterable[Mapping[str, Any]]) -> R:
        """Send events; returns when they are on the service's disk."""
        return self._send(Call("POST", "/v1/feedback", {"events": list(events)}))

    def weights(self, version: int | None = None) -> R:
        """Return the weights of a version, the champion's if none is named."""
        return self._send(Call("GET", "/v1/weights", query=_given(version=version)))

    def set_weights(self, weights: Mapping[str, float], *, key: str | None = None) -> R:
        """Make these weights the champion."""
        return self._send(Call("PUT", "/v1/weights", {"weights": dict(weights), "key": key or new_key()}))

    def versions(self, limit: int = 50, before: int | None = None) -> R:
        """Return versions, the newest first."""
        return self._send(Call("GET", "/v1/versions", query=_given(limit=limit, before=before)))

    def rollback(self, version: int, *, key: str | None = None) -> R:
        """Make an older version the champion."""
        return self._send(Call("POST", "/v1/rollback", {"version": version, "key": key or new_key()}))

    def relearn(self, *, last: int | None = None, key: str | None = None) -> R:
        """Learn from the newest stored judgments anew, all together; `last`: how many queries."""
        return self._send(Call("POST", "/v1/relearn", {"key": key or new_key(), **_given(last=last)}))

    def evaluate(self, **options: Any) -> R:
        """Measure weights on the stored judgments; options: versions, weights, measures, last."""
        return self._send(Call("POST", "/v1/evaluate", options))

    def interleave(self, runs: Runs, **options: Any) -> R:
        """Interleave the lists of two versions; options: versions, top."""
        return self._send(Call("POST", "/v1/interleave", {"runs": _columns(runs), **options}))

    def comparison(self, first: int | None = None, second: int | None = None) -> R:
        """Say how two versions stand."""
        return self._send(Call("GET", "/v1/interleave", query=_given(first=first, second=second)))

    def _answer(self, response: httpx.Response) -> dict[str, Any]:
        if response.is_success:
            answer: dict[str, Any] = response.json()
            return answer
        try:
            message = response.json()["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = response.text[:200]
        raise ServiceError(f"{self.url}: {response.status_code}: {message}", response.status_code)

    def _is_final(self, response: httpx.Response, attempt: int) -> bool:
        return response.status_code not in _AGAIN or attempt == self.retries

    def _unreachable(self, error: httpx.TransportError) -> ServiceError:
        return ServiceError(f"{self.url}: expected the service; {error or type(error).__name__}. Is it running?")


def _pause(attempt: int, response: httpx.Response | None) -> float:
    """Return how long to wait before the next attempt: twice as long each time, and not all clients at once."""
    asked = "" if response is None else response.headers.get("retry-after", "")
    least = float(asked) if asked.isdigit() else 0.0
    wait = min(_SLOWEST, max(least, 0.1 * 2.0**attempt))
    return wait * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)


class Client(_Calls[dict[str, Any]]):
    """A client that waits for each answer."""

    def __init__(self, url: str = "http://127.0.0.1:8000", **options: Any) -> None:
        """Name the service; options: token, timeout, retries, verify."""
        super().__init__(url, **options)
        self._http = httpx.Client(**self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call) -> dict[str, Any]:
        for attempt in itertools.count():
            response = None
            try:
                response = self._http.request(call.method, call.path, json=call.body, params=call.query)
                if self._is_final(response, attempt):
                    break
            except httpx.TransportError as error:
                if attempt == self.retries:
                    raise self._unreachable(error) from error
            time.sleep(_pause(attempt, response))
        assert response is not None
        return self._answer(response)


class AsyncClient(_Calls[Coroutine[Any, Any, dict[str, Any]]]):
    """The same for asyncio: every method returns something to await."""

    def __init__(self, url: str = "http://127.0.0.1:8000", **options: Any) -> None:
        """Name the service; options: token, timeout, retries, verify."""
        super().__init__(url, **options)
        self._http = httpx.AsyncClient(**self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call) -> dict[str, Any]:
        for attempt in itertools.count():
            response = None
            try:
                response = await self._http.request(call.method, call.path, json=call.body, params=call.query)
                if self._is_final(response, attempt):
                    break
            except httpx.TransportError as error:
                if attempt == self.retries:
                    raise self._unreachable(error) from error
            await asyncio.sleep(_pause(attempt, response))
        assert response is not None
        return self._answer(response)
