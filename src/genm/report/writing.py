"""From a report to a file, in any of its forms."""

import json

from genm.errors import InputError
from genm.report.latex import report_latex
from genm.report.markdown import report_markdown
from genm.report.payload import Report
from genm.report.render import report_page

FORMATS = ("html", "md", "json", "tex")


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
