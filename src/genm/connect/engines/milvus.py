"""Milvus: `search` through its client, against a server or a file of milvus-lite."""

from collections.abc import Mapping
from typing import Any

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import one_sentence
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_TAKEN = frozenset({"data", "anns_field", "filter", "search_params", "partition_names"})
_DISTANCES = frozenset({"L2", "HAMMING", "JACCARD"})
_RATE_LIMIT, _UNAVAILABLE = 8, 2
_FATAL = frozenset({100, 700, 1100, 1800})
"""Codes: no collection, no index, a wrong parameter, a wrong password."""


class Milvus(Engine):
    """A Milvus collection. Of distances (L2) the negative is the score, so that higher is better."""

    name = "milvus"
    extra = "milvus"
    largest_page = 16_384

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        if access.proxy or access.headers:
            raise InputError("proxy: expected none, since Milvus speaks gRPC; leave proxy and headers out.")
        library = load_library("pymilvus", "Milvus", self.extra)
        self._fault_class = library.MilvusException
        self._negated = set(_DISTANCES)
        given: dict[str, Any] = {}
        if access.address.startswith("https:"):
            access.ssl_context()  # checks the files
            if not access.verify:
                raise InputError(
                    "tls.verify: expected true, since Milvus' client always checks; give tls.ca instead."
                )
            given = {"secure": True, "ca_pem_path": access.ca or ""}
            given |= {"client_pem_path": access.cert, "client_key_path": access.key} if access.cert else {}
        elif not access.address.startswith("http:"):
            self.most_threads = 1  # type: ignore[misc]  # a file of milvus-lite
            self._negated |= {"BM25"}  # milvus-lite returns BM25 scores with the sign of a distance
        try:
            self._client = library.MilvusClient(
                uri=access.address,
                user=access.user or "",
                password=access.password or "",
                token=access.token or access.api_key or "",
                db_name=str(access.options.get("database", "")),
                timeout=access.timeout,
                **given,
            )
        except self._fault_class as error:
            raise self._fault(error) from None
        self._metrics: dict[str, str] = {}

    def read_template(self, template: Template, place: str) -> Any:
        """Take the arguments of a search: `{"anns_field": "embedding", "data": "$vector"}`."""
        arguments = read_json_template(template, place)
        if not isinstance(arguments, Mapping) or not {"data", "anns_field"} <= set(arguments):
            raise InputError(
                f"{place}: expected the arguments of a search, such as "
                f'{{"anns_field": "embedding", "data": "$vector"}}; '
                'found no "data", or no "anns_field".'
            )
        if other := sorted(set(arguments) - _TAKEN):
            raise InputError(f"{place}: expected only {', '.join(sorted(_TAKEN))}; found {other[0]!r}.")
        return arguments

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Send one search."""
        asked = fill_json(template, values, f"{self.name} template")
        data = asked["data"]
        if isinstance(data, Mapping) and {"indices", "values"} <= set(data):
            data = dict(zip(data["indices"], data["values"], strict=True))
        params = {**asked.get("search_params", {}), **({"offset": start} if start else {})}
        fields = [name for name in (self.access.id_field, *self.access.text_fields) if name]
        try:
            found = self._client.search(
                self.access.index,
                data=[data],
                anns_field=asked["anns_field"],
                filter=asked.get("filter", ""),
                limit=size,
                output_fields=fields,
                search_params=params,
                partition_names=asked.get("partition_names"),
                timeout=self.access.timeout,
            )
            sign = -1.0 if self._metric(asked["anns_field"], params) in self._negated else 1.0
        except self._fault_class as error:
            raise self._fault(error) from None
        return Page([self._hit(hit, sign) for hit in found[0]])

    def _hit(self, hit: Any, sign: float) -> Hit:
        entity = hit.get("entity") or {}
        own = [value for key, value in hit.items() if key not in ("distance", "entity")]
        doc_id = (
            entity.get(self.access.id_field) if self.access.id_field else hit.get("id", own[0] if own else None)
        )
        texts = joined_text(entity.get(name) for name in self.access.text_fields)
        return Hit(doc_id, sign * hit["distance"], texts)

    def _metric(self, field: str, params: Mapping[str, Any]) -> str:
        """Return how the field's vectors are compared: as the search says, else as the index does."""
        if field not in self._metrics:
            names = self._client.list_indexes(self.access.index, field_name=field)
            index = self._client.describe_index(self.access.index, names[0]) if names else {}
            self._metrics[field] = str((index or {}).get("metric_type", "")).upper()
        return str(params.get("metric_type") or self._metrics[field]).upper()

    def _fault(self, error: Any) -> EngineError:
        said = self.access.redacted(one_sentence(str(error.message)))
        words = said.lower()
        busy = error.code in (_RATE_LIMIT, _UNAVAILABLE) or any(
            word in words for word in ("deadline", "timeout", "timed out", "unavailable", "rate limit")
        )
        final = error.code in _FATAL and not busy
        return EngineError(f"{self.name}: {said}. See address, collection and template.", retry=busy, fatal=final)

    def state(self) -> str | None:
        """Return the number of rows; Milvus does not tell of changed ones."""
        try:
            return f"{self._client.get_collection_stats(self.access.index).get('row_count')} rows"
        except self._fault_class as error:
            raise self._fault(error) from None

    def version(self) -> str | None:
        """Return the version of the server."""
        try:
            return str(self._client.get_server_version())
        except self._fault_class:
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
