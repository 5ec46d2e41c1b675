"""The whole experiment: load, rank, align, learn on one half of the queries, measure on the other, tabulate."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from genm.align import Aligned, align_runs
from genm.cache import content_key
from genm.collections import load_collection, smart_stopwords
from genm.errors import ConvergenceWarning, InputError
from genm.evidence import BEST_SINGLE, RRF, UNIFORM
from genm.fuse import rule_scores
from genm.learn import NewtonFuser
from genm.progress import Progress, silent
from genm.rankers import paper_profile, read_documents
from genm.records import Collection, Note, Qrels, Run
from genm.reproduce import bar, tables
from genm.reproduce.cells import Table
from genm.reproduce.methods import (
    AUTO,
    BAT,
    ENM,
    ON,
    RULES,
    UNS,
    UNS_COTRAINED,
    UNS_Z,
    kind_of,
    learners,
    on_minmax,
    on_ranks,
    on_z_scores,
    unsupervised,
)
from genm.reproduce.paper import COLLECTIONS, PAPER_BETA
from genm.reproduce.protocol import Trial
from genm.reproduce.rankings import PROFILE, further_rankings, paper_rankings
from genm.reproduce.results import MEASURES, CollectionResult, Facts, MethodResult, Results
from genm.reproduce.tasks import Task, run_all

Data = str | PathLike[str] | None
UNIFORM_MINMAX = "uniform weights, min-max"
BLIND = (UNS, UNS_Z, UNS_COTRAINED)


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

    def told(task: str, done: int, total: int, /) -> None:
        progress(f"{title}: {task}", done, total)

    runs = paper_rankings(collection, told)
    aligned = _judged(align_runs(runs, collection.qrels, normalize="none"))
    trial = Trial(aligned, splits=splits, seed=seed, beta=PAPER_BETA, progress=told)
    more_runs, notes = further_rankings(collection, told) if further else ({}, ())
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


def make_tables(results: Results) -> tuple[Table, ...]:
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
