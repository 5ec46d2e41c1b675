"""The whole experiment: load, rank, align, learn on one half of the queries, measure on the other, make the tables.

The protocol is two-fold cross-validation over the judged queries, over several seeded splits, for every method.
"""

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import exact_ranks
from genm._math.measures import measure_values
from genm._math.parallel import over_items
from genm._typing import Floats
from genm.align import Aligned, align_runs
from genm.cache import content_key
from genm.collections import load_collection, smart_stopwords
from genm.errors import ConvergenceWarning, InputError
from genm.evaluate import AlignedEvaluator, Measure
from genm.evaluate.evaluation import plan_measures
from genm.evidence import BEST_SINGLE, RRF, UNIFORM
from genm.fuse import rule_scores
from genm.learn import NewtonFuser
from genm.learn.objectives import Beta, Problem, fold_of_queries
from genm.learn.ranker_quality import pseudo_labels
from genm.progress import Progress, silent
from genm.rankers import paper_profile, read_documents
from genm.records import Collection, Note, Qrels, Run
from genm.reproduce import tables
from genm.reproduce import tables as bar
from genm.reproduce.methods import (
    AUTO,
    BAT,
    ENM,
    ON,
    PROFILE,
    RULES,
    UNS,
    UNS_COTRAINED,
    UNS_Z,
    Learn,
    Learned,
    Training,
    further_rankings,
    kind_of,
    learners,
    on_minmax,
    on_ranks,
    on_z_scores,
    paper_rankings,
    training,
    unsupervised,
)
from genm.reproduce.paper import COLLECTIONS, PAPER_BETA
from genm.reproduce.results import (
    MEASURES,
    RECALL_LEVELS,
    CollectionResult,
    Facts,
    Kind,
    MethodResult,
    Results,
    ResultTable,
)

T = TypeVar("T")

FOLDS = 2

Data = str | PathLike[str] | None
UNIFORM_MINMAX = "uniform weights, min-max"
BLIND = (UNS, UNS_Z, UNS_COTRAINED)


class Measuring:
    """Measures that look at nothing but where relevant documents stand: AP, P, R, RR, Rprec, Success and IPrec.

    They equal what `AlignedEvaluator` gives, which looks at every row: here a tile is read only where its bounds
    leave a rank open.
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self._plan = plan_measures(tuple(measures))

    def values(self, problem: Problem, weights: Floats) -> Floats:
        """Return the (queries, measures) values of the problem's queries."""
        tiles, found = problem.tiles, exact_ranks(problem.tiles, weights)
        starts = np.zeros(tiles.n_queries + 1, np.int64)
        np.cumsum(tiles.n_relevant, out=starts[1:])  # including those that no ranker returned: they have no rank
        n_hits, judged = np.diff(found.starts), np.ones(int(starts[-1]), np.int32)
        ranks = np.zeros(len(judged), np.int64)
        ranks[np.arange(len(found.ranks)) + np.repeat(starts[:-1] - found.starts[:-1], n_hits)] = found.ranks
        depth = tiles.rows[:, 1] - tiles.rows[:, 0]
        return measure_values(*self._plan, starts, judged, (n_hits, ranks, judged), depth)


class Task(Generic[T]):
    """One piece of work, and its result once it is done."""

    value: T

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work

    def run(self) -> None:
        """Do the work in this thread, and release what it needed."""
        self.value = self._work()
        del self._work


def run_all(tasks: Sequence[Task[Any]]) -> None:
    """Do all the work, several pieces at a time, begun in this order: so the longest should come first."""
    over_items(Task.run, tasks)


class Fit(NamedTuple):
    """What one method learned without one fold."""

    weights: Floats
    train: float
    """MAP on the queries learned from."""
    converged: bool
    values: Floats
    """(queries of the fold, measures)."""


class Trial:
    """One collection's aligned runs under the protocol: the same folds for every method."""

    def __init__(
        self, aligned: Aligned, *, splits: int, seed: int, beta: Beta, progress: Progress = silent
    ) -> None:
        self.aligned, self.progress = aligned, progress
        self.fold = np.array([fold_of_queries(len(aligned.queries), FOLDS, seed + s) for s in range(splits)])
        """(splits, queries)"""
        self.problem = Problem(aligned, beta=beta)
        self.marks = pseudo_labels(aligned)
        """What each ranker would call relevant: all that the methods without labels have."""
        measures = [measure for _, measure in MEASURES] + [Measure("IPrec", recall=r) for r in RECALL_LEVELS]
        self._evaluator, self._measuring = AlignedEvaluator(aligned, measures), Measuring(measures)

    def fixed(self, scores: Mapping[str, Floats], kind: Kind) -> dict[str, MethodResult]:
        """Measure rows of scores that no split can change."""
        found = over_items(self._evaluator.values, scores.values())
        return {name: self._result(name, kind, [values]) for name, values in zip(scores, found, strict=True)}

    def singles(self) -> dict[str, MethodResult]:
        """Measure every ranker alone, and the one that is best in training."""
        raw, names = self.aligned.raw, self.aligned.rankers
        columns = [np.ascontiguousarray(raw[:, k]) for k in range(len(names))]
        alone = np.array(over_items(self._evaluator.values, columns))
        found = {name: self._result(name, "single", [values]) for name, values in zip(names, alone, strict=True)}
        return found | {BEST_SINGLE: self._best_single(alone)}

    def _best_single(self, alone: Floats) -> MethodResult:
        """Return the ranker that each training fold would choose, of (rankers, queries, measures) values."""
        weights = np.zeros((len(self.fold), FOLDS, len(alone)))
        train = np.zeros(weights.shape[:2])
        values = np.empty((len(self.fold), *alone.shape[1:]))
        for s, fold in enumerate(self.fold):
            for f in range(FOLDS):
                reached = alone[:, fold != f, 0].mean(axis=1)
                best = int(np.argmax(reached))
                weights[s, f, best], train[s, f] = 1.0, reached[best]
                values[s, fold == f] = alone[best, fold == f]
        return self._result(BEST_SINGLE, "baseline", values, weights, train)

    def unsupervised(self, fitted: Mapping[str, Learned]) -> dict[str, MethodResult]:
        """Measure what was fitted on all queries without their labels."""
        return {
            name: self._result(
                name, "unsupervised", [self._measuring.values(self.problem, one.weights_)],
                one.weights_[None, None, :], notes=getattr(one, "notes_", ()),
            )
            for name, one in fitted.items()
        }  # fmt: skip

    def supervised(self, learners: Mapping[str, Learn]) -> dict[str, MethodResult]:
        """Learn without each fold of each split, and measure on it."""
        tasks = self.tasks(learners)
        run_all(tasks)
        return self.collect(learners, tasks)

    def tasks(self, learners: Mapping[str, Learn]) -> list[Task[list[Fit]]]:
        """Return the work of `supervised`, a task for each fold of each split."""
        counter = _Counter("learning", self.fold.shape[0] * FOLDS * len(learners), self.progress)

        def task(s: int, f: int) -> Task[list[Fit]]:
            return Task(lambda: self._learn(learners, self.fold[s] == f, counter))

        return [task(s, f) for s in range(len(self.fold)) for f in range(FOLDS)]

    def _learn(self, learners: Mapping[str, Learn], held_out: NDArray[np.bool_], counter: "_Counter") -> list[Fit]:
        fold = training(self.problem, self.aligned, self.marks, np.flatnonzero(~held_out))
        test = self.problem.select(np.flatnonzero(held_out))
        return [counter.count(self._fit(learn, fold, test)) for learn in learners.values()]

    def _fit(self, learn: Learn, fold: Training, test: Problem) -> Fit:
        found = learn(fold)
        weights = found.weights_
        train, values = fold.problem.exact(weights), self._measuring.values(test, weights)
        return Fit(weights, train, found.converged_, values)

    def collect(self, learners: Mapping[str, Learn], tasks: Sequence[Task[list[Fit]]]) -> dict[str, MethodResult]:
        """Return the results of tasks that are done."""
        results = {}
        for m, name in enumerate(learners):
            fits = [task.value[m] for task in tasks]
            weights = np.array([fit.weights for fit in fits]).reshape(len(self.fold), FOLDS, -1)
            train = np.array([fit.train for fit in fits]).reshape(len(self.fold), FOLDS)
            values = np.empty((*self.fold.shape, fits[0].values.shape[1]))
            for i, fit in enumerate(fits):
                s, f = divmod(i, FOLDS)
                values[s, self.fold[s] == f] = fit.values
            short = sum(not fit.converged for fit in fits)
            notes = (Note("stopped-early", short, f"{short} of {len(fits)} fits stopped at their limit."),)
            results[name] = self._result(name, kind_of(name), values, weights, train, notes if short else ())
        return results

    def _result(
        self,
        name: str,
        kind: Kind,
        splits: Sequence[Floats] | Floats,
        weights: Floats | None = None,
        train: Floats | None = None,
        notes: tuple[Note, ...] = (),
    ) -> MethodResult:
        """Return the result of (splits, queries, measures) values."""
        values, nothing = np.asarray(splits), np.zeros((0, 0))
        weights = np.zeros((0, 0, len(self.aligned.rankers))) if weights is None else weights
        train = nothing if train is None else train
        return MethodResult(name, kind, values[:, :, :3], values[:, :, 3:].mean(axis=1), weights, train, notes)


class _Counter:
    """Counts what several threads finish."""

    def __init__(self, task: str, total: int, progress: Progress) -> None:
        self._task, self._total, self._progress = task, total, progress
        self._done, self._lock = 0, threading.Lock()
        progress(task, 0, total)

    def count(self, done: Fit) -> Fit:
        with self._lock:
            self._done += 1
            self._progress(self._task, self._done, self._total)
        return done


def reproduce(
    collections: Sequence[str] = tuple(COLLECTIONS),
    *,
    splits: int = 10,
    seed: int = 0,
    data: Data = None,
    further: bool = True,
    progress: Progress = silent,
) -> Results:
    """Run the experiment of Section 5 on the named collections; everything follows from the seed.

    `further` adds BM25 and the dense rankers that are installed, in an ensemble of their own. `data` is the folder
    of the SMART collections, else GENM_DATA.
    """
    _check(collections, splits)
    started = time.perf_counter()
    loaded = [(name, load_collection(name, data=data)) for name in collections]  # all, before the long work begins
    found, notes, timings = [], list[Note](), {"loading": time.perf_counter() - started}
    for name, collection in loaded:
        started = time.perf_counter()
        one, said = study(name, collection, splits=splits, seed=seed, data=data, further=further, progress=progress)
        found.append(one)
        notes += said
        timings[one.title] = time.perf_counter() - started
    results = Results(tuple(found), splits, seed, timings=timings, notes=tuple(dict.fromkeys(notes)))
    return replace(results, tables=make_tables(results))


def study(
    name: str,
    collection: Collection,
    *,
    splits: int,
    seed: int,
    data: Data = None,
    further: bool = True,
    progress: Progress = silent,
) -> tuple[CollectionResult, tuple[Note, ...]]:
    """Run the experiment on one collection; also returns what a reader should know."""
    known = name.lower().replace("merged", "mc")
    name = known if known in COLLECTIONS else name
    title = COLLECTIONS.get(name, name)

    def report(task: str, done: int, total: int, /) -> None:
        progress(f"{title}: {task}", done, total)

    runs = paper_rankings(collection, report)
    aligned = _judged(align_runs(runs, collection.qrels, normalize="none"))
    trial = Trial(aligned, splits=splits, seed=seed, beta=PAPER_BETA, progress=report)
    more_runs, notes = further_rankings(collection, report) if further else ({}, ())
    more = _MoreRankers(runs | more_runs, collection.qrels, splits, seed) if further else None
    facts = Task(lambda: _facts(collection, aligned, data))
    blind, supervised = _blind_tasks(trial), trial.tasks(learners())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted in the notes of each method
        run_all([*supervised, *blind, facts, *(more.tasks if more else ())])
    measured = {name: result for task in blind for name, result in task.value.items()}
    methods = {name: measured[name] for name in (*aligned.rankers, BEST_SINGLE, UNIFORM, *RULES, *BLIND)}
    methods |= trial.collect(learners(), supervised)
    notes = tuple(replace(note, text=f"{title}: {note.text}") for note in notes) + _counted(title, methods)
    return CollectionResult(
        name.lower() if title != name else name, title, facts.value, aligned, trial.fold, methods,
        more.results() if more else {}, more.trial.aligned.rankers if more else (),
    ), notes  # fmt: skip


def _blind_tasks(trial: Trial) -> list[Task[dict[str, MethodResult]]]:
    """Return the work on what no labels can change, each piece with its measuring."""
    aligned, marks = trial.aligned, trial.marks

    def on_z() -> dict[str, MethodResult]:
        scores = on_z_scores(aligned, marks)
        blind = {UNS_Z: scores.pop(UNS_Z)}
        return trial.fixed(scores, "rule") | trial.fixed(blind, "unsupervised")

    return [
        Task(lambda: trial.unsupervised(unsupervised(aligned, marks))),
        Task(lambda: trial.fixed(on_ranks(aligned), "rule")),
        Task(lambda: trial.fixed(on_minmax(aligned), "rule")),
        Task(on_z),
        Task(lambda: trial.fixed({UNIFORM: rule_scores(aligned, "sum")}, "baseline")),
        Task(trial.singles),
    ]


class _MoreRankers:
    """The ensemble with further rankers, on min-max scores, as tasks among the others."""

    def __init__(self, runs: Mapping[str, Run], qrels: Qrels, splits: int, seed: int) -> None:
        aligned = _judged(align_runs(runs, qrels, normalize="minmax"))
        self.trial = trial = Trial(aligned, splits=splits, seed=seed, beta="auto")
        self._learners = {BAT: lambda fold: NewtonFuser(starts=fold.starts[:1]).fit_problem(fold.problem)}
        self._blind = [
            Task(trial.singles),
            Task(lambda: trial.fixed({UNIFORM_MINMAX: rule_scores(aligned, "sum")}, "baseline")),
            Task(lambda: trial.fixed({RRF: rule_scores(aligned, "rrf")}, "rule")),
            Task(lambda: trial.fixed({UNS_Z: on_z_scores(aligned, trial.marks)[UNS_Z]}, "unsupervised")),
        ]
        self._supervised = trial.tasks(self._learners)
        self.tasks = [*self._blind, *self._supervised]

    def results(self) -> dict[str, MethodResult]:
        """Return what was found, once the tasks are done."""
        found = {name: result for task in self._blind for name, result in task.value.items()}
        return found | self.trial.collect(self._learners, self._supervised)


def make_tables(results: Results) -> tuple[ResultTable, ...]:
    """Return all tables that the results can fill."""
    found = results.collections
    rankers = dict.fromkeys(name for one in found for name in one.aligned.rankers)
    listed = [
        *rankers, BEST_SINGLE, UNIFORM, *RULES, *BLIND,
        *(name for name in learners() if not name.endswith("uniform start")),
    ]  # fmt: skip
    more = dict.fromkeys(name for one in found for name in one.more)
    made = [
        bar.bar_table(found),
        tables.main_table(found, results.splits),
        bar.rivals_table(found),
        bar.unsupervised_table(found),
        tables.repairs_table(found),
        *(tables.methods_table(found, m, listed) for m in range(len(MEASURES))),
        bar.more_table(found, list(more)),
        bar.weights_table(found, [ENM, BAT, ON, AUTO, UNS]),
        tables.toy_table(),
        tables.data_table(found),
        tables.summary_table(),
    ]
    return tuple(table for table in made if table is not None)


def _judged(aligned: Aligned) -> Aligned:
    """Return the queries that have a relevant document; the others have no average precision."""
    kept = np.flatnonzero(aligned.n_relevant() > 0)
    return aligned if len(kept) == len(aligned.queries) else aligned.select(kept)


def _facts(collection: Collection, aligned: Aligned, data: Data) -> Facts:
    try:
        profile = paper_profile(smart_stopwords(data=data))
    except InputError:  # pydocs needs no data, so the paper's stop list may not be there
        as_printed = None
    else:
        as_printed = len(read_documents(collection.doc_texts, profile).vocabulary)
    qrels = collection.qrels
    judgments = list(qrels.queries), list(qrels.docs), qrels.starts, qrels.doc, qrels.relevance
    return Facts(
        documents=len(collection.doc_ids),
        queries=len(collection.query_ids),
        judged=len(aligned.queries),
        terms=len(read_documents(collection.doc_texts, PROFILE).vocabulary),
        terms_as_printed=as_printed,
        relevant=int(aligned.n_relevant().sum()),
        sha256=content_key(collection.doc_ids, collection.doc_texts, collection.query_texts, *judgments),
    )


def _counted(title: str, methods: dict[str, MethodResult]) -> tuple[Note, ...]:
    """Return the methods' notes with the collection's name; the printed algorithms stop wherever they like."""
    return tuple(
        replace(note, text=f"{title}, {name}: {note.text}")
        for name, result in methods.items()
        for note in result.notes
        if kind_of(name) != "printed"
    )


def _check(collections: Sequence[str], splits: int) -> None:
    if not collections or len(set(collections)) < len(collections):
        raise InputError(f"collections: expected different names, at least one; found {list(collections)!r}.")
    if splits < 1:
        raise InputError(f"splits: expected at least 1, 10 is usual; found {splits}.")
