"""What a reader is warned of."""

from dataclasses import replace

import pytest

from genm.records import Normalizer, Note
from genm.report.data import _about_queries, _about_rankers, coverage_of, normalizer_text


def codes(warnings) -> list[str]:
    return [warning["code"] for warning in warnings]


def test_coverage_is_the_alignments(built) -> None:
    coverage, found = built.report["coverage"], built.aligned.coverage()
    for k, row in enumerate(coverage["rankers"]):
        assert row["missing"] == found.missing[k]
        assert row["ties"] == found.ties[k]
        assert row["unjudged"] == pytest.approx(1 - found.judged[1, k])
    assert {"unjudged", "missing", "ties"} <= set(codes(coverage["warnings"]))
    assert 0.3 < coverage["unjudged_fused"] < 1.0


def test_notes_of_reading_are_passed_on(built) -> None:
    note = Note("x", 1, "run <b>: a line was repaired.")
    warnings = coverage_of(built.aligned, built.model, n_queries=30, notes=[note])["warnings"]
    assert warnings[-1] == {"code": "note", "level": "info", "text": note.text}


def row(name="a", low=0.0, high=1.0, missing=0.0, ties=0.0) -> dict:
    return {"ranker": name, "low": low, "high": high, "missing": missing, "ties": ties}


@pytest.mark.parametrize(
    ("rows", "kinds", "found"),
    [
        ([row(), row("b")], ["none", "none"], []),
        ([row(), row("b", missing=0.6)], ["minmax"] * 2, [("missing", "warning")]),
        ([row(ties=0.2), row("b")], ["minmax"] * 2, [("ties", "warning")]),
        ([row(), row("b", high=30.0)], ["none"] * 2, [("scales", "warning")]),
        ([row(), row("b", high=30.0)], ["minmax"] * 2, [("scales", "info")]),
        ([row(high=0.0), row("b", high=30.0)], ["none"] * 2, []),
    ],
)
def test_rankers(rows, kinds, found) -> None:
    assert [(w["code"], w["level"]) for w in _about_rankers(rows, kinds)] == found


def test_queries() -> None:
    assert codes(_about_queries(100, 0, 0, 100)) == []
    assert codes(_about_queries(12, 1, 2, 12)) == ["few-queries", "empty-queries", "no-relevant"]


def test_normalisers_are_named_with_what_is_special_about_them() -> None:
    assert normalizer_text(Normalizer()) == "minmax"
    assert normalizer_text(replace(Normalizer("reciprocal"), k=10.0)) == "reciprocal (k=10.0)"
