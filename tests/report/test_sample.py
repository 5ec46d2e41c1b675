"""Which queries are shown where not all can be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up
from report.conftest import fit

from genm.report import build_report, sample
from genm.report.packing import unpack
from genm.report.sample import draw_samples, say_samples


@pytest.fixture(scope="module")
def aligned():
    return made_up(0, n_queries=60, n_docs=30)


def draw(aligned, seed=0, n_details=200):
    delta = np.random.default_rng(7).normal(size=60)
    return draw_samples(aligned, delta, n_details=n_details, seed=seed, level=1), delta


def test_small_data_are_shown_whole(aligned) -> None:
    samples, _ = draw(aligned)
    for positions in samples:
        assert positions.tolist() == list(range(60))
    assert say_samples(samples, 60, 0) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 70))
def test_drawing_is_seeded_and_within_bounds(aligned, seed, n_details) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "SLIDER_SCORES", 30 * 3 * 10)
        patch.setattr(sample, "TABLE_SCORES", 30 * 3 * 20 + 5)
        patch.setattr(sample, "TABLE_ROWS", 50)
        samples, delta = draw(aligned, seed, n_details)
        again, _ = draw(aligned, seed, n_details)
    assert [s.tolist() for s in samples] == [s.tolist() for s in again]
    assert (len(samples.sliders), len(samples.table), len(samples.rows)) == (10, 20, 50)
    assert len(samples.details) == min(n_details, 60)
    assert set(samples.sliders) <= set(samples.table)
    assert set(samples.details[: min(n_details, 50)]) <= set(samples.rows) or n_details > 50
    for positions in samples:
        assert (np.diff(positions) > 0).all()
    if n_details >= 4:
        assert int(np.argmax(delta)) in samples.details
        assert int(np.argmin(delta)) in samples.details


def test_every_part_that_is_cut_says_so(aligned, monkeypatch) -> None:
    monkeypatch.setattr(sample, "SLIDER_SCORES", 900)
    samples, _ = draw(aligned, 3, 8)
    said = {one["part"]: one for one in say_samples(samples, 60, 3)}
    assert set(said) == {"sliders", "details"}
    assert said["sliders"]["sentence"] == (
        "The sliders rank the documents of 10 of 60 queries, drawn at random (seed 3)."
    )
    assert (said["details"]["n_shown"], said["details"]["n_all"]) == (8, 60)


def test_a_report_of_sampled_queries_still_points_at_the_right_ones(monkeypatch) -> None:
    aligned = made_up(1, n_queries=40, n_docs=30)
    model, kept = fit(aligned)
    monkeypatch.setattr(sample, "TABLE_ROWS", 12)
    monkeypatch.setattr(sample, "SLIDER_SCORES", 30 * 3 * 5)
    monkeypatch.setattr(sample, "TABLE_SCORES", 30 * 3 * 7)
    monkeypatch.setattr(sample, "LANDSCAPE_WORK", 30 * 13 * 6)
    report = build_report(aligned, model, kept, n_details=8)
    table = report["queries"]
    assert (len(table["query_ids"]), table["n_all"]) == (12, 40)
    place = {name: q for q, name in enumerate(aligned.queries)}
    for i, detail in enumerate(report["details"]):
        assert table["detail"][detail["query"]] == i
        q = place[table["query_ids"][detail["query"]]]
        known = {aligned.docs[int(d)] for d in aligned.doc[aligned.starts[q] : aligned.starts[q + 1]]}
        assert {doc["id"] for doc in detail["docs"]} <= known
    queries = unpack(report["sliders"]["queries"])
    for at, ap in zip(queries, report["sliders"]["ap"], strict=True):
        if at >= 0:
            assert table["values"]["learned weights (training)"][at] == pytest.approx(ap, abs=1e-6)
    assert {said["part"] for said in report["sampling"]} == {
        "measures", "curves", "coverage", "lines", "ternary", "sliders", "queries", "details",
    }  # fmt: skip
    assert report["measures"]["n_queries"] == 7
    assert report["measures"]["main_n_queries"] == 40
