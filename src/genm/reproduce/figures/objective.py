"""Problem P1 over the weight of two rankers: the paper's first figure, and what its grid cannot show."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from genm import plotting
from genm._math.exact.line_search import LineProfile
from genm.reproduce.figures.drawing import Drawing
from genm.reproduce.figures.pair import Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_NEAR, _CLOSE = 0.05, 0.002
"""Half the width of the two windows around the best step."""


def draw_objective(pair: Pair, collection: str) -> Drawing:
    """Return exact MAP (P1) at step 0.001, a window of it, and in a narrower one every step it really has."""
    one, other = (plotting.label(name) for name in pair.rankers)
    steps = pair.steps()
    with plotting.style():
        figure, axes = plotting.new_figure(6.4, 6.2, rows=3)
        whole, near, close = axes
        windows = [_window(pair, half) for half in (_NEAR, _CLOSE)]
        _draw_grid(whole, pair, (0.0, 1.0), dots=False)
        _draw_grid(near, pair, windows[0], dots=True)
        _draw_steps(close, steps, windows[1])
        _draw_grid(close, pair, windows[1], dots=True, line=False)
        for parent, window in zip((whole, near), windows, strict=True):
            parent.axvspan(*window, color=plotting.FAINT, alpha=0.25, linewidth=0)
        whole.set_title("every 0.001, as in the paper")
        near.set_title("the shaded part of it")
        close.set_title("the shaded part of that, with every step between the dots")
        for panel in axes:
            panel.set_ylabel("MAP")
        figure.align_ylabels()
        close.set_xlabel(f"weight of {one} ({other} has the rest)")
        svg = plotting.to_svg(figure, f"Exact MAP on {collection} over the weight of {one} against {other}")
    best = pair.best
    caption = (
        f"Exact MAP on {collection} (Problem P1) as weight moves from {other} (left) to {one} (right). At step "
        f"0.001 the best of {len(pair.weight):,} points is {pair.exact[best]:.4f}, at {pair.weight[best]:.3f}. "
        f"Between the points MAP is a step function: on this line it changes at {steps.n_swaps:,} places, and its "
        f"maximum is {steps.value:.4f}, held from {steps.low:.5f} to {steps.high:.5f}. "
        f"No query is held out, so this is a picture of the objective, not of what a learner reaches on "
        f"queries it has not seen."
    )
    return Drawing("objective", "What is maximised: a staircase", caption, svg)


def _window(pair: Pair, half: float) -> tuple[float, float]:
    """Return a window around the best step, moved inwards where it would leave the line."""
    centre = min(max(float(pair.weight[pair.best]), half), 1.0 - half)
    return centre - half, centre + half


def _draw_grid(axes: "Axes", pair: Pair, window: tuple[float, float], *, dots: bool, line: bool = True) -> None:
    inside = (pair.weight >= window[0] - 1e-9) & (pair.weight <= window[1] + 1e-9)
    axes.plot(
        pair.weight[inside],
        pair.exact[inside],
        color="#0072b2",
        linewidth=1.0,
        linestyle="-" if line else "",
        marker="o" if dots else "",
        markersize=3.5 if line else 6.0,
    )
    best = pair.best
    axes.plot(pair.weight[best], pair.exact[best], marker="*", markersize=12, color="#d55e00", linestyle="")
    margin = 0.01 * (window[1] - window[0]) if dots else 0.0
    axes.set_xlim(window[0] - margin, window[1] + margin)


def _draw_steps(axes: "Axes", steps: LineProfile, window: tuple[float, float]) -> None:
    edges, values = steps_inside(steps, window)
    axes.stairs(values, edges, baseline=None, color=plotting.INK, linewidth=1.2)
    axes.ticklabel_format(axis="y", useOffset=False)


def steps_inside(steps: LineProfile, window: tuple[float, float]) -> tuple[Array, Array]:
    """Return edges and values of the step function inside a window; neighbours of one value become one step."""
    first = int(np.searchsorted(steps.breakpoints, window[0], side="right")) - 1
    last = int(np.searchsorted(steps.breakpoints, window[1], side="left"))
    edges, values = steps.breakpoints[first : last + 1].copy(), steps.values[first:last]
    edges[0], edges[-1] = max(window[0], edges[0]), min(window[1], edges[-1])
    kept = np.flatnonzero(np.append(True, np.diff(values) != 0.0))
    return np.append(edges[kept], edges[-1]), values[kept]
