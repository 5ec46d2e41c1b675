import numpy as np
import pytest
from problems import made_up, two_kinds

from genm.evaluate import AlignedEvaluator
from genm.fuse import fuse_scores_by_query
from genm.gating import softmax
from genm.learn import learn_gate
from genm.learn.gate import _Design, minimise
from genm.learn.objectives import Problem

CENTRE = np.full(3, 1.0 / 3.0)


def test_a_gate_finds_the_kinds_by_their_texts_and_lists():
    aligned, _, texts = two_kinds()
    found = learn_gate(aligned, CENTRE, queries=texts)
    assert found.gate is not None
    assert found.inner_gain > 0.02
    further, kinds, others = two_kinds(1)
    weights, notes = found.gate.weights(further, others)
    assert notes == ()
    assert np.allclose(weights.sum(axis=1), 1.0)
    is_id = np.array(kinds) == "id"
    assert weights[is_id, 0].mean() > weights[~is_id, 0].mean() + 0.2
    values = AlignedEvaluator(further, ["AP"])
    assert values.values(fuse_scores_by_query(further, weights)).mean() > values.values(CENTRE).mean() + 0.02


def test_a_gate_without_a_clear_gain_is_not_used():
    aligned = made_up(3, n_queries=40, n_docs=15, n_relevant=3)
    assert learn_gate(aligned, np.array([0.6, 0.3, 0.1])).gate is None
    assert learn_gate(aligned, np.array([0.6, 0.3, 0.1]), always=True).gate is not None


def test_few_queries_keep_the_global_weights():
    assert learn_gate(made_up(0), CENTRE) == (None, 0.0)
    assert learn_gate(made_up(0), CENTRE, always=True).gate is not None


def test_the_gradient_is_that_of_the_loss():
    aligned = made_up(5, n_queries=12, n_docs=15, n_relevant=3)
    rng = np.random.default_rng(0)
    design = _Design(
        Problem(aligned, beta=20.0), rng.normal(size=(12, 3, 5)), rng.normal(size=(12, 2)), np.log(CENTRE)
    )
    theta, some = rng.normal(size=len(design.penalties)) * 0.2, np.arange(3, 12)
    value, gradient = design.loss(theta, some, 0.1)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-5
        slope = (design.loss(theta + step, some, 0.1)[0] - design.loss(theta - step, some, 0.1)[0]) / 2e-5
        assert slope == pytest.approx(gradient[i], abs=1e-5)
    assert np.isfinite(value)


def test_the_minimiser_finds_a_minimum():
    def loss(at):
        return float(((at - 2.0) ** 2 * np.array([1.0, 10.0])).sum()), 2.0 * (at - 2.0) * np.array([1.0, 10.0])

    assert np.allclose(minimise(loss, np.zeros(2), max_iter=50), 2.0, atol=1e-2)


def test_softmax_rows_sum_to_one_whatever_the_logits():
    assert np.allclose(softmax(np.array([[900.0, 0.0], [0.0, 0.0]])), [[1.0, 0.0], [0.5, 0.5]])
