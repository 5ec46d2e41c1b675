"""The rules to train under, so that exported weights do in the engine what they did in training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from genm.errors import ExportError
from genm.export.plan import usual_technique, usual_window
from genm.export.registry import find_target
from genm.export.target import Target, Technique
from genm.records import Normalizer, Note, Run

_ROUNDED = 1e-6  # how far single precision strays from a cosine of 1


@dataclass(frozen=True, slots=True)
class TrainingRules:
    """What `align_runs` is to be given: a normaliser for each ranker, and one depth for all."""

    normalizers: Mapping[str, Normalizer]
    depth: int | None
    notes: tuple[Note, ...] = ()
    """Runs whose scores cannot be the engine's own."""


def training_rules(
    to: str,
    rankers: Mapping[str, Run] | Sequence[str],
    *,
    techniques: Mapping[str, str] | None = None,
    window: int | None = None,
) -> TrainingRules:
    """Return the target's own normalisers and window for these rankers.

    `techniques` names one of the target's techniques for a ranker (or for all, under "*"); else it is the
    target's first. Where an engine takes fixed bounds only, they are the ends of the given runs' scores. The
    window is the engine's default, though at least 100, unless another is given. More or fewer rankers than the
    engine fuses are refused, and so is a window that it does not take. Notes tell of runs whose scores cannot be
    the engine's own, where their size matters.
    """
    target, asked = find_target(to), dict(techniques or {})
    unknown = [name for name in asked if name != "*" and name not in rankers]
    if unknown:
        raise ExportError(f"techniques: expected the rankers {', '.join(rankers)}; found {', '.join(unknown)}.")
    _check_count(target, len(rankers))
    _check_window(target, window)
    normalizers, notes = {}, []
    for name in rankers:
        technique = _technique(target, asked.get(name, asked.get("*", usual_technique(target, name))))
        run = rankers[name] if isinstance(rankers, Mapping) else None
        normalizers[name] = _bounded(technique, run, target)
        notes += _foreign(name, technique, run, target)
    depth = None if target.window.rerank else window or usual_window(target)
    return TrainingRules(normalizers, depth, tuple(notes))


def _check_count(target: Target, n: int) -> None:
    least, most = target.n_rankers
    if n < least or (most is not None and n > most):
        wanted = f"exactly {least}" if least == most else f"at least {least}" if n < least else f"at most {most}"
        raise ExportError(f"{target.title} fuses {wanted} rankers; found {n}. Give it that many runs.")


def _check_window(target: Target, given: int | None) -> None:
    window = target.window
    if given is None:
        return
    if window.rerank:
        raise ExportError(
            f"{target.title} scores every candidate by every ranker: there is no window. Leave it out, and train "
            f"on runs that hold all candidates."
        )
    if given < window.least or (window.most is not None and given > window.most):
        limit = f"{window.least} to {window.most}" if window.most else f"{window.least} or more"
        raise ExportError(f"window: expected {limit} for {target.title}; found {given}.")


def _technique(target: Target, word: str) -> Technique:
    for technique in target.techniques:
        if technique.word == word:
            return technique
    words = ", ".join(technique.word for technique in target.techniques)
    raise ExportError(f"{target.title}: expected a technique of {words}; found {word!r:.60}.")


def _foreign(ranker: str, technique: Technique, run: Run | None, target: Target) -> list[Note]:
    """Say that a run's scores are not what the engine's would be, on which the weights then do not hold."""
    least, most = technique.scores
    if run is None or not len(run.score):
        return []
    low, high = float(run.score.min()), float(run.score.max())
    if low >= least - _ROUNDED and high <= most + _ROUNDED:
        return []
    wanted = f"{least:g} to {most:g}".replace(" to inf", " or more").replace("-inf to ", "at most ")
    others = [
        other.word
        for other in target.techniques
        if other.group == technique.group and other.scores[0] <= low and high <= other.scores[1]
    ]
    advice = f", or train with --technique {ranker}={others[0]}" if others else ""
    text = (
        f"{ranker} has scores from {low:g} to {high:g}, and those that {target.title} takes by {technique.word} "
        f"are {wanted}. The weights will hold for the scores of training: write down the engine's own{advice}."
    )
    return [Note("foreign-scores", 1, text)]


def _bounded(technique: Technique, run: Run | None, target: Target) -> Normalizer:
    normalizer = technique.normalizer
    if normalizer.kind != "affine" or run is None or not len(run.score):
        return normalizer
    low, high = float(run.score.min()), float(run.score.max())
    low = 0.0 if target.window.rerank else min(low, 0.0)  # a document that does not match scores 0 there
    return replace(normalizer, lower=low, upper=high) if high > low else normalizer
