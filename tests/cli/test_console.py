import io
import json
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from genm.cli import console
from genm.cli.console import (
    plain,
    print_json,
    print_table,
    print_tsv,
    progress_bars,
    say_notes,
    table_lines,
    weight_text,
)
from genm.progress import silent
from genm.records import Note


@pytest.fixture
def terminal(monkeypatch):
    """Standard output as a terminal of 40 columns."""

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(console, "sys", SimpleNamespace(stdout=screen))
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def test_control_characters_are_written_out():
    assert plain("a\tb\x1b[1mc\nd\x9b") == "a\\tb\\x1b[1mc\\nd\\x9b"
    assert plain("[bold]x[/bold] 🦊 é") == "[bold]x[/bold] 🦊 é"


def test_cells_of_tsv_hold_no_tabs(capsys):
    print_tsv([("AP", "a\tb", "1"), ("🦊", "[red]", "2")])
    assert capsys.readouterr().out == "AP\ta\\tb\t1\n🦊\t[red]\t2\n"


def test_json_has_null_for_what_is_not_finite(capsys):
    print_json({"a": [1.5, float("nan"), (float("inf"),)], "🦊": {"b": "x\ty"}})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"a": [1.5, None, [None]], "🦊": {"b": "x\ty"}}
    assert "🦊" in shown


class TestTable:
    def test_in_a_pipe_it_is_as_wide_as_it_needs(self, capsys):
        print_table("Title", ["run", *"abcdefghijklmnop"], [("x", *["0.12345"] * 16)])
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == ["Title", ""]
        assert len(lines[2]) == 3 + 16 * 9
        assert lines[5:] == [""]

    def test_on_a_terminal_it_keeps_to_the_window(self, terminal):
        print_table("", ["run", *"abcdefgh"], [("x", *["0.12345"] * 8)])
        assert max(map(len, terminal.getvalue().splitlines())) <= 40
        assert terminal.getvalue().count("0.12345") == 8

    def test_the_best_is_bold_and_so_is_what_equals_it(self, terminal):
        print_table("", ["run", "AP"], [("x", "0.5"), ("y", "0.4"), ("z", "0.5")], best=[0])
        assert terminal.getvalue().count("\x1b[1m0.5\x1b[22m") == 2
        assert "\x1b[1m0.4" not in terminal.getvalue()

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_plain_where_it_is_asked_for(self, terminal, monkeypatch, name, value):
        monkeypatch.setenv(name, value)
        print_table("", ["run", "AP"], [("x", "0.5"), ("y", "0.4")], best=[0])
        assert "\x1b" not in terminal.getvalue()

    def test_nothing_is_bold_in_a_pipe(self, capsys):
        print_table("", ["run", "AP"], [("x", "0.5")], best=[0])
        assert "\x1b" not in capsys.readouterr().out

    def test_ids_are_never_markup_nor_commands(self, terminal):
        print_table("", ["run", "AP"], [("[bold]x[/bold]", "1"), ("\x1b[31my", "2")])
        assert "[bold]x[/bold]" in terminal.getvalue()
        assert "\\x1b[31my" in terminal.getvalue()

    def test_a_terminal_without_line_drawing(self, monkeypatch):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
        print_table("", ["run", "AP"], [("x", "1")])
        sys.stdout.flush()
        assert raw.getvalue() == b"run  AP\n---  --\nx     1\n\n"


def test_sentences_are_folded_on_a_terminal_only(terminal):
    console.print_text("one two three four five six seven eight nine ten")
    assert terminal.getvalue() == "one two three four five six seven eight\nnine ten\n\n"


def test_sentences_stay_whole_in_a_pipe(capsys):
    console.print_text("word " * 30 + "end")
    assert capsys.readouterr().out == "word " * 30 + "end\n\n"


def test_notes_go_to_standard_error(capsys):
    say_notes([Note("code", 2, "two things\nhappened.")])
    assert capsys.readouterr() == ("", "note: two things\\nhappened.\n")


def test_no_bars_in_a_pipe(capsys):
    with progress_bars() as progress:
        progress("reading", 1, 2)
        progress("reading", 2, 2)
    assert progress is silent
    assert capsys.readouterr() == ("", "")


def test_a_small_weight_never_looks_like_none():
    assert [weight_text(w) for w in (0.0, 0.25, 0.00005, 0.000049, 3e-12, -3e-12)] == [
        "0.0000", "0.2500", "0.0001", "5e-05", "3e-12", "-3e-12",
    ]  # fmt: skip


def test_text_to_the_left_numbers_to_the_right():
    assert list(table_lines(["run", "AP"], [("a", "0.1"), ("long", "10.25")])) == [
        "run      AP",
        "----  -----",
        "a       0.1",
        "long  10.25",
    ]


def test_wide_letters_take_two_columns():
    lines = list(table_lines(["run", "AP"], [("狐", "1"), ("fox", "2")]))
    assert lines[2:] == ["狐    1", "fox   2"]
    assert {cell_len(line) for line in lines} == {7}


def test_a_table_that_is_too_wide_goes_on_below():
    lines = list(table_lines(["run", "AP", "P@10", "nDCG"], [("a", "0.10", "0.20", "0.30")], width=16))
    assert lines == [
        "run    AP  P@10",
        "---  ----  ----",
        "a    0.10  0.20",
        "",
        "run  nDCG",
        "---  ----",
        "a    0.30",
    ]


def test_numbers_are_never_cut_even_if_one_alone_is_too_wide():
    lines = list(table_lines(["run", "AP", "RR"], [("a" * 30, "0.1234", "0.5678")], width=20))
    assert "0.1234" in "".join(lines)
    assert "0.5678" in "".join(lines)
    assert "a" * 30 in lines[2]


def test_a_table_of_text_folds_its_last_column():
    rows = [("x", "one two three four five six seven eight"), ("y", "short")]
    assert list(table_lines(["n", "what"], rows, left=2, width=30)) == [
        "n  what",
        "-  " + "-" * 27,
        "x  one two three four five six",
        "   seven eight",
        "y  short",
    ]


def test_bold_cells_line_up_with_the_others():
    lines = list(table_lines(["run", "AP"], [("a", "9"), ("b", "10")], bold=frozenset({(0, 1)})))
    assert lines[2] == "a     \x1b[1m9\x1b[22m"
    assert lines[3] == "b    10"


def test_no_rows():
    assert list(table_lines(["run", "AP"], [])) == ["run  AP", "---  --"]


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.text("ab1.狐", max_size=8), min_size=n, max_size=n), max_size=5)
    ),
    st.integers(10, 60) | st.none(),
)
def test_every_cell_is_shown_whole(rows, width):
    n = len(rows[0]) if rows else 1
    header = [f"c{i}" for i in range(n)]
    lines = list(table_lines(header, rows, width=width))
    for row, cell in ((r, c) for r in rows for c in r):
        assert any(cell in line for line in lines), (row, cell)
    if width is None:
        assert len(lines) == 2 + len(rows)
