"""Use a model on a score table, one shard at a time: evaluate it, or write the fused run."""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from genm._typing import Floats
from genm.align import UNJUDGED, Aligned, select_rankers
from genm.errors import InputError, TableError
from genm.evaluate import Evaluation
from genm.evaluate.aligned import evaluate_aligned
from genm.evaluate.measures import parse_measures
from genm.fuse import fuse_scores_by_query
from genm.grouping import Queries
from genm.ids import Ids
from genm.io import Destination, opened
from genm.normalizers import ScoreRules
from genm.progress import Progress, silent
from genm.read import write_run
from genm.records import Note, Run
from genm.scale.table import ScoreTable

_READING = "reading shards"


class FusionModel(ScoreRules, Protocol):
    """What is needed of a model; `genm.Model` has it."""

    def query_weights(
        self, aligned: Aligned, *, queries: Queries | None = None, groups: Mapping[str, str] | None = None
    ) -> tuple[Floats, tuple[Note, ...]]:
        """Return the weights of every query, a row for each, and what to know of them."""

    def fuse_aligned(
        self,
        aligned: Aligned,
        *,
        queries: Queries | None = None,
        groups: Mapping[str, str] | None = None,
        name: str = "fused",
        top: int | None = None,
    ) -> Run:
        """Return the fused run."""


def evaluate_table(
    table: ScoreTable,
    model: FusionModel,
    measures: object = "AP",
    *,
    queries: Queries | None = None,
    groups: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Measure the fused ranking of a model on the judged queries of a table.

    The values are those of evaluating the fused run. One shard is in memory at a time, beside the value of each
    measure for each query.
    """
    parsed = parse_measures(measures)
    if not table.labelled:
        raise InputError(f"{table.path}: expected judgments; found none. Make the table with judgments (--qrels).")
    ids: list[Ids] = []
    values: list[Floats] = []
    notes: dict[str, list[Note]] = {}
    for aligned in _shards(table, model, progress, doc_ids=False):
        weights, said = model.query_weights(aligned, queries=queries, groups=groups)
        if (aligned.relevance == UNJUDGED).all() and not len(aligned.unretrieved):
            continue
        same = bool((weights == weights[:1]).all())
        found = evaluate_aligned(aligned, weights[0] if same else fuse_scores_by_query(aligned, weights), parsed)
        ids.append(found.queries)
        values.append(found.values)
        _add_notes(notes, (*said, *found.notes))
    if not ids:
        raise InputError(f"{table.path}: expected at least one judged query; found none. Check the judgments.")
    return Evaluation(
        "", Ids.of(text for part in ids for text in part), parsed, np.concatenate(values), _all(notes)
    )


def fuse_table(
    table: ScoreTable,
    model: FusionModel,
    to: Destination,
    *,
    queries: Queries | None = None,
    groups: Mapping[str, str] | None = None,
    tag: str = "genm",
    top: int | None = None,
    progress: Progress = silent,
) -> tuple[Note, ...]:
    """Write the fused run of a model on a table as TREC lines, a shard at a time, and return what to know of it.

    The file is that of fusing the runs in memory; it appears complete or not at all.
    """
    notes: dict[str, list[Note]] = {}
    with opened(to) as file:
        for aligned in _shards(table, model, progress, doc_ids=True):
            fused = model.fuse_aligned(aligned, queries=queries, groups=groups, name=tag, top=top)
            write_run(fused, file, tag=tag)
            _add_notes(notes, fused.notes)
    return _all(notes)


def table_for(table: ScoreTable, model: FusionModel) -> ScoreTable:
    """Return the table under the normalisers of a model; refuse one that lacks its rankers, or has other depths."""
    missing = [name for name in model.rankers if name not in table.rankers]
    if missing:
        raise TableError(
            f"{table.path}: expected the rankers of the model, {', '.join(model.rankers)}; found "
            f"{', '.join(table.rankers)}, without {', '.join(missing)}. Make a table of all of them."
        )
    of_model = dict(zip(model.rankers, zip(model.depths, model.normalizers, strict=True), strict=True))
    own = dict(zip(table.rankers, table.depths, strict=True))
    for name, (depth, _) in of_model.items():
        if own[name] != depth:
            raise TableError(
                f"{table.path}: expected the depth of the model for {name!r}, {_depth(depth)}; found "
                f"{_depth(own[name])}. Make the table with that depth (--depth)."
            )
    kinds = [
        of_model[name][1] if name in of_model else own_kind
        for name, own_kind in zip(table.rankers, table.normalizers, strict=True)
    ]
    return table.with_normalizers(kinds)


def _depth(depth: int | None) -> str:
    return "all documents" if depth is None else f"{depth}"


def _shards(table: ScoreTable, model: FusionModel, progress: Progress, *, doc_ids: bool) -> Iterator[Aligned]:
    """Yield the shards as the model wants them: its rankers in its order, its normalisers."""
    chosen = table_for(table, model)
    for number in range(chosen.n_shards):
        aligned = chosen.read_shard(number, doc_ids=doc_ids)
        yield aligned if chosen.rankers == model.rankers else select_rankers(aligned, model.rankers)
        progress(_READING, number + 1, chosen.n_shards)


def _add_notes(so_far: dict[str, list[Note]], notes: tuple[Note, ...]) -> None:
    for note in notes:
        so_far.setdefault(note.code, []).append(note)


def _all(notes: dict[str, list[Note]]) -> tuple[Note, ...]:
    """Return one note for each kind: what was said of the first shard, and how often it holds in all."""
    found = []
    for code, of_shards in notes.items():
        count, text = sum(note.count for note in of_shards), of_shards[0].text
        if len(of_shards) > 1:
            text = f"{text} This is the first of {len(of_shards):,} shards, with {count:,} in all."
        found.append(Note(code, count, text))
    return tuple(found)
