"""The page in a real browser: live, nothing from outside, foreign text stays text, rolling back works."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from serve.cases import judged, model, poisoned

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright's Python client")
expect = sync_api.expect

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def visit(context):
    pages = []

    def open_page(url, width=1200, height=900):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        pages.append(page)
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: page.said.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(url)
        return page

    yield open_page
    for page in pages:
        page.close()


def test_the_page_follows_the_weights_and_rolls_back(live, visit):
    service = live()
    service.feedback(*(judged(number) for number in range(20)))
    page = visit(service.url)
    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.locator("#figures")).to_contain_text("version 2")
    assert page.locator("#weights-chart polyline").count() == 3
    assert page.locator("#ap-chart circle").count() == 20
    service.feedback(judged(30))
    expect(page.locator("#figures")).to_contain_text("newest is 3")
    page.locator("button", has_text="Roll back").filter(visible=True).last.click()
    expect(page.locator("#ask-text")).to_contain_text("Serve version 1")
    page.locator("#ask-yes").click()
    expect(page.locator("#figures")).to_contain_text("version 1")
    assert service.engine.status.champion.version == 1
    assert page.said == []
    assert {url.split("/", 3)[2] for url in page.asked if url.startswith("http")} == {service.url.split("/")[2]}


def test_a_version_that_was_not_promoted_is_the_challenger(live, visit):
    service = live(model(weights=(0.8, 0.15, 0.05)), max_ap_loss=0.0)
    service.feedback(*(judged(number) for number in range(30)))
    service.feedback(*(poisoned(number) for number in range(100, 130)))
    assert service.engine.status.champion.version < service.engine.status.n_versions
    page = visit(service.url)
    expect(page.locator("#pair")).to_contain_text("challenger (3)")
    expect(page.locator("#verdict")).to_contain_text("No lists of the two were interleaved yet")
    assert page.locator("#weights-chart circle.hollow").count() == 3


def test_foreign_text_stays_text(live, visit):
    names = (HOSTILE, "<script>alert(2)</script>", "plain")
    service = live(model(rankers=names))
    page = visit(service.url)
    expect(page.locator("#pair")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == page.locator("main script").count() == 0
    assert page.said == []


def test_a_token_is_asked_for_and_roles_decide_about_the_button(live, visit, tokens):
    reader, admin = tokens.add("reader", ["fuse"]), tokens.add("boss", ["admin"])
    service = live(tokens=tokens)
    service.feedback(judged(1))
    for token, buttons in ((reader, 0), (admin, 1)):
        page = visit(service.url)
        expect(page.locator("#login")).to_be_visible()
        page.locator("#token").fill(token)
        page.locator("#use-token").click()
        expect(page.locator("#versions table")).to_be_visible()
        assert page.locator("#versions button").count() == buttons


def test_a_failing_store_is_shown(live, visit):
    service = live()
    page = visit(service.url)
    expect(page.locator("#connection")).to_have_text("Live")
    service.engine.failure = "disk full"
    expect(page.locator("#failure")).to_have_text("The store cannot be written: disk full")


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_the_page_fits_every_width(live, visit, width, tmp_path):
    service = live()
    service.feedback(*(judged(number) for number in range(12)))
    page = visit(service.url, width=width)
    expect(page.locator("#connection")).to_have_text("Live")
    wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room
    page.screenshot(path=tmp_path / f"page-{width}.png", full_page=True)


def test_the_page_can_be_used_without_seeing_it(live, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    service = live()
    service.feedback(*(judged(number) for number in range(5)))
    # the policy keeps the audit's script out, as it should; it is run in a context of its own
    context = browser.new_context(bypass_csp=True)
    audited = context.new_page()
    audited.goto(service.url)
    expect(audited.locator("#connection")).to_have_text("Live")
    found = axe.Axe().run(audited)
    context.close()
    assert found.violations_count == 0, found.generate_report()
