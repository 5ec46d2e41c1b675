"""LaTeX."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.examples import HOSTILE, example_report

from genm.report.latex import escape_latex, report_latex

COMMANDS = re.compile(
    r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|textquotedbl|textasciigrave"
    r"|textquotesingle)\{\}|\\[{}$&#%_]|\{[-\[\]]\}|\$-\$|\\genmletters\{U\+[U+0-9A-F ]+\}\{[^\x00-\x7f]+\}"
)


@pytest.mark.parametrize("name", HOSTILE)
def test_foreign_text_is_set_not_run(name) -> None:
    assert not set(COMMANDS.sub("", escape_latex(name))) & set("\\{}$&#%_^~<>|\n")


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_nothing_special_is_left_bare(text) -> None:
    assert not set(COMMANDS.sub("", escape_latex(text))) & set("\\{}$&#%_^~<>|\n\r\u2028")


def test_letters_without_a_font_are_there_in_both_ways() -> None:
    assert escape_latex("né ‒ 😀!") == r"né \genmletters{U+2012}{‒} \genmletters{U+1F600}{😀}!"
    assert escape_latex("−0.5, -0.5, a-5") == "$-$0.5, $-$0.5, a{-}5"
    assert report_latex(example_report()).count(r"\providecommand{\genmletters}") == 1


def test_a_line_of_a_name_stays_in_its_comment() -> None:
    report = example_report()
    report["made"]["command"] = "genm\n\\input{secrets}\r\\write18{ls}"
    text = report_latex(report)
    assert "\n\\input" not in text
    assert "\r" not in text
    assert "% command: genm\\n\\input{secrets}\\r\\write18{ls}\n" in text


def test_every_row_has_its_cells_and_every_environment_its_end() -> None:
    text = report_latex(example_report())
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 4
    for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        rows = [line for line in body.split("\n") if line.endswith(r"\\")]
        assert len(rows) > 1
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}


def test_differences_have_real_minus_signs(built) -> None:
    text = report_latex(built.report)
    gain = built.report["headline"]["gains"][0]
    assert f"${gain['difference']:+.4f}$ & ${gain['low']:+.4f}$ to ${gain['high']:+.4f}$" in text
    changed = example_report()
    changed["headline"]["gains"][0].update(difference=-0.00001, p=9.34e-9)
    row = next(line for line in report_latex(changed).split("\n") if line.startswith("  over bm25"))
    assert row.startswith("  over bm25 (the best single ranker) & $0.")
    assert " & $0.0000$ & " in row
    assert row.endswith(r"& $9.3 \times 10^{-9}$ \\")
