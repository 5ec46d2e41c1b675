"""Settings of a target and of each ranker: what the user says, checked, over the defaults."""

import json
from collections.abc import Mapping, Sequence

from genm.errors import ExportError
from genm.export.target import Part, Setting, Target
from genm.records import Note

_LEXICAL = ("bm25", "tfidf", "tf-idf", "text", "lexical", "keyword", "sparse", "splade", "word", "title", "body")
_FIELDS = {"text": "text", "vector": "embedding"}


def resolved(
    parts: Sequence[Part], target: Target, given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, dict[str, str]], list[Note]]:
    """Return the settings of the target and of each ranker: the given ones, checked, over the defaults."""
    known = {setting.name: setting for setting in (*target.settings, WINDOW)}
    of_ranker = {setting.name: setting for setting in target.ranker_settings}
    shared = {name: setting.default for name, setting in known.items()}
    own = {part.ranker: {name: s.default for name, s in of_ranker.items()} for part in parts}
    said: dict[str, set[str]] = {part.ranker: set() for part in parts}
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
    notes = [
        Note("placeholder", 1, f"{s.default} marks the place of {s.what}: put in each query's own.")
        for s in (*target.settings, *target.ranker_settings)
        if s.stands_in and not any(k == s.name or k.endswith(f".{s.name}") for k in given)
    ]
    for part in parts:
        settings = own[part.ranker]
        if "type" in settings and "type" not in said[part.ranker] and "query" not in said[part.ranker]:
            settings["type"] = guessed_type(part.ranker)
            notes.append(
                Note("type-guessed", 1, f"{part.ranker} is taken for a {settings['type']} query by its name.")
            )
        if "type" in settings and settings.get("field") == "" and not settings.get("query"):
            if settings["type"] not in _FIELDS:
                raise ExportError(
                    f"{part.ranker}.field: expected the name of its {settings['type']}; found nothing."
                )
            settings["field"] = _FIELDS[settings["type"]]
            notes.append(
                Note("field-assumed", 1, f"{part.ranker} searches the field {settings['field']!r}: set its field.")
            )
    return shared, own, notes


WINDOW = Setting("window", "", "how many documents of each ranker to fuse; the model's depth if left out", "count")


def _checked(setting: Setting, value: str, key: str) -> str:
    if setting.choices and value not in setting.choices:
        raise ExportError(f"{key}: expected one of {', '.join(setting.choices)}; found {value!r:.80}.")
    if setting.kind == "count" and not (value.isascii() and value.isdigit() and 0 < int(value) < 10**9):
        raise ExportError(f"{key}: expected a whole number above 0; found {value!r:.80}.")
    if setting.kind == "name" and (not value or not value.isprintable()):
        raise ExportError(f"{key}: expected a name; found {value!r:.80}.")
    if setting.kind == "json":
        try:
            json.loads(value)
        except json.JSONDecodeError as error:
            raise ExportError(f"{key}: expected JSON; {error.msg} at character {error.pos}.") from None
    return value


def guessed_type(ranker: str) -> str:
    """Return "text" or "vector" by the words in a ranker's name."""
    return "text" if any(word in ranker.lower() for word in _LEXICAL) else "vector"
