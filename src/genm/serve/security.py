"""Who may do what: bearer tokens with roles, kept as hashes and compared in constant time.

A token is 256 random bits, so a plain SHA-256 of it cannot be guessed back. Tokens are required wherever the
service can be reached from outside. On the loopback interface, without a token file, every caller is `local`.
"""

import hashlib
import hmac
import ipaddress
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from genm.errors import InputError
from genm.io import whole_file
from genm.serve.messages import RequestError

Role = Literal["fuse", "feedback", "admin"]
ROLES: tuple[str, ...] = get_args(Role)
"""fuse: fuse and read; feedback: send feedback and read; admin: everything."""

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""On every answer. No CORS header is ever sent, so pages of other origins can read nothing."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ANSWER_POLICY = "default-src 'none'; frame-ancestors 'none'"


class Token(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is kept of a token."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    roles: list[Role]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    trusted: bool = False
    """Whether only the clients that its events name are limited in their influence, not the token as a whole."""


class TokenFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The file of tokens."""

    format: Literal["genm-tokens"]
    version: Literal[1]
    tokens: list[Token]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    name: str
    roles: frozenset[str]
    trusted: bool

    def may(self, role: str | None) -> bool:
        """Tell whether the caller has the role; None is any."""
        return role is None or role in self.roles or "admin" in self.roles

    def clients(self, named: str | None) -> tuple[str, ...]:
        """Return whose influence an event of this caller uses; `named` is the client that the event names."""
        if named is None:
            return (self.name,)
        return (f"{self.name}/{named}",) if self.trusted else (self.name, f"{self.name}/{named}")


LOCAL = Caller("local", frozenset(("admin",)), trusted=False)


class Tokens:
    """The tokens of a file; read anew when the file changes, so that a token can be withdrawn at once."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._tokens: list[Token] = []
        self.refresh()

    def refresh(self) -> None:
        """Read the file if it has changed."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._stamp, self._tokens = None, []
            return
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp == self._stamp:
            return
        try:
            self._tokens = msgspec.json.decode(self.path.read_bytes(), type=TokenFile).tokens
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(
                f"{self.path}: expected a file of tokens; {error}. Write it by: genm serve token"
            ) from None
        self._stamp = stamp

    def __len__(self) -> int:
        return len(self._tokens)

    def caller(self, presented: str) -> Caller | None:
        """Return whose token this is. The time that it takes does not depend on how much of it is right."""
        given = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).hexdigest()
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.sha256, given):
                found = token
        return None if found is None else Caller(found.name, frozenset(found.roles), found.trusted)

    def add(self, name: str, roles: list[Role], *, trusted: bool = False) -> str:
        """Make a token under a new name and return it; it is not kept and cannot be shown again."""
        if any(token.name == name for token in self._tokens):
            raise InputError(f"{name}: a token of this name exists. Withdraw it first, or choose another name.")
        secret = f"genm_{secrets.token_urlsafe(32)}"
        made = {
            "name": name,
            "roles": roles,
            "sha256": hashlib.sha256(secret.encode()).hexdigest(),
            "trusted": trusted,
        }
        try:
            token = msgspec.convert(made, Token)
        except msgspec.ValidationError as error:
            raise InputError(f"{name}: expected a name of letters, digits, '.', '_' and '-'; {error}.") from None
        self._write([*self._tokens, token])
        return secret

    def withdraw(self, name: str) -> None:
        """Remove a token."""
        kept = [token for token in self._tokens if token.name != name]
        if len(kept) == len(self._tokens):
            names = ", ".join(token.name for token in self._tokens) or "none"
            raise InputError(f"{name}: expected the name of a token; there are: {names}.")
        self._write(kept)

    def names(self) -> list[tuple[str, list[Role], bool]]:
        """Return name, roles and trust of every token."""
        return [(token.name, list(token.roles), token.trusted) for token in self._tokens]

    def _write(self, tokens: list[Token]) -> None:
        content = msgspec.json.format(msgspec.json.encode(TokenFile("genm-tokens", 1, tokens)), indent=2)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))  # nobody else may read it
        with whole_file(self.path) as file:
            file.write(content + b"\n")
        self._stamp = None
        self.refresh()


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Gate:
    """Decides about each request before its body is read."""

    def __init__(self, tokens: Tokens | None, hosts: tuple[str, ...]) -> None:
        """Take the tokens, None where none are needed, and then the names under which the service may be called."""
        self.tokens, self.hosts = tokens, hosts

    def caller(self, headers: Mapping[str, str], role: str | None) -> Caller:
        """Return who sends the request, or refuse it."""
        if self.tokens is None:
            self._check_origin(headers)
            return LOCAL
        kind, _, presented = headers.get("authorization", "").partition(" ")
        caller = self.tokens.caller(presented.strip()) if kind.lower() == "bearer" else None
        if caller is None:
            raise RequestError(
                401, "token", "header Authorization", "Bearer and a valid token", kind[:20] or "none",
                "Make one with: genm serve token add NAME",
            )  # fmt: skip
        if not caller.may(role):
            raise RequestError(
                403, "role", "token", f"the role {role}", " and ".join(sorted(caller.roles)), "Use another token."
            )
        return caller

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Without tokens, keep out pages of other origins that make a browser on this machine send requests."""
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if name.strip("[]").lower() not in self.hosts:
            raise RequestError(
                403, "host", "header Host", f"one of {', '.join(self.hosts)}", f"{host[:60]!r}", "Use that name."
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise RequestError(
                403, "origin", "header Origin", "a page of this service", f"{origin[:60]!r}", "Use a token instead."
            )
