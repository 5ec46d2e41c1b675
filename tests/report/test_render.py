"""The page as text: what stands in it without a script, what travels with it, what it weighs."""

import base64
import copy
import hashlib
import json
import re
import shutil
import subprocess
import zlib
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from report.examples import HOSTILE, example_report

from genm.errors import InputError
from genm.formatting import measure_name, p_value
from genm.io import write_text
from genm.report import render_report
from genm.report.html import asset
from genm.report.render import PLOT_STYLES, joined_modules, report_page
from genm.templating import decimals, signed

ASSETS = files("genm.report") / "assets"


@pytest.fixture(scope="module")
def report():
    return example_report()


@pytest.fixture(scope="module")
def words(report):
    return text_of(report_page(report))


def text_of(document):
    """Return what a reader sees, without scripts and styles, each run of spaces as one."""

    class Reader(HTMLParser):
        inside, seen = None, ""

        def handle_starttag(self, tag, attrs):
            self.inside = tag if tag in ("script", "style") else self.inside

        def handle_endtag(self, tag):
            self.inside = None if tag == self.inside else self.inside

        def handle_data(self, data):
            if self.inside is None:
                self.seen += data

    reader = Reader()
    reader.feed(document)
    reader.close()
    return re.sub(r"\s+", " ", reader.seen)


def test_the_page_says_which_rankers_to_leave_out_and_why(report, words):
    for sentence in report["verdicts"]["advice"]:
        assert sentence in words
    assert "keep" in words
    assert "leave out: not needed" in words
    assert "leave out: hurts" in words
    skipped = copy.deepcopy(report)
    skipped["verdicts"].update(rows=[], advice=[], held_out=None, skipped="A reason not to compute.")
    told = text_of(report_page(skipped))
    assert "A reason not to compute." in told
    assert "Leave out" not in told


def test_a_p_value_that_disagrees_with_its_interval_is_explained(report):
    odd = copy.deepcopy(report)
    odd["headline"]["gains"][0].update(outcome="perhaps better", p=0.0004)
    asks = "it asks whether gains outnumber losses, and the interval asks for the mean: the interval decides"
    assert asks in text_of(report_page(odd))
    for gain in odd["headline"]["gains"]:
        gain.update(outcome="better", p=0.0004)
    assert asks not in text_of(report_page(odd))


def test_a_figure_of_some_queries_says_of_how_many(report):
    part = copy.deepcopy(report)
    part["sampling"] += [
        {"part": name, "n_shown": 7, "n_all": 900, "sentence": "7 of 900."} for name in ("lines", "ternary")
    ]
    told = text_of(report_page(part))
    assert told.count("on these 7 of 900 queries") == 3  # the near-optimal ranges, the lines, the map
    assert "on all 24 queries" in text_of(report_page(report))


def test_every_ranker_alone_is_a_rival(report, words):
    assert "Held-out gain over each ranker alone." in words
    for gain in report["headline"]["over_rankers"]:
        assert signed(gain["difference"]) in words


def test_the_headline_says_number_rival_and_interval_first(words):
    at = [
        words.index(part)
        for part in (
            "better: +0.0421 MAP over bm25 (the best single ranker)",
            "55% of the top 10 of the learned weights has no judgment",
            "+0.0100 to +0.0800: significant",
            "Wilcoxon's test: p = 0.003",
            "Better and worse mean that the interval leaves out 0.",
            "Lost",
        )
    ]
    assert at == sorted(at)
    assert "14 queries better, 8 worse, 2 equal" in words


@pytest.mark.parametrize(
    ("outcome", "difference", "said"),
    [
        ("perhaps worse", -0.0046, "No significant gain over RIVAL (−0.0046 MAP): keep what you have"),
        ("perhaps worse", -0.00001, "No significant gain over RIVAL: keep what you have"),
        (
            "perhaps better",
            0.0043,
            "No significant gain over RIVAL (+0.0043 MAP): keep what you have, or judge more",
        ),
        ("perhaps better", 0.00001, "No significant gain over RIVAL: keep what you have, or"),
        ("equal", 0.0, "No difference to RIVAL: keep what you have"),
        ("worse", -0.05, "The learned weights are worse than RIVAL (−0.0500 MAP): keep what you have"),
    ],
)
def test_no_gain_is_said_plainly(report, outcome, difference, said):
    changed = copy.deepcopy(report)
    changed["headline"].update(significant=False, verdict=f"It may be luck ({difference:+.4f}, p = 0.4).")
    changed["headline"]["gains"][0].update(outcome=outcome, difference=difference, significant=False)
    words = text_of(report_page(changed)).replace("\u00a0", " ")
    said += " judge more" if said.endswith(" or") else ""
    assert f"{said} It may be luck".replace("RIVAL", "bm25 (the best single ranker)") in words
    assert "are better" not in words
    assert f"({difference:+.4f}, p".replace("-", "−") in words


def test_a_loss_that_is_no_luck_is_called_one(report):
    changed = copy.deepcopy(report)
    changed["headline"]["gains"][1].update(difference=-0.05, p=0.0001, outcome="worse", significant=False)
    changed["headline"]["gains"][2].update(difference=-0.05, p=0.3, outcome="perhaps worse", significant=False)
    words = text_of(report_page(changed))
    assert "interval 0.0000 to +0.0800: significantly worse" in words
    assert "+0.0800: not significant" in words
    assert "Wilcoxon's test: p < 0.001." in words


def test_tables_hold_every_number_without_a_script(report, words):
    for row in report["spread"]["rows"]:
        assert decimals(row["weight"]) in words
    for system in report["measures"]["systems"]:
        assert all(decimals(value) in words for value in system["values"])
    for curve in report["curves"]:
        assert all(decimals(value, 3) in words for value in curve["precision"])
    for name in report["queries"]["query_ids"]:
        assert re.sub(r"\s+", " ", name) in words
    for delta in report["queries"]["delta"]:
        assert signed(delta) in words


def test_the_best_value_is_marked_among_those_that_are_fair(report):
    changed = copy.deepcopy(report)
    systems = changed["measures"]["systems"]
    for number, system in enumerate(systems):
        system["values"] = [0.1 * number + 0.01 * i for i in range(6)]
    assert not systems[-1]["held_out"]
    document = report_page(changed)
    starred = re.findall(r'<strong>([\d.]+)<span class="star"', document)
    assert starred == [decimals(value) for value in systems[-2]["values"]]


def test_data_warnings_sampling_and_origin_are_told(report, words):
    for part in ("55% of the fusion's top 10", "3 queries <set> aside", "24 of 900 queries can be opened."):
        assert part in words
    for part in (report["made"]["command"], report["made"]["fingerprint"], "ab" * 32, "numpy 2.1.0", "91.5"):
        assert part in words


def test_other_data_than_the_models_is_told(report):
    changed = copy.deepcopy(report)
    changed["made"]["matches_training"] = False
    assert "not those that the model was learned from" in text_of(report_page(changed))


def test_hostile_text_opens_no_element(report):
    plain, hostile = copy.deepcopy(report), copy.deepcopy(report)
    for part in (plain, hostile):
        part["queries"]["query_ids"] = [f"q{i}" for i in range(24)]
    hostile["queries"]["query_ids"][:6] = HOSTILE
    hostile["made"]["command"] = hostile["spread"]["note"] = hostile["title"] = "</script><script>alert(1)</script>"

    def tags(part):
        found = []
        reader = HTMLParser()
        reader.handle_starttag = lambda tag, attrs: found.append((tag, sorted(name for name, _ in attrs)))
        reader.feed(report_page(part))
        return found

    assert sorted(tags(plain)) == sorted(tags(hostile))


def test_the_data_in_the_page_is_the_report(report):
    document = report_page(report)
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', document, re.DOTALL)
    assert json.loads(zlib.decompress(base64.b64decode(json.loads(found[1])["deflated"]))) == report


def test_a_sample_is_told_where_it_is_shown(report):
    changed = copy.deepcopy(report)
    parts = ("measures", "curves", "lines", "ternary", "queries", "sliders")
    changed["sampling"] = [
        {"part": part, "n_shown": 1, "n_all": 2, "sentence": f"Only one of {part}."} for part in parts
    ]
    document = report_page(changed)
    for part in parts:
        place = "try" if part == "sliders" else part
        section = document[document.index(f'<section id="{place}"') :]
        assert f"Only one of {part}." in section[: section.index("</section>")], part
    assert document.count("Only one of lines.") == 2  # and once more among the notes on the data


def test_the_page_names_no_outside_address(report):
    document = report_page(report)
    addresses = set(re.findall(r"https?://[\w./-]+", document))
    assert all(address.startswith("http://www.w3.org/") for address in addresses), addresses  # names, never fetched
    assert not re.search(
        r"@import|url\(['\"]?[^#'\"]*[/.:]|<link|<iframe|<object|<embed",
        document.replace(asset("vendor/plot.min.js"), ""),
    )


def test_the_page_is_small(report):
    document = report_page(report)
    without_data = re.sub(r'(id="page-data">).*?(</script>)', r"\1\2", document, flags=re.DOTALL)
    assert len(without_data.encode()) < 400_000
    assert len(document.encode()) - len(without_data.encode()) < 0.8 * len(json.dumps(report).encode())


@pytest.mark.parametrize("n_rankers", [2, 12])
def test_any_number_of_rankers(n_rankers):
    words = text_of(report_page(example_report(n_rankers=n_rankers, n_queries=6)))
    assert f"Fusion of {n_rankers} rankers" in words
    assert ("Map of all weights" in words) == (n_rankers == 3)


def test_the_charting_library_is_the_one_that_was_checked():
    told = dict(re.findall(r"\| (\S+) \| ([0-9a-f]{64}) \|", (ASSETS / "vendor" / "README.md").read_text()))
    assert list(told) == ["plot.min.js"]
    for name, checksum in told.items():
        assert hashlib.sha256((ASSETS / "vendor" / name).read_bytes()).hexdigest() == checksum
    pinned = json.loads((ASSETS / "vendor" / "package.json").read_text())
    lock = json.loads((ASSETS / "vendor" / "package-lock.json").read_text())["packages"]
    for name, version in {**pinned["dependencies"], **pinned["devDependencies"]}.items():
        assert lock[f"node_modules/{name}"]["version"] == version
        assert lock[f"node_modules/{name}"]["integrity"].startswith("sha512-")
    licences = (ASSETS / "vendor" / "LICENSES.txt").read_text()
    assert f"@observablehq/plot {pinned['dependencies']['@observablehq/plot']} (ISC)" in licences


def test_the_allowed_styles_are_those_of_the_library():
    library = asset("vendor/plot.min.js")
    for style in PLOT_STYLES:
        pieces = [piece for piece in re.split(r":where\(\.plot", style) if piece]
        assert all(
            json.dumps(piece)[1:-1].replace("\\n", "\n") in library
            for piece in (p.partition(")")[2] for p in pieces)
        )


def test_own_scripts_never_turn_data_into_markup():
    script = joined_modules()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.html\(", script
    )
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    assert script.startswith('"use strict";')


def test_every_module_is_joined_after_those_it_imports():
    order = re.findall(r"^// (\w+)\.js$", joined_modules(), re.MULTILINE)
    assert sorted(order) == sorted(p.name[:-3] for p in (ASSETS / "report").iterdir() if p.name.endswith(".js"))
    for place, name in enumerate(order):
        for other in re.findall(r'from "\./(\w+)\.js"', asset(f"report/{name}.js")):
            assert other in order[:place], (name, other)


def test_every_imported_name_is_exported_and_used():
    for name in re.findall(r"^// (\w+)\.js$", joined_modules(), re.MULTILINE):
        source = asset(f"report/{name}.js")
        for names, other in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";', source, re.MULTILINE):
            for word in names.replace(" ", "").split(","):
                assert re.search(
                    rf"^export (async function|function|class|const) {word}\b",
                    asset(f"report/{other}.js"),
                    re.MULTILINE,
                )
                assert len(re.findall(rf"\b{word}\b", source)) > 1, (name, word)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node to check the scripts' syntax")
def test_the_joined_script_is_valid(tmp_path):
    file = tmp_path / "page.js"
    file.write_text(joined_modules(), encoding="utf-8")
    subprocess.run(["node", "--check", str(file)], check=True, capture_output=True)


def test_numbers_in_words():
    assert signed(-0.00001) == "0.0000"
    assert signed(-0.01) == "\u22120.0100"
    assert signed(None) == decimals(None) == "\u2013"
    assert p_value(0.0004) == "p < 0.001"
    assert p_value(0.0123) == "p = 0.012"
    assert p_value(0.5) == "p = 0.50"
    assert [measure_name(m) for m in ("AP", "AP(rel=2)", "nDCG@10")] == ["MAP", "MAP(rel=2)", "nDCG@10"]


def test_json_is_the_payload() -> None:
    report = example_report()
    assert json.loads(render_report(report, "json")) == report


@pytest.mark.parametrize(("form", "begins"), [("html", "<!doctype html>"), ("md", "# model.json"), ("tex", "% ")])
def test_forms(form, begins) -> None:
    assert render_report(example_report(), form).lower().startswith(begins)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of html, md, json, tex; found 'pdf'"):
        render_report(example_report(), "pdf")


def test_half_an_id_is_written_escaped(tmp_path) -> None:
    write_text(str(tmp_path / "a.md"), "x \ud800 y")
    assert (tmp_path / "a.md").read_bytes() == b"x \\ud800 y"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
