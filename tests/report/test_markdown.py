"""Markdown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.examples import HOSTILE, example_report

from genm.report.markdown import escape_markdown, report_markdown


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
