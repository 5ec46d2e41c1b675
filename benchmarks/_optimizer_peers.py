"""Other people's ways to maximise MAP: two written here, three by their libraries."""

import contextlib
import importlib.metadata
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from genm._math.scaling import rank_lists
from genm.align import Aligned, align_runs
from genm.ids import Ids
from genm.learn.objectives import Problem
from genm.records import Qrels, ranked_run

Array = NDArray[np.float64]


def versions() -> dict[str, str]:
    found = {}
    for name in ("scipy", "ranx", "xgboost", "fastrank"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def coordinate_ascent(
    aligned: Aligned,
    *,
    restarts: int = 5,
    tries: int = 25,
    step_base: float = 0.05,
    step_scale: float = 2.0,
    tolerance: float = 0.001,
    seed: int = 0,
) -> Array:
    """One weight at a time along a grid of growing steps, with RankLib's settings and its order of trying.

    From uniform weights, features shuffled anew in each sweep: up, else down, each time `tries` steps that double,
    else to 0. The best of the tried values is kept and the weights are scaled to sum 1. A start ends when all
    but one weights in a row have failed, or a sweep gains no more than the tolerance; the best of all restarts
    wins. MAP is exact, by our own evaluator.
    """
    value, rng, K = Problem(aligned).exact, np.random.default_rng(seed), len(aligned.rankers)
    best, reached = np.full(K, 1.0 / K), -1.0
    for _ in range(restarts):
        weights, fails = np.full(K, 1.0 / K), 0
        here = value(weights)
        while fails < max(K - 1, 1):
            before = here
            for k in rng.permutation(K).tolist():
                found, at = _along(value, weights, k, here, tries, step_base, step_scale)
                if found > here:
                    weights[k], here, fails = at, found, 0
                    weights = weights / np.abs(weights).sum()
                else:
                    fails += 1
                if fails >= max(K - 1, 1):
                    break
            if here - before < tolerance:
                break
        if here > reached:
            best, reached = weights, here
    return best


def _along(
    value, weights: Array, k: int, here: float, tries: int, base: float, scale: float
) -> tuple[float, float]:
    """Return the best value, and the weight it is reached at, along one weight's grid."""
    origin, best, at = float(weights[k]), here, float(weights[k])
    for sign in (1.0, -1.0, 0.0):
        step = 0.001 * sign
        if origin != 0.0 and abs(step) > 0.5 * abs(origin):
            step = base * abs(origin) * sign
        total = step if sign else -origin
        for _ in range(tries if sign else 1):
            moved = weights.copy()
            moved[k] = origin + total
            reached = value(moved)
            if reached > best:
                best, at = reached, float(moved[k])
            step *= scale
            total += step
        if best > here:
            break
    return best, at


def nelder_mead(aligned: Aligned, *, size: float = 0.25, calls: int = 400) -> Array:
    """The downhill simplex on exact MAP, from uniform weights and from each ranker; negative weights count as 0."""
    from scipy.optimize import minimize

    value, K = Problem(aligned).exact, len(aligned.rankers)

    def weights_of(x: Array) -> Array:
        w = np.maximum(np.append(x, 1.0 - x.sum()), 0.0)
        return w / w.sum()

    ends = []
    for start in (np.full(K, 1.0 / K), *(0.5 * unit + 0.5 / K for unit in np.eye(K))):
        corners = np.vstack([start[:-1], start[:-1] + size * np.eye(K - 1)])
        settings = {"initial_simplex": corners, "xatol": 1e-4, "fatol": 1e-6, "maxfev": calls}
        found = minimize(lambda x: -value(weights_of(x)), start[:-1], method="Nelder-Mead", options=settings)
        ends.append(weights_of(found.x))
    return max(ends, key=value)


def ranx_grid(aligned: Aligned, top: int) -> Array:
    """`ranx.optimize_fusion`: the best of its grid with step 0.1, raw scores, on the top of each list."""
    from ranx import Qrels as TheirQrels
    from ranx import Run, optimize_fusion

    rows = _top_rows(aligned, top)
    judged = np.flatnonzero(aligned.relevance > 0)
    qrels = _nested(aligned, judged, np.ones(len(aligned.doc), np.int64))
    with_relevant = set(qrels)
    runs = []
    for k in range(len(aligned.rankers)):
        run = _nested(aligned, rows, aligned.raw[:, k])
        runs.append(Run({q: docs for q, docs in run.items() if q in with_relevant}))
    with _quiet():
        found = optimize_fusion(TheirQrels(qrels), runs, norm=None, method="wsum", metric="map", step=0.1)
    return np.array(found["weights"], np.float64)


def gblinear(aligned: Aligned, top: int, *, rounds: int = 100) -> Array:
    """XGBoost's linear booster with the objective `rank:map`; its coefficients are the weights."""
    import xgboost

    rows = _top_rows(aligned, top)
    groups = np.diff(np.searchsorted(rows, aligned.starts))
    data = xgboost.DMatrix(aligned.scores[rows], label=aligned.relevance[rows] > 0, group=groups[groups > 0])
    settings = {"booster": "gblinear", "objective": "rank:map", "eta": 0.5, "lambda": 0.0, "seed": 0}
    booster = xgboost.train(settings, data, num_boost_round=rounds)
    told = booster.get_score(importance_type="weight")
    return np.array([told.get(f"f{k}", 0.0) for k in range(len(aligned.rankers))])


def fastrank_ascent(aligned: Aligned, top: int) -> Array:
    """FastRank's coordinate ascent on MAP with its own settings, one seed."""
    import fastrank

    rows = _top_rows(aligned, top)
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))[rows]
    data = fastrank.CDataset.from_numpy(
        aligned.scores[rows].astype(np.float32), (aligned.relevance[rows] > 0).astype(np.float64), query
    )
    request = fastrank.TrainRequest.coordinate_ascent()
    request.measure = "map"
    request.params.seed, request.params.quiet = 1, True
    with _quiet():
        model = data.train_model(request)
    return np.array(model.to_dict()["Linear"]["weights"])


def tiny() -> Aligned:
    """Return ten queries of thirty documents, to warm up on."""
    rng, queries, docs = np.random.default_rng(0), Ids.of(map(str, range(10))), Ids.of(map(str, range(30)))
    starts, doc = np.arange(11) * 30, np.tile(np.arange(30, dtype=np.int32), 10)
    runs = {name: ranked_run(name, queries, docs, starts, doc, rng.random(300)) for name in ("a", "b", "c")}
    relevant = np.tile(np.arange(3, dtype=np.int32), 10)
    qrels = Qrels(queries, docs, np.arange(11) * 3, relevant, np.ones(30, np.int32))
    return align_runs(runs, qrels, normalize="none")


def _top_rows(aligned: Aligned, top: int) -> NDArray[np.intp]:
    """Return the rows that some ranker has among its first `top`."""
    ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts)
    return np.flatnonzero(((ranks > 0) & (ranks <= top)).any(axis=1))


def _nested(aligned: Aligned, rows: NDArray[np.intp], values: NDArray[np.generic]) -> dict[str, dict[str, float]]:
    """Return query -> document -> value of some rows."""
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))[rows].tolist()
    names, found = list(aligned.queries), {}
    for q, doc, value in zip(query, aligned.doc[rows].tolist(), values[rows].tolist(), strict=True):
        found.setdefault(names[q], {})[str(doc)] = value
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide what a library prints on its way, whatever language it is written in."""
    kept = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        for place, handle in enumerate(kept, 1):
            os.dup2(handle, place)
            os.close(handle)
        os.close(nowhere)
