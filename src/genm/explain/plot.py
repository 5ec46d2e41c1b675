"""A picture of what each ranker is worth: its share of the whole, and what is lost without it."""

from typing import TYPE_CHECKING

from genm.explain.losses import verdict_of
from genm.explain.worth import Worth
from genm.plotting import managed_figure, new_figure, series, style, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR_HEIGHT = 0.56
_INK, _SHADE = "#222222", "#bbbbbb"


def plot_worth(worth: Worth) -> "Figure":
    """Draw the picture of `draw_worth` on a figure that pyplot manages, and return it."""
    figure, axes = managed_figure(*_size(worth), columns=2)
    with style():
        _draw(worth, figure, *axes)
    return figure


def draw_worth(worth: Worth) -> str:
    """Return an SVG: Shapley values as bars on the left, the loss without each ranker on the right.

    On the right a filled mark is a finding, for or against the ranker; an empty one leaves the question open. The
    intervals there are the ones that findings rest on: they hold for all rankers together.
    """
    figure, axes = new_figure(*_size(worth), columns=2)
    _draw(worth, figure, *axes)
    parts = sorted(worth.rankers, key=lambda part: -part.shapley.value)
    said = ", ".join(f"{part.name} {part.shapley.value:.3f}" for part in parts)
    return to_svg(figure, f"What each ranker is worth, Shapley values of {worth.measure}: {said}")


def _size(worth: Worth) -> tuple[float, float]:
    return 8.0, 1.75 + 0.4 * len(worth.rankers)


def _draw(worth: Worth, figure: "Figure", left: "Axes", right: "Axes") -> None:
    parts = sorted(worth.rankers, key=lambda part: part.shapley.value)
    bar, mark = series(0), series(1)
    right.axvspan(0.0, worth.margin, color=_SHADE, alpha=0.5, linewidth=0)
    right.axvline(0.0, color=_INK, linewidth=0.9)
    for place, part in enumerate(parts):
        left.barh(place, part.shapley.value, height=_BAR_HEIGHT, color=bar["color"], alpha=0.8)
        left.errorbar(
            part.shapley.value,
            place,
            xerr=_reach(part.shapley.value, part.shapley.low, part.shapley.high),
            color=_INK,
            linewidth=1.1,
            capsize=3,
        )
        told = f"{part.shapley.value:.3f}"
        if worth.value > 0.0:
            told += f"  ({part.shapley.value / worth.value:.0%})"
        _beside(left, told, max(part.shapley.high, part.shapley.value), place)
        loss = part.loss
        is_told = verdict_of(loss, worth.margin) != "undecided"
        right.errorbar(
            loss.value, place, xerr=_reach(loss.value, loss.joint_low, loss.joint_high), color=mark["color"],
            marker="o", markersize=6,
            markerfacecolor=mark["color"] if is_told else "white", linewidth=1.4, capsize=3,
        )  # fmt: skip
        _beside(right, f"{loss.value:+.3f}".replace("-", "\N{MINUS SIGN}"), loss.joint_high, place)
    for axes in (left, right):
        axes.set_yticks(range(len(parts)), [part.name for part in parts])
        axes.set_ylim(-0.6, len(parts) - 0.4)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.22)
        axes.locator_params(axis="x", nbins=5)
    right.set_yticklabels([])
    measure, level = str(worth.measure), f"{worth.confidence:.0%} intervals over {worth.n_queries:,} queries"
    left.set_title(f"Share of the ensemble's {worth.value:.3f} {measure}", loc="left", fontsize=11)
    left.set_xlabel(f"Shapley value, {measure}")
    right.set_title("Lost when it is left out", loc="left", fontsize=11)
    right.set_xlabel(f"{measure}; grey counts as nothing, an empty mark is undecided")
    figure.supxlabel(
        f"{worth.folds}-fold cross-validated; {level}, on the right for all rankers together",
        fontsize=8,
        color="#555555",
    )


def _reach(value: float, low: float, high: float) -> list[list[float]]:
    """Return how far an interval reaches below and above the value; a skewed one may miss it by a hair."""
    return [[max(value - low, 0.0)], [max(high - value, 0.0)]]


def _beside(axes: "Axes", text: str, end: float, place: int) -> None:
    axes.annotate(text, (end, place), (6, 0), textcoords="offset points", va="center", fontsize=8, color=_INK)
