"""Slow, exact readings of what the exact methods claim: plain sorting and fractions, no shared code.

Everything here works on the caller's rows (scores as given, rows in their order) and on `fractions.Fraction`, so
that a claim is either true or false, without rounding.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import log2

Vector = Sequence[Fraction]
Query = tuple[list[list[Fraction]], list[Fraction], int]
"""Scores of the rows, gain of each row (0 or 1 for binary measures), known relevant documents."""
Measure = Callable[[list[Fraction], int], Fraction]
"""From the gains in ranking order and the number of relevant documents to the value."""


def average_precision(cutoff: int) -> Measure:
    def value(ranked: list[Fraction], known: int) -> Fraction:
        found, total = 0, Fraction(0)
        for rank, gain in enumerate(ranked[:cutoff], 1):
            if gain > 0:
                found += 1
                total += Fraction(found, rank)
        return total / known if known else Fraction(0)

    return value


def precision(cutoff: int) -> Measure:
    return lambda ranked, known: Fraction(sum(g > 0 for g in ranked[:cutoff]), cutoff)


def recall(cutoff: int) -> Measure:
    return lambda ranked, known: Fraction(sum(g > 0 for g in ranked[:cutoff]), known) if known else Fraction(0)


def r_precision() -> Measure:
    return lambda ranked, known: recall(known)(ranked, known)


def reciprocal_rank(cutoff: int) -> Measure:
    def value(ranked: list[Fraction], known: int) -> Fraction:
        return next((Fraction(1, rank) for rank, g in enumerate(ranked[:cutoff], 1) if g > 0), Fraction(0))

    return value


def success(cutoff: int) -> Measure:
    return lambda ranked, known: Fraction(any(g > 0 for g in ranked[:cutoff]))


def dcg(cutoff: int) -> Measure:
    """Discounts are irrational: they enter as the fractions that their float64 values are."""

    def value(ranked: list[Fraction], known: int) -> Fraction:
        return sum((g * Fraction(1 / log2(r + 1)) for r, g in enumerate(ranked[:cutoff], 1)), Fraction(0))

    return value


def fused(row: Vector, weights: Vector) -> Fraction:
    return sum((s * w for s, w in zip(row, weights, strict=True)), Fraction(0))


def value_at(queries: Sequence[Query], shares: Vector, weights: Vector, measure: Measure) -> Fraction:
    """Return the weighted sum over queries at one point; ties go to the earlier row."""
    total = Fraction(0)
    for (rows, gains, known), share in zip(queries, shares, strict=True):
        scores = [fused(row, weights) for row in rows]
        ranking = sorted(range(len(rows)), key=lambda d: (-scores[d], d))
        total += share * measure([gains[d] for d in ranking], known)
    return total


def swap_points(queries: Sequence[Query], origin: Vector, direction: Vector) -> set[Fraction]:
    """Return every t where two rows of one query swap on origin + t * direction."""
    points = set()
    for rows, _, _ in queries:
        lines = {(fused(row, origin), fused(row, direction)) for row in rows}
        for a, b in lines:
            for c, d in lines:
                if b != d:
                    points.add((c - a) / (b - d))
    return points


def step_function(
    queries: Sequence[Query],
    shares: Vector,
    origin: Vector,
    direction: Vector,
    ends: tuple[Fraction, Fraction],
    measure: Measure,
) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return (left, right, value) of all intervals between the ends; neighbours of equal value are one."""
    inner = sorted(t for t in swap_points(queries, origin, direction) if ends[0] < t < ends[1])
    steps: list[tuple[Fraction, Fraction, Fraction]] = []
    for left, right in pairwise([ends[0], *inner, ends[1]]):
        middle = (left + right) / 2
        here = [o + middle * d for o, d in zip(origin, direction, strict=True)]
        value = value_at(queries, shares, here, measure)
        if steps and steps[-1][2] == value:
            steps[-1] = (steps[-1][0], right, value)
        else:
            steps.append((left, right, value))
    return steps
