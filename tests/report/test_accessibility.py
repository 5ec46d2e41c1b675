"""The pages for everyone: an audit by axe-core, and the whole report by keyboard alone."""

import pytest
from report.examples import example_report
from reproduced import collection, results

from genm.reproduce.figures.objective import draw_sigmoid
from genm.reproduce.page import render_page

try:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
except UnicodeDecodeError:
    pytest.skip("axe-playwright-python reads its script in the encoding of the locale", allow_module_level=True)
WAYS = (
    {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
)


def faults(page):
    """Return what axe-core finds wrong: the rule, and the elements."""
    found = axe.Axe().run(page).response["violations"]
    return {rule["id"]: [node["html"][:200] for node in rule["nodes"]] for rule in found}


@pytest.mark.parametrize("way", WAYS, ids=["light", "dark-phone"])
def test_an_audit_of_the_report_finds_nothing(visit, way):
    page = visit(example_report(n_queries=2), **way).page
    page.locator("button.open").first.click()
    for summary in page.locator("details > summary").all():
        summary.click()
    page.locator("#weight-0").press("ArrowRight")
    assert faults(page) == {}


@pytest.mark.parametrize("way", WAYS, ids=["light", "dark-phone"])
def test_an_audit_of_the_experiments_page_finds_nothing(visit, way):
    pytest.importorskip("matplotlib")
    made = results(collection())
    document = render_page(
        made, (draw_sigmoid(),), manifest={"data": {"med": "c0ffee"}}, command="genm reproduce " * 20
    )
    page = visit(document, **way).page
    for summary in page.locator("details > summary").all():
        summary.click()
    assert faults(page) == {}


FOCUS = """() => {
  const node = document.activeElement;
  if (node === document.body) return null;
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  return {
    name: node.id || (node.getAttribute("href") || "") || node.className.toString() || node.textContent.trim(),
    ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    inView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""


def tab_through(page):
    """Return every place that the Tab key stops at, from the top to the end."""
    places = []
    for _ in range(200):
        page.keyboard.press("Tab")
        place = page.evaluate(FOCUS)
        if place is None:
            return places
        places.append(place)
    raise AssertionError("the Tab key never comes to an end")


def test_the_tab_key_stops_everywhere_in_order_and_always_shows_where(visit):
    page = visit(example_report(n_queries=4)).page
    places = tab_through(page)
    names = [place["name"] for place in places]
    assert [place["name"] for place in places if not place["ring"]] == []
    assert [place["name"] for place in places if not place["inView"]] == []
    wanted = [
        "#main",
        "theme",
        "#result",
        "weight-0",
        "weight-2",
        "slider-query",
        "query-search",
        "query-kind",
        "open",
    ]
    assert [names.index(name) for name in wanted] == sorted(names.index(name) for name in wanted)
    assert names.count("open") == 4


def test_an_opened_query_is_the_next_stop_and_scrolls_by_arrow_keys(visit):
    page = visit(example_report(n_queries=4, n_rankers=12)).page
    button = page.locator("button.open").first
    button.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    lists = page.locator(".panel .lists")
    assert lists.evaluate("(node) => node === document.activeElement")
    # the page's policy forbids Playwright's own waiting, which evaluates text inside the page
    lists.evaluate("(node) => { node.scrolled = new Promise((done) => { node.onscroll = () => done(true); }); }")
    page.keyboard.press("ArrowRight")
    assert lists.evaluate("(node) => Promise.race([node.scrolled, new Promise((done) => setTimeout(done, 30000))])")
    assert lists.evaluate("(node) => node.scrollLeft") > 0
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert lists.count() == 0
    assert button.evaluate("(node) => node === document.activeElement")


def test_who_asks_for_less_motion_gets_none(visit):
    page = visit(example_report(n_queries=4), reduced_motion="reduce").page
    moving = """[...document.querySelectorAll('*')].map((node) => getComputedStyle(node)).filter((style) =>
      parseFloat(style.transitionDuration) || style.animationName !== 'none' || style.scrollBehavior === 'smooth'
    ).length"""
    assert page.evaluate(moving) == 0
