"""The measure as a function of the weights: exact lines, the near-optimal region, the map for three rankers."""

import numpy as np
from numpy.typing import NDArray

from genm._math.exact.line_search import Buffers, GainLines, line_profile
from genm._math.linear_algebra import weighted_mean
from genm._math.parallel import kernel
from genm._typing import Floats
from genm.align import Aligned
from genm.evaluate import AlignedEvaluator, Measure
from genm.learn.exact import gain_problem, line_of, plateau_around
from genm.progress import Progress, silent
from genm.report.payload import Ternary, WeightLine

MOST_STEPS = 600
"""The largest number of steps of a line in the report; the steps that differ least are merged."""
PLATEAU_LOSS = 0.005
N_GRID = 24
"""The map's grid: weights in 24ths, 325 points."""


class Landscape:
    """The measure of any weights on some queries."""

    def __init__(self, aligned: Aligned, measure: Measure, weights: Floats) -> None:
        self._evaluator = AlignedEvaluator(aligned, [measure])
        self._query_weights = aligned.query_weights
        self.rankers, self.weights = aligned.rankers, weights
        self.here = self.value(weights)
        self._problem = gain_problem(aligned, measure)

    def value(self, weights: Floats) -> float:
        """Return the mean of the measure."""
        return weighted_mean(self._evaluator.values(weights)[:, 0], self._query_weights)

    def lines(self, *, progress: Progress = silent) -> list[WeightLine]:
        """Return the measure along each ranker's weight, the others in proportion."""
        buffers: Buffers = []
        found: list[WeightLine] = []
        n = len(self.rankers)
        for k in range(n if n > 1 else 0):
            progress("following the weights", k, n)
            found.append(self._line(k, buffers))
        progress("following the weights", n, n)
        return found

    def plateaus(self) -> list[list[float]] | None:
        """Return each ranker's range of weights that loses at most PLATEAU_LOSS."""
        if len(self.rankers) == 1:
            return None
        found = plateau_around(GainLines(self._problem), self.weights, self.here - PLATEAU_LOSS, PLATEAU_LOSS)
        return [[float(low), float(high)] for low, high in zip(found.low, found.high, strict=True)]

    def ternary(self) -> Ternary | None:
        """Return the map over the weights of three rankers; the map has no place for negative ones."""
        if len(self.rankers) != 3 or self.weights.min() < 0.0:
            return None
        n = N_GRID
        grid = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
        values = [self.value(weights) for weights in grid]
        return {
            "rankers": list(self.rankers),
            "step": 1.0 / n,
            "weights": grid.tolist(),
            "values": values,
            "chosen": self.weights.tolist(),
            "chosen_value": self.here,
            "best": int(np.argmax(values)),
        }

    def _line(self, k: int, buffers: Buffers) -> WeightLine:
        line = line_profile(self._problem, *line_of(self.weights, k), 0.0, 1.0, whole=True, buffers=buffers)
        kept, heights, tolerance = join_steps(line.breakpoints, line.values, MOST_STEPS)
        low, high = line.low, line.high
        if self.weights[k] < 0.0:  # the line runs from 0 to -1
            kept, heights, low, high = -kept[::-1], heights[::-1], -high, -low
        return {
            "ranker": self.rankers[k],
            "points": kept.tolist(),
            "values": heights.tolist(),
            "tolerance": tolerance,
            "n_steps": len(line.values),
            "exact": True,
            "weight": float(self.weights[k]),
            "value": self.here,
            "best": [low, high, line.value],
        }


def join_steps(points: Floats, values: Floats, most: int) -> tuple[Floats, Floats, float]:
    """Merge neighbouring steps until at most `most` are left; return them and the largest error of any value.

    Steps of equal value or of no width are merged without error. Then neighbours get the middle of their range, if
    the range is small enough; the smallest sufficient range is found by bisection.
    """
    wide = np.diff(points) > 0.0
    changed = np.flatnonzero(np.diff(values[wide], prepend=np.nan) != 0.0)
    starts, heights, end = points[:-1][wide][changed], values[wide][changed], points[-1]
    if len(heights) <= most:
        return np.append(starts, end), heights, 0.0
    low, high = 0.0, float(np.ptp(heights))
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if len(_groups(heights, middle)) <= most else (middle, high)
    firsts = _groups(heights, high)
    top, bottom = np.maximum.reduceat(heights, firsts), np.minimum.reduceat(heights, firsts)
    return np.append(starts[firsts], end), 0.5 * (top + bottom), float(0.5 * (top - bottom).max())


def _groups(heights: Floats, span: float) -> NDArray[np.int64]:
    """Return the starts of the longest possible groups of neighbours that differ by at most `span`."""
    firsts = np.empty(len(heights), np.int64)
    return firsts[: _write_groups(heights, span, firsts)]


@kernel
def _write_groups(heights: Floats, span: float, firsts: NDArray[np.int64]) -> int:
    n, low, high = 0, 0.0, 0.0
    for i in range(len(heights)):
        low, high = min(low, heights[i]), max(high, heights[i])
        if i == 0 or high - low > span:
            firsts[n] = i
            n += 1
            low = high = heights[i]
    return n
