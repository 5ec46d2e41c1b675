"""Elasticsearch and OpenSearch: the `_search` API through the official clients, whose own retries are off."""

import threading
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.http import inside, status_fault, unreachable
from genm.connect.templates import Template, Values, fill_json, read_json_template
from genm.errors import EngineError, InputError

_OURS = frozenset({"size", "from", "sort", "search_after", "_source", "fields", "pit", "search_pipeline"})
_WHOLE = frozenset({"query", "retriever"})
_JSON = {"accept": "application/json", "content-type": "application/json"}
_COUNTS = (("docs", "count"), ("docs", "deleted"), ("indexing", "index_total"), ("indexing", "delete_total"))
COPY = "genm"
"""The preference of every search: all go to the same copy of each shard, since copies differ in scores."""


class SearchApi(Engine):
    """What the two engines share: bodies, hits, shards and statistics."""

    largest_page = 10_000

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._path = "/" + ",".join(quote(part, safe="*") for part in access.index.split(","))

    @abstractmethod
    def _send(self, method: str, path: str, params: dict[str, Any], body: Any = None) -> Any:
        """Send a request through the client and return the JSON of the answer."""

    def _parameters(self) -> dict[str, Any]:
        return {"preference": COPY}

    def read_template(self, template: Template, place: str) -> Any:
        """Take a query clause such as `{"match": ...}`, or a body with `query` or `retriever`."""
        body = read_json_template(template, place)
        if not isinstance(body, Mapping):
            raise InputError(f"{place}: expected a query clause or the body of a search; found a list.")
        whole = bool(_WHOLE & set(body)) or len(body) != 1
        if whole and (ours := sorted(_OURS & set(body))):
            raise InputError(
                f"{place}: expected no {ours[0]} in the body: depth, pages, fields and the order by score are "
                "set by "
                "genm pull, and a search pipeline would change the scores. Leave it out."
            )
        clause = body.get("query") if whole else body
        if isinstance(clause, Mapping) and "hybrid" in clause and "search_pipeline" not in self.access.options:
            raise InputError(
                f"{place}: expected one sub-query; found hybrid, whose scores are fused already. Give each of its "
                "queries as a ranker of its own. To measure the fused list, name options.search_pipeline."
            )
        return body if whole else {"query": body}

    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Send one search."""
        fields = [field for field in (self.access.id_field, *self.access.text_fields) if field]
        body = {
            **fill_json(template, values, f"{self.name} template"),
            "from": start,
            "size": size,
            "_source": fields or False,
        }
        answer = self._send("POST", f"{self._path}/_search", self._parameters(), body)
        hits = inside(answer, "hits", "hits")
        if not isinstance(hits, list):
            raise EngineError(
                f"{self.name}: expected hits.hits in the answer; found none. Is this the address of {self.name}?"
            )
        return Page([self._hit(hit) for hit in hits], _missing(answer))

    def _hit(self, hit: Any) -> Hit:
        field = self.access.id_field
        doc_id = inside(hit, "_id") if field is None else inside(hit, "_source", *field.split("."))
        texts = joined_text(inside(hit, "_source", *name.split(".")) for name in self.access.text_fields)
        return Hit(doc_id, inside(hit, "_score"), texts)

    def state(self) -> str | None:
        """Return counts of documents, deletions and writes; a user without the right to see them gets None."""
        try:
            answer = self._send("GET", f"{self._path}/_stats/docs,indexing", {})
        except EngineError as error:
            if error.fatal:
                return None
            raise
        found = [inside(answer, "_all", "primaries", *path) for path in _COUNTS]
        return None if found[0] is None else "{} documents, {} deleted, {} writes, {} deletions".format(*found)

    def version(self) -> str | None:
        """Return the version of the server."""
        try:
            number = inside(self._send("GET", "/", {}), "version", "number")
        except EngineError:
            return None
        return None if number is None else str(number)


def _missing(answer: Any) -> str:
    """Return which part of the index was not searched; empty if all was."""
    if inside(answer, "timed_out"):
        return "the search timed out"
    if inside(answer, "terminated_early"):
        return "the search was terminated early"
    if failed := inside(answer, "_shards", "failed"):
        why = str(inside(answer, "_shards", "failures", 0, "reason", "reason") or "")[:120]
        return f"{failed} of {inside(answer, '_shards', 'total')} shards failed{f': {why}' if why else ''}"
    if skipped := inside(answer, "_clusters", "skipped"):
        return f"{skipped} clusters were skipped"
    return ""


class OpenSearch(SearchApi):
    """OpenSearch through opensearch-py.

    A default search pipeline of the index is switched off. `options.search_pipeline` names one to use: only to pull
    the list that the engine fuses, and measure it.
    """

    name = "opensearch"
    extra = "opensearch"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._library = load_library("opensearchpy", "OpenSearch", self.extra)
        url = access.url()
        secure = url.startswith("https:")
        if secure:
            access.ssl_context()  # checks the files
        headers = dict(access.headers)
        if access.token:
            headers["authorization"] = f"Bearer {access.token}"
        if access.api_key:
            headers["authorization"] = f"ApiKey {access.api_key}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that certificates are not checked is said once, by genm
            self._client = self._library.OpenSearch(
                [url],
                http_auth=(access.user, access.password or "") if access.user else None,
                headers=headers,
                verify_certs=access.verify,
                ssl_show_warn=False,
                ca_certs=access.ca if access.verify else None,
                client_cert=access.cert,
                client_key=access.key,
                proxies={"http": access.proxy, "https": access.proxy} if access.proxy else None,
                timeout=access.timeout,
                max_retries=0,
                retry_on_timeout=False,
                pool_maxsize=self.most_threads,
                connection_class=self._library.RequestsHttpConnection,
            )
        self._seen = threading.local()
        session = self._client.transport.get_connection().session
        session.trust_env = False  # nothing is guessed: no proxy and no password from the surroundings
        session.max_redirects = 0
        session.hooks["response"].append(self._remember)

    def _remember(self, response: Any, *_: Any, **__: Any) -> None:
        """Keep the header that the client does not pass on."""
        self._seen.after = response.headers.get("retry-after", "")

    def _parameters(self) -> dict[str, Any]:
        return {"preference": COPY, "search_pipeline": self.access.options.get("search_pipeline", "_none")}

    def _send(self, method: str, path: str, params: dict[str, Any], body: Any = None) -> Any:
        faults = self._library.exceptions
        self._seen.after = ""
        try:
            return self._client.transport.perform_request(method, path, params=params, body=body)
        except faults.ConnectionTimeout:
            raise _timeout(self.name, self.access) from None
        except faults.ConnectionError as error:
            raise unreachable(self.name, self.access.redacted(str(error.error))) from None
        except faults.TransportError as error:
            said = self.access.redacted(_reason(error.info) or str(error.error))
            raise status_fault(self.name, int(error.status_code), said, {"retry-after": self._seen.after}) from None
        except (faults.SerializationError, UnicodeDecodeError) as error:
            raise _not_json(self.name, str(error)) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class Elasticsearch(SearchApi):
    """Elasticsearch 8 and 9 through its Python client."""

    name = "elasticsearch"
    extra = "elasticsearch"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._library = load_library("elasticsearch", "Elasticsearch", self.extra)
        load_library("requests", "Elasticsearch", self.extra)
        url = access.url()
        if url.startswith("https:"):
            access.ssl_context()  # checks the files
            secure: dict[str, Any] = {"verify_certs": access.verify, "ssl_show_warn": False}
            secure |= {"ca_certs": access.ca} if access.ca and access.verify else {}
            secure |= {"client_cert": access.cert, "client_key": access.key} if access.cert else {}
        else:
            secure = {}
        self._client = self._library.Elasticsearch(
            [url],
            basic_auth=(access.user, access.password or "") if access.user else None,
            bearer_auth=access.token,
            api_key=access.api_key,
            headers=dict(access.headers),
            request_timeout=access.timeout,
            max_retries=0,
            retry_on_timeout=False,
            connections_per_node=self.most_threads,
            node_class="requests",
            **secure,
        )
        for node in self._client.transport.node_pool.all():
            node.session.trust_env = False  # nothing is guessed: no proxy and no password from the surroundings
            node.session.max_redirects = 0
            if access.proxy:
                node.session.proxies = {"http": access.proxy, "https": access.proxy}

    def _send(self, method: str, path: str, params: dict[str, Any], body: Any = None) -> Any:
        faults = self._library
        try:
            return self._client.perform_request(method, path, params=params, headers=_JSON, body=body).body
        except faults.UnsupportedProductError:
            raise EngineError(
                "elasticsearch: expected Elasticsearch; found another server, or a page of HTML. Is it OpenSearch "
                '(engine = "opensearch"), a proxy or a log-in page?',
                fatal=True,
            ) from None
        except faults.ApiError as error:
            said = self.access.redacted(_reason(error.body) or str(error.message))
            raise status_fault(self.name, error.meta.status, said, error.meta.headers) from None
        except faults.ConnectionTimeout:
            raise _timeout(self.name, self.access) from None
        except faults.ConnectionError as error:  # also TlsError
            said = "; ".join(map(str, (error.message, *error.errors)))
            raise unreachable(self.name, self.access.redacted(said)) from None
        except faults.SerializationError as error:
            raise _not_json(self.name, str(error)) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _reason(body: Any) -> str:
    """Return the reason that an error's body gives."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return "" if error is None or "<" in str(error)[:200] else str(error)[:300]
    causes = error.get("root_cause") or [error]
    reason = causes[0].get("reason") if isinstance(causes[0], Mapping) else None
    return str(reason or error.get("reason") or "")[:300]


def _timeout(name: str, access: Access) -> EngineError:
    return EngineError(
        f"{name}: expected an answer within {access.timeout:g} s; found none. Raise the timeout.", retry=True
    )


def _not_json(name: str, said: str) -> EngineError:
    kind = "a page of HTML" if "html" in said.lower() else "something else"
    return EngineError(
        f"{name}: expected JSON; found {kind}. Is this the engine's address, or that of a proxy or a log-in page?"
    )
