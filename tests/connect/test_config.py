import tomllib
from contextlib import suppress
from datetime import date
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.cli.pull import _toml_value
from genm.connect import PullConfig, example_config, read_config
from genm.connect.config import digests
from genm.connect.engine import Hit, checked_answer
from genm.connect.http import error_text
from genm.connect.registry import ENGINES
from genm.connect.templates import names_in
from genm.errors import EngineError, GenmError, InputError

KEYS = (*PullConfig.__struct_fields__, "search", "file", "format", "user", "password", "ca", "verify", "a", "")
SMALL = {"engine": "solr", "address": "http://x", "rankers": {"a": {"search": {"query": "$query"}}}}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_an_example_that_is_read(engine):
    text = example_config(engine)
    config = read_config(tomllib.loads(text))
    assert config.engine == engine
    assert set(config.rankers) == {"bm25", "dense"}
    assert "vector" in names_in(config.rankers["dense"].search)
    assert "# " in text
    assert max(map(len, text.splitlines())) <= 140


def test_overrides_replace_the_keys_of_the_file(tmp_path):
    path = tmp_path / "pull.toml"
    path.write_text(example_config("opensearch"), encoding="utf-8")
    assert read_config(path).depth == 100
    assert read_config(path, depth=7, rate=None).depth == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dept": 3}, "found 'dept'"),
        ({"depth": 0}, "depth: expected `int` >= 1"),
        ({"depth": "many"}, "depth: expected `int`, got `str`"),
        ({"engine": "solar"}, "Did you mean solr"),
        ({"rankers": {"a b": {"search": "$query"}}}, "names of letters"),
        ({"rankers": {"../x": {"search": "$query"}}}, "names of letters"),
        ({"rankers": {"docs": {"search": "$query"}}}, "names of letters"),
        ({"rankers": {}}, "expected rankers; found none"),
        ({"address": ""}, "expected address; found none"),
        ({"rankers": {"a": {"lookup": 1}}}, "rankers"),
        ({"texts": [""]}, "texts: expected names"),
        ({"auth": {"password": "hunter2"}}, "expected no secret"),
        ({"queries": {"format": "log"}}, "missing required field `file`"),
        ({"options": {"since": date(2024, 1, 1)}}, "search, options: expected text, numbers.*Write dates"),
        ({"rankers": {"a": {"search": {"boost": inf, "query": "$query"}}}}, "search, options: expected text"),
        ({"rate": 1e-320}, "rate: expected `float` >= 1e-06"),
        ({"k" * 5000: 1}, "expected known keys"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(change, message):
    with pytest.raises(InputError, match=message) as caught:
        read_config({**SMALL, **change}, place="pull.toml")
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 500


DEEP = {"key": "a" + ".a" * 50_000, "list": "a = " + "[" * 50_000, "table": "a = " + "{a=" * 50_000}


@pytest.mark.parametrize("text", [DEEP["key"] + " = 1", DEEP["list"], DEEP["table"]], ids=list(DEEP))
def test_a_deeply_nested_file_is_refused(tmp_path, text):
    path = tmp_path / "pull.toml"
    path.write_text(f'engine = "solr"\naddress = "http://x"\n{text}\n', encoding="utf-8")
    with pytest.raises(InputError, match="expected few levels of nesting"):
        read_config(path)


def test_what_python_cannot_read_is_refused(tmp_path):
    path = tmp_path / "pull.toml"
    path.write_text(f"depth = {'1' * 5000}\n", encoding="utf-8")
    with pytest.raises(InputError, match="expected TOML; found: Exceeds the limit"):
        read_config(path)
    with pytest.raises(InputError, match="expected TOML; found: embedded null"):
        read_config("a\0b")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["$query", "log"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5))
def test_no_configuration_breaks_the_reader(change):
    with suppress(GenmError):
        read_config({**SMALL, **change})


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"engine = ", "expected TOML"), (b"\xff\xfe", "expected UTF-8"), (None, "found: No such file")],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, content, message):
    path = tmp_path / "pull.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_config(path)


def test_the_digest_names_what_decides_the_content_and_no_secret(monkeypatch):
    monkeypatch.setenv("P", "hunter2")
    plain = read_config(SMALL)
    faster = read_config({**SMALL, "concurrency": 9, "rate": 3.0, "auth": {"user": "me", "password": "env:P"}})
    assert digests(plain.parts()) == digests(faster.parts())
    deeper = digests(read_config({**SMALL, "depth": 5}).parts())
    assert [name for name, digest in digests(plain.parts()).items() if digest != deeper[name]] == ["rankers"]


def test_settings_that_python_cannot_read_are_text():
    for text in ("[" * 100_000, "1" * 5000, "1\nother = 2", "no TOML"):
        assert _toml_value(text) == text
    assert _toml_value("[1, 2]") == [1, 2]


def test_a_word_that_is_no_text_is_refused():
    with pytest.raises(InputError, match="expected Unicode text"):
        read_config({**SMALL, "duplicates": "\udcff"})
    with pytest.raises(InputError, match="search, options"):
        read_config({**SMALL, "options": {"a": "\udcff"}})


@pytest.mark.parametrize("score", [10**400, float("inf"), float("nan"), True, "1"])
def test_a_score_of_an_engine_that_is_no_finite_number_is_refused(score):
    with pytest.raises(EngineError, match="expected a finite score"):
        checked_answer([Hit("d1", score, None)], "x", "", "error")


def test_an_error_page_that_is_nested_deeply_is_shown_as_text():
    assert error_text("[" * 100_000).startswith("[[[")
