"""Charts of results: what is drawn are the values of the object, under their names."""

import sys

import numpy as np
import pytest
from problems import made_up

from genm import plotting
from genm.errors import MissingExtraError, NotFittedError
from genm.evaluate import compare_runs, evaluate_aligned
from genm.evidence import gather_evidence
from genm.explain import measure_worth, plot_worth
from genm.learn import EqualFuser, NewtonFuser

pytestmark = pytest.mark.needs("matplotlib")


@pytest.fixture(scope="module", autouse=True)
def no_window():
    """Draw without a screen, and close what was drawn."""
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def aligned():
    return made_up(0, quality=(1.0, 0.4), n_queries=8)


@pytest.fixture(scope="module")
def gathered(aligned):
    return gather_evidence(aligned, EqualFuser, "AP", folds=2)


def names(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def written(axes):
    return [text.get_text() for text in axes.texts]


def test_an_evaluation_is_drawn_query_by_query_from_the_highest(aligned):
    evaluation = evaluate_aligned(aligned, np.array([0.5, 0.5]), "AP,P@5")
    axes = evaluation.plot()
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == sorted(evaluation.per_query("AP"), reverse=True)
    best = int(np.argmax(evaluation.per_query("AP")))
    assert names(axes.xaxis)[0] == evaluation.query_ids[best]
    assert axes.get_ylabel() == "AP"
    assert evaluation.plot("P@5").get_ylabel() == "P@5"


def test_many_queries_are_counted_instead_of_named():
    aligned = made_up(0, quality=(1.0,), n_queries=60, n_docs=10)
    axes = evaluate_aligned(aligned, np.ones(1), "AP").plot()
    assert names(axes.xaxis) == []
    assert axes.get_xlabel() == "60 queries, highest value first"


def test_a_comparison_is_drawn_with_its_intervals(aligned):
    pair = {"x <b>": evaluate_aligned(aligned, np.array([0.0, 1.0]), "AP,P@5"),
            "y": evaluate_aligned(aligned, np.array([1.0, 0.0]), "AP,P@5")}  # fmt: skip
    comparison = compare_runs(pair, n_resamples=200)
    axes = comparison.plot()
    assert names(axes.yaxis) == ["y, AP", "y, P@5"]
    assert written(axes)[0] == f"{comparison.contrasts[0].difference:+.4f}".replace("-", "\N{MINUS SIGN}")
    assert "Difference to x <b>" in axes.get_title(loc="left")
    spans = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert any(list(span) == [comparison.contrasts[0].low, comparison.contrasts[0].high] for span in spans)


def test_a_filled_mark_means_that_the_interval_excludes_0(aligned):
    weak, strong = np.zeros(8), np.linspace(0.1, 0.9, 8)
    axes = compare_runs({"a": weak, "b": strong, "c": weak}, n_resamples=200).plot()
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [False, True]


def test_a_single_query_has_no_interval():
    axes = compare_runs({"a": np.array([0.1]), "b": np.array([0.4])}).plot()
    assert written(axes) == ["+0.3000"]


def test_evidence_is_drawn_as_gains_and_as_weights(gathered):
    _, evidence = gathered
    assert names(evidence.plot().yaxis) == ["over r0", "over RRF"]
    weights = evidence.plot_weights()
    assert names(weights.yaxis) == ["r0", "r1"]
    assert "learned without each fold" in weights.get_xlabel()
    assert evidence.held_out.plot().get_ylabel() == "AP"


def test_weights_of_fusers_and_models_are_drawn(gathered):
    fuser, _ = gathered
    for drawn in (fuser.plot(), fuser.to_model().plot()):
        assert written(drawn) == ["0.5000", "0.5000"]
    with pytest.raises(NotFittedError, match="no weights yet"):
        NewtonFuser().plot()


def test_the_axes_may_be_given(gathered):
    figure, [axes] = plotting.new_figure()
    assert gathered[0].plot(ax=axes) is axes
    assert figure.axes == [axes]


def test_what_the_first_figure_switches_on_stays_on(gathered, monkeypatch):
    """In a notebook the first figure loads the backend, which switches the display of figures on."""
    import matplotlib.pyplot as plt

    make = plt.subplots

    def first_figure(*words, **options):
        plt.ion()
        return make(*words, **options)

    monkeypatch.setattr(plt, "subplots", first_figure)
    try:
        gathered[0].plot()
        assert plt.isinteractive()
    finally:
        plt.ioff()


def test_settings_of_the_user_stay_as_they_are(gathered):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    gathered[0].plot()
    assert dict(mpl.rcParams) == before


def test_the_worth_of_rankers_is_drawn(aligned):
    figure = plot_worth(measure_worth(aligned, folds=2, method="enm"))
    left, right = figure.axes
    assert sorted(names(left.yaxis)) == ["r0", "r1"]
    assert right.get_title(loc="left") == "Lost when it is left out"


def test_without_matplotlib_the_error_has_the_install_line(gathered, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'genm\[plots\]'"):
        gathered[0].plot()
