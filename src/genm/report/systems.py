"""Every ranker, rule and fusion, measured: the table of measures, the curves and the table of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import times
from genm.align import Aligned, renormalize
from genm.evaluate import Measure, evaluate_aligned, parse_measure
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, Evidence, best_singles, single_table
from genm.fuse import rule_scores
from genm.learn.scorer import with_level
from genm.model import Model
from genm.progress import Progress, silent
from genm.report.payload import Curve, MeasureTable, System

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["ranker", "rule", "best-single", "fused"]

HELD_OUT, TRAINED = "learned weights", "learned weights (training)"
SHOWN = ("AP", "P@1", "P@5", "P@10", "nDCG@10", "RR", "R@100")
LEVELS = tuple(i / 10 for i in range(11))
_RESERVED = (UNIFORM, RRF, BEST_SINGLE, HELD_OUT, TRAINED)


class Named(NamedTuple):
    """What ranks, and how it is called."""

    id: str
    label: str
    kind: Kind

    @property
    def held_out(self) -> bool:
        """Whether it was chosen without the queries it is measured on; rankers and rules choose nothing."""
        return self.id != TRAINED


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Values of all systems on some queries."""

    measures: tuple[Measure, ...]
    values: dict[str, Array]
    """System id -> (queries, measures)."""
    query_weights: Array

    def means(self, system: str) -> Array:
        """Return the means over the queries, with their weights."""
        return np.asarray(times(self.values[system].T, self.query_weights) / self.query_weights.sum())


def ranker_ids(rankers: Sequence[str]) -> list[str]:
    """Return an id for each ranker that no other system has."""
    return [f"{name} (ranker)" if name in _RESERVED else name for name in rankers]


def systems_of(rankers: Sequence[str]) -> list[Named]:
    """Return everything that is measured, in the order of the tables."""
    own = [Named(own, name, "ranker") for own, name in zip(ranker_ids(rankers), rankers, strict=True)]
    return [
        *own,
        Named(UNIFORM, UNIFORM, "rule"),
        Named(RRF, RRF, "rule"),
        Named(BEST_SINGLE, "best single ranker, chosen without the fold", "best-single"),
        Named(HELD_OUT, "learned weights, held out", "fused"),
        Named(TRAINED, "learned weights, on their training queries", "fused"),
    ]


def measure_systems(
    aligned: Aligned, model: Model, evidence: Evidence, positions: Ints, *, progress: Progress = silent
) -> Measured:
    """Measure all systems on the queries at `positions`; the curves' points are the last eleven measures."""
    level = evidence.measure.rel if evidence.measure.name not in ("nDCG", "Judged") else model.relevance_level
    shown = [with_level(parse_measure(text), level) for text in SHOWN]
    points = [Measure("IPrec", recall=recall, rel=level) for recall in LEVELS]
    measures = (*dict.fromkeys((evidence.measure, *shown)), *points)
    part = aligned if len(positions) == len(aligned.queries) else aligned.select(positions)
    values: dict[str, Array] = {}
    n_rankers, steps = len(part.rankers), len(part.rankers) + 4
    for done, (own, name) in enumerate(zip(ranker_ids(part.rankers), part.rankers, strict=True)):
        progress("measuring", done, steps)
        values[own] = single_table(part, name, measures)
    blends = {
        UNIFORM: np.full(n_rankers, 1.0 / n_rankers),
        RRF: rule_scores(part, "rrf"),
        TRAINED: np.array(model.weights),
    }
    for done, (own, blend) in enumerate(blends.items(), n_rankers):
        progress("measuring", done, steps)
        values[own] = evaluate_aligned(part, blend, measures).values
    fold, ids = evidence.held_out.fold[positions], dict(zip(part.rankers, ranker_ids(part.rankers), strict=True))
    values[HELD_OUT], values[BEST_SINGLE] = np.zeros_like(values[UNIFORM]), np.zeros_like(values[UNIFORM])
    for f, name in enumerate(best_singles(evidence)):
        outside = np.flatnonzero(fold == f)
        if len(outside) == 0:
            continue
        values[BEST_SINGLE][outside] = values[ids[name]][outside]
        held = part.select(outside)
        if held.normalizers != evidence.fold_normalizers[f]:
            held = renormalize(held, evidence.fold_normalizers[f])
        values[HELD_OUT][outside] = evaluate_aligned(held, evidence.held_out.weights[f], measures).values
    progress("measuring", steps, steps)
    return Measured(measures, values, part.query_weights)


def main_values(evidence: Evidence, trained: Array) -> dict[str, Array]:
    """Return the report's own measure of every query for every system."""
    own = dict(zip(ranker_ids(list(evidence.singles)), evidence.singles.values(), strict=True))
    return {
        **own,
        UNIFORM: evidence.rules[UNIFORM],
        RRF: evidence.rules[RRF],
        BEST_SINGLE: evidence.best_single,
        HELD_OUT: evidence.held_out.per_query,
        TRAINED: trained,
    }


def table_of(
    measured: Measured, main: dict[str, Array], evidence: Evidence, rankers: Sequence[str]
) -> MeasureTable:
    """Return the means; the first column, the report's own measure, is over all queries."""
    shown = measured.measures[: -len(LEVELS)]
    systems: list[System] = []
    for one in systems_of(rankers):
        means = measured.means(one.id)[1 : len(shown)].tolist()
        values = [rounded(value) for value in (evidence.mean(main[one.id]), *means)]
        systems.append(
            {"id": one.id, "label": one.label, "kind": one.kind, "held_out": one.held_out, "values": values}
        )
    return {
        "measures": [str(measure) for measure in shown],
        "systems": systems,
        "n_queries": len(measured.query_weights),
        "main_n_queries": len(evidence.query_ids),
    }


def curves_of(measured: Measured, rankers: Sequence[str]) -> list[Curve]:
    """Return the precision-recall curves."""
    return [
        {"system": one.id, "precision": [rounded(p) for p in measured.means(one.id)[-len(LEVELS) :].tolist()]}
        for one in systems_of(rankers)
        if one.kind != "best-single"
    ]


def rounded(value: float) -> float:
    """Return a figure with as many digits as a table or a drawing can use."""
    return round(float(value), 8)
