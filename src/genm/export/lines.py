"""The straight line that comes nearest to a normaliser on given runs, for engines that only know such lines."""

from collections.abc import Mapping

import numpy as np

from genm._math.linear_algebra import dot
from genm.align import Aligned

Line = tuple[float, float]
"""Slope and offset: slope * raw score + offset."""


def nearest_lines(aligned: Aligned) -> Mapping[str, Line]:
    """Return each ranker's line of least squares from raw to normalised scores.

    Only differences inside a query's list make a ranking, so the slope is fitted to those; the offset then makes
    the means agree. Rankers whose scores do not rise with the raw ones have none.
    """
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    lines = {}
    for k, ranker in enumerate(aligned.rankers):
        rows = aligned.retrieved[:, k]
        raw, scores, of = aligned.raw[rows, k], aligned.scores[rows, k], query[rows]
        n = np.maximum(np.bincount(of, minlength=len(aligned.queries)), 1)
        x = raw - (np.bincount(of, raw, len(n)) / n)[of]
        y = scores - (np.bincount(of, scores, len(n)) / n)[of]
        spread = dot(x, x)
        slope = dot(x, y) / spread if spread > 0.0 else 0.0
        if slope > 0.0:
            lines[ranker] = (slope, float(scores.mean() - slope * raw.mean()))
    return lines
