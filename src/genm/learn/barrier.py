"""gEnM.IP: interior point on the smoothed MAP."""

import numpy as np
from numpy.typing import NDArray

from genm._math.simplex_optimizers import Ascent, Watch, barrier
from genm.learn.batch import MultistartFuser
from genm.learn.objectives import Problem

Array = NDArray[np.float64]


class BarrierFuser(MultistartFuser):
    """Learn weights from a batch of judged queries by a log barrier (gEnM.IP, departure 10).

    Objective: Problem P3, j sorted. Set: the interior of the simplex, so no weight is ever clipped; one that
    only the barrier holds above 0 ends as exactly 0.
    """

    method = "ip"
    objective = "smoothed MAP, j sorted"

    def _climb(self, problem: Problem, start: Array, watch: Watch) -> Ascent:
        return barrier(
            problem.derivatives,
            problem.value,
            start,
            tol=self.tol,
            min_iter=self.min_iter,
            max_iter=self.max_iter,
            watch=watch,
        )
