"""gEnM.BAT: what Newton's method reaches, and that its options matter."""

import itertools

import numpy as np
import pytest
from problems import made_up

from genm.learn import BarrierFuser, NewtonFuser
from genm.learn.batch import N_FOLLOWED
from genm.learn.objectives import Problem
from genm.learn.starts import starting_points


@pytest.mark.parametrize("seed", range(4))
def test_a_fine_scan_of_two_rankers_is_hardly_better(seed: int) -> None:
    """Figure 1's scan: all weights in steps of 0.001, against Newton and barrier at beta 200."""
    aligned = made_up(seed, quality=(0.9, 0.7), n_queries=30, n_docs=150)
    problem = Problem(aligned, beta=200.0)
    scan = max(problem.exact(np.array([w, 1 - w])) for w in np.linspace(0, 1, 1001))
    for fuser in (NewtonFuser(beta=200.0), BarrierFuser(beta=200.0)):
        assert scan - problem.exact(fuser.fit(aligned).weights_) <= 0.005


def test_the_best_start_is_chosen_by_exact_map() -> None:
    fuser = NewtonFuser().fit(made_up(1))
    ends = {step.start: step.exact for step in fuser.history_}
    assert len(ends) == 7  # 2^3 - 1 binary starts
    assert Problem(made_up(1), beta=1.0).exact(fuser.weights_) == pytest.approx(max(ends.values()))


def test_every_path_climbs() -> None:
    fuser = NewtonFuser().fit(made_up(2))
    for start in range(7):
        path = [step.objective for step in fuser.history_ if step.start == start]
        assert all(b >= a for a, b in itertools.pairwise(path))


def test_smoothing_j_and_annealing_change_the_path() -> None:
    plain, smooth, annealed = (
        NewtonFuser(starts=[[0, 0, 1]], **options).fit(made_up(3))
        for options in ({}, {"smooth_j": True}, {"anneal": (0.1, 0.3)})
    )
    assert plain.objective_ != smooth.objective_
    assert plain.history_[0].exact != annealed.history_[0].exact


def test_relevance_levels_are_obeyed() -> None:
    """Half the relevant documents get grade 2: learning at level 2 sees only those."""
    aligned = made_up(4, quality=(0.5, 0.5), n_queries=20)
    rng = np.random.default_rng(0)
    rows = np.flatnonzero(aligned.relevance == 1)
    high = rng.choice(rows, len(rows) // 2, replace=False)
    aligned.relevance[high] = 2
    aligned.scores[high, 1] += 1.0
    low_level, high_level = (NewtonFuser(level=level).fit(aligned) for level in (1, 2))
    assert high_level.weights_[1] > 0.5
    assert high_level.weights_.tolist() != low_level.weights_.tolist()


def test_query_weights_are_obeyed() -> None:
    """A query of weight 0 might as well not be there."""
    aligned = made_up(5)
    aligned.query_weights[:6] = 0.0
    rest = made_up(5).select(np.arange(6, 12))
    np.testing.assert_allclose(
        NewtonFuser(beta=50.0).fit(aligned).weights_, NewtonFuser(beta=50.0).fit(rest).weights_, atol=1e-9
    )


def test_queries_made_ready_before_teach_the_same() -> None:
    """Several methods may share one problem; some of its queries are as good as an alignment of these alone."""
    aligned, some = made_up(5), np.array([1, 4, 6, 7, 9])
    fitted = NewtonFuser(beta=60.0).fit(aligned.select(some))
    shared = NewtonFuser().fit_problem(Problem(aligned, beta=60.0).select(some))
    assert shared.weights_.tolist() == fitted.weights_.tolist()
    assert shared.to_model() == fitted.to_model()


def test_the_barrier_ends_where_newton_does() -> None:
    aligned = made_up(0, n_queries=30)
    problem = Problem(aligned, beta=60.0)
    inner, newton = BarrierFuser(beta=60.0).fit(aligned), NewtonFuser(beta=60.0).fit(aligned)
    assert problem.value(inner.weights_) == pytest.approx(problem.value(newton.weights_), abs=0.004)


def test_a_ranker_of_pure_noise_gets_exactly_nothing() -> None:
    aligned = made_up(1, quality=(1.5, 0.0), n_queries=60, n_docs=200)
    aligned.scores[:, 1] *= -1.0
    assert BarrierFuser(beta=20.0).fit(aligned).weights_.tolist()[1] < 0.2
    against = made_up(2, quality=(1.5, -1.5), n_queries=40)
    assert BarrierFuser().fit(against).weights_.tolist() == [1.0, 0.0]


def test_of_many_rankers_the_best_starts_are_followed_and_given_ones_all() -> None:
    aligned = made_up(4, quality=(0.9, 0.8, 0.7, 0.5, 0.4, 0.3, 0.1), n_queries=6, n_docs=30, n_relevant=3)
    problem, points = Problem(aligned), starting_points(7, seed=0)
    fuser = NewtonFuser(max_iter=2, tol=1.0).fit(aligned)
    begun = [np.array(step.weights) for step in fuser.history_ if step.iteration == 0]
    best = sorted(map(problem.value, points), reverse=True)[:N_FOLLOWED]
    assert sorted(map(problem.value, begun), reverse=True) == pytest.approx(best, rel=1e-12)
    given = NewtonFuser(starts=points, max_iter=2, tol=1.0).fit(aligned)
    assert len({step.start for step in given.history_}) == len(points) > N_FOLLOWED
