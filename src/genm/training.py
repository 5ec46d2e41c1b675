"""Training in one call: learn weights, cross-validate them, compare, warn; save and report the result.

`genm fit` is this call and a table. What reading, aligning and training found comes as notes with the result.
"""

import copy
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genm import display
from genm._typing import Floats
from genm.align import Aligned, AlignedOrRuns, Depths, align_runs, as_aligned, named_runs
from genm.errors import InputError
from genm.evaluate import Measure, MeasureLike, evaluate_run, parse_measure
from genm.evidence import (
    LEARNED,
    Evidence,
    Kept,
    QueryWeightsEvidence,
    evidence_path,
    gate_evidence,
    gather_evidence,
    gather_table_evidence,
    group_evidence,
    keep_evidence,
    keep_table_evidence,
    rivals_of_table,
    save_evidence,
    with_evidence,
    with_figures,
)
from genm.evidence.evidence import current_weights
from genm.evidence.unjudged import note_unjudged
from genm.explain import Losses, model_losses, why_no_losses
from genm.export import ExportError, export_model, find_target, obstacles, targets, training_rules
from genm.grouping import Grouping, Queries, groups_of_queries, parse_grouping
from genm.ids import find
from genm.io import write_text
from genm.learn import CotrainFuser, EqualFuser, ExactFuser, ExpectedFuser, Fuser, find_method, make_fuser
from genm.learn.objectives import with_level
from genm.learn.table import TableQueries
from genm.learn.table_fit import check_table_method, fit_table, settings_for
from genm.model import Model, save_model
from genm.normalizers import Normalize, Normalizer, normalizers_of, per_ranker
from genm.progress import Progress, silent
from genm.records import Note, Qrels, Run, check_kind
from genm.scale import Checkpoint, ClusterAddress, ScoreTable, open_engine
from genm.version import __version__

if TYPE_CHECKING:
    from genm.report.payload import Snippet

FUSED_TAG = "genm"
"""The tag of `genm fuse`, unless it is told another."""
AUTO = "auto"
_PROOF = ("certify", "seconds", "gap")
_NOT_JUDGED = (
    "There were no judgments: the weights were learned from the runs alone, and nothing shows what they are worth. "
    "Judge some queries, and train with them."
)


class Tested(NamedTuple):
    """What the rankers and the fused run reach on judgments that took no part in the training."""

    measure: Measure
    values: dict[str, float]
    """By ranker, and under LEARNED for the fused run."""


@dataclass(eq=False)
class Trained:
    """Learned weights with their evidence, as `train` returns them."""

    model: Model
    """What serving needs; `save` writes it."""
    evidence: Evidence | None
    """What the weights reach on queries they have not seen; None without judgments."""
    fuser: Fuser
    """The fitted fuser behind the model."""
    aligned: Aligned | None
    """The runs and judgments as the training saw them; None where it was a table."""
    notes: tuple[Note, ...]
    """What reading and aligning repaired or left out, and what the training warns of."""
    tested: Tested | None = None
    """The figures on `test_qrels`; None without them."""
    seed: int = 0
    read_notes: tuple[Note, ...] = ()
    """Those of the notes that runs and judgments came with."""
    by_query: QueryWeightsEvidence | None = None
    """What weights by group, or a per-query gate, are worth beside the global weights; None where there are "
    "none."""
    _kept: Kept | None = field(default=None, init=False, repr=False)
    _losses: Losses | None = field(default=None, init=False, repr=False)

    def __repr__(self) -> str:
        """Say the weights and what they are worth."""
        return f"<Trained {self.model!r}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return display.trained(self)

    @property
    def verdict(self) -> str:
        """What the figures mean, in a sentence or two."""
        return _NOT_JUDGED if self.evidence is None else self.evidence.verdict()

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each ranker."""
        return dict(zip(self.model.rankers, self.model.weights, strict=True))

    def fuse(
        self,
        runs: AlignedOrRuns,
        *,
        queries: Queries | None = None,
        groups: Mapping[str, str] | None = None,
        name: str = "fused",
        top: int | None = None,
    ) -> Run:
        """Return the fused run of these or other runs; `queries` and `groups` are those of `Model.fuse`."""
        prepared = self.fuser.prepare(runs)
        return self.model.fuse_aligned(prepared, queries=queries, groups=groups, name=name, top=top)

    def save(self, path: str | Path, *, progress: Progress = silent) -> None:
        """Write the model, and its evidence beside it: model.json and model.evidence.json."""
        save_model(self.model, path)
        self.save_evidence(path, progress=progress)

    def save_evidence(self, path: str | Path, *, progress: Progress = silent) -> Path | None:
        """Write the evidence beside the model of this path; return where, or None if there is none to write.

        Nothing is written beside a pipe or a device.
        """
        if self.evidence is None or not Path(path).is_file():
            return None
        place = evidence_path(path)
        save_evidence(self.kept(progress=progress), place)
        return place

    def kept(self, *, progress: Progress = silent) -> Kept:
        """Return the evidence with refits on resampled and on fewer queries; computed once."""
        if self.evidence is None:
            raise InputError("there is no evidence without judgments. Train with qrels.")
        if self._kept is None:
            fuser = _without_proof(self.fuser)
            kept = keep_evidence(self._in_memory(), fuser, self.evidence, seed=self.seed, progress=progress)
            losses = self.losses(progress=progress)
            self._kept = kept if losses is None else replace(kept, without=losses.left_out)
        return self._kept

    def losses(self, *, progress: Progress = silent) -> Losses | None:
        """Return what is lost without each ranker, held out, with the verdict on it; computed once.

        None without evidence, and where `genm.explain.why_no_losses` gives a reason.
        """
        if self.evidence is None or self.aligned is None or why_no_losses(self.model, self.aligned):
            return None
        if self._losses is None:
            aligned, folds = self.fuser.prepare(self.aligned), len(self.evidence.held_out.weights)
            self._losses = model_losses(self.model, aligned, folds=folds, seed=self.seed, progress=progress)
        return self._losses

    def report(self, path: str | Path, *, title: str | None = None, progress: Progress = silent) -> None:
        """Write the report that `genm report` writes, as HTML unless the name ends in .md, .json or .tex."""
        aligned = self.fuser.prepare(self._in_memory())
        from genm.report import Source, build_report, render_report  # only a report needs the charts and pages

        source = Source(
            title=Path(path).stem if title is None else title,
            versions={"genm": __version__, "python": platform.python_version()},
            notes=self.read_notes,
            snippet=engine_snippet(self.model),
        )
        found = build_report(aligned, self.model, self.kept(progress=progress), source, progress=progress)
        suffix = Path(path).suffix.lower().removeprefix(".")
        write_text(path, render_report(found, suffix if suffix in ("md", "json", "tex") else "html"))

    def _in_memory(self) -> Aligned:
        """Return the runs that were learned from; a table is not held in memory."""
        if self.aligned is None:
            raise InputError(
                "these weights were learned from a table, which is not in memory. Save the model, and give it to "
                "genm report with runs that are."
            )
        return self.aligned


def train(
    runs: AlignedOrRuns | ScoreTable,
    qrels: Qrels | None = None,
    *,
    method: str | None = None,
    measure: MeasureLike = "AP",
    level: int = 1,
    normalize: Normalize | None = None,
    depth: Depths = None,
    query_weights: Mapping[str, float] | None = None,
    current: Mapping[str, float] | Run | None = None,
    target: str | None = None,
    techniques: str | Mapping[str, str] | None = None,
    window: int | None = None,
    test_qrels: Qrels | None = None,
    groups: Mapping[str, str] | None = None,
    group_by: str | Sequence[str] | None = None,
    queries: Queries | None = None,
    per_query: bool = False,
    memory: int | str | None = None,
    cluster: str | ClusterAddress | None = None,
    device: str | None = None,
    checkpoint: str | Path | None = None,
    folds: int = 5,
    seed: int = 0,
    progress: Progress = silent,
    **options: Any,
) -> Trained:
    """Learn one weight per ranker, and measure what the weights reach on queries they have not seen.

    `method` is one of `genm.learn.METHODS`: by default "auto", and "cotrain" where there are no judgments. It
    maximises `measure`; grades from `level` on count as relevant. `options` are the method's own parameters, such
    as `signs="any"` of the method "auto", which allows negative weights.

    Scores are normalised by "minmax" (without judgments by "zscore") unless `normalize` says otherwise; with "auto"
    the method "auto" chooses. `depth` takes the top of each list; `query_weights` says how much each query counts.
    `current` is what you use today, one more rival in the evidence: weights by ranker, which multiply the scores as
    they are normalised here, or a run of the same queries.
    With a `target`, such as "opensearch", the training follows the rules of that engine, so that the model can be
    exported to it. `techniques` (one of the engine's normalisers, or one for each ranker) and `window` choose among
    what it offers. `folds` and `seed` are those of the cross-validation; `seed` also draws the resamples of
    `save` and `report`. `test_qrels` judge further queries of the same runs.

    Weights by group of queries are learned beside the global ones where groups are given: `groups` names the group
    of each query; `group_by` is a column of `queries`, or rules such as "short: words<=2" (`genm.grouping`).
    `queries` has the text, or all columns, of each query. `per_query` learns a gate instead, which computes the
    weights of each query from its features (experimental). `Trained.by_query` says whether that is worth it.

    A `genm.scale.ScoreTable` may be given for runs and judgments; it may be larger than memory. The methods auto,
    newton, barrier, online, exact (without proof) and cotrain learn from it; the last one is used for a table
    without judgments. `memory`, such as "2GB", is how much of it is kept in memory;
    `cluster` evaluates it by Dask: "local:4", or the address of a scheduler. `device` is "cuda" for a GPU, "cuda:1"
    for another one; with "cuda" each process of "local:4" takes a GPU of its own. `checkpoint` is a file that is
    written after every pass over the table: the same call, made again after a crash, continues from there to the
    same weights. Delete it when the model is saved.
    """
    if isinstance(runs, ScoreTable):
        _check_takes_no_table(
            qrels=qrels, depth=depth, query_weights=query_weights, target=target, techniques=techniques,
            window=window, test_qrels=test_qrels, groups=groups, group_by=group_by, queries=queries,
            per_query=per_query or None,
        )  # fmt: skip
        plan = check_training(
            runs.rankers,
            judged=runs.labelled,
            method=method,
            measure=measure,
            level=level,
            normalize=normalize,
            current=current,
            **options,
        )
        if isinstance(current, Run):
            raise InputError("current (--current): from a table it is compared as weights by ranker, not as a run.")
        check_table_method(plan.make(), device)
        table = runs if normalize is None else runs.with_normalizers(normalize)
        if normalize is None and not runs.labelled and all(own == Normalizer("minmax") for own in runs.normalizers):
            table = runs.with_normalizers(plan.normalize)  # minmax is what tables get unless another one was named
        asked = {"folds": folds, "seed": seed, "current": None if current is None else dict(current)}
        return _train_table(table, plan, memory, cluster, device, checkpoint, asked, progress)
    _check_needs_table(memory=memory, cluster=cluster, device=device, checkpoint=checkpoint)
    grouping = check_query_weights(
        judged=runs.labelled if isinstance(runs, Aligned) else qrels is not None,
        has_groups=groups is not None,
        has_queries=queries is not None,
        group_by=group_by,
        per_query=per_query,
    )
    given = {} if isinstance(runs, Aligned) else named_runs(runs)
    plan = check_training(
        runs.rankers if isinstance(runs, Aligned) else tuple(given),
        judged=runs.labelled if isinstance(runs, Aligned) else qrels is not None,
        method=method,
        measure=measure,
        level=level,
        normalize=normalize,
        depth=depth,
        target=target,
        techniques=techniques,
        window=window,
        current=current,
        **options,
    )
    notes: list[Note] = []
    if isinstance(runs, Aligned):
        _check_needs_runs(target=target, query_weights=query_weights, test_qrels=test_qrels)
        aligned = as_aligned(runs, qrels, normalize=None if normalize == AUTO else normalize, depth=depth)
    else:
        rules: dict[str, Any] = {"normalize": plan.normalize, "depth": depth}
        if target is not None:
            rules = _rules_of(target, given, techniques, window, notes)
        aligned = align_runs(given, qrels, query_weights=query_weights, progress=progress, **rules)
    in_use: Mapping[str, float] | Floats | None
    in_use = _values_of(current, aligned, qrels, plan) if isinstance(current, Run) else current
    fuser, evidence = _learn(plan, aligned, folds, seed, progress, notes, in_use)
    read = [note for run in given.values() for note in run.notes]
    read += [] if qrels is None else qrels.notes
    notes += [*read, *aligned.notes, *note_sources(qrels), *note_probabilities(qrels, fuser)]
    if isinstance(fuser, ExpectedFuser):
        notes += fuser.notes_
        notes += [] if evidence is None else note_unjudged(fuser.prepare(aligned), evidence, plan.level)
    if query_weights is not None and evidence is not None:
        text = "in training and held-out figures each query counts by its weight; genm evaluate counts all alike"
        notes.append(Note("weighted-queries", 1, text))
    if len(aligned.rankers) == 1:
        text = "there is one run: its weight is 1, and there is nothing to learn. Give the others as well."
        notes.append(Note("single-run", 1, text))
    model = fuser.to_model()
    notes += note_fused_runs(given, aligned)
    notes += note_zero_weights(model, aligned)
    if evidence is not None:
        model = with_evidence(model, aligned, evidence, seed=seed)
    by_query = None
    if evidence is not None and (grouping is not None or per_query):
        model, by_query, more = _learn_query_weights(
            model, fuser, aligned, evidence, grouping, groups, queries, seed, progress
        )
        notes += more
    if target is not None:
        notes += note_ties(given, target, aligned.normalizers, aligned.depths)
        notes += note_obstacles(model, target, aligned)
        model = replace(model, target=target)
    tested = None
    if test_qrels is not None:
        check_kind("test_qrels", test_qrels, Qrels, "Read them first, by genm.read_qrels.")
        notes += [] if qrels is None else note_test_queries_seen(qrels, test_qrels)
        rows = {**given, LEARNED: model.fuse(given, queries=queries, groups=groups)}
        found = {name: evaluate_run(run, test_qrels, [plan.measure]) for name, run in rows.items()}
        tested = Tested(plan.measure, {name: one.mean(plan.measure) for name, one in found.items()})
    return Trained(model, evidence, fuser, aligned, tuple(notes), tested, seed, tuple(read), by_query)


def _check_takes_no_table(**given: object) -> None:
    """Refuse what a table has decided already, or what is learned from runs in memory alone."""
    for name, value in given.items():
        if value is not None and value != {}:
            raise InputError(
                f"{name} (--{name.replace('_', '-')}): a table has its own lists, judgments and query weights, and "
                f"one set of weights is learned from it. Leave it out, or train on the runs themselves."
            )


def _check_needs_table(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} (--{name}) belongs to a table. Give one (--table), or leave it out.")


def check_query_weights(
    *,
    judged: bool,
    has_groups: bool = False,
    has_queries: bool = False,
    group_by: str | Sequence[str] | None = None,
    per_query: bool = False,
) -> Grouping | None:
    """Return where the queries' groups come from, None where there are none; refuse what cannot be learned."""
    grouped = has_groups or bool(group_by)
    if (grouped or per_query) and not judged:
        raise InputError(
            "groups (--groups, --group-by) and per_query (--per-query) learn from judgments. Give qrels (--qrels)."
        )
    if grouped and per_query:
        raise InputError(
            "groups and per_query (--per-query) contradict each other. Leave one out; the gate reads the columns "
            "of queries (--queries), which may hold the group."
        )
    if has_groups and group_by:
        raise InputError("groups (--groups) and group_by (--group-by) both say the group. Leave one out.")
    if group_by and not has_queries:
        raise InputError("group_by (--group-by) reads texts and columns of the queries. Give queries (--queries).")
    return parse_grouping(group_by) if group_by else Grouping() if has_groups else None


def _learn_query_weights(
    model: Model,
    fuser: Fuser,
    aligned: Aligned,
    evidence: Evidence,
    grouping: Grouping | None,
    groups: Mapping[str, str] | None,
    queries: Queries | None,
    seed: int,
    progress: Progress,
) -> tuple[Model, QueryWeightsEvidence, list[Note]]:
    """Learn weights by group, or a gate, around the fuser's; return the model with them, the evidence and notes."""
    prepared, notes = fuser.prepare(aligned), list[Note]()
    options: dict[str, Any] = {"level": getattr(fuser, "level", 1), "seed": seed, "progress": progress}
    if grouping is None:
        gated, found = gate_evidence(prepared, fuser.weights_, evidence, queries=queries, **options)
        if gated.gate is None:
            text = (
                f"the gate gained {gated.inner_gain:+.4f} {evidence.measure} inside the training queries, which is "
                f"not clear: the model has the global weights alone"
            )
            notes.append(Note("gate-unused", 1, text))
        model = replace(model, gate=gated.gate)
    else:
        names = groups_of_queries(grouping, aligned.queries, queries=queries, given=groups)
        n_unknown = sum(name is None for name in names)
        if n_unknown == len(names):
            raise InputError(
                f"groups: expected groups of the judged queries; none of {len(names):,} has one. Check that the "
                f"files spell query ids and columns alike ({grouping})."
            )
        if n_unknown:
            text = f"{n_unknown:,} of {len(names):,} judged queries have no group; they get the global weights"
            notes.append(Note("no-group", n_unknown, text))
        fitted, found = group_evidence(prepared, names, fuser.weights_, evidence, grouping=grouping, **options)
        if fitted.groups.pooling is None:
            text = "no group gains clearly inside the training queries: all of them get the global weights"
            notes.append(Note("groups-unused", 1, text))
        model = replace(model, groups=fitted.groups)
    gain = found.overall
    figures = {"gain": gain.difference, "interval": [gain.low, gain.high], "outcome": gain.outcome}
    return replace(model, training={**model.training, found.kind: figures}), found, notes


def engine_snippet(model: Model) -> "Snippet | None":
    """Return what the engine takes that the model was trained for, to be copied from the report's page.

    None where it was trained for none, or where the engine cannot take it exactly: `genm export` says why.
    """
    if model.target is None:
        return None
    try:
        exported = export_model(model, model.target)
    except ExportError:
        return None
    return {"engine": find_target(model.target).title, "file_name": exported.file_name, "text": exported.text}


class Plan(NamedTuple):
    """What `train` will do, checked before any run is looked at."""

    method: str | None
    """The method's plain word; None where an engine takes equal weights only, and nothing is learned."""
    measure: Measure
    """With the level of relevance."""
    level: int
    normalize: Normalize
    options: dict[str, Any]
    """The fuser's."""

    def make(self, **options: Any) -> Fuser:
        """Return a new fuser; `options` come on top."""
        if self.method is None:
            return EqualFuser(level=self.level)
        return make_fuser(self.method, measure=self.measure, **{**self.options, **options})


def check_training(
    rankers: Sequence[str],
    *,
    judged: bool,
    method: str | None = None,
    measure: MeasureLike = "AP",
    level: int = 1,
    normalize: Normalize | None = None,
    depth: Depths = None,
    target: str | None = None,
    techniques: str | Mapping[str, str] | None = None,
    window: int | None = None,
    current: object = None,
    **options: Any,
) -> Plan:
    """Refuse what `train` would refuse, given the rankers' names alone: before a file is read."""
    names = tuple(rankers)
    if current is not None and not judged:
        raise InputError(
            "current (--current) is compared on judged queries. Give qrels (--qrels), or leave it out."
        )
    if isinstance(current, Mapping) and not isinstance(current, Run):  # a run maps queries to documents
        current_weights(current, names)
    takes_equal_weights = _check_target(names, target, techniques, window, normalize, depth, method)
    if target is not None and options.get("signs") == "any":
        _check_negative_weights(target)
    found = find_method(method or (AUTO if judged else CotrainFuser.method))
    if not judged and found.name != "cotrain":
        raise InputError(
            f"method (--method) {found.name} learns from judgments. Give qrels (--qrels), or use the method "
            f"cotrain."
        )
    if normalize == AUTO and found.name != AUTO:
        raise InputError(
            "normalize (--normalize) auto chooses inside the method auto. Name a normaliser for other methods."
        )
    if normalize is not None and normalize != AUTO:
        normalizers_of(normalize, names)
    per_ranker("depth", depth, names)
    chosen = options | ({"level": level} if "level" in found.parameters else {})
    chosen |= {"normalize": AUTO} if normalize == AUTO else {}
    make_fuser(method or found.name, measure=measure, **chosen)
    usual = "minmax" if judged else CotrainFuser.normalize_unjudged
    return Plan(
        None if takes_equal_weights else found.name,
        with_level(parse_measure(measure), level),
        level,
        usual if normalize is None else "minmax" if normalize == AUTO else normalize,
        chosen,
    )


def _check_target(
    rankers: tuple[str, ...],
    target: str | None,
    techniques: str | Mapping[str, str] | None,
    window: int | None,
    normalize: Normalize | None,
    depth: Depths,
    method: str | None,
) -> bool:
    """Refuse an unknown engine and options that contradict it; return whether it takes equal weights only."""
    if target is None:
        for name, value in (("technique (--technique)", techniques), ("window (--window)", window)):
            if value:
                raise InputError(f"{name} belongs to an engine. Name it by target (--target), or leave it out.")
        return False
    found = find_target(target)
    if normalize is not None:
        raise InputError(
            f"normalize (--normalize): the target {target} sets the normaliser. Leave one out, or use techniques "
            f"(--technique)."
        )
    if depth is not None:
        raise InputError(
            f"depth (--depth): the target {target} sets the depth. Leave one out, or use window (--window)."
        )
    if found.weights.equal and method is not None:
        raise InputError(f"method (--method) {method}: {found.title} takes equal weights only. Leave it out.")
    training_rules(target, rankers, techniques=_by_ranker(techniques), window=window)
    return found.weights.equal


def _check_negative_weights(target: str) -> None:
    """Refuse weights of any sign for an engine that takes none below 0."""
    if find_target(target).weights.least is None:
        return
    others = [name for name, found in targets().items() if found.weights.least is None]
    raise InputError(
        f"signs (--signs) any: {find_target(target).title} takes no negative weights. Leave it out, or train for "
        f"one of {', '.join(others)}."
    )


def _by_ranker(techniques: str | Mapping[str, str] | None) -> Mapping[str, str] | None:
    return {"*": techniques} if isinstance(techniques, str) else techniques


def _check_needs_runs(**given: object) -> None:
    """Refuse what aligned runs cannot follow."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name}: expected runs; found runs that are aligned already. Pass the runs themselves, and qrels."
            )


def _rules_of(
    target: str,
    runs: Mapping[str, Run],
    techniques: str | Mapping[str, str] | None,
    window: int | None,
    notes: list[Note],
) -> dict[str, Any]:
    """Return how to align for the engine, and note under which rules the training goes."""
    rules = training_rules(target, runs, techniques=_by_ranker(techniques), window=window)
    kinds = ", ".join(f"{name} by {normalizer.kind}" for name, normalizer in rules.normalizers.items())
    cut = "whole lists" if rules.depth is None else f"the top {rules.depth} of each ranker"
    text = f"training under the rules of {find_target(target).title}: {kinds}; {cut}"
    notes += [Note("target-rules", 1, text), *rules.notes]
    return {"normalize": rules.normalizers, "depth": rules.depth}


def _values_of(current: Run, aligned: Aligned, qrels: Qrels | None, plan: Plan) -> Floats:
    """Return the measure of the current run for every query; queries that it lacks count 0."""
    if qrels is None:
        raise InputError("current: a run needs qrels to be measured. Pass the runs themselves, and qrels.")
    found = evaluate_run(current, qrels, [plan.measure])
    place = find(found.queries, aligned.queries)
    values = found.values[:, 0]
    return np.where(place >= 0, values[np.maximum(place, 0)], 0.0)


def _learn(
    plan: Plan,
    aligned: Aligned,
    folds: int,
    seed: int,
    progress: Progress,
    notes: list[Note],
    current: Mapping[str, float] | Floats | None,
) -> tuple[Fuser, Evidence | None]:
    """Fit; with judgments, cross-validate as well."""
    if plan.method is None:
        notes.append(Note("equal-weights", 1, "the engine takes equal weights only: nothing is learned"))
    elif not aligned.labelled:
        notes.append(_no_judgments())
    else:
        pass  # the evidence says it all
    if not aligned.labelled:
        return plan.make().fit(aligned), None
    make = _proving_once(plan, progress) if plan.options.get("certify") else plan.make
    return gather_evidence(aligned, make, plan.measure, folds=folds, seed=seed, current=current, progress=progress)


def _no_judgments() -> Note:
    text = "no judgments: learning without labels (UnsEnM); there is no held-out figure to show"
    return Note("no-judgments", 1, text)


def _train_table(
    table: ScoreTable,
    plan: Plan,
    memory: int | str | None,
    cluster: str | ClusterAddress | None,
    device: str | None,
    checkpoint: str | Path | None,
    asked: dict[str, Any],
    progress: Progress,
) -> Trained:
    """Learn from a table, cross-validate, and measure; what was found is kept in the checkpoint until the end."""
    fuser = plan.make()
    settings = settings_for(fuser, table, device)
    identity = {
        "method": fuser.method,
        "parameters": repr(fuser.get_params()),
        "measure": str(plan.measure),
        "normalizers": repr(table.normalizers),
        "device": settings.device.partition(":")[0],  # a GPU rounds otherwise than a CPU
        **asked,
    }
    kept = Checkpoint(checkpoint, table=table.digest, options={**identity, "version": __version__})
    notes = list(table.notes)
    if kept.mismatch:
        text = f"the checkpoint {kept.path} is not used: {kept.mismatch}; learning starts anew"
        notes.append(Note("checkpoint-unused", 1, text))
    if kept.n_resumed:
        notes.append(Note("resumed", 1, f"{kept.n_resumed:,} passes over the table came from {kept.path}"))
    engine = open_engine(table, settings, memory=memory, cluster=cluster, progress=progress)
    try:
        ahead = rivals_of_table(table.rankers, plan.measure) if table.labelled else ()
        queries = TableQueries(table, engine, settings, ahead=ahead, checkpoint=kept, progress=progress)
        evidence: Evidence | None = None
        if table.labelled:
            fuser, evidence = gather_table_evidence(queries, plan.make, plan.measure, **asked)
        else:
            notes.append(_no_judgments())
            with queries:
                fuser = fit_table(fuser, queries)
    except BaseException:
        kept.save()
        raise
    finally:
        progress("passes over the table", kept.n_passes, kept.n_passes)
        engine.close()
    model = fuser.to_model()
    if evidence is not None:
        model = with_figures(model, table.digest, evidence, seed=asked["seed"])
    trained = Trained(model, evidence, fuser, None, tuple(notes), seed=asked["seed"], read_notes=table.notes)
    if evidence is not None:
        trained._kept = keep_table_evidence(fuser, evidence, table.digest, seed=asked["seed"])
    kept.save()
    return trained


def _proving_once(plan: Plan, progress: Progress) -> Callable[[], Fuser]:
    """Return what makes fusers; only the first, which learns from all queries, proves its weights."""
    proving = [plan.make(progress=progress)]
    plain = plan._replace(options={name: value for name, value in plan.options.items() if name not in _PROOF})
    return lambda: proving.pop() if proving else plain.make()


def _without_proof(fuser: Fuser) -> Fuser:
    """Return a fuser that can be fitted again and again: a proof is wanted once."""
    if not isinstance(fuser, ExactFuser):
        return fuser
    other = copy.copy(fuser)
    other.certify = False
    return other


def note_sources(qrels: Qrels | None) -> list[Note]:
    """Say what the judgments are made of, where they say so themselves."""
    if qrels is None or qrels.provenance is None:
        return []
    return [Note("judgment-sources", len(qrels.doc), f"the judgments are {qrels.provenance.describe()}")]


def note_probabilities(qrels: Qrels | None, fuser: Fuser) -> list[Note]:
    """Say what becomes of judgments that are not certain."""
    if qrels is None or qrels.probability is None:
        return []
    n = int(np.count_nonzero(~np.isnan(qrels.probability)))
    total = float(np.nansum(qrels.probability))
    if isinstance(fuser, ExpectedFuser):
        text = (
            f"{n:,} judgments count by their probability of relevance ({total:,.1f} relevant documents expected); "
            f"the table of held-out figures takes those from 0.5 on as relevant"
        )
    else:
        text = (
            f"{n:,} judgments say how likely relevance is; this method takes those from 0.5 on as relevant. "
            f"--method expected counts each by its probability"
        )
    return [Note("uncertain-judgments", n, text)]


def note_fused_runs(runs: Mapping[str, Run], aligned: Aligned) -> list[Note]:
    """Warn when a run looks like a fusion of the others: as a ranker it would count them twice.

    `genm fuse` writes the tag genm. Under any tag, a fused run holds exactly the documents of the others together.
    """
    if len(aligned.rankers) < 3:
        return []
    whole = np.asarray(aligned.retrieved.all(axis=0))
    notes = []
    for k, name in enumerate(aligned.rankers):
        others = np.delete(aligned.retrieved, k, axis=1)
        is_union = bool(whole[k] and whole.sum() == 1 and others.any(axis=1).all())
        tagged = name in runs and runs[name].tag == FUSED_TAG
        if tagged or is_union:
            sign = f"its tag is {FUSED_TAG}" if tagged else "it holds exactly the documents of the others together"
            text = (
                f"the run {name} looks like the output of genm fuse ({sign}). A fused run among its rankers counts "
                f"them twice, and its weight means little. Leave it out if it is one."
            )
            notes.append(Note("fused-run", 1, text))
    return notes


def note_ties(
    runs: Mapping[str, Run], target: str, normalizers: Sequence[Normalizer], depths: Sequence[int | None]
) -> list[Note]:
    """Say which order equal scores have where an engine fuses ranks: its own order must be that of the runs."""
    if find_target(target).orders_by_id:
        return []
    n_lists = n_tied = 0
    for run, normalizer, depth in zip(runs.values(), normalizers, depths, strict=True):
        if not normalizer.is_rank_based:
            continue
        place = np.arange(len(run.doc)) - np.repeat(run.starts[:-1], np.diff(run.starts))
        same = (run.score[1:] == run.score[:-1]) & (place[1:] > 0)
        if depth is not None:
            same &= place[1:] <= depth
        query = np.repeat(np.arange(len(run.queries)), np.diff(run.starts))
        n_lists += len(run.queries)
        n_tied += len(np.unique(query[1:][same]))
    if not n_tied:
        return []
    if all(one.ties == "given" for one in normalizers if one.is_rank_based):
        text = (
            "so they count in the order of the runs' lines: it must be that in which the engine returned them, as "
            "in files of genm pull."
        )
    else:
        text = (
            f"in its own order of equal scores; this model ranks them by doc id, so its results may differ for "
            f"these queries. Fit again with --target {target}: they then count in the order of the runs' lines."
        )
    said = f"{n_tied:,} of {n_lists:,} lists hold equal scores. {find_target(target).title} fuses ranks, {text}"
    return [Note("tied-ranks", n_tied, said)]


def note_zero_weights(model: Model, aligned: Aligned) -> list[Note]:
    """Warn when a ranker of weight 0 still contributes documents: without its run they would be missing."""
    notes = []
    only = aligned.retrieved.any(axis=1) & ~aligned.retrieved[:, [w > 0.0 for w in model.weights]].any(axis=1)
    for k, weight in enumerate(model.weights):
        n = int((only & aligned.retrieved[:, k]).sum()) if weight == 0.0 else 0
        if n:
            text = (
                f"{model.rankers[k]} has weight 0, but it brings {n:,} rows of the fused run that no ranker "
                f"with a weight returned. Leave its run out, and they are gone."
            )
            notes.append(Note("zero-weight", n, text))
    return notes


def note_obstacles(model: Model, target: str, aligned: Aligned) -> list[Note]:
    """Warn when the engine does not take the model, or runs such as these, as they are."""
    notes = []
    found, missing = find_target(target), 1.0 - float(aligned.retrieved.mean()) if aligned.retrieved.size else 0.0
    if found.window.rerank and missing:
        text = (
            f"{found.title} scores every candidate by every ranker, and {missing:.1%} of the scores are "
            f"missing in these runs. Write runs that all hold the same documents."
        )
        notes.append(Note("missing-scores", 1, text))
    texts = [f"{target} does not take this model exactly: {reason}." for reason in obstacles(model)[target]]
    return notes + [Note("target-obstacle", 1, text) for text in texts]


def note_test_queries_seen(qrels: Qrels, test_qrels: Qrels) -> list[Note]:
    """Warn when the weights were learned from queries that they are tested on."""
    seen = [query_id for query_id in test_qrels if query_id in qrels]
    if not seen:
        return []
    text = (
        f"{len(seen):,} of {len(test_qrels):,} queries of test_qrels (--test-qrels) were also learned from (first: "
        f"{seen[0]}): on them the figures are too good. Keep test queries out of the training judgments."
    )
    return [Note("test-queries-learned", len(seen), text)]
