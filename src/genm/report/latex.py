r"""The report as LaTeX: tables to \input into a paper that loads booktabs."""

from genm.report.payload import Report
from genm.report.plain import Table, facts, gains_table, measures_table, one_line, queries_table, weights_table

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


def escape_latex(text: str) -> str:
    """Return foreign text so that LaTeX sets it and runs nothing of it."""
    return one_line(text).translate(_ESCAPES)


def report_latex(report: Report) -> str:
    """Return the report's tables; letters beyond the font's need XeLaTeX or LuaLaTeX."""
    made = [f"% {one_line(name)}: {one_line(text)}" for name, text in facts(report).items() if text]
    head = [
        r"% Tables of a genm report. Needs \usepackage{booktabs,textcomp} and \usepackage[T1]{fontenc}.",
        *made,
        "",
        escape_latex(report["headline"]["verdict"]),
    ]
    tables = (gains_table(report), weights_table(report), measures_table(report), queries_table(report))
    return "\n".join(head) + "\n\n" + "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
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
    """Return a number, or an interval of two, with real minus signs."""
    if not cell or not set(cell) <= set("+-0123456789.e to"):
        return escape_latex(cell)
    return " to ".join(f"${part}$" for part in cell.split(" to "))
