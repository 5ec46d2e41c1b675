"""The OpenAPI description, made from the same types that decode the bodies."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from genm.serve.messages import FaultAnswer
from genm.version import __version__

_FAULTS = {
    400: "not JSON",
    401: "no valid token",
    403: "the token lacks the role, or the request comes from elsewhere",
    404: "no such version",
    408: "the body came too slowly",
    409: "the key was used with another body",
    413: "the body is too large",
    415: "the body is not application/json",
    422: "the body does not fit",
    429: "too many requests of one client",
    503: "the store cannot be written; nothing was acknowledged",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint as it is described."""

    path: str
    method: str
    summary: str
    answer: Any
    """The type of the answer, or its media type where it is no JSON."""
    body: Any = None
    role: str | None = None
    is_open: bool = False
    """Whether no token is needed."""
    parameters: tuple[tuple[str, Any, str], ...] = ()
    """Name, type and text of each parameter of the query."""


def describe(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document of the operations."""
    given = list(operations)
    types = [
        kind for one in given for kind in (one.body, one.answer) if kind is not None and not isinstance(kind, str)
    ]
    types += [FaultAnswer, *(kind for one in given for _, kind, _ in one.parameters)]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    of_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in given:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, of_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "genm serve",
            "version": __version__,
            "summary": "Fuses ranked lists and learns from feedback.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation, of_type: dict[str, Any]) -> dict[str, Any]:
    media = one.answer if isinstance(one.answer, str) else "application/json"
    schema = {"type": "string"} if isinstance(one.answer, str) else of_type[repr(one.answer)]
    fault = {"application/json": {"schema": of_type[repr(FaultAnswer)]}}
    found: dict[str, Any] = {
        "operationId": f"{one.method.lower()}{one.path.replace('/', '_')}",
        "summary": one.summary,
        "security": [] if one.is_open else [{"token": []}, {}],
        "responses": {
            "200": {"description": "done", "content": {media: {"schema": schema}}},
            **{str(status): {"description": text, "content": fault} for status, text in _FAULTS.items()},
        },
    }
    if one.role is not None:
        found["description"] = f"Needs the role {one.role}."
    if one.parameters:
        found["parameters"] = [
            {"name": name, "in": "query", "required": False, "description": text, "schema": of_type[repr(kind)]}
            for name, kind, text in one.parameters
        ]
    if one.body is not None:
        found["requestBody"] = {
            "required": True, "content": {"application/json": {"schema": of_type[repr(one.body)]}},
        }  # fmt: skip
    return found
