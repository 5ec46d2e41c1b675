"""Evaluate every ranker, rule and fusion; state how much better the fusion is, and whether that is significant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from genm._math.linear_algebra import times
from genm._math.significance import bootstrap_interval
from genm._typing import Floats, Ints
from genm.align import Aligned, renormalize
from genm.evaluate import Measure, evaluate_aligned, parse_measure
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, Evidence, Kept, Outcome, best_singles, counted, single_table
from genm.formatting import between, measure_name, n_queries, p_value, signed
from genm.fuse import rule_scores
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

HELD_OUT, TRAINED = "learned weights", "learned weights (training)"
SHOWN = ("AP", "P@1", "P@5", "P@10", "nDCG@10", "RR", "R@100")
LEVELS = tuple(i / 10 for i in range(11))
_RESERVED = (UNIFORM, RRF, BEST_SINGLE, HELD_OUT, TRAINED)

_RESAMPLES = 2000

_RULES = {RRF: "RRF", UNIFORM: "equal weights"}
_ADVICE: dict[Outcome, Advice] = {
    "better": "adopt",
    "perhaps better": "judge-more",
    "equal": "keep",
    "perhaps worse": "keep",
    "worse": "keep",
}
_SIGNIFICANCE: dict[Outcome, str] = {
    "better": "significant",
    "perhaps better": "not significant",
    "equal": "",
    "perhaps worse": "not significant",
    "worse": "significant",
}
_FEWEST_DIFFERENCES = 6
"""The smallest p of Wilcoxon's test is 2 / 2^n: with fewer queries that differ, it is never below 0.05."""


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
    query_weights: Floats

    def means(self, system: str) -> Floats:
        """Return the means over the queries, with their weights."""
        return np.asarray(times(self.values[system].T, self.query_weights) / self.query_weights.sum())


def ranker_ids(rankers: Sequence[str]) -> list[str]:
    """Return an id for each ranker that no other system has."""
    return [f"{name} (ranker)" if name in _RESERVED else name for name in rankers]


def systems_of(rankers: Sequence[str]) -> list[Named]:
    """Return all systems, in the order of the tables."""
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
    """Evaluate all systems on the queries at `positions`; the last eleven measures are the points of the curves."""
    level = evidence.measure.rel if evidence.measure.takes_level else model.relevance_level
    shown = [with_level(parse_measure(text), level) for text in SHOWN]
    points = [Measure("IPrec", recall=recall, rel=level) for recall in LEVELS]
    measures = (*dict.fromkeys((evidence.measure, *shown)), *points)
    part = aligned if len(positions) == len(aligned.queries) else aligned.select(positions)
    values: dict[str, Floats] = {}
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


def main_values(evidence: Evidence, trained: Floats) -> dict[str, Floats]:
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
    measured: Measured, main: dict[str, Floats], evidence: Evidence, rankers: Sequence[str]
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


def curves_of(measured: Measured, rankers: Sequence[str]) -> list[RecallCurve]:
    """Return the precision-recall curves."""
    return [
        {"system": one.id, "precision": [rounded(p) for p in measured.means(one.id)[-len(LEVELS) :].tolist()]}
        for one in systems_of(rankers)
        if one.kind != "best-single"
    ]


def rounded(value: float) -> float:
    """Return a figure with as many digits as a table or a drawing can use."""
    return round(float(value), 8)


def headline_of(evidence: Evidence, method: str = "") -> Headline:
    """Return the gains over the systems that need no learning, the verdict and the advice."""
    return {
        "verdict": verdict_of(evidence, learned=method != "equal"),
        "advice": _advice(evidence),
        "significant": evidence.is_significant,
        "held_out": evidence.held_out.mean,
        "interval": [number_or_none(value) for value in evidence.interval],
        "train": evidence.mean(evidence.train),
        "confidence": evidence.confidence,
        "folds": len(evidence.held_out.weights),
        "best_single": evidence.best_name,
        "gains": [_gain(evidence, name) for name in (BEST_SINGLE, RRF, UNIFORM)],
    }


def _advice(evidence: Evidence) -> Advice:
    advice = _ADVICE[evidence.outcome(BEST_SINGLE)]
    return "use-rule" if evidence.better_rules and advice != "keep" else advice


def verdict_of(evidence: Evidence, *, learned: bool = True) -> str:
    """Compare the held-out figures with the best single ranker and RRF; name rules that may do as well or better.

    Where nothing was learned, the weights are all equal.
    """
    if len(evidence.singles) == 1:
        return "There is only one ranker: there is nothing to fuse."
    against_single = _standing(evidence, BEST_SINGLE, "the best single ranker")
    subject = "On held-out queries, the learned weights" if learned else "Equal weights"
    said = [f"{subject} {against_single}.", f"They {_standing(evidence, RRF, 'RRF')}."]
    enough = [word for rule, word in _RULES.items() if evidence.outcome(rule) != "better"]
    better = [_RULES[rule] for rule in evidence.better_rules]
    if better and learned:
        said.append(f"Clearly better, without learning: {' and '.join(better)}.")
    elif enough and learned and evidence.is_significant:
        said.append(f"Without learning, {' and '.join(enough)} may do as well.")
    gain = evidence.gains[BEST_SINGLE]
    differing = gain.n_better + gain.n_worse
    if 0 < differing < _FEWEST_DIFFERENCES and evidence.confidence >= 0.95:
        said.append(
            f"With only {n_queries(differing)} that differ, no gain can be significant: judge more queries."
        )
    return " ".join(said)


def _standing(evidence: Evidence, rival: str, name: str) -> str:
    gain, outcome = evidence.gains[rival], evidence.outcome(rival)
    if outcome == "equal":
        return f"equal {name} on every query"
    by = f"{abs(gain.difference):.4f}"
    side = "better" if gain.difference > 0 else "worse"
    far = f"{by} {measure_name(str(evidence.measure))} {side} than" if float(by) else "about equal to"
    figures = f"{evidence.confidence:.0%} interval {between(gain.low, gain.high)}"
    return f"are {far} {name} ({figures}, {p_value(gain.p_values['wilcoxon'])}): {_SIGNIFICANCE[outcome]}"


def learning_of(kept: Kept) -> LearningCurve | None:
    """Return the held-out value against the number of queries learned from; None where nothing is learned."""
    evidence, fewer = kept.evidence, kept.fewer
    if len(fewer.n_queries) == 0:
        return None
    values = counted(fewer.per_query, evidence.query_weights).T
    columns = np.ascontiguousarray(np.hstack((values, values - values[:, -1:])))
    rng = np.random.default_rng([kept.seed, 4])
    low, high = bootstrap_interval(columns, evidence.confidence, _RESAMPLES, rng)
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
    return {"points": points, "rivals": rivals, "sentence": f"{_would_more_help(points)} {fewer.note}"}


def number_or_none(value: float) -> float | None:
    """Return the number as JSON can hold it."""
    return float(value) if np.isfinite(value) else None


def _gain(evidence: Evidence, name: str) -> Gain:
    found = evidence.gains[name]
    p = found.p_values["wilcoxon"]
    rival = f"{BEST_SINGLE}, chosen without the fold" if name == BEST_SINGLE else name
    sentence = (
        f"{signed(found.difference)} {evidence.measure} over {rival} ({evidence.confidence:.0%} interval "
        f"{between(found.low, found.high)}, {p_value(p)}): better on {found.n_better:,}, worse on "
        f"{found.n_worse:,}, equal on {found.n_equal:,} of {n_queries(len(evidence.query_ids))}."
    )
    outcome = evidence.outcome(name)
    return {
        "over": name,
        "difference": found.difference,
        "low": number_or_none(found.low),
        "high": number_or_none(found.high),
        "p": p,
        "p_values": {test: float(value) for test, value in found.p_values.items()},
        "n_better": found.n_better,
        "n_worse": found.n_worse,
        "n_equal": found.n_equal,
        "outcome": outcome,
        "significant": outcome == "better",
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
