"""How good a run is: every judged query has a value, and notes say what was counted as 0 or skipped.

A run's table holds millions of ids, the judgments' far fewer. A filter over the last eight bytes rejects most of
the run's ids; only the others are compared in full.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm import charts, display
from genm._math.hits import Hits, descending, hits_of_run, tie_extremes
from genm._math.measures import NO_CUTOFF, measure_values
from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Floats, Ints
from genm.errors import InputError
from genm.evaluate.measures import Measure, parse_measure, parse_measures
from genm.ids import Ids, byte_order, find
from genm.records import Note, Qrels, Run, check_kind, contents, first_few

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HIGHEST_EXPONENT = 500
"""The highest grade that 2 to its power leaves finite sums for."""

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

_WORD = 8
_BLOCK = 1 << 16
_MANY = 8
"""How many times larger a table must be before looking at its ids one by one pays."""
_BITS_EACH = 16
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)

ELEVEN_LEVELS = tuple(i / 10 for i in range(11))

_SKIP = "skip_missing (--skip-missing)"


class Plan(NamedTuple):
    """Measures as the kernel reads them."""

    plan: NDArray[np.int64]
    recall: Floats


def plan_measures(measures: tuple[Measure, ...]) -> Plan:
    """Return the measures as arrays."""
    rows = [
        (
            m.facts.kind,
            NO_CUTOFF if m.cutoff is None else m.cutoff,
            m.rel,
            m.judged_only,
            m.dcg == "exp-log2",
        )
        for m in measures
    ]
    return Plan(np.array(rows, np.int64), np.array([m.recall or 0.0 for m in measures]))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The judged queries that are evaluated and, for each, its judged grades from the highest down."""

    queries: Ids
    starts: NDArray[np.int64]
    grades: NDArray[np.int32]

    @classmethod
    def of(cls, queries: Ids, starts: NDArray[np.int64], grades: NDArray[np.int32]) -> "Judged":
        """Take grades in any order."""
        return cls(queries, starts, descending(starts, grades))

    def values(self, plan: Plan, hits: Hits, depth: NDArray[np.int64]) -> Floats:
        """Return the (queries, measures) values of a ranking; `depth` is its length for each query."""
        return measure_values(*plan, self.starts, self.grades, hits[:3], depth)

    def check_gains(self, measures: tuple[Measure, ...]) -> None:
        """Refuse grades that an exponential gain would carry beyond all numbers."""
        highest = int(self.grades.max(initial=0))
        for measure in measures:
            if measure.dcg == "exp-log2" and highest > _HIGHEST_EXPONENT:
                raise InputError(
                    f"measure {measure}: expected grades up to {_HIGHEST_EXPONENT}, found {highest}. "
                    "Use nDCG's default gain, or map the grades to a smaller scale."
                )

    def note_no_relevant(self, measures: tuple[Measure, ...]) -> list[Note]:
        """Say which queries no ranking can score on."""
        rel = min(m.rel for m in measures)
        best = self.grades[self.starts[:-1]]
        empty = np.flatnonzero(best < rel)
        if len(empty) == 0:
            return []
        what = "relevant document" if rel == 1 else f"document of grade {rel} or more"
        text = (
            f"{len(empty)} of {len(self.queries)} judged queries have no {what} and count 0 "
            f"(first: {self.queries[int(empty[0])]})."
        )
        return [Note("no-relevant", len(empty), text)]

    def note_ties(
        self, measures: tuple[Measure, ...], hits: Hits, depth: NDArray[np.int64], subject: str
    ) -> list[Note]:
        """Say how many values rest on the order of documents with equal scores, and how far they could move."""
        extremes = tie_extremes(self.starts, hits)
        if extremes is None:
            return []
        plan = plan_measures(measures)
        kindest, harshest = (self.values(plan, h, depth) for h in extremes)
        moved = kindest != harshest
        touched = np.flatnonzero(moved.any(axis=1))
        if len(touched) == 0:
            return []
        means = zip(measures, harshest.mean(axis=0), kindest.mean(axis=0), strict=True)
        spans = [f"{measure} {span}" for measure, low, high in means if (span := _between(low, high))]
        if not spans:  # no more than the last digits of a sum
            return []
        text = (
            f"{subject}: equal scores touch the values of {len(touched)} of {len(self.queries)} queries "
            f"(first: {self.queries[int(touched[0])]}). They are ranked by doc id downwards, as trec_eval does; "
            f"other orders would put {', '.join(spans)}."
        )
        return [Note("ties", len(touched), text)]


def _between(low: float, high: float) -> str:
    """Write how far a mean could move, in as many places as it takes to see it; empty if eight show nothing."""
    for places in (4, 6, 8):
        if f"{low:.{places}f}" != f"{high:.{places}f}":
            return f"between {low:.{places}f} and {high:.{places}f}"
    return ""


def codes_in(table: Ids, wanted: Ids) -> NDArray[np.int32]:
    """Return, for every id of `wanted`, its code in `table`, or -1: `find` for a few ids in a large table."""
    if table is wanted:
        return np.arange(len(wanted), dtype=np.int32)
    if len(table) <= _MANY * len(wanted):
        return find(table, wanted)
    known = _possible(table, wanted)
    found = find(wanted, table.take(known))
    codes = np.full(len(wanted), -1, np.int32)
    hit = found >= 0
    codes[found[hit]] = known[hit]
    return codes


def _possible(table: Ids, wanted: Ids) -> Ints:
    """Return the codes of all ids of `table` that are in `wanted`, and of some that are not."""
    n_bits = max(10, (_BITS_EACH * len(wanted)).bit_length())
    seen = np.zeros(1 << (n_bits - 6), np.uint64)
    before = np.zeros(_WORD, np.uint8)  # so that a whole word can be read at the end of every id
    _mark(np.concatenate((before, wanted.text)), wanted.starts + _WORD, seen, 64 - n_bits)

    text, starts = np.require(table.text, np.uint8, ("C", "W")), np.require(table.starts, np.int64, ("C", "W"))
    cuts = np.append(np.arange(0, len(table), _BLOCK), len(table))
    codes, counts = np.empty(len(table), np.int64), np.zeros(len(cuts) - 1, np.int64)

    def work(low: int, high: int) -> None:
        _look_up(low, high, text, starts, seen, 64 - n_bits, cuts, codes, counts)

    over_ranges(work, np.diff(cuts))
    return np.concatenate([codes[a : a + n] for a, n in zip(cuts[:-1], counts, strict=True)])


@part()
def _glance(text: Bytes, begin: int, end: int, shift: int) -> int:
    """Return a number made of an id's length and its last eight bytes, or all of a shorter one."""
    # written out, as the compiler makes one load of it
    word = (
        np.uint64(text[end - 8])
        | np.uint64(text[end - 7]) << np.uint64(8)
        | np.uint64(text[end - 6]) << np.uint64(16)
        | np.uint64(text[end - 5]) << np.uint64(24)
        | np.uint64(text[end - 4]) << np.uint64(32)
        | np.uint64(text[end - 3]) << np.uint64(40)
        | np.uint64(text[end - 2]) << np.uint64(48)
        | np.uint64(text[end - 1]) << np.uint64(56)
    )
    if end - begin < 8:
        word = word >> np.uint64(64 - 8 * (end - begin)) if end > begin else np.uint64(0)
    word = (word ^ np.uint64(end - begin) * _MIX) * _SPREAD
    word ^= word >> np.uint64(32)
    return np.int64((word * _MIX) >> np.uint64(shift))  # type: ignore[return-value]  # an int to the compiler


@kernel
def _mark(text: Bytes, starts: Ints, seen: Words, shift: int) -> None:
    for i in range(len(starts) - 1):
        at = _glance(text, starts[i], starts[i + 1], shift)
        seen[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@kernel
def _look_up(
    low: int,
    high: int,
    text: Bytes,
    starts: Ints,
    seen: Words,
    shift: int,
    cuts: Ints,
    codes: Ints,
    counts: Ints,
) -> None:
    """Write the codes whose number was seen, each block's from its own beginning on."""
    for block in range(low, high):
        at = cuts[block]
        for i in range(cuts[block], cuts[block + 1]):
            codes[at] = i
            if starts[i + 1] < 8:
                at += 1  # no whole word to look at
            else:
                number = _glance(text, starts[i], starts[i + 1], shift)
                at += np.int64((seen[number >> 6] >> np.uint64(number & 63)) & np.uint64(1))
        counts[block] = at - cuts[block]


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

    def _repr_html_(self) -> str:
        return display.evaluation(self)

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

    def to_pandas(self) -> Any:
        """Return a pandas frame: one row per query id, one column per measure."""
        columns = dict(zip(map(str, self.measures), self.values.T, strict=True))
        return display.frame(columns, index=self.query_ids, index_name="query_id")

    def plot(self, measure: object = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw one measure, by default the first, query by query; needs the extra `plots`."""
        name = str(self.measures[0] if measure is None else parse_measure(measure))
        title = f"{name} by query" + (f": {self.name}" if self.name else "")
        return charts.plot_values(self.query_ids, self.per_query(name), title=title, value_label=name, ax=ax)

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


def evaluate_runs(
    runs: Mapping[str, Run], qrels: Qrels, measures: object, *, skip_missing: bool = False
) -> dict[str, Evaluation]:
    """Measure several runs against the same judgments, as `evaluate_run` does; the result has the runs' names."""
    wanted = parse_measures(measures)
    return {name: evaluate_run(run, qrels, wanted, skip_missing=skip_missing) for name, run in runs.items()}


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
