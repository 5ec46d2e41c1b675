"""How kernels are compiled and spread over threads.

A kernel is a plain function over a range of queries that writes into arrays it was given. It holds no lock while
it runs, so threads share the work; each query has its own place in the output, and the caller sums the places in
query order, so a result never depends on the number of threads. A part is a function that only kernels call: it
has no entry point for Python, which halves the time to compile it. Never call a part from Python.

No kernel lets the compiler reorder sums or fuse products with sums: results would then depend on the processor.
(One counts ones under `reassoc`, which is exact in any order.)
Fast sums use `genm._math.lanes`.
"""

import io
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from typing import IO, Any, Protocol, TypeVar, cast, overload

import numba
import numpy as np
from llvmlite.binding import parse_assembly, parse_bitcode
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime.nrt import rtsys
from numba.core.typing.typeof import typeof_impl
from numba.np import numpy_support

from genm._math.shipped_kernels import file_name, shipped_folder, whole_content, with_digest
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
        return cast("F", LazyKernel(function, options))

    return compile_later


class LazyKernel:
    """A kernel that numba hears of when it is first called, or compiled into another.

    numba takes .15 ms to prepare a function for that, and of the 150 that a command imports it calls 30.
    """

    _dispatcher: Any
    """numba's own object."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._options = options
        self._kept_in = KernelCache(function, has_entry_point="no_cpython_wrapper" not in options)

    def __call__(self, *values: Any) -> Any:
        """Run the kernel, which is loaded or compiled for such values first."""
        return self._dispatcher(*values)

    def __getattr__(self, name: str) -> Any:
        """Return what numba's own object has of that name; numba asks it for its type in order to compile it."""
        if name != "_dispatcher":
            return getattr(self._dispatcher, name)
        with global_compiler_lock:  # a lock of our own might wait for numba's, which waits for ours
            if "_dispatcher" not in self.__dict__:
                dispatcher = numba.njit(**self._options)(self.__wrapped__)
                # numba has no public way to change how a kernel is loaded
                dispatcher._cache = self._kept_in
                # numba would look through all installed packages for extensions of its types; kernels use none
                dispatcher._compilation_chain_init_hook = _nothing
                self._dispatcher = dispatcher
            return self.__dict__["_dispatcher"]


def _nothing() -> None:
    pass


_FORMAT = ", symbols first"
"""Files that other versions of genm wrote are left alone."""


class KernelCache(FunctionCache):
    """The cache of a kernel, which looks for its folder at first use and loads what is there without the compiler.

    numba prepares its compiler before it looks for a compiled kernel: it imports some 230 modules, scipy.linalg
    among them, in .34 s. A compiled kernel needs only numba's memory allocator; compiling prepares the rest. For
    each kernel of an imported module numba tries to write to the folder, used or not.
    """

    def __init__(self, function: Any, *, has_entry_point: bool) -> None:
        self._py_func, self._stamp, self.has_entry_point = function, _stamp_of(function), has_entry_point
        self._has_folder: bool | None = None

    def _open(self) -> bool:
        """Find the folder of the kernel, once; tell whether there is one."""
        if self._has_folder is None:
            try:
                super().__init__(self._py_func)
            except RuntimeError:  # "cannot cache function"
                self._has_folder = False
            else:
                self._cache_file.__class__ = _CheckedCacheFile
                self._cache_file._version += _FORMAT
                # a kernel whose file was changed after its import is not what the file says
                self._has_folder = _stamp_of(self._py_func) == self._stamp
        return self._has_folder

    @property
    def cache_path(self) -> str | None:
        return self._cache_path if self._open() else None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._open():
            return None
        with signals_wait():
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        if self._open():
            super().save_overload(sig, data)

    def flush(self) -> None:
        if self._open():
            super().flush()

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        codegen = target_context.codegen()
        key = self._index_key(sig, codegen)
        found = self._cache_file.load(key)
        if found is None:
            found = self._finish_shipped(key, codegen)
        if found is None:
            return None
        symbols, ((name, kind, (code, bitcode)), *rest) = found
        codegen._engine._defined_symbols.update(symbols)
        rebuilt = self._impl.rebuild(target_context, ((name, kind, (code, _no_bitcode())), *rest))
        # What a kernel that calls this one is compiled with: hardly ever needed, and half the time of loading.
        rebuilt.library._get_module_for_linking = cache(lambda: parse_bitcode(bitcode))
        return rebuilt

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        module = data.library._get_module_for_linking()
        symbols = [x.name for x in (*module.functions, *module.global_variables) if not x.is_declaration]
        self.keep(self._index_key(sig, data.codegen), (symbols, self._impl.reduce(data)))

    def keep(self, key: Any, form: tuple[list[str], Any]) -> None:
        """Write a compiled kernel: its symbols, and what numba writes of it."""
        self._impl.locator.ensure_cache_path()
        self._cache_file.save(key, form)

    def _finish_shipped(self, key: Any, codegen: Any) -> tuple[list[str], Any] | None:
        """Return a kernel that the installation carries, with machine code for this processor; None without one."""
        folder = shipped_folder()
        content = None if folder is None else whole_content(folder / file_name(self._py_func, key))
        if content is None:
            return None
        symbols, ((name, kind, (_, bitcode)), *rest) = _QuickUnpickler(io.BytesIO(content)).load()
        form = symbols, ((name, kind, (codegen._tm.emit_object(parse_bitcode(bitcode)), bitcode)), *rest)
        self.keep(key, form)
        return form


def _stamp_of(function: Any) -> tuple[int, int] | None:
    """Return what tells versions of the function's file apart; None if there is no such file."""
    with suppress(OSError):
        state = os.stat(function.__code__.co_filename)
        return state.st_mtime_ns, state.st_size
    return None


@cache
def _no_bitcode() -> bytes:
    return cast("bytes", parse_assembly("").as_bitcode())


@contextmanager
def signals_wait() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for some milliseconds.

    LLVM calls Python while it loads code. What a signal raises in such a call is dropped, or leaves memory that is
    freed twice.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are handled in the main thread alone
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda n, _: came.append(n)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if came:
            signal.raise_signal(came[0])


class _CheckedCacheFile(IndexDataCacheFile):
    """The files of a compiled kernel, each followed by a digest of its content.

    A file that is cut short or changed is not loaded, and the kernel is compiled again. The digest comes after the
    content, where numba's own reader does not look. Where nothing can be written (a full disk, say), the kernel is
    used and not kept.
    """

    def save(self, key: Any, data: Any) -> None:
        with suppress(OSError):
            super().save(key, data)

    def _load_index(self) -> Any:
        return super()._load_index() if whole_content(self._index_path) is not None else {}

    def _load_data(self, name: str) -> Any:
        content = whole_content(self._data_path(name))
        return None if content is None else _QuickUnpickler(io.BytesIO(content)).load()

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[IO[bytes]]:
        with super()._open_for_write(path) as file:
            content = io.BytesIO()
            yield content
            file.write(with_digest(content.getvalue()))


class _QuickUnpickler(pickle.Unpickler):
    """Loads a compiled kernel without the modules of numba that define the functions it was compiled from."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return what the compiled code of a function finds at run time.

    It takes the constants of the errors that it raises from there, and the module's names never. numba imports the
    module nevertheless: that of `np.empty` takes .1 s.
    """
    known: Environment | None = lookup_environment(name)
    if known is not None:
        return known
    found = Environment(vars(sys.modules[module]) if module in sys.modules else {"__name__": module})
    found.consts[:] = constants
    found.env_name = name
    Environment._memo[name] = found
    return found


_type_of_any_array = typeof_impl.dispatch(np.ndarray)


@typeof_impl.register(np.ndarray)
def _type_of_array(array: Any, context: Any) -> Any:
    """Return what numba calls the type of an array.

    numba asks of every array whether it is masked, and loads numpy.ma to know: .03 s of every command.
    """
    if type(array) is not np.ndarray or array.dtype.kind not in "biuf":
        return _type_of_any_array(array, context)
    layout, readonly = numpy_support.map_layout(array), not array.flags.writeable
    return types.Array(numpy_support.from_dtype(array.dtype), array.ndim, layout, readonly=readonly)


@overload
def kernel(function: F, /) -> F: ...


@overload
def kernel(*, makes_arrays: bool) -> Callable[[F], F]: ...


def kernel(function: F | None = None, /, *, makes_arrays: bool = False) -> F | Callable[[F], F]:
    """Compile at first use, keep the result on disk, release the interpreter lock while running.

    A kernel that makes arrays, or returns some, has to say so: numba then counts the references to them. Each count
    is a call of a function, for which a loop gives up what it holds in registers, so loops over many numbers belong
    in parts, which are given their arrays. numba refuses a kernel that makes arrays and does not say so;
    `tests/math/test_kernel_files.py` finds one that returns some.
    """
    decorate: Callable[[F], F] = kept(no_cfunc_wrapper=True, _nrt=makes_arrays)
    return decorate if function is None else decorate(function)


def n_threads() -> int:
    """Return how many threads kernels use: GENM_THREADS if set, else the cores this process may use."""
    asked = os.environ.get("GENM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_ranges(work: Callable[[int, int], None], costs: Ints, total: int | None = None) -> None:
    """Call `work(low, high)` over consecutive ranges of items whose costs are about equal.

    `work` must touch only what belongs to its range. Runs in the caller's thread when one thread is enough,
    or when the caller is itself one of several at work (see `over_items`). `total` is the sum of the costs, if it
    is known.
    """
    n = len(costs)
    if n == 0:
        return
    total = int(np.add.reduce(costs)) if total is None else total
    if n == 1 or takes_one_thread(total):
        work(0, n)
        return
    threads = n_threads()
    pieces = min(n, 4 * threads, max(threads, total // LEAST_COST))
    ends = np.searchsorted(np.cumsum(costs), np.linspace(0, total, pieces + 1)[1:-1])
    cuts = np.unique(np.concatenate(([0], ends, [n]))).tolist()
    _share(lambda i: work(cuts[i], cuts[i + 1]), len(cuts) - 1, threads)


def in_threads(work: Callable[[], None], cost: int) -> None:
    """Call `work()` in each of as many threads as kernels use; the calls deal out among them what there is to do.

    Once in the caller's thread when one is enough for work of this cost, as in `over_ranges`.
    """
    if takes_one_thread(cost):
        work()
    else:
        _share(lambda _: work(), n_threads(), n_threads())


FEW_SCORES = 64_000
"""Scores from which a second thread saves time: `genm fit` of four rankers, on two idle cores."""
SMALL_COST = 40_000
"""What work costs from which a second thread saves time, in units of about 50 ns, as `Tiles.costs`."""
LEAST_COST = 5_000
"""What a range costs at least, where there are enough: handing it to a thread costs about a tenth of that."""


def takes_one_thread(cost: int) -> bool:
    """Return whether work of this cost stays in the caller's thread: it is too little, or all cores are busy."""
    return cost < SMALL_COST or getattr(_worker, "busy", False) or n_threads() == 1


def over_items(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return `work(item)` for every item, in order, several items at a time.

    Kernels called inside stay in their thread: the items already keep all cores busy. Inside `items_run_by`, the
    runner decides how the items are worked on.
    """
    todo, threads = list(items), n_threads()
    runner = _runner()
    if runner is not None:
        return cast("list[B]", runner(work, todo))
    if threads == 1 or len(todo) == 1 or getattr(_worker, "busy", False):
        return [work(item) for item in todo]

    results: list[Any] = [None] * len(todo)

    def work_on(i: int) -> None:
        before, _worker.busy = getattr(_worker, "busy", False), True
        try:
            results[i] = work(todo[i])
        finally:
            _worker.busy = before

    _share(work_on, len(todo), threads)
    return results


def _share(work: Callable[[int], None], n: int, threads: int) -> None:
    """Call `work(0)` to `work(n - 1)`, each once, begun in this order, in this thread and others of the pool.

    This thread does not wait for the others to begin: they take some 50 us for that, and small jobs are done by
    then. After a failure nothing more is begun, and the first failure in the order of the calls is raised, as in
    one thread.
    """
    numbers, failures = iter(range(n)), list[tuple[int, Exception]]()
    stopped = False

    def take() -> None:
        for i in numbers:
            if stopped or failures:
                return
            try:
                work(i)
            except Exception as error:  # noqa: BLE001 - raised below, in the caller's thread
                failures.append((i, error))

    helpers = [_threads(threads).submit(take) for _ in range(min(threads, n) - 1)]
    try:
        take()
    except BaseException:  # Ctrl-C, say, does not wait for calls that may take long
        stopped = True
        raise
    for helper in helpers:
        if not helper.cancel():
            helper.result()
    if failures:
        raise min(failures, key=lambda failure: failure[0])[1]


def in_order(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Yield `work(item)` for every item, in order, each when it is asked for.

    Inside `items_run_by` all of them are computed first: a pass over a table costs the same for one as for many.
    """
    runner = _runner()
    yield from map(work, items) if runner is None else cast("list[B]", runner(work, list(items)))


@contextmanager
def threads_for(n_scores: int) -> Iterator[None]:
    """Stay in this thread inside the block if kernels go over few scores at a time.

    They take less time then than the calls of Python between them, which hold the interpreter lock: two threads
    would take as long as one, and a quarter more CPU, because they wait for each other.
    """
    before = getattr(_worker, "busy", False)
    _worker.busy = before or are_few(n_scores)
    try:
        yield
    finally:
        _worker.busy = before


def are_few(n_scores: int) -> bool:
    """Return whether one thread goes over so many scores as fast as two."""
    return n_scores < FEW_SCORES


class Runner(Protocol):
    """Works on all items and returns the results in their order."""

    def __call__(self, work: Callable[[Any], Any], items: list[Any], /) -> list[Any]:
        """Return `work(item)` for every item, in order."""


@contextmanager
def items_run_by(runner: Runner | None) -> Iterator[None]:
    """Let the runner work on what `over_items` and `in_order` are given in this thread; None: as usual."""
    before, _worker.runner = _runner(), runner
    try:
        yield
    finally:
        _worker.runner = before


def _runner() -> Runner | None:
    return cast("Runner | None", getattr(_worker, "runner", None))


def _threads(n: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size != n:
        _pool, _pool_size = ThreadPoolExecutor(n, thread_name_prefix="genm"), n
    return _pool


def part(*, inline: bool = False, makes_arrays: bool = False) -> Callable[[F], F]:
    """Compile a part of a kernel; with `inline` it becomes code of each kernel that calls it, whatever its size.

    One that makes arrays, or returns some, has to say so, as a kernel has.
    """
    return kept(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=inline, _nrt=makes_arrays)
