"""Precision-recall curves of the methods, one panel for each collection."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from genm import draw
from genm.reproduce.figures.drawing import Drawing
from genm.reproduce.figures.looks import SHOWN, best_single, look_of
from genm.reproduce.results import RECALL_LEVELS, CollectionResult

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_COLUMNS = 2


def draw_recall(collections: Sequence[CollectionResult]) -> Drawing:
    """Return the held-out interpolated precision at eleven levels of recall, averaged over queries and splits."""
    rows = (len(collections) + _COLUMNS) // _COLUMNS  # one place is the legend's
    with draw.style():
        figure, panels = draw.new_figure(6.4, 0.4 + 2.5 * rows, rows=rows, columns=_COLUMNS)
        for axes, found in zip(panels, collections, strict=False):
            _draw_curves(axes, found)
        for axes in panels[len(collections) :]:
            axes.set_axis_off()
        handles, labels = _legend_of(panels[: len(collections)])
        panels[len(collections)].legend(handles, labels, loc="center left", fontsize=9, handlelength=3.5)
        svg = draw.to_svg(figure, "Precision at eleven levels of recall, by collection and method")
    return Drawing("recall", "Precision and recall", _caption(collections), svg)


def _draw_curves(axes: "Axes", found: CollectionResult) -> None:
    single = best_single(found)
    if single is not None:
        axes.plot(RECALL_LEVELS, single.curve, label="best ranker alone", linewidth=1.2, **look_of(single.name))
    for name in SHOWN:
        if name in found.methods:
            axes.plot(RECALL_LEVELS, found.methods[name].curve, label=name, linewidth=1.2, **look_of(name))
    axes.set_title(draw.label(found.title))
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("recall")
    axes.set_ylabel("precision")


def _legend_of(panels: "Sequence[Axes]") -> "tuple[list[Artist], list[str]]":
    """Return every series of any panel once, in the order of the methods."""
    seen: dict[str, Artist] = {}
    for axes in panels:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            seen.setdefault(text, handle)
    order = sorted(seen, key=lambda text: SHOWN.index(text) if text in SHOWN else len(SHOWN))
    return [seen[text] for text in order], order


def _caption(collections: Sequence[CollectionResult]) -> str:
    parts = []
    for found in collections:
        single, learned = best_single(found), [found.methods[n] for n in SHOWN if n in found.methods]
        if single is None or not learned:
            continue
        best = max(learned, key=lambda method: float(method.mean[0]))
        gap = best.curve - single.curve
        at = int(gap.argmax())
        parts.append(
            f"{draw.label(found.title)}: {best.name} is furthest above {draw.label(single.name)}, the best ranker "
            f"alone, at recall {RECALL_LEVELS[at]:.1f}, by {gap[at]:+.3f}"
        )
    said = ". ".join(parts)
    return (
        "Interpolated precision at eleven levels of recall, on queries that the weights had not seen, averaged "
        "over all queries and splits. Higher is better; the left end is the top of the list."
        + (f" {said}." if said else "")
    )
