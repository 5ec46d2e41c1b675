"""Learning from few judgments: equal weights until something is clear, and AP where all is judged."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm.align import UNJUDGED, Aligned
from genm.errors import InputError
from genm.learn import ExpectedFuser, expected, make_fuser
from genm.learn.expected import ExpectedProblem
from genm.learn.objectives import Problem
from genm.learn.relevance import LEAST_QUERIES

WHOLE = made_up(1, quality=(1.2, 0.2, 0.0), n_queries=30)
GRADES = np.where(WHOLE.relevance == UNJUDGED, 0, WHOLE.relevance).astype(np.int32)


def judged(n: int, seed: int = 0) -> Aligned:
    """Judge n documents, those near the top of the first list rather than others."""
    order = np.argsort(-WHOLE.scores[:, 0] + np.random.default_rng(seed).normal(0, 0.1, len(GRADES)))[:n]
    grades = np.full(len(GRADES), UNJUDGED, np.int32)
    grades[order] = GRADES[order]
    return replace(WHOLE, relevance=grades)


def test_complete_judgments_make_it_average_precision() -> None:
    whole, weights = replace(WHOLE, relevance=GRADES), np.array([0.5, 0.3, 0.2])
    assert ExpectedProblem(whole).per_query(weights) == pytest.approx(Problem(whole).exact_per_query(weights))


def test_a_selection_is_the_problem_of_those_queries() -> None:
    problem, weights = ExpectedProblem(judged(200)), np.array([0.5, 0.3, 0.2])
    some = np.array([3, 7, 20])
    assert problem.select(some).per_query(weights) == pytest.approx(problem.per_query(weights)[some])
    values, gradients = problem.gradients(weights)
    assert problem.select(some).gradients(weights)[0] == pytest.approx(values[some])
    assert problem.select(some).gradient(weights)[1] == pytest.approx(gradients[some].mean(axis=0))


def test_few_judgments_are_enough_to_prefer_the_better_ranker() -> None:
    fuser = ExpectedFuser().fit(judged(150))
    assert fuser.weights_[0] > 0.5
    exact = Problem(replace(WHOLE, relevance=GRADES))
    assert exact.exact(fuser.weights_) > exact.exact(np.full(3, 1 / 3))
    assert f"learning stands on {fuser.n_informative_} of 30 queries" in fuser.notes_[0].text


def test_with_hardly_any_relevant_document_weights_stay_equal_and_it_is_said() -> None:
    fuser = ExpectedFuser().fit(judged(4))
    assert fuser.n_informative_ < LEAST_QUERIES
    assert fuser.weights_.tolist() == [1 / 3] * 3
    assert [note.code for note in fuser.notes_] == ["informative-queries", "equal-weights-kept"]


def test_judgments_that_show_nothing_leave_the_weights_equal() -> None:
    noise = made_up(9, quality=(0.0, 0.0, 0.0), n_queries=20)
    fuser = ExpectedFuser().fit(replace(noise, relevance=np.where(noise.relevance == UNJUDGED, 0, 1)))
    assert fuser.weights_ == pytest.approx([1 / 3] * 3)
    assert "do not show clearly" in fuser.notes_[1].text


def test_it_goes_by_its_name_and_needs_judgments() -> None:
    assert isinstance(make_fuser("expected"), ExpectedFuser)
    with pytest.raises(InputError, match="carry no judgments"):
        ExpectedFuser().fit(made_up(0, labelled=False))


def test_what_unjudged_documents_leave_open_keeps_weights_near_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    few = judged(60)
    strict = ExpectedFuser().fit(few)
    monkeypatch.setattr(expected, "UNJUDGED_ERRORS", 0.0)
    free = ExpectedFuser().fit(few)
    assert np.abs(strict.weights_ - 1 / 3).sum() < np.abs(free.weights_ - 1 / 3).sum()
    monkeypatch.setattr(expected, "UNJUDGED_ERRORS", 1e9)
    assert ExpectedFuser().fit(few).weights_ == pytest.approx([1 / 3] * 3)
    whole = replace(WHOLE, relevance=GRADES)
    assert ExpectedFuser().fit(whole).weights_[0] > 0.5, "nothing is open where all documents are judged"


def test_probabilities_of_judgments_change_what_is_learned() -> None:
    few = judged(150)
    doubtful = replace(few, probability=np.where(few.relevance == UNJUDGED, np.nan, 0.5))
    assert ExpectedFuser().fit(doubtful).weights_ == pytest.approx([1 / 3] * 3)
    certain = replace(few, probability=np.where(few.relevance == UNJUDGED, np.nan, few.relevance > 0))
    assert ExpectedFuser().fit(certain).weights_.tolist() == ExpectedFuser().fit(few).weights_.tolist()


def test_judgments_of_relevant_documents_only_make_the_others_not_relevant() -> None:
    assert (WHOLE.relevance[WHOLE.relevance != UNJUDGED] > 0).all()
    fuser, whole = ExpectedFuser().fit(WHOLE), ExpectedFuser().fit(replace(WHOLE, relevance=GRADES))
    assert fuser.weights_.tolist() == whole.weights_.tolist()
    assert "relevant-only" in [note.code for note in fuser.notes_]
    assert "relevant-only" not in [note.code for note in whole.notes_]
