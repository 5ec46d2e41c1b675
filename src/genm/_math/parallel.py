"""How kernels are compiled and spread over threads.

A kernel is a plain function over a range of queries that writes into arrays it was given. It holds no lock while
it runs, so threads share the work; each query has its own place in the output, and the caller sums the places in
query order, so a result never depends on the number of threads. A part is a function that only kernels call: it
has no entry point for Python, which halves the time to compile it. Never call a part from Python.

No kernel lets the compiler reorder sums or fuse products with sums: results would then depend on the processor.
(One counts ones under `reassoc`, which is exact in any order.)
Fast sums use `genm._math.lanes`.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba
import numpy as np

from genm._typing import Ints

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")
B = TypeVar("B")

_worker = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def kept(**options: Any) -> Callable[[F], F]:
    """Compile at first use and keep the result on disk, if there is a folder that can be written.

    numba looks for one beside the module and in the user's home; a package of the system's, run by a user without a
    home, has neither. Kernels are compiled in every process then, which is slow but right.
    """
    options = {"nogil": True, "error_model": "numpy", **options}

    def compile_later(function: F) -> F:
        try:
            return cast("F", numba.njit(cache=True, **options)(function))
        except RuntimeError:  # "cannot cache function"
            return cast("F", numba.njit(**options)(function))

    return compile_later


def kernel(function: F) -> F:
    """Compile at first use, keep the result on disk, release the interpreter lock while running."""
    return kept()(function)


def n_threads() -> int:
    """Return how many threads kernels use: GENM_THREADS if set, else the cores this process may use."""
    asked = os.environ.get("GENM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_ranges(work: Callable[[int, int], None], costs: Ints) -> None:
    """Call `work(low, high)` over consecutive ranges of items whose costs are about equal.

    `work` must touch only what belongs to its range. Runs in the caller's thread when one thread is enough,
    or when the caller is itself one of several at work (see `over_items`).
    """
    n, threads = len(costs), n_threads()
    if n == 0:
        return
    total = int(costs.sum())
    if threads == 1 or n == 1 or total < 20_000 or getattr(_worker, "busy", False):
        work(0, n)
        return
    pieces = min(n, 4 * threads)
    ends = np.searchsorted(np.cumsum(costs), np.linspace(0, total, pieces + 1)[1:-1])
    cuts = np.unique(np.concatenate(([0], ends, [n])))
    list(_threads(threads).map(work, cuts[:-1].tolist(), cuts[1:].tolist()))


def over_items(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return `work(item)` for every item, in order, several items at a time.

    Kernels called inside stay in their thread: the items already keep all cores busy.
    """
    todo, threads = list(items), n_threads()
    if threads == 1 or len(todo) == 1 or getattr(_worker, "busy", False):
        return [work(item) for item in todo]

    def marked(item: A) -> B:
        _worker.busy = True
        try:
            return work(item)
        finally:
            _worker.busy = False

    return list(_threads(threads).map(marked, todo))


def _threads(n: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size != n:
        _pool, _pool_size = ThreadPoolExecutor(n, thread_name_prefix="genm"), n
    return _pool


def part() -> Callable[[F], F]:
    """Compile a part of a kernel."""
    return kept(no_cpython_wrapper=True, no_cfunc_wrapper=True)
