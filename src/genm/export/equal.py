"""Equal weights as a fuser, for engines in which no others mean what they meant in training."""

import numpy as np
from numpy.typing import NDArray

from genm.evidence import GivenFuser


class EqualFuser(GivenFuser):
    """Give every ranker the same weight. Nothing is learned, so that held-out figures are those of the rule.

    Objective: none. Set: the one point in the middle of the simplex.
    """

    method = "equal"

    def __init__(self, *, level: int = 1) -> None:
        super().__init__((), level=level)

    def _weights(self) -> NDArray[np.float64]:
        n = len(self.rankers_)
        return np.full(n, 1.0 / n)
