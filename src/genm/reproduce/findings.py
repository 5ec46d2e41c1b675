"""What the experiment says in a sentence each, worked out from its results: nothing here is known beforehand."""

from dataclasses import dataclass

from genm.evaluate import Contrast, compare_runs
from genm.reproduce.figures.looks import best_single
from genm.reproduce.figures.summary import Row, rows_of
from genm.reproduce.results import MEASURES, CollectionResult, MethodResult, Results

_SIGNIFICANT = 0.05
_MAP = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """A headline of a few characters and the sentence that says what it counts."""

    headline: str
    text: str


def findings_of(results: Results) -> tuple[Finding, ...]:
    """Return what can be said of these results, the most telling first."""
    rows = rows_of(results)
    found = (
        _rows(rows),
        _learned(results),
        _unsupervised(results),
        _boosting(results),
        _share(results),
        _rankers(results, rows),
    )
    return tuple(finding for finding in found if finding is not None)


def _rows(rows: list[Row]) -> Finding | None:
    printed = [row for row in rows if row.printed]
    if not printed:
        return None
    missed = [row for row in printed if not row.best[1] > row.reference]
    text = (
        "rows of the paper's main table in which the best of our learned methods is above the best figure that the "
        "paper prints for any of its own, on queries that the weights had not seen"
    )
    if missed:
        text += ". The rest: " + ", ".join(
            f"{row.collection} {row.measure} ({row.best[1]:.4f} by {row.best[0]}, the paper {row.reference:.4f})"
            for row in missed
        )
    return Finding(f"{len(printed) - len(missed)} of {len(printed)}", text + ".")


def _learned(results: Results) -> Finding | None:
    """Compare one learned method, named beforehand, with the ranker that turned out best alone."""
    name = next((n for n in ("auto", "gEnM.BAT") if all(n in c.methods for c in results.collections)), None)
    singles = [(c, best_single(c)) for c in results.collections]
    pairs = [(c, _contrast(c.methods[name], single)) for c, single in singles if name is not None and single]
    if name is None or not pairs:
        return None
    return Finding(
        _count(sum(pair.difference > 0 for _, pair in pairs), len(pairs)),
        f"collections on which {name} has a higher MAP than the best ranker alone, although that ranker is "
        f"known only afterwards; significantly so on {_significant(pairs)} (Wilcoxon, 95 %). {_told(pairs)}.",
    )


def _unsupervised(results: Results) -> Finding | None:
    pairs = []
    for found in results.collections:
        rules = [method for method in found.methods.values() if method.kind == "rule"]
        if "UnsEnM" in found.methods and rules:
            best = max(rules, key=_map)
            pairs.append((found, best.name, _map(found.methods["UnsEnM"]) - _map(best)))
    if not pairs:
        return None
    told = "; ".join(f"{found.title} {gain:+.4f} against {name}" for found, name, gain in pairs)
    return Finding(
        _count(sum(gain >= 0 for *_, gain in pairs), len(pairs)),
        f"collections on which UnsEnM, which sees no judgment, has at least the MAP of the best fusion rule: "
        f"{told}.",
    )


def _boosting(results: Results) -> Finding | None:
    pairs = [
        (c, _contrast(c.methods["gEnM.BAT"], c.methods["EnM"]))
        for c in results.collections
        if {"gEnM.BAT", "EnM"} <= c.methods.keys()
    ]
    if not pairs:
        return None
    told = "; ".join(f"{c.title} {x.difference:+.4f} ({x.low:+.4f} to {x.high:+.4f})" for c, x in pairs)
    return Finding(
        _count(_significant(pairs), len(pairs)),
        f"collections on which gEnM.BAT is significantly above EnM in MAP, where EnM is our reconstruction of the "
        f"paper's baseline. Differences with their 95 % intervals: {told}.",
    )


def _share(results: Results) -> Finding | None:
    shares = []
    for found in results.collections:
        learned = [_map(method) for method in found.methods.values() if method.kind == "supervised"]
        if "UnsEnM" in found.methods and learned and max(learned) > 0:
            shares.append(_map(found.methods["UnsEnM"]) / max(learned))
    if not shares:
        return None
    return Finding(
        f"{sum(shares) / len(shares):.0%}",
        f"of the best learned method's MAP is what UnsEnM reaches without a judgment, on average over the "
        f"collections; {min(shares):.0%} where it is least.",
    )


def _rankers(results: Results, rows: list[Row]) -> Finding | None:
    """Say how much of the distance from the paper the rankers alone bring."""
    pairs = []
    for row in rows:
        if row.measure == MEASURES[_MAP][0] and row.printed:
            single = next(best_single(found) for found in results.collections if found.title == row.collection)
            pairs += [(row, single)] if single is not None else []
    if not pairs:
        return None
    told = "; ".join(
        f"{row.collection} {one.name} {_map(one):.4f} against {row.reference:.4f}" for row, one in pairs
    )
    return Finding(
        _count(sum(_map(one) > row.reference for row, one in pairs), len(pairs)),
        f"collections on which our best ranker alone already has a higher MAP than the paper's best ensemble: "
        f"{told}. That part of the distance is owed to the rankers, not to the weights.",
    )


def _map(method: MethodResult) -> float:
    return float(method.mean[_MAP])


def _contrast(method: MethodResult, baseline: MethodResult) -> Contrast:
    both = {"baseline": baseline.per_query[:, _MAP], "method": method.per_query[:, _MAP]}
    return compare_runs(both, tests=("wilcoxon",), correction="none").contrasts[0]


def _significant(pairs: list[tuple[CollectionResult, Contrast]]) -> int:
    return sum(pair.difference > 0 and pair.p_values["wilcoxon"] < _SIGNIFICANT for _, pair in pairs)


def _told(pairs: list[tuple[CollectionResult, Contrast]]) -> str:
    return "; ".join(f"{found.title} {pair.difference:+.4f}" for found, pair in pairs)


def _count(some: int, total: int) -> str:
    return f"{some} of {total}"
