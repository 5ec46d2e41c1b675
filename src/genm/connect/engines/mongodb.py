"""MongoDB: `$search`, `$vectorSearch` and `$text` as aggregation pipelines through pymongo."""

from collections.abc import Mapping
from typing import Any

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import one_sentence
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_SCORES = {"$search": "searchScore", "$vectorSearch": "vectorSearchScore", "$match": "textScore"}
_FORBIDDEN = frozenset({"$out", "$merge", "$limit", "$skip", "$sort", "$project", "$rankFusion", "$scoreFusion"})
_DENIED = frozenset({13, 18, 26, 8000})
"""Codes: not authorised, wrong password, no such collection, refused by Atlas."""
_SLOW = frozenset({50, 89, 91, 189, 11600, 11602})


class MongoDb(Engine):
    """A collection; the index is `database.collection`."""

    name = "mongodb"
    extra = "mongodb"
    has_pages = False

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        database, dot, collection = access.index.partition(".")
        if not dot or not database or not collection:
            raise InputError(f"index: expected database.collection; found {access.index!r:.60}.")
        if not access.address.startswith(("mongodb:", "mongodb+srv:")):
            raise InputError(
                f"address: expected mongodb://host:port or mongodb+srv://host; found {access.address!r:.60}."
            )
        if access.proxy or access.headers:
            raise InputError(
                "proxy: expected none, since MongoDB does not speak HTTP; leave proxy and headers out."
            )
        if access.key and access.key != access.cert:
            raise InputError("tls.key: expected certificate and key in one file, as MongoDB wants it: tls.cert.")
        library = load_library("pymongo", "MongoDB", self.extra)
        self._faults = library.errors
        milliseconds = round(1000 * access.timeout)
        given: dict[str, Any] = {}
        if access.user:
            given |= {"username": access.user, "password": access.password}
        if access.ca:
            given["tlsCAFile"] = access.ca
        if access.cert:
            given["tlsCertificateKeyFile"] = access.cert
        if not access.verify:
            given["tlsAllowInvalidCertificates"] = True
        try:
            self._client = library.MongoClient(
                access.address,
                serverSelectionTimeoutMS=milliseconds,
                socketTimeoutMS=milliseconds,
                retryReads=False,
                **given,
            )
        except (self._faults.PyMongoError, ValueError) as error:
            raise InputError(f"address: {access.redacted(str(error)):.200}") from None
        self._collection = self._client[database][collection]
        self._milliseconds = milliseconds

    def read_template(self, template: Template, place: str) -> Any:
        """Take a stage, or a pipeline that begins with `$search`, `$vectorSearch` or `$match` with `$text`."""
        stages = read_json_template(template, place)
        stages = [stages] if isinstance(stages, Mapping) else list(stages)
        names = [
            next(iter(stage), "") if isinstance(stage, Mapping) and len(stage) == 1 else "" for stage in stages
        ]
        if not names or names[0] not in _SCORES:
            raise InputError(
                f"{place}: expected a pipeline that begins with {', '.join(_SCORES)}; found {names[:1]}."
            )
        if other := sorted(_FORBIDDEN & set(names)):
            raise InputError(
                f"{place}: expected one search that only reads; found {other[0]}. genm pull limits, sorts and "
                "projects."
            )
        return stages

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:  # noqa: ARG002
        """Run the pipeline."""
        stages = fill_json(template, values, f"{self.name} template")
        score = {"$meta": _SCORES[next(iter(stages[0]))]}
        fields = [name for name in (self.access.id_field, *self.access.text_fields) if name]
        sorting = [{"$sort": {"score": -1}}] if "$match" in stages[0] else []
        project = {"$project": {"_id": 1, **dict.fromkeys(fields, 1), "score": score}}
        pipeline = [*stages, project, *sorting, {"$limit": size}]
        try:
            found = list(self._collection.aggregate(pipeline, maxTimeMS=self._milliseconds))
        except self._faults.PyMongoError as error:
            raise self._fault(error) from None
        return Page([self._hit(one) for one in found])

    def _hit(self, found: Mapping[str, Any]) -> Hit:
        doc_id = found.get(self.access.id_field or "_id")
        return Hit(doc_id, found.get("score"), joined_text(found.get(name) for name in self.access.text_fields))

    def _fault(self, error: Any) -> EngineError:
        said = self.access.redacted(one_sentence(str(error)))
        code = getattr(error, "code", None)
        busy = isinstance(error, self._faults.ConnectionFailure | self._faults.ExecutionTimeout) or code in _SLOW
        return EngineError(f"{self.name}: {said}. See address and template.", retry=busy, fatal=code in _DENIED)

    def state(self) -> str | None:
        """Return the number of documents; MongoDB does not tell of changed ones."""
        try:
            return f"{self._collection.estimated_document_count(maxTimeMS=self._milliseconds)} documents"
        except self._faults.PyMongoError as error:
            raise self._fault(error) from None

    def version(self) -> str | None:
        """Return the version of the server."""
        try:
            return str(self._client.server_info().get("version"))
        except self._faults.PyMongoError:
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
