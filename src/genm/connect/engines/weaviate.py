"""Weaviate: GraphQL over HTTP. The client's own searches go through gRPC and hide the status, so httpx is used.

A template is the argument of `Get`, as a table. It is written as GraphQL here, so that the query stays a string.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from genm.connect.access import Access
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import JsonClient, inside, one_sentence
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")
_ENUMS = frozenset({"operator", "fusionType", "order", "type"})
"""Keys whose values are names in GraphQL, not strings."""
_OURS = frozenset({"limit", "offset", "sort"})
_SCORED = ("bm25", "nearVector", "nearText", "nearObject")


class Weaviate(Engine):
    """A Weaviate collection. BM25 gives its score; a nearest-neighbour search gives 1 - distance."""

    name = "weaviate"
    extra = "weaviate"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        for what, name in (("index", access.index), ("id_field", access.id_field or "id")):
            _check_name(name, what)
        for name in access.text_fields:
            _check_name(name, "texts")
        self._client = JsonClient(self.name, self.extra, access)

    def read_template(self, template: Template, place: str) -> Any:
        """Take one search, such as `{"bm25": {"query": "$query"}}`, with other arguments of Get beside it."""
        arguments = read_json_template(template, place)
        searches = [key for key in _SCORED if isinstance(arguments, Mapping) and key in arguments]
        if len(searches) != 1:
            raise InputError(
                f"{place}: expected one of {', '.join(_SCORED)}, with its arguments; found "
                f"{len(searches) or 'none of them'}. hybrid is fused already: give its two searches as two rankers."
            )
        if ours := sorted(_OURS & set(arguments)):
            raise InputError(f"{place}: expected no {ours[0]}: genm pull sets limit and offset. Leave it out.")
        to_graphql(arguments, place)
        return arguments

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Send one Get."""
        place = f"{self.name} template"
        arguments = {**fill_json(template, values, place), "limit": size, "offset": start}
        written = ", ".join(f"{key}: {to_graphql(value, place, key)}" for key, value in arguments.items())
        fields = " ".join([name for name in (self.access.id_field, *self.access.text_fields) if name])
        text = f"{{Get {{{self.access.index}({written}) {{{fields} _additional {{id score distance}}}}}}}}"
        found = inside(self._data(text), "Get", self.access.index)
        if not isinstance(found, list):
            raise EngineError(f"{self.name}: expected Get.{self.access.index} in the answer; found none.")
        return Page([self._hit(one, by_score="bm25" in template) for one in found])

    def _hit(self, found: Any, *, by_score: bool) -> Hit:
        field = self.access.id_field
        doc_id = inside(found, "_additional", "id") if field is None else inside(found, field)
        value = inside(found, "_additional", "score" if by_score else "distance")
        try:
            score = None if value is None else float(value)  # the score comes as a string
        except (TypeError, ValueError, OverflowError):
            score = None
        score = score if by_score or score is None else 1.0 - score
        return Hit(doc_id, score, joined_text(inside(found, name) for name in self.access.text_fields))

    def _data(self, text: str) -> Mapping[str, Any]:
        answer = self._client.send("POST", "/v1/graphql", {"query": text})
        if errors := answer.get("errors"):
            said = one_sentence(str(inside(errors, 0, "message") or errors))
            raise EngineError(f"{self.name}: {said}. See the template.")
        data = answer.get("data")
        if not isinstance(data, Mapping):
            raise EngineError(f"{self.name}: expected data in the answer; found none. Is this Weaviate's address?")
        return data

    def state(self) -> str | None:
        """Return the number of objects; Weaviate does not tell of changed ones."""
        found = self._data(f"{{Aggregate {{{self.access.index} {{meta {{count}}}}}}}}")
        n = inside(found, "Aggregate", self.access.index, 0, "meta", "count")
        return None if n is None else f"{n} objects"

    def version(self) -> str | None:
        """Return the version of the server."""
        try:
            return str(self._client.send("GET", "/v1/meta").get("version") or "") or None
        except EngineError:
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def to_graphql(value: Any, place: str, key: str = "") -> str:
    """Return a value as a GraphQL literal; strings are quoted, and nothing in them can end the quotes."""
    if isinstance(value, Mapping):
        for name in value:
            _check_name(name, place)
        return "{" + ", ".join(f"{name}: {to_graphql(item, place, name)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_graphql(item, place, key) for item in value) + "]"
    if isinstance(value, str) and key in _ENUMS and _NAME.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _check_name(name: str, place: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(f"{place}: expected a name of letters, digits and _; found {name!r:.60}.")
