"""Figures of the results: every method's distance from the paper's best figure, and precision by recall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genm import plotting
from genm.reproduce import paper
from genm.reproduce.figures.style import LEARNED, SHOWN, Drawing, best_single, look_of
from genm.reproduce.results import MEASURES, RECALL_LEVELS, CollectionResult, Results

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Row:
    """One measure on one collection."""

    collection: str
    measure: str
    printed: tuple[float, ...]
    """What the paper prints for its four methods; empty for a collection that it does not have."""
    reference: float
    """What all is compared with: the paper's best, else the best ranker alone."""
    ours: tuple[tuple[str, float, float], ...]
    """Method, mean and spread over the splits."""

    @property
    def best(self) -> tuple[str, float, float]:
        """Our best learned method, its mean and its spread; the baseline is none of them."""
        return max((one for one in self.ours if one[0] in LEARNED), key=lambda one: one[1])


def rows_of(results: Results) -> list[Row]:
    """Return the rows of the summary: the collections in their order, each with its measures."""
    return [row for found in results.collections for row in _rows(found)]


def _rows(found: CollectionResult) -> list[Row]:
    rows = []
    for at, (measure, _) in enumerate(MEASURES):
        ours = [
            (name, float(found.methods[name].mean[at]), float(found.methods[name].spread[at]))
            for name in SHOWN
            if name in found.methods
        ]
        printed = paper.TABLE_3.get((found.title, measure))
        single = best_single(found)
        if not any(one[0] in LEARNED for one in ours) or (printed is None and single is None):
            continue
        values = printed.values if printed is not None else ()
        reference = max(values) if printed is not None else float(single.mean[at]) if single is not None else 0.0
        rows.append(Row(found.title, measure, values, reference, tuple(ours)))
    return rows


def draw_summary(results: Results) -> Drawing | None:
    """Return the dot plot; None where there is nothing to compare."""
    rows = rows_of(results)
    if not rows:
        return None
    with plotting.style():
        figure, [axes] = plotting.new_figure(5.2, 1.3 + 0.42 * len(rows))
        for at, row in enumerate(rows):
            _draw_row(axes, -float(at), row)
        _finish(axes, rows)
        svg = plotting.to_svg(figure, "Every measure on every collection: distance from the paper's best figure")
    return Drawing("summary", "The paper's table at a glance", _caption(rows), svg)


def _draw_row(axes: "Axes", y: float, row: Row) -> None:
    for name, value in zip(paper.METHODS, row.printed, strict=False):
        look = look_of(name) | {"color": plotting.FAINT, "linestyle": ""}
        axes.plot(value - row.reference, y + 0.2, markersize=4.5, markerfacecolor="white", **look)
    best, mean, spread = row.best
    axes.plot(
        [mean - spread - row.reference, mean + spread - row.reference],
        [y - 0.12] * 2,
        color=plotting.INK,
        linewidth=1.0,
    )
    for name, value, _ in row.ours:
        look = look_of(name) | {"linestyle": ""}
        axes.plot(value - row.reference, y - 0.12, markersize=6.5 if name == best else 5.0, alpha=0.9, **look)
    _say(axes, y - 0.12, f"{mean:.4f} {best}", plotting.INK)
    _say(axes, y + 0.2, f"{row.reference:.4f} {'the paper' if row.printed else 'one ranker'}", "#6b6b6b")


def _say(axes: "Axes", y: float, text: str, color: str) -> None:
    """Write to the right of the panel."""
    place = axes.get_yaxis_transform()
    axes.text(1.01, y, text, transform=place, va="center", fontsize=8, color=color)


def _finish(axes: "Axes", rows: list[Row]) -> None:
    from matplotlib.lines import Line2D

    far = max(abs(value - row.reference) for row in rows for value in [*row.printed, *(one[1] for one in row.ours)])
    right = max(0.01, *(one[1] + one[2] - row.reference for row in rows for one in row.ours))
    axes.set_xlim(-1.06 * max(far, 0.01), 1.1 * right)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.axvspan(0.0, axes.get_xlim()[1], color="#0072b2", alpha=0.07, linewidth=0)
    axes.axvline(0.0, color=plotting.INK, linewidth=1.2)
    axes.set_yticks(
        [-float(at) for at in range(len(rows))], [f"{plotting.label(r.collection)} {r.measure}" for r in rows]
    )
    for at in range(1, len(rows)):
        if rows[at].collection != rows[at - 1].collection:
            axes.axhline(0.5 - at, color=plotting.FAINT, linewidth=0.6)
    axes.grid(axis="y", visible=False)
    reference = "the paper's best figure" if any(row.printed for row in rows) else "the best ranker alone"
    axes.set_xlabel(f"difference from {reference}, the line at 0")
    names = list(dict.fromkeys(one[0] for row in rows for one in row.ours))
    handles = [Line2D([], [], label=name, **(look_of(name) | {"linestyle": ""})) for name in names]
    if any(row.printed for row in rows):
        hollow: dict[str, Any] = {
            "marker": "o",
            "color": plotting.FAINT,
            "markerfacecolor": "white",
            "linestyle": "",
        }
        handles.append(Line2D([], [], label="the paper's, hollow", **hollow))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)


def _caption(rows: list[Row]) -> str:
    printed = [row for row in rows if row.printed]
    said = []
    if printed:
        above = [row for row in printed if row.best[1] > row.reference]
        said.append(
            f"In {len(above)} of {len(printed)} rows our best learned method is above the best figure that the "
            f"paper prints for any of its methods."
        )
        below = [f"{row.collection} {row.measure}" for row in printed if row not in above]
        said += [f"Not so in {', '.join(below)}."] if below else []
    said.append(
        "Filled marks are ours, the mean over the splits of what was measured on queries that the weights had not "
        "seen; the thin bar is one standard deviation over the splits of our best. "
    )
    if printed:
        said.append("Hollow marks are the paper's, in the same shapes.")
    if len(printed) < len(rows):
        said.append("Collections that the paper does not have are compared with their best ranker alone.")
    return " ".join(text.strip() for text in said)


def draw_recall(collections: Sequence[CollectionResult]) -> Drawing:
    """Return the held-out interpolated precision at eleven levels of recall, averaged over queries and splits.

    The methods lie close together, so beside each panel stand their distances from the best ranker alone.
    """
    with plotting.style():
        figure, panels = plotting.new_figure(6.4, 0.6 + 1.95 * len(collections), rows=len(collections), columns=2)
        for at, found in enumerate(collections):
            whole, apart = panels[2 * at : 2 * at + 2]
            _draw_recall_curves(whole, found)
            _draw_recall_differences(apart, found)
            for axes in (whole, apart):
                axes.set_xlim(-0.02, 1.02)
                axes.tick_params(labelsize=8)
        for axes in panels[-2:]:
            axes.set_xlabel("recall")
        handles, labels = _recall_legend(panels[::2])
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, handlelength=3.5)
        svg = plotting.to_svg(figure, "Precision at eleven levels of recall, by collection and method")
    return Drawing("recall", "Precision and recall", _recall_caption(collections), svg)


def _draw_recall_curves(axes: "Axes", found: CollectionResult) -> None:
    single = best_single(found)
    if single is not None:
        axes.plot(RECALL_LEVELS, single.curve, label="best ranker alone", **_thin_look(single.name))
    for name in SHOWN:
        if name in found.methods:
            axes.plot(RECALL_LEVELS, found.methods[name].curve, label=name, **_thin_look(name))
    axes.set_title(plotting.label(found.title))
    axes.set_ylim(0.0, 1.0)
    axes.set_ylabel("precision")


def _draw_recall_differences(axes: "Axes", found: CollectionResult) -> None:
    single = best_single(found)
    if single is None:
        axes.set_axis_off()
        return
    axes.axhline(0.0, color=plotting.FAINT, linewidth=1.2, linestyle=look_of(single.name)["linestyle"])
    for name in SHOWN:
        if name in found.methods:
            axes.plot(RECALL_LEVELS, found.methods[name].curve - single.curve, **_thin_look(name))
    axes.set_title(f"less that of {plotting.label(single.name, longest=16)} alone", fontsize=9)


def _thin_look(method: str) -> dict[str, Any]:
    return look_of(method) | {"linewidth": 1.1, "markersize": 3.0}


def _recall_legend(panels: "Sequence[Axes]") -> "tuple[list[Artist], list[str]]":
    """Return every series of any panel once, in the order of the methods."""
    seen: dict[str, Artist] = {}
    for axes in panels:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            seen.setdefault(text, handle)
    order = sorted(seen, key=lambda text: SHOWN.index(text) if text in SHOWN else len(SHOWN))
    return [seen[text] for text in order], order


def _recall_caption(collections: Sequence[CollectionResult]) -> str:
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
