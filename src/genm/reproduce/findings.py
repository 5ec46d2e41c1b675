"""What the experiment says in a sentence each, worked out from its results: nothing here is known beforehand."""

from dataclasses import dataclass

from genm.evaluate import Contrast
from genm.evidence import BEST_SINGLE
from genm.reproduce.figures.results import Row, rows_of
from genm.reproduce.figures.style import best_single
from genm.reproduce.methods import AUTO, BAT, BOOSTING, ENM, RULES, UNS_Z
from genm.reproduce.results import MEASURES, CollectionResult, MethodResult, Results
from genm.reproduce.tables import against_rules, contrast

_SIGNIFICANT = 0.05
_MAP = 0
_TEST = "Wilcoxon, 95 %"

Pairs = list[tuple[CollectionResult, Contrast]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A headline of a few characters, the sentence that says what it counts, and the numbers behind it."""

    headline: str
    text: str
    details: tuple[str, ...] = ()


def findings_of(results: Results) -> tuple[Finding, ...]:
    """Return what can be said of these results, the most telling first."""
    rows = rows_of(results)
    found = (
        _above_the_paper(rows),
        _above(results, AUTO, BEST_SINGLE, "the single ranker that the training queries would choose"),
        _above(results, BAT, BOOSTING, "EnM's boosting stage alone"),
        _against_enm(results),
        _without_labels(results),
        _owed_to_rankers(results, rows),
    )
    return tuple(finding for finding in found if finding is not None)


def _above_the_paper(rows: list[Row]) -> Finding | None:
    printed = [row for row in rows if row.printed]
    if not printed:
        return None
    missed = [row for row in printed if not row.best[1] > row.reference]
    return Finding(
        _count(len(printed) - len(missed), len(printed)),
        "rows of the paper's main table in which the best of our learned methods is above the best figure that the "
        "paper prints for any of its own, on queries that the weights had not seen.",
        tuple(
            f"not {row.collection} {row.measure}: {row.best[1]:.4f} by {row.best[0]}, the paper {row.reference:.4f}"
            for row in missed
        ),
    )


def _above(results: Results, method: str, rival: str, described: str) -> Finding | None:
    pairs = _pairs(results, method, rival)
    if not pairs:
        return None
    return Finding(
        _count(sum(pair.difference > 0 for _, pair in pairs), len(pairs)),
        f"collections on which {method} has a higher MAP than {described}; significantly so on "
        f"{sum(_significant(pair) and pair.difference > 0 for _, pair in pairs)} ({_TEST}).",
        _details(pairs),
    )


def _against_enm(results: Results) -> Finding | None:
    pairs = _pairs(results, BAT, ENM)
    if not pairs:
        return None
    above = sum(_significant(pair) and pair.difference > 0 for _, pair in pairs)
    below = sum(_significant(pair) and pair.difference < 0 for _, pair in pairs)
    return Finding(
        _count(above, len(pairs)),
        f"collections on which {BAT} is significantly above full EnM in MAP, and {below} on which it is below "
        f"({_TEST}); EnM is our reconstruction of the paper's baseline, its coordinate search included.",
        _details(pairs),
    )


def _without_labels(results: Results) -> Finding | None:
    pairs = [
        (found, against_rules(found, UNS_Z))
        for found in results.collections
        if UNS_Z in found.methods and any(rule in found.methods for rule in RULES)
    ]
    if not pairs:
        return None
    return Finding(
        _count(sum(pair.as_good for _, pair in pairs), len(pairs)),
        f"collections on which {UNS_Z}, which sees no judgment, has at least the MAP of the best rule of fusion.",
        tuple(f"{found.title} {pair.difference:+.4f} against {pair.rule}" for found, pair in pairs),
    )


def _owed_to_rankers(results: Results, rows: list[Row]) -> Finding | None:
    """Say how much of the distance from the paper the rankers alone bring."""
    pairs = []
    for row in rows:
        if row.measure == MEASURES[_MAP][0] and row.printed:
            single = next(best_single(found) for found in results.collections if found.title == row.collection)
            pairs += [(row, single)] if single is not None else []
    if not pairs:
        return None
    return Finding(
        _count(sum(_map(one) > row.reference for row, one in pairs), len(pairs)),
        "collections on which our best ranker alone already has a higher MAP than the paper's best ensemble: that "
        "part of the distance is owed to the rankers, not to the weights.",
        tuple(f"{row.collection} {one.name} {_map(one):.4f} against {row.reference:.4f}" for row, one in pairs),
    )


def _map(method: MethodResult) -> float:
    return float(method.mean[_MAP])


def _pairs(results: Results, method: str, rival: str) -> Pairs:
    return [
        (found, contrast(found.methods[method], found.methods[rival]))
        for found in results.collections
        if {method, rival} <= found.methods.keys()
    ]


def _significant(pair: Contrast) -> bool:
    return pair.p_values["wilcoxon"] < _SIGNIFICANT


def _details(pairs: Pairs) -> tuple[str, ...]:
    return tuple(f"{found.title} {x.difference:+.4f} ({x.low:+.4f} to {x.high:+.4f})" for found, x in pairs)


def _count(some: int, total: int) -> str:
    return f"{some} of {total}"
