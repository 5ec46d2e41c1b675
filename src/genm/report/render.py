"""From a report to text, in any of its forms; the HTML page with the scripts and data that travel with it."""

import base64
import json
import re
import zlib

from genm.errors import InputError
from genm.formatting import measure_name, n_queries
from genm.report import sections
from genm.report import sections as drawn
from genm.report.html import asset, escape, html_page, isolated
from genm.report.latex import report_latex
from genm.report.markdown import report_markdown
from genm.report.payload import Report

_MODULES = (
    "dom", "numbers", "ranking", "looks", "charts", "steps", "strip", "ternary", "detail", "queries", "sliders",
    "main",
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

FORMATS = ("html", "md", "json", "tex")


def report_page(report: Report) -> str:
    """Return the report as a self-contained HTML document."""
    return html_page(
        f"{report['title']} \u2013 genm report",
        _body(report),
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


def _body(report: Report) -> str:
    parts = {
        "result": ("Result", sections.headline(report)),
        "weights": ("Weights", sections.weights(report)),
        "try": ("Try weights", _try(report)),
        "measures": ("Measures", sections.measures(report)),
        "curves": ("Precision and recall", drawn.curves(report)),
        "lines": ("Along each weight", drawn.lines(report)),
        "ternary": ("Map", drawn.ternary(report)),
        "learning": ("Learning curve", drawn.learning(report)),
        "queries": ("Queries", drawn.queries(report)),
        "data": ("Data", sections.data(report)),
        "made": ("How made", sections.made(report)),
    }
    links = "".join(
        f'<li><a href="#{name}"{" hidden" if name == "try" else ""}>{label}</a></li>'
        for name, (label, html) in parts.items()
        if html
    )
    rankers = report["rankers"]
    names = f" ({', '.join(isolated(name) for name in rankers)})" if len(rankers) <= 6 else ""
    return (
        f'<header class="top"><p class="title">{isolated(report["title"])}</p>'
        f'<p class="note">{_fusion(len(rankers))}{names}, {n_queries(report["n_queries"])}, '
        f"{escape(measure_name(report['measure']))}</p></header>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
        f'<main id="main" tabindex="-1">{"".join(html for _, html in parts.values())}</main>'
        "<footer><p>Made with genm. This file is whole: it loads nothing and sends nothing.</p></footer>"
    )


def _fusion(n: int) -> str:
    return "One ranker" if n == 1 else f"Fusion of {n} rankers"


def _try(report: Report) -> str:
    """Return the place of the sliders; a script fills and shows it."""
    found = report["sliders"]
    if found is None:
        return ""
    n, n_all = found["queries"]["shape"][0], report["n_queries"]
    over = f"all {n_queries(n)}" if n == n_all else f"{n:,} of {n_queries(n_all)}"
    return (
        '<section id="try" class="screen-only" aria-labelledby="try-title" hidden>'
        '<h2 id="try-title">Try other weights</h2>'
        "<p>Move a weight: the others keep their proportions, every query is ranked anew in this page. "
        f"Measured on {over}, the ones that the weights were learned from: to see how rankings respond, not as "
        f'proof.</p>{sections.sampled(report, "sliders")}<div id="try-place"></div></section>'
    )


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
