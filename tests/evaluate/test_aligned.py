"""A blend is worth what the run it would make is worth."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import Grades, Scores, judgments, qrels_of, run_of, tied_runs

from genm._math.scaling import rank_lists
from genm.align import Aligned, align_runs, drop_rankers
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, evaluate_aligned, evaluate_run
from genm.fuse import fuse_runs

MEASURES = (
    "AP,AP@2,P@3,R@2,nDCG,nDCG@2,RR,Rprec,Bpref,Judged@3,Success@1,IPrec@0.5,AP(rel=2),nDCG(judged_only=True)"
)
coarse = st.sampled_from([0.0, 0.25, 0.5, 1.0])  # many blends tie


@settings(deadline=None, max_examples=60)
@given(one=tied_runs(), two=tied_runs(), grades=judgments(), weights=st.tuples(coarse, coarse))
def test_a_blend_is_measured_as_the_run_it_makes(
    one: Scores, two: Scores, grades: Grades, weights: tuple[float, float]
) -> None:
    assume((set(one) & set(grades)) and (set(two) & set(grades)))
    qrels = qrels_of(grades)
    aligned = align_runs({"one": run_of(one), "two": run_of(two)}, qrels)
    fused = fuse_runs(aligned, weights=np.array(weights))
    by_run = evaluate_run(fused, qrels, MEASURES)
    by_blend = evaluate_aligned(aligned, np.array(weights), MEASURES)
    assert by_blend.query_ids == by_run.query_ids
    np.testing.assert_array_equal(by_blend.values, by_run.values)
    ties = [[(n.count, n.text.split(":", 1)[1]) for n in e.notes if n.code == "ties"] for e in (by_blend, by_run)]
    assert ties[0] == ties[1]


@settings(deadline=None, max_examples=60)
@given(one=tied_runs(), two=tied_runs(), grades=judgments())
def test_a_rankers_own_list_is_measured_as_its_run(one: Scores, two: Scores, grades: Grades) -> None:
    assume((set(one) & set(grades)) and (set(two) & set(grades)))
    qrels = qrels_of(grades)
    aligned = align_runs({"one": run_of(one), "two": run_of(two)}, qrels)
    evaluator = AlignedEvaluator(aligned, MEASURES)
    ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts)
    for k, scores in enumerate((one, two)):
        np.testing.assert_array_equal(
            evaluator.values_of_list(ranks, k), evaluate_run(run_of(scores), qrels, MEASURES).values
        )


@pytest.fixture
def aligned() -> Aligned:
    one = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"a": 3.0, "b": 1.0}}
    two = {"1": {"c": 3.0, "b": 2.0, "x": 1.0}, "2": {"b": 3.0, "c": 1.0}}
    grades = {"1": {"a": 1, "lost": 1}, "2": {"b": 2}}
    return align_runs({"one": run_of(one), "two": run_of(two)}, qrels_of(grades), normalize="none")


def test_documents_that_no_ranker_returned_count_in_the_denominator(aligned: Aligned) -> None:
    assert evaluate_aligned(aligned, np.array([1.0, 0.0]), "AP").values.tolist() == [[0.5], [0.5]]


def test_weights_and_the_scores_they_make_give_the_same(aligned: Aligned) -> None:
    evaluator = AlignedEvaluator(aligned, "AP,nDCG@2")
    weights = np.array([0.3, 0.7])
    scores = aligned.scores[:, 0] * 0.3 + aligned.scores[:, 1] * 0.7
    np.testing.assert_array_equal(evaluator.values(weights), evaluator.values(scores))
    np.testing.assert_array_equal(evaluator.evaluate(scores).values, evaluator.values(weights))


def test_an_evaluator_measures_one_blend_after_the_other(aligned: Aligned) -> None:
    evaluator = AlignedEvaluator(aligned, "RR")
    first = evaluator.values(np.array([1.0, 0.0]))
    second = evaluator.values(np.array([0.0, 1.0]))
    assert first.tolist() == [[1.0], [0.5]]
    assert second[1, 0] == 1.0
    np.testing.assert_array_equal(evaluator.values(np.array([1.0, 0.0])), first)


def test_queries_without_judgments_are_set_aside_and_said(aligned: Aligned) -> None:
    unjudged = dataclasses.replace(
        aligned,
        relevance=np.where(
            np.arange(len(aligned.relevance)) < aligned.starts[1], np.int32(-(2**31)), aligned.relevance
        ),
        unretrieved=aligned.unretrieved[:0],
        unretrieved_starts=np.zeros_like(aligned.unretrieved_starts),
    )
    evaluator = AlignedEvaluator(unjudged, "RR")
    evaluation = evaluator.evaluate(np.array([0.0, 1.0]))
    assert evaluation.query_ids == ("2",)
    assert evaluation.values.tolist() == [[1.0]]
    assert evaluator.position.tolist() == [1]
    assert [(n.code, n.count) for n in evaluation.notes] == [("unjudged-query", 1)]
    assert "1 of 2 queries have no judgments and were set aside (first: 1)" in evaluation.notes[0].text


def test_judged_queries_that_no_ranker_answers_count_0_and_are_said() -> None:
    qrels = qrels_of({"1": {"a": 1}, "2": {"a": 1}})
    aligned = align_runs({"one": run_of({"1": {"a": 1.0}})}, qrels)
    evaluation = evaluate_aligned(aligned, np.array([1.0]), "AP")
    assert evaluation.values.tolist() == [[1.0], [0.0]]
    assert [(n.code, n.count) for n in evaluation.notes] == [("missing-zero", 1)]


def test_blends_that_cannot_be_ranked_are_refused(aligned: Aligned) -> None:
    with pytest.raises(InputError, match=r"expected 2 weights or 7 scores, found an array of shape \(3,\)"):
        evaluate_aligned(aligned, np.ones(3), "AP")
    with pytest.raises(InputError, match="expected finite scores"):
        evaluate_aligned(aligned, np.array([np.nan, 1.0]), "AP")


def test_judgments_are_needed(aligned: Aligned) -> None:
    unlabelled = align_runs({"one": run_of({"1": {"a": 1.0}})})
    with pytest.raises(InputError, match="expected judgments, found none"):
        evaluate_aligned(unlabelled, np.array([1.0]), "AP")
    nobody = dataclasses.replace(
        aligned,
        relevance=np.full_like(aligned.relevance, -(2**31)),
        unretrieved=aligned.unretrieved[:0],
        unretrieved_starts=np.zeros_like(aligned.unretrieved_starts),
    )
    with pytest.raises(InputError, match="expected at least one judged query, found none among 2"):
        evaluate_aligned(nobody, np.array([1.0, 0.0]), "AP")


@settings(deadline=None, max_examples=60)
@given(one=tied_runs(), two=tied_runs(), three=tied_runs(), grades=judgments(), weights=st.tuples(coarse, coarse))
def test_without_a_ranker_its_own_documents_are_not_retrieved(
    one: Scores, two: Scores, three: Scores, grades: Grades, weights: tuple[float, float]
) -> None:
    runs = {name: run_of(scores) for name, scores in (("one", one), ("two", two), ("three", three))}
    assume(all(set(run) & set(grades) for run in runs.values()))
    aligned = align_runs(runs, qrels_of(grades), normalize="none")
    evaluator = AlignedEvaluator(aligned, MEASURES)
    for k, name in enumerate(aligned.rankers):
        rest = drop_rankers(aligned, [name])
        np.testing.assert_array_equal(
            evaluator.values_without(np.insert(weights, k, 0.0), k),
            AlignedEvaluator(rest, MEASURES).values(np.array(weights)),
        )
