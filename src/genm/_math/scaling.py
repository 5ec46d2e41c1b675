"""Every way in which the scores of one list, one query of one ranker, are made comparable with another's.

Lists are the columns of (rows, K) matrices; the rows of query q are starts[q]:starts[q + 1]. What is asked for
is a row of numbers per ranker, in the order of COLUMNS. No finite input gives NaN or infinity: lists of extreme
numbers are scaled by a power of two first, which changes no quotient, and results stop at the largest finite
number.
"""

import math

import numpy as np
from numpy.typing import NDArray

from genm._math.compiled import kernel, over_ranges
from genm._math.radix import N_COUNTS, downward_keys, sort_pairs

KINDS = ("none", "minmax", "max", "sum", "zscore", "l2", "rank", "reciprocal", "affine", "atan", "sigmoid")
MODES = ("ignore", "apply", "clip", "within")
COLUMNS = (
    "kind",  # index in KINDS
    "lower",
    "upper",
    "lower_mode",  # index in MODES, "ignore" where there is no bound
    "upper_mode",
    "floor",  # NaN: none
    "floor_at",  # NaN: none
    "constant",  # NaN: keep the raw scores
    "constant_within",
    "ddof",
    "at_mean",  # NaN: the formula; inf: the highest raw score
    "k",
    "scale",
    "shift",
    "missing",  # NaN: the list's minimum
)

_NONE, _MINMAX, _MAX, _SUM, _ZSCORE, _L2, _RANK, _RECIPROCAL, _AFFINE, _ATAN, _SIGMOID = range(len(KINDS))
_IGNORE, _APPLY, _CLIP, _WITHIN = range(len(MODES))
_KIND, _LOWER, _UPPER, _LOWER_MODE, _UPPER_MODE, _FLOOR, _FLOOR_AT, _CONSTANT = range(8)
_CONSTANT_WITHIN, _DDOF, _AT_MEAN, _K, _SCALE, _SHIFT, _MISSING = range(8, len(COLUMNS))
_LARGEST = float(np.finfo(np.float64).max)
_TAME = 1e100  # between its inverse and this, squares and sums of squares keep every digit


def scale_lists(
    raw: NDArray[np.float64],
    retrieved: NDArray[np.bool_],
    starts: NDArray[np.int64],
    rules: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the normalised scores, gaps filled, of (rows, K) raw scores; `rules` has a row per ranker."""
    scores = np.empty_like(raw)
    over_ranges(
        lambda low, high: _scale_queries(raw, retrieved, starts, rules, low, high, scores),
        np.diff(starts) * raw.shape[1],
    )
    return scores


def rank_lists(
    raw: NDArray[np.float64], retrieved: NDArray[np.bool_], starts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return each document's rank (from 1) in each ranker's list, 0 where it was not retrieved.

    By score downwards; equal scores in the order of the rows, which is by doc id downwards.
    """
    ranks = np.empty(raw.shape, np.int32)
    over_ranges(
        lambda low, high: _rank_queries(raw, retrieved, starts, low, high, ranks),
        np.diff(starts) * raw.shape[1],
    )
    return ranks


@kernel
def _rank_queries(
    raw: NDArray[np.float64],
    retrieved: NDArray[np.bool_],
    starts: NDArray[np.int64],
    low: int,
    high: int,
    ranks: NDArray[np.int32],
) -> None:
    longest = 1
    for q in range(low, high):
        longest = max(longest, starts[q + 1] - starts[q])
    values, keys, items = np.empty(longest), np.empty(longest, np.uint64), np.empty(longest, np.int32)
    spare_keys, spare_items = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    counts = np.empty(N_COUNTS, np.int64)
    for q in range(low, high):
        begin = starts[q]
        for k in range(raw.shape[1]):
            n = 0
            for row in range(begin, starts[q + 1]):
                ranks[row, k] = 0
                if retrieved[row, k]:
                    values[n], items[n] = raw[row, k], row - begin
                    n += 1
            downward_keys(values, n, keys)
            sort_pairs(keys, items, n, 64, spare_keys, spare_items, counts)
            for i in range(n):
                ranks[begin + items[i], k] = i + 1


@kernel
def _scale_queries(
    raw: NDArray[np.float64],
    retrieved: NDArray[np.bool_],
    starts: NDArray[np.int64],
    rules: NDArray[np.float64],
    low: int,
    high: int,
    scores: NDArray[np.float64],
) -> None:
    longest = 1
    for q in range(low, high):
        longest = max(longest, starts[q + 1] - starts[q])
    values, keys, items = np.empty(longest), np.empty(longest, np.uint64), np.empty(longest, np.int32)
    spare_keys, spare_items = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    counts = np.empty(N_COUNTS, np.int64)
    for q in range(low, high):
        begin, end = starts[q], starts[q + 1]
        for k in range(raw.shape[1]):
            rule = rules[k]
            n = 0
            for row in range(begin, end):
                if retrieved[row, k]:
                    values[n], items[n] = raw[row, k], row - begin
                    n += 1
            if rule[_KIND] == _RANK or rule[_KIND] == _RECIPROCAL:
                downward_keys(values, n, keys)
                sort_pairs(keys, items, n, 64, spare_keys, spare_items, counts)
                for i in range(n):
                    share = (n - i) / n if rule[_KIND] == _RANK else 1.0 / (rule[_K] + (i + 1))
                    values[i] = _finish(share, rule)
            elif n > 0:
                _scale_list(values, n, rule)
            gap = rule[_MISSING]
            if math.isnan(gap):
                gap = values[0] if n > 0 else 0.0
                for i in range(1, n):
                    gap = min(gap, values[i])
            if n < end - begin:
                for row in range(begin, end):
                    scores[row, k] = gap
            for i in range(n):
                scores[begin + items[i], k] = values[i]


@kernel
def _finish(value: float, rule: NDArray[np.float64]) -> float:
    value = rule[_SCALE] * value + rule[_SHIFT]
    if value <= rule[_FLOOR_AT]:
        value = rule[_FLOOR]
    return max(-_LARGEST, min(_LARGEST, value))


@kernel
def _scale_list(values: NDArray[np.float64], n: int, rule: NDArray[np.float64]) -> None:
    kind = int(rule[_KIND])
    if kind == _NONE:
        for i in range(n):
            values[i] = _finish(values[i], rule)
    elif kind == _ATAN:
        for i in range(n):
            values[i] = _finish(math.atan(values[i]), rule)
    elif kind == _SIGMOID:
        for i in range(n):
            values[i] = _finish(1.0 / (1.0 + math.exp(-values[i])), rule)
    else:
        _scale_by_list(values, n, rule, kind)


@kernel
def _scale_by_list(values: NDArray[np.float64], n: int, rule: NDArray[np.float64], kind: int) -> None:
    least, most = values[0], values[0]
    for i in range(1, n):
        least, most = min(least, values[i]), max(most, values[i])
    spread = most - least
    bounded = kind in (_MINMAX, _AFFINE)
    size = max(abs(least), abs(most))
    if bounded:
        size = max(size, abs(rule[_LOWER]), abs(rule[_UPPER]))
    power = 0
    if size > _TAME or 0.0 < size < 1.0 / _TAME:
        power = math.frexp(size)[1]
        for i in range(n):
            values[i] = math.ldexp(values[i], -power)
    low, high = math.ldexp(least, -power), math.ldexp(most, -power)
    if kind == _AFFINE or (kind == _MINMAX and spread > rule[_CONSTANT_WITHIN]):
        lower, upper = math.ldexp(rule[_LOWER], -power), math.ldexp(rule[_UPPER], -power)
        _scale_between(values, n, rule, low, high, lower, upper)
        return
    base, unit = 0.0, 0.0
    if kind == _MAX:
        unit = max(abs(low), abs(high))
    elif kind == _SUM:
        base = low
        for i in range(n):
            unit += values[i] - base
    elif kind == _ZSCORE:
        for i in range(n):
            base += values[i]
        base /= n
        for i in range(n):
            unit += (values[i] - base) ** 2
        unit = math.sqrt(unit / (n - rule[_DDOF])) if n > rule[_DDOF] else 0.0
    elif kind == _L2:
        for i in range(n):
            unit += values[i] ** 2
        unit = math.sqrt(unit)
    extent = math.ldexp(unit, power) if kind in (_MAX, _L2) else spread
    hopeless = unit == 0.0 or extent <= rule[_CONSTANT_WITHIN]
    if hopeless and math.isnan(rule[_CONSTANT]):
        for i in range(n):
            values[i] = math.ldexp(values[i], power)
    elif hopeless:
        values[:n] = rule[_CONSTANT]
    else:
        at_mean = rule[_AT_MEAN] if kind == _ZSCORE else math.nan
        for i in range(n):
            if not math.isnan(at_mean) and np.float32(values[i]) == np.float32(base):
                values[i] = most if math.isinf(at_mean) else at_mean
            else:
                values[i] = _finish((values[i] - base) / unit, rule)


@kernel
def _scale_between(
    values: NDArray[np.float64],
    n: int,
    rule: NDArray[np.float64],
    low: float,
    high: float,
    lower: float,
    upper: float,
) -> None:
    """Scale by two ends: the list's own (low, high) or the given bounds (lower, upper), as the modes say."""
    lower_mode, upper_mode = int(rule[_LOWER_MODE]), int(rule[_UPPER_MODE])
    fixed = rule[_KIND] == _AFFINE or (lower_mode == _APPLY and upper_mode == _APPLY)
    for i in range(n):
        value = values[i]
        bottom = lower if fixed else _bottom(value, low, high, lower, lower_mode)
        top = upper if fixed else -_bottom(-value, -high, -low, -upper, upper_mode)
        if lower_mode == _CLIP and value < bottom:
            values[i] = _finish(0.0, rule)
        elif upper_mode == _CLIP and value > top:
            values[i] = _finish(1.0, rule)
        elif top > bottom:
            values[i] = _finish((value - bottom) / (top - bottom), rule)
        elif not math.isnan(rule[_CONSTANT]):
            values[i] = rule[_CONSTANT]


@kernel
def _bottom(value: float, low: float, high: float, bound: float, mode: int) -> float:
    """Return the lower end for one score; a list wholly below the bound keeps its own, lest it turn round."""
    if mode == _IGNORE or high < bound or (mode != _CLIP and high == bound):
        return low
    return low if mode == _WITHIN and value <= bound else bound
