"""Strict reading of our JSON files: what is not exactly as described is refused, with place, expected and found.

`parse_json` refuses what Python's parser accepts but no file of ours holds: a key given twice, NaN, numbers beyond
all floats, halves of characters (lone surrogates), thousands of levels of nesting. `convert` checks the document
against a msgspec type and names the first place that is wrong, such as `rankers[0].weight`.
"""

import json
import math
import sys
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from genm.errors import ModelError

T = TypeVar("T")

EDITED = "Was the file edited by hand?"
_MAX = sys.float_info.max
_LONGEST_INTEGER = 300
"""Digits: a longer one fits no float, and Python refuses to read one of more than 4,300."""

Finite = Annotated[float, Meta(ge=-_MAX, le=_MAX, description="a finite number")]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1, description="an integer from 0 to 2^63 - 1")]
PositiveCount = Annotated[int, Meta(ge=1, le=2**63 - 1, description="an integer from 1 to 2^63 - 1")]

_KINDS = {
    str: "a string", int: "an integer", float: "a number", bool: "true or false", NoneType: "null", list: "a list",
    tuple: "a list", dict: "an object",
}  # fmt: skip


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the records that files hold: every key without a default is required, and no other is allowed."""


def strict_record(record: type) -> type[msgspec.Struct]:
    """Return a strict type with the fields of a dataclass, all of them required: a file leaves out none."""
    return msgspec.defstruct(record.__name__, list(get_type_hints(record).items()), bases=(Strict,))


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object for `object_pairs_hook`, or raise ValueError for a key that it has twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"{twice!r:.60} twice")
    return found


def parse_json(content: bytes, place: str, *, what: str, advice: str) -> Any:
    """Return the document of a JSON file; `what` names what the file should be, `advice` says how to get one."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(
            f"{place}: expected UTF-8 JSON; found byte {error.object[error.start]:#x}. {advice}"
        ) from None
    if not text.strip():
        raise ModelError(f"{place}: expected {what}; found an empty file. {advice}")

    def refuse_number(number: str) -> ModelError:
        line = text[: text.find(number)].count("\n") + 1
        shown = number if len(number) < 30 else f"{number[:20]}..., {len(number):,} characters"
        return ModelError(f"{place}:{line}: expected numbers that fit 64 bits; found {shown}. {EDITED}")

    def to_float(number: str) -> float:
        if math.isinf(value := float(number)):
            raise refuse_number(number)
        return value

    def to_int(number: str) -> int:
        if len(number) > _LONGEST_INTEGER:
            raise refuse_number(number)
        return int(number)

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        try:
            return unique_keys(pairs)
        except ValueError as error:
            raise ModelError(f"{place}: expected each key once; found {error}. {EDITED}") from None

    def refuse_constant(name: str) -> float:
        raise refuse_number(name)

    try:
        document = json.loads(
            text,
            object_pairs_hook=to_object,
            parse_float=to_float,
            parse_int=to_int,
            parse_constant=refuse_constant,
        )
        if "\\ud" in text.lower():
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise ModelError(f"{place}: expected Unicode text; found half a character, {half}. {EDITED}") from None
    except json.JSONDecodeError as error:
        raise ModelError(f"{place}:{error.lineno}: expected JSON; {_syntax_fault(text, error)} {advice}") from None
    except RecursionError:
        raise ModelError(f"{place}: expected {what}; found lists or objects nested too deeply. {advice}") from None


def _syntax_fault(text: str, error: json.JSONDecodeError) -> str:
    if not text.lstrip().startswith("{"):
        return "found something else."
    if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
        return "the file ends in the middle. Was it copied in full?"
    return f"{error.msg}. {EDITED}"


def check_head(document: object, head: str, version: int, what: str, place: str) -> None:
    """Refuse a document that is not `what` (such as "a model"), or one of another version."""
    if not isinstance(document, dict):
        raise ModelError(f"{place}: expected an object; found {_shown(document)}. {EDITED}")
    if document.get("format") != head:
        raise ModelError(
            f'{place}: expected "format": "{head}"; found {_shown(document.get("format"))}. '
            f"This is not {what} written by genm."
        )
    found = document.get("version")
    if type(found) is not int or found != version:
        raise ModelError(
            f"{place}: expected {what.removeprefix('a ')} version {version}; found {_shown(found)}. "
            f"Use the genm release that wrote it, or fit again."
        )


def convert(document: object, kind: type[T], place: str, path: str = "") -> T:
    """Return the document as a value of the type, or say where and how it differs from the type.

    `path` is where the document lies within the file `place`, such as `rankers[0].normalizer`.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        raise ModelError(f"{place}: {_fault(document, kind, path)}") from None


def _fault(value: object, hint: Any, path: str) -> str:
    """Return the first place within the value that does not fit the type, what was expected and what is there."""
    for option in _options(hint):
        kind = get_args(option)[0] if get_origin(option) is Annotated else option
        container = get_origin(kind) or kind
        inside: list[tuple[str, object, Any]] = []
        if isinstance(value, dict) and isinstance(container, type) and issubclass(container, msgspec.Struct):
            hints = get_type_hints(container, include_extras=True)
            if unknown := [key for key in value if key not in hints]:
                return f"{_prefix(path)}unknown key {_listed(unknown)}. A newer genm may have written this file."
            for field in msgspec.structs.fields(container):
                if field.name not in value and field.required:
                    return f'{_prefix(path)}expected the key "{field.name}"; it is missing. {EDITED}'
            inside = [(f"{path}.{key}", item, hints[key]) for key, item in value.items()]
        elif isinstance(value, dict) and container is dict:
            item_hint = get_args(kind)[1]
            inside = [(f"{path}[{json.dumps(key)}]", item, item_hint) for key, item in value.items()]
        elif isinstance(value, list | tuple) and container in (list, tuple):
            inside = [(f"{path}[{i}]", item, get_args(kind)[0]) for i, item in enumerate(value)]
        for item_path, item, item_hint in inside:
            if not _fits(item, item_hint):
                return _fault(item, item_hint, item_path)
    expected = " or ".join(map(_description, _options(hint)))
    return f"{_prefix(path)}expected {expected}; found {_shown(value)}. {EDITED}"


def _listed(keys: list[str], most: int = 5) -> str:
    """Return the first few keys, none of them longer than 60 characters."""
    return ", ".join(f"{key!r:.60}" for key in keys[:most]) + (
        f" and {len(keys) - most} more" if keys[most:] else ""
    )


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: object, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _description(option: Any) -> str:
    if get_origin(option) is Annotated:
        return next(meta.description for meta in get_args(option)[1:] if isinstance(meta, Meta)) or "a value"
    if get_origin(option) is Literal:
        return " or ".join(map(json.dumps, get_args(option)))
    return _KINDS.get(get_origin(option) or option, "an object")


def _prefix(path: str) -> str:
    return f"{path.removeprefix('.')}: " if path else ""


def _shown(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."
