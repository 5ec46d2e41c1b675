"""The house style: drawings that repeat to the byte, keep their letters, and differ in more than hue."""

import xml.etree.ElementTree as ET

from genm import draw


def test_the_same_drawing_is_the_same_file_and_its_words_stay_words():
    def drawn() -> str:
        figure, [axes] = draw.new_figure()
        axes.plot([0, 1], [0, 1], label="a <b> & c", **draw.series(0))
        axes.legend()
        return draw.to_svg(figure, "A line")

    first = drawn()
    assert first == drawn()
    words = [e.text for e in ET.fromstring(first).iter("{http://www.w3.org/2000/svg}text")]
    assert "a <b> & c" in words
    assert "A line" in first


def test_series_differ_in_more_than_hue():
    looks = [draw.series(i) for i in range(16)]
    assert len({(str(x["linestyle"]), x["marker"]) for x in looks}) == 16
    assert "marker" not in draw.series(3, markers=False)


def test_axes_come_row_by_row():
    figure, axes = draw.new_figure(rows=2, columns=3)
    assert len(axes) == 6
    assert axes[:3] == figure.axes[:3]
