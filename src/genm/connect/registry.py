"""The engines by name, and `connect`, which opens one."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from genm.connect.access import Access, check_no_secrets, resolve_secret
from genm.connect.engine import Engine
from genm.errors import InputError

ENGINES = {
    "elasticsearch": ("elasticsearch", "Elasticsearch"),
    "lancedb": ("lancedb", "LanceDb"),
    "milvus": ("milvus", "Milvus"),
    "mongodb": ("mongodb", "MongoDb"),
    "opensearch": ("elasticsearch", "OpenSearch"),
    "pgvector": ("pgvector", "Pgvector"),
    "qdrant": ("qdrant", "Qdrant"),
    "solr": ("solr", "Solr"),
    "sqlite": ("sqlite", "Sqlite"),
    "vespa": ("vespa", "Vespa"),
    "weaviate": ("weaviate", "Weaviate"),
}
"""Module and class of each engine; a module is imported when its engine is used."""


def check_engine(name: str) -> str:
    """Return the name if it is an engine's."""
    if name not in ENGINES:
        near = get_close_matches(name, ENGINES, 1)
        hint = (
            f"Did you mean {near[0]}?" if near else "For anything else give a Python callable to genm.connect.pull."
        )
        raise InputError(f"engine: expected one of {', '.join(ENGINES)}; found {name!r:.60}. {hint}")
    return name


def connect(*, engine: str, address: str, index: str = "", **options: Any) -> Engine:
    """Open an engine: nothing is asked yet.

    Args:
        engine: Its name, such as "opensearch".
        address: Where it is; nothing is guessed.
        index: The index, collection, core, schema or table.
        **options: user; password, token, api_key and headers as references ("env:NAME" or "keyring:SERVICE/USER");
            ca, cert, key, proxy, verify, timeout, id_field, text_fields, options.

    Raises:
        InputError: An unknown engine or option, or a secret given as it is.
        MissingExtraError: The engine's client is not installed; the message names the extra.
    """
    module, name = ENGINES[check_engine(engine)]
    return open_engine(getattr(import_module(f"genm.connect.engines.{module}"), name), address, index, options)


def open_engine(kind: type[Engine], address: str, index: str, options: Mapping[str, Any]) -> Engine:
    """Open an engine of a class, with its secrets resolved."""
    known = set(Access.__dataclass_fields__) - {"address", "index"}
    if unknown := sorted(set(options) - known):
        raise InputError(f"{unknown[0]}: expected one of {', '.join(sorted(known))}; found another name.")
    check_no_secrets({"address": address, **options}, "connect")
    access = Access(address, index, **{name: _resolved(name, value) for name, value in options.items()})
    if not address:
        raise InputError("address: expected where the engine is; found nothing. Give it; nothing is guessed.")
    return kind(replace(access, text_fields=tuple(access.text_fields)))


def _resolved(name: str, value: Any) -> Any:
    if name in ("password", "token", "api_key", "proxy") and isinstance(value, str):
        return resolve_secret(value, name) if name != "proxy" or value.startswith(("env:", "keyring:")) else value
    if name == "headers":
        return {
            key: resolve_secret(text, f"headers.{key}") if text.startswith(("env:", "keyring:")) else text
            for key, text in value.items()
        }
    return value
