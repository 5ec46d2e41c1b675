"""Weights that nobody learns here: given ones, put through the same measuring as learned ones."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from genm.align import Aligned
from genm.learn import Fuser


class GivenFuser(Fuser):
    """Keep the weights that are given. Nothing is learned, so nothing can be held out from learning.

    For a rule, such as equal weights, what this reaches on any queries is what to expect of others. For weights
    that were learned elsewhere it is that only as far as these queries had no part in it.

    Objective: none. Set: one point of the simplex.
    """

    method = "given"
    objective = "none"
    weight_set = "simplex"

    def __init__(self, weights: tuple[float, ...], *, level: int = 1) -> None:
        self.weights, self.level = weights, level

    def fit(self, aligned: Aligned) -> Self:
        """Remember the rankers and the rules of their scores."""
        self._remember(aligned)
        self.weights_ = self._weights()
        self.objective_, self.history_ = 0.0, []
        self.converged_, self.n_iter_ = True, 0
        return self

    def _weights(self) -> NDArray[np.float64]:
        return np.array(self.weights)
