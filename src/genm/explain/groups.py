"""Whether groups of queries differ at all: weights by group against the global ones, on held-out queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from genm.align import Aligned
from genm.errors import InputError
from genm.evidence import QueryWeightsEvidence, gather_evidence, group_evidence
from genm.explain.attribution import measure_of
from genm.grouping import Grouping, Queries, groups_of_queries, parse_grouping
from genm.learn import Fuser, find_method, is_method, make_fuser
from genm.model import Model
from genm.progress import Progress, silent
from genm.records import Note


@dataclass(frozen=True, slots=True, eq=False)
class GroupsExplanation:
    """The weights of each group as these queries lead to them, and what they are worth."""

    model: Model
    """The model with weights learned again: the global ones, and those of each group."""
    evidence: QueryWeightsEvidence
    notes: tuple[Note, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the groups differ, in a sentence or two."""
        return self.evidence.verdict()


def explain_groups(
    model: Model,
    aligned: Aligned,
    *,
    groups: Mapping[str, str] | None = None,
    queries: Queries | None = None,
    group_by: str | Sequence[str] | None = None,
    measure: str | None = None,
    method: str | None = None,
    folds: int = 5,
    seed: int = 0,
    progress: Progress = silent,
) -> GroupsExplanation:
    """Learn global weights and weights by group without each fold, and compare them on the fold.

    `aligned` must be aligned for the model, with judgments (`Model.align`). Groups are given by query, found by
    `group_by` in the texts and columns of `queries`, or found as the model finds them.
    """
    if not aligned.labelled:
        raise InputError("groups (--groups) are compared on judgments. Give qrels to align (--qrels).")
    grouping = _grouping_of(model, groups, group_by)
    names = groups_of_queries(grouping, aligned.queries, queries=queries, given=groups)
    known = [name for name in names if name is not None]
    if not known:
        raise InputError(
            f"groups (--groups): none of {len(names):,} judged queries has a group ({grouping}). Give the "
            f"groups, or "
            f"the texts and columns of the queries (--queries)."
        )
    wanted, notes = measure_of(model, measure), list[Note]()
    if len(known) < len(names):
        text = f"{len(names) - len(known):,} of {len(names):,} judged queries have no group"
        notes.append(Note("no-group", len(names) - len(known), text))
    word = method or (model.method if is_method(model.method) else "auto")
    options: dict[str, Any] = {}
    if "level" in find_method(word).parameters:
        options["level"] = model.relevance_level

    def make() -> Fuser:
        return make_fuser(word, measure=wanted, **options)

    fuser, evidence = gather_evidence(aligned, make, wanted, folds=folds, seed=seed, progress=progress)
    fit, found = group_evidence(
        fuser.prepare(aligned),
        names,
        fuser.weights_,
        evidence,
        grouping=grouping,
        level=model.relevance_level,
        seed=seed,
        progress=progress,
    )
    learned = replace(model, weights=tuple(fuser.weights_.tolist()), groups=fit.groups, gate=None)
    return GroupsExplanation(learned, found, tuple(notes))


def _grouping_of(model: Model, groups: Mapping[str, str] | None, group_by: str | Sequence[str] | None) -> Grouping:
    if groups is not None and group_by:
        raise InputError("groups (--groups) and group_by (--group-by) both say the group. Leave one out.")
    if group_by:
        return parse_grouping(group_by)
    if groups is not None:
        return Grouping()
    if model.groups is None:
        raise InputError(
            "this model has no groups. Give them (--groups), or rules and the queries (--group-by, --queries)."
        )
    return model.groups.grouping
