"""Every form of a report."""

import json

import pytest
from report.examples import example_report

from genm.errors import InputError
from genm.io import write_text
from genm.report import render_report


def test_json_is_the_payload() -> None:
    report = example_report()
    assert json.loads(render_report(report, "json")) == report


@pytest.mark.parametrize(("form", "begins"), [("html", "<!doctype html>"), ("md", "# model.json"), ("tex", "% ")])
def test_forms(form, begins) -> None:
    assert render_report(example_report(), form).lower().startswith(begins)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of html, md, json, tex; found 'pdf'"):
        render_report(example_report(), "pdf")


def test_half_an_id_is_written_escaped(tmp_path) -> None:
    write_text(str(tmp_path / "a.md"), "x \ud800 y")
    assert (tmp_path / "a.md").read_bytes() == b"x \\ud800 y"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
