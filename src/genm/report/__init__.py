"""Evidence that a person can look at: one page about a model, and the same for papers and pipelines."""

from genm.io import write_text
from genm.report.build import Source, build_report, compute_evidence
from genm.report.payload import Report
from genm.report.render import render_report

__all__ = ["Report", "Source", "build_report", "compute_evidence", "render_report", "write_text"]
