"""The house style: drawings that repeat to the byte, keep their letters, and differ in more than hue."""

import re
import xml.etree.ElementTree as ET

import pytest

from genm import plotting


@pytest.mark.needs("matplotlib")
def test_the_same_drawing_is_the_same_file_and_its_words_stay_words():
    def drawn() -> str:
        figure, [axes] = plotting.new_figure()
        axes.plot([0, 1], [0, 1], label="a <b> & c", **plotting.series(0))
        axes.legend()
        return plotting.to_svg(figure, "A line")

    first = drawn()
    assert first == drawn()
    words = [e.text for e in ET.fromstring(first).iter("{http://www.w3.org/2000/svg}text")]
    assert "a <b> & c" in words
    assert "A line" in first


def test_series_differ_in_more_than_hue():
    looks = [plotting.series(i) for i in range(16)]
    assert len({(str(x["linestyle"]), x["marker"]) for x in looks}) == 16
    assert "marker" not in plotting.series(3, markers=False)


@pytest.mark.needs("matplotlib")
def test_axes_come_row_by_row():
    figure, axes = plotting.new_figure(rows=2, columns=3)
    assert len(axes) == 6
    assert axes[:3] == figure.axes[:3]


def test_somebody_elses_text_becomes_a_label():
    assert plotting.label("bm25") == "bm25"
    assert plotting.label("_hidden") == "\u200b_hidden"
    assert plotting.label("a\x00b\u202ec\nd") == "a\ufffdb\ufffdc\ufffdd"
    assert plotting.label("x" * 40, longest=10) == "x" * 9 + "…"


@pytest.mark.needs("matplotlib")
def test_settings_of_the_user_change_nothing(monkeypatch):
    import matplotlib as mpl

    def drawn() -> str:
        with plotting.style():
            figure, [axes] = plotting.new_figure()
            axes.plot([0, 1], [2, 3], label="a $b$ c")
            axes.legend()
        return plotting.to_svg(figure, "T", "D")

    before = drawn()
    assert "a $b$ c" in before
    assert "<desc>D</desc>" in before
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "legend.frameon": True, "axes.grid": False}):
        assert drawn() == before
        assert mpl.rcParams["lines.linewidth"] == 9


@pytest.mark.needs("matplotlib")
def test_a_drawing_fits_into_a_page_beside_others():
    def drawn(slope: float) -> str:
        figure, [axes] = plotting.new_figure()
        axes.plot([0, 1], [0, slope], **plotting.series(1))
        axes.imshow([[0.0, 1.0]], extent=(0, 1, 0, 1), interpolation="none")
        return plotting.to_svg(figure, "T")

    one, other = drawn(1.0), drawn(2.0)
    assert not set(re.findall(r' id="([^"]+)"', one)) & set(re.findall(r' id="([^"]+)"', other))
    for unwanted in ("style", "<metadata", "<!DOCTYPE", "dc:"):
        assert unwanted not in one
    image = ET.fromstring(one).find(".//{http://www.w3.org/2000/svg}image")
    scale = float(image.get("transform").removeprefix("matrix(").split()[0])
    assert scale == pytest.approx(float(f"{scale:.6f}"))
    assert len(f"{scale}".split(".")[1]) > 2  # factors keep their digits


@pytest.mark.needs("matplotlib")
def test_what_a_group_shares_is_said_once_and_nothing_is_lost():
    figure, [axes] = plotting.new_figure()
    axes.plot([0, 1, 2], [0, 1, 0], marker="s", color="#d55e00", linestyle="")
    root = ET.fromstring(plotting.to_svg(figure, "T"))
    svg = "{http://www.w3.org/2000/svg}"
    marks = [g for g in root.iter(f"{svg}g") if len(g) == 3 and all(u.tag == f"{svg}use" for u in g)]
    assert [g.get("fill") for g in marks] == ["#d55e00"]
    assert all("fill" not in use.attrib for use in marks[0])
