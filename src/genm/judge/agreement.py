"""How far judges agree: Cohen's and Fleiss' kappa, Krippendorff's alpha, and the pairs on which they do not.

Cohen (1960), Fleiss (1971) and Krippendorff (2011, "Computing Krippendorff's alpha-reliability") define the
coefficients. 1 is full agreement, 0 what chance gives. All three are None where they are undefined: nobody judged
the same pair, or everybody gave the same grade to everything, so that chance explains all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from genm.judge.store import Opinion

Scale = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair to which people gave different grades."""

    query: str
    document: str
    grades: Mapping[str, int]
    """The grade of each judge."""
    is_decided: bool

    @property
    def spread(self) -> int:
        """The largest difference of two grades."""
        return max(self.grades.values()) - min(self.grades.values())


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the judges of a store agree."""

    n_judges: int
    n_shared: int
    """Pairs that at least two judges graded."""
    cohen: Mapping[tuple[str, str], float | None]
    """Cohen's kappa of every two judges who share a pair."""
    fleiss: float | None
    """Over the pairs that the largest number of judges graded, all by the same number."""
    alpha: float | None
    """Krippendorff's alpha, ordinal, over all pairs that two judges share."""
    disagreements: Sequence[Disagreement]
    """The largest spread first."""


def agreement_of(opinions: Iterable[Opinion]) -> Agreement:
    """Return how far judges agree; decisions are no opinions of their own."""
    rows = list(opinions)
    decided = {one.pair for one in rows if one.action == "decide"}
    by_pair: dict[tuple[str, str], dict[str, int]] = {}
    for one in rows:
        if one.action == "grade" and one.grade is not None:
            by_pair.setdefault(one.pair, {})[one.judge] = one.grade
    shared = {pair: grades for pair, grades in sorted(by_pair.items()) if len(grades) > 1}
    judges = sorted({judge for grades in by_pair.values() for judge in grades})
    cohen = {}
    for first, second in combinations(judges, 2):
        both = [(g[first], g[second]) for g in shared.values() if first in g and second in g]
        if both:
            cohen[first, second] = cohen_kappa(both)
    units = [list(grades.values()) for grades in shared.values()]
    most = max((len(unit) for unit in units), default=0)
    found = [
        Disagreement(query, document, grades, (query, document) in decided)
        for (query, document), grades in shared.items()
        if len(set(grades.values())) > 1
    ]
    return Agreement(
        len(judges),
        len(shared),
        cohen,
        fleiss_kappa([unit for unit in units if len(unit) == most]),
        krippendorff_alpha(units, "ordinal"),
        sorted(found, key=lambda one: (one.is_decided, -one.spread, one.query, one.document)),
    )


def cohen_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Return Cohen's kappa of two judges: their grades of the same things, side by side."""
    n = len(pairs)
    if not n:
        return None
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / n
    chance = sum(first[grade] * second[grade] for grade in first) / n**2
    return None if chance == 1.0 else (observed - chance) / (1.0 - chance)


def fleiss_kappa(units: Sequence[Sequence[int]]) -> float | None:
    """Return Fleiss' kappa: the grades of each thing, every thing graded by the same number of judges."""
    if not units or len(units[0]) < 2:
        return None
    n_judges, n = len(units[0]), len(units)
    totals = Counter(grade for unit in units for grade in unit)
    agreeing = sum(count * (count - 1) for unit in units for count in Counter(unit).values())
    observed = agreeing / (n * n_judges * (n_judges - 1))
    chance = sum((count / (n * n_judges)) ** 2 for count in totals.values())
    return None if chance == 1.0 else (observed - chance) / (1.0 - chance)


def krippendorff_alpha(units: Sequence[Sequence[int]], scale: Scale) -> float | None:
    """Return Krippendorff's alpha: the grades of each thing, by two judges or more, not always the same ones."""
    units = [unit for unit in units if len(unit) > 1]
    totals = Counter(grade for unit in units for grade in unit)
    n = totals.total()
    distance = _distances(totals, scale)
    observed = sum(
        times * other_times * distance[grade, other] / (len(unit) - 1)
        for unit in units
        for grade, times in Counter(unit).items()
        for other, other_times in Counter(unit).items()
    )
    expected = sum(totals[a] * totals[b] * distance[a, b] for a in totals for b in totals)
    return None if not expected else 1.0 - (n - 1) * observed / expected


def _distances(totals: Counter[int], scale: Scale) -> dict[tuple[int, int], float]:
    """Return the squared distance of every two grades.

    On an ordinal scale, two grades are as far apart as the number of gradings that lie between them, half of those
    of the two grades themselves included.
    """
    grades = sorted(totals)
    found = {}
    for i, a in enumerate(grades):
        for j, b in enumerate(grades):
            if scale == "nominal":
                between = float(a != b)
            elif scale == "interval":
                between = float(a - b)
            else:
                low, high = min(i, j), max(i, j)
                between = sum(totals[g] for g in grades[low : high + 1]) - (totals[a] + totals[b]) / 2
            found[a, b] = between**2
    return found
