"""Evidence that a person can look at: one page about a model, and the same for papers and pipelines."""

from genm.io import write_text
from genm.report.build import DETAIL_QUERIES, Source, build_report, compute_evidence
from genm.report.model import report_model
from genm.report.payload import Report
from genm.report.render import render_report

__all__ = [
    "DETAIL_QUERIES",
    "Report",
    "Source",
    "build_report",
    "compute_evidence",
    "render_report",
    "report_model",
    "write_text",
]
