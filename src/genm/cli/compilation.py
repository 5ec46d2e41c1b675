"""Compile the kernels of learning in a separate process while runs are read, and tell the user about the wait.

Kernels are compiled at their first use on a machine and cached on disk. A compiler works on one core, and a
first command needs the kernels of two stages: reading and aligning compile as they go, and the other process
(`genm.cli.warmup`) compiles what comes after them.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EXACT = "exact"

PATIENCE = 0.7
"""Seconds of compiling before the message is shown."""
MESSAGE = "compiling kernels for this machine, once ..."


@contextmanager
def compile_in_background(*, exact: bool = False) -> Iterator[Callable[[], None]]:
    """Start the process if the kernels are not cached yet; call what this yields before they are needed.

    On one core there is no other process: it would take two seconds to prepare its own compiler, and save none.
    `exact` adds the kernels of the line search and the certified search, which most commands do not need.
    """
    worker = None if _is_cached(exact) or _has_one_core() else _start(exact)
    try:
        yield lambda: None if worker is None else _wait(worker)
    finally:
        if worker is not None and worker.poll() is None:
            worker.terminate()
            worker.wait()


def _is_cached(exact: bool) -> bool:
    """Tell whether the kernel that the other process compiles last is on disk; each package has its own folder.

    Kernels that the installation carries need no other process: they are ready in less time than it takes to start.
    """
    from genm._math.shipped_kernels import shipped_folder

    if shipped_folder() is not None:
        return True
    last: Any
    if exact:
        from genm._math.exact.bound_kernels import explore as last
    else:
        from genm._math.average_precision_kernels import smooth_range as last
    folder = last.stats.cache_path
    module = last.py_func.__module__.rpartition(".")[2]
    # without a folder nothing is cached, and the work of another process would be lost
    return folder is None or any(Path(folder).glob(f"{module}.{last.py_func.__name__}-*.nbi"))


def _has_one_core() -> bool:
    from genm._math.parallel import n_threads

    return n_threads() == 1


def _start(exact: bool) -> "subprocess.Popen[bytes]":
    nothing = subprocess.DEVNULL
    more = [EXACT] if exact else []
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "genm.cli.warmup", *more], stdin=nothing, stdout=nothing, stderr=nothing
    )


def _wait(worker: "subprocess.Popen[bytes]") -> None:
    worker.wait()  # what it could not compile is compiled here, at its first call


@contextmanager
def announce_compilation(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` once if compiling takes more than a moment; cached kernels take none."""
    from numba.core import event

    class Watch(event.Listener):
        """Adds up the time of compiling; the time of a kernel includes that of the kernels it calls."""

        def __init__(self) -> None:
            self.spent, self.began, self.depth, self.told = 0.0, 0.0, 0, False

        def on_start(self, _: Any) -> None:
            now = time.monotonic()
            if self.depth == 0:
                self.began = now
            self.depth += 1
            if not self.told and self.spent + now - self.began > PATIENCE:
                self.told = True
                tell(MESSAGE)

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.monotonic() - self.began

    with event.install_listener("numba:compile", Watch()):
        yield
