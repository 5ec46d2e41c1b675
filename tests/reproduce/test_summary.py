"""The summary of the terminal."""

from dataclasses import replace

from genm.reproduce.methods import BAT
from genm.reproduce.summary import summary_of


def test_three_rows_per_collection_within_eighty_columns(found):
    one = replace(found.collections[0], title="MED")
    header, rows, _ = summary_of(replace(found, collections=(one,)))
    assert [row[:3] for row in rows] == [
        ["MED", "MAP", "0.6467"],
        ["MED", "Pr@1", "0.9333"],
        ["MED", "Pr@5", "0.8133"],
    ]
    assert rows[0][header.index("BAT")] == f"{one.methods[BAT].mean[0]:.4f}"
    assert sum(max(len(row[c]) for row in [header, *rows]) + 2 for c in range(len(header))) <= 80


def test_a_collection_that_the_paper_has_not_has_no_printed_figure(found):
    _, rows, _ = summary_of(found)
    assert {row[2] for row in rows} == {"-"}
