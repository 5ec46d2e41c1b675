"""All weights of three rankers: exact MAP as a heat map on the triangle, and the fusers' paths over it."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genm import plotting
from genm._math.exact.branch_and_bound import Optimum, best_weights
from genm._math.exact.line_search import GainLines, ascend_lines
from genm._math.parallel import over_items
from genm._typing import Floats
from genm.align import Aligned, select_rankers
from genm.errors import ConvergenceWarning
from genm.evaluate import Measure
from genm.learn import BarrierFuser, Fuser, NewtonFuser, OnlineFuser
from genm.learn.exact import gain_problem
from genm.learn.objectives import Problem
from genm.reproduce.figures.style import Drawing
from genm.reproduce.paper import PAPER_BETA

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 100
"""Weights are tried in steps of a hundredth."""
GAP = 0.001
"""How near to the highest MAP of all the search has to prove that it came."""
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where the three rankers stand on the page."""
_PIXELS = 400
_BANDS = 12
_LEAST_SHARE = 0.05
"""The poorest weights, this share of all, get the darkest colour together."""
_LOOKS: dict[str, tuple[str, str, str, str]] = {
    "gEnM.BAT": ("#ffffff", "#000000", "-", "s"),
    "gEnM.IP": ("#f0873a", "#000000", "-", "^"),
    "gEnM.ON": ("#000000", "#ffffff", "-", "o"),
    "exact": ("#000000", "#ffffff", ":", "D"),
}
"""Colour, edge, dash and marker of each method's path: visible on every colour, distinct without colour."""


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Where a fuser has been, from its start to its end."""

    method: str
    start: int
    weights: Floats
    """(points, K), each a distribution."""


def paths_from(starts: Floats, aligned: Aligned) -> list[Path]:
    """Return the ways of gEnM.BAT, gEnM.IP, gEnM.ON (a point per pass over the queries) and the exact line search.

    Of the last one only start and end are known: each of its moves may go right across the simplex.
    """
    fusers: dict[str, Fuser] = {
        "gEnM.BAT": NewtonFuser(beta=PAPER_BETA, starts=starts),
        "gEnM.IP": BarrierFuser(beta=PAPER_BETA, starts=starts),
        "gEnM.ON": OnlineFuser(beta=PAPER_BETA, starts=starts, max_iter=10),
    }
    learned = [path for method, fuser in fusers.items() for path in _paths_of(method, fuser, aligned, len(starts))]
    lines = GainLines(gain_problem(aligned, Measure("AP")))
    return learned + [
        Path("exact", s, np.array([start, ascend_lines(lines, start)[0]])) for s, start in enumerate(starts)
    ]


def _paths_of(method: str, fuser: Fuser, aligned: Aligned, n_starts: int) -> list[Path]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the drawing shows where a path ends early
        fuser.fit(aligned)
    return [
        Path(method, s, np.array([step.weights for step in fuser.history_ if step.start == s]))
        for s in range(n_starts)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class SimplexMap:
    """MAP on the simplex of three rankers."""

    rankers: tuple[str, ...]
    aligned: Aligned
    weights: Floats
    """(points, 3) all weights that are multiples of 1 / STEPS."""
    exact: Floats
    """(points,) MAP there."""
    optimum: Optimum
    """The best weights of all, with a bound that no others exceed."""


def landscape_of(aligned: Aligned) -> SimplexMap:
    """Return MAP over the weights of the three rankers that are best alone, and its certified optimum."""
    alone = Problem(aligned, beta=PAPER_BETA)
    order = np.argsort([-alone.exact(unit) for unit in np.eye(len(aligned.rankers))], kind="stable")
    chosen = sorted(order[:3].tolist())
    three = select_rankers(aligned, [aligned.rankers[k] for k in chosen])
    problem = Problem(three, beta=PAPER_BETA)
    weights = simplex_grid(STEPS)
    exact = np.array(over_items(problem.exact, list(weights)))
    optimum = best_weights(gain_problem(three.select(problem.kept), Measure("AP")), gap=GAP)
    return SimplexMap(three.rankers, three, weights, exact, optimum)


def simplex_grid(steps: int) -> Floats:
    """Return all weights of three rankers that are multiples of 1 / steps."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = i + j <= steps
    return np.stack((i[inside], j[inside], steps - i[inside] - j[inside]), axis=1) / steps


def draw_simplex(found: SimplexMap, collection: str) -> Drawing:
    """Return the heat map with the ways of the fusers from the three corners."""
    names = [plotting.label(name) for name in found.rankers]
    paths = paths_from(np.eye(3), found.aligned)
    problem = Problem(found.aligned, beta=PAPER_BETA)
    best = max([found.optimum.weights, *(path.weights[-1] for path in paths)], key=problem.exact)
    with plotting.style():
        figure, [axes] = plotting.new_figure(6.4, 5.6)
        _draw_heat(axes, found)
        _draw_frame(axes, names)
        _draw_paths(axes, paths)
        axes.plot(
            *_place(best),
            marker="*",
            markersize=17,
            color="white",
            markeredgecolor="black",
            linestyle="",
            label="best of all",
            zorder=6,
        )
        axes.legend(loc="upper left", fontsize=8)
        svg = plotting.to_svg(
            figure, f"MAP on {collection} over all weights of {', '.join(names)}, with the fusers' ways"
        )
    ends = {p.method: 0.0 for p in paths}
    for path in paths:
        ends[path.method] = max(ends[path.method], problem.exact(path.weights[-1]))
    reached = ", ".join(f"{method} {value:.4f}" for method, value in ends.items())
    weights = ", ".join(f"{name} {w:.2f}" for name, w in zip(names, best, strict=True))
    caption = (
        f"Exact MAP on {collection} over all weights of the three rankers that are best alone: each corner is one "
        f"ranker, the middle equal weights; lighter is better. {len(found.exact):,} weights were tried. Each fuser "
        f"starts in each corner (β = {PAPER_BETA:.0f}); its large marks are where it ends, and the best of them "
        f"has a MAP of: {reached}. The exact line search is drawn from start to end only. The star is the best "
        f"of all, {problem.exact(best):.4f} at {weights}; a search of the whole triangle proves that no weights "
        f"reach more than {max(found.optimum.upper, problem.exact(best)):.4f}. No query is held out here."
    )
    return Drawing("simplex", "All weights of three rankers, and the paths of the fusers", caption, svg)


def _place(weights: Floats) -> Floats:
    return np.asarray(weights @ _CORNERS)


def _draw_heat(axes: "Axes", found: SimplexMap) -> None:
    """Draw MAP in bands of equal colour, as an image of few pixels, so that the file stays small."""
    from matplotlib.colors import BoundaryNorm

    low, high = float(np.quantile(found.exact, _LEAST_SHARE)), float(found.exact.max())
    edges = np.linspace(low, high, _BANDS + 1)
    picture = axes.imshow(
        heat_image(found.exact, STEPS, _PIXELS),
        extent=(0.0, 1.0, 0.0, float(_CORNERS[2, 1])),
        origin="lower",
        interpolation="none",
        cmap=plotting.HEAT,
        norm=BoundaryNorm(edges, 256, extend="min"),
    )
    bar = axes.figure.colorbar(picture, ax=axes, shrink=0.75, pad=0.02, format="%.3f")
    bar.set_label("MAP")


def heat_image(exact: Floats, steps: int, width: int) -> Floats:
    """Return MAP on the triangle as an image, its lowest row first; NaN outside.

    Between the points of the grid it is interpolated on the small triangle around.
    """
    height = round(width * float(_CORNERS[2, 1]))
    x, y = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height * _CORNERS[2, 1])
    third = y / _CORNERS[2, 1]
    second = x - 0.5 * third
    first = 1.0 - second - third
    inside = (first >= 0.0) & (second >= 0.0)
    table = np.zeros((steps + 2, steps + 2))
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    table[:-1, :-1][i + j <= steps] = exact
    a, b = first[inside] * steps, second[inside] * steps
    i0, j0 = np.floor(a).astype(np.int64), np.floor(b).astype(np.int64)
    u, v = a - i0, b - j0
    upper = u + v > 1.0  # the other of the two small triangles of the cell
    near = table[i0 + upper, j0 + upper]
    along, across = table[i0 + 1, j0], table[i0, j0 + 1]
    u, v = np.where(upper, 1.0 - v, u), np.where(upper, 1.0 - u, v)
    image = np.full((height, width), np.nan)
    image[inside] = near + u * (along - near) + v * (across - near)
    return image


def _draw_frame(axes: "Axes", names: list[str]) -> None:
    ring = np.vstack((_CORNERS, _CORNERS[:1]))
    axes.plot(*ring.T, color=plotting.INK, linewidth=1.0)
    places = (
        (0.0, -0.02, "left", "top"),
        (1.0, -0.02, "right", "top"),
        (0.5, float(_CORNERS[2, 1]) + 0.02, "center", "bottom"),
    )
    for name, (x, y, across, up) in zip(names, places, strict=True):
        axes.text(x, y, f"only {name}", ha=across, va=up, fontsize=10)
    axes.set_axis_off()
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.08, float(_CORNERS[2, 1]) + 0.08)
    axes.set_aspect("equal")


def _draw_paths(axes: "Axes", paths: list[Path]) -> None:
    from matplotlib.patheffects import withStroke

    for path in paths:
        color, edge, dash, marker = _LOOKS[path.method]
        x, y = _place(path.weights).T
        marks: dict[str, Any] = {"color": color, "marker": marker, "markeredgecolor": edge, "linestyle": ""}
        line = axes.plot(x, y, color=color, linestyle=dash, linewidth=1.5)[0]
        line.set_path_effects([withStroke(linewidth=3.2, foreground=edge)])
        axes.plot(x[:-1], y[:-1], markersize=4, markeredgewidth=0.6, **marks)
        axes.plot(x[-1], y[-1], markersize=9, zorder=5, label=path.method if path.start == 0 else None, **marks)
