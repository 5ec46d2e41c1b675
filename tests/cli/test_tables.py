from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from genm.cli.tables import table_lines


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
