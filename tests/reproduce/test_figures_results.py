"""Figures of the results: the numbers are those of the methods, and words follow from numbers."""

from dataclasses import replace

import numpy as np
import pytest
from reproduced import capture, collection, results

from genm.reproduce.figures.results import draw_recall, draw_summary, rows_of
from genm.reproduce.figures.style import LEARNED, SHOWN, best_single, look_of
from genm.reproduce.paper import TABLE_3


def lifted(found, by):
    """The same collection with every learned method's values moved."""
    moved = {n: replace(m, values=m.values + by) if n in LEARNED else m for n, m in found.methods.items()}
    return replace(found, methods=moved)


def test_every_shown_method_looks_different():
    looks = [tuple(map(str, look_of(name).values())) for name in (*SHOWN, "lsa")]
    assert len(set(looks)) == len(looks)


def test_the_best_ranker_is_a_single_one():
    found = collection()
    best = best_single(found)
    assert best.kind == "single"
    assert best.mean[0] == max(found.methods[name].mean[0] for name in found.aligned.rankers)
    assert best_single(replace(found, methods={})) is None


def test_rows_compare_with_the_papers_best_or_the_best_ranker():
    paper, own = collection(), collection("pydocs", "pydocs", seed=2)
    rows = rows_of(results(paper, own))
    assert [(row.collection, row.measure) for row in rows[:3]] == [("MED", "MAP"), ("MED", "Pr@1"), ("MED", "Pr@5")]
    assert rows[0].reference == max(TABLE_3["MED", "MAP"].values)
    assert rows[3].printed == ()
    assert rows[3].reference == best_single(own).mean[0]
    for row in rows:
        assert row.best[0] in LEARNED
        assert row.best[1] == max(value for name, value, _ in row.ours if name in LEARNED)


def test_the_baseline_is_never_our_best():
    found = collection()
    enm = found.methods["EnM"]
    found = replace(found, methods=found.methods | {"EnM": replace(enm, values=enm.values + 10.0)})
    assert all(row.best[0] != "EnM" for row in rows_of(results(found)))


@pytest.mark.needs("matplotlib")
def test_the_summary_counts_the_rows_above():
    above = draw_summary(results(lifted(collection(), 1.0)))
    assert above.caption.startswith("In 3 of 3 rows")
    assert "Not so" not in above.caption
    below = draw_summary(results(lifted(collection(), -1.0)))
    assert below.caption.startswith("In 0 of 3 rows")
    assert "Not so in MED MAP, MED Pr@1, MED Pr@5." in below.caption
    own = draw_summary(results(collection("pydocs", "pydocs")))
    assert "paper" not in own.svg.replace("the paper's best figure</title>", "")
    assert draw_summary(results()) is None


@pytest.mark.needs("matplotlib")
def test_the_summary_shows_each_method_at_its_distance(monkeypatch):
    figures = capture(monkeypatch)
    one = results(collection())
    draw_summary(one)
    plotted = {float(x) for line in figures[0].axes[0].lines for x in line.get_xdata()}
    for row in rows_of(one):
        for _, value, _ in row.ours:
            assert value - row.reference in plotted
        for value in row.printed:
            assert value - row.reference in plotted


@pytest.mark.needs("matplotlib")
def test_precision_is_plotted_as_measured_and_as_a_difference(monkeypatch):
    figures = capture(monkeypatch)
    found = [collection(), collection("cran", "CRAN", seed=3)]
    drawing = draw_recall(found)
    for at, one in enumerate(found):
        whole, apart = figures[0].axes[2 * at : 2 * at + 2]
        shown = {line.get_label(): line.get_ydata() for line in whole.lines}
        for name in SHOWN:
            np.testing.assert_array_equal(shown[name], one.methods[name].curve)
        single = best_single(one)
        np.testing.assert_array_equal(shown["best ranker alone"], single.curve)
        differences = [list(line.get_ydata()) for line in apart.lines]
        assert (one.methods["gEnM.ON"].curve - single.curve).tolist() in differences
    assert all(text in drawing.svg for text in ("MED", "CRAN", *SHOWN, "best ranker alone"))
