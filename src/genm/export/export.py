"""From a model to text that an engine accepts, and the rules to train under for that engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from genm.align import Aligned
from genm.errors import ExportError
from genm.export.normalizer_match import nearest_lines
from genm.export.plan import Reason, order_for, usual_technique, usual_window
from genm.export.registry import find_target, targets
from genm.export.target import Exported, Target, Technique, rankers_text, weights_text
from genm.model import Model, align_for_model
from genm.normalizers import Normalizer
from genm.records import Note, Run

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


def export_model(
    model: Model,
    to: str,
    *,
    settings: Mapping[str, str] | None = None,
    approximate: bool = False,
    runs: Mapping[str, Run] | Aligned | None = None,
) -> Exported:
    """Write the model as the target's request, pipeline, profile, statement or code.

    A model that the target cannot express exactly is refused with the reasons and what comes nearest, unless
    `approximate`: then it is bent to fit and the notes say how; `measured_loss` tells what that costs. An engine
    that knows straight lines only gets those that come nearest on `runs`, if they are given.
    """
    target = find_target(to)
    order, reasons, notes = order_for(model, target, settings or {})
    if reasons and not approximate:
        raise ExportError(_refusal(model, target, reasons))
    if reasons and runs is not None:
        aligned = runs if isinstance(runs, Aligned) else align_for_model(model, runs)
        order, reasons, notes = order_for(model, target, settings or {}, nearest_lines(aligned))
    document = target.compose(order)
    said = [Note("approximate", 1, f"Not exact: {reason.text}.") for reason in reasons]
    told = [Note("engine", 1, text) for text in target.notes]
    return Exported(
        text=target.render(document),
        media_type=target.media_type,
        file_name=f"learned_{target.name.replace('-', '_')}.{target.suffix}",  # no name that hides a library
        document=document,
        notes=(*said, *notes, *told),
    )


def why_not(model: Model, to: str, *, settings: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return why the target cannot express the model exactly; nothing if it can."""
    target = find_target(to)
    order, reasons, _ = order_for(model, target, settings or {})
    if not reasons:
        target.compose(order)  # refuses rankers that the engine cannot tell apart
    return tuple(reason.text for reason in reasons)


def exact_targets(model: Model) -> tuple[str, ...]:
    """Return the names of the targets that express the model exactly as it is."""
    return tuple(name for name, reasons in obstacles(model).items() if not reasons)


def obstacles(model: Model) -> dict[str, tuple[str, ...]]:
    """Return, for every target, why it cannot express the model exactly with no setting given."""
    found: dict[str, tuple[str, ...]] = {}
    for name in targets():
        try:
            found[name] = why_not(model, name)
        except ExportError as error:
            found[name] = (str(error).rstrip("."),)
    return found


def describe_targets(model: Model | None = None) -> list[dict[str, Any]]:
    """Return the facts of every target: what it is, what it takes and, given a model, whether exactly that one."""
    found = obstacles(model) if model is not None else {}
    return [
        {
            "name": target.name,
            "engine": target.title,
            "versions": target.versions,
            "normalisers": [technique.word for technique in target.techniques],
            "rankers": rankers_text(target),
            "weights": weights_text(target),
            **({"exact": not found[name], "reasons": list(found[name])} if name in found else {}),
        }
        for name, target in targets().items()
    ]


def _refusal(model: Model, target: Target, reasons: list[Reason]) -> str:
    causes = "; ".join(reason.text for reason in reasons)
    others = exact_targets(model)
    elsewhere = f" As it is, the model goes exactly to {', '.join(others)}." if others else ""
    return (
        f"{target.title} cannot express this model exactly: {causes}. "
        f"Nearest exact way: {', and '.join(_remedies(reasons))}.{elsewhere} "
        f"To write it all the same, ask for an approximate export (--approximate)."
    )


def _remedies(reasons: list[Reason]) -> list[str]:
    """Return what to do, each thing once; training under the target's rules puts several right at once."""
    by_training = [reason.remedy for reason in reasons if reason.by_training]
    rules = [remedy for remedy in by_training if "--target" in remedy]
    return list(dict.fromkeys([*(rules[-1:] or by_training), *(r.remedy for r in reasons if not r.by_training)]))
