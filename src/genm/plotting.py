"""The house style of drawings: vector graphics that read in black and white and by colour-blind people.

Every series differs in hue, in lightness, in dash and in marker, so no one of them carries the meaning alone.
The hues are those of Okabe and Ito, "Color Universal Design" (2008).

A drawing becomes SVG text that stands alone and also inside a page: no ids but those it refers to itself, and those
made from its content, so that two drawings never share one; no style attributes or elements, so that a page's
content security policy needs no exception; nothing that names the machine or the hour.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from genm.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HEAT = "cividis"
"""The colour map of heat maps: its lightness rises evenly, for every kind of colour vision."""
INK = "#222222"
"""What is neither series nor background: words, frames, arrows."""
FAINT = "#8a8a8a"
"""What stands behind: values that are not ours, guides."""

_STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
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
    "text.color": INK,
    "text.parse_math": False,  # a name may hold a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
}
_FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', Roboto, Arial, sans-serif"

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_INHERITED = ("fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-linejoin")
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def series(index: int, *, markers: bool = True) -> dict[str, Any]:
    """Return the look of one series: hue, dash and marker."""
    n = len(_HUES)
    look: dict[str, Any] = {"color": _HUES[index % n], "linestyle": _DASHES[(index + index // n) % n]}
    if markers:
        look["marker"] = _MARKERS[index % n]
    return look


def label(text: str, *, longest: int = 28) -> str:
    """Return somebody else's text as a drawing can hold it: on one line, not too long, nothing taken as a sign.

    What no document may hold becomes U+FFFD. A leading underscore, which would hide a series from the legend,
    gets a zero-width space before it.
    """
    kept = _UNWRITABLE.sub("\ufffd", text)
    kept = kept if len(kept) <= longest else kept[: longest - 1] + "…"
    return "\u200b" + kept if kept.startswith("_") else kept


@contextmanager
def style() -> Iterator[None]:
    """Make whatever is drawn inside follow the house style, whatever the user's own settings are."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("drawing", "plots") from None
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        # A script that the font lacks is drawn by the reader's own fonts, since letters stay letters.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


def new_figure(
    width: float = 6.4, height: float = 4.0, *, rows: int = 1, columns: int = 1
) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure of the given size in inches, and its axes, row by row."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height))
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def managed_axes(width: float = 6.4, height: float = 4.0) -> "Axes":
    """Return the axes of a new figure that pyplot manages: a notebook shows it, `plt.close` frees it."""
    return managed_figure(width, height)[1][0]


def managed_figure(width: float, height: float, *, columns: int = 1) -> "tuple[Figure, list[Axes]]":
    """Return a new figure that pyplot manages, and its axes.

    Call it outside of `style`. In a notebook, pyplot's first figure switches the display of figures on; that
    setting must outlast the style.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("drawing", "plots") from None
    with style():
        figure, axes = plt.subplots(1, columns, figsize=(width, height), squeeze=False)
        shows_figures = plt.isinteractive()
    if shows_figures:
        plt.ion()
    return figure, list(axes.flat)


def to_svg(figure: "Figure", title: str, description: str = "") -> str:
    """Return the drawing as SVG text: the same figure always gives the same bytes.

    Title and description are what a screen reader says.
    """
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - the text was written on the line before
    for unwanted in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}title", f"{{{_SVG}}}style"):
        _remove(root, unwanted)
    for element in root.iter():
        _plain_attributes(element)
    root.attrib.update({"font-family": _FONTS, "stroke-linecap": "butt", "stroke-linejoin": "round", "role": "img"})
    _name_ids(root)
    _unwrap(root)
    _hoist(root)
    _announce(root, title, description)
    return ET.tostring(root, encoding="unicode", short_empty_elements=True) + "\n"


def _remove(root: ET.Element, tag: str) -> None:
    for parent in list(root.iter()):
        for child in [c for c in parent if c.tag == tag]:
            parent.remove(child)


def _plain_attributes(element: ET.Element) -> None:
    """Say with attributes what was said with a style, round what nobody can see, drop what says nothing."""
    for rule in element.attrib.pop("style", "").split(";"):
        name, colon, value = rule.partition(":")
        if colon and name.strip() != "font-family":  # said once, for the whole drawing
            element.set(name.strip(), value.strip())
    for name, value in list(element.items()):
        if name == _HREF and value.startswith("data:"):
            element.set(name, "".join(value.split()))
        elif not value.startswith("matrix("):  # a factor's third digit may be seen
            short = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
            element.set(name, " ".join(short.split()))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    if element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None


def _name_ids(root: ET.Element) -> None:
    """Keep the ids that something refers to, and name them after the drawing's content."""
    mark = "g" + hashlib.sha256(ET.tostring(root)).hexdigest()[:10]
    pointers = re.compile(r"url\(#([^)]+)\)")
    named: dict[str, str] = {}

    def new_name(old: str) -> str:
        return named.setdefault(old, f"{mark}-{len(named) + 1}")

    for element in root.iter():
        target = element.get(_HREF, "")
        if target.startswith("#"):
            element.set(_HREF, "#" + new_name(target[1:]))
        for name, value in list(element.items()):
            if "url(#" in value:
                element.set(name, pointers.sub(lambda found: f"url(#{new_name(found[1])})", value))
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in named:
            element.set("id", named[old])


def _unwrap(parent: ET.Element) -> None:
    """Put what groups hold that say nothing themselves in their place."""
    kept: list[ET.Element] = []
    for child in list(parent):
        _unwrap(child)
        bare = child.tag in (f"{{{_SVG}}}g", f"{{{_SVG}}}defs") and not child.attrib
        kept.extend(child if bare and (child.tag.endswith("g") or len(child) == 0) else [child])
    parent[:] = kept


def _hoist(parent: ET.Element) -> None:
    """Say once on a group what all of its parts say, of what parts inherit."""
    for child in parent:
        _hoist(child)
    if parent.tag != f"{{{_SVG}}}g" or len(parent) < 2:
        return
    for name in _INHERITED:
        values = {child.get(name) for child in parent}
        if len(values) == 1 and None not in values:
            parent.set(name, str(values.pop()))
            for child in parent:
                del child.attrib[name]


def _announce(root: ET.Element, title: str, description: str) -> None:
    for at, (tag, text) in enumerate((("title", title), ("desc", description))):
        if text:
            spoken = ET.Element(f"{{{_SVG}}}{tag}")
            spoken.text = _UNWRITABLE.sub("\ufffd", text)
            root.insert(at, spoken)
