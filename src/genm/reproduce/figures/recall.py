"""Precision-recall curves of the methods, one panel for each collection."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from genm import plotting
from genm.reproduce.figures.style import SHOWN, Drawing, best_single, look_of
from genm.reproduce.results import RECALL_LEVELS, CollectionResult

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


def draw_recall(collections: Sequence[CollectionResult]) -> Drawing:
    """Return the held-out interpolated precision at eleven levels of recall, averaged over queries and splits.

    The methods lie close together, so beside each panel stand their distances from the best ranker alone.
    """
    with plotting.style():
        figure, panels = plotting.new_figure(6.4, 0.6 + 1.95 * len(collections), rows=len(collections), columns=2)
        for at, found in enumerate(collections):
            whole, apart = panels[2 * at : 2 * at + 2]
            _draw_curves(whole, found)
            _draw_differences(apart, found)
            for axes in (whole, apart):
                axes.set_xlim(-0.02, 1.02)
                axes.tick_params(labelsize=8)
        for axes in panels[-2:]:
            axes.set_xlabel("recall")
        handles, labels = _legend_of(panels[::2])
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, handlelength=3.5)
        svg = plotting.to_svg(figure, "Precision at eleven levels of recall, by collection and method")
    return Drawing("recall", "Precision and recall", _caption(collections), svg)


def _draw_curves(axes: "Axes", found: CollectionResult) -> None:
    single = best_single(found)
    if single is not None:
        axes.plot(RECALL_LEVELS, single.curve, label="best ranker alone", **_look(single.name))
    for name in SHOWN:
        if name in found.methods:
            axes.plot(RECALL_LEVELS, found.methods[name].curve, label=name, **_look(name))
    axes.set_title(plotting.label(found.title))
    axes.set_ylim(0.0, 1.0)
    axes.set_ylabel("precision")


def _draw_differences(axes: "Axes", found: CollectionResult) -> None:
    single = best_single(found)
    if single is None:
        axes.set_axis_off()
        return
    axes.axhline(0.0, color=plotting.FAINT, linewidth=1.2, linestyle=look_of(single.name)["linestyle"])
    for name in SHOWN:
        if name in found.methods:
            axes.plot(RECALL_LEVELS, found.methods[name].curve - single.curve, **_look(name))
    axes.set_title(f"less that of {plotting.label(single.name, longest=16)} alone", fontsize=9)


def _look(method: str) -> dict[str, Any]:
    return look_of(method) | {"linewidth": 1.1, "markersize": 3.0}


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
            f"{plotting.label(found.title)}: {best.name} is furthest above {plotting.label(single.name)}, the best "
            f"ranker alone, at recall {RECALL_LEVELS[at]:.1f}, by {gap[at]:+.3f}"
        )
    said = ". ".join(parts)
    return (
        "Interpolated precision at eleven levels of recall, on queries that the weights had not seen, averaged "
        "over all queries and splits. Higher is better; the left end is the top of the list. On "
        "the right the same as differences from the best ranker alone, each panel on its own scale."
        + (f" {said}." if said else "")
    )
