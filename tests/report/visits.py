"""Pages opened in a real browser, from files."""

import json
import shutil

import numpy as np
import pytest

from genm.report.render import report_page

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
DESK = {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright's Python client")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    sync_api.expect.set_options(timeout=60_000)  # a busy machine may need more than the usual 5 s
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page that is opened from files, and everything that it asked for, said or did wrong."""

    def __init__(self, browser, options):
        self.context = browser.new_context(**{"viewport": DESK, **options})
        self.scripts = options.get("java_script_enabled", True)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.route(lambda url: url.startswith("http"), lambda route: route.abort())

    def open(self, folder, document):
        self.file = folder / "report.html"
        self.file.write_text(document, encoding="utf-8")
        self.said, self.asked = [], []
        self.page.goto(self.file.as_uri())
        if self.scripts and 'id="page-data"' in document:
            self.page.wait_for_selector("html[data-ready]")
        return self

    def check_clean(self):
        """Nothing on the console (a breach of the policy would be said there), nothing but the file was read."""
        assert self.said == []
        assert {url for url in self.asked if not url.startswith("data:")} == {self.file.as_uri()}

    def weights(self):
        outputs = self.page.locator("#try output")
        return np.array([float(outputs.nth(k).get_attribute("data-weight")) for k in range(outputs.count())])

    def fits(self):
        wide, room = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return wide <= room


@pytest.fixture(scope="module")
def visits(browser):
    """One page for each way to look at it: opening another file in it is quicker than another page."""
    made = {}

    def with_options(options):
        key = json.dumps(options)
        if key not in made:
            made[key] = Visit(browser, options)
        return made[key]

    yield with_options
    for one in made.values():
        one.context.close()


@pytest.fixture
def visit(visits, tmp_path):
    opened = []

    def open_page(report, **options):
        """Open a report, or any document as text."""
        document = report if isinstance(report, str) else report_page(report)
        opened.append(visits(options).open(tmp_path, document))
        return opened[-1]

    yield open_page
    for one in opened:
        one.check_clean()
