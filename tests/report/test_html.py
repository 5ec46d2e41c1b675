"""The shell: a document that asks for nothing from outside, and text that stays text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from genm.report.html import asset, embed_json, html_page

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'`&<>",
    "line\u2028and\u2029paragraph",
    "\u202etxet\u202c",
    "<!--",
    "]]>",
    "\ud800 alone",
    "nul\x00",
    "😀 שלום",
)


class Elements(HTMLParser):
    """Every element of a document with its attributes, and the text of scripts and styles."""

    def __init__(self, document):
        super().__init__()
        self.found, self.texts = [], {"script": [], "style": []}
        self._inside = None
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._inside = tag if tag in self.texts else None
        if self._inside:
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.texts[self._inside][-1] += data


def policy_of(document):
    metas = [attrs for tag, attrs in Elements(document).found if tag == "meta"]
    (content,) = [m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy"]
    return {part.split()[0]: part.split()[1:] for part in content.split(";")}


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_names_no_outside_source_and_every_script_by_its_hash():
    document = html_page(
        "t", Markup("<main id='main'>x</main>"), styles=["b{}"], scripts=["'use strict';"], data={"a": 1}
    )
    policy = policy_of(document)
    assert policy["default-src"] == ["'none'"]
    assert policy["img-src"] == ["data:"]
    assert policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert "connect-src" not in policy
    elements = Elements(document)
    kinds = [attrs.get("type") for tag, attrs in elements.found if tag == "script"]
    code = [text for text, kind in zip(elements.texts["script"], kinds, strict=True) if kind is None]
    assert policy["script-src"] == [hash_of(text) for text in code]
    assert policy["style-src"] == [hash_of(text) for text in elements.texts["style"]]
    assert not re.search(r"unsafe-inline|unsafe-eval|https?:", str(policy))


def test_styles_of_the_body_are_allowed_by_hash_and_later_ones_when_named():
    body = '<style>i{color:red}</style><b style="width: 3%">x</b><b style="width: 3%">y</b><i style="a:&quot;"/>'
    style = policy_of(html_page("t", Markup(body), later_styles=["p{}"]))["style-src"]
    assert hash_of("i{color:red}") in style
    assert hash_of("p{}") in style
    at = style.index("'unsafe-hashes'")
    assert style[at + 1 :] == [hash_of("width: 3%"), hash_of('a:"')]


def test_the_title_is_text():
    document = html_page("<script>alert(1)</script>", Markup())
    assert "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>" in document


def test_a_script_that_would_end_its_element_is_refused():
    with pytest.raises(ValueError, match="expected text without '</script'"):
        html_page("t", Markup(), scripts=["x = '</SCRIPT>'"])


def test_own_files_hold_nothing_that_ends_their_element():
    for name in ("theme.js", "toggle.js"):
        assert "</script" not in asset(name).lower()
    assert "</style" not in asset("base.css").lower()
    assert "url(" not in asset("base.css")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_comes_back_whole_from_the_embedded_data(text):
    document = html_page("t", Markup(), data={"id": text, text.replace("\ud800", ""): 1})
    elements = Elements(document)
    assert [tag for tag, _ in elements.found].count("script") == 3  # theme, data, toggle
    at = [attrs.get("id") for tag, attrs in elements.found if tag == "script"].index("page-data")
    assert json.loads(elements.texts["script"][at])["id"] == text
    document.encode()  # a file of UTF-8 can hold it


ANY_JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda t: st.lists(t) | st.dictionaries(st.text(), t), max_leaves=8
)


@given(ANY_JSON)
def test_embedded_json_is_the_same_value_and_holds_no_markup(value):
    text = embed_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")
    text.encode()


def test_a_body_that_no_template_made_is_text():
    document = html_page("t", "<img src=x onerror=alert(1)>")
    assert "<img" not in document
    assert "&lt;img src=x onerror=alert(1)&gt;" in document


def test_not_a_number_is_refused_rather_than_written():
    with pytest.raises(ValueError, match="JSON compliant"):
        embed_json({"x": float("nan")})
