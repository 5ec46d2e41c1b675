"""The model of relevance: its start, what it learns, and that it favours no system before any judgment."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm._math.expected_ap import expected_ap, expected_size
from genm._math.scaling import rank_lists
from genm.align import UNJUDGED, Aligned
from genm.learn.relevance import (
    AT_RANK_1,
    Features,
    estimate_relevance,
    expected_difference,
    is_judged,
    ranker_features,
    system_features,
)


def hidden(aligned: Aligned, share: float, seed: int = 0) -> Aligned:
    """Judge a share of the rows; what the collection does not list is not relevant."""
    rng = np.random.default_rng(seed)
    grades = np.where(aligned.relevance == UNJUDGED, 0, aligned.relevance)
    shown = rng.random(len(grades)) < share
    return replace(aligned, relevance=np.where(shown, grades, UNJUDGED).astype(np.int32))


def test_without_judgments_it_falls_with_the_rank() -> None:
    aligned = made_up(0, labelled=False)
    features = ranker_features(aligned)
    found = estimate_relevance(aligned, features)
    order = np.argsort(features.columns[:, 1] + features.columns[:, 2])
    assert np.all(np.diff(found.p[order]) <= 1e-12)
    assert found.coefficients.tolist() == features.before.tolist()
    assert not found.judged.any()
    assert found.p.max() < 1 / (1 + np.exp(-AT_RANK_1)) + 1e-12


def test_judged_documents_are_certain() -> None:
    aligned = hidden(made_up(0), 0.3)
    found = estimate_relevance(aligned, ranker_features(aligned))
    assert found.judged.tolist() == is_judged(aligned).tolist()
    assert found.p[found.judged].tolist() == (aligned.relevance[found.judged] > 0).astype(float).tolist()
    assert (found.variance[found.judged] == 0).all()
    assert (found.variance[~found.judged] > 0).all()


def test_judgments_calibrate_it() -> None:
    whole = made_up(3, n_queries=60)
    aligned = hidden(whole, 0.5)
    found = estimate_relevance(aligned, ranker_features(aligned))
    rest = ~found.judged
    truth = (whole.relevance[rest] > 0).astype(float)
    assert found.p[rest].sum() == pytest.approx(truth.sum(), rel=0.15)
    before = estimate_relevance(replace(aligned, labelled=False), ranker_features(aligned)).p[rest]
    log_loss = [-np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p)) for p in (found.p[rest], before)]
    assert log_loss[0] < log_loss[1]


def test_the_better_ranker_gets_the_larger_slope() -> None:
    aligned = hidden(made_up(4, quality=(1.2, 0.0), n_queries=60), 0.5)
    found = estimate_relevance(aligned, ranker_features(aligned))
    assert found.coefficients[3] < -0.1  # a lower rank of the first list speaks for relevance


def test_two_systems_are_treated_alike() -> None:
    aligned = made_up(5, labelled=False)
    rng = np.random.default_rng(0)
    a, b = (
        np.concatenate([rng.permutation(n) + 1 for n in np.diff(aligned.starts)]).astype(np.int64) for _ in range(2)
    )
    one, other = (estimate_relevance(aligned, system_features(aligned, list(pair))).p for pair in ((a, b), (b, a)))
    assert one == pytest.approx(other)
    size = expected_size(aligned.starts, one, np.zeros(len(aligned.queries)))
    first, second = (expected_ap(aligned.starts, ranks, one, size).value.mean() for ranks in (a, b))
    assert first == pytest.approx(second, abs=0.02)


def test_a_query_with_many_relevant_documents_promises_more() -> None:
    aligned = made_up(6, n_queries=8)
    grades = np.full(len(aligned.doc), UNJUDGED, np.int32)
    first, second = (slice(int(aligned.starts[q]), int(aligned.starts[q]) + 20) for q in (0, 1))
    grades[first], grades[second] = 1, 0
    found = estimate_relevance(replace(aligned, relevance=grades), ranker_features(aligned))
    rest = [found.p[aligned.starts[q] + 20 : aligned.starts[q + 1]].mean() for q in (0, 1)]
    assert rest[0] > 2 * rest[1]
    assert found.query_variance[0] < found.query_variance[2]


def test_features_of_one_list() -> None:
    features = Features.of([np.log(np.arange(1.0, 30.0))], 1.0)
    assert features.columns.shape == (29, 3)
    assert len(features.before) == len(features.precision) == 3


def test_uncertain_judgments_count_by_their_probability() -> None:
    aligned = hidden(made_up(0), 0.3)
    judged = np.flatnonzero(is_judged(aligned))
    likely = np.full(len(aligned.doc), np.nan)
    likely[judged[:3]] = 0.25, 0.5, 0.75
    uncertain = replace(aligned, probability=likely)
    found = estimate_relevance(uncertain, ranker_features(aligned))
    assert found.p[judged[:3]].tolist() == [0.25, 0.5, 0.75]
    assert found.p[judged[3:]].tolist() == (aligned.relevance[judged[3:]] > 0).astype(float).tolist()
    assert (found.variance[judged[:3]] > 0).all()
    certain = replace(aligned, probability=np.where(is_judged(aligned), aligned.relevance > 0, np.nan))
    assert (
        estimate_relevance(certain, ranker_features(aligned)).p
        == estimate_relevance(aligned, ranker_features(aligned)).p
    ).all()


def test_the_error_of_a_difference_counts_doubtful_judgments_and_vanishes_where_all_is_certain() -> None:
    aligned = hidden(made_up(0), 1.0)
    features = ranker_features(aligned)
    ranks = tuple(rank_lists(aligned.raw, aligned.retrieved, aligned.starts).astype(np.int64)[:, :2].T)
    assert expected_difference(aligned, ranks, features).error == 0.0
    doubtful = replace(aligned, probability=np.where(aligned.relevance > 0, 0.8, 0.2))
    surer = replace(aligned, probability=np.where(aligned.relevance > 0, 0.99, 0.01))
    assert (
        expected_difference(doubtful, ranks, features).error > expected_difference(surer, ranks, features).error > 0
    )
