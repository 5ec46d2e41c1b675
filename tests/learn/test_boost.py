"""EnM: the reconstruction's two stages."""

import numpy as np
import pytest
from problems import made_up

from genm.align import align_runs
from genm.learn import BoostFuser
from genm.learn.objectives import Problem
from genm.read import qrels_from_dict, run_from_dict


def test_the_first_vote_goes_to_the_best_ranker() -> None:
    """One round by hand: the vote is 1/2 ln((1 + MAP) / (1 - MAP)), and one vote normalises to weight 1."""
    aligned = made_up(0, quality=(0.2, 1.5, 0.2))
    fuser = BoostFuser(search=False, max_iter=1).fit(aligned)
    assert fuser.weights_.tolist() == [0.0, 1.0, 0.0]
    problem = Problem(aligned, beta=1.0)
    assert fuser.history_[0].exact == pytest.approx(problem.exact(np.array([0.0, 1.0, 0.0])))


def test_the_search_never_loses_what_boosting_found() -> None:
    for seed in range(5):
        aligned = made_up(seed)
        boosted, searched = BoostFuser(search=False).fit(aligned), BoostFuser().fit(aligned)
        assert searched.objective_ >= boosted.objective_
        assert searched.objective_ == pytest.approx(Problem(aligned, beta=1.0).exact(searched.weights_))


def test_boosting_keeps_the_best_ensemble_it_saw() -> None:
    fuser = BoostFuser(search=False).fit(made_up(3))
    assert fuser.objective_ == pytest.approx(max(step.exact for step in fuser.history_), abs=2e-6)


def test_queries_made_ready_before_teach_the_same() -> None:
    aligned = made_up(6)
    fitted, shared = BoostFuser().fit(aligned), BoostFuser().fit_problem(Problem(aligned, beta=9.0))
    assert (shared.weights_.tolist(), shared.history_) == (fitted.weights_.tolist(), fitted.history_)


def test_where_no_ranker_finds_anything_relevant_the_weights_stay_equal() -> None:
    lists = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 1.0, "b": 3.0}}
    runs = {name: run_from_dict(lists, name=name) for name in ("one", "two")}
    aligned = align_runs(runs, qrels_from_dict({"q": {"c": 1}, "r": {"c": 1}}))
    assert BoostFuser(search=False).fit(aligned).weights_.tolist() == [0.5, 0.5]
