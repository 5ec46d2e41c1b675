"""`write_table`: what it writes is what `align_runs` gives, in any memory, and after any crash."""

import gzip
import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_cases import DOC_IDS, GRADES, TIED_SCORES, drawn, qrels_of, run_of, some_of
from thread_counts import use_threads

from genm.align import Aligned, align_runs
from genm.errors import FormatError, InputError, TableError
from genm.ids import Ids
from genm.read import read_qrels, read_run, write_qrels, write_run
from genm.records import Qrels, Run, ranked_run
from genm.scale import ScoreTable, TableWriter, write_table
from genm.scale import shard as sharding
from genm.scale.spill import QueryIndex

pytest.importorskip("pyarrow")

FIELDS = ("starts", "raw", "retrieved", "scores", "relevance", "unretrieved_starts", "unretrieved", "query_weights")
KINDS = ("minmax", "max", "none", "zscore", "rank", "atan")
QUERIES = [f"query-{i:02}" for i in range(9)]


def assert_same(table: ScoreTable, aligned: Aligned) -> None:
    """Every bit that a shard gives is that of aligning everything in memory."""
    assert (table.rankers, table.normalizers, table.depths) == (
        aligned.rankers,
        aligned.normalizers,
        aligned.depths,
    )
    assert (table.n_queries, table.n_rows, table.labelled) == (
        len(aligned.queries),
        len(aligned.doc),
        aligned.labelled,
    )
    at = 0
    for number in range(table.n_shards):
        found = table.read_shard(number)
        expected = aligned.select(np.arange(at, at + len(found.queries)))
        at += len(found.queries)
        assert list(found.queries) == list(expected.queries)
        assert list(found.docs.take(found.doc)) == list(expected.docs.take(expected.doc))
        for name in FIELDS:
            ours, theirs = getattr(found, name), getattr(expected, name)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
            assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes(), name
    assert at == table.n_queries


def float32(run: Run) -> Run:
    score = run.score.astype(np.float32).astype(np.float64)
    return ranked_run(run.name, run.queries, run.docs, run.starts, run.doc, score)


def shuffled(path: Path, seed: int) -> None:
    """Put the lines of a file into another order."""
    lines = path.read_bytes().splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    path.write_bytes(b"".join(lines))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def case(draw: random.Random) -> dict[str, Any]:
    def scores() -> dict[str, dict[str, float]]:
        values = [*TIED_SCORES, -0.1, 1e-9, 0.1 + 0.2, 1 / 3]
        return some_of(draw, QUERIES, lambda: some_of(draw, DOC_IDS, lambda: draw.choice(values), 1), 2)

    n_runs = draw.randint(1, 3)
    grades = some_of(draw, QUERIES, lambda: some_of(draw, DOC_IDS, lambda: draw.choice(GRADES), 1), 7)
    return {
        "runs": {f"r{k}": scores() for k in range(n_runs)},
        "grades": draw.choice([grades, grades, None]),
        "normalize": [draw.choice(KINDS) for _ in range(n_runs)],
        "depth": draw.choice([None, 1, 3]),
        "dtype": draw.choice(["float32", "float64"]),
        "memory": draw.choice([1, 3000, 100_000, 2**30]),
        "shard_rows": draw.choice([1, 7, 30, 1000]),
        "seed": draw.randrange(2**30),
        "in_order": draw.random() < 0.3,
    }


@given(drawn(case))
@settings(max_examples=40, deadline=None)
def test_a_table_of_files_is_what_align_runs_gives(tmp_path_factory: pytest.TempPathFactory, given: Any) -> None:
    folder = tmp_path_factory.mktemp("case")
    paths, judged = {}, None
    for name, scores in given["runs"].items():
        paths[name] = folder / f"{name}.trec"
        write_run(run_of(scores, name), paths[name])
        if not given["in_order"]:
            shuffled(paths[name], given["seed"])
    if given["grades"] is not None:
        judged = folder / "qrels.txt"
        write_qrels(qrels_of(given["grades"]), judged)
        if not given["in_order"]:
            shuffled(judged, given["seed"])
    weights = {"query-01": 0.25, "query-05": 3.0} if given["seed"] % 2 else None
    options = {"normalize": given["normalize"], "depth": given["depth"], "query_weights": weights}
    sizes = {name: given[name] for name in ("dtype", "memory", "shard_rows")}
    written = partial(write_table, paths, judged, folder / "table", **sizes, **options)
    runs = {name: read_run(path, name=name) for name, path in paths.items()}
    if given["dtype"] == "float32":
        runs = {name: float32(run) for name, run in runs.items()}
    qrels = None if judged is None else read_qrels(judged)
    if qrels is not None and not all(set(scores) & set(given["grades"]) for scores in given["runs"].values()):
        with pytest.raises(InputError, match="expected queries in common") as refused:
            align_runs(runs, qrels, **options)
        with pytest.raises(InputError, match=f"^{re.escape(str(refused.value))}$"):
            written()
        return
    table, aligned = written(), align_runs(runs, qrels, **options)
    assert_same(table, aligned)
    assert_same(ScoreTable.open(folder / "table"), aligned)
    assert sorted(path.name for path in (folder / "table").iterdir()) == sorted(
        ["manifest.json", *(shard.file for shard in table.shards)]
    )
    said = {(note.code, note.count, note.text) for note in aligned.notes}
    assert said <= {(note.code, note.count, note.text) for note in table.notes}
    assert {note.code for note in table.notes} - {note.code for note in aligned.notes} <= {
        "negative-grade",
        "float32-ties",
        "rank-against-score",
    }


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a.trec, b.trec and qrels.txt: 36 queries, shuffled, with some faults that only get noted."""
    folder, draw = tmp_path_factory.mktemp("inputs"), np.random.default_rng(5)
    for name in ("a", "b"):
        scores = {
            f"q{q}": {f"doc{d}": float(draw.normal()) for d in draw.choice(40, 12, replace=False)}
            for q in range(36)
        }
        write_run(run_of(scores, name), folder / f"{name}.trec")
        shuffled(folder / f"{name}.trec", 1)
    lines = (folder / "a.trec").read_text()
    (folder / "a.trec").write_text("# a comment\n" + lines + lines.splitlines()[-1] + "\n")
    grades = {f"q{q}": {f"doc{d}": int(draw.integers(-1, 3)) for d in range(5)} for q in range(3, 46)}
    write_qrels(qrels_of(grades), folder / "qrels.txt")
    return folder


SMALL: dict[str, Any] = {"memory": 20_000, "shard_rows": 100, "duplicates": "max"}


def made(inputs: Path, to: Path, **options: Any) -> ScoreTable:
    runs = {name: inputs / f"{name}.trec" for name in ("a", "b")}
    return write_table(runs, inputs / "qrels.txt", to, **{**SMALL, **options})


@pytest.fixture(scope="module")
def whole(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of the inputs, made without an interruption."""
    to = tmp_path_factory.mktemp("whole") / "table"
    made(inputs, to)
    return to


def test_what_was_left_out_is_told(whole: Path) -> None:
    notes = {(note.code, note.count): note.text for note in ScoreTable.open(whole).notes}
    assert ("comment-lines", 1) in notes
    assert "3 of 36 queries have no judgments and are skipped, the first is" in notes["unjudged-queries", 3]
    assert (
        "no run returned anything for 10 of 43 queries, the first is 'q36'"
        in notes["queries-without-documents", 10]
    )
    assert "row 433 (from 1, comments not counted): document" in notes["duplicate-kept-max", 1]
    assert any(code == "negative-grade" for code, _ in notes)


class Killed(BaseException):
    """Stands for kill -9: nothing is cleaned up after it."""


def dying(work: Callable[..., Any], after: int) -> Callable[..., Any]:
    """Return the function, which dies in the call after so many."""
    left = [after]

    def call(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return work(*args, **options)

    return call


@pytest.mark.parametrize("place", ["read", "shard", "journal", "manifest"])
@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_a_killed_command_goes_on_and_leaves_the_same_bytes(
    inputs: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, after: int
) -> None:
    owner, name = {
        "read": (sharding._Making, "_spill"),
        "shard": (sharding.TableWriter, "add"),
        "journal": (sharding._Making, "_record"),
        "manifest": (sharding.TableWriter, "finish"),
    }[place]
    to, said = tmp_path / "table", []
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying(getattr(owner, name), 0 if place == "manifest" else after))
        with pytest.raises(Killed):
            made(inputs, to)
    with pytest.raises(TableError, match=r"expected a score table; found no manifest.json.* it goes on"):
        ScoreTable.open(to)
    made(inputs, to, tell=said.append)
    assert content(to) == content(whole)
    if place == "manifest":
        assert said == [
            "going on after 3 of 3 lists that were read before.",
            f"going on after {ScoreTable.open(whole).n_shards} shards that were written before.",
        ]


def test_finished_shards_are_checked_when_going_on(
    inputs: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, said = tmp_path / "table", []
    with monkeypatch.context() as patch:
        patch.setattr(sharding.TableWriter, "finish", dying(TableWriter.finish, 0))
        with pytest.raises(Killed):
            made(inputs, to)
    damaged = to / "shard-000002.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with (to / ".work" / "shards.jsonl").open("ab") as file:
        file.write(b'{"shard": {"fi')  # what a crash leaves of a line
    made(inputs, to, tell=said.append)
    assert content(to) == content(whole)
    assert "going on after 2 shards that were written before;" in said[-1]


def test_a_work_folder_elsewhere(
    inputs: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, work, said = tmp_path / "table", tmp_path / "work", []
    with monkeypatch.context() as patch:
        patch.setattr(sharding.TableWriter, "finish", dying(TableWriter.finish, 0))
        with pytest.raises(Killed):
            made(inputs, to, work=work)
    assert not (to / ".work").exists()
    made(inputs, to, work=work, tell=said.append)
    assert len(said) == 2
    assert (content(to), list(work.iterdir())) == (content(whole), [])


def test_a_damaged_work_folder_is_refused(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to = tmp_path / "table"
    with monkeypatch.context() as patch:
        patch.setattr(sharding.TableWriter, "add", dying(TableWriter.add, 0))
        with pytest.raises(Killed):
            made(inputs, to)
    spilled = sorted((to / ".work").glob("rows-0001-*"))[0]
    spilled.write_bytes(spilled.read_bytes()[:-1] + b"?")
    with pytest.raises(TableError, match=r"expected a block with CRC-32 .*; found another one.* start again"):
        made(inputs, to)
    shutil.rmtree(to)
    made(inputs, to)


def test_other_inputs_or_options_start_anew(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to, said = tmp_path / "table", []
    with monkeypatch.context() as patch:
        patch.setattr(sharding.TableWriter, "finish", dying(TableWriter.finish, 0))
        with pytest.raises(Killed):
            made(inputs, to)
    table = made(inputs, to, dtype="float64", tell=said.append)
    assert said == ["unfinished work of other inputs or options was found: started anew."]
    assert (table.dtype, ScoreTable.open(to).dtype) == ("float64", "float64")


@pytest.mark.parametrize("memory", [1, 5_000, 10**6, 2**30])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_bytes_depend_neither_on_memory_nor_on_threads(
    inputs: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, threads: str
) -> None:
    use_threads(monkeypatch, threads)
    made(inputs, tmp_path / "table", memory=memory)
    assert content(tmp_path / "table") == content(whole)


@pytest.mark.parametrize("form", ["gz", "zst", "parquet", "memory"])
def test_other_forms_of_the_same_runs_give_the_same_shards(
    inputs: Path, whole: Path, tmp_path: Path, form: str
) -> None:
    expected = ScoreTable.open(whole)
    sources: dict[str, Any] = {}
    for name in ("a", "b"):
        text = (inputs / f"{name}.trec").read_bytes()
        path = tmp_path / f"{name}.trec.{form}"
        if form == "memory":
            sources[name] = read_run(inputs / f"{name}.trec", name=name, duplicates="max")
            continue
        if form == "parquet":
            pl = pytest.importorskip("polars")
            rows = [line.split() for line in text.decode().splitlines() if line[0] != "#"]
            frame = {"query_id": [r[0] for r in rows], "docno": [r[2] for r in rows]}
            pl.DataFrame({**frame, "score": [float(r[4]) for r in rows]}).write_parquet(path, row_group_size=100)
        else:
            path.write_bytes(gzip.compress(text) if form == "gz" else zstandard.compress(text))
        sources[name] = path
    table = write_table(sources, inputs / "qrels.txt", tmp_path / "table", **SMALL)
    assert [shard.sha256 for shard in table.shards] == [shard.sha256 for shard in expected.shards]
    assert table.digest == expected.digest


def test_the_folder_of_a_pull(inputs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(inputs, folder)
    (folder / "pull.json").write_text(json.dumps({"rankers": {"b": {}, "a": {}}}))
    table = write_table(folder, folder / "qrels.txt", tmp_path / "table", **SMALL)
    assert table.rankers == ("b", "a")
    with pytest.raises(InputError, match=r"expected the folder of a finished genm pull.*NAME=FILE"):
        write_table(tmp_path, None, tmp_path / "other")


def test_what_waits_for_the_next_shard_keeps_its_own_documents_only() -> None:
    runs = [run_of({f"q{q}": {f"d{q}-{d}": float(d) for d in range(5)}}) for q in range(4)]
    pending = [align_runs({"r": run}) for run in runs]
    written = list(sharding._complete(pending, 6, last=False))
    assert [list(part.queries) for part in (*written, *pending)] == [["q0"], ["q1"], ["q2"], ["q3"]]
    assert list(pending[0].docs) == [f"d3-{d}" for d in range(5)]  # or memory would grow with the table
    assert list(pending[0].docs.take(pending[0].doc)) == [f"d3-{d}" for d in (4, 3, 2, 1, 0)]


def test_float32_notes_scores_that_become_equal(tmp_path: Path) -> None:
    scores = {"q": {"a": 1.0, "b": 1.0 + 1e-12, "c": 0.5}}
    table = write_table({"r": run_of(scores)}, None, tmp_path / "table")
    assert [(note.code, note.count) for note in table.notes] == [("float32-ties", 1)]
    assert write_table({"r": run_of(scores)}, None, tmp_path / "64", dtype="float64").notes == ()
    with pytest.raises(InputError, match=r"run 'r': expected scores that float32 can hold.*1e\+39.*--dtype"):
        write_table({"r": run_of({"q": {"a": 1e39}})}, None, tmp_path / "large")


def test_lines_of_errors_are_those_of_the_whole_file(inputs: Path, tmp_path: Path) -> None:
    lines = (inputs / "b.trec").read_text().splitlines()
    lines[300] = "q1 Q0 doc1 1 much b"
    (tmp_path / "b.trec").write_text("\n".join(lines))
    runs = {"a": inputs / "a.trec", "b": tmp_path / "b.trec"}
    with pytest.raises(FormatError, match=r'b.trec:301: expected a decimal number as score; found "much"'):
        write_table(runs, inputs / "qrels.txt", tmp_path / "table", **SMALL)
    assert not (tmp_path / "table").exists()  # the same input would fail again
    table = write_table(runs, inputs / "qrels.txt", tmp_path / "table", **SMALL, lenient=True)
    (note,) = [note for note in table.notes if note.code == "not-a-number"]
    assert "b.trec:301: expected a decimal number" in note.text
    with pytest.raises(FormatError, match=r"a.trec, row 433 .*: expected each document once per query"):
        write_table([inputs / "a.trec"], None, tmp_path / "strict", memory=20_000)


def test_a_table_is_replaced_whole(inputs: Path, tmp_path: Path) -> None:
    to = tmp_path / "table"
    assert made(inputs, to, shard_rows=20).n_shards > 10
    table = write_table({"r": run_of({"q": {"d": 1.0}})}, None, to)
    assert sorted(path.name for path in to.iterdir()) == ["manifest.json", "shard-000000.parquet"]
    assert table.n_queries == 1


REFUSED: dict[str, tuple[Callable[[Path], tuple[Any, ...]], Mapping[str, Any], str]] = {
    "folder": (lambda f: ({"r": f}, None, f / "t"), {}, r"expected a readable file; found a folder"),
    "missing": (lambda f: ([f / "no.trec"], None, f / "t"), {}, r"no.trec: expected a readable file; found no"),
    "stdin": (lambda f: (["-"], None, f / "t"), {}, r"expected files.*found standard input"),
    "none": (lambda f: ([], None, f / "t"), {}, r"expected at least one, each with its own name; found none"),
    "one": (lambda f: (run_of({"q": {"d": 1.0}}), None, f / "t"), {}, r"expected several runs; found Run"),
    "names": (lambda f: ([f / "x.trec", f / "x.trec"], None, f / "t"), {}, r"its own name; found 'x', 'x'"),
    "dtype": (lambda f: ([f / "x.trec"], None, f / "t"), {"dtype": "f4"}, r"dtype: expected one of float32, floa"),
    "rows": (lambda f: ([f / "x.trec"], None, f / "t"), {"shard_rows": 0}, r"shard_rows: expected a positive"),
    "memory": (lambda f: ([f / "x.trec"], None, f / "t"), {"memory": 0}, r"memory: expected a positive integer"),
    "rule": (lambda f: ([f / "x.trec"], None, f / "t"), {"duplicates": "all"}, r"duplicates: expected one of err"),
    "kind": (lambda f: ([f / "x.trec"], None, f / "t"), {"normalize": "mimax"}, r"Did you mean minmax"),
    "depth": (lambda f: ([f / "x.trec"], None, f / "t"), {"depth": 0}, r"depth: expected a positive integer"),
    "other": (lambda f: ([f / "x.trec"], None, f), {}, r"found other files, such as x.trec. Name another folder"),
    "file": (lambda f: ([f / "x.trec"], None, f / "x.trec"), {}, r"expected a folder to write; found a file"),
    "options": (lambda f: ([f / "x.trec"], None, f / "t"), {"storage_options": {"a": 1}}, r"belong to an address"),
    "common": (
        lambda f: ([f / "x.trec"], qrels_of({"z": {"d": 1}}), f / "t"), {}, r"queries in common; found none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused(tmp_path: Path, why: str) -> None:
    (tmp_path / "x.trec").write_text("q Q0 d 1 1.0 t\n")
    arguments, options, message = REFUSED[why]
    with pytest.raises(InputError, match=message):
        write_table(*arguments(tmp_path), **options)


def test_a_manifest_of_another_kind_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(TableError, match='expected "format": "genm-table"; found null'):
        write_table({"r": run_of({"q": {"d": 1.0}})}, None, tmp_path)
    assert (tmp_path / "manifest.json").read_text() == '{"name": "an app"}'


def test_inputs_inside_a_table_are_refused(inputs: Path, tmp_path: Path) -> None:
    to = tmp_path / "table"
    made(inputs, to)
    shutil.copy(inputs / "a.trec", to / "a.trec")
    with pytest.raises(InputError, match=r"expected a folder that is not read here; found that .*a.trec is in it"):
        write_table([to / "a.trec"], None, to, duplicates="max")


def test_two_commands_at_once_are_refused(inputs: Path, tmp_path: Path) -> None:
    filelock = pytest.importorskip("filelock")
    (tmp_path / "table" / ".work").mkdir(parents=True)
    with (
        filelock.FileLock(tmp_path / "table" / ".work" / "lock"),
        pytest.raises(InputError, match="expected no other genm shard that writes here; found one running"),
    ):
        made(inputs, tmp_path / "table")


@given(st.lists(st.lists(st.text("abcdefghij", min_size=1, max_size=12), unique=True, max_size=20), max_size=5))
@settings(max_examples=50, deadline=None)
def test_queries_are_numbered_by_first_appearance(tables: list[list[str]]) -> None:
    index, numbers = QueryIndex(), {}
    for ids in tables:
        expected = [numbers.get(text, -1) for text in ids]
        assert index.find(Ids.of(ids)).tolist() == expected
        for text in ids:
            numbers.setdefault(text, len(numbers))
        assert index.add(Ids.of(ids)).tolist() == [numbers[text] for text in ids]
    assert list(index.ids) == list(numbers)
    assert QueryIndex(index.ids).find(index.ids).tolist() == list(range(len(numbers)))


def test_judgments_from_memory(tmp_path: Path) -> None:
    grades: Any = {"q2": {"d1": 1}, "q1": {"d9": 2, "d1": 0}}
    runs = {"r": run_of({"q1": {"d1": 1.0, "d2": 0.5}})}
    for number, qrels in enumerate((grades, qrels_of(grades))):
        table = write_table(runs, qrels, tmp_path / f"{number}")
        assert_same(table, align_runs(runs, qrels_of(grades)))
    empty = Qrels.from_dict({"q1": {}, "q2": {"d": 1}, "q3": {}})
    assert_same(write_table(runs, empty, tmp_path / "bare"), align_runs(runs, empty))
