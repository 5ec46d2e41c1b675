"""The house style of drawings: vector graphics that read in black and white and by colour-blind people.

Every series differs in hue, in lightness, in dash and in marker, so no one of them carries the meaning alone.
The hues are those of Okabe and Ito, "Color Universal Design" (2008).
"""

import io
from typing import TYPE_CHECKING, Any

from genm.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HEAT = "cividis"
"""The colour map of heat maps: its lightness rises evenly, for every kind of colour vision."""

_STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "svg.fonttype": "none",  # letters stay letters: they can be read aloud, searched and copied
    "svg.hashsalt": "genm",  # the same drawing is the same file
}


def series(index: int, *, markers: bool = True) -> dict[str, Any]:
    """Return the look of one series: hue, dash and marker."""
    n = len(_HUES)
    look: dict[str, Any] = {"color": _HUES[index % n], "linestyle": _DASHES[(index + index // n) % n]}
    if markers:
        look["marker"] = _MARKERS[index % n]
    return look


def new_figure(
    width: float = 6.4, height: float = 4.0, *, rows: int = 1, columns: int = 1
) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure of the given size in inches, and its axes, row by row."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing", "plots") from None
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def to_svg(figure: "Figure", title: str) -> str:
    """Return the drawing as SVG text: the same figure always gives the same bytes. The title is read aloud."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(_STYLE):
        figure.savefig(buffer, format="svg", metadata={"Title": title, "Date": None, "Creator": "genm"})
    return buffer.getvalue()
