"""The exact methods measure what `genm.evaluate` measures."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import judgments, qrels_of, run_of, tied_runs

from genm._math.exact.line_search import value_at
from genm.align import Aligned, align_runs
from genm.evaluate import AlignedEvaluator, Measure, parse_measure
from genm.learn.tasks import tasks_of

MEASURES = [
    "AP", "AP@3", "AP(rel=2)", "P@4", "P(rel=2)@2", "R@5", "RR", "RR@2", "nDCG", "nDCG@3", "nDCG(dcg='exp-log2')@5",
    "Success@2", "Rprec", "Rprec(rel=2)", "AP(judged_only=True)", "nDCG(judged_only=True)@3",
    "P(judged_only=True)@2", "Bpref", "Bpref(rel=2)", "Judged", "Judged@3", "IPrec@0.0", "IPrec@0.4", "IPrec@1.0",
    "IPrec(rel=2)@0.5", "IPrec(judged_only=True)@0.3",
]  # fmt: skip


def mean(aligned: Aligned, weights: np.ndarray, measure: Measure) -> float:
    evaluator = AlignedEvaluator(aligned, [measure])
    share = aligned.query_weights[evaluator.position]
    return float(share @ evaluator.values(weights)[:, 0] / aligned.query_weights.sum())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(tied_runs(), min_size=1, max_size=3),
    judgments(),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.sampled_from(MEASURES),
)
def test_the_value_is_that_of_evaluating(
    runs: list[dict[str, dict[str, float]]], judged: dict[str, dict[str, int]], raw: list[int], text: str
) -> None:
    """Ties, missing documents, unjudged ones, grades and weights of queries included."""
    assume(all(set(scores) & set(judged) for scores in runs))
    query_weights = {query: 1.0 + i for i, query in enumerate(judged)}
    named = {f"r{i}": run_of(scores) for i, scores in enumerate(runs)}
    aligned = align_runs(named, qrels_of(judged), normalize="none", query_weights=query_weights)
    weights = np.array(raw[: len(runs)], np.float64) / sum(raw[: len(runs)])
    measure = parse_measure(text)
    expected = mean(aligned, weights, measure)
    assert value_at(tasks_of(aligned, measure), weights) == pytest.approx(expected, abs=1e-12)
