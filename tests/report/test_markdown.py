"""Markdown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.examples import HOSTILE, example_report

from genm.report.markdown import escape_markdown, report_markdown
from genm.report.tables import queries_table, weights_table


@pytest.fixture(scope="module")
def report():
    return example_report()


@pytest.mark.parametrize("name", HOSTILE)
def test_foreign_text_is_shown_not_obeyed(name) -> None:
    escaped = escape_markdown(name)
    assert "\n" not in escaped
    assert not re.search(r"(?<!\\)[<>|`*_\[\]$]", escaped.replace("\\\\", ""))


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_nothing_special_is_left_bare(text) -> None:
    bare = re.sub(r"\\.", "", escape_markdown(text))
    assert not set(bare) & set("\\`*_[]<>#|~&$\n\r\u2028\u2029\u202e")


def test_tables_have_as_many_cells_everywhere_as_in_their_header() -> None:
    tables = re.findall(r"(?:^\|.*\|$\n?)+", report_markdown(example_report()), re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().split("\n")}
        assert len(widths) == 1


def test_it_holds_the_figures(built) -> None:
    text = report_markdown(built.report)
    assert f"{built.report['headline']['held_out']:.4f} AP" in text
    for name, weight in zip(built.report["rankers"], built.report["weights"], strict=True):
        assert f"| {name} | {weight:.4f} |" in text
    assert text.endswith("- seed: `0`\n")
    held_out = next(line for line in text.split("\n") if line.startswith("| learned weights, held out"))
    assert f"{built.report['headline']['held_out']:.4f}" in held_out


def test_the_best_held_out_value_is_bold_and_training_never_is(built) -> None:
    lines = report_markdown(built.report).split("\n")
    assert "**" not in next(line for line in lines if line.startswith("| learned weights, on their training"))
    table = built.report["measures"]
    for c in range(len(table["measures"])):
        best = max(s["values"][c] for s in table["systems"] if s["held_out"])
        assert any(f"**{best:.4f}**" in line for line in lines)


def test_losses_come_first_with_the_texts_of_their_queries(report) -> None:
    table = report["queries"]
    worst = min(range(len(table["delta"])), key=table["delta"].__getitem__)
    rows = queries_table(report).rows
    assert rows[0][0] == f"{table['query_ids'][worst]}: {table['texts'][worst]}"
    differences = [float(row[3]) for row in rows]
    assert differences == sorted(differences)


def test_rankers_to_leave_out_are_named(report) -> None:
    written = report_markdown(report)
    for sentence in report["verdicts"]["advice"]:
        assert escape_markdown(sentence) in written
    header, rows = weights_table(report).header, weights_table(report).rows
    assert header[-2:] == ["lost without it", "verdict"]
    assert [row[-1] for row in rows] == ["keep", "leave out: not needed", "leave out: hurts"]
    nothing = report | {"verdicts": report["verdicts"] | {"rows": [], "advice": []}}
    assert weights_table(nothing).header[-1] == "near-optimal"
