"""From a model to text that an engine accepts: rules to train under, the export, and what it loses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genm.align import Aligned
from genm.errors import ExportError, InputError
from genm.export.engines import find_target, targets
from genm.export.normalizer_match import nearest_lines
from genm.export.plan import Reason, order_for, usual_technique, usual_window
from genm.export.simulation import ranking, top
from genm.export.target import Exported, Lists, Target, Technique, rankers_text, weights_text
from genm.fuse import fuse_scores
from genm.model import Model, align_for_model
from genm.normalizers import Normalizer
from genm.records import Note, Run

_TIE = 1e-9  # relative: two sums this close are one score computed in another order
_ROUNDED = 1e-6  # how far single precision may be from a cosine of 1


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
    engine fuses are refused, and so is a window that it does not take. Notes name runs whose scores cannot be
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
    if normalizer.is_rank_based and not target.orders_by_id:
        return replace(normalizer, ties="given")
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
    `approximate`: then it is changed to fit, and the notes say how; `measured_loss` measures what that costs. An
    engine that takes straight lines only gets the nearest ones on `runs`, if they are given.
    """
    target = find_target(to)
    check_one_vector(model)
    order, reasons, notes = order_for(model, target, settings or {})
    if reasons and not approximate:
        raise ExportError(_refusal(model, target, reasons))
    if reasons and runs is not None:
        aligned = runs if isinstance(runs, Aligned) else align_for_model(model, runs)
        order, reasons, notes = order_for(model, target, settings or {}, nearest_lines(aligned))
    document = target.code.compose(order)
    said = [Note("approximate", 1, f"Not exact: {reason.text}.") for reason in reasons]
    known = [Note("engine", 1, text) for text in target.notes]
    return Exported(
        text=target.code.render(document),
        media_type=target.file.media_type,
        file_name=f"learned_{target.name.replace('-', '_')}.{target.file.suffix}",  # no name that hides a library
        document=document,
        notes=(*said, *notes, *known),
    )


def check_one_vector(model: Model) -> None:
    """Refuse a model whose weights differ from query to query: one artefact holds one vector of weights."""
    if model.gate is not None:
        raise ExportError(
            "no engine computes the features of a per-query gate. Send the weights with each request (they come "
            "from "
            "Model.query_weights, or let genm serve fuse), or export the global weights: --group global."
        )
    if model.groups is not None and any(one != model.weights for one in model.groups.weights.values()):
        raise ExportError(
            f"this model has weights for the groups {', '.join(model.groups.weights)}: one file for each. Name a "
            f"folder "
            f"(-o FOLDER), or one group (--group NAME, global for all other queries); in Python use "
            f"export_groups, or "
            f"Model.for_group."
        )


def why_not(model: Model, to: str, *, settings: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return why the target cannot express the model exactly; nothing if it can."""
    target = find_target(to)
    order, reasons, _ = order_for(model, target, settings or {})
    if not reasons:
        target.code.compose(order)  # refuses rankers that the engine cannot tell apart
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
        f"To write it anyway, ask for an approximate export (--approximate)."
    )


def _remedies(reasons: list[Reason]) -> list[str]:
    """Return what to do, each thing once; training under the target's rules puts several right at once."""
    by_training = [reason.remedy for reason in reasons if reason.by_training]
    rules = [remedy for remedy in by_training if "--target" in remedy]
    return list(dict.fromkeys([*(rules[-1:] or by_training), *(r.remedy for r in reasons if not r.by_training)]))


@dataclass(frozen=True, slots=True)
class Loss:
    """How many queries get another top of the ranking in the engine than from the model."""

    n_queries: int
    n_changed: int
    """Queries whose first documents differ, in themselves or in their order."""
    n_members_changed: int
    """Queries that lose at least one of their first documents to another."""
    at: int

    @property
    def share(self) -> float:
        """The share of queries whose first documents differ."""
        return self.n_changed / self.n_queries if self.n_queries else 0.0


def measured_loss(
    model: Model,
    to: str,
    runs: Mapping[str, Run] | Aligned,
    *,
    at: int = 10,
    settings: Mapping[str, str] | None = None,
) -> Loss:
    """Return for how many queries the target, given what `export_model` writes, changes the first `at` documents.

    Runs are better than an Aligned, whose lists end at the model's depth: an engine with a larger window would
    look further.
    """
    if at < 1:
        raise InputError(f"at: expected a positive integer; found {at}.")
    if isinstance(runs, Aligned):
        aligned, lists = runs, _lists_of_aligned(runs)
    else:
        aligned = align_for_model(model, runs)
        rules = zip(model.rankers, model.normalizers, strict=True)
        ranked = [runs[name].in_given_order() if rule.ties == "given" else runs[name] for name, rule in rules]
        lists = _lists_of_runs(ranked, list(aligned.queries))
    if aligned.rankers != model.rankers:
        raise InputError(f"expected the rankers {', '.join(model.rankers)}; found {', '.join(aligned.rankers)}.")
    target = find_target(to)
    order, reasons, _ = order_for(model, target, settings or {})
    if reasons:
        order, _, _ = order_for(model, target, settings or {}, nearest_lines(aligned))
    document = target.code.compose(order)
    kept = [model.rankers.index(part.ranker) for part in order.parts]
    fused = fuse_scores(aligned, np.array(model.weights))
    ids, doc = list(aligned.docs), aligned.doc.tolist()
    n_changed = n_members = 0
    for q, of_query in enumerate(lists):
        rows = range(int(aligned.starts[q]), int(aligned.starts[q + 1]))
        ours = {ids[doc[row]]: float(fused[row]) for row in rows}
        theirs = ranking(target.code.simulate(document, [of_query[i] for i in kept]))[:at]
        n_changed += not same_top(ours, theirs, at)
        n_members += not same_members(ours, theirs, at)
    return Loss(len(aligned.queries), n_changed, n_members, at)


def same_top(ours: Mapping[str, float], theirs: Sequence[str], at: int) -> bool:
    """Whether a ranking starts as our scores say; documents whose scores are all but equal may trade places."""
    best = list(top(ours, at))
    if len(theirs[:at]) != len(best):
        return False
    close = _TIE * max((abs(score) for score in ours.values()), default=0.0)
    return all(
        mine == other or (other in ours and abs(ours[mine] - ours[other]) <= close)
        for mine, other in zip(best, theirs, strict=False)
    )


def same_members(ours: Mapping[str, float], theirs: Sequence[str], at: int) -> bool:
    """Whether the same documents, in any order, come first; the last place may go to an equal."""
    best = top(ours, at)
    if len(theirs[:at]) != len(best):
        return False
    close = _TIE * max((abs(score) for score in ours.values()), default=0.0)
    last = min(best.values(), default=0.0)
    return all(doc in best or (doc in ours and ours[doc] >= last - close) for doc in theirs[:at])


def _lists_of_runs(runs: Sequence[Run], queries: Sequence[str]) -> Iterator[Lists]:
    tables = []
    for run in runs:
        ids, doc, score = list(run.docs), run.doc.tolist(), run.score.tolist()
        place = {query: q for q, query in enumerate(run.queries)}
        tables.append((ids, doc, score, run.starts.tolist(), place))
    for query in queries:
        lists: list[dict[str, float]] = []
        for ids, doc, score, starts, place in tables:
            q = place.get(query)
            rows = range(0) if q is None else range(starts[q], starts[q + 1])
            lists.append({ids[doc[row]]: score[row] for row in rows})
        yield lists


def _lists_of_aligned(aligned: Aligned) -> Iterator[Lists]:
    ids, doc = list(aligned.docs), aligned.doc.tolist()
    for q in range(len(aligned.queries)):
        rows = range(int(aligned.starts[q]), int(aligned.starts[q + 1]))
        yield [
            {ids[doc[row]]: float(aligned.raw[row, k]) for row in rows if aligned.retrieved[row, k]}
            for k in range(len(aligned.rankers))
        ]
