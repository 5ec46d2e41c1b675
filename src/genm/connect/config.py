"""The configuration of a pull: a TOML file, or the same keys as a dictionary."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genm.connect.access import check_no_secrets
from genm.connect.engine import MOST_DEPTH
from genm.connect.registry import check_engine
from genm.errors import InputError
from genm.strict_json import Strict

Positive = Annotated[int, Meta(ge=1)]
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_RESERVED = frozenset({"docs", "queries", "pull"})
_LONG_KEY = re.compile(r"""(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){64}""")
"""A key of more than 64 parts: the time that tomllib takes for one grows with the square of their number."""


class QuerySource(Strict, frozen=True, kw_only=True):
    """Where the queries come from: `[queries]`."""

    file: str
    format: Literal["log"] | None = None
    top: Positive | None = None
    qrels: str | None = None


class Auth(Strict, frozen=True, kw_only=True):
    """Credentials: `[auth]`. All but the user's name are references, `env:NAME` or `keyring:SERVICE/USER`."""

    user: str | None = None
    password: str | None = None
    token: str | None = None
    api_key: str | None = None


class Tls(Strict, frozen=True, kw_only=True):
    """Certificates: `[tls]`."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True


class RankerConfig(Strict, frozen=True, kw_only=True):
    """One sub-query: `[rankers.NAME]`."""

    search: str | dict[str, Any] | list[Any]
    vectors: str | None = None
    depth: Annotated[int, Meta(ge=1, le=MOST_DEPTH)] | None = None


class PullConfig(Strict, frozen=True, kw_only=True):
    """What to ask whom: the keys of the TOML file."""

    engine: str
    address: str
    rankers: dict[str, RankerConfig]
    queries: str | QuerySource | None = None
    index: str = ""
    vectors: str | None = None
    depth: Annotated[int, Meta(ge=1, le=MOST_DEPTH)] = 100
    id_field: str | None = None
    texts: tuple[str, ...] = ()
    duplicates: Literal["error", "max", "first", "last"] = "error"
    auth: Auth = Auth()
    tls: Tls = Tls()
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    proxy: str | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    page_size: Positive | None = None
    rate: Annotated[float, Meta(ge=1e-6, le=1e9)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=64)] = 4
    retries: Annotated[int, Meta(ge=0, le=100)] = 5
    timeout: Annotated[float, Meta(gt=0, le=86_400)] = 30.0

    def access_options(self) -> dict[str, Any]:
        """Return what `connect` takes besides engine, address and index."""
        given = {
            **msgspec.structs.asdict(self.auth),
            **msgspec.structs.asdict(self.tls),
            "headers": self.headers,
            "proxy": self.proxy,
            "timeout": self.timeout,
            "id_field": self.id_field,
            "text_fields": self.texts,
            "options": self.options,
        }
        return {name: value for name, value in given.items() if value is not None}

    def query_source(self) -> QuerySource | None:
        """Return where the queries come from, None if the configuration does not say it."""
        return QuerySource(file=self.queries) if isinstance(self.queries, str) else self.queries

    def parts(self) -> dict[str, Any]:
        """Return what decides the content of the runs, for the digest: no secret, no speed."""
        return {
            "engine": self.engine,
            "address": self.address,
            "index": self.index,
            "rankers": {name: [one.search, one.depth or self.depth] for name, one in self.rankers.items()},
            "id_field": self.id_field,
            "texts": list(self.texts),
            "duplicates": self.duplicates,
            "options": self.options,
            "page_size": self.page_size,
        }


def read_config(
    source: str | os.PathLike[str] | Mapping[str, Any], *, place: str | None = None, **overrides: Any
) -> PullConfig:
    """Return the configuration of a TOML file or a dictionary; `overrides` replace its keys.

    `place` names the source in messages.

    Raises:
        InputError: The file cannot be read, has unknown keys or wrong values, or contains a secret.
    """
    place = place or ("configuration" if isinstance(source, Mapping) else os.fspath(source))
    document = dict(source) if isinstance(source, Mapping) else read_toml(source)
    document |= {name: value for name, value in overrides.items() if value is not None}
    try:
        return _checked(document, place)
    except RecursionError:
        raise InputError(f"{place}: expected few levels of nesting; found too many. Flatten it.") from None


def _checked(document: dict[str, Any], place: str) -> PullConfig:
    check_no_secrets(document, place)
    for name in ("engine", "address", "rankers"):
        if not document.get(name):
            raise InputError(f"{place}: expected {name}; found none. See an example: genm pull --init opensearch")
    try:
        config = msgspec.convert(document, PullConfig)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: {_fault(str(error))}") from None
    except UnicodeEncodeError as error:
        raise InputError(f"{place}: expected Unicode text; found {error.object!a:.60}. Save it as UTF-8.") from None
    check_engine(config.engine)
    for name in config.rankers:
        if not _FILE_NAME.fullmatch(name) or name in _RESERVED:
            raise InputError(
                f"{place}: rankers: expected names of letters, digits, _ . + - that can be a file's name (not "
                f"{', '.join(sorted(_RESERVED))}); found {name!r:.60}."
            )
    if "" in config.texts:
        raise InputError(f"{place}: texts: expected names of fields; found an empty one.")
    try:
        json.dumps(config.parts(), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{place}: search, options: expected text, numbers, tables and lists; found: {error}. "
            "Write dates and times as text."
        ) from None
    return config


def read_toml(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the keys of a TOML file, unchecked."""
    path = os.fspath(source)
    try:
        text = Path(path).read_text(encoding="utf-8")
        if _LONG_KEY.search(text):
            raise RecursionError
        return tomllib.loads(text)
    except OSError as error:
        raise InputError(
            f"{path}: expected a TOML file; found: {error.strerror}. Make one: genm pull --init"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected UTF-8 text; found other bytes. Save the file as UTF-8.") from None
    except RecursionError:
        raise InputError(f"{path}: expected few levels of nesting; found too many. Flatten it.") from None
    except ValueError as error:  # not TOML, an integer of thousands of digits, or NUL in the path
        raise InputError(
            f"{path}: expected TOML; found: {error!s:.200}. JSON text stands in '''three quotes'''."
        ) from None


def _fault(message: str) -> str:
    """Return msgspec's message with our words around it."""
    found = re.fullmatch(r"Object contains unknown field `(.*)`(?: - at `\$\.?(.*)`)?", message)
    if found:
        where = f"{found[2]:.200}: " if found[2] else ""
        return f"{where}expected known keys; found {found[1]!r:.60}. docs/pull.md lists the keys."
    what, _, where = message.partition(" - at `$.")
    place = f"{where.rstrip('`')[:200]}: " if where else ""
    return f"{place}{what[:1].lower()}{what[1:]}. docs/pull.md lists the keys."


def example_config(engine: str) -> str:
    """Return a commented configuration for an engine, as `genm pull --init` writes it."""
    return (files("genm.connect") / "examples" / f"{check_engine(engine)}.toml").read_text(encoding="utf-8")


def digests(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each part, so that a difference can be named."""
    return {
        name: hashlib.blake2b(
            json.dumps(value, sort_keys=True, ensure_ascii=True).encode(), digest_size=12
        ).hexdigest()
        for name, value in parts.items()
    }
