"""gEnM.BAT to the letter, and repaired piece by piece."""

import numpy as np
import pytest
from problems import made_up

from genm._math.printed import as_printed
from genm._math.simplex_optimizers import as_distribution
from genm.learn.objectives import Problem
from genm.reproduce.printed import REPAIRS, PrintedFuser

BETA, START = 30.0, np.array([0.5, 0.3, 0.2])


def oracle(aligned, *, corrected=False):
    return as_printed(
        aligned.starts,
        aligned.scores,
        aligned.relevance >= 1,
        aligned.n_relevant(),
        START,
        BETA,
        corrected=corrected,
    )


def fitted(aligned, n_repairs, **options):
    fuser = PrintedFuser(n_repairs=n_repairs, starts=START[None, :], **options)
    return fuser.fit_problem(Problem(aligned, beta=BETA))


@pytest.mark.parametrize(("n_repairs", "corrected", "sign"), [(0, False, 1), (2, True, 1), (3, True, -1)])
def test_one_step_by_hand(n_repairs, corrected, sign):
    """Algorithm 1: alpha plus H^-1 times the gradient, minus after the repair; one step, and it is kept."""
    aligned = made_up(0)
    found = oracle(aligned, corrected=corrected)
    moved = START + sign * np.linalg.solve(found.hessian, found.gradient)
    fuser = fitted(aligned, n_repairs, max_iter=1)
    np.testing.assert_allclose(fuser.weights_, as_distribution(moved), rtol=1e-6)


def test_the_last_iterate_is_kept_until_that_is_repaired():
    """On some problem the step fails: the printed algorithm ends below its start, the repaired one does not."""
    lower = 0
    for seed in range(6):
        aligned = made_up(seed)
        problem = Problem(aligned, beta=BETA)
        last, best = fitted(aligned, 3), fitted(aligned, 4)
        lower += last.objective_ < problem.value(START)
        assert best.objective_ >= problem.value(START)
        assert best.objective_ >= last.objective_
    assert lower > 0


def test_the_last_repair_uses_every_pair():
    aligned = made_up(1)
    problem = Problem(aligned, beta=BETA)
    _, gradient, hessian = problem.derivatives(START)
    moved = START - np.linalg.solve(hessian, gradient)
    fuser = fitted(aligned, 5, max_iter=1)
    rises = problem.value(moved) > problem.value(START)
    np.testing.assert_allclose(fuser.weights_, as_distribution(moved if rises else START), rtol=1e-6)


def test_every_repair_gives_a_distribution():
    for n in range(len(REPAIRS)):
        weights = fitted(made_up(2), n).weights_
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)
