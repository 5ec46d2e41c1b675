"""From a model and settings to an Order that the target can carry out: refused, or bent and said so."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from genm.errors import ExportError
from genm.export.matching import Match, at_zero, nearest
from genm.export.target import Order, Part, Setting, Target
from genm.model import Model
from genm.records import Normalizer, Note

_LEXICAL = ("bm25", "tfidf", "tf-idf", "text", "lexical", "keyword", "sparse", "splade", "word", "title", "body")
_FIELDS = {"text": "text", "vector": "embedding"}
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a model is not exactly what the target computes, and what would be."""

    text: str
    remedy: str


def order_for(model: Model, target: Target, settings: Mapping[str, str]) -> tuple[Order, list[Reason], list[Note]]:
    """Return what the target is to be told, every reason why that is not exactly the model, and notes."""
    reasons: list[Reason] = []
    parts = _kept_parts(model, target, reasons)
    shared, own, notes = _resolved(parts, target, settings)
    window_given = int(shared["window"]) if shared.get("window") else None
    parts, window = _windowed(parts, target, window_given, reasons, notes)
    parts = _normalised(parts, target, reasons)
    parts = _weighted(parts, target, reasons)
    settled = tuple(replace(part, settings=own[part.ranker]) for part in parts)
    return Order(settled, window, shared), reasons, notes


def _kept_parts(model: Model, target: Target, reasons: list[Reason]) -> list[Part]:
    rows = zip(model.rankers, model.weights, model.normalizers, model.depths, strict=True)
    parts = [Part(name, weight, normalizer, "", depth, {}) for name, weight, normalizer, depth in rows]
    least, most = target.n_rankers
    if len(parts) < least:
        wanted = f"exactly {least}" if most == least else f"at least {least}"
        raise ExportError(f"{target.title} fuses {wanted} rankers; the model has {len(parts)}.")
    if most is not None and len(parts) > most:
        kept = sorted(parts, key=lambda part: -abs(part.weight))[:most]
        dropped = [part.ranker for part in parts if part not in kept]
        reasons.append(
            Reason(
                f"it fuses at most {most} rankers and the model has {len(parts)}; "
                f"{', '.join(dropped)} would be left out",
                f"fit again with {most} rankers",
            )
        )
        parts = [part for part in parts if part in kept]
    return parts


def _normalised(parts: list[Part], target: Target, reasons: list[Reason]) -> list[Part]:
    matches = [nearest(part.normalizer, target.techniques) for part in parts]
    groups = {match.technique.group for match in matches}
    if len(groups) > 1:
        words = ", ".join(f"{p.ranker}: {m.technique.word}" for p, m in zip(parts, matches, strict=True))
        chosen = _heaviest(parts, matches).technique
        fitting = tuple(t for t in target.techniques if t.group == chosen.group)
        reasons.append(
            Reason(
                f"these ways of normalising do not go together ({words}); all would be as {chosen.word}",
                f"fit again with {chosen.word} for every ranker",
            )
        )
        matches = [replace(nearest(part.normalizer, fitting), differences=()) for part in parts]
    for name in sorted(target.shared):
        values = {getattr(match.normalizer, name) for match in matches}
        if len(values) > 1:
            value = getattr(_heaviest(parts, matches).normalizer, name)
            reasons.append(
                Reason(
                    f"it has one {name} for all rankers and this model has {len(values)}; all would get {value:g}",
                    f"fit again with one {name}",
                )
            )
            matches = [replace(match, normalizer=_with(match.normalizer, name, value)) for match in matches]
    for part, found in zip(parts, matches, strict=True):
        reasons.extend(_normalizer_reasons(part, found, target))
    return [
        replace(part, normalizer=found.normalizer, technique=found.technique.word)
        for part, found in zip(parts, matches, strict=True)
    ]


def _normalizer_reasons(part: Part, found: Match, target: Target) -> list[Reason]:
    word, remedy = found.technique.word, f"fit again with --target {target.name}"
    if found.differences:
        return [
            Reason(f"the normaliser of {part.ranker} has {'; '.join(found.differences)} (nearest: {word})", remedy)
        ]
    zero, gap = at_zero(part.normalizer), part.normalizer.missing
    if target.window.rerank and zero is not None and (isinstance(gap, str) or abs(gap - zero) > _NEGLIGIBLE):
        text = f"a document that {part.ranker} does not match scores 0 there, normalised {zero:g}, not {gap}"
        return [Reason(text, f"fit again with missing {zero:g}")]
    return []


def _windowed(
    parts: list[Part], target: Target, given: int | None, reasons: list[Reason], notes: list[Note]
) -> tuple[list[Part], int]:
    window = target.window
    if given is not None and not window.least <= given <= (window.most or given):
        limit = f"{window.least} to {window.most}" if window.most else f"{window.least} or more"
        raise ExportError(f"window: expected {limit} for {target.title}; found {given}.")
    if window.rerank:
        if any(part.depth is not None for part in parts):
            reasons.append(
                Reason(
                    "it scores every candidate by every ranker, and the model was trained on lists cut at "
                    f"{', '.join(str(part.depth) for part in parts)}",
                    "fit again without a depth, on runs in which every ranker scores every candidate",
                )
            )
        notes.append(
            Note(
                "complete-runs",
                1,
                f"{target.title} computes every ranker's score for every candidate: the model holds if it "
                f"was trained on such runs, all candidates in each.",
            )
        )
        return parts, given or window.default or 100
    known = [part.depth for part in parts if part.depth is not None]
    fallback = given or max(known, default=window.default or 100)
    depths = [part.depth if part.depth is not None else fallback for part in parts]
    unknown = [part.ranker for part in parts if part.depth is None]
    if unknown and given is None:
        reasons.append(
            Reason(
                f"it looks at {fallback} documents of each ranker, and the model was trained on whole lists "
                f"({', '.join(unknown)})",
                f"fit again with a depth of {fallback}, or set window to the length of the run files",
            )
        )
    elif unknown:
        notes.append(Note("window-stated", 1, f"Exact if no list in training was longer than {given}."))
    if given is not None and known and any(depth != given for depth in known):
        reasons.append(Reason(f"window is {given} and the model was trained at {known}", "leave window out"))
        depths = [given] * len(parts)
    if not window.each and len(set(depths)) > 1:
        reasons.append(
            Reason(f"it has one window for all rankers, and the model has {depths}", "fit again with one depth")
        )
        depths = [max(depths)] * len(parts)
    for i, depth in enumerate(depths):
        allowed = max(depth, window.least)
        allowed = min(allowed, window.most or allowed)
        if allowed != depth:
            limit = f"at least {window.least}" if depth < window.least else f"at most {window.most}"
            reasons.append(
                Reason(f"its window is {limit} and {parts[i].ranker} has {depth}", f"fit again at {allowed}")
            )
        depths[i] = allowed
    return [replace(part, depth=depth) for part, depth in zip(parts, depths, strict=True)], max(depths)


def _weighted(parts: list[Part], target: Target, reasons: list[Reason]) -> list[Part]:
    rule, weights = target.weights, [part.weight for part in parts]
    if rule.least is not None and any(w < rule.least or (rule.above and w <= rule.least) for w in weights):
        bound = f"above {rule.least:g}" if rule.above else f"of at least {rule.least:g}"
        bad = [p.ranker for p, w in zip(parts, weights, strict=True) if w < rule.least or w <= 0]
        reasons.append(Reason(f"it takes weights {bound} ({', '.join(bad)})", "fit again without these rankers"))
        tiny = 1e-6 if rule.above else rule.least
        weights = [max(w, tiny) for w in weights]
    if rule.equal and max(weights) - min(weights) > _NEGLIGIBLE:
        reasons.append(
            Reason(
                "its weights bend the ranks instead of multiplying the scores, so only equal weights keep "
                "their meaning",
                "use equal weights, or fuse by scores",
            )
        )
    total = sum(weights)
    if (rule.sum_to_one or rule.most is not None) and total > 0:
        weights = [w / total for w in weights]
    return [replace(part, weight=w) for part, w in zip(parts, weights, strict=True)]


def _resolved(
    parts: list[Part], target: Target, given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, dict[str, str]], list[Note]]:
    """Return the settings of the target and of each ranker: the given ones, checked, over the defaults."""
    known = {setting.name: setting for setting in (*target.settings, _WINDOW)}
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


_WINDOW = Setting("window", "", "how many documents of each ranker to fuse; the model's depth if left out", "count")


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


def _heaviest(parts: list[Part], matches: list[Match]) -> Match:
    return max(zip(parts, matches, strict=True), key=lambda pair: abs(pair[0].weight))[1]


def _with(normalizer: Normalizer, name: str, value: object) -> Normalizer:
    return replace(normalizer, **{name: value})  # type: ignore[arg-type]
