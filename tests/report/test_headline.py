"""The first things a reader asks."""

from dataclasses import replace

import numpy as np
import pytest

from genm.evidence import FewerQueries
from genm.report.headline import headline_of, learning_of


def test_the_advice_follows_the_evidence(built) -> None:
    evidence = built.kept.evidence
    gain = evidence.gains["best single ranker"]
    for difference, p, advice in ((0.1, 0.001, "adopt"), (0.1, 0.3, "judge-more"), (-0.1, 0.001, "keep")):
        changed = replace(gain, difference=difference, p_values={**gain.p_values, "wilcoxon": p})
        head = headline_of(replace(evidence, gains={**evidence.gains, "best single ranker": changed}))
        assert head["advice"] == advice
        assert head["significant"] == head["gains"][0]["significant"] == (advice == "adopt")
        assert f"{difference:+.4f} AP over best single ranker" in head["gains"][0]["sentence"]


@pytest.mark.parametrize(
    ("lift", "words"),
    [(0.2, "more judged queries are likely to help"), (-0.2, "was no better"), (0.0, "would bring little")],
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
