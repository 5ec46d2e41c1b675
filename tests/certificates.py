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


def interpolated_precision(level: float) -> Measure:
    """Return the highest precision at any relevant document from the needed one on."""

    def value(ranked: list[Fraction], known: int) -> Fraction:
        found, highest = 0, Fraction(0)
        for rank, gain in enumerate(ranked, 1):
            found += gain > 0
            if gain > 0 and found >= int(level * known + 0.9):
                highest = max(highest, Fraction(found, rank))
        return highest

    return value


def bpref(n_missing: int) -> Measure:
    """Return how many relevant documents precede others, where all documents, and some more others, are judged."""

    def value(ranked: list[Fraction], known: int) -> Fraction:
        total, above, others = Fraction(0), 0, sum(g == 0 for g in ranked) + n_missing
        for gain in ranked:
            if gain == 0:
                above += 1
            else:
                total += 1 - (Fraction(min(above, known), min(known, others)) if above else 0)
        return total / known if known else Fraction(0)

    return value


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


Gain = Callable[[int, int], Fraction]
"""From a relevant row's place among the relevant ones and its rank to what it adds."""


def leaf_bound(
    rows: list[list[Fraction]],
    relevant: set[int],
    gain: Gain,
    corners: Sequence[Vector],
    fold: Callable[[list[Fraction]], Fraction] = lambda gains: sum(gains, Fraction(0)),
) -> Fraction:
    """Return the bound of one query over a simplex: pairs lost at all corners are lost, all others are won.

    A pair that ties at all corners ties in the whole simplex: the earlier row is above.
    """
    at_corners = [[fused(row, corner) for corner in corners] for row in rows]
    lost = []
    for j in relevant:
        above = 0
        for d in set(range(len(rows))) - relevant:
            gaps = [a - b for a, b in zip(at_corners[j], at_corners[d], strict=True)]
            tied = all(g == 0 for g in gaps)
            above += (tied and d < j) or (not tied and all(g <= 0 for g in gaps))
        lost.append(above)
    return fold([gain(i, i + c) for i, c in enumerate(sorted(lost), 1)])


def tree_leaves(
    n_rankers: int,
    edges: Sequence[int],
    numbers: Sequence[float],
    ties: Sequence[tuple[int, int]] = (),
    rows: Sequence[Vector] = (),
) -> list[tuple[list[list[Fraction]], float]]:
    """Return corners and claimed bound of every leaf; the halves of each split cover it, so the leaves cover all.

    A cut is made at the given share of an edge or, where `ties` names two of the `rows`, where these have equal
    scores. Raises ValueError unless the record is exactly one tree whose cuts lie inside their edges.
    """
    unit = [[Fraction(int(i == k)) for k in range(n_rankers)] for i in range(n_rankers)]
    waiting, found = [unit], []
    for edge, number, (own, other) in zip(edges, numbers, ties or [(-1, -1)] * len(edges), strict=True):
        if not waiting:
            raise ValueError("the record goes on after its tree is complete")
        corners = waiting.pop()
        if edge < 0:
            found.append((corners, number))
            continue
        a, b = divmod(edge, n_rankers)
        share = Fraction(number)
        if own >= 0:
            ahead = [fused(rows[own], corner) - fused(rows[other], corner) for corner in corners]
            if ahead[a] == ahead[b]:
                raise ValueError(f"no cut: rows {own} and {other} do not tie on edge {a}-{b}")
            share = ahead[a] / (ahead[a] - ahead[b])
        if a == b or not 0 < share < 1:
            raise ValueError(f"no cut: edge {a}-{b}, share {number}")
        new = [x + share * (y - x) for x, y in zip(corners[a], corners[b], strict=True)]
        keeps_a, keeps_b = list(corners), list(corners)
        keeps_a[b], keeps_b[a] = new, new
        waiting += [keeps_b, keeps_a]
    if waiting:
        raise ValueError("the record ends before its tree is complete")
    return found
