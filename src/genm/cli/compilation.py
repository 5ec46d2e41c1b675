"""Compile the kernels of learning in a process of its own while runs are read, and tell the user about the wait.

Kernels are compiled at their first use on a machine and cached on disk. A compiler works on one core, and a
first command needs the kernels of two stages: reading and aligning compile as they go, and this process compiles
what comes after them.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genm.align import Aligned

EXACT = "exact"

PATIENCE = 0.7
"""Seconds of compiling that pass without a word."""
MESSAGE = "compiling kernels for this machine, once ..."


@contextmanager
def compile_in_background(*, exact: bool = False) -> Iterator[Callable[[], None]]:
    """Start the process if nothing is kept yet; call what this gives before the kernels are needed.

    `exact` adds the kernels of lines and of the certified search, which most commands do without.
    """
    worker = None if _is_kept(exact) else _start(exact)
    try:
        yield lambda: None if worker is None else _wait(worker)
    finally:
        if worker is not None and worker.poll() is None:
            worker.terminate()
            worker.wait()


def _is_kept(exact: bool) -> bool:
    from genm._math.average_precision_kernels import rank_range

    last = "bound_kernels.explore" if exact else "average_precision_kernels.rank_range"
    folder = rank_range.stats.cache_path  # type: ignore[attr-defined]  # numba's dispatcher has it
    # without a folder nothing is kept, and what another process compiled would be lost: it need not start
    return folder is None or any(Path(folder).glob(f"{last}-*.nbi"))


def _start(exact: bool) -> "subprocess.Popen[bytes]":
    nothing = subprocess.DEVNULL
    more = [EXACT] if exact else []
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "genm.cli.compilation", *more], stdin=nothing, stdout=nothing, stderr=nothing
    )


def _wait(worker: "subprocess.Popen[bytes]") -> None:
    worker.wait()  # whatever it could not compile is compiled here, when it is called


def compile_learning() -> None:
    """Call every kernel that learning needs once, on a query with two documents."""
    import numpy as np

    from genm._math.average_precision import exact_ap, smooth_ap
    from genm._math.fusion import weighted_sum
    from genm._math.sorting import rank_order
    from genm._math.tiles import build_tiles
    from genm.evaluate import AlignedEvaluator

    aligned, weights = _smallest(), np.array([0.5, 0.5])
    tiles = build_tiles(aligned.starts, aligned.scores, np.array([True, False]), np.array([1]))
    smooth_ap(tiles, weights, 1.0, order=1)
    exact_ap(tiles, weights)
    AlignedEvaluator(aligned, "AP").values(weights)
    rank_order(aligned.starts, weighted_sum(aligned.scores, weights), np.zeros(2, np.int32))


def compile_exact() -> None:
    """Learn once by exact search, certified: it begins from what the smooth fusers learn, so theirs come too."""
    from genm._math.exact.branch_and_bound import best_weights
    from genm.evaluate import Measure
    from genm.learn import ExactFuser
    from genm.learn.exact import gain_problem

    aligned = _smallest()
    ExactFuser(certify=True).fit(aligned)
    best_weights(gain_problem(aligned, Measure("AP")))


def _smallest() -> "Aligned":
    """Return one query with two documents and two rankers that disagree."""
    import numpy as np

    from genm.align import Aligned
    from genm.ids import Ids
    from genm.normalizers import Normalizer

    starts, scores = np.array([0, 2]), np.array([[0.0, 1.0], [1.0, 0.5]])
    return Aligned(
        rankers=("a", "b"),
        queries=Ids.of(["q"]),
        docs=Ids.of(["d", "e"]),
        starts=starts,
        doc=np.array([1, 0], np.int32),
        raw=scores,
        retrieved=np.ones((2, 2), np.bool_),
        scores=scores,
        normalizers=(Normalizer(), Normalizer()),
        depths=(None, None),
        labelled=True,
        relevance=np.array([1, 0], np.int32),
        unretrieved_starts=np.array([0, 0]),
        unretrieved=np.zeros(0, np.int32),
        query_weights=np.ones(1),
    )


@contextmanager
def announce_compilation(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` once, when compiling inside takes more than a moment; kernels kept from before take none."""
    from numba.core import event

    class Watch(event.Listener):
        """Adds up the time of compiling; kernels that a kernel calls are compiled within its own time."""

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


if __name__ == "__main__":
    compile_learning()
    if EXACT in sys.argv:
        compile_exact()
