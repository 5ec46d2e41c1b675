"""The charts behind the `plot` methods: values by query, differences with intervals, weights with their spread.

Each takes plain arrays and labels, draws in the house style (`genm.plotting`) on the given axes or on a new figure,
and returns the axes. A new figure is one of pyplot's, so a notebook shows it by itself. Needs the extra `plots`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from genm import plotting
from genm._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELS = 40
"""Queries that are named along the axis; of more, only their number is shown."""
_BAR = 0.6


def plot_values(
    labels: Sequence[str], values: Floats, *, title: str, value_label: str, ax: "Axes | None" = None
) -> "Axes":
    """Draw one bar per query, from the highest value to the lowest, with the mean as a line."""
    order = np.argsort(-values, kind="stable")
    axes = ax or plotting.managed_axes(7.2, 3.4)
    with plotting.style():
        look = plotting.series(0)
        axes.bar(range(len(order)), values[order], color=look["color"], width=0.8)
        mean = float(values.mean())
        axes.axhline(mean, color=plotting.INK, linewidth=1.0, linestyle="--", label=f"mean {mean:.4f}")
        axes.legend(loc="upper right")
        if len(labels) <= MOST_LABELS:
            names = [plotting.label(labels[q], longest=16) for q in order]
            axes.set_xticks(range(len(order)), names, rotation=90)
        else:
            axes.set_xticks([])
        axes.grid(visible=False, axis="x")
        axes.set_xlabel(f"{len(labels):,} queries, highest value first")
        axes.set_ylabel(plotting.label(value_label))
        axes.set_title(plotting.label(title, longest=70))
    return axes


def plot_differences(
    labels: Sequence[str],
    differences: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    title: str,
    value_label: str,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw one difference per row with its interval; filled where the interval excludes 0."""
    places = range(len(labels))[::-1]
    axes = ax or plotting.managed_axes(7.2, 1.2 + 0.42 * len(labels))
    with plotting.style():
        color = plotting.series(0)["color"]
        axes.axvline(0.0, color=plotting.INK, linewidth=0.9)
        for place, value, low, high in zip(places, differences, lows, highs, strict=True):
            if np.isfinite([low, high]).all():
                axes.plot([low, high], [place, place], color=color, linewidth=1.6)
            clear = low > 0.0 or high < 0.0
            axes.plot(
                [value], [place], marker="o", markersize=6, color=color, markerfacecolor=color if clear else "white"
            )
            _write_beside(axes, f"{value:+.4f}", max(value, high) if np.isfinite(high) else value, place)
        _name_rows(axes, [plotting.label(name) for name in labels], places)
        axes.margins(x=0.2)
        axes.set_xlabel(plotting.label(value_label, longest=90))
        axes.set_title(plotting.label(title, longest=70))
    return axes


def plot_weights(
    rankers: Sequence[str],
    weights: Sequence[float] | Floats,
    *,
    title: str,
    samples: Floats | None = None,
    samples_label: str = "",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw one bar per ranker; `samples`, (refits, K), are drawn as ticks on it."""
    places = range(len(rankers))[::-1]
    axes = ax or plotting.managed_axes(7.2, 1.2 + 0.42 * len(rankers))
    with plotting.style():
        axes.barh(places, weights, height=_BAR, color=plotting.series(0)["color"], alpha=0.8)
        if samples is not None and len(samples):
            for place, column in zip(places, samples.T, strict=True):
                axes.plot(column, np.full(len(column), place), "|", color=plotting.INK, markersize=12, alpha=0.6)
        ends = np.maximum(weights, samples.max(axis=0) if samples is not None and len(samples) else 0.0)
        least = min(float(np.min(weights)), 0.0 if samples is None else float(samples.min(initial=0.0)), 0.0)
        for place, weight, end in zip(places, weights, ends, strict=True):
            _write_beside(axes, f"{weight:.4f}", float(end), place)
        _name_rows(axes, [plotting.label(name) for name in rankers], places)
        axes.set_xticks([*([-1.0, -0.8, -0.6, -0.4, -0.2] if least < 0.0 else []), 0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        axes.set_xlim(1.15 * least, 1.15)
        axes.set_xlabel("Weight" + (f"; ticks: {samples_label}" if samples_label else ""))
        axes.set_title(plotting.label(title, longest=70))
    return axes


def _name_rows(axes: "Axes", names: Sequence[str], places: Sequence[int]) -> None:
    axes.set_yticks(places, names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _write_beside(axes: "Axes", text: str, end: float, place: int) -> None:
    shown = text.replace("-", "\N{MINUS SIGN}")
    axes.annotate(shown, (end, place), (6, 0), textcoords="offset points", va="center", fontsize=8)
