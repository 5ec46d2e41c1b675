"""Settings of a target and of each ranker: the user's values, checked, over the defaults."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from genm.errors import ExportError
from genm.export.normalizer_match import line_of
from genm.export.target import Order, Part, Setting, Target
from genm.records import Note

_LEXICAL = ("bm25", "tfidf", "tf-idf", "text", "lexical", "keyword", "sparse", "splade", "word", "title", "body")
_FIELDS = {"text": "text", "vector": "embedding"}

WINDOW = Setting("window", "", "how many documents of each ranker to fuse; the model's depth if left out", "count")

SIZE = Setting("size", "10", "how many results to return", "count")
QUERY = Setting("query", "QUERY", "the words searched for", stands_in="text")
TYPE = Setting("type", "", "how this ranker searches; guessed from its name", choices=("text", "vector"))
FIELD = Setting("field", "", "the field it searches: text or embedding if left out", "name")
VECTOR = Setting("vector", "[0.1, 0.2, 0.3]", "the query's vector", "json", stands_in="vector")
OWN = Setting("query", "", "this ranker's own query as JSON, in place of type and field", "json")


def resolved(
    parts: Sequence[Part], target: Target, given: Mapping[str, str], rankers: Sequence[str]
) -> tuple[dict[str, str], dict[str, dict[str, str]], list[Note]]:
    """Return the settings of the target and of each ranker: the given ones, checked, over the defaults.

    `rankers` are all of the model's: settings of a ranker that is left out are checked too.
    """
    known = {setting.name: setting for setting in (*target.settings, WINDOW)}
    of_ranker = {setting.name: setting for setting in target.ranker_settings}
    shared = {name: setting.default for name, setting in known.items()}
    own = {ranker: {name: s.default for name, s in of_ranker.items()} for ranker in rankers}
    said: dict[str, set[str]] = {ranker: set() for ranker in rankers}
    for key, value in given.items():
        ranker = max((r for r in own if key.startswith(f"{r}.")), key=len, default=None)
        if key in known:
            shared[key] = _checked(known[key], value, key)
        elif ranker is not None and (name := key.removeprefix(f"{ranker}.")) in of_ranker:
            own[ranker][name] = _checked(of_ranker[name], value, key)
            said[ranker].add(name)
        else:
            each = [f"RANKER.{name}" for name in of_ranker]
            raise ExportError(
                f"{target.name}: expected a setting of {', '.join([*known, *each])}; found {key!r:.80}."
            )
    notes = [note for part in parts for note in _guessed(part.ranker, own[part.ranker], said[part.ranker])]
    kinds = {own[part.ranker].get("type", "") for part in parts}
    for setting in (*target.settings, *target.ranker_settings):
        if setting.stands_in in kinds and not any(k.split(".")[-1] == setting.name for k in given):
            text = f"{setting.default} marks the place of {setting.what}: put in each query's own."
            notes.append(Note("placeholder", 1, text))
    return shared, own, notes


def _guessed(ranker: str, settings: dict[str, str], said: set[str]) -> list[Note]:
    """Fill in how and where a ranker searches where the user did not say, and note it."""
    if "type" not in settings or "query" in said:
        return []
    guessed, assumed = "type" not in said, settings.get("field") == ""
    if guessed:
        settings["type"] = guessed_type(ranker)
    if assumed:
        if settings["type"] not in _FIELDS:
            raise ExportError(f"{ranker}.field: expected the name of its {settings['type']}; found nothing.")
        settings["field"] = _FIELDS[settings["type"]]
    assumptions = [
        *([f"a {settings['type']} query by its name ({ranker}.type)"] if guessed else []),
        *([f"one of the field {settings['field']} ({ranker}.field)"] if assumed else []),
    ]
    return [Note("assumed", 1, f"{ranker} is taken for {', and for '.join(assumptions)}.")] if assumptions else []


def _checked(setting: Setting, value: str, key: str) -> str:
    if setting.choices and value not in setting.choices:
        raise ExportError(f"{key}: expected one of {', '.join(setting.choices)}; found {value!r:.80}.")
    if setting.kind == "count" and not (value.isascii() and value.isdigit() and 0 < int(value) < 10**9):
        raise ExportError(f"{key}: expected a positive integer; found {value!r:.80}.")
    if setting.kind == "name" and (not value or not value.isprintable()):
        raise ExportError(f"{key}: expected a name; found {value!r:.80}.")
    if setting.kind == "json":
        try:
            json.loads(value, parse_constant=_finite, parse_float=_finite)
        except json.JSONDecodeError as error:
            raise ExportError(f"{key}: expected JSON; {error.msg} at character {error.pos}.") from None
    return value


def _finite(number: str) -> float:
    """Return a number of JSON; NaN and numbers beyond the range of floats are refused."""
    if not math.isfinite(float(number)):
        raise json.JSONDecodeError(f"{number} is not a finite number", number, 0)
    return float(number)


def guessed_type(ranker: str) -> str:
    """Return "text" or "vector" by the words in a ranker's name."""
    return "text" if any(word in ranker.lower() for word in _LEXICAL) else "vector"


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
