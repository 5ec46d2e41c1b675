"""How numbers are written in text: differences, intervals, shares, p-values; text on one line."""

import json
import re
from collections.abc import Sequence

NONE = "\u2013"
"""Stands where there is no number."""
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = "\u2028\u2029\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
_CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f{_DIRECTIONS}{_INVISIBLE}]")
"""What changes how a terminal shows the text around it: commands, the direction of writing, line ends."""
_CONTROL_IN_JSON = re.compile(rf"[\x7f-\x9f{_DIRECTIONS}{_INVISIBLE}]")
"""The same, without what JSON escapes anyway."""


def plain(text: str) -> str:
    """Return text on one line: control characters, tabs among them, are written as Python writes them."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def plain_json(document: str) -> str:
    """Return a JSON document whose strings hold no control characters but escapes for them."""
    return _CONTROL_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], document)


def signed(value: float | None, places: int = 4) -> str:
    """Write a difference, always with its sign; one that is written as zero has none."""
    if value is None:
        return NONE
    text = f"{value:+.{places}f}"
    return text if float(text) != 0.0 else text[1:]


def between(low: float | None, high: float | None, places: int = 4) -> str:
    """Write an interval of differences."""
    return NONE if low is None or high is None else f"{signed(low, places)} to {signed(high, places)}"


def percent(share: float | None, places: int = 0) -> str:
    """Write a share of one."""
    return NONE if share is None else f"{100 * share:.{places}f}%"


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence lists them."""
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)


def p_value(p: float) -> str:
    """Write a p-value as papers do."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def n_queries(n: int) -> str:
    """Write a number of queries."""
    return f"{n:,} {'query' if n == 1 else 'queries'}"


def measure_name(measure: str) -> str:
    """Name the mean of a measure: that of AP is called MAP."""
    return f"M{measure}" if measure == "AP" or measure.startswith(("AP(", "AP@")) else measure


def p_text(p: float) -> str:
    """Return a p-value as people write it."""
    return "<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0") if p < 1 else "1"
