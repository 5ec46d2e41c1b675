"""The report as Markdown."""

import re

from genm.report.payload import Report
from genm.report.tables import (
    TextTable,
    facts,
    gains_table,
    measures_table,
    one_line,
    queries_table,
    remarks,
    weights_table,
)

_MARKS = re.compile(r"([\\`*_\[\]<>#|~&$]|:(?=//))")
_AT_A_LINES_BEGIN = re.compile(r"(?=[-+=])|(?<=\d)(?=[.)])")


def escape_markdown(text: str) -> str:
    """Return text from a file so that Markdown shows it as it is, inside a line."""
    return _MARKS.sub(r"\\\1", one_line(text))


def _paragraph(text: str) -> str:
    """Return text from a file that may begin a line: it starts no list and no rule."""
    first, space, rest = escape_markdown(text).partition(" ")
    return _AT_A_LINES_BEGIN.sub(r"\\", first, count=1) + space + rest


def report_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    head = report["headline"]
    parts = [
        f"# {escape_markdown(report['title'])}",
        f"**{escape_markdown(head['verdict'])}**",
        f"Held out: {head['held_out']:.4f} {escape_markdown(report['measure'])}; on the training queries: "
        f"{head['train']:.4f}. {escape_markdown(head['caveat'])}".rstrip(),
        _table(gains_table(report)),
        _table(weights_table(report)),
        _table(measures_table(report)),
        _table(queries_table(report)),
        "## Remarks",
        "\n".join(f"- {_paragraph(text)}" for text in remarks(report)),
        "## How it was made",
        "\n".join(f"- {escape_markdown(name)}: {_code(text)}" for name, text in facts(report).items() if text),
    ]
    return "\n\n".join(parts) + "\n"


def _table(table: TextTable) -> str:
    lines = [
        [escape_markdown(cell) for cell in table.header],
        [":--", *["--:"] * (len(table.header) - 1)],
        *(
            [
                f"**{escape_markdown(cell)}**" if (r, c) in table.bold else escape_markdown(cell)
                for c, cell in enumerate(row)
            ]
            for r, row in enumerate(table.rows)
        ),
    ]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {escape_markdown(table.caption)}\n\n{rows}"


def _code(text: str) -> str:
    """Return text as code; its own backticks cannot end it."""
    plain = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    return f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`"
