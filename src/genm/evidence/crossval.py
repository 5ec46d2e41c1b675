"""Cross-validation: learn on some queries, evaluate on the others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from genm import charts, display
from genm._math.linear_algebra import weighted_mean
from genm._typing import Floats
from genm.align import Aligned, AlignedOrRuns, as_aligned
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, Measure, MeasureLike, parse_measure
from genm.learn.auto import AutoFuser, PartFits
from genm.learn.base import Fuser
from genm.learn.objectives import fold_of_queries
from genm.normalizers import Normalizer
from genm.progress import Progress, silent
from genm.records import Qrels, contents

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MakeFuser = Callable[[], Fuser]
FuserOrMaker = Fuser | MakeFuser
"""A fuser, which is cloned, or a class or function without arguments that makes one."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The values of weights on held-out queries."""

    per_query: Floats
    """The measure of every query, under the weights learned without it."""
    mean: float
    """Over all queries, pooled, weighted by the queries' weights."""
    fold: NDArray[np.int64]
    """The fold each query was held out in."""
    weights: Floats
    """(folds, K): the weights learned without each fold."""
    query_ids: tuple[str, ...]
    """The queries of `per_query` and `fold`."""
    rankers: tuple[str, ...]
    """The columns of `weights`."""
    measure: str

    def __repr__(self) -> str:
        """Return the mean and the numbers of queries and folds on one line."""
        size = contents((), queries=self.query_ids, folds=self.weights)
        return f"<HeldOut {self.measure} {self.mean:.4f}: {size}>"

    def _repr_html_(self) -> str:
        return display.held_out(self)

    def to_pandas(self) -> Any:
        """Return a pandas frame: one row per query id, with the fold and the held-out value of the measure."""
        return display.frame(
            {"fold": self.fold, self.measure: self.per_query}, index=self.query_ids, index_name="query_id"
        )

    def weights_to_pandas(self) -> Any:
        """Return a pandas frame: one row per fold, one column per ranker."""
        columns = dict(zip(self.rankers, self.weights.T, strict=True))
        return display.frame(columns, index=range(len(self.weights)), index_name="fold")

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the held-out value of every query; needs the extra `plots`."""
        title = f"{self.measure} by query, held out"
        return charts.plot_values(self.query_ids, self.per_query, title=title, value_label=self.measure, ax=ax)

    def plot_weights(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean weight of each ranker and the weights of the folds; needs the extra `plots`."""
        return charts.plot_weights(
            self.rankers,
            self.weights.mean(axis=0),
            title=f"Weights, mean of {len(self.weights)} folds",
            samples=self.weights,
            samples_label="learned without each fold",
            ax=ax,
        )


def cross_validate(
    fuser: FuserOrMaker | Aligned,
    runs: AlignedOrRuns | FuserOrMaker,
    qrels: Qrels | MeasureLike | None = None,
    measure: MeasureLike | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress = silent,
) -> HeldOut:
    """Hold out each fold of queries in turn, fit a new fuser on the rest, and evaluate it on the fold.

    Call it with runs and judgments, `cross_validate(NewtonFuser(beta=200), [a, b], qrels, "AP")`, or with aligned
    runs, which include judgments: `cross_validate(NewtonFuser(beta=200), aligned, "AP")`. The fuser and the aligned
    runs may be swapped. A fuser is cloned for each fold; a class or a function without arguments is called. The
    default measure is AP.
    """
    learner, data = (runs, fuser) if isinstance(fuser, Aligned) else (fuser, runs)
    make, judgments, wanted = maker_of(learner), qrels, measure
    if isinstance(data, Aligned) and measure is None and not isinstance(qrels, Qrels):
        judgments, wanted = None, qrels  # the measure is in the place of the judgments
    aligned = as_aligned(cast("AlignedOrRuns", data), cast("Qrels | None", judgments))
    wanted = parse_measure("AP" if wanted is None else wanted)
    return cross_validate_aligned(make, aligned, wanted, folds=folds, seed=seed, progress=progress)[0]


def cross_validate_aligned(
    make: MakeFuser,
    aligned: Aligned,
    measure: Measure,
    *,
    folds: int,
    seed: int,
    progress: Progress,
    shared: PartFits | None = None,
) -> tuple[HeldOut, tuple[tuple[Normalizer, ...], ...]]:
    """Return the held-out values and the normalisers that each fold's training chose.

    `shared` is what `share_fits` returns for these runs, if it is there already.
    """
    n = len(aligned.queries)
    fold = fold_of_queries(n, check_folds(folds, n), seed)
    per_query, weights = np.zeros(n), np.zeros((folds, len(aligned.rankers)))
    normalizers = []
    for f in range(folds):
        progress("cross-validating", f, folds)
        fuser = make()
        shared = share_fits(fuser, aligned) if shared is None else shared
        fuser = fit_shared(fuser, aligned, shared, np.flatnonzero(fold != f))
        weights[f] = fuser.weights_
        normalizers.append(fuser.normalizers_)
        held_out = np.flatnonzero(fold == f)
        per_query[held_out] = measure_queries(fuser.prepare(aligned.select(held_out)), weights[f], measure)
    progress("cross-validating", folds, folds)
    held = HeldOut(
        per_query=per_query,
        mean=weighted_mean(per_query, aligned.query_weights),
        fold=fold,
        weights=weights,
        query_ids=tuple(aligned.queries),
        rankers=aligned.rankers,
        measure=str(measure),
    )
    return held, tuple(normalizers)


def share_fits(fuser: Fuser, aligned: Aligned) -> PartFits | None:
    """Return what fits of this method on parts of the runs share; None if they share nothing."""
    if type(fuser) is AutoFuser and fuser.normalize is None:  # what is derived from it may learn in its own way
        return PartFits(fuser, aligned)
    return None


def fit_shared(
    fuser: Fuser, aligned: Aligned, shared: PartFits | None, queries: NDArray[np.integer] | None = None
) -> Fuser:
    """Learn from all queries, or from those at some positions, with what is shared."""
    if shared is not None and isinstance(fuser, AutoFuser):
        return shared.fit(fuser, queries)
    return fuser.fit(aligned if queries is None else aligned.select(queries))


def maker_of(fuser: object) -> MakeFuser:
    """Return a function that makes unfitted fusers like the given one."""
    if isinstance(fuser, Fuser):
        return fuser.clone
    if not callable(fuser):
        raise InputError(
            f"fuser: expected a fuser, its class or a function that makes one; found {type(fuser).__name__}. "
            f"The order is cross_validate(fuser, runs, qrels, measure)."
        )
    return cast("MakeFuser", fuser)


def measure_queries(aligned: Aligned, weights: Floats, measure: MeasureLike) -> Floats:
    """Return the measure of every query under the given weights."""
    return AlignedEvaluator(aligned, [measure]).values(weights)[:, 0]


def check_folds(folds: int, n_queries: int) -> int:
    """Return the number of folds if every fold gets a query to hold out and one to learn from."""
    if not 2 <= folds <= n_queries:
        raise InputError(
            f"{folds} folds over {n_queries} queries: expected 2 to {n_queries} folds. "
            f"Judge more queries, or use fewer folds."
        )
    return folds
