"""Settings that several engines share, and how their values are read."""

import json
from typing import Any

from genm.errors import ExportError
from genm.export.normalizer_match import line_of
from genm.export.target import Order, Part, Setting

SIZE = Setting("size", "10", "how many results to return", "count")
QUERY = Setting("query", "QUERY", "the words searched for", stands_in="text")
TYPE = Setting("type", "", "how this ranker searches; guessed from its name", choices=("text", "vector"))
FIELD = Setting("field", "", "the field it searches: text or embedding if left out", "name")
VECTOR = Setting("vector", "[0.1, 0.2, 0.3]", "the query's vector", "json", stands_in="vector")
OWN = Setting("query", "", "this ranker's own query as JSON, in place of type and field", "json")


def vector(part: Part) -> list[float]:
    """Return the query's vector of a ranker."""
    value = json.loads(part.settings["vector"])
    if not isinstance(value, list) or not value or not all(_number(x) for x in value):
        raise ExportError(f"{part.ranker}.vector: expected a list of numbers; found {str(value)!r:.60}.")
    return [float(x) for x in value]


def own_query(part: Part) -> dict[str, Any] | None:
    """Return the query that the user wrote for this ranker, if there is one."""
    if not part.settings.get("query"):
        return None
    value = json.loads(part.settings["query"])
    if not isinstance(value, dict):
        raise ExportError(f"{part.ranker}.query: expected a JSON object; found {str(value)!r:.60}.")
    return value


def folded(part: Part) -> tuple[float, float]:
    """Return (coefficient, offset): the ranker's share is coefficient * raw score + offset."""
    line = line_of(part.normalizer)
    if line is None:
        raise ExportError(f"{part.ranker}: {part.normalizer.kind} is not a straight line of the score.")
    return part.weight * line[0], part.weight * line[1]


def size_within(order: Order, what: str) -> int:
    """Return how many results are wanted, which cannot be more than the engine looks at."""
    size = order.count("size")
    if size > order.window:
        raise ExportError(
            f"size: expected at most {what} ({order.window}); found {size}. Ask for fewer, or fuse more."
        )
    return size


def one_of_each(order: Order, title: str) -> tuple[Part, Part]:
    """Return the text ranker and the vector ranker of an engine that fuses one of each."""
    text = [part for part in order.parts if part.settings["type"] == "text"]
    dense = [part for part in order.parts if part.settings["type"] == "vector"]
    if len(text) == 1 and len(dense) == 1:
        return text[0], dense[0]
    said = ", ".join(f"{part.ranker}: {part.settings['type']}" for part in order.parts)
    raise ExportError(
        f"{title} fuses one text and one vector query; found {said}. Set RANKER.type for each ranker."
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
