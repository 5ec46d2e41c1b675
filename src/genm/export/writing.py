"""From a model to text that an engine accepts, and how far that text is from the model."""

from collections.abc import Mapping

from genm.align import Aligned
from genm.errors import ExportError
from genm.export.lines import nearest_lines
from genm.export.plan import Reason, order_for
from genm.export.registry import find_target, targets
from genm.export.target import Exported, Target
from genm.learn import align_for_model
from genm.model import Model
from genm.records import Note, Run


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
