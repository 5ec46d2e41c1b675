"""Several processes that work on items side by side: threads share an interpreter's lock, processes do not.

A process is this interpreter, started anew by `python -c`. It never imports the caller's main module, so that needs
no guard. Through its standard input it gets an object with a method `values`, then items to work on; it answers on
its standard output. Most bytes of that object are those of arrays. They are in a temporary file without a name,
which every process maps: memory holds them once, and nothing stays on disk, however the processes end.

A process ends when its standard input does, even in the midst of its work, so none that has begun outlives its
parent. The parent
works on items itself until the first process is ready, and when all of them have ended early.
"""

import mmap
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple, Protocol, Self, TextIO, TypeVar

from genm._math.average_precision_kernels import smooth_range
from genm._math.parallel import are_few, n_threads, signals_wait, takes_one_thread
from genm.errors import EngineError, GenmWarning
from genm.scale.engines import usable_memory

if sys.platform != "win32":
    import fcntl

V_co = TypeVar("V_co", covariant=True)
V = TypeVar("V")

MOST_THREADS = 4
"""Threads up to which one process does without others: each thread holds the lock for 13 % of its working time."""
THREADS_EACH = 2
"""Threads of a process: two hardly wait for each other, and half as many processes have to start."""
LEAST_COST = 150_000_000
"""What the items of a process cost at least, in units of about 30 ns: ten times the CPU that it takes to start."""
MEMORY_EACH = 100_000_000
"""Bytes that a process takes, beside the mapped arrays and a copy of the scores in each of its threads."""
MOST_AT_ONCE = 32
"""Items that a process works on between two answers, for each thread; towards the end there are fewer."""
AT_ONCE = 8
"""Items that threads of this process work on between two reports of progress, for each thread."""

_START = "import sys; sys.path[:] = sys.argv[2:]; from genm.explain.processes import serve; serve(int(sys.argv[1]))"
_GREETING = b"genm: ready\n"
_ALIGNMENT = 64
_shown: dict[Any, Any] = {}
"""Which warnings of processes were shown, for filters that show each once."""


class Worker(Protocol[V_co]):
    """Does the work. It can be pickled."""

    def values(self, items: Sequence[int], /) -> Sequence[V_co]:
        """Return the value of every item; it depends on nothing that was asked before."""


class _Stored(NamedTuple):
    """A worker as processes get it."""

    pickled: bytes
    spans: list[tuple[int, int]]
    """Where the bytes of its arrays begin and end in the file."""


class _Warned(NamedTuple):
    """A warning, and the line that it is about."""

    text: str
    category: type[Warning]
    filename: str
    line: int


class _Answer(NamedTuple):
    """What a process found, or why it failed, and the warnings on the way."""

    values: Any
    failure: Exception | None
    warned: list[_Warned]


def processes_for(cost: int, n_scores: int) -> int:
    """Return in how many processes to do work of this cost on so many scores; 0: in threads of this one."""
    threads = n_threads()
    if threads <= MOST_THREADS or takes_one_thread(cost) or not _can_start():
        return 0
    each = 1 if are_few(n_scores) else THREADS_EACH
    memory = MEMORY_EACH + each * 8 * n_scores
    n = min(threads // each, cost // LEAST_COST, usable_memory() // memory)
    return n if n > 1 else 0


def _can_start() -> bool:
    """Return whether `sys.executable` is Python, and kernels are kept on disk: else every process compiles them."""
    is_python = bool(sys.executable) and not getattr(sys, "frozen", False)
    kernel: Any = smooth_range
    return os.name == "posix" and is_python and kernel.stats.cache_path is not None


def values_by_threads(worker: Worker[V], items: Sequence[int]) -> Generator[tuple[Sequence[int], Sequence[V]]]:
    """Yield items with their values, some at a time, in order."""
    at_once = AT_ONCE * n_threads()
    for begin in range(0, len(items), at_once):
        some = items[begin : begin + at_once]
        yield some, worker.values(some)


def values_by_processes(
    make_worker: Callable[[], Worker[V]], items: Sequence[int], n: int, meanwhile: Callable[[], object]
) -> Generator[tuple[Sequence[int], Sequence[V]]]:
    """Yield items with their values, some at a time and in any order, until all are done.

    The worker is made, and `meanwhile` is called, while the processes start. Raises the first failure in the order
    of the items, as threads do. Close the iterator to end the processes.
    """
    failures: list[tuple[int, Exception]] = []
    with _Processes(n, len(items)) as processes:
        worker = make_worker()
        some = [items[i] for i in processes.take_here()]
        yield some, worker.values(some)
        processes.hand_over(worker)  # its kernels are on disk now, and it knows what all items share
        meanwhile()
        while processes.at_work or processes.waiting:
            for numbers, answer in processes.answers():
                _warn_again(answer)
                if answer.failure is not None:
                    failures.append((numbers[0], answer.failure))
                else:
                    yield [items[i] for i in numbers], answer.values
            if failures:
                processes.waiting.clear()
            processes.deal(items)
            if processes.waiting and not processes.at_work:
                some = [items[i] for i in processes.take_here()]
                yield some, worker.values(some)
        if failures:
            raise min(failures, key=lambda failure: failure[0])[1]
        processes.report_losses()


class _Process:
    """A process, and a thread that listens to it."""

    def __init__(self, command: list[str], threads: int, file: IO[bytes], events: SimpleQueue[Any]) -> None:
        self.threads = threads
        self.is_ready = self.has_worker = False
        self.numbers: list[int] = []
        """Of the items that it works on."""
        self._events = events
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [*command, str(file.fileno()), *filter(_is_text, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[file.fileno()],
            env={**os.environ, "GENM_THREADS": str(threads)},
            start_new_session=True,  # Ctrl-C is for this process, which then ends the others
        )
        self._listener = threading.Thread(target=self._listen, name="genm-listen", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        answers = _pipe(self._process.stdout)
        try:
            if answers.read(len(_GREETING)) == _GREETING:  # nothing else is unpickled
                self._events.put((self, None))
                while True:
                    self._events.put((self, pickle.load(answers)))  # noqa: S301 - from our own process
        except (EOFError, OSError, pickle.UnpicklingError):
            pass
        finally:
            self._events.put((self, EOFError))

    def send(self, order: object) -> None:
        """Send something to work with; that the process has ended is heard by the listener."""
        with suppress(OSError):
            orders = _pipe(self._process.stdin)
            pickle.dump(order, orders, protocol=5)
            orders.flush()

    def kill(self) -> None:
        """End the process at once; it holds nothing that is needed again."""
        self._process.kill()

    def end(self, *, patience: float = 0.0) -> int:
        """Return the process's status when it has ended, by itself or after so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience)
        self.kill()
        status = self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not sent
                _pipe(pipe).close()
        return status


class _Processes:
    """Processes that start, work and end, and the items that wait for them."""

    def __init__(self, n: int, n_items: int) -> None:
        self.waiting = deque(range(n_items))
        """The numbers of the items that nobody works on yet."""
        self._events: SimpleQueue[Any] = SimpleQueue()
        self._running: list[_Process] = []
        self._stored: _Stored | None = None
        self._n_started, self._lost = 0, list[int]()
        self._file: IO[bytes] | None = None
        threads = n_threads()
        command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _START]
        try:
            self._file = _nameless_file()
            with signals_wait():  # none may come between the start of a process and its place in the list
                for i in range(n):
                    own = max(1, threads * (i + 1) // n - threads * i // n)
                    self._running.append(_Process(command, own, self._file, self._events))
        except (OSError, RuntimeError):  # as many as could be started, each with its thread
            pass
        except BaseException:
            self.close()
            raise
        self._n_started = len(self._running)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for process in self._running:
            process.kill()
        while self._running:
            self._running.pop().end()
        if self._file is not None:
            with suppress(OSError):  # what did not fit on the disk
                self._file.close()

    @property
    def at_work(self) -> bool:
        """Whether an answer will come."""
        return any(process.numbers for process in self._running)

    def take_here(self) -> list[int]:
        """Return the numbers of items that this process works on: one while others start, which wait for it."""
        return self._take(1 if self._running else AT_ONCE * n_threads())

    def hand_over(self, worker: Worker[object]) -> None:
        """Make the worker ready for processes. They end if it cannot be written."""
        if self._file is None or not self._running:
            return
        try:
            self._stored = _store(worker, self._file)
        except (OSError, pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError):
            self.close()

    def deal(self, items: Sequence[int]) -> None:
        """Give items to processes that have none."""
        for process in self._running:
            if not (process.is_ready and self._stored and self.waiting) or process.numbers:
                continue
            if not process.has_worker:
                process.send(self._stored)
                process.has_worker = True
            share = len(self.waiting) // (2 * len(self._running))
            process.numbers = self._take(min(MOST_AT_ONCE * process.threads, max(process.threads, share)))
            process.send([items[i] for i in process.numbers])

    def answers(self) -> Iterator[tuple[list[int], _Answer]]:
        """Yield what has come: answers, with the numbers of their items. Wait if there is something to wait for."""
        waits = self.at_work
        with suppress(Empty):
            while True:
                process, event = self._events.get(block=waits)
                waits = False
                if process not in self._running:
                    continue
                if event is EOFError:
                    self._forget(process)
                elif event is None:
                    process.is_ready = True
                else:
                    numbers, process.numbers = process.numbers, []
                    yield numbers, event

    def report_losses(self) -> None:
        """Warn of processes that had begun to work and ended early."""
        if self._lost:
            how_many = f"{len(self._lost)} of {self._n_started} processes ended early (status {self._lost[0]})"
            who = "others" if self._running else "this one"
            text = f"{how_many}, and {who} did their work. GENM_THREADS={MOST_THREADS} uses one process."
            if -signal.SIGKILL in self._lost:
                text += " The system kills processes where memory is short."
            warnings.warn(text, GenmWarning, stacklevel=2)

    def _take(self, most: int) -> list[int]:
        return [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]

    def _forget(self, process: _Process) -> None:
        self._running.remove(process)
        self.waiting.extendleft(reversed(process.numbers))
        status = process.end(patience=1.0)
        if process.has_worker:
            self._lost.append(status)


def _store(worker: object, file: IO[bytes]) -> _Stored:
    """Write the bytes of the worker's arrays to the file, and return the rest."""
    spans: list[tuple[int, int]] = []

    def keep(buffer: pickle.PickleBuffer) -> None:
        file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
        begin = file.tell()
        spans.append((begin, begin + file.write(buffer.raw())))

    pickled = pickle.dumps(worker, protocol=5, buffer_callback=keep)
    file.truncate(max(file.tell(), 1))  # an empty file cannot be mapped
    return _Stored(pickled, spans)


def _restored(stored: _Stored, file: int) -> Worker[Any]:
    """Return the worker of `_store`. What it writes into its arrays stays in this process."""
    size = max([1, *(end for _, end in stored.spans)])
    content = memoryview(mmap.mmap(file, size, access=mmap.ACCESS_COPY))  # kernels take writable arrays
    worker: Worker[Any] = pickle.loads(  # noqa: S301 - from our own parent
        stored.pickled, buffers=[content[begin:end] for begin, end in stored.spans]
    )
    return worker


def _nameless_file() -> IO[bytes]:
    """Return an open file without a name, at no place that a process has its standard streams."""
    with tempfile.TemporaryFile() as file:
        return os.fdopen(fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, 3), "w+b")


def _warn_again(answer: _Answer) -> None:
    for warned in answer.warned:
        try:
            warnings.warn_explicit(*warned, registry=_shown)
        except TypeError:  # a class that wants more than the text
            text = f"{warned.category.__name__}: {warned.text}"
            warnings.warn_explicit(text, GenmWarning, warned.filename, warned.line, registry=_shown)


def serve(arrays: int) -> None:
    """Answer until standard input ends: what a process runs. `arrays` is the descriptor of their file."""
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # what is printed must not get between the answers
    orders: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_receive, args=(orders,), daemon=True).start()
    warned: list[_Warned] = []

    def remember(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,  # noqa: ARG001 - the names are those of what it replaces
        line: str | None = None,  # noqa: ARG001
    ) -> None:
        warned.append(_Warned(str(message), category, filename, lineno))

    warnings.simplefilter("always")  # the parent's filters decide
    warnings.showwarning = remember
    answers.write(_GREETING)
    answers.flush()
    worker = _restored(orders.get(), arrays)
    while True:
        items = orders.get()
        values, failure = None, None
        try:
            values = worker.values(items)
        except Exception as error:  # noqa: BLE001 - raised again by the parent
            failure = _portable(error)
        answers.write(pickle.dumps(_Answer(values, failure, warned.copy()), protocol=5))
        answers.flush()
        warned.clear()


def _receive(orders: SimpleQueue[Any]) -> None:
    """Queue what comes; end the process, whatever it does, when nothing more can come."""
    with suppress(EOFError, OSError), os.fdopen(0, "rb", closefd=False) as pipe:
        while True:
            orders.put(pickle.load(pipe))  # noqa: S301 - from our own parent
    os._exit(0)


def _portable(error: Exception) -> Exception:
    """Return the error with a note of where it came from, or one that says the same if it cannot be pickled."""
    note = "In another process:\n" + "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - what an error has may be of any kind
        error = EngineError(f"{type(error).__name__}: {error}")
    error.add_note(note)
    return error


def _is_text(entry: object) -> bool:
    return isinstance(entry, str)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
