"""Exact and smoothed MAP with derivatives over tiles, beside the same outputs in vectorised NumPy.

Times are processor time of one thread, best of several; ratios come from the same run. The first compile of each
kernel is measured in a fresh process with an empty cache.

Bars are for the medium size and relative to a pass that only reads the same float64 scores, every one of them, in
the same run. What bounds the gradient is not that pass: each document inside some window takes an exponential, and
each pair of it with a relevant document there takes a division.
"""

import argparse
import importlib.metadata
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._bars import hold
from genm._math.average_precision import exact_ap, smooth_ap, smooth_ap_one
from genm._math.fusion import weighted_sum
from genm._math.lanes import fill, load, total
from genm._math.parallel import kernel
from genm._math.tiles import Tiles, build_tiles, mean

SIZES = {
    "small": (30, 1033, 23, 4),
    "medium": (431, 7097, 15, 4),
    "large": (7000, 1000, 2, 8),
}
"""Queries, documents per query (a tenth more or less), relevant documents per query, rankers."""
BETA = 200.0

COMPILE = """
import time
import numpy as np
from genm._math.average_precision import exact_ap, smooth_ap
from genm._math.tiles import build_tiles
rng = np.random.default_rng(0)
tiles = build_tiles(np.array([0, 200]), rng.random((200, 3)), np.arange(200) < 9, np.array([9]))
calls = {
    "exact": lambda: exact_ap(tiles, np.ones(3)),
    "value": lambda: smooth_ap(tiles, np.ones(3), 20.0),
    "gradient": lambda: smooth_ap(tiles, np.ones(3), 20.0, order=1),
    "hessian": lambda: smooth_ap(tiles, np.ones(3), 20.0, order=2),
    "smooth_j": lambda: smooth_ap(tiles, np.ones(3), 20.0, order=2, smooth_j=True),
}
for name, call in calls.items():
    start = time.process_time()
    call()
    print(name, round(time.process_time() - start, 3))
"""


@kernel
def read_all(scores):
    """Return the sum of all scores: one pass that does nothing but read them."""
    a, b, c, d = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for at in range(0, scores.size, 32):
        a += load(scores, at)
        b += load(scores, at + 8)
        c += load(scores, at + 16)
        d += load(scores, at + 24)
    return total((a + b) + (c + d))


class Data:
    """Made-up rankers that see a document's hidden quality through noise; relevant documents have more of it."""

    def __init__(self, size: str, seed: int) -> None:
        n_queries, n_documents, n_relevant, n_rankers = SIZES[size]
        rng = np.random.default_rng(seed)
        lengths = rng.integers(int(0.9 * n_documents), int(1.1 * n_documents) + 1, n_queries)
        self.starts = np.concatenate(([0], np.cumsum(lengths)))
        self.relevant = np.zeros(self.starts[-1], bool)
        for a, b in itertools.pairwise(self.starts):
            self.relevant[rng.integers(a, b, max(1, rng.poisson(n_relevant)))] = True
        hidden = rng.beta(1.2, 6.0, self.starts[-1]) + self.relevant * rng.normal(0.22, 0.12, self.starts[-1])
        self.scores = np.clip(hidden[:, None] + rng.normal(0.0, 0.12, (self.starts[-1], n_rankers)), 0.0, 1.0)
        self.counts = np.add.reduceat(self.relevant, self.starts[:-1])
        self.weights = np.full(n_rankers, 1.0 / n_rankers)

    def tiles(self, dtype: type = np.float64) -> Tiles:
        return build_tiles(self.starts, self.scores, self.relevant, self.counts, dtype=dtype)

    def numpy_gradient(self) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros(len(self.weights))
        for (a, b), n in zip(itertools.pairwise(self.starts), self.counts, strict=True):
            one = value_and_gradient(self.scores[a:b], self.relevant[a:b], n, self.weights, BETA)
            value, gradient = value + one[0], gradient + one[1]
        return value / len(self.counts), gradient / len(self.counts)

    def numpy_map(self) -> float:
        total, fused = 0.0, weighted_sum(self.scores, self.weights)
        for (a, b), n in zip(itertools.pairwise(self.starts), self.counts, strict=True):
            ranks = np.flatnonzero(self.relevant[a:b][np.argsort(-fused[a:b], kind="stable")]) + 1
            total += (np.arange(1, len(ranks) + 1) / ranks).sum() / n
        return total / len(self.counts)


def value_and_gradient(S, relevant, n_relevant, alpha, beta):
    """Without loops, one query's summand of P4 (Eq. 5) and its gradient (Eq. 16), as in tests/oracles.py."""
    s = S @ alpha
    rows = np.flatnonzero(relevant)
    rows = rows[np.argsort(-s[rows], kind="stable")]
    j = np.arange(1.0, rows.size + 1.0)
    g = 0.5 - 0.5 * np.tanh(0.5 * beta * (s[rows, None] - s))
    g[np.arange(rows.size), rows] = 0.0
    R, slope = 1.0 + g.sum(axis=1), g * (1.0 - g)
    dR = -beta * (slope.sum(axis=1)[:, None] * S[rows] - slope @ S)
    return float((j / R).sum() / n_relevant), -(j / R**2) @ dR / n_relevant


def best(work: Callable[[], object], seconds: float, clock: Callable[[], float] = time.thread_time) -> float:
    """Return the least time of one call, in milliseconds, over calls that take some seconds together."""
    work()
    least, end, calls = np.inf, time.perf_counter() + seconds, 0
    while calls < 3 or time.perf_counter() < end:
        start = clock()
        work()
        least, calls = min(least, clock() - start), calls + 1
    return 1e3 * least


def measure(size: str, seed: int, seconds: float) -> dict[str, float]:
    data = Data(size, seed)
    tiles, weights = data.tiles(), data.weights
    os.environ["GENM_THREADS"] = "1"
    found = smooth_ap(tiles, weights, BETA, order=1)
    value, gradient = data.numpy_gradient()
    wrong = np.abs(mean(tiles, found.gradient) - gradient).max() / np.abs(gradient).max()
    figures = {
        "pass": best(lambda: read_all(tiles.scores), seconds),
        "build": best(data.tiles, seconds),
        "value": best(lambda: smooth_ap(tiles, weights, BETA), seconds),
        "gradient": best(lambda: smooth_ap(tiles, weights, BETA, order=1), seconds),
        "hessian": best(lambda: smooth_ap(tiles, weights, BETA, order=2), seconds),
        "gradient smooth_j": best(lambda: smooth_ap(tiles, weights, BETA, order=1, smooth_j=True), seconds),
        "exact": best(lambda: exact_ap(tiles, weights), seconds),
        "numpy gradient": best(data.numpy_gradient, seconds),
        "numpy argsort": best(data.numpy_map, seconds),
    }
    narrow = data.tiles(np.float32)
    figures["gradient float32"] = best(lambda: smooth_ap(narrow, weights, BETA, order=1), seconds)
    figures["exact float32"] = best(lambda: exact_ap(narrow, weights), seconds)
    one = best(lambda: smooth_ap(tiles, weights, BETA, order=1), seconds, time.perf_counter)
    os.environ["GENM_THREADS"] = "2"
    two = best(lambda: smooth_ap(tiles, weights, BETA, order=1), seconds, time.perf_counter)
    del os.environ["GENM_THREADS"]
    ratios = {
        "gradient, times NumPy": figures["numpy gradient"] / figures["gradient"],
        "hessian over gradient": figures["hessian"] / figures["gradient"],
        "exact, times argsort": figures["numpy argsort"] / figures["exact"],
        "two threads, times one (wall)": one / two,
        "gradient GB/s": tiles.scores.nbytes / figures["gradient"] / 1e6,
        "gradient error": wrong,
        "value error": abs(float(mean(tiles, found.value)) - value),
        "exact error": abs(float(mean(tiles, exact_ap(tiles, weights))) - data.numpy_map()),
    }
    return {
        **{f"{name} ms": round(t, 3) for name, t in figures.items()},
        **{k: float(f"{v:.3g}") for k, v in ratios.items()},
    }


def hold_bars(found: dict[str, float]) -> None:
    """Hold the figures of the medium size to their bars."""
    once, where = found["pass ms"], "431 x 7,097 x 4"
    note = f"one pass over the scores takes {once:.1f} ms"
    hold(f"value and gradient, {where}, over one pass", found["gradient ms"] / once, 2.0, note=note)
    hold("the same in float32, over the float64 pass", found["gradient float32 ms"] / once, 1.0)
    hold(f"exact MAP, {where}, over one pass", found["exact ms"] / once, 1.3)
    hold("value, gradient and Hessian, over the gradient", found["hessian over gradient"], 1.5)
    hold(
        "two threads, times one (wall)",
        found["two threads, times one (wall)"],
        1.8,
        at_least=True,
        note="needs two idle cores",
    )


def one_query(seconds: float) -> float:
    """Return the milliseconds of value and gradient of one query that was not stored before."""
    rng = np.random.default_rng(0)
    scores, relevant = rng.random((1000, 4)), np.arange(1000) % 50 == 0
    return best(lambda: smooth_ap_one(scores, relevant, 20, np.full(4, 0.25), BETA), seconds)


def compile_times() -> dict[str, float]:
    """Return the processor seconds of each kernel's first call with an empty cache."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
        run = subprocess.run(
            [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True
        )
    return {name: float(seconds) for name, seconds in (line.split() for line in run.stdout.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"some of {', '.join(SIZES)}; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0, help="time given to each figure")
    options = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    print(
        json.dumps(
            {
                "machine": platform.processor() or platform.machine(),
                "cores": os.cpu_count(),
                "load": load,
                **versions,
            }
        )
    )
    print(json.dumps({"first compile, CPU s": compile_times()}))
    print(json.dumps({"one query of 1000 x 4, ms": round(one_query(options.seconds), 3)}))
    for size in options.sizes or SIZES:
        shape = dict(zip(("queries", "documents", "relevant", "rankers"), SIZES[size], strict=True))
        print(json.dumps({"size": size, **shape, "beta": BETA, "seed": options.seed}))
        with threadpool_limits(1):  # NumPy's matrix products too
            found = measure(size, options.seed, options.seconds)
        print(json.dumps(found), flush=True)
        if size == "medium":
            hold_bars(found)


if __name__ == "__main__":
    main()
