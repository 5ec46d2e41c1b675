"""How good a run is: every judged query has a value, and whatever was counted as 0 or set aside is said."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from genm._math.hits import hits_of_run
from genm.errors import InputError
from genm.evaluate.joining import codes_in
from genm.evaluate.measures import Measure, parse_measure, parse_measures
from genm.evaluate.scoring import Judged, plan_measures
from genm.ids import Ids, byte_order, find
from genm.records import Note, Qrels, Run, check_kind, contents, first_few

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ELEVEN_LEVELS = tuple(i / 10 for i in range(11))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of every measure for every judged query."""

    name: str
    """Name of the run, empty for scores that have none."""
    queries: Ids
    measures: tuple[Measure, ...]
    values: Floats
    """(queries, measures)."""
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Say the means, and of how many queries, on one line."""
        means = first_few(
            [f"{measure} {mean:.4f}" for measure, mean in zip(self.measures, self.means, strict=True)]
        )
        name = f" {self.name!r}" if self.name else ""
        return f"<Evaluation{name}: {means}; {contents(self.notes, queries=self.queries)}>"

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The ids of the rows of `values`."""
        return tuple(self.queries)

    @cached_property
    def means(self) -> Floats:
        """The mean of each measure over the queries.

        Added up one by one in the order of the query ids, as trec_eval does: another order would now and then
        round to another last digit.
        """
        return np.asarray(np.cumsum(self.values[byte_order(self.queries)], axis=0)[-1] / len(self.values))

    def mean(self, measure: object) -> float:
        """Return the mean of one measure, given as a `Measure` or by name."""
        return float(self.means[self._column(measure)])

    def per_query(self, measure: object) -> Floats:
        """Return one measure's values, one for each of `query_ids`."""
        return self.values[:, self._column(measure)]

    def _column(self, measure: object) -> int:
        wanted = parse_measure(measure)
        if wanted not in self.measures:
            had = ", ".join(map(str, self.measures))
            raise InputError(f"measure {wanted}: expected one that was evaluated ({had}). Add it to the measures.")
        return self.measures.index(wanted)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Interpolated precision at levels of recall, averaged over queries."""

    recall: Floats
    precision: Floats
    evaluation: Evaluation
    """The values behind the means, query by query, with the notes."""


def evaluate_run(run: Run, qrels: Qrels, measures: object, *, skip_missing: bool = False) -> Evaluation:
    """Measure a run against judgments, as `trec_eval -c` does.

    Judged queries that the run lacks count 0, or are left out with `skip_missing`; queries of the run without
    judgments are set aside; queries without a relevant document count 0. All of it is said in the notes, and so
    are ties that touch a value. `measures` is a list such as "AP,nDCG@10", or an iterable of names or measures.
    """
    check_kind("run", run, Run, "Read it first, by genm.read_run.")
    check_kind("qrels", qrels, Qrels, "Read them first, by genm.read_qrels.")
    wanted = parse_measures(measures)
    in_run = find(run.queries, qrels.queries)
    run_sizes, judged_sizes = np.diff(run.starts), np.diff(qrels.starts)
    is_judged = judged_sizes > 0
    is_present = np.zeros(len(in_run), np.bool_)
    is_present[in_run >= 0] = run_sizes[in_run[in_run >= 0]] > 0
    if not (is_judged & is_present).any():
        raise InputError(_nothing_in_common(run, qrels))
    kept = np.flatnonzero(is_judged & is_present if skip_missing else is_judged)

    starts, doc, grade = _judgments_of(kept, qrels)
    queries = qrels.queries if len(kept) == len(qrels.queries) else qrels.queries.take(kept)
    judged = Judged.of(queries, starts, grade)
    judged.check_gains(wanted)
    code = in_run[kept]
    present = is_present[kept]
    low = np.where(present, run.starts[:-1][code], 0)
    high = np.where(present, run.starts[1:][code], 0)
    hits = hits_of_run(low, high, run.doc, run.score, starts, codes_in(run.docs, qrels.docs)[doc], grade)
    values = judged.values(plan_measures(wanted), hits, high - low)

    missing = np.flatnonzero(is_judged & ~is_present)
    notes = _note_missing(run, qrels, missing, int(is_judged.sum()), skipped=skip_missing)
    matched = np.zeros(len(run.queries), np.bool_)
    matched[in_run[is_judged & is_present]] = True
    notes += _note_unjudged(run, np.flatnonzero(~matched & (run_sizes > 0)))
    notes += judged.note_no_relevant(wanted)
    notes += judged.note_ties(wanted, hits, high - low, f"run {run.name}")
    return Evaluation(run.name, queries, wanted, values, tuple(notes))


def precision_recall_curve(
    run: Run,
    qrels: Qrels,
    *,
    rel: int = 1,
    levels: Iterable[float] = ELEVEN_LEVELS,
    skip_missing: bool = False,
) -> Curve:
    """Return the interpolated precision-recall curve, by default at the eleven points 0.0, 0.1, ... 1.0.

    The precision at a level is the highest one at that recall or beyond, as trec_eval's iprec_at_recall has it.
    """
    points = tuple(Measure("IPrec", recall=level, rel=rel) for level in levels)
    evaluation = evaluate_run(run, qrels, points, skip_missing=skip_missing)
    recall = np.array([measure.recall for measure in evaluation.measures], np.float64)
    return Curve(recall, evaluation.means, evaluation)


def _judgments_of(kept: NDArray[np.intp], qrels: Qrels) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
    """Return starts, documents and grades of the queries that are evaluated."""
    if len(kept) == len(qrels.queries):
        return qrels.starts, qrels.doc, qrels.relevance
    sizes = np.diff(qrels.starts)[kept]
    starts = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    rows = np.arange(starts[-1]) + np.repeat(qrels.starts[:-1][kept] - starts[:-1], sizes)
    return starts, qrels.doc[rows], qrels.relevance[rows]


def _nothing_in_common(run: Run, qrels: Qrels) -> str:
    def example(queries: Ids) -> str:
        return f"such as {queries[0]!r}" if len(queries) else "none at all"

    return (
        f"run {run.name}: expected at least one judged query; found no query in common with the judgments "
        f"(the run has {len(run.queries)} queries, {example(run.queries)}; the judgments {len(qrels.queries)}, "
        f"{example(qrels.queries)}). Check that both files belong to the same topics and spell their ids alike."
    )


_SKIP = "skip_missing (--skip-missing)"


def _note_missing(run: Run, qrels: Qrels, missing: NDArray[np.intp], n_judged: int, *, skipped: bool) -> list[Note]:
    if len(missing) == 0:
        return []
    told = f"run {run.name}: {len(missing)} of {n_judged} judged queries have no documents"
    first = f"(first: {qrels.queries[int(missing[0])]})"
    if skipped:
        return [Note("missing-skipped", len(missing), f"{told} and were left out {first}.")]
    return [Note("missing-zero", len(missing), f"{told} and count 0 {first}; {_SKIP} leaves them out.")]


def _note_unjudged(run: Run, unjudged: NDArray[np.intp]) -> list[Note]:
    if len(unjudged) == 0:
        return []
    text = (
        f"run {run.name}: {len(unjudged)} of {len(run.queries)} queries have no judgments and were set aside "
        f"(first: {run.queries[int(unjudged[0])]})."
    )
    return [Note("unjudged-query", len(unjudged), text)]
