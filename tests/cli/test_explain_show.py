import io

import pytest

from genm.cli.explain_show import _bar, _strip
from genm.explain import Figure

LOSS = Figure(0.5, 0.4, 0.6, 0.25, 0.75)


def test_bars_are_drawn_to_an_eighth():
    assert _bar(1.0) == "█" * 16
    assert _bar(0.5) == "█" * 8 + " " * 8
    assert _bar(0.53125) == "█" * 8 + "▌" + " " * 7
    assert _bar(-0.2) == " " * 16


def test_strips_show_where_nothing_is():
    strip = _strip(LOSS, -1.0, 1.0)
    assert strip == " " * 12 + "│  ├──●──┤   "
    assert len(strip) == 25


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_plain_letters_where_others_cannot_be_printed(monkeypatch, encoding):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert _bar(0.5) == "#" * 8 + " " * 8
    assert _strip(LOSS, -1.0, 1.0) == " " * 12 + ":  |--o--|   "
