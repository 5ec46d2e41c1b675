"""Average precision on an NVIDIA GPU: exact, and smoothed with gradient and Hessian.

A `DeviceShard` holds the scores of some queries in the memory of the GPU and evaluates any number of weight vectors
on them. It has what `genm._math.tiles.Tiles` and the functions on them have: `select` is `take`, `relabel` and
`take_rankers` are those, `smooth` is `smooth_ap`, `exact_ap` and `ranks` are `exact_ap` and `hits_of_scores`.

Scores are kept as float32. Everything computed is about the rounded scores: exact average precision and ranks are
those of the CPU for the rounded scores to the last bit, since fused scores are summed in float64 and in the same
order. Smoothed values and their derivatives are computed in float32 and summed over queries in float64; they agree
with the CPU to about 1e-6. Sums have one order, so results are the same in every run.

The kernels are CUDA C++ (`cuda_kernels.cu`), which CuPy compiles at first use and keeps on disk. This module needs
numpy and CuPy alone.
"""

import functools
import itertools
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from genm.errors import InputError, MissingExtraError

SOURCE = Path(__file__).with_name("cuda_kernels.cu")

QUERY = np.dtype(
    [
        ("begin", np.int64),
        ("relevant_begin", np.int64),
        ("out", np.int64),
        ("size", np.int32),
        ("n_relevant", np.int32),
        ("slot", np.int32),
        ("divisor", np.int32),
    ]
)
"""`struct Query` of the kernels."""

MOST_HESSIAN_RANKERS = 16
"""A thread keeps the K (K + 1) / 2 sums of a Hessian in registers; those of more rankers do not fit."""
_PAD = 8
_CHUNK_BYTES = 1 << 26
"""Scores that are copied at once. On an H200's machine two pinned buffers of 64 MB, filled by 8 threads, reached
27 GB/s; buffers of 16 MB 18, the same by one thread 7, and memory that is not pinned 8."""
_COPY_THREADS = 8
_LEAST_STAGED = 1 << 28
"""Bytes from which pinned memory pays: to allocate it takes as long as copying about so many."""
_ROWS_PER_SUM = 128
_MOST_SUMS = 72
"""Sums that a thread keeps in registers, and scores of relevant documents beside them."""
_SHARE_OF_MEMORY = 0.8
"""Of a GPU's free memory, what scores may take: the rest is for results and for the scores being copied."""
_MIDDLE, _LONG = 1, 2
_LEAST_MIDDLE = 8000
"""Scores of a query from which it is of middle length."""
_TEAM = 4
_GREATEST = 1e30
"""Beyond it, products of scores and weights would overflow float32."""

Array = Any
"""An array on the device."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Device(Protocol):
    """Where arrays lie and kernels run."""

    lock: threading.RLock
    """Held while kernels are launched: weights lie in the constant memory of a kernel, which threads share."""

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array to the device."""

    def stage(self, array: NDArray[Any]) -> Array:
        """Copy one of many large arrays to the device; the next may be prepared while this one is copied."""

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array from the device."""

    def empty(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Return an array of any content."""

    def zeros(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Return an array of zeros."""

    def launch(
        self,
        kernel: str,
        options: Mapping[str, int | str],
        grid: tuple[int, ...],
        threads: int,
        arguments: tuple[Any, ...],
        weights: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Run a kernel, compiled with these macros. `weights` are set in its constant memory first."""


class CudaDevice:
    """A GPU, through CuPy."""

    def __init__(self, number: int = 0) -> None:
        cupy, count = _load_cupy(), n_devices()
        if not 0 <= number < count:
            raise InputError(
                f"GPU {number}: expected one of 0 to {count - 1}; found {count} GPUs. nvidia-smi lists them; "
                f"CUDA_VISIBLE_DEVICES may hide some."
            )
        self.number, self.lock = number, threading.RLock()
        self._cupy, self._device = cupy, cupy.cuda.Device(number)
        self._modules: dict[tuple[str, ...], Any] = {}
        self._functions: dict[tuple[tuple[str, ...], str], Any] = {}
        self._weights: dict[tuple[tuple[str, ...], str], Array] = {}
        self._buffers: list[tuple[NDArray[np.uint8], Any]] = []
        self._n_staged = 0

    @property
    def free_bytes(self) -> int:
        """Bytes of memory that scores may take: of what is free, and of what was freed by this process."""
        with self._device:
            free, _ = self._cupy.cuda.runtime.memGetInfo()
            return int(_SHARE_OF_MEMORY * (free + self._cupy.get_default_memory_pool().free_bytes()))

    @property
    def name(self) -> str:
        """What the driver calls the GPU."""
        return str(self._cupy.cuda.runtime.getDeviceProperties(self.number)["name"].decode())

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array to the device."""
        with self._device:
            if array.dtype.names:  # CuPy knows no records
                return self._cupy.asarray(np.ascontiguousarray(array).view(np.int64))
            return self._cupy.asarray(array)

    def stage(self, array: NDArray[Any]) -> Array:
        """Copy a large array to the device, through pinned memory that several threads fill.

        The copy goes on after this returns; kernels that are launched later wait for it.
        """
        with self._device, self.lock:
            there = self.empty(array.shape, array.dtype.type)
            if not self._buffers:
                for _ in range(2):
                    memory = self._cupy.cuda.alloc_pinned_memory(_CHUNK_BYTES)
                    buffer = np.frombuffer(memory, np.uint8, _CHUNK_BYTES)
                    self._buffers.append((buffer, self._cupy.cuda.Event()))
            null = self._cupy.cuda.Stream.null
            source, target = array.reshape(-1).view(np.uint8), there.reshape(-1).view(np.uint8)
            for first in range(0, source.size, _CHUNK_BYTES):
                part = source[first : first + _CHUNK_BYTES]
                buffer, is_copied = self._buffers[self._n_staged % 2]
                self._n_staged += 1
                is_copied.synchronize()  # the copy before the last one
                _copy_by_threads(part, buffer)
                target[first : first + part.size].set(buffer[: part.size], stream=null)
                is_copied.record(null)
            return there

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array from the device."""
        with self._device:
            return np.asarray(array.get())

    def empty(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Return an array of any content."""
        with self._device:
            try:
                return self._cupy.empty(shape, dtype)
            except self._cupy.cuda.memory.OutOfMemoryError as error:
                raise InputError(
                    f"GPU {self.number}: expected {np.prod(shape) * np.dtype(dtype).itemsize:,} bytes of free "
                    f"memory; found less ({error}). Learn from a table (genm shard), of which a part is kept on "
                    f"the GPU, or end other programs that use it."
                ) from error

    def zeros(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Return an array of zeros."""
        there = self.empty(shape, dtype)
        with self._device:
            there.fill(0)
        return there

    def synchronize(self) -> None:
        """Wait until all kernels have run."""
        self._device.synchronize()

    def launch(
        self,
        kernel: str,
        options: Mapping[str, int | str],
        grid: tuple[int, ...],
        threads: int,
        arguments: tuple[Any, ...],
        weights: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Run a kernel, compiled with these macros. `weights` are set in its constant memory first."""
        key = macros(options)
        with self._device, self.lock:
            module = self._modules.get(key)
            if module is None:
                flags = ("--std=c++17", *key)
                module = self._cupy.RawModule(code=SOURCE.read_text(encoding="utf-8"), options=flags)
                self._modules[key] = module
            for name, values in (weights or {}).items():
                there = self._weights.get((key, name))
                if there is None:
                    there = self._cupy.ndarray(values.size, values.dtype, module.get_global(name))
                    self._weights[key, name] = there
                there.set(np.ascontiguousarray(values.reshape(-1)))
            if (key, kernel) not in self._functions:
                self._functions[key, kernel] = module.get_function(kernel)
            self._run(self._functions[key, kernel], grid, threads, arguments)

    def _run(self, kernel: Any, grid: tuple[int, ...], threads: int, arguments: tuple[Any, ...]) -> None:
        """Start a kernel; benchmarks put a clock in here."""
        kernel(grid, (threads,), arguments)


def _load_cupy() -> Any:
    try:
        import cupy  # noqa: PLC0415 an extra
    except ImportError as error:
        raise MissingExtraError("Learning on a GPU (CuPy)", "cuda") from error
    return cupy


def n_devices() -> int:
    """Return the number of GPUs that this process sees; raise if there is none."""
    runtime = _load_cupy().cuda.runtime
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        raise InputError(
            f"device (--device) cuda: expected an NVIDIA GPU and its driver; found none ({error}). Check that "
            f"nvidia-smi lists it and that the installed CuPy fits the driver, or leave the device out to use the "
            f"CPU."
        ) from error


def find_device(text: str) -> CudaDevice:
    """Return the GPU that a text names: "cuda" (the first) or "cuda:1" (by number); one object for each GPU."""
    return _device_of(device_number(text))


def device_number(text: str) -> int:
    """Return the number of the GPU that a text names."""
    kind, colon, number = text.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise InputError(f'device (--device) {text!r}: expected "cpu", "cuda" or "cuda:NUMBER", such as "cuda:1".')
    return int(number or 0)


@functools.cache
def _device_of(number: int) -> CudaDevice:
    return CudaDevice(number)  # it holds the compiled kernels


@functools.cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(_COPY_THREADS, os.cpu_count() or 1), thread_name_prefix="genm-upload")


def _copy_by_threads(source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
    cuts = np.linspace(0, source.size, _COPY_THREADS + 1).astype(np.int64).tolist()
    spans = [slice(low, high) for low, high in itertools.pairwise(cuts)]
    list(_copiers().map(lambda span: np.copyto(target[span], source[span]), spans))


def macros(options: Mapping[str, int | str]) -> tuple[str, ...]:
    """Return the compiler's options that define these macros."""
    return tuple(f"-D{name}={value}" for name, value in sorted(options.items()))


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the kernels are compiled; results differ by rounding alone.

    What is 0 or None is chosen by rules from the shape of the data (`DeviceShard._options`). They come from
    `python -m benchmarks.cuda_kernels` on an H200; docs/scale-gpu.md has the measured times.
    """

    group: int = 4
    """The most relevant documents for which one pass over the scores serves."""
    warps: int = 4
    """Of a block whose warps have a query each."""
    team: int = 0
    """Warps that share a long query."""
    long: int = 4096
    """Documents from which a query is long."""
    vec: int = 0
    """Documents that a thread reads at once, 1, 2 or 4."""
    unroll: int = 1
    min_blocks: int = 0
    stream: bool | None = None


class SmoothSums(NamedTuple):
    """Sums over the queries, with their weights, of smoothed average precision and its derivatives."""

    value: Floats
    """(W,)."""
    gradient: Floats
    """(W, K); (W, 0) if not asked for."""
    hessian: Floats
    """(W, K, K); (W, 0, 0) if not asked for."""


class DeviceRanks(NamedTuple):
    """Where marked documents stand in the fused runs, query by query in the order of their rows."""

    starts: Ints
    """(Q + 1,) where each query's lie."""
    rank: NDArray[np.int32]
    """(W, marked) from 1; equals are in the order of their rows."""
    first: NDArray[np.int32]
    """(W, marked) the lowest rank of documents with this score; (W, 0) if not asked for."""
    last: NDArray[np.int32]
    """(W, marked) the highest."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Scores on the device."""

    device: Device
    n_rankers: int
    starts: Ints
    """(queries + 1,) rows of the table that the scores came from."""
    sizes: NDArray[np.int32]
    begins: Ints
    device_sizes: Array
    device_begins: Array
    scores: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """The relevant documents of all queries of a table."""

    starts: Ints
    rows: Array
    scores: Array
    n_relevant: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Launch:
    """Queries that one launch of a kernel serves."""

    queries: Array
    n_queries: int
    most_relevant: int
    """Of these queries, at most."""
    length: int
    """0, or _MIDDLE or _LONG: whether several warps share a query."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceShard:
    """Queries on a device; `upload` makes one."""

    table: _Table
    labels: _Labels
    queries: Ints
    """(Q,) which queries of the table these are."""
    query_weights: Floats
    tuning: Tuning = field(default_factory=Tuning)
    _derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def n_rankers(self) -> int:
        """Number of rankers, K."""
        return self.table.n_rankers

    @property
    def sizes(self) -> NDArray[np.int32]:
        """(Q,) documents of each query."""
        return np.asarray(self.table.sizes[self.queries])

    @property
    def n_relevant(self) -> Ints:
        """(Q,) what average precision divides by: relevant documents, including those that have no row."""
        return np.asarray(self.labels.n_relevant[self.queries])

    @property
    def total_weight(self) -> float:
        """What weighted sums over the queries are divided by: the sum of their weights, or 1 if that is 0."""
        total = float(self.query_weights.sum())
        return total if total > 0.0 else 1.0

    @property
    def nbytes(self) -> int:
        """Bytes of the scores on the device."""
        return int(self.table.scores.nbytes)

    def select(self, queries: NDArray[np.integer]) -> "DeviceShard":
        """Return some of the queries (a fold, a sample, repeats allowed); no score is copied."""
        return replace(self, queries=self.queries[queries], query_weights=self.query_weights[queries])

    def relabel(self, relevant: NDArray[np.bool_], n_relevant: NDArray[np.integer] | None = None) -> "DeviceShard":
        """Return the same documents with other labels: `relevant` marks rows of the table.

        `n_relevant` counts the relevant documents of each of these queries, with or without a row; where it is not
        given, those that have a row.
        """
        labels = _label(self.table, relevant, np.zeros(len(self.table.sizes), np.int64))
        counts = np.diff(labels.starts)
        if n_relevant is not None:
            counts[self.queries] = n_relevant
        return replace(self, labels=replace(labels, n_relevant=counts))

    def take_rankers(self, columns: Sequence[int]) -> "DeviceShard":
        """Return the same queries with the scores of some of the rankers alone, which are copied."""
        table, device, n_picked = self.table, self.table.device, len(columns)
        scores = device.empty((self.table.scores.size // self.n_rankers * n_picked,), np.float32)
        picked = device.put(np.array(columns, np.int32))
        arguments = table.scores, table.device_begins, table.device_sizes, picked, np.int32(n_picked), scores
        if len(table.sizes):
            device.launch("pick", _table_options(self.n_rankers), (len(table.sizes),), 128, arguments)
        thinner = replace(table, n_rankers=n_picked, scores=scores)
        relevant = np.ascontiguousarray(
            device.get(self.labels.scores).reshape(-1, self.n_rankers)[:, list(columns)]
        )
        labels = replace(self.labels, scores=device.put(relevant.reshape(-1)))
        return replace(self, table=thinner, labels=labels)

    def smooth(
        self, weights: Floats, beta: float, *, order: int = 0, smooth_j: bool = False
    ) -> tuple[Floats, Floats]:
        """Return (W, Q) smoothed average precision and (W, Q, K) its gradient, for (W, K) weights.

        The gradient has no columns for `order` 0.
        """
        if order not in (0, 1):
            raise InputError(f"order={order!r}: expected 0 (value) or 1 (gradient). `smooth_sums` has Hessians.")
        rows = self.table.device.get(self._smooth_rows(self._check(weights), beta, order, smooth_j=smooth_j))
        return np.ascontiguousarray(rows[:, :, 0]), np.ascontiguousarray(rows[:, :, 1:])

    def smooth_sums(self, weights: Floats, beta: float, *, order: int = 0, smooth_j: bool = False) -> SmoothSums:
        """Return sums over the queries of weight times smoothed average precision, with derivatives up to `order`.

        `order` is 0 (value), 1 (gradient) or 2 (Hessian); `weights` are (W, K).
        """
        if order not in (0, 1, 2):
            raise InputError(f"order={order!r}: expected 0 (value), 1 (gradient) or 2 (Hessian).")
        if order == 2 and self.n_rankers > MOST_HESSIAN_RANKERS:
            raise InputError(
                f"{self.n_rankers} rankers: expected at most {MOST_HESSIAN_RANKERS} for second derivatives on a "
                f"GPU. Use the method auto, which needs none, or the CPU."
            )
        given, K, device = self._check(weights), self.n_rankers, self.table.device
        with device.lock:
            rows = self._smooth_rows(given, beta, order, smooth_j=smooth_j)
            found = device.get(self._totals(rows, len(given), _n_columns(K, order)))
        gradient = found[:, 1 : 1 + K] if order else np.zeros((len(given), 0))
        hessian = np.zeros((len(given), 0, 0))
        if order == 2:
            hessian = np.zeros((len(given), K, K))
            k, other = np.tril_indices(K)
            hessian[:, k, other] = hessian[:, other, k] = found[:, 1 + K :]
        return SmoothSums(found[:, 0], gradient, hessian)

    def exact_ap(self, weights: Floats) -> Floats:
        """Return (W, Q) average precision as trec_eval gives it, for (W, K) weights."""
        given, device = self._check(weights), self.table.device
        n_out = int(self._rank_starts()[-1])
        values = device.zeros((len(given), self.n_queries), np.float64)
        with device.lock:
            for launch in self._launches():
                for first, own in _tiles_of(given, _most_ranked(launch)):
                    ranks = device.empty((len(own), max(n_out, 1)), np.int32)
                    options = self._rank(launch, own, ranks, ranks, ranks, ties=False)
                    device.launch(
                        "average_precision",
                        options,
                        (-(-launch.n_queries * len(own) // 256),),
                        256,
                        (
                            launch.queries,
                            np.int32(launch.n_queries),
                            np.int64(ranks.shape[1]),
                            np.int64(self.n_queries),
                            ranks,
                            values[first : first + len(own)],
                        ),
                    )
            return np.asarray(device.get(values))

    def ranks(self, weights: Floats, *, ties: bool = False) -> DeviceRanks:
        """Return where the relevant documents stand in the fused runs, for (W, K) weights.

        Every measure follows from these ranks. For measures of several grades, `relabel` marks all judged rows.
        """
        given, device, starts = self._check(weights), self.table.device, self._rank_starts()
        shape = len(given), int(starts[-1])
        found = [device.zeros(shape if wanted else (shape[0], 0), np.int32) for wanted in (True, ties, ties)]
        with device.lock:
            for launch in self._launches():
                for first, own in _tiles_of(given, _most_ranked(launch)):
                    self._rank(launch, own, *(array[first : first + len(own)] for array in found), ties=ties)
            return DeviceRanks(starts, *(device.get(array) for array in found))

    def variances(self, weights: Floats) -> Floats:
        """Return (Q,) the variance of the fused scores within each query, for (K,) weights."""
        given, table = self._check(np.asarray(weights)[None]), self.table
        out = table.device.zeros((len(table.sizes),), np.float64)
        arguments = table.scores, table.device_begins, table.device_sizes, np.int32(len(table.sizes)), out
        with table.device.lock:
            if len(table.sizes):
                grid, options = (-(-len(table.sizes) // 4),), _table_options(self.n_rankers)
                table.device.launch("variance", options, grid, 128, arguments, {"exact": given})
            return np.asarray(table.device.get(out)[self.queries])

    def _check(self, weights: Floats) -> Floats:
        given = np.array(weights, np.float64)
        if given.ndim != 2 or given.shape[1] != self.n_rankers or len(given) == 0 or not np.isfinite(given).all():
            raise InputError(f"weights must be (any, {self.n_rankers}) finite numbers; found {weights!r}.")
        return given

    def _rank_starts(self) -> Ints:
        if "rank_starts" not in self._derived:
            starts = np.zeros(self.n_queries + 1, np.int64)
            np.cumsum(np.diff(self.labels.starts)[self.queries], out=starts[1:])
            self._derived["rank_starts"] = starts
        found: Ints = self._derived["rank_starts"]
        return found

    def _launches(self) -> list[_Launch]:
        """Return the queries that have relevant documents, sorted by what the kernels are compiled for.

        That is the number of relevant documents, and whether the query is long: nothing that depends on the other
        queries, so that a query's numbers do not either.
        """
        if "launches" in self._derived:
            found: list[_Launch] = self._derived["launches"]
            return found
        table, labels, most = self.table, self.labels, self._most_grouped()
        records = np.zeros(self.n_queries, QUERY)
        records["begin"], records["size"] = table.begins[self.queries], table.sizes[self.queries]
        records["relevant_begin"] = labels.starts[self.queries]
        records["n_relevant"] = np.diff(labels.starts)[self.queries]
        records["out"], records["slot"] = self._rank_starts()[:-1], np.arange(self.n_queries)
        records["divisor"] = np.maximum(self.n_relevant, 1)
        grouped = np.minimum(records["n_relevant"], most)
        is_middle = (grouped == 1) & (records["size"] >= _LEAST_MIDDLE / self.n_rankers) & (self.tuning.team == 0)
        length = np.where(records["size"] >= self.tuning.long, _LONG, np.where(is_middle, _MIDDLE, 0))
        launches = []
        for n in range(1, most + 1):
            for kind in (0, _MIDDLE, _LONG):
                own = records[(grouped == n) & (length == kind)]
                if len(own):
                    launches.append(_Launch(table.device.put(own), len(own), n, kind))
        self._derived["launches"] = launches
        return launches

    def _most_grouped(self) -> int:
        return max(1, min(self.tuning.group, _MOST_SUMS // (2 * self.n_rankers + 1)))

    def _options(
        self, launch: _Launch, n_weights: int, order: int = 0, **own: int | str
    ) -> tuple[dict[str, int | str], tuple[int], int]:
        """Return the macros, the grid and the threads of a launch.

        The rules in short, with ms on an H200 for 100,000 queries of 1,000 documents and 8 rankers:

        - Several warps share a query that is long (500 x 7,000 x 4: .019 by 4 warps, .037 by one), and one that has
          8,000 scores or more and one relevant document (gradient .716 and .746, exact .701 and .732; 16 rankers
          .727 and .783). Not for Hessians (1.31 and .854), nor for 2 relevant documents (1.11 and .754).
        - `min_blocks` bounds the registers, so that more blocks run side by side: gradients with 2 relevant
          documents .754 with 5 blocks, .823 with 1; with 4, .942 with 4 and 1.28 with 1; with 8, 1.87 with 3 and
          2.18 with 1. More than 8 rankers or several weight vectors need the registers (4 vectors: 4.69).
        - `stream` past the cache where scores are read once: .819 and .823. Hessians are slower by it (1.66, 1.43).
        - `vec` 4 beats 2 (.746 and .781) as long as the registers last.
        """
        tuning, K, n = self.tuning, self.n_rankers, launch.most_relevant
        team = 1
        if launch.length == _LONG:
            team = tuning.team or _TEAM
        elif launch.length == _MIDDLE and order < 2:
            team = _TEAM
        else:
            pass  # a warp for each query
        min_blocks = tuning.min_blocks
        if min_blocks == 0:
            is_bounded = order == 1 and n_weights == 1 and K <= 8 and team == 1
            min_blocks = {1: 1, 2: 5, 3: 4}.get(n, 3) if is_bounded else 1
        stream = order < 2 and n <= 2 if tuning.stream is None else tuning.stream
        warps = team if team > 1 else tuning.warps
        options: dict[str, int | str] = {
            "K": K,
            "TEAM": team,
            "WARPS": warps,
            "VEC": tuning.vec or (4 if K <= 12 else 2 if K <= 24 else 1),
            "STREAM": int(stream),
            "UNROLL": tuning.unroll,
            "MIN_BLOCKS": min_blocks,
            "W": n_weights,
            **own,
        }
        n_blocks = launch.n_queries if team > 1 else -(-launch.n_queries // warps)
        return options, (n_blocks,), 32 * warps

    def _smooth_rows(self, weights: Floats, beta: float, order: int, *, smooth_j: bool = False) -> Array:
        """Return (W, Q, columns): value, gradient and the lower triangle of the Hessian of every query."""
        if not 0.0 <= beta < np.inf:
            raise InputError(f"beta={beta!r}: expected a finite number, 0 or greater. The paper uses 200.")
        sharp = weights * (beta * np.log2(np.e))
        if not np.abs(sharp).max() < _GREATEST:
            raise InputError(f"beta={beta!r}: beta times a weight must stay below {_GREATEST:g} on a GPU.")
        device, K = self.table.device, self.n_rankers
        rows = device.zeros((len(weights), self.n_queries, _n_columns(K, order)), np.float64)
        with device.lock:
            for launch in self._launches():
                group = 1 if order == 2 else launch.most_relevant
                most = 1 if order == 2 else _MOST_SUMS // (group * (1 + K)) if order else 16 // group
                for first, own in _tiles_of(weights, most):
                    options, grid, threads = self._options(
                        launch, len(own), order, SMOOTH=1, ORDER=order, SMOOTH_J=int(smooth_j), GROUP=group
                    )
                    constants: dict[str, NDArray[Any]] = {
                        "sharp": sharp[first : first + len(own)].astype(np.float32)
                    }
                    if not smooth_j:
                        constants["exact"] = own  # sorts the relevant documents
                    out = rows[first : first + len(own)]
                    arguments = (
                        self.table.scores,
                        self.labels.scores,
                        launch.queries,
                        np.int32(launch.n_queries),
                        np.float64(beta),
                        np.int64(self.n_queries),
                        out,
                    )
                    device.launch("smooth", options, grid, threads, arguments, constants)
        return rows

    def _totals(self, rows: Array, n_weights: int, n_columns: int) -> Array:
        """Return (W, columns) sums over the queries of weight times row."""
        device = self.table.device
        if "query_weights" not in self._derived:
            self._derived["query_weights"] = device.put(self.query_weights)
        sums, weights, n_rows = rows, self._derived["query_weights"], self.n_queries
        if n_rows == 0:
            return device.zeros((n_weights, n_columns), np.float64)
        for chunk in (_ROWS_PER_SUM, -(-n_rows // _ROWS_PER_SUM)):
            n_chunks = -(-n_rows // chunk)
            grid = (n_chunks, -(-n_columns // 256), n_weights)
            found = device.empty((n_weights, n_chunks, n_columns), np.float64)
            arguments = sums, weights, np.int64(n_rows), np.int32(n_columns), np.int32(chunk), found
            device.launch("total", _sum_options(), grid, 256, arguments)
            sums, weights, n_rows = found, np.int64(0), n_chunks
        return sums.reshape(n_weights, n_columns)

    def _rank(
        self, launch: _Launch, weights: Floats, ranks: Array, firsts: Array, lasts: Array, *, ties: bool
    ) -> dict[str, int | str]:
        """Fill the ranks of one launch; return the macros of its module."""
        options, grid, threads = self._options(
            launch, len(weights), RANK=1, GROUP=launch.most_relevant, TIES=int(ties)
        )
        arguments = (
            self.table.scores,
            self.labels.scores,
            self.labels.rows,
            launch.queries,
            np.int32(launch.n_queries),
            np.int64(ranks.shape[1]),
            ranks,
            firsts,
            lasts,
        )
        self.table.device.launch("rank", options, grid, threads, arguments, {"exact": weights})
        return options


def upload(
    starts: NDArray[np.integer],
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    n_relevant: NDArray[np.integer],
    query_weights: Floats | None = None,
    *,
    device: Device | None = None,
    tuning: Tuning | None = None,
) -> DeviceShard:
    """Copy the (rows, K) scores of Q queries, rows[starts[q]:starts[q + 1]] each, to a GPU.

    `relevant` marks rows; `n_relevant` counts each query's relevant documents with those that have no row. Scores
    may be float64 or float32; they are rounded to float32.
    """
    bounds: Ints = np.ascontiguousarray(starts, np.int64)
    n_queries = len(bounds) - 1
    weights = np.ones(n_queries) if query_weights is None else np.array(query_weights, np.float64)
    if scores.ndim != 2 or scores.shape[1] == 0 or len(scores) != bounds[-1]:
        raise InputError(f"scores must be ({bounds[-1]}, rankers); found {scores.shape}.")
    if len(weights) != n_queries or not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"query weights must be {n_queries} finite numbers, none below 0.")
    if np.diff(bounds).max(initial=0) >= 2**31 - 2**16:
        raise InputError("a query has 2^31 documents or more. A GPU takes fewer.")
    table = _lay_out(CudaDevice() if device is None else device, bounds, scores)
    labels = _label(table, relevant, n_relevant)
    return DeviceShard(table, labels, np.arange(n_queries), weights, Tuning() if tuning is None else tuning)


def _lay_out(device: Device, starts: Ints, scores: NDArray[np.floating]) -> _Table:
    """Copy scores to the device, some queries at a time, and lay them out there.

    Much data goes through pinned memory.
    """
    K, n_queries = scores.shape[1], len(starts) - 1
    if scores.dtype not in (np.float32, np.float64):
        scores = scores.astype(np.float64)
    sizes = np.diff(starts).astype(np.int32)
    begins = np.zeros(n_queries + 1, np.int64)
    np.cumsum(-(-np.diff(starts) // _PAD) * _PAD, out=begins[1:])
    placed = device.empty((max(int(begins[-1]), 1) * K,), np.float32)
    source = "float" if scores.dtype == np.float32 else "double"
    rows = max(1, _CHUNK_BYTES // (scores.itemsize * K))
    copy = device.stage if scores.nbytes >= _LEAST_STAGED else device.put
    greatest: list[Array] = []
    first = 0
    while first < n_queries:
        last = int(np.searchsorted(starts, starts[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), n_queries)
        block = np.ascontiguousarray(scores[starts[first] : starts[last]])
        there = copy(block)
        if block.size:
            greatest.append(abs(there).max())  # looked at below: here the next block would have to wait
        own = device.put(starts[first : last + 1]), device.put(begins[first:last])
        device.launch("lay_out", _table_options(K, source), (last - first,), 128, (there, *own, placed))
        first = last
    if not all(bool(one < _GREATEST) for one in greatest):  # False for NaN, too
        raise InputError(
            f"scores: expected finite numbers below {_GREATEST:g} on a GPU; found others. Normalise the runs."
        )
    device_begins = device.put(begins[:-1])
    return _Table(device, K, starts, sizes, begins[:-1], device.put(sizes), device_begins, placed)


def _label(table: _Table, relevant: NDArray[np.bool_], n_relevant: NDArray[np.integer]) -> _Labels:
    """Gather the relevant documents."""
    marks, starts, device = np.asarray(relevant, bool), table.starts, table.device
    if len(marks) != starts[-1]:
        raise InputError(f"relevant marks {len(marks)} rows; the scores have {starts[-1]}.")
    at = np.flatnonzero(marks)
    ends = np.searchsorted(at, starts)
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(ends)).astype(np.int32)
    divisors = np.array(n_relevant, np.int64)
    if len(divisors) != len(starts) - 1:
        raise InputError(f"n_relevant has {len(divisors)} entries for {len(starts) - 1} queries.")
    rows = device.put((at - starts[owners]).astype(np.int32) if len(at) else np.zeros(1, np.int32))
    scores = device.empty((max(len(at), 1) * table.n_rankers,), np.float32)
    if len(at):
        arguments = (
            table.scores,
            table.device_begins,
            table.device_sizes,
            device.put(owners),
            rows,
            np.int64(len(at)),
            scores,
        )
        device.launch("gather", _table_options(table.n_rankers), (-(-len(at) // 128),), 128, arguments)
    return _Labels(ends.astype(np.int64), rows, scores, divisors)


def _table_options(n_rankers: int, source: str = "float") -> dict[str, int | str]:
    return {"TABLE": 1, "K": n_rankers, "W": 1, "TEAM": 1, "WARPS": 4, "VEC": 1, "SOURCE": source}


def _sum_options() -> dict[str, int | str]:
    return {"TOTAL": 1, "K": 1, "W": 1, "TEAM": 1, "WARPS": 4, "VEC": 1}


def _n_columns(n_rankers: int, order: int) -> int:
    return (1, 1 + n_rankers, 1 + n_rankers + n_rankers * (n_rankers + 1) // 2)[order]


def _most_ranked(launch: _Launch) -> int:
    return 8 // launch.most_relevant


def _tiles_of(weights: Floats, most: int) -> list[tuple[int, Floats]]:
    """Cut weight vectors into powers of two that one pass serves, up to `most`, with the place of the first."""
    widest, first, tiles = 1, 0, []
    while 2 * widest <= min(most, 8):
        widest *= 2
    while first < len(weights):
        while widest > len(weights) - first:
            widest //= 2
        tiles.append((first, np.ascontiguousarray(weights[first : first + widest])))
        first += widest
    return tiles
