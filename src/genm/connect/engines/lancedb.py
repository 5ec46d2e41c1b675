"""LanceDB: full-text and vector searches through its package; a folder, an object store, or LanceDB Cloud."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_FTS, _VECTOR = "fts", "vector"
_TAKEN = frozenset({"query", "query_type", "columns", "distance_type", "where", "nprobes", "refine_factor", "ef"})


class LanceDb(Engine):
    """A table. Full text gives `_score`; a vector search gives 1 - `_distance`, as LanceDB's reranker takes it."""

    name = "lancedb"
    extra = "lancedb"
    most_threads = 1

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        library = load_library("lancedb", "LanceDB", self.extra)
        if "://" not in access.address and not Path(access.address).is_dir():
            raise InputError(f"address: expected the folder of a LanceDB database; found none at {access.address}.")
        cloud = {"api_key": access.api_key or access.token} if access.address.startswith("db://") else {}
        region = {"region": access.options["region"]} if "region" in access.options else {}
        try:
            self._table = library.connect(access.address, **cloud, **region).open_table(access.index)
        except (ValueError, RuntimeError, OSError) as error:
            raise EngineError(
                f"{self.name}: {access.redacted(str(error)):.200}. See address and index.", fatal=True
            ) from None
        self._id = access.id_field or "id"

    def read_template(self, template: Template, place: str) -> Any:
        """Take the arguments of a search: `{"query": "$query", "query_type": "fts", "columns": "text"}`."""
        arguments = read_json_template(template, place)
        if not isinstance(arguments, Mapping) or arguments.get("query_type") not in (_FTS, _VECTOR):
            raise InputError(
                f'{place}: expected query_type "fts" or "vector"; found another, or none. hybrid is fused '
                "already: give "
                "its two searches as two rankers."
            )
        if other := sorted(set(arguments) - _TAKEN):
            raise InputError(f"{place}: expected only {', '.join(sorted(_TAKEN))}; found {other[0]!r}.")
        return arguments

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Run one search."""
        asked = fill_json(template, values, f"{self.name} template")
        is_text = asked["query_type"] == _FTS
        columns = {"fts_columns" if is_text else "vector_column_name": asked.get("columns")}
        value = "_score" if is_text else "_distance"
        try:
            search = self._table.search(asked["query"], query_type=asked["query_type"], **columns)
            for name in ("distance_type", "where", "nprobes", "refine_factor", "ef"):
                if name in asked:
                    search = getattr(search, name)(asked[name])
            search = search.select([self._id, *self.access.text_fields, value]).limit(size)
            found = (search.offset(start) if start else search).to_list()
        except (ValueError, RuntimeError, OSError, AttributeError) as error:
            raise EngineError(f"{self.name}: {self.access.redacted(str(error)):.300}. See the template.") from None
        return Page([self._hit(row, value) for row in found])

    def _hit(self, row: Mapping[str, Any], value: str) -> Hit:
        score = row.get(value)
        score = 1.0 - score if value == "_distance" and score is not None else score
        return Hit(row.get(self._id), score, joined_text(row.get(name) for name in self.access.text_fields))

    def state(self) -> str | None:
        """Return the table's version."""
        return f"version {self._table.version}"
