"""Vespa: the query API as JSON over HTTP. pyvespa tries again by itself and hides the status, so httpx is used."""

from collections.abc import Mapping
from typing import Any

from genm.connect.access import Access
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import JsonClient, inside, one_sentence
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_OURS = frozenset({"hits", "offset"})
_TIMEOUTS = frozenset({12, 13})
"""Vespa's error codes for a search that took too long, and for a content node that cannot be reached."""


class Vespa(Engine):
    """A Vespa application; the address is that of its container, and the schemas are named in the YQL."""

    name = "vespa"
    extra = "vespa"
    largest_page = 400

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._client = JsonClient(self.name, self.extra, access)

    def read_template(self, template: Template, place: str) -> Any:
        """Take the body of a query: `{"yql": ..., "query": "$query", "ranking": ...}`.

        The key `score`, which is not Vespa's, names a match feature to take as score in place of the relevance.
        """
        body = read_json_template(template, place)
        if not isinstance(body, Mapping) or "yql" not in body:
            raise InputError(
                f'{place}: expected the body of a query with "yql", "query": "$query" and "ranking"; found no '
                'key "yql". '
                "See: genm pull --init vespa"
            )
        if ours := sorted(_OURS & set(body)):
            raise InputError(
                f"{place}: expected no {ours[0]}: genm pull sets hits and offset itself. Leave it out."
            )
        return body

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Send one query."""
        body = dict(fill_json(template, values, f"{self.name} template"))
        feature = body.pop("score", None)
        timeout = {} if "timeout" in body else {"timeout": f"{self.access.timeout:g}s"}
        root = self._client.send("POST", "/search/", {**timeout, **body, "hits": size, "offset": start}).get("root")
        if not isinstance(root, Mapping):
            raise EngineError(
                f"{self.name}: expected root in the answer; found none. Is this the address of Vespa?"
            )
        if errors := root.get("errors"):
            said = inside(errors, 0, "message") or inside(errors, 0, "summary") or errors
            busy = inside(errors, 0, "code") in _TIMEOUTS
            raise EngineError(f"{self.name}: {one_sentence(str(said))}. See the template.", retry=busy)
        share, full = inside(root, "coverage", "coverage"), inside(root, "coverage", "full")
        is_whole = share in (None, 100) and full is not False
        children = root.get("children") or []
        if not isinstance(children, list):
            raise EngineError(f"{self.name}: expected a list of children in the answer; found something else.")
        partial = "" if is_whole else f"{share} % of the documents were searched"
        return Page([self._hit(child, feature) for child in children], partial)

    def _hit(self, child: Any, feature: str | None) -> Hit:
        if self.access.id_field is not None:
            doc_id = inside(child, "fields", self.access.id_field)
        else:  # id:namespace:type::name
            found = inside(child, "fields", "documentid") or inside(child, "id") or ""
            doc_id = str(found).rpartition("::")[2] or None
        path = ("relevance",) if feature is None else ("fields", "matchfeatures", feature)
        texts = joined_text(inside(child, "fields", name) for name in self.access.text_fields)
        return Hit(doc_id, inside(child, *path), texts)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
