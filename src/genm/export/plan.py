"""From a model and settings to an Order that the target can express, with reasons where it is not exact."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from genm.errors import ExportError
from genm.export.normalizer_match import Line, Match, at_zero, nearest
from genm.export.settings import guessed_type, resolved
from genm.export.target import Order, Part, Target, Technique
from genm.model import Model
from genm.normalizers import Normalizer
from genm.records import Note

_NEGLIGIBLE = 1e-12
_LEAST_WINDOW = 100
"""An engine's smaller default is meant for results to show, not for lists to fuse."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a model is not exactly what the target computes, and what would be."""

    text: str
    remedy: str
    by_training: bool = False
    """Whether training under the target's rules removes it."""


def order_for(
    model: Model, target: Target, settings: Mapping[str, str], lines: Mapping[str, Line] | None = None
) -> tuple[Order, list[Reason], list[Note]]:
    """Return what to export, every reason why that is not exactly the model, and notes.

    `lines` replace normalisers where the target takes straight lines only.
    """
    reasons: list[Reason] = []
    parts, notes = _weighted_parts(model, target)
    parts = _kept_parts(parts, target, settings, reasons)
    shared, own, assumed = resolved(parts, target, settings, model.rankers)
    notes += assumed
    window_given = int(shared["window"]) if shared.get("window") else None
    parts, window = _windowed(parts, target, window_given, reasons, notes)
    parts = [replace(part, settings=own[part.ranker]) for part in parts]
    parts = _normalised(parts, target, lines or {}, reasons)
    parts = _weighted(parts, target, reasons)
    return Order(tuple(parts), window, shared), reasons, notes


def _weighted_parts(model: Model, target: Target) -> tuple[list[Part], list[Note]]:
    """Return the model's rankers; where an engine takes no weight of 0, without those that have it."""
    rows = zip(model.rankers, model.weights, model.normalizers, model.depths, strict=True)
    parts = [Part(name, weight, normalizer, "", depth, {}) for name, weight, normalizer, depth in rows]
    silent = [part.ranker for part in parts if part.weight == 0.0]
    if not target.weights.above or not silent or len(silent) == len(parts):
        return parts, []
    text = (
        f"{_listed(silent)}: left out, since the weight is 0 and {target.title} takes weights above 0. Documents "
        f"that no other ranker returned come last in the model, and not at all there."
    )
    return [part for part in parts if part.weight != 0.0], [Note("left-out", len(silent), text)]


def _kept_parts(
    parts: list[Part], target: Target, settings: Mapping[str, str], reasons: list[Reason]
) -> list[Part]:
    least, most = target.n_rankers
    if len(parts) < least:
        wanted = f"exactly {least}" if most == least else f"at least {least}"
        raise ExportError(f"{target.title} fuses {wanted} rankers; the model has {len(parts)}.")
    if most is not None and len(parts) > most:
        kept = sorted(parts, key=lambda part: -abs(part.weight))
        if target.pair:  # the heaviest of each kind first
            kinds = [settings.get(f"{part.ranker}.type", guessed_type(part.ranker)) for part in kept]
            kept = [part for _, part in sorted(enumerate(kept), key=lambda at: kinds[at[0]] in kinds[: at[0]])]
        kept = kept[:most]
        dropped = [part.ranker for part in parts if part not in kept]
        reasons.append(
            Reason(
                f"it fuses at most {most} rankers and the model has {len(parts)}; "
                f"{', '.join(dropped)} would be left out",
                f"fit again without {_listed(dropped)}",
            )
        )
        parts = [part for part in parts if part in kept]
    return parts


def _normalised(parts: list[Part], target: Target, lines: Mapping[str, Line], reasons: list[Reason]) -> list[Part]:
    usual = [usual_technique(target, part.ranker) for part in parts]
    matches = [
        nearest(part.normalizer, _techniques_for(part, target), word)
        for part, word in zip(parts, usual, strict=True)
    ]
    groups = {match.technique.group for match in matches}
    if len(groups) > 1:
        words = ", ".join(f"{p.ranker}: {m.technique.word}" for p, m in zip(parts, matches, strict=True))
        chosen = _heaviest(parts, matches).technique
        matches = [
            replace(nearest(part.normalizer, _techniques_for(part, target, chosen.group), word), differences=())
            for part, word in zip(parts, usual, strict=True)
        ]
        reasons.append(
            Reason(
                f"these normalisations cannot be combined ({words}); all would be as {chosen.word}",
                _training(target, parts, matches),
                by_training=True,
            )
        )
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
    reasons.extend(_differing(parts, matches, target))
    reasons.extend(_unmatched(parts, matches, target))
    matches = [_with_line(found, lines.get(part.ranker)) for part, found in zip(parts, matches, strict=True)]
    return [
        replace(part, normalizer=found.normalizer, technique=found.technique.word)
        for part, found in zip(parts, matches, strict=True)
    ]


def _techniques_for(part: Part, target: Target, group: str | None = None) -> tuple[Technique, ...]:
    """Return the techniques for the kind of query that the ranker is, of one group if it is given."""
    kind = part.settings.get("type", "")
    return tuple(t for t in target.techniques if t.type in ("", kind) and group in (None, t.group))


def _with_line(found: Match, line: Line | None) -> Match:
    """Return the match with a fitted line for a normaliser that is none, if the engine could take it."""
    if line is None or not found.differences or found.technique.line == "no":
        return found
    shift = line[1] if found.technique.line == "any" else 0.0
    return replace(found, normalizer=Normalizer("none", scale=line[0], shift=shift))


def _differing(parts: list[Part], matches: list[Match], target: Target) -> list[Reason]:
    """Say how normalisers differ from the engine's, once for all rankers with the same differences."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for part, found in zip(parts, matches, strict=True):
        if found.differences:
            alike.setdefault((found.technique.word, found.differences), []).append(part.ranker)
    return [
        Reason(
            f"the normaliser of {_listed(rankers)} {', and it '.join(differences)} (nearest there: {word})",
            _training(target, parts, matches),
            by_training=True,
        )
        for (word, differences), rankers in alike.items()
    ]


def _unmatched(parts: list[Part], matches: list[Match], target: Target) -> list[Reason]:
    """Say which rankers give a document that they do not match something else than what 0 becomes."""
    reasons = []
    for part, found in zip(parts, matches, strict=True):
        zero, gap = at_zero(part.normalizer), part.normalizer.missing
        differs = zero is not None and (isinstance(gap, str) or abs(gap - zero) > _NEGLIGIBLE)
        if target.window.rerank and differs and not found.differences:
            text = f"a document that {part.ranker} does not match scores 0 there, normalised {zero:g}, not {gap}"
            reasons.append(Reason(text, f"fit again with missing {zero:g}"))
    return reasons


def _training(target: Target, parts: list[Part], matches: list[Match]) -> str:
    """Return the command that trains under the target's rules, with the techniques that come nearest."""
    words = {part.ranker: found.technique.word for part, found in zip(parts, matches, strict=True)}
    command = f"fit again with --target {target.name}"
    if all(word == usual_technique(target, ranker) for ranker, word in words.items()):
        return command
    if len(set(words.values())) == 1:
        return f"{command} --technique {_quoted(next(iter(words.values())))}"
    return f"{command} --technique {_quoted(','.join(f'{ranker}={word}' for ranker, word in words.items()))}"


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
                    f"{_listed([str(depth) for depth in dict.fromkeys(part.depth for part in parts)])}",
                    "train on uncut runs in which every ranker scores every candidate",
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
    fallback = given or max(known, default=usual_window(target))
    depths = [part.depth if part.depth is not None else fallback for part in parts]
    unknown = [part.ranker for part in parts if part.depth is None]
    if unknown and given is None:
        reasons.append(
            Reason(
                f"it fuses the first documents of each ranker, here {fallback}, and the model was trained on whole "
                f"lists ({', '.join(unknown)})",
                f"fit again with --depth {fallback}, or set window to the length of the longest list in training",
                by_training=True,
            )
        )
    elif unknown:
        notes.append(Note("window-stated", 1, f"Exact if no list in training was longer than {given}."))
    if given is not None and known and any(depth != given for depth in known):
        trained = _listed([str(depth) for depth in dict.fromkeys(known)])
        reasons.append(Reason(f"window is {given} and the model was trained at {trained}", "leave window out"))
        depths = [given] * len(parts)
    if not window.each and len(set(depths)) > 1:
        trained = _listed([str(depth) for depth in depths])
        reasons.append(
            Reason(
                f"it has one window for all rankers, and the model was trained at {trained}",
                f"fit again with --depth {max(depths)}",
                by_training=True,
            )
        )
        depths = [max(depths)] * len(parts)
    for i, depth in enumerate(depths):
        allowed = max(depth, window.least)
        allowed = min(allowed, window.most or allowed)
        if allowed != depth:
            limit = f"at least {window.least}" if depth < window.least else f"at most {window.most}"
            reasons.append(
                Reason(
                    f"its window is {limit} and {parts[i].ranker} has {depth}",
                    f"fit again with --depth {allowed}",
                    by_training=True,
                )
            )
        depths[i] = allowed
    return [replace(part, depth=depth) for part, depth in zip(parts, depths, strict=True)], max(depths)


def _weighted(parts: list[Part], target: Target, reasons: list[Reason]) -> list[Part]:
    rule, weights = target.weights, [part.weight for part in parts]
    if rule.least is not None and any(w < rule.least or (rule.above and w <= rule.least) for w in weights):
        bound = f"above {rule.least:g}" if rule.above else f"of at least {rule.least:g}"
        bad = [p.ranker for p, w in zip(parts, weights, strict=True) if w < rule.least or w <= 0]
        reasons.append(Reason(f"it takes weights {bound} ({', '.join(bad)})", f"fit again without {_listed(bad)}"))
        tiny = 1e-6 if rule.above else rule.least
        weights = [max(w, tiny) for w in weights]
    if rule.equal and max(weights) - min(weights) > _NEGLIGIBLE:
        reasons.append(
            Reason(
                "its weights divide the ranks instead of multiplying the scores, so only equal weights keep "
                "their meaning",
                f"fit again with --target {target.name}, which leaves them equal, or fuse by scores",
                by_training=True,
            )
        )
    total = sum(weights)
    if (rule.sum_to_one or rule.most is not None) and total > 0:
        weights = [w / total for w in weights]
    return [replace(part, weight=w) for part, w in zip(parts, weights, strict=True)]


def usual_window(target: Target) -> int:
    """Return how many documents of each ranker to train on: the engine's default, if that is worth training on."""
    window = target.window
    return max(window.default or _LEAST_WINDOW, window.least, min(_LEAST_WINDOW, window.most or _LEAST_WINDOW))


def usual_technique(target: Target, ranker: str) -> str:
    """Return the technique to train a ranker with unless another is asked for."""
    return target.words.get(guessed_type(ranker), target.techniques[0].word)


def _heaviest(parts: list[Part], matches: list[Match]) -> Match:
    return max(zip(parts, matches, strict=True), key=lambda pair: abs(pair[0].weight))[1]


def _with(normalizer: Normalizer, name: str, value: object) -> Normalizer:
    return replace(normalizer, **{name: value})  # type: ignore[arg-type]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _quoted(words: str) -> str:
    return f"'{words}'" if " " in words else words
