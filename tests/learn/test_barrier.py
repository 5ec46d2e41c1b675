"""gEnM.IP: inside the simplex until the end."""

import pytest
from problems import made_up

from genm.learn import BarrierFuser, NewtonFuser
from genm.learn.objectives import Problem


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
