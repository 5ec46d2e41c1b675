"""The engine for several machines: Dask (`distributed`), the extra `cluster`.

The shards are cut into blocks, about two for each worker. A pass is one task for each block, sent to the worker
that evaluated the block before: its shards are in the memory of that process. A task holds no state of its own.
When a worker dies, the scheduler gives its tasks to another one, which reads the shards itself.
"""

import concurrent.futures
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from genm.errors import EngineError, InputError, MissingExtraError
from genm.progress import Progress, silent
from genm.scale.cuda import device_number, find_device, n_devices
from genm.scale.engines import Engine, Table, ThreadEngine, blocks_of_shards, bytes_of, memory_for, usable_memory
from genm.scale.evaluation import Answer, Request, Settings

ONE_GPU_EACH = "cuda:worker"
"""The device of the workers that genm starts: worker n takes GPU n, and begins anew after the last GPU."""
BLOCKS_PER_WORKER = 2
"""Blocks for each worker: enough to share out the shards of a lost one, few enough to cost no time."""
WORKER_TTL = "45s"
"""After this time a worker that does not answer counts as dead, in clusters that genm starts."""
MOST_DEATHS = 5
"""How often a block is sent again, on average, when a cluster gives its task up."""
CONNECT_SECONDS = 30
"""How long a scheduler that is running may take to answer."""
_WAIT_FOR_WORKERS = 60
_TICK = 2.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """Where a cluster is, and how to speak to it."""

    address: str
    """`local:N` for N processes of this machine, or the address of a scheduler."""
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def check(self) -> None:
        """Refuse an address that is none, and one that would be spoken to without encryption."""
        if self.n_local is not None:
            return
        parts = urlsplit(self.address)
        if parts.scheme not in ("tcp", "tls") or parts.hostname is None or parts.port is None:
            raise InputError(
                f"cluster (--cluster) {self.address!r}: expected local:N, tls://HOST:PORT, or tcp://127.0.0.1:PORT."
            )
        if parts.scheme == "tcp" and parts.hostname not in _LOOPBACK:
            raise InputError(
                f"cluster (--cluster) {self.address}: expected tls:// for a scheduler on another machine; found "
                f"tcp://, which neither encrypts nor asks who connects. Set up TLS, or forward its port to here."
            )

    @property
    def n_local(self) -> int | None:
        """Number of processes on this machine; None for a scheduler that is running."""
        kind, _, number = self.address.partition(":")
        if kind != "local":
            return None
        if not number.isdigit() or int(number) < 1:
            raise InputError(f"cluster (--cluster) {self.address!r}: expected local:N with N from 1 on.")
        return int(number)


class DaskEngine:
    """Evaluates shards on the workers of a Dask cluster.

    `memory` is what each worker may use for shards; of those beyond it, every pass reads anew.
    """

    def __init__(
        self,
        table: Table,
        settings: Settings,
        where: ClusterAddress,
        *,
        memory: int | None = None,
        worker_ttl: str = WORKER_TTL,
    ) -> None:
        where.check()
        self._table, self._settings, self._address = table, settings, where.address
        self.scheduler, self.client = _connected(where, worker_ttl)
        self.workers = LocalWorkers(self.client.scheduler.address, where.n_local) if where.n_local else None
        n_local = where.n_local
        if n_local is not None and settings.device == "cuda":
            self._settings = replace(settings, device=ONE_GPU_EACH)
        if memory is None and n_local is not None and settings.device == "cpu":
            memory = usable_memory() // n_local
        self._memory = memory
        self.client.wait_for_workers(where.n_local or 1, timeout=_WAIT_FOR_WORKERS)
        n_workers = max(1, len(self._workers()))
        self._blocks = blocks_of_shards(table.n_shards, BLOCKS_PER_WORKER * n_workers)
        self._worker_of: dict[int, str] = {}

    def _workers(self) -> list[str]:
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def _assign(self) -> None:
        """Give every block a living worker; a block stays where its shards are in memory."""
        if self.workers is not None:
            self.workers.revive()
        workers = self._workers()
        self._worker_of = {b: worker for b, worker in self._worker_of.items() if worker in workers}
        load = dict.fromkeys(workers, 0)
        for worker in self._worker_of.values():
            load[worker] += 1
        for b in range(len(self._blocks)):
            if b not in self._worker_of and load:
                worker = min(load, key=lambda one: (load[one], one))
                self._worker_of[b] = worker
                load[worker] += 1

    def evaluate(self, requests: Sequence[Request]) -> list[list[Answer]]:
        """Return the answers of all shards to all requests."""
        from asyncio import CancelledError  # slow to load; Dask has loaded it

        try:
            found = self._evaluate(requests)
        except (OSError, TimeoutError, CancelledError, concurrent.futures.CancelledError) as error:
            said = " ".join(str(error).split())
            raise EngineError(
                f"the cluster at {self._address} does not answer any more ({said:.100}). Start it, then the "
                f"same command again: it continues from its checkpoint."
            ) from None
        return [answers for b in range(len(self._blocks)) for answers in found[b]]

    def _evaluate(self, requests: Sequence[Request]) -> dict[int, list[list[Answer]]]:
        """Return the answers of every block."""
        from distributed import KilledWorker, wait

        self._assign()
        found: dict[int, list[list[Answer]]] = {}
        pending = {b: self._submit(b, requests) for b in range(len(self._blocks))}
        n_deaths, seen = 0, time.monotonic()
        while pending:
            lost: list[int] = []
            try:
                wait(list(pending.values()), timeout=_TICK, return_when="FIRST_COMPLETED")
            except TimeoutError:  # Dask keeps a task for a worker that never comes back, if all are away at once
                if self.workers is not None:
                    self.workers.revive()
                workers = self._workers()
                seen = time.monotonic() if workers else seen
                if time.monotonic() > seen + _WAIT_FOR_WORKERS:
                    raise TimeoutError(f"no worker for {_WAIT_FOR_WORKERS} s") from None
                lost = [b for b in pending if self._worker_of.get(b) not in workers]
            for b in [b for b, future in pending.items() if future.status != "pending"]:
                try:
                    found[b] = pending[b].result()
                    del pending[b]  # a result that is still wanted would be computed again after a death
                except KilledWorker:  # the cluster allows few failures of a task; the block is not to blame
                    lost.append(b)
                    n_deaths += 1
            if n_deaths > MOST_DEATHS * len(self._blocks):
                raise EngineError(
                    f"the workers at {self._address} died again and again in one pass. Give them more memory, or "
                    f"use smaller shards."
                )
            if lost:
                self._assign()
                for b in lost:
                    pending[b].cancel(force=True)
                    pending[b] = self._submit(b, requests)
        return found

    def _submit(self, block: int, requests: Sequence[Request]) -> Any:
        shards = self._blocks[block]
        worker = self._worker_of.get(block)
        return self.client.submit(
            evaluate_block,
            self._table,
            self._settings,
            shards,
            [request.for_shards(shards) for request in requests],
            self._memory,
            key=f"genm-block-{block}-{uuid.uuid4().hex}",
            workers=None if worker is None else [worker],
            allow_other_workers=worker is not None,
            pure=False,
        )

    def close(self) -> None:
        """Disconnect, and end the processes that were started."""
        self.client.close()
        if self.workers is not None:
            self.workers.close()
        if self.scheduler is not None:
            self.scheduler.close()


class LocalWorkers:
    """Worker processes on this machine, which are started again when they die.

    Dask's own nanny gives a worker up for good if it dies while it starts.
    """

    def __init__(self, address: str, n_workers: int) -> None:
        self._address = address
        self._processes = [self._start(name) for name in range(n_workers)]

    def _start(self, name: int) -> "subprocess.Popen[bytes]":
        flags = ["--name", str(name), "--host", "127.0.0.1", "--nthreads", "1", "--memory-limit", "0"]
        flags += ["--no-nanny", "--no-dashboard", "--death-timeout", str(_WAIT_FOR_WORKERS)]
        return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
            [sys.executable, "-m", "distributed.cli.dask_worker", self._address, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which then ends its workers
        )

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that are alive."""
        return [process.pid for process in self._processes if process.poll() is None]

    def revive(self) -> None:
        """Start those that have died again."""
        self._processes = [
            process if process.poll() is None else self._start(name) for name, process in enumerate(self._processes)
        ]

    def close(self) -> None:
        """End them all; they hold nothing that is needed again."""
        for process in self._processes:
            process.kill()
            process.wait()


def _connected(where: ClusterAddress, worker_ttl: str) -> tuple[Any, Any]:
    """Return the scheduler that was started, if any, and a client of it."""
    try:
        import dask
        from distributed import Client, LocalCluster, Security
    except ImportError:
        raise MissingExtraError("a cluster", "cluster") from None
    if where.n_local is not None:
        started_here = {
            "distributed.scheduler.worker-ttl": worker_ttl,
            "distributed.scheduler.work-stealing": False,  # a stolen block would be read again
            "distributed.scheduler.allowed-failures": 1_000_000,  # a block is not to blame for its worker's death
        }
        dask.config.set(started_here)
        scheduler = LocalCluster(
            n_workers=0,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # it has no pages without bokeh, but a port
            silence_logs="CRITICAL",
        )
        return scheduler, Client(scheduler)
    files = {"tls_ca_file": where.tls_ca, "tls_client_cert": where.tls_cert, "tls_client_key": where.tls_key}
    given = {name: path for name, path in files.items() if path is not None}
    is_tls = where.address.startswith("tls:")
    security = Security(require_encryption=True, **given) if is_tls else None
    try:
        return None, Client(where.address, security=security, timeout=f"{CONNECT_SECONDS}s")
    except (OSError, TimeoutError) as error:
        raise EngineError(
            f"cluster (--cluster) {where.address}: expected a Dask scheduler; found none that answers "
            f"({error!s:.120}). Check the address, the network and the certificates."
        ) from None


def open_engine(
    table: Table,
    settings: Settings,
    *,
    memory: int | str | None = None,
    cluster: str | ClusterAddress | None = None,
    progress: Progress = silent,
) -> Engine:
    """Return the engine for a table: threads of this process, or the workers of a cluster.

    `memory` is in bytes, or a text such as "2GB"; for a cluster it is that of each worker.
    """
    n_bytes = bytes_of(memory) if isinstance(memory, str) else memory
    where = ClusterAddress(cluster) if isinstance(cluster, str) else cluster
    if settings.device != "cpu":
        device_number(settings.device)
        if where is None or where.n_local is not None:
            find_device(settings.device)  # a GPU that is missing is refused before anything is read
    if where is None:
        return ThreadEngine(table, settings, memory=n_bytes, progress=progress)
    return DaskEngine(table, settings, where, memory=n_bytes)


_engines: dict[tuple[Any, ...], ThreadEngine] = {}
_lock = threading.Lock()


def evaluate_block(
    table: Table, settings: Settings, shards: list[int], requests: list[Request], memory: int | None
) -> list[list[Answer]]:
    """Return the answers of a block of shards: what a worker runs. Its shards stay in the worker's memory."""
    if settings.device == ONE_GPU_EACH:
        settings = replace(settings, device=_gpu_of_worker())
    of_table = (table.digest, repr(table.normalizers), settings)
    with _lock:
        for key in [key for key in _engines if key[0] != of_table]:
            del _engines[key]
        engine = _engines.get((of_table, *shards))
        if engine is None:
            engine = _engines[(of_table, *shards)] = ThreadEngine(table, settings, shards=shards)
        others = sum(other.n_bytes for other in _engines.values() if other is not engine)
        if settings.device == "cpu" or memory is not None:
            engine.memory = (memory_for(settings) if memory is None else memory) - others
        else:
            engine.memory = engine.n_bytes + memory_for(settings)  # what is free on a GPU is without the others
    return engine.evaluate(requests)


def _gpu_of_worker() -> str:
    """Return the GPU of this worker, by its number in the cluster."""
    from distributed import get_worker

    return f"cuda:{int(get_worker().name) % n_devices()}"
