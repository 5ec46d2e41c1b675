"""Progress bars: on a terminal, in a notebook, and nowhere else."""

import io
import re
import sys
import types

import pytest

from genm import progress
from genm.progress import bars, silent, terminal_bars


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


class Place:
    """Where a notebook shows something, and everything that it showed."""

    def __init__(self):
        self.shown = []

    def update(self, content, *, raw):
        assert raw
        self.shown.append(content["text/html"])


@pytest.fixture
def notebook(monkeypatch):
    """Pretend to be in a notebook."""
    place = Place()

    def display(content, *, raw, display_id):
        assert display_id
        place.update(content, raw=raw)
        return place

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    return place


def test_a_pipe_gets_no_bars(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with bars() as drawn:
        assert drawn is silent
        drawn("reading", 1, 2)
    assert sys.stderr.getvalue() == ""


def test_a_terminal_gets_bars_on_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    with bars() as drawn:
        drawn("read\ning", 0, 2)
        drawn("read\ning", 2, 2)
        drawn("of unknown length", 5, 0)
    assert "of unknown length" in sys.stderr.getvalue()


def test_a_terminal_shows_control_characters_as_text():
    stream = Terminal()
    with terminal_bars(stream) as drawn:
        drawn("a\x1b[31mb", 0, 2)
    assert "a\\x1b[31mb" in stream.getvalue()


def test_a_notebook_shows_each_task_until_it_ends(notebook, monkeypatch):
    monkeypatch.setattr(progress, "_INTERVAL", -1.0)
    with bars() as drawn:
        drawn("cross-validating", 1, 5)
        drawn("climbing", 3, 0)
        drawn("cross-validating", 5, 5)
    first, one, two, three, last = notebook.shown
    assert first.strip() == last.strip() == ""
    assert re.search(r'<progress value="1" max="5"></progress>\s*<bdi>cross-validating</bdi>, 1 of 5', one)
    assert "<progress ></progress>" in two
    assert "cross-validating" not in three
    assert "climbing" in three


def test_a_notebook_is_not_redrawn_all_the_time(notebook):
    with bars() as drawn:
        for done in range(10_000):
            drawn("counting", done, 10_000)
    assert len(notebook.shown) < 200


def test_a_notebook_takes_the_bars_away_after_an_error(notebook):
    def work():
        with bars() as drawn:
            drawn("counting", 1, 2)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        work()
    assert notebook.shown[-1].strip() == ""


def test_a_task_is_never_markup(notebook):
    with bars() as drawn:
        drawn("<img src=x>", 1, 2)
    assert not any("<img" in html for html in notebook.shown)


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch):
    shell = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert not progress._is_notebook()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert not progress._is_notebook()
