"""Problem P1 against Problem P2: how well the smoothed objective follows MAP, by its sharpness."""

from typing import TYPE_CHECKING

import numpy as np

from genm import plotting
from genm.reproduce.figures.drawing import Drawing
from genm.reproduce.figures.pair import Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BETAS = (50.0, 200.0, 300.0)
"""The paper draws 200 and reckons with 300; 50 shows what a soft sigmoid does."""


def draw_smoothing(pair: Pair, collection: str) -> Drawing:
    """Return exact MAP and the smoothed MAP for three values of beta, each with its best weight marked."""
    one, other = (plotting.label(name) for name in pair.rankers)
    curves = {beta: pair.smoothed(beta) for beta in BETAS}
    best = {beta: int(np.argmax(curve)) for beta, curve in curves.items()}
    with plotting.style():
        figure, [axes] = plotting.new_figure(6.4, 4.2)
        axes.plot(pair.weight, pair.exact, color=plotting.INK, linewidth=0.9, label="P1: MAP itself")
        _mark(axes, pair.weight[pair.best], pair.exact[pair.best], plotting.INK)
        for at, (beta, curve) in enumerate(curves.items()):
            look = plotting.series(at, markers=False) | {"linestyle": ("--", "-", "-.")[at]}
            axes.plot(pair.weight, curve, linewidth=2.0, label=f"P2, β = {beta:.0f}", **look)
            _mark(axes, pair.weight[best[beta]], curve[best[beta]], str(look["color"]))
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel(f"weight of {one} ({other} has the rest)")
        axes.set_ylabel("MAP, exact and smoothed")
        axes.legend(loc="best")
        svg = plotting.to_svg(
            figure, f"MAP and smoothed MAP on {collection} over the weight of {one} against {other}"
        )
    found = "; ".join(
        f"β = {beta:.0f} chooses {pair.weight[at]:.3f}, where MAP is {pair.exact[at]:.4f}"
        for beta, at in best.items()
    )
    caption = (
        f"MAP (P1, thin line) and its smoothed form (P2) on {collection}. A sharper sigmoid follows MAP more "
        f"closely and is less smooth. Triangles stand at each curve's maximum: MAP's own is "
        f"{pair.exact[pair.best]:.4f} at {pair.weight[pair.best]:.3f}; {found}. What counts is not the distance "
        f"between the curves but where their maxima lie."
    )
    return Drawing("smoothing", "The smoothed objective beside the real one", caption, svg)


def _mark(axes: "Axes", x: float, y: float, color: str) -> None:
    axes.plot(x, y, marker="v", markersize=8, color=color, markeredgecolor="white", linestyle="", zorder=5)
