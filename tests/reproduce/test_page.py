"""The page: whole, self-contained and safe. `report/test_browser.py` opens it on a phone."""

import re
from html.parser import HTMLParser

import pytest
from reproduced import collection, page_with_figures, results, two_collections

from genm import plotting
from genm.records import Note
from genm.report.html import asset
from genm.reproduce.figures import Drawing
from genm.reproduce.figures.results import draw_summary
from genm.reproduce.page import render_page
from genm.reproduce.results import Cell, ResultTable

pytestmark = pytest.mark.needs("matplotlib")

HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202e"


class Outline(HTMLParser):
    """Tags, ids, references and words of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.references, self.words, self.inline = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                self.references.append(value)
            if name == "style" or name.startswith("on"):
                self.inline.append((tag, name))

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def made():
    return two_collections()


@pytest.fixture(scope="module")
def page(made):
    return page_with_figures(made)


def test_it_asks_for_nothing_and_needs_no_inline_style_or_handler(page):
    outline = Outline(page)
    assert outline.inline == []
    assert all(ref.startswith(("#", "data:image/png;base64,")) for ref in outline.references)
    assert not {"link", "iframe", "object", "embed", "img", "form"} & set(outline.tags)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "unsafe-hashes" not in policy


def test_no_id_stands_twice_and_every_link_has_its_target(page):
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    assert {ref[1:] for ref in outline.references if ref.startswith("#")} <= set(outline.ids)


def test_tables_figures_findings_and_manifest_are_all_there(made, page):
    for table in made.tables:
        assert f'<table id="{table.key}">' in page
        assert table.title in page
    assert page.count("<figure id=") == 3
    assert '<th scope="col" class="number">ours</th>' in page
    assert "<strong>0.2500</strong>" in page
    words = " ".join(Outline(page).words)
    for said in (
        "A note.",
        "Starts.",
        "9.9",
        "c0ffee",
        "data / med",
        "genm reproduce -o DIR",
        "averaged over 3 seeded",
    ):
        assert said in words
    assert page.index("figure-summary") < page.index('id="figures"') < page.index('id="tables"')


def test_groups_of_rows_are_set_apart(made):
    rows = tuple((Cell(name), Cell("x")) for name in ("MED", "MED", "CRAN", "CRAN"))
    page = render_page(results(tables=(ResultTable("t", "T", ("a", "b"), rows),)), ())
    assert page.count('<tr class="group">') == 1


def test_hostile_text_stays_text(made):
    found = collection("mine", HOSTILE, rankers=(HOSTILE, "b", "c", "d"))
    table = ResultTable("t-1", HOSTILE, (HOSTILE, "b"), ((Cell(HOSTILE), Cell(HOSTILE, strong=True)),), (HOSTILE,))
    one = results(found, tables=(table,))
    one = type(one)(one.collections, 1, 0, one.tables, {HOSTILE: 1.0}, (Note("x", 1, HOSTILE),))
    drawing = Drawing("recall", HOSTILE, HOSTILE, "<svg></svg>")
    page = render_page(one, (draw_summary(one), drawing), manifest={HOSTILE: HOSTILE}, command=HOSTILE)
    outline = Outline(page)
    assert "img" not in outline.tags
    assert outline.inline == []
    assert "seeded split;" in " ".join(outline.words)


def test_it_is_the_same_every_time_and_stands_without_figures(made, page):
    assert render_page(made, ()) == render_page(made, ())
    assert render_page(results(), ()).count("<section") == 5


def test_the_ink_of_drawings_has_a_colour_for_the_dark():
    """Drawings carry colours as attributes; the page's style names each that would vanish on a dark page."""
    style = asset("page.css", "genm.reproduce")
    for colour in (plotting.INK, plotting.FAINT, "#000000", "#ffffff"):
        for attribute in ("fill", "stroke"):
            assert f'.picture [{attribute}="{colour}"]' in style, (attribute, colour)
