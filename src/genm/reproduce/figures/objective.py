"""Exact and smoothed MAP over the weight of two rankers, as in the paper's first figures; the sigmoid itself."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from genm import plotting
from genm._math.exact.line_search import LineProfile, line_profile
from genm._math.parallel import over_items
from genm._typing import Floats
from genm.align import Aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import Measure
from genm.learn.exact import gain_problem
from genm.learn.objectives import PAPER_BETA, Problem
from genm.reproduce.figures.style import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_PAIR = ("ldi", "plsi")
"""The two rankers of the paper's figures in small letters, the first one's weight on the axis."""
STEPS = 1000
"""The paper's step is 0.001."""

_NEAR, _CLOSE = 0.05, 0.002
"""Half the width of the two windows around the best step."""

BETAS = (50.0, 200.0, 300.0)
"""The paper draws 200 and computes with 300; 50 shows what a soft sigmoid does."""
SIGMOID_BETA = 300.0
"""The sharpness of the paper's figure of the sigmoid."""
_REACH = 7.0
"""How far from the middle the sigmoid is drawn, in units of 1/beta."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The exact MAP of two rankers at every step of the first one's weight."""

    rankers: tuple[str, str]
    aligned: Aligned
    problem: Problem
    weight: Floats
    exact: Floats

    @property
    def best(self) -> int:
        """Which step has the highest MAP; the first among equals."""
        return int(np.argmax(self.exact))

    def smoothed(self, beta: float) -> Floats:
        """Return the objective of Problem P2 at every step."""
        problem = self.problem.with_beta(beta)
        return np.array(over_items(lambda w: problem.value(_both(w)), self.weight.tolist()))

    def steps(self) -> LineProfile:
        """Return MAP as the step function that it is, with every swap of two documents on the line."""
        kept = self.problem.kept
        tasks = gain_problem(self.aligned.select(kept), Measure("AP"))
        return line_profile(tasks, _both(0.0), np.array([1.0, -1.0]), 0.0, 1.0, whole=True)


def pair_of(aligned: Aligned) -> Pair:
    """Return the paper's two rankers, or the last two that there are, and their MAP along the line."""
    if len(aligned.rankers) < 2:
        raise InputError(f"figures: expected at least two rankers; found {', '.join(aligned.rankers) or 'none'}.")
    known = {name.lower(): name for name in aligned.rankers}
    last = (aligned.rankers[-1], aligned.rankers[-2])
    names = (known[PAPER_PAIR[0]], known[PAPER_PAIR[1]]) if known.keys() >= set(PAPER_PAIR) else last
    two = select_rankers(aligned, names)
    problem = Problem(two, beta=PAPER_BETA)
    weight = np.arange(STEPS + 1) / STEPS
    exact = np.array(over_items(lambda w: problem.exact(_both(w)), weight.tolist()))
    return Pair(names, two, problem, weight, exact)


def _both(weight: float) -> Floats:
    return np.array([weight, 1.0 - weight])


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


def steps_inside(steps: LineProfile, window: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return edges and values of the step function inside a window; neighbours of one value become one step."""
    first = int(np.searchsorted(steps.breakpoints, window[0], side="right")) - 1
    last = int(np.searchsorted(steps.breakpoints, window[1], side="left"))
    edges, values = steps.breakpoints[first : last + 1].copy(), steps.values[first:last]
    edges[0], edges[-1] = max(window[0], edges[0]), min(window[1], edges[-1])
    kept = np.flatnonzero(np.append(True, np.diff(values) != 0.0))
    return np.append(edges[kept], edges[-1]), values[kept]


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


def draw_sigmoid() -> Drawing:
    """Return f(x) = 1 / (1 + exp(beta x)) with its tangent cut at 0 and 1, and both slopes below."""
    x = np.linspace(-_REACH, _REACH, 241) / SIGMOID_BETA
    f = 0.5 - 0.5 * np.tanh(0.5 * SIGMOID_BETA * x)
    straight = np.clip(0.5 - 0.25 * SIGMOID_BETA * x, 0.0, 1.0)
    slope = -SIGMOID_BETA * f * (1.0 - f)
    end = 2.0 / SIGMOID_BETA
    inside = np.abs(x) < end - 1e-12
    left_out = 2.0 / (1.0 + np.exp(2.0))
    with plotting.style():
        figure, (above, below) = plotting.new_figure(6.4, 5.4, rows=2)
        above.plot(x, f, label="sigmoid f", **plotting.series(0, markers=False))
        above.plot(x, straight, label="linear approximation", **plotting.series(1, markers=False))
        above.step([x[0], 0.0, x[-1]], [1.0, 1.0, 0.0], color=plotting.FAINT, linewidth=0.8, label="indicator")
        below.plot(x, slope, label="slope of f", **plotting.series(0, markers=False))
        below.plot(
            [x[0], -end, -end, end, end, x[-1]],
            [0.0, 0.0, -SIGMOID_BETA / 4.0, -SIGMOID_BETA / 4.0, 0.0, 0.0],
            label="of the linear approximation",
            **plotting.series(1, markers=False),
        )
        below.fill_between(
            x,
            slope,
            where=(~inside).tolist(),
            color=plotting.FAINT,
            alpha=0.4,
            linewidth=0,
            label="set to 0 by Eq. (39)",
        )
        for axes in (above, below):
            for edge in (-end, end):
                axes.axvline(edge, color=plotting.FAINT, linewidth=0.8, linestyle=":")
            axes.set_xlim(x[0], x[-1])
            axes.set_xticks([-end, 0.0, end], ["-2/β", "0", "2/β"])
        above.set_ylabel("f")
        above.legend(loc="lower left")
        below.set_ylabel("slope")
        below.set_xlabel(f"x, a difference of fused scores; β = {SIGMOID_BETA:.0f}, so 2/β = {end:.4f}")
        below.legend(loc="lower left")
        svg = plotting.to_svg(figure, "The sigmoid and its centred linear approximation, with their slopes")
    caption = (
        f"The sigmoid that stands for “ranked above” in Eq. (3), its centred linear approximation, which is the "
        f"tangent in the middle until it meets 1 and 0 at -2/β and 2/β, and below it the slopes. Appendix B prints "
        f"the 0 and the 1 interchanged, and sets the slope to 0 outside the dotted lines (shaded). That is "
        f"no small thing: {left_out:.0%} of the sigmoid's whole descent lies there, whatever β is. The fusers here "
        f"use the exact slope."
    )
    return Drawing("sigmoid", "The sigmoid and where the paper cuts it", caption, svg)
