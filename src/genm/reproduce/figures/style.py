"""A finished figure, and how each method looks on every figure."""

from dataclasses import dataclass
from typing import Any

from genm import plotting
from genm.reproduce.methods import AUTO, BAT, ENM, IP, ON, UNS
from genm.reproduce.results import CollectionResult, MethodResult

LEARNED = (BAT, IP, ON, UNS, AUTO)
"""What the package offers in the place of the paper's methods."""
SHOWN = (ENM, *LEARNED)
"""The methods that the figures show where a result has them, in this order: the baseline first."""
_PLACES = {BAT: 0, ON: 1, UNS: 2, IP: 3, AUTO: 4, ENM: 6}
_SINGLE = 7


def look_of(method: str, *, markers: bool = True) -> dict[str, Any]:
    """Return hue, dash and marker: a method's own, and one for whatever has none (a single ranker, as a rule)."""
    return plotting.series(_PLACES.get(method, _SINGLE), markers=markers)


def best_single(found: CollectionResult) -> MethodResult | None:
    """Return the ranker that has the highest MAP alone, as is known only afterwards; None if there is none."""
    singles = [method for method in found.methods.values() if method.kind == "single"]
    return max(singles, key=lambda method: float(method.mean[0]), default=None)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One figure of the page; the same data always gives the same bytes."""

    name: str
    """What its file is called, without the ending."""
    title: str
    caption: str
    """Plain text, one paragraph: what was drawn, and what to see."""
    svg: str
