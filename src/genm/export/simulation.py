"""What the engines' simulators share: cutting a list, adding columns, ranking. Plain Python on purpose.

Equal scores are ordered by doc id downwards, as everywhere in genm; each target's notes say what its engine does.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence


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
