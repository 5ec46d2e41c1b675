"""UnsEnM: no judgment is read, rankers teach each other as said, and noise among them is found out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from problems import made_up

from genm import fit
from genm._math.agreement import agreement_penalty, score_moments
from genm._math.simplex_optimizers import as_distribution
from genm.align import UNJUDGED, Aligned
from genm.errors import InputError
from genm.learn import CotrainFuser
from genm.learn.objectives import Problem
from genm.learn.ranker_quality import pseudo_labels


class Untouchable:
    """Stands in for judgments: whoever looks at it fails."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"judgments were read: {name}")

    def __ge__(self, other: object) -> Any:
        raise AssertionError("judgments were compared")

    def __array__(self, *_: object, **__: object) -> Any:
        raise AssertionError("judgments were turned into an array")

    def __len__(self) -> int:
        raise AssertionError("judgments were counted")


def learned(aligned: Aligned, **options: Any) -> tuple[list[float], list[float], float]:
    fuser = CotrainFuser(**options).fit(aligned)
    return fuser.weights_.tolist(), [step.objective for step in fuser.history_], fuser.objective_


@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_judgments_are_never_read(trust: float) -> None:
    """The same to the last bit with true judgments, without any, with garbage, and with ones nobody may touch."""
    aligned = made_up(0)
    rng = np.random.default_rng(0)
    garbage = replace(
        aligned,
        relevance=rng.integers(-5, 5, len(aligned.doc)).astype(np.int32),
        unretrieved_starts=np.arange(len(aligned.queries) + 1) * 3,
        unretrieved=np.ones(3 * len(aligned.queries), np.int32),
    )
    nothing = replace(aligned, labelled=False, relevance=np.full(len(aligned.doc), UNJUDGED))
    locked: Any = Untouchable()
    untouchable = replace(aligned, relevance=locked, unretrieved_starts=locked, unretrieved=locked, labelled=locked)
    truth = learned(aligned, trust=trust, tol=1e-2)
    for other in (made_up(0, labelled=False), garbage, nothing, untouchable):
        assert learned(other, trust=trust, tol=1e-2) == truth


def test_fit_by_name_needs_no_judgments() -> None:
    assert fit(made_up(0, labelled=False), method="uns").weights_.tolist() == learned(made_up(0))[0]


def test_a_ranker_of_noise_is_found_out() -> None:
    """Two that see relevance and one that does not: the weights leave it out as far as judgments would show."""
    aligned = made_up(1, quality=(1.2, 1.2, 0.0), n_queries=25, n_docs=200)
    fuser = CotrainFuser().fit(aligned)
    assert fuser.weights_[2] < 0.05
    problem = Problem(aligned, beta=1.0)
    assert problem.exact(fuser.weights_) > problem.exact(np.full(3, 1 / 3)) + 0.05


def test_the_objective_is_p8_of_the_left_out_ensembles() -> None:
    aligned, sigma = made_up(2), 3.0
    fuser = CotrainFuser(sigma=sigma, beta=30.0).fit(aligned)
    marks, w = pseudo_labels(aligned, n=5), fuser.weights_
    reached = []
    for k in range(3):
        others = np.where(np.arange(3) == k, 0.0, w)
        problem = Problem(aligned, beta=30.0).with_labels(marks[:, k].copy())
        reached.append(problem.value(others / others.sum()))
    penalty = agreement_penalty(score_moments(aligned.starts, aligned.scores), w, sigma).value
    assert fuser.objective_ == pytest.approx(np.mean(reached) + penalty, abs=1e-12)


def test_one_round_by_hand() -> None:
    """Algorithm 4, departure 9: each in turn gives the labels and keeps its weight, the others their sum."""
    aligned, w = made_up(3), np.array([0.5, 0.3, 0.2])
    marks, beta = pseudo_labels(aligned, n=5), 30.0
    for k in range(3):
        others = np.arange(3) != k
        total = w[others].sum()
        model = np.where(others, w / total, 0.0)
        slope = Problem(aligned, beta=beta).with_labels(marks[:, k].copy()).gradient(model)[1][others]
        share = w[others] / total + (slope - slope.mean()) / (k + 2)
        assert (share > 0).all()  # no projection needed, so the step can be followed by hand
        w[others] = total * share
    fuser = CotrainFuser(
        sigma=0.0, trust=1.0, schedule="paper", beta=beta, starts=[[0.5, 0.3, 0.2]], max_iter=1, tol=1.0
    ).fit(aligned)
    best = np.array([0.5, 0.3, 0.2]) if fuser.history_[0].objective > fuser.history_[1].objective else w
    np.testing.assert_allclose(fuser.weights_, best, atol=1e-12)


def test_one_free_round_by_hand() -> None:
    """Algorithm 4 as printed, from zeros: step 1/t along the gradient in all but the label giver's weight."""
    aligned, w = made_up(3), np.zeros(3)
    marks, beta = pseudo_labels(aligned, n=5), 30.0
    for k in range(3):
        others = np.arange(3) != k
        problem = Problem(aligned, beta=beta).with_labels(marks[:, k].copy())
        w = np.where(others, w + problem.gradient(np.where(others, w, 0.0))[1] / (k + 2), w)
    fuser = CotrainFuser(
        sigma=0.0, trust=1.0, schedule="paper", free=True, beta=beta, starts=[[0, 0, 0]], max_iter=1, tol=1.0
    ).fit(aligned)
    assert [step.weights for step in fuser.history_] == [(0.0, 0.0, 0.0), pytest.approx(tuple(w), abs=1e-12)]
    best = max(fuser.history_, key=lambda step: step.objective)
    np.testing.assert_allclose(fuser.weights_, as_distribution(np.array(best.weights)), atol=1e-12)


def test_free_weights_start_from_all_binary_vectors() -> None:
    fuser = CotrainFuser(trust=1.0, schedule="paper", free=True, max_iter=1, tol=9.0, beta=30.0).fit(made_up(3))
    starts = {step.weights for step in fuser.history_ if step.iteration == 0}
    assert len(starts) == 8
    assert (0.0, 0.0, 0.0) in starts


def test_co_training_climbs_its_objective() -> None:
    for seed in range(5):
        fuser = CotrainFuser(sigma=0.0, starts=[[0.1, 0.1, 0.8]], trust=1.0, n=10, tol=1e-2)
        steps = fuser.fit(made_up(seed)).history_
        assert max(step.objective for step in steps) > steps[0].objective + 0.01
        assert all(0.0 <= step.exact <= 1.0 for step in steps)


def test_trust_goes_from_the_estimate_to_the_co_trained_weights() -> None:
    options: dict[str, Any] = {"schedule": "paper", "max_iter": 5, "tol": 1.0}
    none, half, full = (CotrainFuser(trust=t, **options).fit(made_up(4)) for t in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(none.weights_, none.estimate_, atol=1e-12)
    np.testing.assert_allclose(full.weights_, full.cotrained_, atol=1e-12)
    np.testing.assert_allclose(half.weights_, (none.weights_ + full.weights_) / 2, atol=1e-12)
    assert np.abs(full.weights_ - none.weights_).max() > 0.01


@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_the_scale_of_a_ranker_changes_nothing(trust: float) -> None:
    """Scores of one ranker four times larger: its weight is so much smaller, the ensemble the same."""
    options: dict[str, Any] = {"sigma": 0.0, "trust": trust, "tol": 1e-2}
    aligned = made_up(4, normalize="none")
    plain = CotrainFuser(beta=40.0, **options).fit(aligned)
    scaled = replace(aligned, scores=aligned.scores * np.array([4.0, 1.0, 1.0]))
    found = CotrainFuser(beta=40.0, **options).fit(scaled)
    np.testing.assert_allclose(as_distribution(found.estimate_ * [4.0, 1.0, 1.0]), plain.estimate_, rtol=1e-9)
    if trust == 0.0:
        np.testing.assert_allclose(as_distribution(found.weights_ * [4.0, 1.0, 1.0]), plain.weights_, rtol=1e-9)
    else:  # beta sees the length of the weights, so only the direction of the steps is the same
        np.testing.assert_allclose(as_distribution(found.weights_ * [4.0, 1.0, 1.0]), plain.weights_, atol=0.05)


def test_a_great_sigma_pulls_towards_agreement() -> None:
    """The penalty alone is best at uniform weights; labels alone prefer the better rankers."""
    free, held = (CotrainFuser(sigma=s, trust=1.0, tol=1e-2).fit(made_up(5)) for s in (0.0, 100.0))
    apart = [np.abs(fuser.weights_ - 1 / 3).max() for fuser in (free, held)]
    assert apart[1] < apart[0]
    assert apart[1] < 0.05


def test_two_rankers_both_stay_and_it_is_said() -> None:
    fuser = CotrainFuser().fit(made_up(6, quality=(1.0, 0.8)))
    assert [note.code for note in fuser.notes_] == ["two-rankers"]
    assert (fuser.weights_ > 0.2).all()
    assert CotrainFuser().fit(made_up(6)).notes_ == ()


def test_a_ranker_that_cannot_tell_documents_apart_teaches_nothing_and_gets_nothing() -> None:
    aligned = made_up(7)
    aligned.raw[:, 1] = 0.5
    aligned.scores[:, 1] = 1.0
    fuser = CotrainFuser().fit(aligned)
    assert [note.code for note in fuser.notes_] == ["no-labels"]
    assert "r1" in fuser.notes_[0].text
    assert fuser.weights_[1] < 0.05


def test_when_no_ranker_can_tell_documents_apart_all_weigh_the_same() -> None:
    aligned = made_up(8)
    aligned.raw[:], aligned.scores[:] = 0.5, 1.0
    assert CotrainFuser().fit(aligned).weights_.tolist() == [1 / 3] * 3


def test_the_end_nearest_to_the_estimate_is_kept() -> None:
    fuser = CotrainFuser(starts=[[1, 0, 0], [0, 0, 1], [1, 1, 1]], max_iter=1, tol=1.0, trust=1.0)
    aligned = made_up(9)
    fuser.fit(aligned)
    assert {step.start for step in fuser.history_} == {0, 1, 2}
    matrix = score_moments(aligned.starts, aligned.scores).matrix
    ends = [
        CotrainFuser(starts=[start], max_iter=1, tol=1.0, trust=1.0).fit(aligned).weights_
        for start in ([1, 0, 0], [0, 0, 1], [1, 1, 1])
    ]
    far = [(end - fuser.estimate_) @ matrix @ (end - fuser.estimate_) for end in ends]
    np.testing.assert_allclose(fuser.weights_, ends[int(np.argmin(far))], atol=1e-12)


def test_labels_by_threshold_are_used() -> None:
    aligned = made_up(10)
    assert learned(aligned, labels="threshold", threshold=0.7) != learned(aligned)
    assert learned(aligned, labels="threshold", threshold=0.7) != learned(
        aligned, labels="threshold", threshold=0.8
    )
    assert learned(aligned, n=3) != learned(aligned)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": "votes"}, "top, threshold"),
        ({"n": 0}, "whole number from 1"),
        ({"labels": "threshold", "threshold": np.nan}, "finite number"),
        ({"sigma": -1.0}, "0 or greater"),
        ({"trust": 1.5}, "from 0 .* to 1"),
        ({"schedule": "wild"}, "paper, adaptive"),
        ({"starts": [[1, 0, 0]]}, "trust=0 nothing is co-trained"),
        ({"free": True, "trust": 1.0}, 'expected schedule="paper"'),
        ({"free": True, "schedule": "paper"}, "expected trust=1"),
    ],
)
def test_senseless_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CotrainFuser(**options).fit(made_up(0))


def test_queries_without_documents_or_weight_change_nothing() -> None:
    aligned = made_up(11)
    assert CotrainFuser().fit(aligned.select(np.arange(11))).weights_.sum() == pytest.approx(1.0)
    none = aligned.select(np.zeros(0, np.int64))
    with pytest.raises(InputError, match="no query has a document"):
        CotrainFuser().fit(none)
