"""`pull`: ask every ranker every query, and keep the lists as runs."""

import itertools
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import msgspec

from genm.connect.config import PullConfig, digests, read_config
from genm.connect.engine import DUPLICATE_RULES, Answer, Engine, check_depth
from genm.connect.journal import NAME as JOURNAL
from genm.connect.journal import Journal, Key
from genm.connect.queries import Encoder, Queries, Vectors, read_queries, read_vectors
from genm.connect.registry import connect
from genm.connect.sources import ask_source, open_source
from genm.connect.templates import Values, names_in
from genm.errors import EngineError, InputError
from genm.formatting import plain
from genm.io import check_outputs, make_folder, write_text
from genm.progress import Progress, silent
from genm.read import write_run, write_texts
from genm.records import Note, Run, first_few

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
MOST_PATIENCE = 600.0
"""Seconds: an engine that asks for a longer pause is left alone, and the pull can be resumed later."""
HOPELESS = 20
"""So many failed searches, and no successful one, end a pull."""
PARTIAL = ":partial"
"""Ends the tag of a run that holds answers of a part of the index."""


class PullOptions(TypedDict, total=False):
    """What `pull` takes by name; all but the last five are keys of the configuration too."""

    depth: int
    page_size: int | None
    rate: float | None
    concurrency: int
    retries: int
    timeout: float
    duplicates: str
    id_field: str | None
    texts: tuple[str, ...] | bool
    inputs: tuple[str, ...]
    resume: bool
    allow_partial: bool
    allow_changes: bool
    skip_failed: bool


class Failure(NamedTuple):
    """A search that failed for good."""

    ranker: str
    query_id: str
    reason: str


class PullError(EngineError):
    """Searches failed, so that no run was written; what succeeded is kept for `resume`."""

    def __init__(self, message: str, failures: tuple[Failure, ...]) -> None:
        super().__init__(message)
        self.failures = failures
        """Ranker, query id and reason of every search that failed."""


@dataclass(frozen=True)
class Pulled:
    """The runs of a pull and what happened on the way."""

    runs: dict[str, Run]
    """A run for each ranker."""
    queries: dict[str, str]
    """Texts by query id, without queries that failed."""
    texts: dict[str, str]
    """Texts by document id, if they were asked for."""
    failures: tuple[Failure, ...]
    """Searches that failed, with `skip_failed`."""
    notes: tuple[Note, ...]
    files: tuple[Path, ...]
    """What was written."""


class _Ranker(NamedTuple):
    name: str
    ask: Callable[[Values], Answer]
    depth: int
    vectors: Vectors


class _Plan(NamedTuple):
    """Everything that a pull needs, whatever the source is."""

    rankers: list[_Ranker]
    queries: Queries
    parts: dict[str, Any]
    engine: Engine | None
    threads: int
    about: dict[str, Any]
    inputs: tuple[Any, ...]
    """Files that are read here, and must not be written."""


class _Rules(NamedTuple):
    resume: bool = False
    allow_partial: bool = False
    allow_changes: bool = False
    skip_failed: bool = False


class _Speed(NamedTuple):
    rate: float | None
    retries: int


def pull(
    source: Any,
    queries: str | os.PathLike[str] | Mapping[str, str] | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    vectors: str | os.PathLike[str] | Mapping[str, Any] | Encoder | None = None,
    progress: Progress = silent,
    **options: Unpack[PullOptions],
) -> Pulled:
    """Ask every ranker every query and return the lists as runs, with raw scores.

    Args:
        source: A TOML file, its keys as a dictionary, or `{ranker: source}`, where a source is a callable
            `(query, depth=..., vector=...)` that returns `(document id, score)` pairs, a LangChain or LlamaIndex
            retriever, a Haystack component or a PyTerrier transformer. One such source alone gives the run "run".
        queries: A file, a folder in BEIR form, or `{query id: text}`; replaces that of the configuration.
        output: A folder for the runs, NAME.trec, with queries.tsv, pull.json and, with texts, docs.tsv. What is
            finished is kept there until all is written, so that a pull can be resumed. None writes nothing.
        vectors: A file, `{query id: vector}`, or a function of a list of texts, for all rankers that need vectors.
        progress: Called after each search.
        **options: depth; duplicates ("error", "max", "first" or "last"); concurrency, rate (searches a second),
            retries, timeout, page_size; id_field; texts; resume; allow_partial (keep answers of a part of the
            index); allow_changes (keep lists though the index changed); skip_failed (leave failed queries out);
            inputs (more files that must not be written over).

    Raises:
        InputError: The configuration, the queries or the vectors cannot be used.
        EngineError: The engine cannot be reached, refuses everything, or its index changed.
        PullError: Some searches failed; nothing was written, and `resume=True` tries only them again.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if unknown := sorted(set(given) - set(PullOptions.__annotations__)):
        raise InputError(
            f"{unknown[0]}: expected one of {', '.join(PullOptions.__annotations__)}; found another name."
        )
    inputs = tuple(given.pop("inputs", ()))
    rules = _Rules(**{name: bool(given.pop(name)) for name in _Rules._fields if name in given})
    with ExitStack() as stack:
        if isinstance(source, PullConfig | str | os.PathLike) or (
            isinstance(source, Mapping) and "engine" in source
        ):
            plan, speed = _engine_plan(source, queries, vectors, given, progress, stack)
        else:
            plan, speed = _python_plan(source, queries, vectors, given, progress)
        plan = plan._replace(inputs=(*plan.inputs, *inputs))
        return _carry_out(plan, speed, rules, output, progress)


def _engine_plan(
    source: Any, queries: Any, vectors: Any, given: dict[str, Any], progress: Progress, stack: ExitStack
) -> tuple[_Plan, _Speed]:
    """Open the engine, check every template, and read queries and vectors; nothing is asked yet."""
    if isinstance(source, PullConfig):
        config = msgspec.structs.replace(source, **given)
    else:
        config = read_config(source, **given)
    engine = stack.enter_context(
        connect(engine=config.engine, address=config.address, index=config.index, **config.access_options())
    )
    templates = {name: engine.read_template(one.search, f"rankers.{name}") for name, one in config.rankers.items()}
    place = config.query_source()
    if queries is None and place is None:
        raise InputError(
            "queries: expected a file; found none. Name it in the configuration, or with --queries FILE."
        )
    if queries is not None or place is None:
        asked = read_queries(queries, progress=progress)
    else:
        asked = read_queries(place.file, form=place.format, top=place.top, qrels=place.qrels, progress=progress)
    rankers = []
    for name, one in config.rankers.items():
        needed = "vector" in names_in(one.search)
        own = _ranker_vectors(one.vectors or vectors or config.vectors, asked) if needed else {}
        if needed and not own:
            raise InputError(
                f"rankers.{name}: expected vectors of the queries, since the template has $vector; found none. "
                "Give "
                "vectors: a column of the queries, a file, or a function (see docs/pull.md)."
            )
        ask = partial(engine.ask, templates[name], page_size=config.page_size, duplicates=config.duplicates)
        rankers.append(_Ranker(name, ask, one.depth or config.depth, own))
    about = {"engine": config.engine, "address": config.address, "index": config.index, "version": engine.version()}
    threads = min(config.concurrency, engine.most_threads)
    vector_files = (vectors, config.vectors, *(one.vectors for one in config.rankers.values()))
    inputs = (source, queries, None if place is None else place.file, config.address, *vector_files)
    plan = _Plan(rankers, asked, config.parts(), engine, threads, about, inputs)
    return plan, _Speed(config.rate, config.retries)


def _ranker_vectors(source: Any, queries: Queries) -> Vectors:
    if source is not None:
        return read_vectors(source, queries.texts, queries.file_order)
    return read_vectors(queries.vectors, queries.texts) if queries.vectors else {}


def _python_plan(
    source: Any, queries: Any, vectors: Any, given: dict[str, Any], progress: Progress
) -> tuple[_Plan, _Speed]:
    sources = dict(source) if isinstance(source, Mapping) else {"run": source}
    if not sources or not all(isinstance(name, str) for name in sources):
        raise InputError("source: expected {ranker: source} with names as text; found none, or other keys.")
    if queries is None:
        raise InputError("queries: expected a file or {query id: text}; found none.")
    depth, duplicates = check_depth(given.get("depth", 100)), given.get("duplicates", "error")
    if duplicates not in DUPLICATE_RULES:
        raise InputError(f"duplicates: expected one of {', '.join(DUPLICATE_RULES)}; found {duplicates!r:.40}.")
    asked = read_queries(queries, progress=progress)
    found = _ranker_vectors(vectors, asked)
    opened = {name: open_source(name, one, id_field=given.get("id_field")) for name, one in sources.items()}
    with_texts = bool(given.get("texts"))
    rankers = [
        _Ranker(name, partial(_ask_python, name, one, duplicates, with_texts=with_texts), depth, found)
        for name, one in opened.items()
    ]
    parts = {
        "rankers": {name: [one.kind, depth] for name, one in opened.items()},
        "duplicates": duplicates,
        "texts": with_texts,
    }
    about = {"engine": "python", "sources": {name: one.kind for name, one in opened.items()}}
    plan = _Plan(rankers, asked, parts, None, given.get("concurrency", 1), about, (queries, vectors))
    return plan, _Speed(given.get("rate"), given.get("retries", 5))


def _ask_python(name: str, source: Any, duplicates: str, values: Values, *, with_texts: bool) -> Answer:
    answer = ask_source(name, source, values, duplicates)
    return answer if with_texts else Answer(answer.hits, {}, answer.partial, answer.n_duplicates)


def _carry_out(plan: _Plan, speed: _Speed, rules: _Rules, output: Any, progress: Progress) -> Pulled:
    """Ask what the journal lacks, check the whole, and write it."""
    names = [ranker.name for ranker in plan.rankers]
    folder = None if output is None else make_folder(output)
    if folder is not None:
        written = (*(f"{name}.trec" for name in names), "docs.tsv", "queries.tsv", "pull.json", JOURNAL)
        read = [path for path in plan.inputs if isinstance(path, str | os.PathLike)]
        check_outputs([folder / name for name in written], read)
    state = plan.engine.state() if plan.engine is not None else None
    kept = _content_digests(plan)
    with nullcontext() if folder is None else Journal(folder, kept, state, resume=rules.resume) as journal:
        began = state if journal is None else journal.state
        _check_state(began, state, rules, "since the pull began")
        answers: dict[Key, Answer] = {} if journal is None else journal.answers
        keep = answers.__setitem__ if journal is None else journal.add
        failures = _ask_all(plan, speed, rules, answers, keep, progress)
        after = plan.engine.state() if plan.engine is not None else None
        _check_state(began, after, rules, "during the pull")
        if failures and not rules.skip_failed:
            raise _failed(failures, len(names) * len(plan.queries.texts), kept=folder is not None)
        pulled = _pulled(plan, answers, failures, changed=began != after)
        if folder is None or journal is None:
            return pulled
        files = _write(pulled, plan, folder, kept, after)
        journal.remove()
        return Pulled(pulled.runs, pulled.queries, pulled.texts, pulled.failures, pulled.notes, files)


def _content_digests(plan: _Plan) -> dict[str, str]:
    """Return digests of all that decides the content of the runs."""
    vectors = {ranker.name: ranker.vectors for ranker in plan.rankers}
    return digests({**plan.parts, "queries": dict(plan.queries.texts), "vectors": vectors})


def _check_state(before: str | None, now: str | None, rules: _Rules, when: str) -> None:
    if before != now and not rules.allow_changes:
        raise EngineError(
            f"expected an index that does not change; found that it changed {when}: {before} then, {now} now. The "
            "lists would mix two states. Pull again into another folder, or keep them with --resume "
            "--allow-changes."
        )


def _failed(failures: list[Failure], n: int, *, kept: bool) -> PullError:
    first = failures[0]
    advice = " Finished ones are kept: try the others again with --resume, or leave these queries out with "
    return PullError(
        f"{len(failures):,} of {n:,} searches failed, so no run was written; the first is {first.ranker}, query "
        f"{first.query_id!r}: {first.reason}{advice + '--skip-failed.' if kept else ''}",
        tuple(failures),
    )


class _Pacer:
    """Spaces requests evenly, and lets all wait when the engine asks for a pause."""

    def __init__(self, rate: float | None) -> None:
        self._gap = 0.0 if rate is None else 1.0 / rate
        self._next = 0.0
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def wait(self) -> None:
        """Wait for the next turn."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        self.sleep(turn - now)

    def pause(self, seconds: float) -> None:
        """Let the next request wait."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def sleep(self, seconds: float) -> None:
        """Sleep, unless the pull is being stopped."""
        if seconds > 0:
            self.stopped.wait(seconds)


def pause_before(attempt: int, asked: float) -> float:
    """Return the seconds to wait: twice as many each time, less a random part, and at least what was asked."""
    grown = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt)
    return max(asked, grown * random.uniform(0.5, 1.0))  # noqa: S311 (no secret)


def _ask_patiently(ranker: _Ranker, values: Values, pacer: _Pacer, retries: int) -> Answer:
    for attempt in itertools.count():
        pacer.wait()
        if pacer.stopped.is_set():
            break
        try:
            return ranker.ask(values)
        except EngineError as error:
            if not error.retry or attempt >= retries:
                raise
            if error.after > MOST_PATIENCE:
                raise EngineError(
                    f"{error} It asks to wait {error.after:.0f} s; resume later.", fatal=True
                ) from None
            pacer.pause(error.after)
            pacer.sleep(pause_before(attempt, error.after))
    raise EngineError("stopped")


def _ask_all(
    plan: _Plan,
    speed: _Speed,
    rules: _Rules,
    answers: Mapping[Key, Answer],
    keep: Callable[[Key, Answer], None],
    progress: Progress,
) -> list[Failure]:
    """Ask what has no answer yet, several searches at once; return what failed, in the order of asking."""
    total = len(plan.rankers) * len(plan.queries.texts)
    waiting = _tasks(plan, answers)
    pacer = _Pacer(speed.rate)
    failures: dict[Key, str] = {}
    n_good, done = 0, len(answers)
    progress("pulling", done, total)
    running: dict[Future[Answer], Key] = {}
    with ThreadPoolExecutor(plan.threads) as pool:
        try:
            while True:
                for ranker, values in itertools.islice(waiting, 2 * plan.threads - len(running)):
                    future = pool.submit(_ask_patiently, ranker, values, pacer, speed.retries)
                    running[future] = (ranker.name, values.query_id)
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key = running.pop(future)
                    try:
                        answer = _whole(future.result(), rules)
                    except EngineError as error:
                        failures[key] = str(error)
                        if error.fatal or (not n_good and len(failures) >= HOPELESS):
                            raise
                    else:
                        n_good += 1
                        keep(key, answer)
                    done += 1
                    progress("pulling", done, total)
        except BaseException:
            pacer.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    order = [(ranker.name, query_id) for ranker in plan.rankers for query_id in plan.queries.texts]
    return [Failure(*key, failures[key]) for key in order if key in failures]


def _tasks(plan: _Plan, answers: Mapping[Key, Answer]) -> Iterator[tuple[_Ranker, Values]]:
    for query_id, text in plan.queries.texts.items():
        for ranker in plan.rankers:
            if (ranker.name, query_id) not in answers:
                yield ranker, Values(query_id, text, ranker.vectors.get(query_id), ranker.depth)


def _whole(answer: Answer, rules: _Rules) -> Answer:
    if answer.partial and not rules.allow_partial:
        raise EngineError(
            f"expected an answer of the whole index; found a part: {answer.partial}. Mend the index, or keep such "
            "answers with --allow-partial."
        )
    return answer


def _pulled(plan: _Plan, answers: Mapping[Key, Answer], failures: list[Failure], *, changed: bool) -> Pulled:
    lost = {failure.query_id for failure in failures}
    queries = {query_id: text for query_id, text in plan.queries.texts.items() if query_id not in lost}
    notes = list(plan.queries.notes)
    if lost:
        notes.append(Note("failed", len(lost), f"{len(lost):,} queries failed and were left out: {_few(lost)}"))
    if changed:
        notes.append(Note("changed", 1, "the index changed during the pull: the lists mix its states"))
    runs = {}
    texts: dict[str, str] = {}
    for ranker in plan.rankers:
        found = {query_id: answers[ranker.name, query_id] for query_id in queries}
        own = _ranker_notes(ranker.name, found)
        notes += own
        table = {query_id: dict(answer.hits) for query_id, answer in found.items() if answer.hits}
        run = Run.from_dict(table, name=ranker.name)
        runs[ranker.name] = replace(run, notes=tuple(own))
        for answer in found.values():
            texts |= answer.texts
    return Pulled(runs, queries, dict(sorted(texts.items())), tuple(failures), tuple(notes), ())


def _ranker_notes(name: str, found: Mapping[str, Answer]) -> list[Note]:
    notes = []
    empty = [query_id for query_id, answer in found.items() if not answer.hits]
    partial_ids = [query_id for query_id, answer in found.items() if answer.partial]
    n_duplicates = sum(answer.n_duplicates for answer in found.values())
    if empty:
        notes.append(Note("empty", len(empty), f"{name}: {len(empty):,} queries got no document: {_few(empty)}"))
    if partial_ids:
        why = found[partial_ids[0]].partial
        text = f"{name}: {len(partial_ids):,} answers are of a part of the index ({why}): {_few(partial_ids)}"
        notes.append(Note("partial", len(partial_ids), text))
    if n_duplicates:
        text = f"{name}: {n_duplicates:,} documents came twice for a query; one of them was kept"
        notes.append(Note("duplicates", n_duplicates, text))
    return notes


def _few(ids: Any) -> str:
    return first_few([plain(query_id) for query_id in ids])


def _write(
    pulled: Pulled, plan: _Plan, folder: Path, kept: Mapping[str, str], state: str | None
) -> tuple[Path, ...]:
    """Write runs, queries, texts and what was asked; the same content gives the same bytes."""
    files = [folder / f"{name}.trec" for name in pulled.runs]
    for path, (name, run) in zip(files, pulled.runs.items(), strict=True):
        is_partial = any(note.code == "partial" for note in run.notes)
        write_run(run, path, tag=name + PARTIAL if is_partial else name)
    if pulled.texts:
        files.append(folder / "docs.tsv")
        write_texts(list(pulled.texts), list(pulled.texts.values()), files[-1])
    files.append(folder / "queries.tsv")
    write_texts(list(pulled.queries), list(pulled.queries.values()), files[-1])
    files.append(folder / "pull.json")
    record = {
        **plan.about,
        "rankers": {
            name: {"depth": r.depth, "rows": len(pulled.runs[name].doc)} for r in plan.rankers if (name := r.name)
        },
        "queries": len(pulled.queries),
        "state": state,
        "digests": dict(kept),
        "failures": [failure._asdict() for failure in pulled.failures],
        "notes": [msgspec.to_builtins(note) for note in pulled.notes],
    }
    write_text(files[-1], json.dumps(record, indent=2, ensure_ascii=True) + "\n")
    return tuple(files)
