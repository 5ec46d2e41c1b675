"""The spread of the weights."""

import numpy as np
import pytest
from problems import made_up

from genm.evaluate import parse_measure
from genm.evidence import gather_evidence, learn_from_fewer, refit_resampled, resampling
from genm.learn import BoostFuser, NewtonFuser
from genm.learn.auto import AutoFuser

AP = parse_measure("AP")


def test_refits_of_auto_vary_around_what_it_learned() -> None:
    aligned = made_up(5, n_queries=60, quality=(0.8, 0.6, 0.0))
    fuser = AutoFuser().fit(aligned)
    found = refit_resampled(aligned, fuser, n_resamples=40)
    assert found.weights.shape == found.before.shape == (40, 3)
    assert found.kind == "bootstrap"
    assert found.note.startswith(
        "40 refits on queries drawn with replacement, each optimised from the learned weights"
    )
    assert np.allclose(found.weights.sum(axis=1), 1.0)
    assert (found.weights >= 0.0).all()
    assert found.before.std(axis=0).min() > 0.001
    assert (np.abs(found.before.mean(axis=0) - fuser.learned_) < 3 * found.before.std(axis=0)).all()
    share = fuser.shrunk_.amount
    if fuser.shrunk_.target == "uniform":
        assert np.allclose(found.weights, (1 - share) * found.before + share / 3)


def test_more_queries_leave_less_spread() -> None:
    """Sixteen times as many leave about a quarter; it is enough that they leave less, and not by chance."""
    spread, n_resamples = [], 30
    for n in (20, 320):
        aligned = made_up(6, n_queries=n)
        found = refit_resampled(aligned, AutoFuser().fit(aligned), n_resamples=n_resamples)
        spread.append(found.before.std(axis=0).mean())
    error = np.sqrt(2 / (2 * (n_resamples - 1)))  # of the quotient of two standard deviations, relative
    assert spread[1] * (1 + 3 * error) < spread[0]


def test_the_seed_decides() -> None:
    aligned = made_up(7, n_queries=16)
    fuser = BoostFuser().fit(aligned)
    draws = [refit_resampled(aligned, fuser, n_resamples=5, seed=s).weights.tolist() for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize(
    ("make", "how"), [(NewtonFuser, "optimised from the learned weights"), (BoostFuser, "learned from scratch")]
)
def test_other_methods_say_how_and_leave_the_fuser_alone(make, how) -> None:
    aligned = made_up(8, n_queries=16)
    fuser = make().fit(aligned)
    before = fuser.weights_.copy()
    found = refit_resampled(aligned, fuser, n_resamples=3)
    assert f"each {how}" in found.note
    assert found.held_back is None
    assert getattr(fuser, "starts", None) is None
    assert fuser.weights_.tolist() == before.tolist()


def test_measures_without_a_smoothed_form_are_climbed_too() -> None:
    aligned = made_up(9, n_queries=16)
    found = refit_resampled(aligned, AutoFuser(measure="nDCG@10").fit(aligned), n_resamples=3)
    assert found.weights.shape == (3, 3)


@pytest.mark.parametrize(("rows", "words"), [(300, "they were skipped"), (20_000, "allowed for no more")])
def test_large_data_are_refitted_less_often_and_it_says_so(monkeypatch, rows, words) -> None:
    monkeypatch.setattr(resampling, "WARM_ROWS", rows)
    aligned = made_up(10, n_queries=16)
    found = refit_resampled(aligned, AutoFuser().fit(aligned))
    assert words in found.note
    assert len(found.weights) == (0 if rows == 300 else rows // len(aligned.doc))


@pytest.fixture(scope="module")
def gathered():
    """Queries, what was learned from them, and the evidence for it."""
    aligned = made_up(0, n_queries=40)
    return aligned, *gather_evidence(aligned, NewtonFuser, AP, folds=4)


def test_the_curve_ends_at_the_cross_validation(gathered) -> None:
    aligned, fuser, found = gathered
    curve = learn_from_fewer(aligned, fuser, found)
    assert curve.n_queries.tolist() == [7, 15, 30]
    assert curve.per_query.shape == (3, 40)
    assert curve.per_query[-1].tolist() == found.held_out.per_query.tolist()


def test_each_point_is_learned_from_that_many_queries_of_the_other_folds() -> None:
    aligned = made_up(1, n_queries=24)
    _, found = gather_evidence(aligned, NewtonFuser, AP, folds=2)
    seen = []

    class Watched(NewtonFuser):
        def fit(self, aligned):
            seen.append(set(aligned.queries))
            return super().fit(aligned)

    curve = learn_from_fewer(aligned, Watched().fit(aligned), found)
    assert curve.n_queries.tolist() == [6, 12]
    names = np.array(list(aligned.queries))
    folds = {f: set(names[found.held_out.fold == f]) for f in range(2)}
    missing = [[f for f, inside in folds.items() if not used & inside] for used in seen[1:]]
    assert sorted(missing) == [[0], [1]]  # threads finish in any order
    assert [len(used) for used in seen[1:]] == [6, 6]


def test_large_data_have_fewer_points_and_it_says_so(gathered, monkeypatch) -> None:
    aligned, fuser, found = gathered
    monkeypatch.setattr(resampling, "MOST_ROWS", 4 * 7 * 60)
    curve = learn_from_fewer(aligned, fuser, found)
    assert curve.n_queries.tolist() == [7, 30]
    assert "Points between 7 and 30 queries would take too long." in curve.note
