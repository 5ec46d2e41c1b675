"""Apache Solr: the JSON request API of `/select`. Solr has no official Python client; httpx sends the requests."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from genm.connect.access import Access
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import JsonClient, inside
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_OURS = frozenset({"limit", "offset", "sort", "fields"})


class Solr(Engine):
    """A Solr core or collection; the address ends with the web application, as in http://localhost:8983/solr."""

    name = "solr"
    extra = "solr"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._client = JsonClient(self.name, self.extra, access)
        self._path = f"/{quote(access.index, safe='')}"
        self._id = access.id_field or "id"

    def read_template(self, template: Template, place: str) -> Any:
        """Take the body of a JSON request: `{"query": ..., "params": {...}}`."""
        body = read_json_template(template, place)
        if not isinstance(body, Mapping) or "query" not in body:
            raise InputError(
                f"{place}: expected the body of a Solr JSON request, such as "
                f'{{"query": "{{!dismax qf=text mm=1 v=$qq}}", '
                '"params": {"qq": "$query"}}; found no key "query".'
            )
        if ours := sorted(_OURS & set(body)):
            raise InputError(
                f"{place}: expected no {ours[0]}: genm pull sets limit, offset, sort and fields itself."
            )
        return body

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Send one JSON request."""
        request = fill_json(template, values, f"{self.name} template")
        # Solr reads $name in local parameters only, so the query's own dollar signs stay text
        body = {
            **request,
            "fields": [self._id, "score", *self.access.text_fields],
            "sort": "score desc",
            "offset": start,
            "limit": size,
        }
        answer = self._client.send("POST", f"{self._path}/select", body, {"wt": "json"})
        docs = inside(answer, "response", "docs")
        if not isinstance(docs, list):
            raise EngineError(
                f"{self.name}: expected response.docs in the answer; found none. Is this a Solr core?"
            )
        flag = inside(answer, "responseHeader", "partialResults")
        partial = "partialResults is true" if flag in (True, "true", "omitted") else ""
        return Page([self._hit(doc) for doc in docs], partial)

    def _hit(self, doc: Any) -> Hit:
        if not isinstance(doc, Mapping) or self._id not in doc:
            raise EngineError(
                f"{self.name}: expected the field {self._id} in every document; found one without it."
            )
        texts = (doc.get(name) for name in self.access.text_fields)
        return Hit(doc[self._id], doc.get("score"), joined_text(_flat(text) for text in texts))

    def state(self) -> str | None:
        """Return the version of the core's index."""
        try:
            found = self._client.send("GET", f"{self._path}/admin/luke", params={"numTerms": 0, "show": "index"})
        except EngineError as error:
            if error.fatal:
                return None
            raise
        version, n, deleted = (inside(found, "index", name) for name in ("version", "numDocs", "deletedDocs"))
        return None if version is None else f"version {version}, {n} documents, {deleted} deleted"

    def version(self) -> str | None:
        """Return the version of the server."""
        try:
            found = self._client.send("GET", "/admin/info/system")
        except EngineError:
            return None
        number = inside(found, "lucene", "solr-spec-version")
        return None if number is None else str(number)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _flat(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value
