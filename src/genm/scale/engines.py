"""Engines: where the shards of a table are evaluated. Threads of this process, other processes, or a GPU.

An engine returns the answer of every shard to every request. It decides only where and when a shard is worked on;
`genm.scale.evaluation` says what is computed, and in which order it is added up.
"""

import multiprocessing
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from genm._math.parallel import items_run_by, n_threads, over_items
from genm.errors import EngineError, InputError
from genm.normalizers import ScoreRules
from genm.progress import Progress, silent
from genm.scale.cuda import find_device
from genm.scale.cuda_shard import CudaShard
from genm.scale.documents import ROWS_AT_ONCE, DocumentAnswers
from genm.scale.evaluation import Answer, Documents, Request, Settings, needs_documents
from genm.scale.tiled_shard import ReadyShard, See, TiledShard

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

if sys.platform != "win32":
    import resource

MOST_RESTARTS = 20
"""How often the workers of one pass are started again before the pass is given up."""
THREADS_PER_READER = 4
"""Threads that evaluate shards as fast as one thread reads them."""
_SHARE_OF_MEMORY = 0.5
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([KMGT]?I?B|)", re.IGNORECASE)
_UNITS = {"": 1, "B": 1} | {
    f"{letter}{infix}B": base**power
    for power, letter in enumerate("KMGT", start=1)
    for infix, base in (("", 1000), ("I", 1024))
}
_UNKNOWN_MEMORY = 2 * 2**30


class Table(ScoreRules, Protocol):
    """What engines and learners need of a score table: `genm.scale.ScoreTable`, or any object like it."""

    @property
    def labelled(self) -> bool:
        """Whether the table has judgments."""

    @property
    def n_shards(self) -> int:
        """Number of shards."""

    @property
    def shard_queries(self) -> tuple[int, ...]:
        """Queries of each shard."""

    @property
    def dtype(self) -> str:
        """The type in which scores are stored: float32 or float64."""

    @property
    def digest(self) -> str:
        """A hash of the content."""

    def read_columns(self, number: int, *, doc_ids: bool = False) -> Documents:
        """Return the documents of a shard, with or without their names."""


MakeShard = Callable[[int, Documents, Settings, See], ReadyShard]


class Engine(Protocol):
    """Evaluates the shards of a table."""

    def evaluate(self, requests: Sequence[Request]) -> list[list[Answer]]:
        """Return, for every shard in the order of the ids, the answers to all requests."""

    def close(self) -> None:
        """Free what the engine holds."""


def usable_memory() -> int:
    """Return half of the memory that this process may use: of the machine, its control group or its limit."""
    if sys.platform == "win32":
        return _UNKNOWN_MEMORY
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            limits.append(int(Path(place).read_text(encoding="ascii")))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft = resource.getrlimit(kind)[0]
        limits += [soft] if soft != resource.RLIM_INFINITY else []
    return int(_SHARE_OF_MEMORY * min(limits))


def memory_for(settings: Settings) -> int:
    """Return the bytes that shards may take where they are kept: in the memory of this process, or of a GPU."""
    return usable_memory() if settings.device == "cpu" else find_device(settings.device).free_bytes


def ready_shard(number: int, documents: Documents, settings: Settings, see: See) -> ReadyShard:
    """Make a shard ready for the device of the settings."""
    kind = TiledShard if settings.device == "cpu" else CudaShard
    return kind(number, documents, settings, see)


def bytes_of(text: str) -> int:
    """Return a size such as 500MB, 2GB or 1.5GiB in bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"memory (--memory) {text!r}: expected a size such as 500MB or 2GB.")
    number, unit = float(found[1]), found[2].upper()
    return int(number * _UNITS[unit])


class ThreadEngine:
    """Evaluates shards in this process, by the threads of the kernels.

    Shards stay in memory until `memory` bytes are used. The others are read again for every pass, each while the
    one before it is evaluated.
    """

    def __init__(
        self,
        table: Table,
        settings: Settings,
        *,
        memory: int | None = None,
        shards: Sequence[int] | None = None,
        make_shard: MakeShard = ready_shard,
        progress: Progress = silent,
    ) -> None:
        self._table, self._settings, self._make, self._progress = table, settings, make_shard, progress
        self.memory = memory_for(settings) if memory is None else memory
        """Bytes that the shards in memory may take."""
        self._shards = list(range(table.n_shards)) if shards is None else list(shards)
        self._kept: dict[int, ReadyShard] = {}
        self.n_bytes = 0
        """Bytes that they take."""

    def close(self) -> None:
        """Forget the shards in memory."""
        self._kept.clear()
        self.n_bytes = 0

    @property
    def n_kept(self) -> int:
        """Shards in memory."""
        return len(self._kept)

    def evaluate(self, requests: Sequence[Request], shards: Sequence[int] | None = None) -> list[list[Answer]]:
        """Return the answers of these shards, or of all that the engine has, to all requests."""
        wanted = self._shards if shards is None else list(shards)
        read_all = any(needs_documents(request, self._settings) for request in requests)
        asked = [i for i in wanted if any(request.selects_from(i) for request in requests)]
        here = [] if read_all else [i for i in asked if i in self._kept]
        elsewhere = [i for i in asked if i not in here]
        found = {i: [request.nothing() for request in requests] for i in set(wanted).difference(asked)}
        with items_run_by(None):
            found |= zip(here, self._evaluate_kept(here, requests), strict=True)
            for done, (i, documents) in enumerate(self._loaded(elsewhere)):
                found[i] = self._read_and_answer(i, documents, requests)
                self._progress("reading shards", done + 1, len(elsewhere))
        return [found[i] for i in wanted]

    def _read_and_answer(self, number: int, documents: Documents, requests: Sequence[Request]) -> list[Answer]:
        others = DocumentAnswers(number, documents, requests, self._settings)
        shard = self._kept.get(number)
        if shard is None:
            shard = self._make(number, documents, self._settings, others.see)
            self._keep(number, shard)
        elif others:
            blocks = documents.blocks(ROWS_AT_ONCE)
            over_items(lambda span: others.see(span, documents.aligned(*span)), blocks)
        return shard.answer(requests, others)

    def _evaluate_kept(self, numbers: list[int], requests: Sequence[Request]) -> list[list[Answer]]:
        def work(i: int) -> list[Answer]:
            return self._kept[i].answer(requests, None)

        few = len(numbers) < 2 * n_threads()  # then the kernels share out the queries of each shard
        return [work(i) for i in numbers] if few else over_items(work, numbers)

    def _loaded(self, numbers: list[int]) -> Iterator[tuple[int, Documents]]:
        """Yield shards as they are read, each while the one before it is evaluated.

        One thread reads as fast as four evaluate.
        """
        n_readers = max(1, n_threads() // THREADS_PER_READER)
        following: deque[Future[Documents]] = deque()
        with ThreadPoolExecutor(n_readers, thread_name_prefix="genm-read") as readers:
            for at, i in enumerate(numbers):
                for ahead in numbers[at + len(following) : at + n_readers + 1]:
                    following.append(readers.submit(self._read, ahead))
                yield i, following.popleft().result()

    def _read(self, number: int) -> Documents:
        learner = self._settings.learner
        return self._table.read_columns(number, doc_ids=learner is not None and learner.reads_doc_ids)

    def _keep(self, number: int, shard: ReadyShard) -> None:
        if number not in self._kept and self.n_bytes + shard.nbytes <= self.memory:
            self._kept[number] = shard
            self.n_bytes += shard.nbytes


def blocks_of_shards(n_shards: int, n_blocks: int) -> list[list[int]]:
    """Return consecutive shards in blocks of about equal size, none of them empty."""
    n_blocks = max(1, min(n_blocks, n_shards))
    cuts = [n_shards * b // n_blocks for b in range(n_blocks + 1)]
    return [list(range(cuts[b], cuts[b + 1])) for b in range(n_blocks)]


class _Worker:
    """A process with a block of shards, and the pipe to it."""

    def __init__(self, engine: "ProcessEngine", block: list[int]) -> None:
        self.block = block
        self._engine = engine
        self.connection: Connection
        self.process: SpawnProcess
        self.start()

    def start(self) -> None:
        """Start the process; called again after its death."""
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, *self._engine.setup, self.block)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process."""
        with suppress(OSError):
            self.connection.close()
        self.process.terminate()
        self.process.join()


class ProcessEngine:
    """Evaluates shards in processes of this machine, each with a block of shards in its memory.

    A process that dies is started again, and reads its shards again.
    """

    def __init__(
        self, table: Table, settings: Settings, *, n_workers: int | None = None, memory: int | None = None
    ) -> None:
        n_workers = n_threads() if n_workers is None else n_workers
        blocks = blocks_of_shards(table.n_shards, n_workers)
        budget = (memory_for(settings) if memory is None else memory) // len(blocks)
        self.setup = (table, settings, budget, max(1, n_threads() // len(blocks)))
        self._workers = [_Worker(self, block) for block in blocks]

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [worker.process.pid or 0 for worker in self._workers]

    def evaluate(self, requests: Sequence[Request]) -> list[list[Answer]]:
        """Return the answers of all shards to all requests."""
        found: dict[int, list[list[Answer]]] = {}
        to_ask, n_restarts = list(range(len(self._workers))), 0
        while len(found) < len(self._workers):
            for w in to_ask:
                worker = self._workers[w]
                with suppress(OSError):  # a dead process shows below
                    worker.connection.send([request.for_shards(worker.block) for request in requests])
            to_ask = []
            waiting = {self._workers[w].connection: w for w in range(len(self._workers)) if w not in found}
            for ready in wait(list(waiting)):
                w = waiting[ready]  # type: ignore[index]
                try:
                    answer = self._workers[w].connection.recv()
                except (EOFError, OSError):
                    n_restarts += 1
                    if n_restarts > MOST_RESTARTS:
                        raise EngineError(
                            f"the process of shards {self._workers[w].block} died {n_restarts} times in one pass. "
                            f"Give it more memory, use fewer workers, or smaller shards."
                        ) from None
                    self._workers[w].stop()
                    self._workers[w].start()
                    to_ask.append(w)
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                found[w] = answer
        return [answers for w in range(len(self._workers)) for answers in found[w]]

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(
    connection: Connection, table: Table, settings: Settings, memory: int, threads: int, block: list[int]
) -> None:
    """Answer requests until the pipe is closed: what a worker process runs."""
    os.environ["GENM_THREADS"] = str(threads)
    engine = ThreadEngine(table, settings, memory=memory, shards=block)
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            requests = connection.recv()
            try:
                answers: object = engine.evaluate(requests)
            except Exception as error:  # noqa: BLE001  raised again by the process that asked
                answers = error
            connection.send(answers)
