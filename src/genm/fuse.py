"""One ranking out of many: a weighted sum, or one of the rules that need no weights.

Score rules work on the normalised scores, rank rules on each ranker's own order of its raw scores. In both, a
ranker counts only for documents that it returned, except that the weighted sum uses the filled gaps.

| method | reads | score of a document (n: rankers that returned it; sums and extremes over those) |
|---|---|---|
| sum | scores | sum of weight * score over all rankers, gaps filled as the normaliser says |
| combsum | scores | sum of the scores (Fox and Shaw 1993) |
| combmnz | scores | n * sum (Fox and Shaw 1993) |
| combanz | scores | sum / n (Fox and Shaw 1993) |
| combmax | scores | the highest (Fox and Shaw 1993) |
| combmin | scores | the lowest (Fox and Shaw 1993) |
| combmed | scores | the median (Fox and Shaw 1993); of an even number the mean of the middle two |
| rrf | ranks | sum of 1 / (k + rank) (Cormack, Clarke and Büttcher 2009) |
| isr | ranks | n * sum of 1 / rank^2 (Mourão, Martins and Magalhães 2014) |
| logisr | ranks | log(n) * sum of 1 / rank^2 (the same); 0 for all that a single ranker returned |
| borda | ranks | c + 1 - rank among the query's c documents, summed over rankers; see below |
| condorcet | ranks | documents at or below it in a sort by majority (Montague and Aslam 2002) |

Borda: the documents that a ranker lacks share its remaining points evenly (Aslam and Montague 2001).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from genm._callable import make_callable
from genm._math.elementary import logarithms
from genm._math.fusion import add_by_rank, order_by_majority, weighted_sum, weighted_sum_by_query
from genm._math.scaling import rank_lists
from genm._math.sorting import rank_order
from genm._typing import Floats
from genm.align import Aligned, AlignedOrRuns, Depths, as_aligned
from genm.errors import InputError
from genm.normalizers import Normalize
from genm.records import Run

Weights: TypeAlias = Mapping[str, float] | Sequence[float] | Floats


def fuse_scores(aligned: Aligned, weights: Weights) -> Floats:
    """Return the weighted sum of every row's scores; rows with equal scores get equal sums, to the last bit.

    Weights come by ranker name or in the order of `aligned.rankers`; they may be negative and need not sum
    to one.
    """
    return _finite(weighted_sum(aligned.scores, _weights(aligned, weights)), "sum")


def fuse_scores_by_query(aligned: Aligned, weights: Floats) -> Floats:
    """Return the weighted sum of every row's scores under the weights of its query: (queries, rankers) of them."""
    values, shape = np.asarray(weights, np.float64), (len(aligned.queries), len(aligned.rankers))
    if values.shape != shape or not np.isfinite(values).all():
        raise InputError(f"weights: expected {shape} finite numbers, a row per query; found shape {values.shape}.")
    return _finite(weighted_sum_by_query(aligned.scores, aligned.starts, values), "sum")


def fuse_by_query(aligned: Aligned, weights: Floats, *, name: str = "fused", top: int | None = None) -> Run:
    """Return the fused run under weights that differ from query to query, a row of them for each."""
    check_top(top)
    return _ranked(aligned, fuse_scores_by_query(aligned, weights), name, top)


def check_top(top: int | None) -> None:
    """Refuse a number of documents that is none."""
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or not 0 < top < 2**63):
        raise InputError(f"top: expected a positive integer of 64 bits; found {top!r:.40}.")


def fuse_runs(
    runs: AlignedOrRuns,
    weights: Weights | None = None,
    *,
    method: str = "sum",
    k: float = 60.0,
    name: str = "fused",
    top: int | None = None,
    normalize: Normalize | None = None,
    depth: Depths = None,
) -> Run:
    """Return one run out of many by the given method (see the module's table).

    Only "sum" reads `weights` (the same for each ranker if there are none) and only "rrf" reads `k`. A weighted
    reciprocal rank fusion is "sum" over scores that were normalised by "reciprocal". `top` keeps that many
    documents of each query. Runs are aligned under `normalize` ("minmax" if it is None) and `depth`, as
    `genm.align_runs` does; aligned ones have their rules already.
    """
    if method not in METHODS:
        raise InputError(f"method: expected one of {', '.join(METHODS)}; found {method!r}.")
    if weights is not None and method != "sum":
        raise InputError(
            f"weights: the method {method!r} takes none; only 'sum' does. For a weighted reciprocal rank "
            f"fusion normalise by 'reciprocal' and fuse by 'sum'."
        )
    check_top(top)
    aligned = as_aligned(runs, normalize=normalize, depth=depth)
    fused = fuse_scores(aligned, weights) if weights is not None else rule_scores(aligned, method, k=k)
    return _ranked(aligned, fused, name, top)


def rule_scores(aligned: Aligned, method: str, *, k: float = 60.0) -> Floats:
    """Return every row's score under a rule that needs no weights: what `fuse_runs` ranks by."""
    if method not in METHODS:
        raise InputError(f"method: expected one of {', '.join(METHODS)}; found {method!r}.")
    if not (np.isfinite(k) and k > -1.0):
        raise InputError(f"k: expected a number above -1, so that 1 / (k + rank) is positive; found {k}.")
    if method == "sum":
        return fuse_scores(aligned, np.full(len(aligned.rankers), 1.0 / len(aligned.rankers)))
    if method == "rrf":
        return add_reciprocal_ranks(_ranks(aligned), k)
    return _finite(_RULES[method](aligned), method)


def _ranked(aligned: Aligned, fused: Floats, name: str, top: int | None) -> Run:
    """Rank the rows by their fused scores; they lie by doc id downwards, so a stable sort settles ties."""
    order, starts = rank_order(aligned.starts, fused, np.zeros(len(fused), np.int32)), aligned.starts
    if top is not None:
        lengths = np.diff(starts)
        place = np.arange(len(fused)) - np.repeat(starts[:-1], lengths)
        order = order[place < top]
        starts = np.concatenate(([0], np.cumsum(np.minimum(lengths, top))))
    return Run(name, aligned.queries, aligned.docs, starts, aligned.doc[order], fused[order])


def _weights(aligned: Aligned, weights: Weights) -> Floats:
    rankers = aligned.rankers
    if isinstance(weights, Mapping):
        if set(weights) != set(rankers):
            raise InputError(
                f"weights: expected one for each of the rankers {', '.join(rankers)}; "
                f"found {', '.join(map(str, weights)) or 'none'}."
            )
        weights = [weights[ranker] for ranker in rankers]
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        found = f"{weights!r:.60}"
        raise InputError(
            f"weights: expected numbers; found {found}. A rule that needs none is named by `method`."
        ) from None
    if values.shape != (len(rankers),):
        raise InputError(
            f"weights: expected {len(rankers)} numbers, for {', '.join(rankers)}; found shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InputError(f"weights: expected finite numbers; found {values.tolist()}.")
    return values


def _finite(fused: Floats, method: str) -> Floats:
    if not np.isfinite(fused).all():
        raise InputError(
            f"fusing by {method!r}: the scores are too large to be added up in double precision. "
            f"Normalise them, for example by 'minmax'."
        )
    return fused


def _returned(aligned: Aligned) -> tuple[Floats, Floats]:
    """Return the normalised scores, 0 where a ranker lacks the document, and the number that have it."""
    return np.where(aligned.retrieved, aligned.scores, 0.0), aligned.retrieved.sum(axis=1, dtype=np.float64)


def _added(scores: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):  # _finite says it to the user
        return weighted_sum(scores, np.ones(scores.shape[1]))


def _comb_sum(aligned: Aligned) -> Floats:
    return _added(_returned(aligned)[0])


def _comb_mnz(aligned: Aligned) -> Floats:
    scores, n = _returned(aligned)
    with np.errstate(over="ignore"):
        return _added(scores) * n


def _comb_anz(aligned: Aligned) -> Floats:
    scores, n = _returned(aligned)
    return _added(scores) / n


def _comb_max(aligned: Aligned) -> Floats:
    return np.asarray(np.where(aligned.retrieved, aligned.scores, -np.inf).max(axis=1))


def _comb_min(aligned: Aligned) -> Floats:
    return np.asarray(np.where(aligned.retrieved, aligned.scores, np.inf).min(axis=1))


def _comb_med(aligned: Aligned) -> Floats:
    ordered = np.sort(np.where(aligned.retrieved, aligned.scores, np.inf), axis=1)
    n, rows = aligned.retrieved.sum(axis=1), np.arange(len(ordered))
    return np.asarray(0.5 * ordered[rows, (n - 1) // 2] + 0.5 * ordered[rows, n // 2])


def _ranks(aligned: Aligned) -> NDArray[np.int32]:
    return rank_lists(aligned.raw, aligned.retrieved, aligned.starts)


def add_reciprocal_ranks(ranks: NDArray[np.int32], k: float = 60.0) -> Floats:
    """Return every row's score under reciprocal rank fusion, given its rank in each list; 0: not returned."""
    worth = np.concatenate(([0.0], 1.0 / (k + np.arange(1, int(ranks.max(initial=0)) + 1))))
    return add_by_rank(ranks, worth)


def _inverse_squares(aligned: Aligned) -> tuple[Floats, Floats]:
    ranks = _ranks(aligned)
    squares = np.maximum(ranks, 1).astype(np.float64) ** 2
    return _added(np.where(ranks > 0, 1.0 / squares, 0.0)), (ranks > 0).sum(axis=1, dtype=np.float64)


def _isr(aligned: Aligned) -> Floats:
    squares, n = _inverse_squares(aligned)
    return n * squares


def _log_isr(aligned: Aligned) -> Floats:
    squares, n = _inverse_squares(aligned)
    return logarithms(n) * squares


def _borda(aligned: Aligned) -> Floats:
    ranks = _ranks(aligned)
    candidates = np.diff(aligned.starts)
    held = np.diff(
        np.concatenate((np.zeros((1, ranks.shape[1]), np.int64), (ranks > 0).cumsum(axis=0)))[aligned.starts],
        axis=0,
    )
    rest = np.repeat((candidates[:, None] - held + 1) / 2.0, candidates, axis=0)
    return _added(np.where(ranks > 0, np.repeat(candidates, candidates)[:, None] + 1.0 - ranks, rest))


def _condorcet(aligned: Aligned) -> Floats:
    place = order_by_majority(_ranks(aligned), aligned.starts)
    candidates = np.diff(aligned.starts)
    return (np.repeat(candidates, candidates) - place).astype(np.float64)


_RULES: Mapping[str, Callable[[Aligned], Floats]] = {
    "combsum": _comb_sum,
    "combmnz": _comb_mnz,
    "combanz": _comb_anz,
    "combmax": _comb_max,
    "combmin": _comb_min,
    "combmed": _comb_med,
    "isr": _isr,
    "logisr": _log_isr,
    "borda": _borda,
    "condorcet": _condorcet,
}


METHODS = ("sum", "rrf", *_RULES)
"""Every method that `fuse_runs` knows."""

make_callable(__name__, fuse_runs)  # genm.fuse(runs, method="rrf")
