"""Processes find what threads find, to the last bit; they come only where they pay, and none stays behind."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from problems import made_up
from process_workers import Deadly, Failing, LocalError, Plain, Squares, wait_for_processes
from thread_counts import use_threads

from genm._math import parallel
from genm.errors import ConvergenceWarning, EngineError, GenmWarning, InputError
from genm.evaluate import parse_measure
from genm.explain import SubsetValues, measure_worth, processes
from genm.explain.processes import processes_for, values_by_processes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are started on POSIX systems")


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(processes._Processes, "take_here", wait_for_processes)


@pytest.fixture
def two_processes(monkeypatch, patient):
    """However small the work is."""
    use_threads(monkeypatch, "4")
    monkeypatch.setattr(processes, "MOST_THREADS", 2)
    monkeypatch.setattr(processes, "LEAST_COST", 1)


def nothing():
    pass


def by_processes(worker, n_items, n=2):
    with closing(values_by_processes(lambda: worker, range(n_items), n, nothing)) as found:
        return dict(pair for some, values in found for pair in zip(some, values, strict=True))


def by_threads(monkeypatch, aligned, subsets, **options):
    with monkeypatch.context() as patch:
        patch.setattr("genm.explain.subsets.processes_for", lambda cost, n_scores: 0)
        values = SubsetValues(aligned, **options)
        values.learn(subsets)
    return values


@pytest.mark.parametrize(
    ("n_rankers", "options"),
    [(9, {}), (4, {"measure": parse_measure("nDCG@5"), "signs": "any"}), (4, {"method": "enm"})],
)
def test_values_are_those_of_threads_to_the_last_bit(n_rankers, options, two_processes, monkeypatch):
    aligned = made_up(5, quality=tuple(np.linspace(1.0, 0.2, n_rankers)), n_queries=15)
    aligned.retrieved[::3, 1] = aligned.retrieved[1::4, 0] = False
    options = {"measure": parse_measure("AP"), "folds": 3} | options
    subsets = range(1, 1 << n_rankers, 1 if n_rankers < 5 else 9)
    there = by_threads(monkeypatch, aligned, subsets, **options)
    values, told = SubsetValues(aligned, **options, progress=lambda *step: told.append(step)), []
    values.learn(subsets)
    assert values.n_learned == there.n_learned == len(subsets)
    for subset in subsets:
        for one, other in zip(values.table(subset), there.table(subset), strict=True):
            np.testing.assert_array_equal(one, other)
    steps = [done for _, done, _ in told]
    assert (steps[0], steps[-1]) == (0, len(subsets))
    assert steps == sorted(steps)


def test_worth_is_that_of_threads(two_processes, monkeypatch):
    aligned = made_up(2, n_queries=12)
    found = measure_worth(aligned, orders=4)
    monkeypatch.setattr("genm.explain.subsets.processes_for", lambda cost, n_scores: 0)
    there = measure_worth(aligned, orders=4)
    assert (found.rankers, found.greedy) == (there.rankers, there.greedy)
    np.testing.assert_array_equal(found.agreement.correlation, there.agreement.correlation)


def test_all_items_but_the_first_are_done_elsewhere(patient):
    found = by_processes(Squares(), 60)
    assert found == {item: (item, item**2, item > 0) for item in range(60)}


def test_what_a_killed_process_worked_on_is_done_by_others(patient):
    with pytest.warns(GenmWarning, match=r"2 of 2 processes ended early \(status -9\)"):
        found = by_processes(Deadly(), 60)
    assert {item: value for item, (_, value, _) in found.items()} == {item: item**2 for item in range(60)}


def test_the_first_error_is_raised_as_threads_do(patient):
    with pytest.raises(InputError, match="item 1: expected less") as caught:
        by_processes(Failing("input"), 60)
    assert "in values" in caught.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_told(patient):
    with pytest.raises(EngineError, match="LocalError: here: no"):
        by_processes(Failing("local"), 60)


def test_an_error_that_can_be_sent_stays_what_it_is():
    error = processes._portable(InputError("no"))
    assert (type(error), str(error)) == (InputError, "no")
    assert type(processes._portable(LocalError("here", "no"))) is EngineError


def test_warnings_are_given_here(patient):
    with pytest.warns(ConvergenceWarning, match="stopped at its limit") as heard:
        found = by_processes(Failing("warning"), 10)
    assert len(found) == 10
    assert {Path(one.filename).name for one in heard} == {"process_workers.py"}


def test_a_warning_that_cannot_be_made_again_is_told(patient):
    with pytest.warns(GenmWarning, match="OddWarning: here: odd"):
        found = by_processes(Failing("odd warning"), 10)
    assert len(found) == 10


def test_a_worker_without_arrays(patient):
    assert by_processes(Plain(), 20) == {item: (item, item**2, True) for item in range(20)}


def test_this_process_does_everything_if_the_disk_is_full(monkeypatch):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    monkeypatch.setattr(processes, "_nameless_file", lambda: full.open("w+b"))
    assert by_processes(Squares(), 20) == {item: (item, item**2, False) for item in range(20)}


@pytest.mark.parametrize("closed", ["<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(closed, tmp_path):
    text = """
    from pathlib import Path
    with closing(values_by_processes(Squares, range(9), 2, list)) as found:
        Path("found").write_text(str(sum(away for some, values in found for _, _, away in values)))
    """
    command, environment = script(tmp_path, text)
    shell = ["sh", "-c", f'exec "$0" "$1" {closed}']
    subprocess.run([*shell, *command], env=environment, cwd=tmp_path, check=True)
    assert (tmp_path / "found").read_text() == "8"


def script(tmp_path, text):
    path = tmp_path / "no guard.py"
    path.write_text(
        "from contextlib import closing\n"
        "from genm.explain import processes\n"
        "from genm.explain.processes import values_by_processes\n"
        "from process_workers import Sleeping, Squares, wait_for_processes\n"
        "processes._Processes.take_here = wait_for_processes\n" + textwrap.dedent(text)
    )
    folders = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return [sys.executable, str(path)], {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


@pytest.mark.parametrize("is_file", [True, False])
def test_a_script_needs_no_guard(is_file, tmp_path):
    """Nor has it to be a file."""
    text = """
    print("begins")
    with closing(values_by_processes(Squares, range(9), 2, print)) as found:
        print(sorted((item, away) for some, values in found for item, _, away in values)[:3])
    """
    command, environment = script(tmp_path, text)
    content = None if is_file else Path(command.pop()).read_text()
    done = subprocess.run(
        [*command, *([] if is_file else ["-"])],
        env=environment, input=content, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "begins\n\n[(0, False), (1, True), (2, True)]\n"
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_parent(number, tmp_path):
    """Each holds the pipe open until it has ended; so the end of the pipe comes when all have ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = f"list(values_by_processes(lambda: Sleeping({str(pipe)!r}), range(99), 2, list))"
    command, environment = script(tmp_path, text)
    parent = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    with pipe.open() as told:
        assert [told.readline(), told.readline()] == ["began\n", "began\n"]
        parent.send_signal(number)
        assert told.read() == ""
    _, said = parent.communicate()
    assert parent.returncode != 0
    assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)


def test_processes_end_with_the_work(patient, monkeypatch):
    started = []
    start = subprocess.Popen

    def remember(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    found = values_by_processes(Squares, range(60), 2, nothing)
    next(found)
    assert [process.poll() for process in started] == [None, None]
    found.close()
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2


def no_process(*_, **__):
    raise PermissionError(1, "no")


def test_where_no_process_can_start_threads_work(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", no_process)
    found = by_processes(Squares(), 60)
    assert found == {item: (item, item**2, False) for item in range(60)}


def test_where_no_file_can_be_written_threads_work(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", no_process)
    assert len(by_processes(Squares(), 60)) == 60


def test_where_the_disk_is_full_threads_work(monkeypatch, patient):
    monkeypatch.setattr(processes, "_store", no_process)
    found = by_processes(Squares(), 60)
    assert found == {item: (item, item**2, False) for item in range(60)}


def test_what_is_no_python_of_ours_is_never_listened_to(monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho something else\n")
    other.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(other))
    assert len(by_processes(Squares(), 60)) == 60


def test_small_work_stays_here(monkeypatch):
    """And so does everything on few cores."""
    monkeypatch.setattr(subprocess, "Popen", no_process)
    monkeypatch.setattr(processes, "usable_memory", lambda: 10**11)
    monkeypatch.setenv("GENM_THREADS", "16")
    measure_worth(made_up(1, n_queries=6))
    million = 10**6
    assert processes_for(100 * million, 10 * million) == 0
    assert processes_for(299 * million, 10 * million) == 0
    assert processes_for(300 * million, 10 * million) == 2
    monkeypatch.setenv("GENM_THREADS", "4")
    assert processes_for(10**12, 10 * million) == 0


def test_processes_are_as_many_as_cores_memory_and_work_allow(monkeypatch):
    monkeypatch.setenv("GENM_THREADS", "16")
    monkeypatch.setattr(processes, "usable_memory", lambda: 10**11)
    assert processes_for(10**12, 10**7) == 8
    assert processes_for(10**12, 100) == 16  # of few scores: one thread is as fast as two
    assert processes_for(5 * processes.LEAST_COST, 10**7) == 5
    monkeypatch.setattr(processes, "usable_memory", lambda: 8 * 10**8)
    assert processes_for(10**12, 10**7) == 3
    monkeypatch.setattr(parallel._worker, "busy", True, raising=False)
    assert processes_for(10**12, 10**7) == 0


def test_where_python_is_frozen_or_kernels_are_not_kept_threads_work(monkeypatch):
    monkeypatch.setattr(processes, "usable_memory", lambda: 10**11)
    monkeypatch.setenv("GENM_THREADS", "16")
    assert processes_for(10**12, 10**7) > 0
    with monkeypatch.context() as patch:
        patch.setattr(sys, "frozen", True, raising=False)
        assert processes_for(10**12, 10**7) == 0
    nowhere = SimpleNamespace(stats=SimpleNamespace(cache_path=None))
    monkeypatch.setattr(processes, "smooth_range", nowhere)
    assert processes_for(10**12, 10**7) == 0


def test_arrays_are_mapped_and_stay_as_they_were():
    worker = Squares()
    with tempfile.TemporaryFile() as file:
        stored = processes._store(worker, file)
        one, other = (processes._restored(stored, file.fileno()) for _ in range(2))
        assert all(begin % 64 == 0 for begin, _ in stored.spans)
    assert len(stored.pickled) < worker.table.nbytes
    one.table[:] = 7.0
    np.testing.assert_array_equal(other.table, worker.table)
