"""Expected average precision: against enumeration, average precision itself, and differences."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import made_up

from genm._math.expected_ap import expected_ap, expected_size, ranks_of, smooth_expected_ap
from genm._math.fusion import weighted_sum
from genm.evaluate import evaluate_aligned

probabilities = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6)


def value_of(p: list[float], others: float = 0.0) -> float:
    starts, p = np.array([0, len(p)]), np.array(p)
    ranks = np.arange(1, len(p) + 1)
    return float(expected_ap(starts, ranks, p, expected_size(starts, p, np.array([others]))).value[0])


def enumerated(p: list[float]) -> float:
    """Sum AP over all ways in which the documents could be relevant."""
    total = 0.0
    for relevant in product((0, 1), repeat=len(p)):
        chance = np.prod([x if r else 1 - x for x, r in zip(p, relevant, strict=True)])
        at = np.flatnonzero(relevant)
        if len(at):
            total += chance * np.mean(np.arange(1, len(at) + 1) / (at + 1))
    return total


@given(probabilities)
def test_it_is_near_the_mean_over_all_ways_to_be_relevant(p: list[float]) -> None:
    assert value_of(p) == pytest.approx(enumerated(p), abs=0.12)  # the number of relevant documents is averaged


@given(st.lists(st.integers(0, 1), min_size=1, max_size=8))
def test_judged_documents_give_average_precision(relevant: list[int]) -> None:
    assert value_of([float(r) for r in relevant]) == pytest.approx(enumerated([float(r) for r in relevant]))


def test_it_is_the_measure_of_the_package_where_all_is_judged() -> None:
    aligned, weights = made_up(0), np.array([0.5, 0.3, 0.2])
    p = (aligned.relevance > 0).astype(np.float64)
    size = expected_size(aligned.starts, p, np.zeros(len(aligned.queries)))
    found = expected_ap(aligned.starts, ranks_of(aligned.starts, weighted_sum(aligned.scores, weights)), p, size)
    assert found.value == pytest.approx(evaluate_aligned(aligned, weights, "AP").values[:, 0])


def test_relevant_documents_that_no_list_holds_lower_it() -> None:
    assert value_of([1.0], others=1.0) == pytest.approx(0.5)
    assert value_of([0.0, 0.0]) == 0.0


@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=6), st.data())
def test_influence_is_the_derivative(p: list[float], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(p) - 1))
    starts, ranks, size = np.array([0, len(p)]), np.arange(1, len(p) + 1), np.array([3.0])
    step = np.zeros(len(p))
    step[at] = 1e-6
    up, down = (expected_ap(starts, ranks, np.array(p) + sign * step, size).value[0] for sign in (1, -1))
    found = expected_ap(starts, ranks, np.array(p), size)
    # the size grows with p as well: the derivative of value * size / size
    assert found.influence[at] + found.value[0] / 3.0 == pytest.approx((up - down) / 2e-6, abs=1e-5)


def test_a_document_that_the_list_lacks_only_adds_to_the_size() -> None:
    starts, p = np.array([0, 2]), np.array([1.0, 0.5])
    found = expected_ap(starts, np.array([1, 0]), p, np.array([1.5]))
    assert found.value[0] == pytest.approx(1 / 1.5)
    assert found.influence[1] == pytest.approx(-found.value[0] / 1.5)


def test_the_smoothed_form_is_near_the_exact_one_and_its_gradient_is_right() -> None:
    aligned = made_up(1, n_queries=4, n_docs=30)
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 1.0, len(aligned.doc))
    size = expected_size(aligned.starts, p, np.zeros(4))
    weights, queries = np.array([0.5, 0.2, 0.3]), np.arange(4)

    def smooth(weights: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
        return smooth_expected_ap(aligned.starts, aligned.scores, p, size, queries, weights, beta)

    ranks = ranks_of(aligned.starts, weighted_sum(aligned.scores, weights))
    exact = expected_ap(aligned.starts, ranks, p, size).value
    assert smooth(weights, 1e6)[0] == pytest.approx(exact, abs=1e-6)
    gradient = smooth(weights, 20.0)[1]
    for k in range(3):
        step = np.eye(3)[k] * 1e-6
        slope = (smooth(weights + step, 20.0)[0] - smooth(weights - step, 20.0)[0]) / 2e-6
        assert gradient[:, k] == pytest.approx(slope, abs=1e-6)
