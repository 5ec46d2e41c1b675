import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaTypeError
from numba.core.typing.typeof import typeof_impl
from thread_counts import use_threads

import genm
from genm._math import parallel
from genm.errors import InputError

NOWHERE = "/dev/null/nowhere"
"""A folder that nobody can make, root included."""


def test_kernels_work_where_no_folder_can_keep_them(tmp_path):
    """A package that belongs to the system, run by a user without a home: numba finds nowhere to write."""
    package = tmp_path / "genm"
    shutil.copytree(Path(genm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()  # a file of this name keeps root, too, from making the folder
    code = (
        "import numpy as np\n"
        "from genm._math import elementary, fusion\n"
        "from genm._math.exact import line_kernels\n"
        "from genm.cli.compilation import compile_in_background\n"
        "assert fusion.__file__.startswith(__import__('sys').argv[1]), fusion.__file__\n"
        "with compile_in_background() as wait:\n"
        "    wait()\n"
        "print(fusion.weighted_sum(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([0.5, 0.25])))\n"
    )
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA"), NOWHERE)
    env = {**os.environ, **nowhere, "PYTHONPATH": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True, encoding="utf-8"
    )
    assert (found.returncode, found.stderr, found.stdout) == (0, "", "[1.   2.75]\n")


KERNEL = """
from genm._math.parallel import kernel

@kernel
def total(values):
    out = 0.0
    for i in range(len(values)):
        out += values[i]
    return out
"""


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    """Change one bit in the middle of the machine code."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {"emptied": lambda _: b"", "cut": cut, "flipped": flipped, "garbage": lambda _: b"\x80\x04garbage" * 99}


class Kernel:
    """A kernel in a file of its own, compiled into a folder of its own.

    A new process is not needed to see what numba finds on disk: the file, executed again, gives a dispatcher that
    knows nothing of the one before.
    """

    def __init__(self, folder: Path) -> None:
        self.script, self.folder = folder / "k.py", folder / "kept"
        self.script.write_text(KERNEL)

    def call(self, change: str = "") -> tuple[float, int]:
        """Load the kernel anew and call it; return its result and how often it was found on disk.

        `change` is written to the end of its file in between.
        """
        spec = importlib.util.spec_from_file_location("k", self.script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if change:
            self.script.write_text(self.script.read_text() + change)
        return module.total(np.arange(4.0)), sum(module.total.stats.cache_hits.values())


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> Kernel:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    return Kernel(tmp_path)


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_kernel_is_compiled_again(kernel: Kernel, suffix: str, damage: str, capfd) -> None:
    assert kernel.call() == (6.0, 0)
    assert kernel.call() == (6.0, 1)
    (path,) = kernel.folder.rglob(f"k.total*{suffix}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert kernel.call() == (6.0, 0)
    assert kernel.call() == (6.0, 1)
    out, err = capfd.readouterr()
    # a server of another test may still write to this process's standard error
    assert (out, [line for line in err.splitlines() if "chttp2_transport" not in line]) == ("", [])


def test_a_kernel_whose_file_changed_after_its_import_is_not_kept(kernel: Kernel) -> None:
    """It would be taken for what the file says now."""
    assert kernel.call(change="# another version\n") == (6.0, 0)
    assert not list(kernel.folder.rglob("k.total*"))
    assert kernel.call() == (6.0, 0)
    assert kernel.call() == (6.0, 1)


def test_a_kernel_that_cannot_be_kept_is_used(kernel: Kernel, monkeypatch, capfd) -> None:
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("genm._math.parallel.IndexDataCacheFile._open_for_write", refuse)
    assert kernel.call() == (6.0, 0)
    assert kernel.call() == (6.0, 0)
    assert not list(kernel.folder.rglob("k.total*"))
    assert capfd.readouterr() == ("", "")


LOADED = f"""
import json, sys
import numpy as np
{KERNEL}
@kernel(makes_arrays=True)
def longest(n):
    return len(np.empty(n))

said = [total(np.arange(4.0)), longest(3)]
said += [sum(one.stats.cache_hits.values()) for one in (total, longest)]
said += [name in sys.modules for name in ("numba.np.arraymath", "numba.np.arrayobj", "scipy.linalg", "numpy.ma")]
try:
    longest(-1)
except ValueError as error:
    said.append(str(error))
import numba
said.append(numba.njit(lambda x: total(x) + x.sum())(np.arange(4.0)))
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> list[list[Any]]:
    """What a process says that compiles two kernels, and what the next one says, which loads them."""
    folder = tmp_path_factory.mktemp("loaded")
    script = folder / "k.py"
    script.write_text(LOADED)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept")}
    runs = [
        subprocess.run(
            [sys.executable, script], env=env, capture_output=True, text=True, encoding="utf-8", check=True
        )
        for _ in range(2)
    ]
    return [json.loads(run.stdout) for run in runs]


def test_loading_a_kernel_does_not_load_the_compiler(two_processes: list[list[Any]]) -> None:
    first, second = two_processes
    assert first[:8] == [6.0, 3, 0, 0, True, True, True, True]
    assert second[:8] == [6.0, 3, 1, 1, False, False, False, False]
    assert first[-1] == second[-1] == 12.0  # and compiling works after a load


def test_a_loaded_kernel_raises_the_errors_of_what_it_calls(two_processes: list[list[Any]]) -> None:
    """Their constants are in the environment of a function of numba's, whose module is not imported."""
    for said in two_processes:
        assert said[8] == "negative dimensions not allowed"


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint64, np.float32, np.float64, np.complex64, "M8[s]"])
def test_arrays_have_the_types_that_numba_gives_them(kind) -> None:
    whole, fixed = np.zeros((4, 6), kind), np.zeros(3, kind)
    fixed.flags.writeable = False
    for array in (whole, whole.T, whole[:, ::2], whole[0], fixed, whole.view(np.recarray)):
        assert typeof_impl(array, None) == parallel._type_of_any_array(array, None)
    with pytest.raises(NumbaTypeError, match="MaskedArray"):
        typeof_impl(np.ma.array([1.0]), None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_a_kernel_is_loaded(number):
    came = []
    before = signal.signal(number, lambda n, _: came.append(n))
    try:
        with parallel.signals_wait():
            signal.raise_signal(number)
            assert came == []
        assert came == [number]
        assert signal.getsignal(number) is not before
    finally:
        signal.signal(number, before)


def test_signals_are_left_alone_in_other_threads():
    before = signal.getsignal(signal.SIGINT)

    def work():
        with parallel.signals_wait():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() is before


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_every_range_and_item_is_worked_on_once(monkeypatch, threads, n):
    use_threads(monkeypatch, threads)
    seen = np.zeros(n, np.int64)

    def work(low, high):
        seen[low:high] += 1

    parallel.over_ranges(work, np.full(n, 1000))
    assert (seen == 1).all()
    assert parallel.over_items(lambda i: 2 * i, range(n)) == [2 * i for i in range(n)]


def test_items_share_several_threads_and_their_kernels_stay_there(monkeypatch):
    use_threads(monkeypatch, "3")
    meeting = threading.Barrier(3, timeout=60)

    def work(_):
        meeting.wait()  # passes only where three items are worked on at a time
        return threading.get_ident(), parallel.takes_one_thread(10**9)

    found = parallel.over_items(work, range(3))
    assert len({thread for thread, _ in found}) == 3
    assert threading.get_ident() in {thread for thread, _ in found}
    assert all(alone for _, alone in found)
    assert not parallel.takes_one_thread(10**9)


def test_the_first_failure_in_order_is_raised_and_nothing_is_begun_after_it(monkeypatch):
    use_threads(monkeypatch, "2")
    meeting, begun = threading.Barrier(2, timeout=60), []

    def work(i):
        begun.append(i)
        if i < 2:
            meeting.wait()
            raise InputError(f"item {i}")

    with pytest.raises(InputError, match="item 0"):
        parallel.over_items(work, range(50))
    assert sorted(begun) == [0, 1]
    assert not parallel.takes_one_thread(10**9)


def test_an_interruption_does_not_wait_for_others(monkeypatch):
    use_threads(monkeypatch, "2")
    main, other_began, may_end = threading.get_ident(), threading.Event(), threading.Event()

    def work(_):
        if threading.get_ident() == main:
            assert other_began.wait(60)
            raise KeyboardInterrupt
        other_began.set()
        may_end.wait(60)

    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.over_items(work, range(50))
        assert not may_end.is_set()
    finally:
        may_end.set()


def test_threads_that_do_not_begin_are_not_waited_for(monkeypatch):
    """As in a forked process, where the pool has no thread left."""
    use_threads(monkeypatch, "2")
    release, started = threading.Event(), threading.Barrier(3, timeout=60)

    def occupy():
        started.wait()
        release.wait(60)

    occupied = [parallel._threads(2).submit(occupy) for _ in range(2)]
    started.wait()
    try:
        assert parallel.over_items(lambda i: i + 1, range(5)) == [1, 2, 3, 4, 5]
    finally:
        release.set()
        for one in occupied:
            one.result()


def test_few_scores_are_worked_on_in_one_thread(monkeypatch):
    monkeypatch.setenv("GENM_THREADS", "2")
    with parallel.threads_for(parallel.FEW_SCORES - 1):
        assert parallel.takes_one_thread(10**9)
        with parallel.threads_for(10**9):  # a block inside does not open what one around it closed
            assert parallel.takes_one_thread(10**9)
        assert set(parallel.over_items(lambda _: threading.get_ident(), range(9))) == {threading.get_ident()}
    with parallel.threads_for(parallel.FEW_SCORES):
        assert not parallel.takes_one_thread(10**9)
    assert not parallel.takes_one_thread(10**9)


@pytest.mark.parametrize(("threads", "cost", "calls"), [("1", 10**9, 1), ("3", 10**9, 3), ("3", 10, 1)])
def test_work_is_called_in_each_thread_where_it_is_much(monkeypatch, threads: str, cost: int, calls: int) -> None:
    use_threads(monkeypatch, threads)
    together = threading.Barrier(calls)
    seen = set[int]()

    def work() -> None:
        together.wait(60)  # until all the others have begun
        seen.add(threading.get_ident())

    parallel.in_threads(work, cost)
    assert len(seen) == calls
