"""Tables as data, and as files."""

import csv
import io

from genm.reproduce.cells import Cell, Table, figures, words

TABLE = Table(
    "t",
    "A title",
    ("name", "value|x"),
    (
        (*words("a, b"), *figures([0.5], strong=[0])),
        (*words("c|d"), *figures([None])),
    ),
    ("How to read it.",),
)


def test_markdown_sets_numbers_to_the_right_and_the_best_in_bold():
    assert TABLE.to_markdown().splitlines() == [
        "### A title",
        "",
        "| name | value\\|x |",
        "|---|---:|",
        "| a, b | **0.5000** |",
        "| c\\|d |  |",
        "",
        "How to read it.",
    ]


def test_csv_reads_back_to_the_cells():
    assert list(csv.reader(io.StringIO(TABLE.to_csv()))) == [["name", "value|x"], ["a, b", "0.5000"], ["c|d", ""]]


def test_figures_take_a_form_and_leave_out_what_is_missing():
    assert figures([1234, None], ",") == (Cell("1,234", number=True), Cell("", number=True))
    assert figures([0.25], "+.1f", strong=[0]) == (Cell("+0.2", strong=True, number=True),)
