"""The rules to train under, so that exported weights do in the engine what they did in training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from genm.errors import ExportError
from genm.export.ordering import usual_technique, usual_window
from genm.export.registry import find_target
from genm.export.target import Target, Technique
from genm.records import Normalizer, Run


@dataclass(frozen=True, slots=True)
class TrainingRules:
    """What `align_runs` is to be given: a normaliser for each ranker, and one depth for all."""

    normalizers: Mapping[str, Normalizer]
    depth: int | None


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
    engine fuses are refused, and so is a window that it does not take.
    """
    target, asked = find_target(to), dict(techniques or {})
    unknown = [name for name in asked if name != "*" and name not in rankers]
    if unknown:
        raise ExportError(f"techniques: expected the rankers {', '.join(rankers)}; found {', '.join(unknown)}.")
    _check_count(target, len(rankers))
    _check_window(target, window)
    normalizers = {}
    for name in rankers:
        word = asked.get(name, asked.get("*", usual_technique(target, name)))
        run = rankers[name] if isinstance(rankers, Mapping) else None
        normalizers[name] = _bounded(_technique(target, word), run, target)
    if target.window.rerank:
        return TrainingRules(normalizers, None)
    return TrainingRules(normalizers, window or usual_window(target))


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


def _bounded(technique: Technique, run: Run | None, target: Target) -> Normalizer:
    normalizer = technique.normalizer
    if normalizer.kind != "affine" or run is None or not len(run.score):
        return normalizer
    low, high = float(run.score.min()), float(run.score.max())
    low = 0.0 if target.window.rerank else min(low, 0.0)  # a document that does not match scores 0 there
    return replace(normalizer, lower=low, upper=high) if high > low else normalizer
