"""Equal weights as a fuser, for engines in which no others mean what they meant in training."""

from typing import Self

import numpy as np

from genm.align import Aligned
from genm.learn import Fuser


class EqualFuser(Fuser):
    """Give every ranker the same weight. Nothing is learned, so that held-out figures are those of the rule.

    Objective: none. Set: the one point in the middle of the simplex.
    """

    method = "equal"
    objective = "none"
    weight_set = "simplex"

    def __init__(self, *, level: int = 1) -> None:
        self.level = level

    def fit(self, aligned: Aligned) -> Self:
        """Remember the rankers and the rules of their scores."""
        self._remember(aligned)
        n = len(self.rankers_)
        self.weights_ = np.full(n, 1.0 / n)
        self.objective_, self.history_ = 0.0, []
        self.converged_, self.n_iter_ = True, 0
        return self
