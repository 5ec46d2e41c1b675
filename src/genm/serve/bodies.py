"""Reading bodies: JSON of a known kind, or a refusal that names the place.

A parser keeps the last of two equal keys of an object without a word, so they are looked for here. Nearly every
body of `/v1/fuse` has as many colons as keys that the parser found, and then none is there twice. Other bodies are
scanned by a kernel; only where that finds something is the body read once more, by a parser that shows every key.
"""

import json
import re
import secrets
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import numpy as np

from genm._math.json_text import may_repeat_a_key
from genm.serve.messages import Columns, FuseRequest, RequestError, invalid

T = TypeVar("T")

SECRET = np.uint64(secrets.randbits(64))
"""What hashes of text from outside begin with, different in every process."""


_PLACE = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_GOT = re.compile(r"^Expected `(?P<expected>[^`]*)`(?P<more>[^`]*?)(?:, got `(?P<found>[^`]*)`)?$")
_LACKING = re.compile(r"^Object missing required field `(?P<name>[^`]*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<name>.*)`$", re.DOTALL)
_DEEPEST = 64


class Body:
    """Decodes one kind of body."""

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def read(self, content: bytes) -> Any:
        """Return the body, or raise a refusal that says which part of it does not fit."""
        found = self._decode(content)
        check_keys(content, count_keys(found) if type(found) is FuseRequest else None)
        return found

    def _decode(self, content: bytes) -> Any:
        try:
            return self._decoder.decode(content)
        except msgspec.ValidationError as error:
            raise _misfit(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            found = f"{error}" if content else "an empty body"
            advice = "NaN and Infinity are no JSON numbers." if b"NaN" in content or b"Infinity" in content else ""
            raise RequestError(400, "json", "body", "JSON in UTF-8", found, advice or "Check the writer.") from None
        except RecursionError:
            raise RequestError(
                400, "json", "body", f"at most {_DEEPEST} levels of nesting", "more", "Flatten it."
            ) from None


def _misfit(text: str) -> RequestError:
    place = "body"
    at = _PLACE.search(text)
    if at:
        place, text = f"body{at[1]}", text[: at.start()]
    if found := _LACKING.match(text):
        return invalid(place, f"the field {found['name']!r}", "none", "Add it. /openapi.json has every field.")
    if found := _UNKNOWN.match(text):
        name = found["name"][:80]
        return invalid(place, "known fields only", f"{name!r}", "Check the spelling; see /openapi.json.")
    if found := _GOT.match(text):
        expected = _WORDS.get(found["expected"], found["expected"]) + found["more"]
        return invalid(place, expected, found["found"] or "something else", "Correct the value.")
    if text == "Number out of range":
        return invalid(place, "a number of double precision", "one beyond 1.8e308", "Scale the scores.")
    return invalid(place, "another value", text[:120], "/openapi.json says what each field takes.")


_WORDS = {"float": "a number", "int": "an integer", "str": "a string", "array": "an array", "object": "an object"}


def count_keys(request: FuseRequest, n_columns: int | None = None) -> int:
    """Return how many different keys the body of a request has at least, one object after another.

    A field that has its default value may have been given or not, so it does not count. `n_columns` says how many
    of the lists are columns, if that is known.
    """
    if n_columns is None:
        n_columns = sum(type(one) is Columns for one in request.runs.values())
    n = 1 + len(request.runs) + 2 * n_columns
    for given in (request.query_id, request.rankers, request.version, request.top, request.group, request.text):
        n += given is not None
    for keyed in (request.weights, request.columns):
        n += 0 if keyed is None else 1 + len(keyed)
    return n + request.explain


class _Object(list[tuple[str, Any]]):
    """The keys and values of an object, as often as they are there."""


def check_keys(content: bytes, n_keys: int | None = None) -> None:
    """Refuse a body in which an object holds a key twice; `n_keys` is a number of different keys that it has."""
    n_colons = content.count(b":")
    if n_colons == n_keys:
        return
    table = np.zeros(table_size(n_colons), np.uint64)
    if not may_repeat_a_key(np.frombuffer(content, np.uint8), SECRET, table):
        return
    whole = json.loads(content, object_pairs_hook=_Object, parse_int=str, parse_float=str)
    for place, key in _repeated(whole, "body"):
        raise _refusal(place, key)


def _refusal(place: str, key: str) -> RequestError:
    return invalid(place, "each key once", f"{key[:80]!r} twice", "Leave one of the two out.")


def table_size(n_entries: int) -> int:
    """Return a power of two that is at least twice the number of entries."""
    return 1 << (2 * n_entries + 1).bit_length()


def _repeated(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield the place of every object with a repeated key, and the key; outer objects first."""
    if isinstance(value, _Object):
        seen = set[str]()
        for key, _ in value:
            if key in seen:
                yield place, key
            seen.add(key)
        for key, item in value:
            yield from _repeated(item, f"{place}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _repeated(item, f"{place}[{number}]")
    else:
        pass  # a plain value
