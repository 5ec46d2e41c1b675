"""How stable the weights are: refits on resampled queries, and learning from fewer queries.

`keep_evidence` gathers everything that `genm fit` stores in the evidence file, so that a report need not refit.
"""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import over_items, threads_for
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.evidence.crossval import fit_shared, measure_queries, share_fits
from genm.evidence.evidence import Evidence, fingerprint
from genm.learn import Fuser
from genm.learn.auto import AutoFuser, PartFits
from genm.learn.batch import MultistartFuser
from genm.progress import Progress, silent

N_RESAMPLES = 100
"""Number of refits that start from the learned weights, which is cheap."""
N_WHOLE = 20
"""Number of refits of other methods."""
FEWEST_REFITS = 10
"""The smallest number of refits that is shown."""
WARM_ROWS, WHOLE_ROWS = 40_000_000, 2_000_000
"""The largest number of rows in all refits together: some seconds."""
_AT_ONCE = 10
_FINE_STEPS = (0.05, 0.02)

FEWEST_QUERIES = 5
"""The smallest number of training queries."""
N_SIZES = 4
MOST_ROWS = 1_000_000
"""The largest number of rows in all fits together: some seconds."""


Share = Callable[[], PartFits | None]
"""Returns what `share_fits` does, computed when it is first asked for."""


class Refits(NamedTuple):
    """Weights learned again on queries drawn with replacement."""

    weights: Floats
    """(refits, K), with the shrinkage of the fit."""
    before: Floats
    """(refits, K), before shrinkage."""
    kind: Literal["bootstrap", "none"]
    held_back: float | None
    """The shrinkage of the fit and of every refit; None if the method does not shrink."""
    note: str


def refit_resampled(
    aligned: Aligned,
    fuser: Fuser,
    *,
    n_resamples: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    share: Share | None = None,
) -> Refits:
    """Refit on queries drawn with replacement, as many as there are; fewer times, or not at all, on large data.

    `auto` starts each refit from its weights and keeps its shrinkage. Other methods learn from scratch. If
    nothing was learned, nothing is refitted. `share` gives what fits on these runs share, if others use it, too.
    """
    nothing = np.zeros((0, len(aligned.rankers)))
    if learns_nothing(fuser, aligned):
        note = "Nothing is learned: other queries would give the same weights."
        return Refits(nothing, nothing, "none", None, note)
    prepared = fuser.prepare(aligned)
    if share is None or prepared is not aligned:
        share = share_of(fuser, prepared)
    aligned = prepared
    warm = isinstance(fuser, AutoFuser)
    shrunk = fuser.shrunk_.amount if isinstance(fuser, AutoFuser) else None
    wanted = n_resamples or (N_RESAMPLES if warm else N_WHOLE)
    n = min(wanted, (WARM_ROWS if warm else WHOLE_ROWS) // max(len(aligned.doc), 1))
    if n < FEWEST_REFITS and n_resamples is None:
        note = (
            f"With {len(aligned.doc):,} rows the refits on resampled queries would take minutes; they were skipped."
        )
        return Refits(nothing, nothing, "none", shrunk, note)
    n = n_resamples or n
    refit = _Warm(aligned, fuser, share()) if isinstance(fuser, AutoFuser) else _Whole(aligned, fuser)
    rng = np.random.default_rng([seed, 1])  # not the stream that dealt the folds
    drawn = [rng.integers(0, refit.n_queries, refit.n_queries) for _ in range(n)]
    found: list[tuple[Floats, Floats]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said once, of the fit that is kept
        for begin in range(0, n, _AT_ONCE):
            progress("refitting on resampled queries", begin, n)
            found += over_items(refit, drawn[begin : begin + _AT_ONCE])
    progress("refitting on resampled queries", n, n)
    note = f"{n} refits on queries drawn with replacement, {refit.how}."
    if n < wanted:
        note += f" {wanted} would be usual; {len(aligned.doc):,} rows allowed for no more."
    return Refits(np.array([b for _, b in found]), np.array([a for a, _ in found]), "bootstrap", shrunk, note)


def learns_nothing(fuser: Fuser, aligned: Aligned) -> bool:
    """Return whether the weights do not depend on the queries: a rule, or a single ranker."""
    return fuser.objective == "none" or len(aligned.rankers) == 1


def teaching_queries(aligned: Aligned, level: int) -> NDArray[np.int64]:
    """Return the positions of the queries with relevant documents and a positive weight."""
    return np.flatnonzero((aligned.n_relevant(level) > 0) & (aligned.query_weights > 0))


class _Warm:
    """Refits of AutoFuser: one optimisation from its weights."""

    def __init__(self, aligned: Aligned, fuser: AutoFuser, shared: PartFits | None) -> None:
        shared = PartFits(fuser, aligned) if shared is None else shared
        self._refit = shared.refits(fuser, _FINE_STEPS)
        self.n_queries = len(shared.problem.kept)
        share = fuser.shrunk_.amount
        towards = "uniform weights" if fuser.shrunk_.target == "uniform" else "the best single ranker"
        held = f"shrunk by {share:.0%} towards {towards}, as the fit was" if share else "not shrunk"
        self.how = f"each optimised from the learned weights and {held}"

    def __call__(self, drawn: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return self._refit(drawn)


class _Whole:
    """Refits of any other method: from its weights if it accepts a start, otherwise from scratch."""

    def __init__(self, aligned: Aligned, fuser: Fuser) -> None:
        self._aligned, self._fuser, self.how = aligned, copy.copy(fuser), "each learned from scratch"
        if isinstance(self._fuser, MultistartFuser):
            self._fuser.starts, self.how = fuser.weights_[None], "each optimised from the learned weights"
        self._teaching = teaching_queries(aligned, getattr(fuser, "level", 1))
        self.n_queries = len(self._teaching)

    def __call__(self, drawn: NDArray[np.int64]) -> tuple[Floats, Floats]:
        weights = copy.copy(self._fuser).fit(self._aligned.select(self._teaching[drawn])).weights_
        return weights, weights


class FewerQueries(NamedTuple):
    """Held-out values of every query with fewer training queries."""

    n_queries: NDArray[np.float64]
    """(sizes) how many queries were learned from, on average over the folds; the last is the cross-validation."""
    per_query: Floats
    """(sizes, queries) the measure, under weights learned from that many queries of the other folds."""
    note: str


def learn_from_fewer(
    aligned: Aligned,
    fuser: Fuser,
    evidence: Evidence,
    *,
    seed: int = 0,
    progress: Progress = silent,
    share: Share | None = None,
) -> FewerQueries:
    """Fit each fold again on a half, a quarter, ... of its training queries, as far as the work allows.

    The folds are those of the evidence, whose held-out values are the last row; smaller training sets are parts of
    the larger ones. Where nothing is learned there is nothing to show. `share` gives what fits on these runs
    share, if others use it, too.
    """
    if learns_nothing(fuser, aligned):
        return FewerQueries(np.zeros(0), np.zeros((0, len(aligned.queries))), "Nothing is learned.")
    fold, folds = evidence.held_out.fold, len(evidence.held_out.weights)
    teaching = teaching_queries(aligned, getattr(fuser, "level", 1))
    whole = len(teaching) * (folds - 1) / folds
    halves = [int(whole / 2**h) for h in range(1, N_SIZES + 1)]
    sizes = [size for size in reversed(halves) if size >= FEWEST_QUERIES]
    rows_each = len(aligned.doc) / max(len(aligned.queries), 1)
    costs = np.cumsum([folds * size * rows_each for size in sizes])
    done = [size for size, cost in zip(sizes, costs, strict=True) if cost <= MOST_ROWS]
    order = np.random.default_rng([seed, 2]).permutation(teaching)
    shared = (share or share_of(fuser, aligned))() if done else None

    def held_out(job: tuple[int, int]) -> tuple[NDArray[np.intp], Floats]:
        size, f = job
        learned = fit_shared(_lighter(fuser), aligned, shared, order[fold[order] != f][:size])
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
        note += f" The shrinkage is chosen by one round of inner folds, at the last point by {fuser.repeats}."
    numbers = np.array([*done, whole])
    return FewerQueries(numbers, np.array([*rows, evidence.held_out.per_query]), note)


def share_of(fuser: Fuser, aligned: Aligned) -> Share:
    """Return a function that prepares what fits on these runs share, once."""
    return cache(lambda: share_fits(fuser, aligned))


def _lighter(fuser: Fuser) -> Fuser:
    """Return the same method; auto chooses its shrinkage by one round of inner folds, which is faster."""
    lighter = copy.copy(fuser)
    if isinstance(lighter, AutoFuser):
        lighter.repeats = 1
    return lighter


class LeftOut(NamedTuple):
    """What all rankers reach, and then the others without each of them, learned alike on the same folds."""

    held_out: Floats
    """(K + 1, queries) held-out values."""
    training: Floats
    """(K + 1, queries) values under the weights of the folds that learned from the query, averaged."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The evidence, the refits, and the model and data that they belong to."""

    rankers: tuple[str, ...]
    weights: tuple[float, ...]
    """The weights that the evidence belongs to."""
    fingerprint: str
    """Of the data; see `genm.evidence.fingerprint`."""
    seed: int
    evidence: Evidence
    refits: Refits
    fewer: FewerQueries
    without: LeftOut | None = None
    """What `genm.explain.Losses` are computed from; None where it was not computed."""
    lacks: str = ""
    """What the file of an earlier release does not hold; empty where nothing is missing."""


def keep_evidence(
    aligned: Aligned, fuser: Fuser, evidence: Evidence, *, seed: int = 0, progress: Progress = silent
) -> Kept:
    """Refit on resampled queries and on fewer queries, and return everything together."""
    share = share_of(fuser, aligned)
    with threads_for(aligned.scores.size):
        refits = refit_resampled(aligned, fuser, seed=seed, progress=progress, share=share)
        fewer = learn_from_fewer(aligned, fuser, evidence, seed=seed, progress=progress, share=share)
    return Kept(
        rankers=aligned.rankers,
        weights=tuple(fuser.weights_.tolist()),
        fingerprint=fingerprint(aligned),
        seed=seed,
        evidence=evidence,
        refits=refits,
        fewer=fewer,
    )
