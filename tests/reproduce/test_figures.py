"""All figures together: complete, small, repeatable, and safe whatever the rankers are called."""

import re
import xml.etree.ElementTree as ET

import pytest
from reproduced import collection, results

from genm.reproduce.figures import draw_figures, learning, some_queries

HOSTILE = ("<script>$x$</script>", "a" * 90, "_名前\x00\u202e")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def both():
    """A collection with hostile names, of which all figures are drawn, and one that the paper has figures of."""
    return results(collection("med", "T<i>$tle$", rankers=HOSTILE), collection("cran", "CRAN", splits=2))


@pytest.fixture(scope="module", autouse=True)
def two_starts():
    """Learning is drawn from two starts, each of which is a panel; `test_figures_learning.py` draws all of them."""
    with pytest.MonkeyPatch.context() as patch:
        binary_starts = learning.binary_starts
        patch.setattr(learning, "binary_starts", lambda n_rankers: binary_starts(n_rankers)[:2])
        yield


@pytest.fixture(scope="module")
def drawings(both, two_starts):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    return draw_figures(both)


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_every_figure_is_there_in_the_order_of_the_page(drawings):
    names = [drawing.name for drawing in drawings]
    assert names == ["summary", "recall", "objective", "smoothing", "simplex", "learning", "sigmoid"]
    assert all(drawing.caption.endswith(".") and len(drawing.caption) > 150 for drawing in drawings)
    assert len({drawing.title for drawing in drawings}) == len(drawings)


def test_they_repeat_to_the_byte(drawings, both):
    assert draw_figures(both) == drawings


def test_they_are_small_and_ask_for_nothing(drawings):
    for drawing in drawings:
        assert len(drawing.svg) < 150_000
        root = ET.fromstring(drawing.svg)
        assert root.find(f"{SVG}title") is not None
        assert not list(root.iter(f"{SVG}style"))
        for element in root.iter():
            assert "style" not in element.attrib
            for name, value in element.items():
                assert not name.endswith("href") or value.startswith(("#", "data:image/png;base64,"))
                assert all(part.startswith("#") for part in re.findall(r"url\(([^)]*)\)", value))


def test_they_share_no_id_and_every_reference_has_its_target(drawings):
    seen = []
    for drawing in drawings:
        ids = re.findall(r'\bid="([^"]+)"', drawing.svg)
        wanted = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', drawing.svg)
        assert {a or b for a, b in wanted} == set(ids)
        seen += ids
    assert len(seen) == len(set(seen)) > 0


@pytest.mark.needs("matplotlib")
def test_names_come_from_the_data_and_cannot_break_out(drawings):
    for drawing in drawings:
        assert "<script" not in drawing.svg
        assert "\x00" not in drawing.svg
    said = {text for drawing in drawings for text in texts(drawing.svg) if text}
    assert "only <script>$x$</script>" in said
    assert "only \u200b_名前\ufffd\ufffd" in said
    assert "only " + "a" * 27 + "…" in said
    assert "T<i>$tle$ MAP" in said


def test_few_rankers_leave_out_what_needs_more(drawings):
    found = draw_figures(results(collection("mine", "mine", rankers=("a",))))
    assert {d.name for d in drawings} - {d.name for d in found} == {"objective", "smoothing", "simplex"}


def test_of_a_large_collection_some_queries_are_drawn_and_the_caption_says_so(monkeypatch):
    monkeypatch.setattr("genm.reproduce.figures.MOST_ROWS", 200)
    found = collection(rankers=("a", "b"))
    aligned, name = some_queries(found)
    assert name == "MED (3 of 8 judged queries)"
    assert list(aligned.queries) == [found.aligned.queries[q] for q in (0, 4, 7)]
    monkeypatch.setattr("genm.reproduce.figures.MOST_ROWS", 480)
    assert some_queries(found) == (found.aligned, "MED")


@pytest.mark.needs("matplotlib")
def test_without_collections_only_the_sigmoid_is_left():
    assert [drawing.name for drawing in draw_figures(results())] == ["sigmoid"]


@pytest.mark.needs("matplotlib")
def test_progress_is_told_and_closed():
    told = []
    draw_figures(results(), progress=lambda *step: told.append(step))
    assert told == [("figure sigmoid", 0, 1), ("figures", 1, 1)]
