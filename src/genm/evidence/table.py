"""Evidence for weights that were learned from a score table: the same figures as in memory, from a few passes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from genm._math.linear_algebra import weighted_mean
from genm._math.parallel import over_items
from genm._typing import Floats
from genm.errors import InputError
from genm.evaluate import MeasureLike, parse_measure
from genm.evaluate.compare import Test
from genm.evidence.crossval import HeldOut, check_folds
from genm.evidence.evidence import CURRENT, RRF, TOP, UNIFORM, Evidence, current_weights, with_gains
from genm.evidence.resampling import FewerQueries, Kept, Refits
from genm.learn import Fuser
from genm.learn.auto import AutoFuser
from genm.learn.objectives import fold_of_queries
from genm.learn.table import TableQueries
from genm.learn.table_fit import fit_table
from genm.scale import Request

MOST_PERMUTED = 20_000
"""Queries up to which the randomisation test is run: on 100,000 it takes 4 s of CPU for each rival."""
MOST_REPEATED = 20_000
"""Queries up to which the folds choose their shrinkage by as many rounds of inner folds as the fit; then by one."""
_QUICK_TESTS: tuple[Test, ...] = ("wilcoxon", "t")


def rivals_of_table(rankers: Sequence[str], measure: MeasureLike) -> list[Request]:
    """Return requests for what needs no learning and no weights: the rankers' own lists, and their rank fusion.

    Given to `TableQueries` as `ahead`, they cost no pass of their own.
    """
    named = str(parse_measure(measure))
    return [
        Request("rrf", measure=named, per_query=True),
        *(Request("ranker", ranker=name, measure=named, per_query=True) for name in rankers),
    ]


def gather_table_evidence(
    table: TableQueries,
    make: Callable[[], Fuser],
    measure: MeasureLike,
    *,
    folds: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
    current: Mapping[str, float] | None = None,
) -> tuple[Fuser, Evidence]:
    """Fit on all queries of a table, cross-validate the same method, and set both beside what needs no learning.

    The fit and the folds share passes over the table. One further pass measures every query under all systems, but
    for those that `rivals_of_table` names if `table` was given them ahead.
    """
    measure, n = parse_measure(measure), table.n_queries
    if n < 2:
        raise InputError(f"{n} judged query: expected at least 2 to learn and to hold out. Judge more queries.")
    rankers = table.table.rankers
    folds = check_folds(min(folds, n), n)
    fold = fold_of_queries(n, folds, seed)

    def fit_without(left_out: int) -> Fuser:
        if left_out < 0:
            return fit_table(make(), table)
        fuser = make()
        if isinstance(fuser, AutoFuser) and n > MOST_REPEATED:
            fuser.repeats = 1
        return fit_table(fuser, table, np.flatnonzero(fold != left_out), curve=False)

    with table:
        fuser, *by_fold = over_items(fit_without, range(-1, folds))
    weights = np.array([fitted.weights_ for fitted in by_fold])
    systems: dict[str, Any] = {
        UNIFORM: {"kind": "measure", "weights": (1.0 / len(rankers),) * len(rankers)},
        "train": {"kind": "measure", "weights": tuple(fuser.weights_.tolist())},
    }
    if current is not None:
        systems[CURRENT] = {"kind": "measure", "weights": tuple(current_weights(current, rankers).tolist())}
    held_out = [np.flatnonzero(fold == f) for f in range(folds)]
    asked = [
        *(Request(measure=str(measure), per_query=True, **what) for what in systems.values()),
        *rivals_of_table(rankers, measure),
        *(
            Request("measure", tuple(own.tolist()), measure=str(measure), per_query=True, queries=table.marks(out))
            for own, out in zip(weights, held_out, strict=True)
        ),
        Request("measure", tuple(fuser.weights_.tolist()), measure=f"Judged@{TOP}", per_query=True),
    ]
    found = [values for (values,) in table.evaluate(asked)]
    by_name = dict(zip([*systems, RRF], found, strict=False))
    singles = dict(zip(rankers, found[len(by_name) :], strict=False))
    per_query = np.zeros(n)
    for out, values in zip(held_out, found[-1 - folds : -1], strict=True):
        per_query[out] = values
    query_ids = tuple(table.query_ids)
    evidence = Evidence(
        measure=measure,
        query_ids=query_ids,
        train=by_name["train"],
        held_out=HeldOut(
            per_query=per_query,
            mean=weighted_mean(per_query, table.query_weights),
            fold=fold,
            weights=weights,
            query_ids=query_ids,
            rankers=rankers,
            measure=str(measure),
        ),
        singles=singles,
        rules={name: by_name[name] for name in (UNIFORM, RRF, CURRENT) if name in by_name},
        best_name=rankers[0],
        interval=(0.0, 0.0),
        gains={},
        query_weights=table.query_weights,
        confidence=confidence,
        fold_normalizers=tuple(fitted.normalizers_ for fitted in by_fold),
        unjudged=_unjudged(found[-1], table.lengths > 0),
    )
    return fuser, with_gains(evidence, seed, tests=get_args(Test) if n <= MOST_PERMUTED else _QUICK_TESTS)


def _unjudged(judged: Floats, with_docs: np.ndarray[Any, np.dtype[np.bool_]]) -> float | None:
    """Return the share of the learned weights' top that has no judgment."""
    return 1.0 - float(judged[with_docs].mean()) if with_docs.any() else None


def keep_table_evidence(fuser: Fuser, evidence: Evidence, digest: str, *, seed: int = 0) -> Kept:
    """Return the evidence as it is kept beside a model; nothing is refitted on resampled or on fewer queries."""
    nothing = np.zeros((0, len(fuser.rankers_)))
    note = "The weights were learned from a table, which is not refitted on resampled queries."
    share = fuser.shrunk_.amount if isinstance(fuser, AutoFuser) else None
    return Kept(
        rankers=fuser.rankers_,
        weights=tuple(fuser.weights_.tolist()),
        fingerprint=digest,
        seed=seed,
        evidence=evidence,
        refits=Refits(nothing, nothing, "none", share, note),
        fewer=FewerQueries(np.zeros(0), np.zeros((0, len(evidence.query_ids))), note),
    )
