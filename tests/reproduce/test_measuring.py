"""Measures from ranks of relevant documents equal measures of whole rankings."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm.evaluate import AlignedEvaluator, parse_measure
from genm.learn.objectives import Problem
from genm.reproduce.measuring import Measuring

MEASURES = [parse_measure(m) for m in ("AP", "P@1", "P@5", "IPrec@0.0", "IPrec@0.4", "IPrec@1.0", "RR", "Rprec")]


@pytest.mark.parametrize("n_missed", [0, 2])
def test_the_same_to_the_last_bit_as_ranking_every_row(n_missed):
    """Also where relevant documents were not retrieved by any ranker."""
    aligned, n, some = made_up(2, n_queries=20, n_docs=150), 20, np.array([3, 4, 17])
    missed = np.arange(n + 1) * n_missed, np.ones(n * n_missed, np.int32)
    aligned = replace(aligned, unretrieved_starts=missed[0], unretrieved=missed[1])
    problem, evaluator = Problem(aligned, beta=1.0), AlignedEvaluator(aligned, MEASURES)
    for weights in (np.eye(3)[1], *np.random.default_rng(0).dirichlet(np.ones(3), 5)):
        wanted = evaluator.values(weights)
        assert Measuring(MEASURES).values(problem, weights).tolist() == wanted.tolist()
        assert Measuring(MEASURES).values(problem.select(some), weights).tolist() == wanted[some].tolist()
