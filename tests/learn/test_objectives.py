"""The training problem: means, weights, sub-sets, other labels, and beta for any scale."""

import numpy as np
import pytest
from problems import made_up

from genm.errors import InputError
from genm.evaluate import evaluate_aligned
from genm.learn.objectives import MOST_PAIRED, Problem, beta_of, direct_search


def test_exact_is_the_evaluators_map() -> None:
    aligned, weights = made_up(0), np.array([0.5, 0.3, 0.2])
    assert Problem(aligned).exact(weights) == pytest.approx(evaluate_aligned(aligned, weights, "AP").mean("AP"))


def test_means_are_weighted_by_the_queries() -> None:
    aligned, weights = made_up(1), np.array([0.5, 0.3, 0.2])
    aligned.query_weights[:] = np.arange(12) + 1.0
    problem = Problem(aligned, beta=40.0)
    share = aligned.query_weights / aligned.query_weights.sum()
    assert problem.exact(weights) == pytest.approx(float(share @ problem.exact_per_query(weights)))
    value, gradient, hessian = problem.derivatives(weights)
    assert value == pytest.approx(problem.gradient(weights)[0])
    np.testing.assert_allclose(gradient, problem.gradient(weights)[1], atol=1e-12)
    step = 1e-5 * np.array([1.0, -1.0, 0.5])
    ahead, behind = problem.gradient(weights + step)[1], problem.gradient(weights - step)[1]
    np.testing.assert_allclose(hessian @ step, (ahead - behind) / 2, atol=1e-7)


def test_queries_without_relevant_documents_are_counted_and_set_aside() -> None:
    aligned = made_up(2)
    aligned.relevance[: aligned.starts[2]] = 0
    problem = Problem(aligned)
    assert problem.n_set_aside == 2
    assert problem.kept.tolist() == list(range(2, 12))


def test_a_selection_equals_the_problem_of_those_queries() -> None:
    aligned, weights, some = made_up(3), np.array([0.2, 0.2, 0.6]), np.array([1, 4, 9])
    whole = Problem(aligned, beta=30.0).select(some)
    alone = Problem(aligned.select(some), beta=30.0)
    assert whole.exact(weights) == alone.exact(weights)
    assert whole.value(weights) == pytest.approx(alone.value(weights), abs=1e-12)


def test_other_labels_replace_the_judgments() -> None:
    aligned, weights = made_up(4), np.array([0.2, 0.2, 0.6])
    labels = np.zeros(len(aligned.doc), bool)
    labels[aligned.starts[:-1] + 3] = True
    changed = Problem(aligned, beta=30.0).with_labels(labels)
    fused = aligned.scores @ weights
    rank = [
        1 + int((fused[a:b] > fused[a + 3]).sum())
        for a, b in zip(aligned.starts[:-1], aligned.starts[1:], strict=True)
    ]
    np.testing.assert_allclose(changed.exact_per_query(weights), 1 / np.array(rank))


def test_beta_follows_the_scale_of_the_scores() -> None:
    """Scores a thousand times larger need a beta a thousand times smaller: the objective stays."""
    aligned, weights = made_up(5, normalize="none"), np.array([0.5, 0.3, 0.2])
    beta, value = beta_of(aligned), Problem(aligned).value(weights)
    aligned.scores[:] *= 1000.0
    assert beta_of(aligned) == pytest.approx(beta / 1000)
    assert Problem(aligned).value(weights) == pytest.approx(value, abs=1e-9)


def test_constant_scores_have_a_beta_too() -> None:
    aligned = made_up(6)
    aligned.scores[:] = 1.0
    assert beta_of(aligned) == 200.0


def test_runs_without_judgments_or_a_senseless_beta_are_refused() -> None:
    with pytest.raises(InputError, match="no judgments"):
        Problem(made_up(0, labelled=False))
    for beta in (0.0, -1.0, np.inf, np.nan, "wide"):
        with pytest.raises(InputError, match="positive number"):
            Problem(made_up(0), beta=beta)  # type: ignore[arg-type]


class Tent:
    """A measure with its one maximum at known weights, which counts how often it is asked."""

    is_smoothed = False

    def __init__(self, best: np.ndarray) -> None:
        self.best, self.n_asked = best, 0

    def mean(self, weights: np.ndarray) -> float:
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0.0).all()
        self.n_asked += 1
        return -float(np.abs(weights - self.best).sum())


@pytest.mark.parametrize("n", [2, 4, MOST_PAIRED, MOST_PAIRED + 1, 17])
def test_a_direct_search_comes_near_the_maximum(n: int) -> None:
    best = np.random.default_rng(n).dirichlet(np.ones(n))
    uniform, tent = np.full(n, 1 / n), Tent(best)
    found = direct_search(tent, uniform, steps=(0.2, 0.1, 0.05, 0.02, 0.01))
    assert tent.mean(found) > 0.5 * tent.mean(uniform)
    assert tent.n_asked < 5 * 40 * n  # not the square of the number of rankers


@pytest.mark.parametrize("n", [3, 9])
def test_a_direct_search_stays_at_a_maximum_and_leaves_a_corner(n: int) -> None:
    corner, inside = np.eye(n)[1], np.full(n, 1 / n)
    for best in (corner, inside):
        assert direct_search(Tent(best), best).tolist() == best.tolist()
    reached = direct_search(Tent(corner), inside)
    assert reached[1] == pytest.approx(1.0)
    assert direct_search(Tent(inside), corner)[1] < 0.5
