"""Means, spreads and curves of a method's values."""

import csv
import io

import numpy as np

from genm.reproduce.results import Cell, MethodResult, ResultTable, figures, words

TABLE = ResultTable(
    "t",
    "A title",
    ("name", "value|x"),
    (
        (*words("a, b"), *figures([0.5], strong=[0])),
        (*words("c|d"), *figures([None])),
    ),
    ("How to read it.",),
)


def test_means_are_pooled_over_queries_and_spreads_are_over_splits():
    values = np.arange(24.0).reshape(2, 4, 3)
    found = MethodResult(
        "x", "rule", values, np.array([[1.0] * 11, [0.0] * 11]), np.zeros((0, 0, 2)), np.zeros((0, 0))
    )
    assert found.mean.tolist() == values.mean(axis=(0, 1)).tolist()
    assert found.per_query.tolist() == values.mean(axis=0).tolist()
    assert found.per_split.tolist() == values.mean(axis=1).tolist()
    np.testing.assert_allclose(found.spread, values.mean(axis=1).std(axis=0, ddof=1))
    assert found.curve.tolist() == [0.5] * 11


def test_a_single_split_has_no_spread():
    found = MethodResult("x", "rule", np.ones((1, 2, 3)), np.ones((1, 11)), np.zeros((0, 0, 2)), np.zeros((0, 0)))
    assert found.spread.tolist() == [0, 0, 0]


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
