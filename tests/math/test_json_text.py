"""Kernels over JSON text, held to Python's own parser and dictionaries."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm._math.json_text import GAVE_UP, enter_columns, may_repeat_a_key, write_ids

SECRET = np.uint64(12345)
keys = st.text('ab:\\"é {}[],', max_size=2)
plain = st.none() | st.booleans() | st.integers() | st.text('a:\\"{}[],é', max_size=5)


class Pairs(list):
    """An object whose keys may repeat."""


documents = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.lists(st.tuples(keys, inner), max_size=4).map(Pairs),
    max_leaves=20,
)


def written(value, space=""):
    """JSON with repeated keys, which `json.dumps` cannot write."""
    if isinstance(value, Pairs):
        inside = f",{space}".join(f"{json.dumps(k)}{space}:{space}{written(v, space)}" for k, v in value)
        return "{" + inside + "}"
    if isinstance(value, list):
        return "[" + f"{space},".join(written(one, space) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def scan(text):
    content = np.frombuffer(text.encode(), np.uint8)
    table = np.zeros(1 << (2 * len(content) + 1).bit_length(), np.uint64)
    return may_repeat_a_key(content, SECRET, table)


def repeats(text):
    found = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append(len(dict(pairs)) < len(pairs)))
    return any(found)


def has_escaped_key(text):
    found = []
    json.loads(text, object_pairs_hook=lambda pairs: found.extend(json.dumps(key) for key, _ in pairs))
    return any("\\" in key for key in found)


@given(documents, st.sampled_from(["", " ", "\n\t"]))
def test_a_repeated_key_is_never_missed(document, space):
    text = written(document, space)
    found = scan(text)
    if repeats(text):
        assert found
    elif not has_escaped_key(text):
        assert not found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', True),
        ('{"a": {"b": 1}, "c": {"b": 1}}', False),
        ('{"a": {"b": 1, "b": 2}}', True),
        ('[{"a": 1}, {"a": 1}]', False),
        ('{"a": ["a", "a"], "b": "a"}', False),
        ('{"a": [{"x": 1}, {"y": 1, "y": 2}]}', True),
        ('{"a": {}, "a": {}}', True),
        ('{"a": [], "b": 0, "a": 1}', True),
        ('{"a": 1, "\\u0061": 2}', True),
        ('{"\\u0061": 1}', True),  # only a closer look can tell
        ('{"a": "\\\\", "b": "\\""}', False),
        ("[" * 100 + "]" * 100, True),  # deeper than any body of ours
    ],
)
def test_repeated_keys_by_hand(text, expected):
    assert scan(text) is expected


def test_a_table_that_fills_up_is_no_endless_search():
    text = "{" + ",".join(f'"k{number}": 0' for number in range(200)) + "}"
    assert may_repeat_a_key(np.frombuffer(text.encode(), np.uint8), SECRET, np.zeros(128, np.uint64))


ids = st.text(st.characters(codec="ascii", exclude_characters='"\\', exclude_categories=("Cc",)), min_size=1)
several_lists = st.lists(st.lists(ids, min_size=1, max_size=9, unique=True), min_size=1, max_size=4)


def entered(lists, text=None, longest=512, places=None):
    sizes = [len(one) for one in lists]
    n = sum(sizes)
    content = "".join(map(json.dumps, lists)) if text is None else text
    given_text = np.frombuffer(content.encode(), np.uint8)
    table = np.full(places or 1 << (2 * n + 1).bit_length(), -1, np.int32)
    spans, raw, retrieved = np.empty((n, 2), np.int64), np.zeros((n, 4)), np.zeros((n, 4), np.bool_)
    columns, scores = np.arange(len(lists))[::-1].copy(), np.arange(1.0, n + 1)
    found = enter_columns(
        given_text, np.array(sizes), columns, scores, longest, SECRET, table, spans, raw, retrieved
    )
    return found, given_text, spans, raw, retrieved


@given(several_lists)
def test_ids_are_numbered_as_a_dictionary_does(lists):
    n_docs, text, spans, raw, retrieved = entered(lists)
    number = {}
    expected = np.zeros_like(raw)
    score = 0.0
    for k, one in enumerate(lists):
        for doc in one:
            score += 1.0
            expected[number.setdefault(doc, len(number)), len(lists) - 1 - k] = score
    assert n_docs == len(number)
    assert raw.tolist() == expected.tolist()
    assert retrieved.tolist() == (expected > 0).tolist()
    found = [text[start:end].tobytes().decode() for start, end in spans[:n_docs]]
    assert found == list(number)
    order = np.arange(n_docs)[::-1].copy()
    out = np.empty(len(text) + 2, np.uint8)
    size = write_ids(text, spans, order, out)
    assert json.loads(out[:size].tobytes()) == found[::-1]


def test_no_ids_are_an_empty_list():
    _, text, spans, _, _ = entered([["a"]])
    out = np.empty(len(text) + 2, np.uint8)
    assert out[: write_ids(text, spans, np.empty(0, np.int64), out)].tobytes() == b"[]"


@pytest.mark.parametrize(
    "text",
    [
        '["a", "a"]', '["a", "é"]', '["a", "\\u0062"]', '["a", ""]', '["a", 1]', '["a"]', '["a", "b", "c"]',
        '[["a", "b"]]', '["a" "b"]', '{"a": 1}', "null", '["a", "bcd"]', '["a", "\x7f"]', "", "[", '["a',
    ],
)  # fmt: skip
def test_what_is_not_plain_is_given_up(text):
    assert entered([["a", "b"]], text, longest=2)[0] == GAVE_UP


def test_spaces_between_ids_do_not_matter():
    assert entered([["a", "b"], ["b", "c"]], ' [ "a" ,\n"b" ]  ["b","c" ]')[0] == 3


def test_a_table_of_ids_that_fills_up_is_no_endless_search():
    assert entered([[f"d{number}" for number in range(200)]], places=128)[0] == GAVE_UP
