"""Normalisation of scores, one list (one query of one ranker) at a time.

Lists are the columns of (rows, K) matrices; the rows of query q are starts[q]:starts[q + 1]. What is asked for
is a row of numbers per ranker, in the order of COLUMNS. No finite input gives NaN or infinity: lists of extreme
numbers are scaled by a power of two first, which changes no quotient, and results stop at the largest finite
number.
"""

import math

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import STEEPEST, arctangent, exponential
from genm._math.parallel import kernel, over_ranges, part
from genm._math.sorting import Count, falling_orders
from genm._typing import Bools, Codes, Floats, Ints

KINDS = ("none", "atan", "sigmoid", "rank", "reciprocal", "minmax", "affine", "max", "l2", "sum", "zscore")
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

# The order tells the families: score by score up to reciprocal, bounds up to affine, size up to l2, then spread.
_NONE, _ATAN, _SIGMOID, _RANK, _RECIPROCAL, _MINMAX, _AFFINE, _MAX, _L2, _SUM, _ZSCORE = range(len(KINDS))
_IGNORE, _APPLY, _CLIP, _WITHIN = range(len(MODES))
_KIND, _LOWER, _UPPER, _LOWER_MODE, _UPPER_MODE, _FLOOR, _FLOOR_AT, _CONSTANT = range(8)
_CONSTANT_WITHIN, _DDOF, _AT_MEAN, _K, _SCALE, _SHIFT, _MISSING = range(8, len(COLUMNS))
_LARGEST = float(np.finfo(np.float64).max)
_TAME = 1e100  # between its inverse and this, squares and sums of squares keep every digit


def scale_lists(raw: Floats, retrieved: Bools, starts: Ints, rules: Floats) -> Floats:
    """Return the normalised scores, gaps filled, of (rows, K) raw scores; `rules` has a row per ranker."""
    values = raw
    by_rank = np.isin(rules[:, _KIND], (_RANK, _RECIPROCAL))
    if by_rank.any():
        values = _rank_scores(raw, retrieved, starts, rules, by_rank)
    scores = np.empty_like(raw)
    over_ranges(
        lambda low, high: _scale_queries(values, retrieved, starts, rules, low, high, scores),
        np.diff(starts) * raw.shape[1],
    )
    return scores


def _rank_scores(raw: Floats, retrieved: Bools, starts: Ints, rules: Floats, by_rank: Bools) -> Floats:
    """Return the raw scores, those of the rankers that count by rank replaced by what the rank is worth.

    A kernel of its own, and not part of the scaling: sorting takes long to compile and few need it.
    """
    ranks, values, lengths = rank_lists(raw, retrieved, starts), raw.copy(), np.diff(starts)
    for k in np.flatnonzero(by_rank):
        rank = np.maximum(ranks[:, k], 1)
        if rules[k, _KIND] == _RANK:
            held = np.diff(np.concatenate(([0], np.cumsum(retrieved[:, k])))[starts])
            n = np.repeat(np.maximum(held, 1), lengths)
            values[:, k] = (n - rank + 1) / n
        else:
            values[:, k] = 1.0 / (rules[k, _K] + rank)
    return values


def rank_lists(raw: Floats, retrieved: Bools, starts: Ints) -> Codes:
    """Return each document's rank (from 1) in each ranker's list, 0 where it was not retrieved.

    By score downwards; equal scores in the order of the rows, which is by doc id downwards.
    """
    ranks = np.empty(raw.shape, np.int32)

    def work(low: int, high: int) -> None:
        for first, last, order in falling_orders(raw, retrieved, starts, low, high):
            _write_ranks(first, last, order, retrieved, starts, ranks)

    over_ranges(work, np.diff(starts) * raw.shape[1])
    return ranks


@kernel
def _write_ranks(
    low: int, high: int, order: NDArray[np.uint32], retrieved: Bools, starts: Ints, ranks: Codes
) -> None:
    for q in range(low, high):
        for k in range(ranks.shape[1]):
            for place in range(starts[q + 1] - starts[q]):
                row = starts[q] + np.int64(order[q - low, k, place])
                ranks[row, k] = place + 1 if retrieved[row, k] else 0


@kernel(makes_arrays=True)
def _scale_queries(
    raw: Floats, retrieved: Bools, starts: Ints, rules: Floats, low: int, high: int, scores: Floats
) -> None:
    longest = 1
    for q in range(low, high):
        longest = max(longest, starts[q + 1] - starts[q])
    values = np.empty(longest + 1)
    for q in range(low, high):
        begin, end = starts[q], starts[q + 1]
        for k in range(raw.shape[1]):
            rule = rules[k]
            n = np.int64(0)
            for row in range(begin, end):  # without a branch: no processor predicts who returned a document
                values[n] = raw[row, k]
                n += np.int64(retrieved[row, k])
            if n > 0:
                _scale_list(values, n, rule)
            gap = rule[_MISSING]
            if math.isnan(gap):
                gap = values[0] if n > 0 else 0.0
                for i in range(1, n):
                    gap = min(gap, values[i])
            at = np.int64(0)
            for row in range(begin, end):
                value, held = values[at], retrieved[row, k]
                scores[row, k] = value if held else gap
                at += np.int64(held)


@part()
def _finish(value: float, rule: Floats) -> float:
    value = rule[_SCALE] * value + rule[_SHIFT]
    if value <= rule[_FLOOR_AT]:
        value = rule[_FLOOR]
    return max(-_LARGEST, min(_LARGEST, value))


@part()
def _scale_list(values: Floats, n: Count, rule: Floats) -> None:
    kind = int(rule[_KIND])
    if kind > _RECIPROCAL:
        _scale_by_list(values, n, rule, kind)
        return
    for i in range(n):
        value = values[i]
        if kind == _ATAN:
            value = arctangent(value)
        elif kind == _SIGMOID:
            value = 1.0 / (1.0 + exponential(-min(value, STEEPEST))) if value > -STEEPEST else 0.0
        values[i] = _finish(value, rule)


@part()
def _scale_by_list(values: Floats, n: Count, rule: Floats, kind: int) -> None:
    least, most = values[0], values[0]
    for i in range(1, n):
        least, most = min(least, values[i]), max(most, values[i])
    spread = most - least
    size = max(abs(least), abs(most))
    if kind <= _AFFINE:
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
    above = 0.0
    for i in range(n):
        above += values[i] - low
    base = 0.0
    if kind == _SUM:
        base = low
    elif kind == _ZSCORE:
        base = low + above / n
    squares = 0.0
    for i in range(n):
        squares += (values[i] - base) ** 2
    unit = max(abs(low), abs(high))
    if kind == _SUM:
        unit = above
    elif kind == _ZSCORE:
        unit = math.sqrt(squares / (n - rule[_DDOF])) if n > rule[_DDOF] else 0.0
    elif kind == _L2:
        unit = math.sqrt(squares)
    extent = math.ldexp(unit, power) if kind <= _L2 else spread
    hopeless = kind == _MINMAX or unit == 0.0 or extent <= rule[_CONSTANT_WITHIN]
    at_mean = rule[_AT_MEAN] if kind == _ZSCORE else math.nan
    for i in range(n):
        if hopeless:
            keep = math.isnan(rule[_CONSTANT])
            values[i] = math.ldexp(values[i], power) if keep else rule[_CONSTANT]
        elif not math.isnan(at_mean) and np.float32(values[i]) == np.float32(base):
            values[i] = most if math.isinf(at_mean) else at_mean
        else:
            values[i] = _finish((values[i] - base) / unit, rule)


@part()
def _scale_between(
    values: Floats, n: Count, rule: Floats, low: float, high: float, lower: float, upper: float
) -> None:
    """Scale by two ends: the list's own (low, high) or the given bounds (lower, upper), as the modes say."""
    lower_mode, upper_mode = int(rule[_LOWER_MODE]), int(rule[_UPPER_MODE])
    fixed = rule[_KIND] == _AFFINE or (lower_mode == _APPLY and upper_mode == _APPLY)
    if not fixed and lower_mode == _IGNORE and upper_mode == _IGNORE and high > low:
        scale, shift, floor, floor_at = rule[_SCALE], rule[_SHIFT], rule[_FLOOR], rule[_FLOOR_AT]
        width = high - low
        for i in range(n):  # `_finish` of each, written out so that the loop becomes lanes
            value = scale * ((values[i] - low) / width) + shift
            value = floor if value <= floor_at else value
            values[i] = max(-_LARGEST, min(_LARGEST, value))
        return
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


@part()
def _bottom(value: float, low: float, high: float, bound: float, mode: int) -> float:
    """Return the lower end for one score; a list wholly below the bound keeps its own, or it would be reversed."""
    if mode == _IGNORE or high < bound or (mode != _CLIP and high == bound):
        return low
    return low if mode == _WITHIN and value <= bound else bound
