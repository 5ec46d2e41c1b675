"""Every system under every measure."""

from dataclasses import replace

import numpy as np
import pytest
from report.conftest import fit, gappy

from genm.evidence import BEST_SINGLE, RRF, UNIFORM, FewerQueries
from genm.learn.auto import AutoFuser
from genm.report.systems import headline_of, learning_of, measure_systems, ranker_ids, verdict_of


def means(report) -> dict[str, dict[str, float]]:
    table = report["measures"]
    return {s["id"]: dict(zip(table["measures"], s["values"], strict=True)) for s in table["systems"]}


def test_the_first_column_is_the_evidences(built) -> None:
    evidence, found = built.kept.evidence, means(built.report)
    assert found["learned weights"]["AP"] == pytest.approx(evidence.held_out.mean)
    assert found["best single ranker"]["AP"] == pytest.approx(evidence.mean(evidence.best_single))
    for name, values in (evidence.singles | evidence.rules).items():
        assert found[name]["AP"] == pytest.approx(evidence.mean(values))


def test_measuring_again_gives_the_evidences_values(built) -> None:
    """The report's own measure, measured anew query by query, fold by fold, is what the folds found."""
    evidence = built.kept.evidence
    again = measure_systems(built.aligned, built.model, evidence, np.arange(30))
    assert again.values["learned weights"][:, 0].tolist() == evidence.held_out.per_query.tolist()
    assert again.values["best single ranker"][:, 0].tolist() == evidence.best_single.tolist()
    assert again.values["learned weights (training)"][:, 0].tolist() == evidence.train.tolist()
    assert again.values["RRF (k=60)"][:, 0].tolist() == evidence.rules["RRF (k=60)"].tolist()


def test_folds_that_chose_their_own_normalisers_are_measured_under_them() -> None:
    aligned = gappy(1, n_queries=16)
    model, kept = fit(aligned, make=lambda: AutoFuser(normalize="auto", repeats=1, folds=2))
    again = measure_systems(aligned, model, kept.evidence, np.arange(16))
    assert again.values["learned weights"][:, 0].tolist() == kept.evidence.held_out.per_query.tolist()


def test_only_training_figures_are_marked_as_such(built) -> None:
    honest = {s["id"]: s["held_out"] for s in built.report["measures"]["systems"]}
    assert [name for name, held_out in honest.items() if not held_out] == ["learned weights (training)"]


def test_names_of_rankers_never_hide_the_fusion() -> None:
    assert ranker_ids(["bm25", "learned weights"]) == ["bm25", "learned weights (ranker)"]


def test_curves_fall(built) -> None:
    for curve in built.report["curves"]:
        assert len(curve["precision"]) == 11
        assert (np.diff(curve["precision"]) <= 1e-9).all()
    assert "best single ranker" not in {curve["system"] for curve in built.report["curves"]}


def against(evidence, rival, difference, p, *, low=None, high=None, n=None):
    """Return the evidence with other figures against a rival."""
    figures = {
        "low": difference - 0.01 if low is None else low,
        "high": difference + 0.01 if high is None else high,
    }
    counts = {} if n is None else {"n_better": n, "n_worse": 0, "n_equal": 30 - n}
    gain = evidence.gains[rival]
    changed = replace(gain, difference=difference, p_values={**gain.p_values, "wilcoxon": p}, **figures, **counts)
    return replace(evidence, gains={**evidence.gains, rival: changed})


@pytest.mark.parametrize(
    ("difference", "p", "low", "high", "outcome", "advice"),
    [
        (0.1, 0.001, 0.05, 0.15, "better", "adopt"),
        (0.1, 0.3, -0.05, 0.25, "perhaps better", "judge-more"),
        (0.1, 0.001, -0.05, 0.25, "perhaps better", "judge-more"),  # many small losses, a few large gains
        (-0.1, 0.001, -0.15, -0.05, "worse", "keep"),
        (-0.1, 0.3, -0.15, 0.05, "perhaps worse", "keep"),
        (-0.1, 0.001, -0.25, 0.05, "perhaps worse", "keep"),
    ],
)
def test_the_advice_follows_the_evidence(built, difference, p, low, high, outcome, advice) -> None:
    evidence = against(built.kept.evidence, BEST_SINGLE, difference, p, low=low, high=high)
    head = headline_of(evidence)
    assert (head["gains"][0]["outcome"], head["advice"]) == (outcome, advice)
    assert (
        head["significant"] == head["gains"][0]["significant"] == evidence.is_significant == (outcome == "better")
    )
    assert f"{difference:+.4f} AP over best single ranker" in head["gains"][0]["sentence"]
    side = "better" if difference > 0 else "worse"
    said = "): not significant" if "perhaps" in outcome else "): significant"
    assert (
        f"0.1000 MAP {side} than the best single ranker (95% interval {low:+.4f} to {high:+.4f}" in head["verdict"]
    )
    assert said in head["verdict"].partition(". They")[0]


def test_the_verdict_says_what_needs_no_learning_and_may_do_as_well(built) -> None:
    evidence = against(built.kept.evidence, BEST_SINGLE, 0.1, 0.001)
    evidence = against(against(evidence, RRF, 0.05, 0.002), UNIFORM, 0.02, 0.003)
    said = verdict_of(evidence)
    assert "They are 0.0500 MAP better than RRF (95% interval +0.0400 to +0.0600, p = 0.002)" in said
    assert "may do as well" not in said
    evidence = against(evidence, UNIFORM, 0.001, 0.5)
    assert "Without learning, equal weights may do as well." in verdict_of(evidence)
    assert "may do as well" not in verdict_of(evidence, learned=False)
    evidence = against(evidence, RRF, -0.001, 0.5)
    assert "Without learning, RRF and equal weights may" in verdict_of(evidence)


def test_the_verdict_names_what_needs_no_learning_and_is_clearly_better(built) -> None:
    evidence = against(built.kept.evidence, BEST_SINGLE, 0.1, 0.001)
    evidence = against(against(evidence, RRF, 0.05, 0.002), UNIFORM, -0.02, 0.003)
    assert evidence.better_rules == (UNIFORM,)
    head = headline_of(evidence)
    assert head["advice"] == "use-rule"
    assert head["verdict"].endswith("Clearly better, without learning: equal weights.")
    assert "What needs no learning does better: uniform weights (" in evidence.verdict()
    both = against(evidence, RRF, -0.05, 0.001)
    assert "without learning: " in verdict_of(both)
    assert "may do as well" not in verdict_of(both)
    assert headline_of(against(both, BEST_SINGLE, -0.1, 0.001))["advice"] == "keep"


def test_small_and_missing_differences_read_sensibly(built) -> None:
    same = against(built.kept.evidence, BEST_SINGLE, 0.0, 1.0, n=0)
    assert "equal the best single ranker on every query." in headline_of(same)["verdict"]
    assert headline_of(same)["gains"][0]["outcome"] == "equal"
    assert "equal the best single ranker on every query" in same.verdict()
    tiny = against(built.kept.evidence, BEST_SINGLE, -0.00001, 0.9)
    assert "are about equal to the best single ranker (" in headline_of(tiny)["verdict"]
    assert "(0.0000 AP, " in tiny.verdict()
    few = against(built.kept.evidence, BEST_SINGLE, 0.2, 0.0625, n=5)
    assert "With only 5 queries that differ, no gain can be significant" in headline_of(few)["verdict"]
    worse = against(built.kept.evidence, BEST_SINGLE, -0.2, 0.001)
    assert worse.verdict().startswith("Held out, the learned weights lose to the best single ranker (-0.2000 AP")


@pytest.mark.parametrize(
    ("lift", "words"),
    [(0.2, "more judged queries are likely to help"), (-0.2, "did not help"), (0.0, "would help little")],
)
def test_whether_more_judgments_would_help(built, lift, words) -> None:
    values = built.kept.evidence.held_out.per_query
    noise = np.random.default_rng(0).normal(0, 0.05, len(values))
    fewer = FewerQueries(np.array([10.0, 22.5]), np.array([values - lift + noise - noise.mean(), values]), "Note.")
    curve = learning_of(replace(built.kept, fewer=fewer))
    assert words in curve["sentence"]
    assert curve["sentence"].endswith(" Note.")
    assert curve["points"][-1]["difference"] == pytest.approx(0.0)
    assert curve["points"][0]["low"] < curve["points"][0]["mean"] < curve["points"][0]["high"]


def test_a_single_point_tells_nothing(built) -> None:
    fewer = FewerQueries(np.array([22.5]), built.kept.evidence.held_out.per_query[None], "Note.")
    assert learning_of(replace(built.kept, fewer=fewer))["sentence"].startswith("There are too few queries")


def test_where_nothing_is_learned_there_is_no_curve(built) -> None:
    fewer = FewerQueries(np.zeros(0), np.zeros((0, 30)), "Nothing is learned.")
    assert learning_of(replace(built.kept, fewer=fewer)) is None
