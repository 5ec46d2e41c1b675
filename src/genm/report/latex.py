r"""The report as LaTeX: tables to \input into a paper that loads booktabs."""

import re

from genm.report.payload import Report
from genm.report.tables import TextTable, facts, gains_table, measures_table, one_line, queries_table, weights_table

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "`": r"\textasciigrave{}",
        "'": r"\textquotesingle{}",
        "-": "{-}",  # two in a row stay two
        "[": "{[}",  # none is taken for the option of a line's end
        "]": "{]}",
    }
)


_NUMBER = re.compile(r"(?P<digits>[+-]?[\d.]+)(e(?P<power>[+-]?\d+))?")
_NOT_IN_T1 = "\u0126\u0127\u0138\u013f\u0140\u0149\u0166\u0167\u017f"
_FOREIGN = re.compile(
    f"(?:[{_NOT_IN_T1}]|[^ -~\u00a0-\u017f\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u20ac\u2122])+"
)
"""Letters that pdfLaTeX does not have with T1 fonts and textcomp."""
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
_LETTERS = (
    r"\providecommand{\genmletters}[2]"
    r"{\ifdefined\XeTeXversion #2\else\ifdefined\directlua #2\else\texttt{#1}\fi\fi}"
)
"""Shows its second argument where the engine knows Unicode, else the code points."""


def escape_latex(text: str) -> str:
    """Return text from a file so that LaTeX prints it and runs none of it.

    Letters that pdfLaTeX has no font for are given twice, as they are and as code points: see `report_latex`.
    """
    plain = one_line(text).replace("\u2212", "-")
    parts, end = [], 0
    for found in _FOREIGN.finditer(plain):
        codes = " ".join(f"U+{ord(letter):04X}" for letter in found[0])
        parts += [_ascii(plain[end : found.start()]), f"\\genmletters{{{codes}}}{{{found[0]}}}"]
        end = found.end()
    return "".join((*parts, _ascii(plain[end:])))


def _ascii(text: str) -> str:
    return "$-$".join(part.translate(_ESCAPES) for part in _NEGATIVE.split(text))


def report_latex(report: Report) -> str:
    """Return the report's tables, for any engine; pdfLaTeX shows letters that it has no font for by their codes."""
    made = [f"% {one_line(name)}: {one_line(text)}" for name, text in facts(report).items() if text]
    head = [
        r"% Tables of a genm report. Needs \usepackage{booktabs,textcomp} and \usepackage[T1]{fontenc}.",
        *made,
        _LETTERS,
        "",
        escape_latex(f"{report['headline']['verdict']} {report['headline']['caveat']}".rstrip()),
    ]
    tables = (gains_table(report), weights_table(report), measures_table(report), queries_table(report))
    return "\n".join(head) + "\n\n" + "\n".join(_table(table) for table in tables)


def _table(table: TextTable) -> str:
    def line(cells: list[str], r: int = -1) -> str:
        set_ = [
            f"\\textbf{{{_number(cell)}}}" if (r, c) in table.bold else _number(cell) if c else escape_latex(cell)
            for c, cell in enumerate(cells)
        ]
        return "  " + " & ".join(set_) + r" \\"

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            f"\\caption{{{escape_latex(table.caption)}}}",
            f"\\label{{tab:genm-{table.label}}}",
            f"\\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            line(table.header),
            r"\midrule",
            *(line(row, r) for r, row in enumerate(table.rows)),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _number(cell: str) -> str:
    """Return a number, or an interval of two, with real minus signs and powers of ten."""
    parts = [_NUMBER.fullmatch(part) for part in cell.split(" to ")]
    return " to ".join(_math(part) for part in parts if part) if all(parts) else escape_latex(cell)


def _math(number: re.Match[str]) -> str:
    power = rf" \times 10^{{{int(number['power'])}}}" if number["power"] else ""
    return f"${number['digits']}{power}$"
