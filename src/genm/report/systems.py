"""Evaluate every ranker, rule and fusion; state how much better the fusion is, and whether that is significant."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from genm._math.fusion import weighted_sum_by_query
from genm._math.linear_algebra import times
from genm._math.scaling import rank_lists
from genm._math.significance import student_interval
from genm._typing import Codes, Floats, Ints
from genm.align import Aligned, renormalize
from genm.evaluate import AlignedEvaluator, Measure, evaluate_aligned, parse_measure
from genm.evidence import (
    BEST_SINGLE,
    CRITERION,
    LEARNED,
    RRF,
    TRAINED,
    UNIFORM,
    Evidence,
    Kept,
    Outcome,
    counted,
    ranker_ids,
)
from genm.formatting import between, n_queries, p_value, signed
from genm.fuse import add_reciprocal_ranks
from genm.learn.objectives import with_level
from genm.model import Model
from genm.progress import Progress, silent
from genm.report.payload import (
    Advice,
    Gain,
    Headline,
    LearningCurve,
    LearningPoint,
    MeasureTable,
    RecallCurve,
    System,
)

Kind = Literal["ranker", "rule", "best-single", "fused"]

SHOWN = ("AP", "P@1", "P@5", "P@10", "nDCG@10", "RR", "R@100")
LEVELS = tuple(i / 10 for i in range(11))
_ADVICE: dict[Outcome, Advice] = {
    "better": "adopt",
    "perhaps better": "judge-more",
    "equal": "keep",
    "perhaps worse": "keep",
    "worse": "keep",
}


class Named(NamedTuple):
    """A system that ranks, and its name."""

    id: str
    label: str
    kind: Kind

    @property
    def held_out(self) -> bool:
        """Whether it was chosen without the queries it is evaluated on; rankers and rules choose nothing."""
        return self.id != TRAINED


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Values of all systems on some queries."""

    measures: tuple[Measure, ...]
    values: dict[str, Floats]
    """System id -> (queries, measures)."""
    aligned: Aligned
    """The queries, with their scores."""
    ranks: Codes
    """(rows, rankers) the rank in each ranker's own list, from 1; 0 where it does not hold the document."""

    def means(self, system: str) -> Floats:
        """Return the means over the queries, with their weights."""
        query_weights = self.aligned.query_weights
        return np.asarray(times(self.values[system].T, query_weights) / query_weights.sum())


def systems_of(evidence: Evidence) -> list[Named]:
    """Return everything that is measured, in the order of the tables."""
    rankers = list(evidence.singles)
    own = [Named(own, name, "ranker") for own, name in zip(ranker_ids(rankers), rankers, strict=True)]
    return [
        *own,
        *(Named(rule, rule, "rule") for rule in evidence.rules),
        Named(BEST_SINGLE, f"best single ranker: {evidence.best_name}", "best-single"),
        Named(LEARNED, "learned weights, held out", "fused"),
        Named(TRAINED, "learned weights, on their training queries", "fused"),
    ]


def measure_systems(
    aligned: Aligned, model: Model, evidence: Evidence, positions: Ints, *, progress: Progress = silent
) -> Measured:
    """Evaluate all systems on the queries at `positions`; the last eleven measures are the points of the curves."""
    level = evidence.measure.rel if evidence.measure.takes_level else model.relevance_level
    shown = [with_level(parse_measure(text), level) for text in SHOWN]
    points = [Measure("IPrec", recall=recall, rel=level) for recall in LEVELS]
    measures = (*dict.fromkeys((evidence.measure, *shown)), *points)
    part = aligned if len(positions) == len(aligned.queries) else aligned.select(positions)
    evaluator, values = AlignedEvaluator(part, measures), dict[str, Floats]()
    ranks = rank_lists(part.raw, part.retrieved, part.starts)
    n_rankers, steps = len(part.rankers), len(part.rankers) + 4
    for k, own in enumerate(ranker_ids(part.rankers)):
        progress("measuring", k, steps)
        values[own] = evaluator.values_of_list(ranks, k)
    blends = {
        UNIFORM: np.full(n_rankers, 1.0 / n_rankers),
        RRF: add_reciprocal_ranks(ranks),
        TRAINED: np.array(model.weights),
    }
    for done, (own, blend) in enumerate(blends.items(), n_rankers):
        progress("measuring", done, steps)
        values[own] = evaluator.values(blend)
    values[BEST_SINGLE] = values[ranker_ids([evidence.best_name])[0]]
    values[LEARNED] = _held_out_values(part, evidence, evidence.held_out.fold[positions], evaluator)
    progress("measuring", steps, steps)
    return Measured(measures, values, part, ranks)


def _held_out_values(part: Aligned, evidence: Evidence, fold: Ints, evaluator: AlignedEvaluator) -> Floats:
    """Measure each query under the weights that were learned without its fold."""
    weights, normalizers = evidence.held_out.weights, evidence.fold_normalizers
    if (fold >= 0).all() and all(normalizers[f] == part.normalizers for f in np.unique(fold)):
        return evaluator.values_of_scores(weighted_sum_by_query(part.scores, part.starts, weights[fold]))
    values = np.zeros((len(part.queries), len(evaluator.measures)))
    for f in range(len(weights)):
        outside = np.flatnonzero(fold == f)
        if len(outside):
            held = part.select(outside)
            if held.normalizers != normalizers[f]:
                held = renormalize(held, normalizers[f])
            values[outside] = evaluate_aligned(held, weights[f], evaluator.measures).values
    return values


def main_values(evidence: Evidence, trained: Floats) -> dict[str, Floats]:
    """Return the report's own measure of every query for every system."""
    own = dict(zip(ranker_ids(list(evidence.singles)), evidence.singles.values(), strict=True))
    return {
        **own,
        **evidence.rules,
        BEST_SINGLE: evidence.best_single,
        LEARNED: evidence.held_out.per_query,
        TRAINED: trained,
    }


def rival_values(evidence: Evidence) -> Floats:
    """Return the values of the strongest rival."""
    return {BEST_SINGLE: evidence.best_single, **evidence.rules}[evidence.strongest]


def table_of(measured: Measured, main: dict[str, Floats], evidence: Evidence) -> MeasureTable:
    """Return the means; the first column, the report's own measure, is over all queries.

    The current ranking is left out: only that measure is known of it, and the headline has it.
    """
    shown = measured.measures[: -len(LEVELS)]
    systems: list[System] = []
    for one in systems_of(evidence):
        if one.id not in measured.values:
            continue
        means = measured.means(one.id)[1 : len(shown)].tolist()
        values = [rounded(value) for value in (evidence.mean(main[one.id]), *means)]
        systems.append(
            {"id": one.id, "label": one.label, "kind": one.kind, "held_out": one.held_out, "values": values}
        )
    return {
        "measures": [str(measure) for measure in shown],
        "systems": systems,
        "n_queries": len(measured.aligned.queries),
        "main_n_queries": len(evidence.query_ids),
    }


def curves_of(measured: Measured, evidence: Evidence) -> list[RecallCurve]:
    """Return the precision-recall curves."""
    return [
        {"system": one.id, "precision": [rounded(p) for p in measured.means(one.id)[-len(LEVELS) :].tolist()]}
        for one in systems_of(evidence)
        if one.kind != "best-single" and one.id in measured.values
    ]


def rounded(value: float) -> float:
    """Return a figure with as many digits as a table or a drawing can use."""
    return round(float(value), 8)


def headline_of(evidence: Evidence) -> Headline:
    """Return the gains over what needs no learning, the strongest rival first, and what to make of them."""
    others = [rival for rival in evidence.rivals if rival != evidence.strongest]
    return {
        "verdict": evidence.verdict(),
        "advice": _advice(evidence),
        "significant": evidence.is_significant,
        "held_out": evidence.held_out.mean,
        "interval": [number_or_none(value) for value in evidence.interval],
        "train": evidence.mean(evidence.train),
        "confidence": evidence.confidence,
        "folds": len(evidence.held_out.weights),
        "best_single": evidence.best_name,
        "strongest": evidence.strongest,
        "unjudged": evidence.unjudged,
        "caveat": evidence.caveat,
        "criterion": CRITERION,
        "gains": [_gain(evidence, name) for name in (evidence.strongest, *others)],
        "over_rankers": [_gain(evidence, own) for own in ranker_ids(list(evidence.singles))],
    }


def _advice(evidence: Evidence) -> Advice:
    strongest = evidence.strongest
    return "use-rule" if strongest in evidence.better_rules else _ADVICE[evidence.outcome(strongest)]


def learning_of(kept: Kept) -> LearningCurve | None:
    """Return the held-out value against the number of queries learned from; None where nothing is learned."""
    evidence, fewer = kept.evidence, kept.fewer
    if len(fewer.n_queries) == 0:
        return None
    values = counted(fewer.per_query, evidence.query_weights).T
    columns = np.ascontiguousarray(np.hstack((values, values - values[:, -1:])))
    low, high = student_interval(columns, evidence.confidence)
    n = len(fewer.n_queries)
    points: list[LearningPoint] = [
        {
            "n_queries": float(fewer.n_queries[i]),
            "mean": evidence.mean(fewer.per_query[i]),
            "low": number_or_none(low[i]),
            "high": number_or_none(high[i]),
            "difference": evidence.mean(fewer.per_query[i]) - evidence.held_out.mean,
            "difference_low": number_or_none(low[n + i]),
            "difference_high": number_or_none(high[n + i]),
        }
        for i in range(n)
    ]
    rivals = {BEST_SINGLE: evidence.mean(evidence.best_single), RRF: evidence.mean(evidence.rules[RRF])}
    if evidence.strongest not in rivals:
        rivals[evidence.strongest] = evidence.gains[evidence.strongest].baseline_mean
    return {"points": points, "rivals": rivals, "sentence": f"{_would_more_help(points)} {fewer.note}"}


def number_or_none(value: float) -> float | None:
    """Return the number as JSON can hold it."""
    return float(value) if np.isfinite(value) else None


def _gain(evidence: Evidence, name: str) -> Gain:
    found = evidence.gains[name]
    p = found.p_values["wilcoxon"]
    sentence = (
        f"{signed(found.difference)} {evidence.measure} over {evidence.label(name)} ({evidence.confidence:.0%} "
        f"interval {between(found.low, found.high)}): better on {found.n_better:,}, worse on {found.n_worse:,}, "
        f"equal on {found.n_equal:,} of {n_queries(len(evidence.query_ids))}; Wilcoxon's test over queries "
        f"{p_value(p)}."
    )
    return {
        "over": name,
        "label": evidence.label(name),
        "rival_mean": found.baseline_mean,
        "difference": found.difference,
        "low": number_or_none(found.low),
        "high": number_or_none(found.high),
        "p": p,
        "p_values": {test: float(value) for test, value in found.p_values.items()},
        "n_better": found.n_better,
        "n_worse": found.n_worse,
        "n_equal": found.n_equal,
        "outcome": found.outcome,
        "significant": found.outcome == "better",
        "sentence": sentence,
    }


def _would_more_help(points: list[LearningPoint]) -> str:
    if len(points) < 2:
        return "There are too few queries, or too many documents, to see whether more judgments would help."
    fewer, all_ = points[-2], points[-1]
    step = (
        f"Learning from {all_['n_queries']:,.0f} queries instead of {fewer['n_queries']:,.0f} changed the held-out "
        f"value by {signed(-fewer['difference'])}"
    )
    high, low = fewer["difference_high"], fewer["difference_low"]
    if high is not None and high < 0:
        return f"{step}, which is significant: more judged queries are likely to help."
    if low is not None and low > 0:
        return f"{step}: learning from more queries did not help."
    return f"{step}, which is not significant: more judged queries of the same kind would help little."
