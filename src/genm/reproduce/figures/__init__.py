"""The figures of the experiment."""

from collections.abc import Callable, Iterator

import numpy as np

from genm.align import Aligned
from genm.progress import Progress, silent
from genm.reproduce.figures.learning import draw_learning, learning_curves
from genm.reproduce.figures.objective import draw_objective, draw_sigmoid, draw_smoothing, pair_of
from genm.reproduce.figures.results import draw_recall, draw_summary
from genm.reproduce.figures.simplex import draw_simplex, landscape_of
from genm.reproduce.figures.style import Drawing
from genm.reproduce.results import CollectionResult, Results

__all__ = ["Drawing", "draw_figures"]

_PAPERS_CHOICE = "med"
"""The collection that the paper draws where it draws only one."""
MOST_ROWS = 150_000
"""Scored documents of all queries together that the figures of one collection look at thousands of times."""


def draw_figures(results: Results, *, progress: Progress = silent) -> tuple[Drawing, ...]:
    """Return all figures that the results can give, in the order of the page; needs the extra `plots`.

    Figures of a single collection show MED, as in the paper, or the first collection that there is. Of a large one
    they show some queries only, evenly spread, and say so.
    """
    makers = _makers(results)
    drawings = []
    for done, (name, make) in enumerate(makers):
        progress(f"figure {name}", done, len(makers))
        drawings += list(make())
    progress("figures", len(makers), len(makers))
    return tuple(drawings)


def _makers(results: Results) -> list[tuple[str, Callable[[], Iterator[Drawing]]]]:
    found = results.collection(_PAPERS_CHOICE) or next(iter(results.collections), None)
    makers: list[tuple[str, Callable[[], Iterator[Drawing]]]] = []
    if found is not None:
        makers += [("summary", lambda: _summary(results)), ("recall", lambda: _recall(results))]
        n_rankers = len(found.aligned.rankers)
        makers += [("objective", lambda: _line(found))] if n_rankers >= 2 else []
        makers += [("simplex", lambda: _simplex(found))] if n_rankers >= 3 else []
        makers += [("learning", lambda: _learning(found))]
    return [*makers, ("sigmoid", lambda: iter((draw_sigmoid(),)))]


def _summary(results: Results) -> Iterator[Drawing]:
    drawing = draw_summary(results)
    if drawing is not None:
        yield drawing


def _recall(results: Results) -> Iterator[Drawing]:
    yield draw_recall(results.collections)


def _line(found: CollectionResult) -> Iterator[Drawing]:
    aligned, name = some_queries(found)
    pair = pair_of(aligned)
    yield draw_objective(pair, name)
    yield draw_smoothing(pair, name)


def _simplex(found: CollectionResult) -> Iterator[Drawing]:
    aligned, name = some_queries(found)
    yield draw_simplex(landscape_of(aligned), name)


def _learning(found: CollectionResult) -> Iterator[Drawing]:
    aligned, name = some_queries(found)
    yield draw_learning(learning_curves(aligned), name)


def some_queries(found: CollectionResult) -> tuple[Aligned, str]:
    """Return as many of a collection's queries as its figures have time for, and its title with their number."""
    aligned, n = found.aligned, len(found.aligned.queries)
    kept = min(n, max(1, n * MOST_ROWS // max(1, len(aligned.doc))))
    if kept == n:
        return aligned, found.title
    positions = np.unique(np.linspace(0, n - 1, kept).round().astype(np.int64))
    return aligned.select(positions), f"{found.title} ({len(positions)} of {n} judged queries)"
