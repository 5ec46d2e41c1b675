"""What the export tests share: small models, runs, and both ways to a fused ranking."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genm.align import align_runs
from genm.errors import ExportError
from genm.export import export_model, find_target
from genm.export.export import same_top
from genm.export.simulation import ranking
from genm.fuse import fuse_scores
from genm.model import Model
from genm.normalizers import Normalizer
from genm.read import run_from_dict

__all__ = ["ExportError", "disagreement", "loaded", "model", "own_fusion", "simulated", "some_lists"]


def model(
    normalizers: Normalizer | Sequence[Normalizer],
    weights: Sequence[float] = (0.35, 0.65),
    rankers: Sequence[str] = ("bm25", "dense"),
    depth: int | Sequence[int | None] | None = 100,
) -> Model:
    each = [normalizers] * len(rankers) if isinstance(normalizers, Normalizer) else normalizers
    depths = [depth] * len(rankers) if depth is None or isinstance(depth, int) else depth
    return Model(tuple(rankers), tuple(weights), tuple(each), tuple(depths), "newton", "AP")


def some_lists() -> list[dict[str, float]]:
    """Two lists of one query that share some of their documents."""
    draw = random.Random(5)
    return [{f"d{i}": draw.uniform(1, 9) for i in draw.sample(range(20), 12)} for _ in range(2)]


def loaded(text: str) -> dict[str, Any]:
    """The names that exported Python defines."""
    space: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), space)
    return space


def simulated(
    made: Model, to: str, lists: Sequence[Mapping[str, float]], settings: Mapping[str, str] | None = None
) -> dict[str, float]:
    """What the target returns for one query when it is told what is exported."""
    exported = export_model(made, to, settings=settings or {})
    return find_target(to).code.simulate(exported.document, lists)


def own_fusion(made: Model, queries: Sequence[Sequence[Mapping[str, float]]]) -> list[dict[str, float]]:
    """What genm itself makes of the same lists, query by query."""
    names = [f"q{q}" for q in range(len(queries))]
    runs = {
        ranker: run_from_dict(
            {name: lists[k] for name, lists in zip(names, queries, strict=True)}, name=ranker, lenient=True
        )
        for k, ranker in enumerate(made.rankers)
    }
    depths = dict(zip(made.rankers, made.depths, strict=True))
    aligned = align_runs(runs, normalize=list(made.normalizers), depth=depths)
    fused = fuse_scores(aligned, np.array(made.weights)).tolist()
    docs, doc = list(aligned.docs), aligned.doc.tolist()
    found: dict[str, dict[str, float]] = {}
    for q, query in enumerate(aligned.queries):
        rows = range(int(aligned.starts[q]), int(aligned.starts[q + 1]))
        found[query] = {docs[doc[row]]: fused[row] for row in rows}
    return [found[name] for name in names]


def disagreement(
    made: Model, to: str, queries: Sequence[Sequence[Mapping[str, float]]], settings: Mapping[str, str]
) -> object:
    """The first query that the target ranks otherwise than genm does, to the last document it returns."""
    target = find_target(to)
    document = export_model(made, to, settings=settings).document
    for lists, ours in zip(queries, own_fusion(made, queries), strict=True):
        fused = target.code.simulate(document, lists)
        theirs = ranking(fused)
        if not same_top(ours, theirs, len(theirs)):
            return lists, ours, fused
    return None
