"""Documents are held against their type; whatever is wrong, the error is ours and names the place."""

import contextlib
import json
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.errors import ModelError
from genm.strict_json import Count, Finite, Strict, convert, parse_json


class Inner(Strict, frozen=True):
    number: Finite
    word: Literal["a", "b"] | None
    table: dict[str, tuple[Finite, ...]]


class Outer(Strict, frozen=True):
    inner: tuple[Inner, ...]
    count: Count
    free: dict[str, Any]
    maybe: Inner | None = None


GOOD = {"inner": [{"number": 1, "word": None, "table": {"x y": [1.0]}}], "count": 2, "free": {"any": [None]}}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value within the document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inside for found in places(item, (*path, key)))]


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = changed(document[path[0]], path[1:], value)
    return copy


@given(st.sampled_from(places(GOOD)), json_values)
def test_a_document_fits_exactly_where_msgspec_says_so(path: tuple[Any, ...], value: Any) -> None:
    document = changed(GOOD, path, value)
    try:
        expected = msgspec.convert(document, Outer)
    except msgspec.ValidationError:
        with pytest.raises(ModelError, match=r"^f\.json: .*(expected .*; (found|it is missing)|unknown key)"):
            convert(document, Outer, "f.json")
    else:
        assert convert(document, Outer, "f.json") == expected


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("inner", 0, "number"), "1", 'f.json: inner[0].number: expected a finite number; found "1". Was the file'),
        (("inner", 0, "word"), "c", 'f.json: inner[0].word: expected "a" or "b" or null; found "c".'),
        (("inner", 0, "table", "x y"), [1, True], 'inner[0].table["x y"][1]: expected a finite number; found'),
        (("inner", 0), [], "f.json: inner[0]: expected an object; found a list of 0."),
        (("inner",), [{}], 'f.json: inner[0]: expected the key "number"; it is missing. Was the file edited'),
        (("count",), -1, "f.json: count: expected an integer from 0 to 2^63 - 1; found -1."),
        (("free",), "x" * 99, f'f.json: free: expected an object; found "{"x" * 59}...'),
        ((), {"a": 1, **GOOD}, "f.json: unknown key 'a'. A newer genm may have written this file."),
        ((), {**GOOD, "maybe": {"size": 1}}, "f.json: maybe: unknown key 'size'."),
        ((), {**GOOD, "maybe": 3}, "f.json: maybe: expected an object or null; found 3."),
    ],
)
def test_the_first_fault_is_named(path: tuple[Any, ...], value: Any, says: str) -> None:
    with pytest.raises(ModelError) as error:
        convert(changed(GOOD, path, value), Outer, "f.json")
    assert says in str(error.value)


def parsed(content: bytes) -> Any:
    return parse_json(content, "f.json", what="a model", advice="Make one.")


@given(json_values)
def test_what_json_writes_is_read_or_refused_as_a_number(value: Any) -> None:
    content = json.dumps(value).encode()
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        with pytest.raises(ModelError, match=r"f\.json:1: expected numbers that fit 64 bits; found [NI-]"):
            parsed(content)
    else:
        assert parsed(content) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_json_or_a_model_error(content: bytes) -> None:
    with contextlib.suppress(ModelError):
        parsed(content)


@pytest.mark.parametrize("depth", [10, 500, 900, 1000, 5000, 100_000])
def test_nesting_of_any_depth_ends_in_a_model_error(depth: int) -> None:
    inside = b'{"free": ' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(ModelError, match=r"nested too deeply|it is missing"):
        convert(parsed(inside), Outer, "f.json")


def test_half_a_character_is_refused():
    for text in ('{"a": "\\ud800"}', '{"\\uDFFF": 1}', '["x", {"b": "\\udabc\\udabc"}]'):
        with pytest.raises(ModelError, match=r"m\.json: expected Unicode text; found half a character, '.u[d]"):
            parse_json(text.encode(), "m.json", what="a model", advice="")
    assert parse_json(b'{"a": "\\ud83d\\ude00"}', "m.json", what="a model", advice="") == {"a": "\U0001f600"}
