"""How much better, is it luck, would more judgments help: the first things a reader asks, in words."""

import numpy as np

from genm._math.paired import bootstrap_interval
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, Evidence, Kept
from genm.report.payload import Gain, Headline, LearningCurve, LearningPoint

_RESAMPLES = 2000


def headline_of(evidence: Evidence) -> Headline:
    """Return the gains over what needs no learning, and what to make of them."""
    gain = evidence.gains[BEST_SINGLE]
    return {
        "verdict": evidence.verdict(),
        "advice": "adopt" if evidence.is_significant else "judge-more" if gain.difference > 0 else "keep",
        "significant": evidence.is_significant,
        "held_out": evidence.held_out.mean,
        "interval": [number_or_none(value) for value in evidence.interval],
        "train": evidence.mean(evidence.train),
        "confidence": evidence.confidence,
        "folds": len(evidence.held_out.weights),
        "best_single": evidence.best_name,
        "gains": [_gain(evidence, name) for name in (BEST_SINGLE, RRF, UNIFORM)],
    }


def learning_of(kept: Kept) -> LearningCurve:
    """Return the held-out value against the number of queries learned from."""
    evidence, fewer = kept.evidence, kept.fewer
    values = fewer.per_query.T
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
        f"{found.difference:+.4f} {evidence.measure} over {rival} ({evidence.confidence:.0%} interval "
        f"{found.low:+.4f} to {found.high:+.4f}, p = {p:.2g}): better on {found.n_better:,}, worse on "
        f"{found.n_worse:,}, equal on {found.n_equal:,} of {len(evidence.query_ids):,} queries."
    )
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
        "significant": found.difference > 0 and p < 1.0 - evidence.confidence,
        "sentence": sentence,
    }


def _would_more_help(points: list[LearningPoint]) -> str:
    if len(points) < 2:
        return "There are too few queries, or too many documents, to see whether more judgments would help."
    fewer, all_ = points[-2], points[-1]
    step = (
        f"Learning from {all_['n_queries']:,.0f} queries instead of {fewer['n_queries']:,.0f} changed the held-out "
        f"value by {-fewer['difference']:+.4f}"
    )
    high, low = fewer["difference_high"], fewer["difference_low"]
    if high is not None and high < 0:
        return f"{step}, more than luck would: more judged queries are likely to help."
    if low is not None and low > 0:
        return f"{step}: what was learned from more queries was no better."
    return f"{step}, no more than luck would: more judged queries of the same kind would bring little."
