"""Would more judgments help: what the same method reaches, held out, when it learns from fewer queries."""

import copy
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import over_items
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.evidence.crossval import measure_queries
from genm.evidence.evidence import Evidence
from genm.evidence.resampling import learns_nothing, teaching_queries
from genm.learn import Fuser
from genm.learn.auto import AutoFuser
from genm.progress import Progress, silent

Array = NDArray[np.float64]

FEWEST = 5
"""No one learns from fewer queries than this."""
N_SIZES = 4
MOST_ROWS = 1_000_000
"""How many rows all fits together may go through: some seconds."""


class FewerQueries(NamedTuple):
    """Held-out values of every query when the training queries are cut down."""

    n_queries: NDArray[np.float64]
    """(sizes) how many queries were learned from, on average over the folds; the last is the cross-validation."""
    per_query: Array
    """(sizes, queries) the measure, under weights learned from that many queries of the other folds."""
    note: str


def learn_from_fewer(
    aligned: Aligned, fuser: Fuser, evidence: Evidence, *, seed: int = 0, progress: Progress = silent
) -> FewerQueries:
    """Fit each fold again on a half, a quarter, ... of its training queries, as far as the work allows.

    The folds are those of the evidence, whose held-out values are the last row; smaller training sets are parts of
    the larger ones. Where nothing is learned there is nothing to show.
    """
    if learns_nothing(fuser, aligned):
        return FewerQueries(np.zeros(0), np.zeros((0, len(aligned.queries))), "Nothing is learned.")
    fold, folds = evidence.held_out.fold, len(evidence.held_out.weights)
    teaching = teaching_queries(aligned, getattr(fuser, "level", 1))
    whole = len(teaching) * (folds - 1) / folds
    halves = [int(whole / 2**h) for h in range(1, N_SIZES + 1)]
    sizes = [size for size in reversed(halves) if size >= FEWEST]
    rows_each = len(aligned.doc) / max(len(aligned.queries), 1)
    costs = np.cumsum([folds * size * rows_each for size in sizes])
    done = [size for size, cost in zip(sizes, costs, strict=True) if cost <= MOST_ROWS]
    order = np.random.default_rng([seed, 2]).permutation(teaching)

    def held_out(job: tuple[int, int]) -> tuple[NDArray[np.intp], Array]:
        size, f = job
        learned = _lighter(fuser).fit(aligned.select(order[fold[order] != f][:size]))
        outside = np.flatnonzero(fold == f)
        part = learned.prepare(aligned.select(outside))
        return outside, measure_queries(part, learned.weights_, evidence.measure)

    rows = np.zeros((len(done), len(aligned.queries)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said once, of the fit that is kept
        for i, size in enumerate(done):
            progress("learning from fewer queries", i, len(done))
            for outside, values in over_items(held_out, [(size, f) for f in range(folds)]):
                rows[i, outside] = values
    progress("learning from fewer queries", len(done), len(done))
    note = f"Each point learns {folds} times, once for each fold, and is measured on the queries left out."
    if len(done) < len(sizes):
        note += f" Points between {done[-1] if done else 0:,} and {whole:,.0f} queries would take too long."
    if isinstance(fuser, AutoFuser):
        note += (
            f" How far to hold back is chosen by one round of inner folds, at the last point by {fuser.repeats}."
        )
    numbers = np.array([*done, whole])
    return FewerQueries(numbers, np.array([*rows, evidence.held_out.per_query]), note)


def _lighter(fuser: Fuser) -> Fuser:
    """Return the same method; auto chooses how far to hold back by one round of inner folds, which is quicker."""
    lighter = copy.copy(fuser)
    if isinstance(lighter, AutoFuser):
        lighter.repeats = 1
    return lighter
