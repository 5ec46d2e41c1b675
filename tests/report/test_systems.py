"""Every system under every measure."""

from dataclasses import replace

import numpy as np
import pytest
from report.conftest import fit, gappy

from genm.evaluate.compare import outcome_of
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, FewerQueries, ranker_ids
from genm.learn.auto import AutoFuser
from genm.report.systems import headline_of, learning_of, measure_systems


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


def against(evidence, rival, difference, *, low=None, high=None, n=None, mean=None):
    """Return the evidence with other figures against a rival; of a higher `mean`, it is the strongest one."""
    low = difference - 0.01 if low is None else low
    high = difference + 0.01 if high is None else high
    counts = {} if n is None else {"n_better": n, "n_worse": 0, "n_equal": 30 - n}
    outcome = outcome_of(difference, 30 if n is None else n, significant=low > 0.0 or high < 0.0)
    means = {} if mean is None else {"baseline_mean": mean}
    gain = replace(
        evidence.gains[rival], difference=difference, low=low, high=high, outcome=outcome, **counts, **means
    )
    return replace(evidence, gains={**evidence.gains, rival: gain})


@pytest.mark.parametrize("p", [0.001, 0.3])
@pytest.mark.parametrize("rival", [BEST_SINGLE, UNIFORM, RRF])
@pytest.mark.parametrize(
    ("difference", "low", "high", "outcome", "advice", "words"),
    [
        (0.1, 0.05, 0.15, "better", "adopt", "beat the strongest rival, "),
        (0.1, -0.05, 0.25, "perhaps better", "judge-more", "not shown to differ from the strongest rival, "),
        (-0.1, -0.15, -0.05, "worse", "keep", "lose to the strongest rival, "),
        (-0.1, -0.25, 0.05, "perhaps worse", "keep", "not shown to differ from the strongest rival, "),
    ],
)
def test_badge_words_and_advice_follow_the_interval(
    built, rival, p, difference, low, high, outcome, advice, words
) -> None:
    """One criterion decides all of them, whatever p says."""
    evidence = against(built.kept.evidence, rival, difference, low=low, high=high, mean=1.0)
    gain = replace(evidence.gains[rival], p_values={**evidence.gains[rival].p_values, "wilcoxon": p})
    evidence = replace(evidence, gains={**evidence.gains, rival: gain})
    head = headline_of(evidence)
    if outcome == "worse" and rival != BEST_SINGLE:
        advice = "use-rule"
    assert (head["gains"][0]["over"], head["strongest"]) == (rival, rival)
    assert (head["gains"][0]["outcome"], head["advice"]) == (outcome, advice)
    assert (
        head["significant"] == head["gains"][0]["significant"] == evidence.is_significant == (outcome == "better")
    )
    name = evidence.label(rival)
    assert f"{difference:+.4f} AP over {name}" in head["gains"][0]["sentence"]
    assert f"{words}{name} ({difference:+.4f} AP, 95% interval {low:+.4f} to {high:+.4f})" in head["verdict"]
    assert (rival in evidence.better_rules) == (outcome == "worse" and rival != BEST_SINGLE)


def test_the_verdict_says_what_is_beaten_and_what_is_not(built) -> None:
    evidence = against(built.kept.evidence, BEST_SINGLE, 0.1)
    evidence = against(against(evidence, RRF, 0.05), UNIFORM, 0.02, mean=1.0)
    best = evidence.label(BEST_SINGLE)
    assert evidence.verdict().endswith(f"+0.0100 to +0.0300), and {best} and RRF.")
    level = against(evidence, UNIFORM, 0.001, mean=1.0)
    assert level.verdict().startswith(
        "Held out, the learned weights are not shown to differ from the strongest rival"
    )
    assert level.verdict().endswith(f"; they beat {best} and RRF.")
    neither = against(against(level, RRF, 0.001), BEST_SINGLE, 0.001)
    assert neither.verdict().endswith("; no gain over any rival is shown.")
    worse = against(evidence, UNIFORM, -0.02, mean=1.0)
    assert worse.verdict().endswith(f", and beat {best} and RRF.")
    partly = against(evidence, RRF, 0.001)
    assert partly.verdict().endswith(f", and {best}; no gain over RRF is shown.")


def test_small_and_missing_differences_read_sensibly(built) -> None:
    same = against(built.kept.evidence, BEST_SINGLE, 0.0, n=0, mean=1.0)
    assert f"give every query the same as the strongest rival, {same.best_name} (" in headline_of(same)["verdict"]
    assert headline_of(same)["gains"][0]["outcome"] == "equal"
    tiny = against(built.kept.evidence, BEST_SINGLE, -0.00001, mean=1.0)
    assert "(0.0000 AP, " in tiny.verdict()
    worse = against(built.kept.evidence, BEST_SINGLE, -0.2, mean=1.0)
    assert worse.verdict().startswith("Held out, the learned weights lose to the strongest rival, ")


def test_the_share_without_judgments_stands_beside_the_verdict(built) -> None:
    head = headline_of(replace(built.kept.evidence, unjudged=0.25))
    assert head["unjudged"] == 0.25
    assert head["caveat"].startswith("25% of the top 10 of the learned weights has no judgment")
    assert headline_of(replace(built.kept.evidence, unjudged=None))["caveat"] == ""
    assert built.report["headline"]["unjudged"] == built.report["coverage"]["unjudged_fused"]


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
