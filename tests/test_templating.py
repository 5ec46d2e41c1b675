"""Templates: every value becomes text, a misspelt name is an error, and numbers are written one way."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from genm import templating
from genm.templating import between, decimals, first_sentence, isolated, plural, render, signed, with_minus

NOT_ALLOWED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Reader(HTMLParser):
    """The tags of a document, and its text."""

    def __init__(self, document):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.words += "".join(value or "" for _, value in attrs)

    def handle_data(self, data):
        self.words += data


def rendered(source, **values):
    """Fill a template that is given as text."""
    return templating._environment().from_string(source).render(values)


@given(st.text())
def test_isolated_text_reads_back_and_opens_no_element(text):
    reader = Reader(str(isolated(text)))
    assert reader.tags == ["bdi"]
    assert reader.words == NOT_ALLOWED.sub("\ufffd", text)


@given(st.text())
def test_any_value_is_text_between_tags_and_in_attributes(text):
    reader = Reader(rendered('<p title="{{ text }}">{{ text }}</p>', text=text))
    assert reader.tags == ["p"]
    assert reader.words == 2 * NOT_ALLOWED.sub("\ufffd", text)


@given(st.text(min_size=1))
def test_text_stays_text_through_macros_and_joins(text):
    source = (
        '{% from "macros.html.j2" import table, facts %}'
        '{% call table(text ~ ". More.", [text, ""]) %}<tr><th>{{ text ~ 1 }}</th></tr>{% endcall %}'
        "{{ facts([(text, text)]) }}"
    )
    tags = Reader(rendered(source, text=text)).tags
    assert tags == Reader(rendered(source, text="plain")).tags


def test_html_that_a_template_made_is_not_escaped_again():
    assert rendered("{{ part }}", part=Markup("<b>{}</b>").format("<i>")) == "<b>&lt;i&gt;</b>"
    assert isinstance(render("page.html.j2", **dict.fromkeys(("policy", "title", "style", "head_script"), ""),
                             body="", data=None, scripts=[]), Markup)  # fmt: skip


def test_a_misspelt_name_is_an_error():
    with pytest.raises(UndefinedError, match="'rapport' is undefined"):
        rendered("{{ rapport }}")
    with pytest.raises(UndefinedError, match="no attribute 'heading'"):
        rendered("{{ report.heading }}", report={"title": "x"})


def test_no_template_switches_the_escaping_off():
    """Nothing is marked safe but drawings, which are SVG made by us."""
    for template in (files("genm") / "templates").iterdir():
        source = template.read_text(encoding="utf-8")
        assert "autoescape" not in source
        assert set(re.findall(r"(\S+) \| safe", source)) <= {"drawing.svg"}, template.name


def test_numbers_have_a_real_minus_sign_and_a_missing_one_is_a_dash():
    assert decimals(-0.25, 2) == "\u22120.25"
    assert decimals(None) == signed(None) == between(None, 1.0) == "\u2013"
    assert signed(0.5, 1) == "+0.5"
    assert between(-1.0, 2.0, 1) == "\u22121.0 to +2.0"
    assert with_minus("well-known a-1 (-2.5)") == "well-known a-1 (\u22122.5)"


def test_counts_take_their_noun():
    assert plural(1, "collection") == "1 collection"
    assert plural(1234, "query", "queries") == "1,234 queries"


def test_a_table_is_named_by_the_first_sentence_of_its_caption():
    assert first_sentence("Weights. Plateau: ...") == "Weights"
    assert first_sentence("One sentence.") == "One sentence"
