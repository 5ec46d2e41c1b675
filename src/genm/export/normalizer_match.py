"""Whether an engine's technique equals a model's normaliser, where they differ, and the nearest line."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from genm._math.linear_algebra import dot
from genm.align import Aligned
from genm.export.target import Technique
from genm.normalizers import Normalizer, NormalizerKind

_EVERY = frozenset({"kind", "scale", "shift", "floor", "floor_at", "missing"})
_BOUNDS = frozenset({"lower", "upper", "lower_mode", "upper_mode"})
_STUCK = frozenset({"constant", "constant_within"})
_READ: Mapping[NormalizerKind, frozenset[str]] = {
    "none": _EVERY,
    "minmax": _EVERY | _BOUNDS | _STUCK,
    "max": _EVERY | _STUCK,
    "sum": _EVERY | _STUCK,
    "zscore": _EVERY | _STUCK | {"ddof", "at_mean"},
    "l2": _EVERY | _STUCK,
    "rank": _EVERY,
    "reciprocal": _EVERY | {"k"},
    "affine": _EVERY | _BOUNDS,
    "atan": _EVERY,
    "sigmoid": _EVERY,
}
_DEFAULT = Normalizer()

_SENTENCES: Mapping[str, str] = {
    "constant": "gives a list of equal scores {}, not {}",
    "constant_within": "calls scores equal within {}, not within {}",
    "floor": "has {}, not {}",
    "floor_at": "lifts scores at or below {} to its floor, not those at or below {}",
    "ddof": "divides the variance by n - {}, not by n - {}",
    "at_mean": "gives a document at the mean {}, not {}",
    "missing": "gives a document that the ranker lacks {}, not {}",
}
_KINDS = {"affine": "affine (fixed bounds)", "none": "none (raw scores)"}
_WORDS: Mapping[str, Mapping[object, str]] = {
    "constant": {"raw": "its raw scores"},
    "at_mean": {None: "its z-score", "max": "the list's highest score"},
    "floor": {None: "no floor"},
    "missing": {"minimum": "the list's lowest score"},
}

Line = tuple[float, float]
"""Slope and offset: slope * raw score + offset."""


@dataclass(frozen=True, slots=True)
class Match:
    """A technique compared with a normaliser; without differences both compute the same."""

    technique: Technique
    differences: tuple[str, ...]
    normalizer: Normalizer
    """The normaliser as the technique would have it: the model's where they agree."""


def canonical(normalizer: Normalizer) -> Normalizer:
    """Return the normaliser with everything that its kind does not read put back to the default."""
    read = _READ[normalizer.kind]
    kept = {f.name: getattr(normalizer if f.name in read else _DEFAULT, f.name) for f in fields(Normalizer)}
    for end in ("lower", "upper"):
        if kept[end] is None or kept[f"{end}_mode"] == "ignore":
            kept[end], kept[f"{end}_mode"] = None, "apply"
    if kept["floor"] is None:
        kept["floor_at"] = None
    elif kept["floor_at"] is None:
        kept["floor_at"] = kept["floor"]
    return Normalizer(**kept)


def line_of(normalizer: Normalizer) -> tuple[float, float] | None:
    """Return (slope, offset) when the normalised score is slope * score + offset for every list."""
    if normalizer.floor is not None or normalizer.kind not in ("none", "affine"):
        return None
    if normalizer.kind == "none":
        return normalizer.scale, normalizer.shift
    lower, upper = normalizer.lower, normalizer.upper
    modes = (normalizer.lower_mode, normalizer.upper_mode)
    if lower is None or upper is None or modes != ("apply", "apply") or not upper > lower:
        return None
    slope = normalizer.scale / (upper - lower)
    return slope, normalizer.shift - slope * lower


def at_zero(normalizer: Normalizer) -> float | None:
    """Return what a raw score of 0 becomes, where that does not depend on the list."""
    line = line_of(normalizer)
    if line is not None:
        return line[1]
    if normalizer.floor is not None or normalizer.kind not in ("atan", "sigmoid"):
        return None
    return normalizer.shift + (0.5 * normalizer.scale if normalizer.kind == "sigmoid" else 0.0)


def match(normalizer: Normalizer, technique: Technique) -> Match:
    """Compare a normaliser with a technique, field by field."""
    own = canonical(normalizer)
    theirs = canonical(technique.normalizer)
    if technique.line != "no" and (line := line_of(own)) is not None:
        return _match_line(own, technique, line)
    if own.kind != theirs.kind:  # the rest of the list would only repeat it
        difference = f"is {_KINDS.get(own.kind, own.kind)}, not {_KINDS.get(theirs.kind, theirs.kind)}"
        return Match(technique, (difference,), technique.normalizer)
    differences: list[str] = []
    agreed: dict[str, object] = {}
    for item in fields(Normalizer):
        mine, engines = getattr(own, item.name), getattr(theirs, item.name)
        if item.name in technique.free or (technique.bounds and item.name in _BOUNDS):
            agreed[item.name] = mine
            differences += _not_whole(item.name, mine, technique) + _not_mode(item.name, own, technique)
        elif mine != engines and not (item.name == "floor_at" and own.floor != theirs.floor):
            differences.append(_difference(item.name, mine, engines))
    return Match(technique, tuple(differences), replace(theirs, **agreed))  # type: ignore[arg-type]


def nearest(normalizer: Normalizer, techniques: tuple[Technique, ...], preferred: str = "") -> Match:
    """Return the technique that differs in the fewest things; of equals the preferred, or the target's first."""
    held = [match(normalizer, technique) for technique in techniques]
    kind = canonical(normalizer).kind
    return min(
        held,
        key=lambda m: (
            bool(m.differences),
            m.technique.normalizer.kind != kind,
            m.technique.word != preferred if m.technique.normalizer.kind != kind else len(m.differences),
        ),
    )


def _difference(name: str, mine: object, engines: object) -> str:
    """Say one difference, what the model has first."""
    sentence = _SENTENCES.get(name, f"has {name} {{}}, not {{}}")
    words = _WORDS.get(name, {})
    shown = [words.get(value, _shown(value)) for value in (mine, engines)]
    if name == "floor":
        shown = [text if text == words[None] else f"a floor of {text}" for text in shown]
    return sentence.format(*shown)


def _match_line(own: Normalizer, technique: Technique, line: tuple[float, float]) -> Match:
    slope, offset = line
    differences = []
    if technique.line == "slope" and offset != 0.0:
        differences.append(f"adds {offset:g} to every score, which it cannot")
    if technique.line == "slope" and slope <= 0.0:
        differences.append(f"has a slope of {slope:g}, which must be above 0 to go into the weight")
    if slope == 0.0:
        differences.append("has a scale of 0, which leaves nothing of the score")
    if own.missing != technique.normalizer.missing and "missing" not in technique.free:
        differences.append(_difference("missing", own.missing, technique.normalizer.missing))
    elif own.missing == "minimum":
        differences.append("gives a document that the ranker lacks the list's lowest score, not a number")
    known = own if own.missing != "minimum" else replace(own, missing=technique.normalizer.missing)
    return Match(technique, tuple(differences), known)


def _not_whole(name: str, value: object, technique: Technique) -> list[str]:
    if name not in technique.whole or not isinstance(value, float | int):
        return []
    low, high = technique.whole[name]
    if float(value).is_integer() and low <= value <= high:
        return []
    return [f"has {name} {_shown(value)}, not a whole number from {low:g} to {high:g}"]


def _not_mode(name: str, own: Normalizer, technique: Technique) -> list[str]:
    if name not in ("lower_mode", "upper_mode") or getattr(own, name.removesuffix("_mode")) is None:
        return []
    mode = getattr(own, name)
    if mode in technique.bounds:
        return []
    known = " or ".join(sorted(technique.bounds))
    return [f"has the {name.removesuffix('_mode')} bound in the mode {mode}, not {known}"]


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def nearest_lines(aligned: Aligned) -> Mapping[str, Line]:
    """Return each ranker's line of least squares from raw to normalised scores.

    Only differences inside a query's list make a ranking, so the slope is fitted to those; the offset then makes
    the means agree. Rankers whose scores do not rise with the raw ones have none.
    """
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    lines = {}
    for k, ranker in enumerate(aligned.rankers):
        rows = aligned.retrieved[:, k]
        raw, scores, of = aligned.raw[rows, k], aligned.scores[rows, k], query[rows]
        n = np.maximum(np.bincount(of, minlength=len(aligned.queries)), 1)
        x = raw - (np.bincount(of, raw, len(n)) / n)[of]
        y = scores - (np.bincount(of, scores, len(n)) / n)[of]
        spread = dot(x, x)
        slope = dot(x, y) / spread if spread > 0.0 else 0.0
        if slope > 0.0:
            lines[ranker] = (slope, float(scores.mean() - slope * raw.mean()))
    return lines
