"""Qdrant: `points/query` through its client, against a server or a folder that the client itself opens."""

import warnings
from collections.abc import Mapping
from typing import Any

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import status_fault, unreachable
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_TAKEN = frozenset({"query", "using", "filter", "params", "score_threshold", "lookup_from", "shard_key"})


class Qdrant(Engine):
    """A Qdrant collection; an address that is not a URL is a folder of the client's local mode."""

    name = "qdrant"
    extra = "qdrant"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        library = load_library("qdrant_client", "Qdrant", self.extra)
        self._models = library.models
        self._faults = load_library("qdrant_client.http.exceptions", "Qdrant", self.extra)
        self._busy = load_library("qdrant_client.common.client_exceptions", "Qdrant", self.extra)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # genm says by itself that a secret travels in the clear
            if access.address.startswith(("http:", "https:")):
                url = access.url()
                self._client = library.QdrantClient(
                    url=url,
                    port=None,
                    api_key=access.api_key or access.token,
                    headers=dict(access.headers),
                    timeout=access.timeout,
                    verify=access.ssl_context() if url.startswith("https:") else True,
                    proxy=access.proxy,
                    trust_env=False,
                    check_compatibility=False,
                )
            else:
                self._client = library.QdrantClient(path=access.address)
                self.most_threads = 1  # type: ignore[misc]  # the local mode is not made for threads

    def read_template(self, template: Template, place: str) -> Any:
        """Take the body of a query without prefetch: `{"query": "$vector", "using": "embedding"}`."""
        body = read_json_template(template, place)
        if not isinstance(body, Mapping) or "query" not in body:
            raise InputError(
                f'{place}: expected the body of a query, such as {{"query": "$vector", "using": "embedding"}}; '
                "found "
                'no key "query".'
            )
        if other := sorted(set(body) - _TAKEN):
            raise InputError(
                f"{place}: expected only {', '.join(sorted(_TAKEN))}; found {other[0]!r}. genm pull sets limit and "
                "offset; each prefetch is a ranker of its own."
            )
        return body

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Send one query."""
        body = fill_json(template, values, f"{self.name} template")
        try:
            request = self._models.QueryRequest.model_validate({**body, "limit": size, "offset": start})
        except ValueError as error:
            raise EngineError(
                f"{self.name}: the template is no query of Qdrant: {error!s:.300}.", fatal=True
            ) from None
        fields = [name for name in (self.access.id_field, *self.access.text_fields) if name]
        try:
            answer = self._client.query_points(
                self.access.index,
                query=request.query,
                using=request.using,
                query_filter=request.filter,
                search_params=request.params,
                score_threshold=request.score_threshold,
                lookup_from=request.lookup_from,
                shard_key_selector=request.shard_key,
                limit=size,
                offset=start,
                with_payload=fields or False,
            )
        except (self._faults.ApiException, self._busy.QdrantException, ValueError, KeyError) as error:
            raise self._fault(error) from None
        return Page([self._hit(point) for point in answer.points])

    def _hit(self, point: Any) -> Hit:
        payload = point.payload or {}
        doc_id = point.id if self.access.id_field is None else payload.get(self.access.id_field)
        return Hit(doc_id, point.score, joined_text(payload.get(name) for name in self.access.text_fields))

    def _fault(self, error: Exception) -> EngineError:
        if isinstance(error, self._faults.UnexpectedResponse):
            said = self.access.redacted(error.content.decode("utf-8", "replace"))
            return status_fault(self.name, error.status_code or 0, said, error.headers)
        if isinstance(error, self._busy.ResourceExhaustedResponse):
            return status_fault(self.name, 429, str(error), {"retry-after": str(error.retry_after_s)})
        if isinstance(error, self._faults.ResponseHandlingException):
            source = error.source
            if isinstance(source, ValueError):  # JSON, or a record that is no answer
                return EngineError(
                    f"{self.name}: expected an answer of Qdrant; found something else. Is this the engine's "
                    "address, or "
                    "that of a proxy or a log-in page?"
                )
            return unreachable(self.name, self.access.redacted(str(source) or type(source).__name__))
        return EngineError(f"{self.name}: {error!s:.300}. See collection and template.", fatal=True)

    def state(self) -> str | None:
        """Return the number of points; Qdrant does not tell of changed ones."""
        try:
            found = self._client.get_collection(self.access.index)
        except (self._faults.ApiException, self._busy.QdrantException, ValueError, KeyError) as error:
            raise self._fault(error) from None
        return f"{found.points_count} points"

    def version(self) -> str | None:
        """Return the version of the server; the local mode is that of the client."""
        try:
            return str(self._client.info().version)
        except (self._faults.ApiException, self._busy.QdrantException, NotImplementedError):
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
