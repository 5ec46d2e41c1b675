"""How an engine is reached: address, certificates, proxy, and credentials from the environment or a key ring.

A secret is written as `env:NAME` or `keyring:SERVICE/USER`. A configuration that contains a secret itself is
refused, and secrets are removed from every message.
"""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from genm.errors import InputError, MissingExtraError

SECRET_KEYS = ("password", "token", "api_key")
"""What `[auth]` may name besides `user`."""
HIDDEN = "***"

_REFERENCE = re.compile(r"(env|keyring):(.+)", re.DOTALL)
_SECRET_NAME = re.compile(
    r"(pass(word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|credentials?|authorization|cookie|private[-_]?key)$",
    re.IGNORECASE,
)
_SECRET_VALUES = (
    re.compile(r"://[^/\s:@]*:[^/\s@]+@"),  # a password inside an address
    re.compile(r"\b(basic|bearer|apikey)\s+[A-Za-z0-9+/=_.~-]{8,}", re.IGNORECASE),
    re.compile(r"\b(password|passwd|pwd|token|api_?key|secret)\s*=\s*[^\s&;]+", re.IGNORECASE),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\."),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
)
_ADVICE = 'Write "env:NAME" and put the secret into the environment variable NAME, or "keyring:SERVICE/USER".'


@dataclass(frozen=True)
class Access:
    """Where an engine is and how to get in. Its representation shows no secret."""

    address: str
    index: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    proxy: str | None = field(default=None, repr=False)
    verify: bool = True
    timeout: float = 30.0
    id_field: str | None = None
    text_fields: tuple[str, ...] = ()
    """Fields whose texts are pulled along."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings that one engine has, such as the core's name or a vector's metric."""

    def redacted(self, text: str) -> str:
        """Return the text without any of the secrets."""
        secrets = [self.password, self.token, self.api_key, *self.headers.values()]
        if self.proxy and (inside := urlsplit(self.proxy).password):
            secrets.append(inside)
        for secret in sorted({s for s in secrets if s and len(s) > 2}, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    def url(self) -> str:
        """Return the address as a URL without a slash at the end, or say what is wrong with it."""
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"address: expected a URL such as https://localhost:9200; found {self.address!r:.80}. Give the "
                "whole "
                "address, with http or https; nothing is guessed."
            )
        return self.address.rstrip("/")

    def ssl_context(self) -> ssl.SSLContext:
        """Return the context for TLS: certificates are checked unless `verify` is false."""
        for path in (self.ca, self.cert, self.key):
            if path is not None and not Path(path).is_file():
                raise InputError(f"tls: expected the file {path}; found none. Check the path.")
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.cert is not None:
                context.load_cert_chain(self.cert, self.key)
        except (ssl.SSLError, OSError) as error:
            raise InputError(
                f"tls: expected certificates in PEM form; found: {error}. Check ca, cert and key."
            ) from None
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def load_library(module: str, what: str, extra: str) -> Any:
    """Import an optional library, or name the extra that brings it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(what, extra) from None


def check_no_secrets(value: object, place: str, path: str = "") -> None:
    """Refuse a configuration that contains a secret; the message names the key, never the value."""
    for key, item in _strings(value, path):
        name = key.rpartition(".")[2].partition("[")[0]
        reference = _REFERENCE.fullmatch(item)
        suspicious = any(pattern.search(item) for pattern in _SECRET_VALUES)
        named = _SECRET_NAME.search(name) and not item.startswith("$")  # a field of a template may be called token
        if reference is None and item and (suspicious or named):
            raise InputError(
                f"{place}: {key}: expected no secret in the file; found what looks like one. {_ADVICE}"
            )


def _strings(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _strings(item, f"{path}[{i}]")


def resolve_secret(reference: str, place: str) -> str:
    """Return the secret that `env:NAME` or `keyring:SERVICE/USER` refers to."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise InputError(f"{place}: expected a reference to a secret; found something else. {_ADVICE}")
    kind, name = found.groups()
    if kind == "env":
        if not os.environ.get(name):
            raise InputError(f"{place}: expected the environment variable {name}; found it unset or empty. Set it.")
        return os.environ[name]
    service, slash, user = name.rpartition("/")
    if not slash:
        raise InputError(f"{place}: expected keyring:SERVICE/USER; found no / in it. Name both.")
    keyring = load_library("keyring", "a key ring", "keyring")
    try:
        secret = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise InputError(f"{place}: the key ring cannot be read: {error}. Use an environment variable.") from None
    if not secret:
        raise InputError(
            f"{place}: expected an entry {service!r} for {user!r} in the key ring; found none. Make it with: "
            f"keyring set {service} {user}"
        )
    return str(secret)
