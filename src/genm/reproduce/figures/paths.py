"""The ways that the fusers go over the weights, all from the same starts."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genm._math.climbing import climb
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.evaluate import Measure
from genm.learn import BarrierFuser, Fuser, NewtonFuser, OnlineFuser
from genm.learn.tasks import tasks_of
from genm.reproduce.paper import PAPER_BETA

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Where a fuser has been, from its start to its end."""

    method: str
    start: int
    weights: Array
    """(points, K), each a distribution."""


def paths_from(starts: Array, aligned: Aligned) -> list[Path]:
    """Return the ways of gEnM.BAT, gEnM.IP, gEnM.ON (a point per pass over the queries) and the exact line search.

    Of the last one only start and end are known: each of its moves may go right across the simplex.
    """
    fusers: dict[str, Fuser] = {
        "gEnM.BAT": NewtonFuser(beta=PAPER_BETA, starts=starts),
        "gEnM.IP": BarrierFuser(beta=PAPER_BETA, starts=starts),
        "gEnM.ON": OnlineFuser(beta=PAPER_BETA, starts=starts, max_iter=10),
    }
    learned = [path for method, fuser in fusers.items() for path in _ways(method, fuser, aligned, len(starts))]
    tasks = tasks_of(aligned, Measure("AP"))
    return learned + [Path("exact", s, np.array([start, climb(tasks, start)[0]])) for s, start in enumerate(starts)]


def _ways(method: str, fuser: Fuser, aligned: Aligned, n_starts: int) -> list[Path]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where a way breaks off is seen on the drawing
        fuser.fit(aligned)
    return [
        Path(method, s, np.array([step.weights for step in fuser.history_ if step.start == s]))
        for s in range(n_starts)
    ]
