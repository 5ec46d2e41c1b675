import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.errors import ExportError
from genm.export import quoting


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_json_and_python_text_are_read_back(value: object) -> None:
    assert json.loads(quoting.to_json(value)) == value
    assert eval(quoting.py_literal(value)) == value


def test_short_lists_of_numbers_stay_on_a_line() -> None:
    assert quoting.to_json({"weights": [0.5, -1.0], "text": "[ 1, 2 ]"}) == (
        '{\n  "weights": [0.5, -1.0],\n  "text": "[ 1, 2 ]"\n}\n'
    )


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_sql_text_holds_its_quotes(text: str) -> None:
    literal = quoting.sql_text(text)
    inner = literal.removeprefix("E")[1:-1].replace("''", "")
    assert "'" not in inner


def test_sql_names() -> None:
    assert quoting.sql_name("public.Art icles", "table") == '"public"."Art icles"'
    assert quoting.sql_name('a"b', "table") == '"a""b"'


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_one_argument_stays_one_argument(text: str) -> None:
    assert len(shlex.split(quoting.cli_word(text))) == 1


def test_comments_stay_on_their_line() -> None:
    assert quoting.one_line("a\nb\u2028c") == "a\\x0ab\\x2028c"


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "é"])
def test_plain_names(name: str) -> None:
    with pytest.raises(ExportError, match="Rename it"):
        quoting.plain_name(name, "field", "Rename it.")
