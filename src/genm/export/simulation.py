"""What the engines' simulators share: cut a list, normalise, add columns, rank. Plain Python on purpose.

Every normaliser is spelt out step by step on one list: the readable twin of the kernels. Equal scores are
ordered by doc id downwards, as everywhere in genm; each target's notes say what its engine does.
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence

from genm.normalizers import Normalizer


def top(scores: Mapping[str, float], n: int | None) -> dict[str, float]:
    """Return the n best of a list, best first."""
    by_id = sorted(scores.items(), key=lambda pair: pair[0], reverse=True)
    return dict(sorted(by_id, key=lambda pair: pair[1], reverse=True)[:n])


def every_doc(lists: Iterable[Mapping[str, float]]) -> list[str]:
    """Return the documents of all lists, each once, in the order in which they come: the same in every process."""
    return list(dict.fromkeys(doc for scores in lists for doc in scores))


def ranking(fused: Mapping[str, float]) -> list[str]:
    """Return the doc ids, best first."""
    return list(top(fused, None))


def add_weighted(columns: Iterable[Mapping[str, float]], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted sum of the columns; what a column lacks adds nothing."""
    fused: dict[str, float] = {}
    for column, weight in zip(columns, weights, strict=True):
        for doc, score in column.items():
            fused[doc] = fused.get(doc, 0.0) + weight * score
    return fused


def add_reciprocal(
    lists: Iterable[Mapping[str, float]], weights: Sequence[float], k: float, n: int | None
) -> dict[str, float]:
    """Return the sum of weight / (k + rank), ranks from 1."""
    columns = [{doc: 1.0 / (k + rank) for rank, doc in enumerate(top(scores, n), start=1)} for scores in lists]
    return add_weighted(columns, weights)


def single(value: float) -> float:
    """Return the value in single precision, in which some engines compare."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def normalized(scores: Mapping[str, float], normalizer: Normalizer) -> dict[str, float]:
    """Return the normalised scores of one list."""
    if not scores:
        return {}
    kind = normalizer.kind
    if kind in ("rank", "reciprocal"):
        n = len(scores)
        places = {doc: place for place, doc in enumerate(top(scores, None), start=1)}
        share = {d: (n - p + 1) / n if kind == "rank" else 1.0 / (normalizer.k + p) for d, p in places.items()}
        return {doc: _finished(value, normalizer) for doc, value in share.items()}
    if kind in ("none", "atan", "sigmoid"):
        function = {"none": float, "atan": math.atan, "sigmoid": _sigmoid}[kind]
        return {doc: _finished(function(score), normalizer) for doc, score in scores.items()}
    low, high = min(scores.values()), max(scores.values())
    if kind == "affine" or (kind == "minmax" and high - low > normalizer.constant_within):
        return {doc: _between(score, low, high, normalizer) for doc, score in scores.items()}
    return _by_unit(scores, normalizer)


def filled(scores: Mapping[str, float], docs: Iterable[str], normalizer: Normalizer) -> dict[str, float]:
    """Return a score for every document: what the ranker gave, or the rule for the missing."""
    least = min(scores.values(), default=0.0)
    gap = least if normalizer.missing == "minimum" else float(normalizer.missing)
    return {doc: scores.get(doc, gap) for doc in docs}


def _by_unit(scores: Mapping[str, float], normalizer: Normalizer) -> dict[str, float]:
    values, kind = list(scores.values()), normalizer.kind
    base, unit = 0.0, 0.0
    extent = max(values) - min(values)
    if kind == "max":
        unit = extent = max(abs(value) for value in values)
    elif kind == "l2":
        unit = extent = math.sqrt(sum(value * value for value in values))
    elif kind == "sum":
        base = min(values)
        unit = sum(value - base for value in values)
    elif kind == "zscore" and len(values) > normalizer.ddof:
        base = sum(values) / len(values)
        unit = math.sqrt(sum((value - base) ** 2 for value in values) / (len(values) - normalizer.ddof))
    if unit == 0.0 or extent <= normalizer.constant_within:
        raw = normalizer.constant == "raw"
        return {doc: score if raw else float(normalizer.constant) for doc, score in scores.items()}
    result = {}
    for doc, score in scores.items():
        if kind == "zscore" and normalizer.at_mean is not None and single(score) == single(base):
            result[doc] = max(values) if normalizer.at_mean == "max" else float(normalizer.at_mean)
        else:
            result[doc] = _finished((score - base) / unit, normalizer)
    return result


def _between(score: float, low: float, high: float, normalizer: Normalizer) -> float:
    lower, upper = normalizer.lower, normalizer.upper
    lower_mode = "ignore" if lower is None else normalizer.lower_mode
    upper_mode = "ignore" if upper is None else normalizer.upper_mode
    bottom, top_end = low, high
    fixed = normalizer.kind == "affine" or (lower_mode, upper_mode) == ("apply", "apply")
    if lower is not None and (fixed or _bound_counts(lower_mode, high - lower, score - lower)):
        bottom = lower
    if upper is not None and (fixed or _bound_counts(upper_mode, upper - low, upper - score)):
        top_end = upper
    if lower_mode == "clip" and score < bottom:
        return _finished(0.0, normalizer)
    if upper_mode == "clip" and score > top_end:
        return _finished(1.0, normalizer)
    if top_end > bottom:
        return _finished((score - bottom) / (top_end - bottom), normalizer)
    return score if normalizer.constant == "raw" else float(normalizer.constant)


def _bound_counts(mode: str, list_beyond: float, score_beyond: float) -> bool:
    """Whether a bound replaces the list's end: not when the whole list lies on its far side."""
    if mode == "ignore" or list_beyond < 0.0 or (mode != "clip" and list_beyond == 0.0):
        return False
    return mode != "within" or score_beyond > 0.0


def _finished(value: float, normalizer: Normalizer) -> float:
    value = normalizer.scale * value + normalizer.shift
    if normalizer.floor is None:
        return value
    at = normalizer.floor if normalizer.floor_at is None else normalizer.floor_at
    return normalizer.floor if value <= at else value


def _sigmoid(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-score)) if score > -700.0 else 0.0
