"""Make a score table of runs and judgments of any size, in bounded memory.

Two passes. The first reads every list (the judgments, then each run) in pieces and appends its rows to files of
the work folder, one for each range of queries. The second takes these ranges in order, builds the runs of their
queries, aligns them by `align_runs`, and writes a shard as soon as enough rows are together. The order of the
queries is that of `align_runs`: that of the judgments, or without any that of first appearance in the runs. Where a
shard ends depends on the rows alone, neither on the memory nor on the number of threads.

Finished lists and shards are recorded in the work folder, so a command that was killed goes on from there and
leaves the same bytes. The manifest is written last.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from genm.align import Aligned, Depths, align_runs
from genm.align.aligned import offsets, per_query
from genm.align.runs import depths_of, weights_of_queries
from genm.cache import cache_folder, content_key
from genm.errors import FormatError, InputError
from genm.ids import Ids, hashes_of, intern, unite
from genm.io import PathLike, make_folder
from genm.normalizers import Normalize, negative_columns, normalizers_of
from genm.progress import Progress, silent
from genm.read import read_qrels, read_run
from genm.read.diagnostics import Diagnostics, Place
from genm.read.pieces import PIECE, PieceDiagnostics, read_pieces
from genm.read.rows import WHOLE_GRADES, Duplicates, Rows, as_qrels, as_run, check_grades, segments, whole_grades
from genm.read.sources import stem_of
from genm.read.trec import QRELS, RUN
from genm.records import Note, Qrels, Run, ranked_run
from genm.scale.spill import PLAN, QueryIndex, SpilledRows, WorkFolder
from genm.scale.storage import Storage
from genm.scale.table import (
    MANIFEST,
    SHARD_BYTES,
    ScoreTable,
    ScoreType,
    Shard,
    TableWriter,
    rows_per_shard,
    used_docs,
)

MEMORY = 2**30
"""About how many bytes are used beside what Python and the libraries take."""
WORK = ".work"
_JOURNAL, _LOCK = "shards.jsonl", "lock"
_ENTRY_BYTES = 240
"""About how many bytes a row of a list takes while its queries are aligned, beside its scores."""
_LINE_BYTES = 40
"""About how long a line of a run is."""
_PACKED_RATIO = 5

RunSource = PathLike | Run | Mapping[str, Mapping[str, float]]
"""A file, or a run in memory."""


def write_table(
    runs: Mapping[str, RunSource] | Sequence[RunSource] | PathLike,
    qrels: PathLike | Qrels | Mapping[str, Mapping[str, int]] | None,
    to: PathLike,
    *,
    normalize: Normalize = "minmax",
    depth: Depths = None,
    query_weights: Mapping[str, float] | None = None,
    dtype: ScoreType = "float32",
    shard_bytes: int = SHARD_BYTES,
    shard_rows: int | None = None,
    lenient: bool = False,
    duplicates: Duplicates = "error",
    grades: str = WHOLE_GRADES,
    memory: int = MEMORY,
    work: PathLike | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    tell: Callable[[str], None] | None = None,
) -> ScoreTable:
    """Write a score table of runs and judgments, larger than memory if need be, and open it.

    `runs` are files or runs by ranker name, a list of them, or the folder of `genm pull`. `to` is a folder, or an
    address such as s3://bucket/table (`storage_options` go to fsspec). `normalize`, `depth` and `query_weights` are
    those of `align_runs`, `lenient`, `duplicates` and `grades` those of the readers. float32 rounds the scores
    first; everything else is about the rounded ones.

    A shard has about `shard_bytes`, or at most `shard_rows` rows; a query is never split. `memory` is about what is
    used beside the libraries; `work` is a local folder for intermediate files (about the size of the unpacked
    input), by default inside the table, or in the cache for an address. After a crash the same call goes on where
    it stopped; `tell` is called with a sentence that says so.
    """
    _check_positive("memory", memory)
    lists = _lists(runs, qrels)
    rankers = tuple(one.name for one in lists if not one.is_judgments)
    rules = _Rules(
        rankers=rankers,
        normalize=normalize,
        depths=depths_of(depth, rankers),
        dtype=_one_of("dtype", dtype, get_args(ScoreType)),
        most=_shard_rows(shard_rows, shard_bytes, len(rankers), dtype),
        lenient=lenient,
        duplicates=_one_of("duplicates", duplicates, get_args(Duplicates)),
        grades=grades,
        memory=memory,
        labelled=qrels is not None,
    )
    normalizers_of(normalize, rankers)
    check_grades(grades)
    storage = Storage(to, storage_options)
    path = _work_path(storage, work)
    _check_destination(storage, lists, begun=(path / PLAN).exists())
    plan = _plan(lists, rules, query_weights)
    with _work_folder(storage, path) as folder:
        making = _Making(lists, rules, query_weights, storage, folder, progress, tell or _tell_nothing)
        try:
            making.prepare(plan)
            table = making.finish()
        except (FormatError, InputError):  # the same input would fail again: nothing here is of use
            folder.clear()
            with suppress(OSError):  # the folder of the table, where it is empty
                folder.path.parent.rmdir()
            raise
    folder.clear()
    return table


def _tell_nothing(_: str) -> None:
    return None


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise InputError(f"{name}: expected one of {', '.join(allowed)}; found {value!r}.")
    return value


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise InputError(f"{name}: expected a positive integer; found {value}.")


def _shard_rows(given: int | None, n_bytes: int, n_rankers: int, dtype: ScoreType) -> int:
    _check_positive("shard_rows", given)
    _check_positive("shard_bytes", n_bytes)
    return given if given is not None else rows_per_shard(n_rankers, dtype, n_bytes)


@dataclass(frozen=True, slots=True)
class _Rules:
    rankers: tuple[str, ...]
    normalize: Normalize
    depths: tuple[int | None, ...]
    dtype: ScoreType
    most: int
    lenient: bool
    duplicates: Duplicates
    grades: str
    memory: int
    labelled: bool

    @property
    def block(self) -> int:
        """How many rows of all lists are aligned at a time."""
        return max(1, self.memory // (2 * (_ENTRY_BYTES + 9 * len(self.rankers))))

    @property
    def piece(self) -> int:
        """How many bytes of text are parsed at a time."""
        return max(1, min(PIECE, self.memory // 16))


@dataclass(frozen=True, slots=True)
class _List:
    """The judgments or a run: a file, or what is in memory."""

    name: str
    given: str | Run | Qrels
    is_judgments: bool

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.given if isinstance(self.given, str) else self.name

    def size(self) -> int:
        """About how many bytes of text it has."""
        if not isinstance(self.given, str):
            return _LINE_BYTES * len(self.given.doc)
        packed = self.given.endswith((".gz", ".zst", ".zstd", ".parquet", ".pq"))
        return os.path.getsize(self.given) * (_PACKED_RATIO if packed else 1)

    def fingerprint(self) -> str:
        """Return what changes when its content does."""
        if isinstance(self.given, str):
            found = os.stat(self.given)
            return f"{os.path.realpath(self.given)} {found.st_size} {found.st_mtime_ns}"
        parts = (self.given.queries.text, self.given.docs.text, self.given.starts, self.given.doc)
        return content_key(*parts, self.given.values_by_row)

    def pieces(self, report: PieceDiagnostics, size: int, progress: Progress) -> Iterator[Rows]:
        """Yield the rows."""
        if isinstance(self.given, str):
            yield from read_pieces(
                self.given, QRELS if self.is_judgments else RUN, report, piece=size, progress=progress
            )
            return
        query = np.arange(len(self.given.queries), dtype=np.int32)
        values = np.asarray(self.given.values_by_row, np.float64)
        yield Rows(self.given.queries, self.given.docs, self.given.starts, query, self.given.doc, values, _no_place)


def _no_place(_: int) -> Place:
    return None


def _lists(runs: Any, qrels: Any) -> list[_List]:
    """Return the judgments, if there are any, and the runs."""
    if isinstance(runs, str | os.PathLike):
        runs = _pulled(runs)
    if isinstance(runs, Run | Qrels) or not isinstance(runs, Mapping | Sequence):
        raise InputError(
            f"runs: expected several runs; found {type(runs).__name__}. Give runs or files by name, or a list."
        )
    if isinstance(runs, Mapping):
        named = list(runs.items())
    else:
        named = [(run.name if isinstance(run, Run) else stem_of(str(run)), run) for run in runs]
    names = [name for name, _ in named]
    if not names or len(set(names)) < len(names) or "" in names:
        raise InputError(
            f"runs: expected at least one, each with its own name; found {', '.join(map(repr, names)) or 'none'}. "
            "Pass a mapping of name to run to name them yourself."
        )
    lists = [_List(name, _opened(run, name), is_judgments=False) for name, run in named]
    if qrels is None:
        return lists
    judged = _path(qrels) if isinstance(qrels, str | os.PathLike) else read_qrels(qrels)
    return [_List("qrels", judged, is_judgments=True), *lists]


def _pulled(folder: PathLike) -> dict[str, str]:
    """Return the runs in the folder of a pull."""
    record = Path(folder) / "pull.json"
    try:
        names = json.loads(record.read_bytes())["rankers"]
        return {str(name): str(Path(folder) / f"{name}.trec") for name in names}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder}: expected the folder of a finished genm pull; found no pull.json that lists its rankers. "
            "Name the runs themselves: NAME=FILE."
        ) from None


def _opened(run: Any, name: str) -> str | Run:
    return _path(run) if isinstance(run, str | os.PathLike) else read_run(run, name=name)


def _path(given: PathLike) -> str:
    path = os.fspath(given)
    if path == "-":
        raise InputError(
            "-: expected files, which are read again after a crash; found standard input. Save it first."
        )
    if not Path(path).is_file():
        found = "a folder" if Path(path).is_dir() else "no such file"
        raise InputError(f"{path}: expected a readable file; found {found}. Check the path and the working folder.")
    return path


def _plan(lists: Sequence[_List], rules: _Rules, weights: Mapping[str, float] | None) -> str:
    """Return a digest of inputs and options: work that was begun under another one is of no use."""
    content = {
        "lists": [(one.name, one.is_judgments, one.fingerprint()) for one in lists],
        "rules": asdict(replace(rules, normalize=repr(rules.normalize))),
        "weights": None if weights is None else list(weights.items()),
    }
    return hashlib.sha256(json.dumps(content, default=repr).encode()).hexdigest()


def _check_destination(storage: Storage, lists: Sequence[_List], *, begun: bool) -> None:
    """Refuse to write over files that are no table, finished or begun, or over what is read."""
    names = storage.names()
    if storage.is_local and Path(storage.path).exists() and not Path(storage.path).is_dir():
        raise InputError(f"{storage.shown}: expected a folder to write; found a file. Name another place.")
    if names and MANIFEST not in names and names != [WORK] and not begun:
        raise InputError(
            f"{storage.shown}: expected a new or empty folder, or a score table to replace; found other files, "
            f"such as {names[0]}. Name another folder."
        )
    if MANIFEST in names:
        ScoreTable.open(storage.path, storage_options=storage.options)  # refuses what is no table
    if storage.is_local:
        inside = Path(os.path.realpath(storage.path))
        for one in lists:
            if isinstance(one.given, str) and inside in Path(os.path.realpath(one.given)).parents:
                raise InputError(
                    f"{storage.shown}: expected a folder that is not read here; found that {one.given} is in it. "
                    "Name another folder to write."
                )


def _work_path(storage: Storage, given: PathLike | None) -> Path:
    """Return where the work folder is: the same for the same table, so that it is found after a crash."""
    if given is None and storage.is_local:
        return Path(storage.path) / WORK
    place = os.path.realpath(storage.path) if storage.is_local else storage.shown
    name = hashlib.sha256(place.encode()).hexdigest()[:16]
    return (cache_folder() / "shard" if given is None else Path(given)) / name


@contextmanager
def _work_folder(storage: Storage, path: Path) -> Iterator[WorkFolder]:
    """Make the work folder and lock it."""
    make_folder(path)
    lock = FileLock(path / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"{storage.shown}: expected no other genm shard that writes here; found one running. Wait for it."
        ) from None
    try:
        yield WorkFolder(path)
    finally:
        lock.release()


class _Making:
    """A table that is being made."""

    def __init__(
        self,
        lists: Sequence[_List],
        rules: _Rules,
        query_weights: Mapping[str, float] | None,
        storage: Storage,
        work: WorkFolder,
        progress: Progress,
        tell: Callable[[str], None],
    ) -> None:
        self.lists, self.rules, self.work = lists, rules, work
        self.given_weights, self.storage = query_weights, storage
        self.progress, self.tell = progress, tell
        self.queries = QueryIndex()
        self.entries = np.zeros(0, np.int64)
        """How many rows of all lists each query has."""
        self.records: list[dict[str, Any]] = []
        """Of each list that was read: files, notes and counts."""

    def prepare(self, plan: str) -> None:
        """Read all lists into the work folder; those that an earlier run finished are taken as they are."""
        state = self.work.load(PLAN)
        if not isinstance(state, dict) or state.get("plan") != plan:
            if state is not None:
                self.tell("unfinished work of other inputs or options was found: started anew.")
            self.work.remove("rows-")
            self.work.remove("list-")
            self.work.remove("queries-")
            self.work.remove(_JOURNAL)
            self.work.save(PLAN, {"plan": plan, "version": 1})
        else:
            self._resume_lists()
        for number in range(len(self.records), len(self.lists)):
            self._read(number)

    def _resume_lists(self) -> None:
        while len(self.records) < len(self.lists):
            record = self.work.load(f"list-{len(self.records):04}.json")
            if record is None:
                break
            self.records.append(record)
        if self.records:
            ids, self.entries = self.work.load_queries(f"queries-{len(self.records) - 1:04}.npz")
            self.queries = QueryIndex(ids)
            self.tell(f"going on after {len(self.records)} of {len(self.lists)} lists that were read before.")

    @property
    def _per_partition(self) -> int:
        return int(self.records[0]["per_partition"])

    def _read(self, number: int) -> None:
        """Append the rows of a list to the files of its partitions, and record that it is finished."""
        one, rules = self.lists[number], self.rules
        report = PieceDiagnostics(one.label, lenient=rules.lenient)
        adds = one.is_judgments or not rules.labelled
        self.work.remove(f"rows-{number:04}-")
        sizes: dict[str, int] = {}
        unknown: list[NDArray[np.uint64]] = []
        known = np.zeros(len(self.queries), np.bool_)
        record: dict[str, Any] = {"sizes": sizes, "first_unknown": None}
        n_rows = 0
        for rows in one.pieces(report, rules.piece, self.progress):
            graded = whole_grades(rows, rules.grades, report) if one.is_judgments else rows
            found = self.queries.add(graded.queries) if adds else self.queries.find(graded.queries)
            if number == 0 and "per_partition" not in record:
                record["per_partition"] = self._choose_partitions(len(self.queries), one)
            if len(known) < len(self.queries):
                known = np.append(known, np.zeros(len(self.queries) - len(known), np.bool_))
                self.entries = np.append(self.entries, np.zeros(len(self.queries) - len(self.entries), np.int64))
            known[found[found >= 0]] = True
            strange = np.flatnonzero(found < 0)
            if len(strange):
                unknown.append(hashes_of(graded.queries.take(strange)))
                record["first_unknown"] = record["first_unknown"] or graded.queries[int(strange[0])]
            per = int(record["per_partition"] if number == 0 else self._per_partition)
            self._spill(number, graded, found, per, sizes, n_rows)
            n_rows += len(graded.doc)
        record |= {
            "notes": [asdict(note) for note in report.notes],
            "rows": n_rows,
            "known": int(np.count_nonzero(known)),
            "unknown": len(np.unique(np.concatenate(unknown))) if unknown else 0,
        }
        record.setdefault("per_partition", 1)
        self.work.save_queries(f"queries-{number:04}.npz", self.queries.ids, self.entries)
        if number:
            self.work.remove(f"queries-{number - 1:04}.npz")
        self.work.save(f"list-{number:04}.json", record)
        self.records.append(record)
        self._check_common(one, record)

    def _choose_partitions(self, n_queries: int, first: _List) -> int:
        """Return how many queries make a partition, as the first piece of the first list suggests.

        A wrong guess costs time, not memory: partitions that are too large are read several times.
        """
        expected = n_queries * max(1.0, first.size() / self.rules.piece)
        n_entries = sum(one.size() for one in self.lists) / _LINE_BYTES
        n_partitions = max(1.0, np.ceil(2.0 * n_entries / self.rules.block))
        return max(1, int(np.ceil(expected / n_partitions)))

    def _spill(
        self, number: int, rows: Rows, found: NDArray[np.int64], per: int, sizes: dict[str, int], n_before: int
    ) -> None:
        """Append the rows of a piece to the files of their partitions."""
        query = np.repeat(found[rows.query], np.diff(rows.starts))
        chosen = np.flatnonzero(query >= 0)
        self.entries += np.bincount(query[chosen], minlength=len(self.entries))
        partition = query[chosen] // per
        if (np.diff(partition) < 0).any():
            order = np.argsort(partition, kind="stable")
            chosen, partition = chosen[order], partition[order]
        bounds = np.flatnonzero(np.diff(partition, prepend=-1, append=-1))
        for begin, end in itertools.pairwise(bounds.tolist()):
            at, p = chosen[begin:end], int(partition[begin])
            docs = rows.docs.take(rows.doc[at])
            size = self.work.append(
                f"rows-{number:04}-{p:06}.bin", rows.value[at], query[at], at + n_before, n_before, docs
            )
            sizes[str(p)] = sizes.get(str(p), 0) + size

    def _check_common(self, one: _List, record: Mapping[str, Any]) -> None:
        if not one.is_judgments and self.rules.labelled and record["unknown"] and not record["known"]:
            raise InputError(
                f"run {one.name!r} and the judgments: expected queries in common; found none (the run's first is "
                f"{record['first_unknown']!r}, the judgments' {self.queries.ids[0]!r}). Are both of the same "
                "collection?"
            )

    def finish(self) -> ScoreTable:
        """Write the shards that are not yet written, and the manifest."""
        rules, n_queries = self.rules, len(self.queries)
        if not n_queries:
            raise InputError("score table: expected at least one query; found none. Check the runs and judgments.")
        weight_notes: list[Note] = []
        weights = weights_of_queries(self.given_weights, self.queries.ids, weight_notes)
        writer = TableWriter(
            self.storage, rules.rankers, normalize=rules.normalize, depths=rules.depths, labelled=rules.labelled,
            dtype=rules.dtype,
        )  # fmt: skip
        counts = _Counts(rules.rankers)
        reports = [Diagnostics(one.label, lenient=rules.lenient) for one in self.lists]
        begin = self._resume_shards(writer, counts, reports)
        self.storage.remove(MANIFEST)
        done = sum(shard.queries for shard in writer.shards)
        known = [(begin, [report.state() for report in reports])]
        pending: list[Aligned] = []
        ends = np.cumsum(self.entries)
        while begin < n_queries:
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + rules.block, side="right"))
            end = min(max(end, begin + 1), n_queries)
            aligned = self._aligned(begin, end, weights, reports)
            if begin < done:
                aligned = aligned.select(np.arange(min(done, end) - begin, end - begin))
            begin = end
            known.append((begin, [report.state() for report in reports]))
            pending.append(aligned)
            for part in _complete(pending, rules.most, last=begin == n_queries):
                shard = writer.add(part)
                counts.add(part)
                done += shard.queries
                known = [*[one for one in known if one[0] <= done][-1:], *[one for one in known if one[0] > done]]
                self._record(shard, part, counts, known[0])
            self.progress("writing shards", int(ends[begin - 1]), max(int(ends[-1]), 1))
        table = writer.finish((*self._notes(reports, counts), *weight_notes))
        for name in set(self.storage.names()) - {shard.file for shard in table.shards}:
            if name.startswith("shard-") and name.endswith(".parquet"):
                self.storage.remove(name)  # of the table that was here before
        return table

    def _record(self, shard: Shard, part: Aligned, counts: "_Counts", known: tuple[int, list[Any]]) -> None:
        """Enter a shard into the journal, with the last query before which all notes are known, and these notes."""
        line = {
            "shard": asdict(shard),
            "negative": negative_columns(part.raw, part.retrieved).tolist(),
            "counts": counts.to_json(),
            "begin": known[0],
            "notes": known[1],
        }
        self.work.add_line(_JOURNAL, line)

    def _resume_shards(self, writer: TableWriter, counts: "_Counts", reports: Sequence[Diagnostics]) -> int:
        """Take over the shards that are finished and undamaged, and return the first query to align."""
        lines, kept = self.work.lines(_JOURNAL), []
        for line in lines:
            shard = Shard(**line["shard"])
            try:
                content = self.storage.read(shard.file)
            except FileNotFoundError:
                break
            if hashlib.sha256(content).hexdigest() != shard.sha256:
                break
            writer.append(shard, np.array(line["negative"], np.bool_))
            kept.append(line)
        self.work.remove(_JOURNAL)  # the last line may be cut short
        for line in kept:
            self.work.add_line(_JOURNAL, line)
        if lines:
            self.tell(
                f"going on after {len(kept):,} shards that were written before"
                + (f"; {len(lines) - len(kept):,} more are missing or damaged." if len(kept) < len(lines) else ".")
            )
        if not kept:
            return 0
        counts.restore(kept[-1]["counts"])
        for report, state in zip(reports, kept[-1]["notes"], strict=True):
            report.restore(state)
        return int(kept[-1]["begin"])

    def _aligned(
        self, low: int, high: int, weights: NDArray[np.float64], reports: Sequence[Diagnostics]
    ) -> Aligned:
        """Align the queries low:high."""
        queries = self.queries.ids.take(np.arange(low, high))
        qrels, runs = None, {}
        for number, one in enumerate(self.lists):
            rows = self._rows(number, low, high, queries)
            if one.is_judgments:
                qrels = as_qrels(rows, reports[number])
            else:
                run = as_run(rows, one.name, self.rules.duplicates, reports[number])
                runs[one.name] = _rounded(run, reports[number]) if self.rules.dtype == "float32" else run
        aligned = align_runs(runs, qrels, normalize="none", depth=self.rules.depths)
        # Normalised scores are made when a shard is read: those of `align_runs` are dropped here.
        return replace(aligned, scores=aligned.raw, query_weights=weights[low:high], notes=())

    def _rows(self, number: int, low: int, high: int, queries: Ids) -> Rows:
        """Return the rows of the queries low:high of a list."""
        per, sizes = self._per_partition, self.records[number]["sizes"]
        parts = [
            self.work.rows(f"rows-{number:04}-{p:06}.bin", sizes.get(str(p), 0), low, high)
            for p in range(low // per, (high - 1) // per + 1)
        ]
        found = SpilledRows.joined(parts)
        starts = offsets(found.length.astype(np.int64))
        docs, doc = intern(found.text, starts[:-1], found.length)
        order = np.argsort(found.query, kind="stable")
        ordinal = found.line[order]

        def place(row: int) -> str:
            return f"row {int(ordinal[row]) + 1} (from 1, comments not counted)"

        query = found.query[order] - np.int32(low)
        return Rows(queries, docs, *segments(query), doc[order], found.value[order], place)

    def _notes(self, reports: Sequence[Diagnostics], counts: "_Counts") -> list[Note]:
        """Return what the readers and `align_runs` would say of the whole."""
        n_queries, notes = len(self.queries), []
        for record, report in zip(self.records, reports, strict=True):
            notes += [Note(**note) for note in record["notes"]]
            notes += report.notes
        for one, record in zip(self.lists, self.records, strict=True):
            if record["unknown"] and self.rules.labelled:
                total = record["unknown"] + record["known"]
                text = (
                    f"run {one.name!r}: {record['unknown']} of {total} queries have no judgments and are skipped, "
                    f"the first is {record['first_unknown']!r}."
                )
                notes.append(Note("unjudged-queries", record["unknown"], text))
        for name, (count, first) in zip(self.rules.rankers, counts.missing, strict=True):
            if count:
                text = f"run {name!r} returned nothing for {count} of {n_queries} queries, the first is {first!r}."
                notes.append(Note("queries-missing-from-run", count, text))
        count, first = counts.bare
        if count:
            text = (
                f"no run returned anything for {count} of {n_queries} queries, the first is {first!r}; they count "
                "as 0."
            )
            notes.append(Note("queries-without-documents", count, text))
        return notes


class _Counts:
    """How many queries each run lacks, and which is the first; the same of queries that all runs lack."""

    def __init__(self, rankers: Sequence[str]) -> None:
        self.missing: list[tuple[int, str]] = [(0, "")] * len(rankers)
        self.bare = (0, "")

    def add(self, aligned: Aligned) -> None:
        """Count the queries of a shard."""
        absent = [per_query(aligned.retrieved[:, k], aligned.starts) == 0 for k in range(len(self.missing))]
        self.missing = [_added(one, marks, aligned) for one, marks in zip(self.missing, absent, strict=True)]
        self.bare = _added(self.bare, np.diff(aligned.starts) == 0, aligned)

    def to_json(self) -> list[Any]:
        """Return the counts for the journal."""
        return [self.missing, self.bare]

    def restore(self, document: list[Any]) -> None:
        """Take the counts of the journal."""
        self.missing, self.bare = [(n, first) for n, first in document[0]], (document[1][0], document[1][1])


def _added(so_far: tuple[int, str], marks: NDArray[np.bool_], aligned: Aligned) -> tuple[int, str]:
    count, first = so_far
    if marks.any() and not count:
        first = aligned.queries[int(np.argmax(marks))]
    return count + int(np.count_nonzero(marks)), first


def _complete(pending: list[Aligned], most: int, *, last: bool) -> Iterator[Aligned]:
    """Take the shards that are complete out of what waits; the last one is complete when nothing follows."""
    n_rows = sum(len(part.doc) for part in pending)
    if n_rows <= most and not last:
        return
    together = _concatenated(pending)
    ranges = list(cuts(together.starts, most))
    pending.clear()
    if not last and ranges:
        first, end = ranges.pop()
        left = together.select(np.arange(first, end))
        docs, doc = used_docs(left)  # or the ids of everything that was ever here would be kept
        pending.append(replace(left, docs=docs, doc=doc))
    for first, end in ranges:
        yield together.select(np.arange(first, end))


def cuts(starts: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of queries that make the shards: as many as have at most so many rows, at least one."""
    first, n = 0, len(starts) - 1
    while first < n:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def _concatenated(parts: Sequence[Aligned]) -> Aligned:
    """Return the queries of all parts, which have the same rankers, in order."""
    if len(parts) == 1:
        return parts[0]
    docs, codes = unite([part.docs for part in parts])
    raw = np.concatenate([part.raw for part in parts])
    return replace(
        parts[0],
        queries=_joined_ids([part.queries for part in parts]),
        docs=docs,
        starts=offsets(np.concatenate([np.diff(part.starts) for part in parts])),
        doc=np.concatenate([code[part.doc] for code, part in zip(codes, parts, strict=True)]),
        raw=raw,
        retrieved=np.concatenate([part.retrieved for part in parts]),
        scores=raw,
        relevance=np.concatenate([part.relevance for part in parts]),
        unretrieved_starts=offsets(np.concatenate([np.diff(part.unretrieved_starts) for part in parts])),
        unretrieved=np.concatenate([part.unretrieved for part in parts]),
        query_weights=np.concatenate([part.query_weights for part in parts]),
    )


def _joined_ids(tables: Sequence[Ids]) -> Ids:
    lengths = np.concatenate([np.diff(table.starts) for table in tables])
    return Ids(np.concatenate([table.text for table in tables]), offsets(lengths))


def _rounded(run: Run, report: Diagnostics) -> Run:
    """Return the run with scores as float32 has them; notes count documents that then have equal scores."""
    with np.errstate(over="ignore"):
        score = run.score.astype(np.float32).astype(np.float64)
    if not np.isfinite(score).all():
        found = float(run.score[int(np.argmax(~np.isfinite(score)))])
        raise InputError(
            f"run {run.name!r}: expected scores that float32 can hold, up to 3.4e38; found {found!r}. "
            "Store float64 (dtype, --dtype)."
        )
    query = np.repeat(np.arange(len(run.queries)), np.diff(run.starts))
    inside = query[1:] == query[:-1]
    new = inside & (score[1:] == score[:-1]) & (run.score[1:] != run.score[:-1])
    if new.any():
        first = run.queries[int(query[int(np.argmax(new))])]
        report.say(
            "float32-ties",
            int(np.count_nonzero(new)),
            f"float32 makes scores equal, first those of query {first!r}; float64 (--dtype) keeps them apart",
        )
    return ranked_run(run.name, run.queries, run.docs, run.starts, run.doc, score)
