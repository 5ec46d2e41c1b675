"""The page in a real browser: nothing from outside, nothing runs but its own code, and its numbers are Python's."""

import copy
import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from problems import made_up
from report.examples import HOSTILE, example_report
from report.visits import DESK, Visit
from reproduced import page_with_figures, two_collections

from genm.align import align_runs
from genm.evaluate import evaluate_aligned
from genm.ids import Ids
from genm.records import Qrels, ranked_run
from genm.report.payload import pack
from genm.report.queries import sliders_of
from genm.report.render import report_page
from genm.templating import decimals

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright's Python client")
expect = sync_api.expect
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def report():
    return example_report()


@pytest.fixture(scope="module")
def opened_once(browser, report, tmp_path_factory):
    visit = Visit(browser, {})
    yield visit.open(tmp_path_factory.mktemp("opened"), report_page(report))
    visit.context.close()


@pytest.fixture
def opened(opened_once):
    """The report, which is opened once for all tests that leave it as it is."""
    yield opened_once
    opened_once.check_clean()


def slide(page, k, value):
    """Move a slider as the mouse does: set, then tell."""
    page.locator(f"#weight-{k}").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', {bubbles: true})); }",
        value,
    )
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_every_chart_is_drawn_and_named(opened, report):
    page = opened.page
    for part in ("chart-weights", "curves", "lines", "ternary", "learning", "queries"):
        drawings = page.locator(f"#{part} svg.plot")
        assert drawings.count() == (len(report["rankers"]) if part == "lines" else 1), part
        assert drawings.first.get_attribute("aria-label")
        assert drawings.first.get_attribute("role") == "img"


@pytest.mark.parametrize("width", [390, 600, 700, 740, 800, 900, 1000, 1030, 1280])
def test_a_query_has_a_readable_place_in_its_table_at_every_width(opened, width):
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    assert opened.fits()
    cell = page.locator("#query-table tbody th").first.bounding_box()
    assert cell["width"] >= 0.3 * min(width, 1056)  # of the page's width, whatever else is shown
    for head in page.locator("#query-table thead th:visible").all():
        assert head.evaluate("node => node.scrollWidth <= node.clientWidth + 1"), head.inner_text()
    page.set_viewport_size(DESK)


def test_ap_in_the_page_is_pythons_to_the_bit(visit, report):
    aligned = made_up(0, n_queries=24, quality=tuple(np.linspace(1.0, 0.3, 3)))
    opened = visit(report)
    page = opened.page
    assert page.locator("#slider-mean").inner_text() == decimals(report["sliders"]["map"])
    for k, value in ((0, 0.7), (1, 0.25), (2, 1.0), (2, 0.4), (0, 0.0)):
        slide(page, k, value)
        weights = opened.weights()
        assert weights[k] == value
        assert weights.sum() == pytest.approx(1.0)
        expected = evaluate_aligned(aligned, weights, "AP").values[:, 0]
        assert page.locator("#slider-mean").inner_text() == decimals(float(expected.mean()))
        assert float(page.locator("#slider-mean").get_attribute("data-value")) == pytest.approx(
            float(expected.mean()), abs=1e-14
        )
        for query in (0, 5, 23):
            page.locator("#slider-query").select_option(str(query))
            assert float(page.locator("#slider-query-ap").get_attribute("data-value")) == expected[query]


def test_ties_are_broken_as_python_breaks_them(visit, report):
    aligned = made_up(3, n_queries=6, quality=(1.0, 0.5, 0.2))
    coarse = np.round(aligned.scores * 2) / 2
    tied = copy.deepcopy(report)
    tied["sliders"].update(values=pack(coarse.ravel(), "float64"), queries=pack(np.arange(6), "int32"))
    tied["sliders"].update(row_starts=pack(aligned.starts, "int32"), n_relevant=pack(np.full(6, 5), "int32"))
    tied["sliders"].update(
        query_weights=pack(np.arange(1.0, 7.0), "float64"), fill=pack(np.zeros((6, 3)), "float64")
    )
    tied["sliders"].update(marks=pack(np.where(aligned.relevance == 1, 2, 0), "uint8"))
    tied["sliders"].update(stored=pack(np.packbits(np.ones(coarse.size, np.uint8)), "uint8"))
    opened = visit(tied)
    for value in (0.5, 0.25, 1.0):
        slide(opened.page, 0, value)
        scores = np.zeros(len(coarse))
        for k, weight in enumerate(opened.weights()):
            scores += weight * coarse[:, k]
        expected = evaluate_aligned(aligned, scores, "AP").values[:, 0]
        mean = float(opened.page.locator("#slider-mean").get_attribute("data-value"))
        assert mean == pytest.approx(float(np.average(expected, weights=np.arange(1.0, 7.0))), abs=1e-14)


def test_scores_that_are_missing_take_the_querys_fill(visit, report):
    aligned = made_up(0, n_queries=24, quality=tuple(np.linspace(1.0, 0.3, 3)))
    rng = np.random.default_rng(5)
    own = rng.random(aligned.scores.shape) < 0.7
    fill = rng.random((24, 3))
    dense = np.where(own, aligned.scores, np.repeat(fill, np.diff(aligned.starts), axis=0))
    gaps = copy.deepcopy(report)
    gaps["sliders"].update(values=pack(aligned.scores[own], "float64"), fill=pack(fill, "float64"))
    gaps["sliders"].update(stored=pack(np.packbits(own.ravel().astype(np.uint8)), "uint8"))
    opened = visit(gaps)
    slide(opened.page, 1, 0.5)
    scores = np.zeros(len(dense))
    for k, weight in enumerate(opened.weights()):
        scores += weight * dense[:, k]
    expected = evaluate_aligned(aligned, scores, "AP").values[:, 0].mean()
    assert float(opened.page.locator("#slider-mean").get_attribute("data-value")) == pytest.approx(
        expected, abs=1e-14
    )


def test_runs_that_python_packed_are_unpacked_and_ranked_as_python_does(visit, report):
    rng = np.random.default_rng(2)
    docs = Ids.of(f"d{i:02}" for i in range(40))
    queries = Ids.of(f"q{i}" for i in range(8))
    runs = {}
    for name, depth in (("a", 25), ("b", 10), ("c", 17)):  # lists that end, so that documents are missing in some
        doc = np.concatenate([rng.permutation(40)[:depth] for _ in range(8)]).astype(np.int32)
        starts = np.arange(9) * depth
        runs[name] = ranked_run(name, queries, docs, starts, doc, rng.integers(0, 9, len(doc)) / 4.0)
    judged = np.concatenate([np.sort(rng.permutation(40)[:6]) for _ in range(8)]).astype(np.int32)
    qrels = Qrels(queries, docs, np.arange(9) * 6, judged, rng.integers(0, 3, 48).astype(np.int32))
    aligned = align_runs(runs, qrels, normalize="zscore")
    chosen = np.array([0, 2, 3, 7])
    changed = copy.deepcopy(report)
    changed["sliders"] = sliders_of(aligned, np.array(report["weights"]), chosen, 1)
    opened = visit(changed)
    for k, value in ((0, 0.5), (2, 0.25), (1, 1.0)):
        slide(opened.page, k, value)
        expected = evaluate_aligned(aligned.select(chosen), opened.weights(), "AP").values[:, 0]
        for q in range(4):
            opened.page.locator("#slider-query").select_option(str(q))
            assert float(opened.page.locator("#slider-query-ap").get_attribute("data-value")) == expected[q]


def test_reset_and_keyboard_move_the_sliders_and_are_told(visit, report):
    opened = visit(report)
    page = opened.page
    assert page.locator("#slider-reset").is_disabled()
    page.locator("#weight-1").focus()
    before = opened.weights()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#slider-reset")).to_be_enabled()
    after = opened.weights()
    assert after[1] > before[1]
    assert after[0] / after[2] == pytest.approx(before[0] / before[2])
    spoken = page.locator("#slider-spoken")
    assert spoken.get_attribute("aria-live") == "polite"
    expect(spoken).to_contain_text("against the learned weights")
    page.locator("#slider-reset").press("Enter")
    expect(page.locator("#slider-reset")).to_be_disabled()
    assert opened.weights().tolist() == report["weights"]
    assert page.locator("#slider-against").inner_text() == "These are the learned weights."


def test_a_click_on_the_map_sets_the_weights(visit, report):
    opened = visit(report)
    drawing = opened.page.locator("#ternary svg.clickable")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    opened.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(opened.page.locator("#slider-reset")).to_be_enabled()
    assert opened.weights()[2] > 0.8  # near the upper corner


def test_the_address_keeps_the_weights_to_the_last_digit(visit, report):
    opened = visit(report)
    page = opened.page
    slide(page, 0, 0.7)
    weights = opened.weights()
    expect(page).to_have_url(re.compile("#try=.*,"))
    assert page.evaluate("location.hash") == "#try=" + ",".join(
        page.evaluate("(weights) => weights.map(String)", weights.tolist())
    )
    mean = page.locator("#slider-mean").get_attribute("data-value")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert opened.weights().tolist() == weights.tolist()
    expect(page.locator("#slider-mean")).to_have_attribute("data-value", mean)
    page.evaluate("location.hash = '#try=0.5,0.25,0.25'")
    expect(page.locator("#try output").first).to_have_attribute("data-weight", "0.5")
    page.locator("#slider-reset").click()
    expect(page).to_have_url(re.compile("#try$"))


@pytest.mark.parametrize("written", ["0.5,0.5", "1,x,0", "-1,1,1", "0,0,0", "%3Cimg%3E", ""])
def test_an_address_that_holds_no_weights_changes_nothing(opened, report, written):
    opened.page.evaluate("(text) => { location.hash = '#try=' + text; }", written)
    opened.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert opened.weights().tolist() == report["weights"]


def saved(page, name):
    """Return the text of the file that a button saves."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).click()
    return Path(waiting.value.path()).read_bytes().decode()


def test_weights_and_the_engines_text_are_saved_as_they_are(visit, report):
    page = visit(report).page
    assert json.loads(saved(page, "Download weights")) == dict(
        zip(report["rankers"], report["weights"], strict=True)
    )
    assert saved(page, "Download pipeline.json") == report["snippet"]["text"]
    assert page.locator("#snippet").text_content() == report["snippet"]["text"]


def test_weights_are_copied(visit, report):
    page = visit(report, permissions=["clipboard-read", "clipboard-write"]).page
    slide(page, 1, 0.5)
    page.get_by_role("button", name="Copy these weights").click()
    expect(page.locator("#try .take [role=status]")).to_have_text(" Copied.")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied[report["rankers"][1]] == 0.5


def test_losing_queries_are_saved_worst_first_and_hold_no_formula(visit, report):
    hostile = copy.deepcopy(report)
    table = hostile["queries"]
    worst, next_worst = np.argsort(table["delta"])[:2].tolist()
    table["query_ids"][worst] = '=HYPERLINK("https://example.org","x")'
    table["texts"][worst] = " @SUM(A1)\r\nsecond line"
    table["query_ids"][next_worst] = "-1+2"
    table["texts"][next_worst] = 'says "no", and stays'
    page = visit(hostile).page
    text = saved(page, re.compile("losing as CSV"))
    head, *rows = csv.reader(io.StringIO(text))
    assert head[:3] == ["query_id", "text", "learned weights"]
    assert rows[0][:2] == ['\'=HYPERLINK("https://example.org","x")', "' @SUM(A1) second line"]
    assert rows[1][:2] == ["'-1+2", 'says "no", and stays']
    differences = [float(row[4]) for row in rows]
    assert differences == sorted(delta for delta in table["delta"] if delta < 0)
    assert all(cell[:1] not in "=+-@" for row in rows for cell in row[:2] if cell)


def test_queries_without_documents_are_marked(visit, report):
    some = copy.deepcopy(report)
    some["queries"]["detail"][3:] = [-1] * (len(some["queries"]["detail"]) - 3)
    page = visit(some).page
    marked = page.locator("table.queries tbody tr[data-query] .bare")
    assert marked.count() == len(report["queries"]["query_ids"]) - 3
    assert marked.first.inner_text() == "figures only"
    assert "3 of them show their documents" in page.locator("table.queries caption").inner_text()
    page.locator("#query-kind").select_option("documents")
    expect(page.locator("table.queries tbody tr[data-query]")).to_have_count(3)


def test_sliders_say_which_queries_they_rank(visit, report):
    sample = copy.deepcopy(report)
    sample["n_queries"] = 900
    page = visit(sample).page
    assert "on these 24 of 900 queries" in page.locator("#try .result h3").inner_text()
    slide(page, 0, 0.9)
    assert (
        page.locator("#slider-against").inner_text().endswith("at the learned weights on these 24 of 900 queries")
    )
    intro = page.locator("#try > p").first.inner_text()
    assert f"{decimals(report['sliders']['map'])} on these 24 queries; on all 900 it is" in intro
    assert page.locator("#slider-query option").first.inner_text().endswith(report["queries"]["texts"][0])


def column(page, key):
    return [
        text.split()[-1]
        for text in page.locator(f"table.queries tbody tr[data-query] > :nth-child({key})").all_inner_texts()
    ]


def test_the_query_table_sorts_and_says_so(visit, report):
    page = visit(report).page
    numbers = [float(text.replace("\u2212", "-")) for text in column(page, 4)]
    assert numbers == sorted(numbers)  # the worst losses first
    assert len(numbers) == 24
    head = page.locator("table.queries thead th").nth(3)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    numbers = [float(text.replace("\u2212", "-")) for text in column(page, 4)]
    assert numbers == sorted(numbers, reverse=True)
    page.locator("table.queries thead button").first.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert page.locator("table.queries thead th").first.get_attribute("aria-sort") == "ascending"
    plain = [name for name in column(page, 1) if name.startswith("q") and name[1:].rstrip("?").isdigit()]
    assert [int(name[1:].rstrip("?")) for name in plain] == sorted(int(name[1:].rstrip("?")) for name in plain)


def test_the_query_table_filters(visit, report):
    page = visit(report).page
    rows = page.locator("table.queries tbody tr[data-query]")
    page.locator("#query-search").fill("q12")
    expect(rows).to_have_count(1)
    assert "1 of 24 queries" in page.locator("#query-table [role=status]").inner_text()
    page.locator("#query-search").fill("")
    page.locator("#query-kind").select_option("loss")
    losses = sum(delta < 0 for delta in report["queries"]["delta"])
    expect(rows).to_have_count(losses)


def test_a_long_table_grows_on_demand(visit):
    long = example_report(n_queries=120)
    page = visit(long).page
    rows = page.locator("table.queries tbody tr[data-query]")
    assert rows.count() == 50
    more = page.get_by_role("button", name="Show 50 more")
    more.click()
    expect(rows).to_have_count(100)
    focused = page.evaluate("document.activeElement.closest('tr').dataset.query")
    assert rows.nth(50).get_attribute("data-query") == focused
    more.click()
    expect(rows).to_have_count(120)
    assert not more.is_visible()


def test_a_query_opens_by_keyboard_to_the_lists_of_every_ranker(visit, report):
    page = visit(report).page
    button = page.locator('tr[data-query="12"] button.open')
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert button.evaluate("(button) => button === document.activeElement")
    panel = page.locator("#" + button.get_attribute("aria-controls"))
    assert panel.locator(".list").count() == 1 + len(report["rankers"])
    detail = report["details"][12]
    for number, positions in enumerate([detail["fused"], *detail["rankers"]]):
        shown = panel.locator(".list").nth(number).locator("li > .name bdi").all_text_contents()
        assert shown == [detail["docs"][p]["id"] for p in positions]
    marks = panel.locator(".list").first.locator("li .mark .hidden-text").all_text_contents()
    assert [mark == "relevant: " for mark in marks] == [detail["docs"][p]["relevant"] for p in detail["fused"]]
    told = panel.locator(".list").first.locator("svg.bar").first.get_attribute("aria-label")
    assert told.startswith(f"Score {detail['docs'][detail['fused'][0]]['score']:.4f}")
    page.keyboard.press("Space")
    assert button.get_attribute("aria-expanded") == "false"
    assert panel.count() == 0


def test_a_click_on_a_bar_opens_its_query(visit, report):
    page = visit(report).page
    drawing = page.locator("#queries figure svg.plot")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.click(box["x"] + 60, box["y"] + 60)
    best = int(np.argmax(report["queries"]["delta"]))
    assert page.locator(f'tr[data-query="{best}"] button.open').get_attribute("aria-expanded") == "true"


def test_hostile_names_are_text_everywhere(visit, report):
    hostile = copy.deepcopy(report)
    names = [
        "</script><script>document.title='run'</script>",
        "<img src=x onerror=\"document.title='run'\">",
        "'\"`\u2028\u202e",
    ]
    text = json.dumps(hostile)
    for old, new in zip(report["rankers"], names, strict=True):
        text = text.replace(json.dumps(old), json.dumps(new))
    hostile = json.loads(text)
    hostile["title"] = "</title><script>document.title='run'</script>"
    hostile["headline"]["verdict"] = hostile["coverage"]["warnings"][0]["text"] = (
        "<script>document.title='run'</script>"
    )
    page = visit(hostile).page
    for query in range(len(HOSTILE)):
        page.locator(f'tr[data-query="{query}"] button.open').click()
    slide(page, 0, 0.9)
    page.locator("#slider-query").select_option("3")
    assert page.title().startswith("</title><script>")
    assert page.locator("main script, main img, main b, main i").count() == 0
    assert page.locator("label[for=weight-0] bdi").text_content() == names[0]
    for query, name in enumerate(HOSTILE):
        assert page.locator(f'tr[data-query="{query}"] button.open bdi').text_content() == name


def test_dark_and_light_follow_the_system_and_the_button(visit, report):
    opened = visit(report, color_scheme="dark")
    page = opened.page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    assert page.locator("#theme").get_attribute("aria-label") == "Use light colours"
    page.locator("#theme").click()
    light = page.evaluate(background)
    assert light == "rgb(255, 255, 255)" != dark
    # A reload may start another process of the browser, which can read the storage before the old one's words have
    # reached it; so the choice need not be there at the first reload, but at one of the next few.
    for _ in range(10):
        page.reload()
        page.wait_for_selector("html[data-ready]")
        if page.evaluate(background) == light:
            break
    assert page.evaluate(background) == light  # the choice is kept
    page.locator("#theme").click()
    assert page.evaluate(background) == dark
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_background(opened, theme):
    page = opened.page
    page.emulate_media(color_scheme=theme)
    names = ("text", "muted", "accent", "good", "bad", "warn", "bg", "surface", "accent-soft", "mark", "warn-soft")
    light = lightness(page, [*names, *(f"s{k}" for k in range(8))])
    page.emulate_media(color_scheme="null")
    assert (light["bg"] > light["text"]) == (theme == "light")

    def contrast(word, ground):
        high, low = sorted((light[word], light[ground]), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for word in names[:6]:
        for ground in ("bg", "surface"):
            assert contrast(word, ground) >= 4.5, (word, ground)
    for word, ground in (("text", "accent-soft"), ("text", "mark"), ("muted", "mark"), ("text", "warn-soft")):
        assert contrast(word, ground) >= 4.5, (word, ground)
    for k in range(8):
        assert contrast(f"s{k}", "bg") >= 3.0, k  # drawings


def lightness(page, names):
    """Return the relative luminance of the style's colours."""
    values = page.evaluate(
        """(names) => {
          const probe = document.querySelector("footer");
          return names.map((name) => (probe.style.color = `var(--${name})`, getComputedStyle(probe).color));
        }""",
        names,
    )
    parts = np.array([[int(part) / 255 for part in re.findall(r"\d+", value)[:3]] for value in values])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return dict(zip(names, (linear @ (0.2126, 0.7152, 0.0722)).tolist(), strict=True))


@pytest.mark.parametrize("n_rankers", [1, 2, 3, 12])
def test_a_phone_never_scrolls_sideways(visit, n_rankers):
    wide = example_report(n_rankers=n_rankers, n_queries=6 if n_rankers != 3 else 24)
    wide["queries"]["query_ids"][2] = "a.long_name.without.any_space." * 5
    wide["title"] = wide["headline"]["best_single"] = "W" * 90
    opened = visit(wide, viewport=PHONE)
    assert opened.fits()
    opened.page.locator("button.open").nth(2).click()
    for summary in opened.page.locator("details.numbers > summary").all():
        summary.click()
    assert opened.fits()


def test_print_is_light_whole_and_without_controls(visit, report):
    opened = visit(report, color_scheme="dark")
    page = opened.page
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for gone in ("#try", "#theme", "nav", "#query-search"):
        assert not page.locator(gone).is_visible(), gone
    assert page.locator("details:not([open])").count() == 0
    assert len(page.pdf(format="A4")) > 20_000
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    page.emulate_media(media="screen", color_scheme="dark")


def test_landmarks_headings_and_labels(visit, report):
    page = visit(report).page
    page.locator("button.open").first.click()
    assert page.locator("main, nav, header, footer").count() == 4
    assert page.locator("h1").count() == 1
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((node) => Number(node.tagName[1]))")
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('input,select')].every((node) => node.labels.length > 0)")
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every((table) => table.caption && table.caption.textContent)"
    )
    assert page.evaluate("[...document.querySelectorAll('th')].every((cell) => cell.scope)")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    page.evaluate("document.activeElement.blur()")
    page.locator(".skip").focus()
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") == 0  # seen once it has the focus
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_without_scripts_the_tables_are_there(visit, report):
    page = visit(report, java_script_enabled=False).page
    assert page.locator("h1").inner_text().startswith("The learned weights are better")
    assert page.locator("#measures table").is_visible()
    assert page.locator("#weights table").is_visible()
    assert page.locator("#query-table tbody tr").count() == 24
    assert not page.locator("#try").is_visible()
    assert not page.locator("#theme").is_visible()


def test_parts_that_are_missing_leave_no_hole(visit, report):
    bare = copy.deepcopy(report)
    bare.update(sliders=None, ternary=None, learning=None, curves=[], lines=[], details=[], sampling=[])
    bare["queries"].update(texts=None, detail=[-1] * 24)
    bare["spread"].update(kind="none", n_samples=0, plateau_loss=None)
    for row in bare["spread"]["rows"]:
        row.update(quantiles=None, samples=[], plateau=None, gain=None)
    bare["coverage"].update(warnings=[], unjudged_fused=None)
    page = visit(bare).page
    for gone in ("#try", "#ternary", "#learning", "#curves", "#lines"):
        assert page.locator(gone).count() == 0, gone
        assert page.locator(f'nav a[href="{gone}"]').count() == 0, gone
    page.locator("button.open").first.click()
    assert "not part of the report" in page.locator("tr.detail").inner_text()


def test_numbers_are_written_as_python_writes_them(visit, report):
    values = [0.03125, 0.09375, 0.15625, 0.5, 0.00005, -0.03125, 1 / 3, 0.28125, 1.0, 0.99995, -0.00001, 0.90625]
    halves = copy.deepcopy(report)
    halves["queries"]["values"]["learned weights"] = values * 2
    page = visit(halves).page
    shown = dict(
        zip(
            page.locator("tr[data-query]").evaluate_all("rows => rows.map((r) => Number(r.dataset.query))"),
            column(page, 2),
            strict=True,
        )
    )
    assert [shown[i] for i in range(12)] == [decimals(value) for value in values]


@pytest.mark.needs("matplotlib")
def test_a_phone_scrolls_the_page_of_the_experiment_in_one_direction_only(visit):
    document = page_with_figures(two_collections())
    for scheme in ("light", "dark"):
        page = visit(document, viewport=PHONE, color_scheme=scheme).page
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
