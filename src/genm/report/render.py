"""A report as text in each of its formats; the HTML page with its scripts and data."""

import base64
import json
import re
import zlib

from genm.errors import InputError
from genm.explain.losses import VERDICT_TEXTS
from genm.report.html import asset, html_page
from genm.report.latex import report_latex
from genm.report.markdown import report_markdown
from genm.report.payload import MeasureTable, QueryTable, Report
from genm.templating import render

_MODULES = (
    "dom", "numbers", "ranking", "looks", "charts", "steps", "strip", "ternary", "detail", "downloads", "queries",
    "sliders", "main",
)  # fmt: skip
"""The page's own scripts, each after those it imports."""

_PLOT_STYLE = """:where(.plot) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot text),
:where(.plot tspan) {
  white-space: pre;
}"""
_RAMP_STYLE = """:where(.plot-ramp) {
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
  overflow: visible;
}
:where(.plot-ramp text) {
  white-space: pre;
}"""
PLOT_STYLES = (_PLOT_STYLE, _RAMP_STYLE)
"""The style elements that the charting library adds to its drawings: the policy lets in these texts alone."""

_STATIC_ROWS = 100
"""Queries in the table that needs no script."""

FORMATS = ("html", "md", "json", "tex")


def report_page(report: Report) -> str:
    """Return the report as a self-contained HTML document."""
    body = render(
        "report.html.j2",
        report=report,
        best=_best_values(report["measures"]),
        shown_queries=_largest_differences(report["queries"]),
        verdict_texts=VERDICT_TEXTS,
    )
    return html_page(
        f"{report['title']} \u2013 genm report",
        body,
        styles=[asset("report/report.css")],
        scripts=[asset("vendor/plot.min.js"), joined_modules()],
        data={"deflated": _deflated(report)},
        later_styles=PLOT_STYLES,
    )


def joined_modules() -> str:
    """Return the page's own modules as one strict script: imports dropped, exports made plain names of one block.

    A block, so that two modules that define the same name are a syntax error rather than a surprise.
    """
    parts = []
    for name in _MODULES:
        source = re.sub(r"^import [^;]*;\n", "", asset(f"report/{name}.js"), flags=re.MULTILINE)
        parts.append(f"// {name}.js\n" + re.sub(r"^export ", "", source, flags=re.MULTILINE))
    return '"use strict";\n{\n' + "\n".join(parts) + "}\n"


def _deflated(report: Report) -> str:
    """Return the report's JSON compressed, as the page's script reads it: a quarter less to send and to keep."""
    text = json.dumps(report, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def _best_values(table: MeasureTable) -> list[float | None]:
    """Return the best mean of each measure, to 4 places, among the systems that were measured fairly."""
    fair = [system["values"] for system in table["systems"] if system["held_out"]]
    return [max((round(values[m], 4) for values in fair), default=None) for m in range(len(table["measures"]))]


def _largest_differences(table: QueryTable) -> list[int]:
    """Return the positions of the queries that differ most, from the largest loss to the largest gain."""
    delta = table["delta"]
    largest = sorted(range(len(delta)), key=lambda i: (-abs(delta[i]), i))[:_STATIC_ROWS]
    return sorted(largest, key=lambda i: (delta[i], i))


def render_report(report: Report, form: str = "html") -> str:
    """Return the report as text: html, md, json or tex."""
    match form:
        case "html":
            return report_page(report)
        case "md":
            return report_markdown(report)
        case "json":
            return json.dumps(report, ensure_ascii=False, allow_nan=False) + "\n"
        case "tex":
            return report_latex(report)
        case _:
            raise InputError(f"format: expected one of {', '.join(FORMATS)}; found {form!r}.")
