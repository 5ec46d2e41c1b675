"""The kernels of `genm.scale.cuda` on a GPU: correctness, times beside the memory's bandwidth, a fit end to end.

Needs numpy and CuPy alone, so that it runs where the rest of genm is not installed; the step `autofit`, a fit by
the default method, also needs numba and msgspec:

    python -m benchmarks.cuda_kernels --json cuda.json

Every step stands on its own: one that fails prints its traceback, and the next one runs. `--emulate` runs all steps
on the CPU at small sizes, to try the script itself.
"""

import argparse
import functools
import importlib.util
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))
from genm.errors import GenmError  # noqa: E402
from genm.scale import cuda  # noqa: E402
from genm.scale.cuda import CudaDevice, Tuning, upload  # noqa: E402

BETA = 60.0
STRENGTH = np.array([0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.0], np.float32)
"""How far each ranker lifts a relevant document: none deserves all the weight, and one deserves none."""
PEAK = 4.18e12
"""Bytes per second that copies were measured at on an H200; measured again here."""


def make_scores(n_queries, n_documents, n_rankers, n_relevant, lifted=2, seed=0):
    """Return starts, (rows, K) float32 scores and the (Q, n_relevant) rows of relevant documents within queries."""
    scores = np.empty((n_queries, n_documents, n_rankers), np.float32)
    rows = np.empty((n_queries, n_relevant), np.int64)
    strength = np.resize(STRENGTH, n_rankers)
    size = max(1, min(2000, n_queries))

    def fill(first):
        rng = np.random.default_rng([seed, first])
        own = scores[first : first + size]
        rng.random(out=own, dtype=np.float32)
        rows[first : first + size] = np.sort(
            rng.random((len(own), n_documents)).argpartition(n_relevant - 1, axis=1)[:, :n_relevant], axis=1
        )
        at = np.arange(len(own))[:, None], rows[first : first + size][:, :lifted]
        own[at] += strength * rng.random((len(own), min(lifted, n_relevant), n_rankers), dtype=np.float32) * 2

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(0, n_queries, size)))
    starts = np.arange(n_queries + 1) * n_documents
    return starts, scores.reshape(-1, n_rankers), rows


def marks_of(starts, rows, n):
    """Return the marks of the first n relevant documents of each query."""
    marks = np.zeros(int(starts[-1]), np.bool_)
    marks[(starts[:-1, None] + rows[:, :n]).reshape(-1)] = True
    return marks


def ragged(seed, n_queries, n_rankers, long):
    """Return queries of many lengths, ties, 0 to 11 relevant documents and some that have no row."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 200, n_queries)
    lengths[:3] = long, 0, 1
    starts = np.concatenate(([0], np.cumsum(lengths)))
    scores = rng.random((starts[-1], n_rankers))
    scores[::3] = scores[::3].round(1)
    scores = scores.astype(np.float32)
    expected = rng.choice([0.0, 1.2, 4.0, 8.0], n_queries)
    marks = rng.random(starts[-1]) < np.repeat(expected / np.maximum(lengths, 1), lengths)
    counts = np.array([marks[a:b].sum() for a, b in itertools.pairwise(starts)])
    return starts, scores, marks, counts + rng.integers(0, 2, n_queries), rng.random(n_queries)


def oracle(x, relevant, n_relevant, weights, beta, smooth_j=0):
    """Return value, gradient and Hessian of one query's smoothed average precision, in float64."""
    K, at = x.shape[1], np.flatnonzero(relevant)
    value, gradient, hessian = 0.0, np.zeros(K), np.zeros((K, K))
    if len(at) == 0:
        return value, gradient, hessian
    x = x.astype(np.float64)
    s = np.zeros(len(x))
    for k in range(K):
        s = s + weights[k] * x[:, k]

    def sums(others, j):
        g = 1.0 / (1.0 + np.exp(np.clip(-beta * (s[others] - s[j]), -700, 700)))
        w, z = g * (1 - g), x[others] - x[j]
        h = w * (1 - 2 * g)
        return 0.5 + g.sum(), beta * (w[:, None] * z).sum(axis=0), beta**2 * (z * h[:, None]).T @ z

    for j in at:
        R, dR, ddR = sums(np.arange(len(x)), j)
        J, dJ, ddJ = 1.0 + ((s[at] > s[j]) | ((s[at] == s[j]) & (at < j))).sum(), np.zeros(K), np.zeros((K, K))
        if smooth_j:
            J, dJ, ddJ = sums(at, j)
        value += J / R
        gradient += dJ / R - J * dR / R**2
        cross = np.outer(dJ, dR)
        hessian += ddJ / R - (cross + cross.T) / R**2 - J * ddR / R**2 + 2 * J * np.outer(dR, dR) / R**3
    n = max(n_relevant, 1)
    return value / n, gradient / n, hessian / n


def exact_oracle(x, relevant, n_relevant, weights):
    """Return average precision and, of the marked rows, rank, first and last rank of their equals."""
    s = np.zeros(len(x))
    for k in range(x.shape[1]):
        s = s + weights[k] * x[:, k].astype(np.float64)
    order = np.argsort(-s, kind="stable")
    rank = np.empty(len(x), np.int64)
    rank[order] = np.arange(1, len(x) + 1)
    at = np.flatnonzero(relevant)
    total = 0.0
    for i, r in enumerate(np.sort(rank[at]), 1):
        total += i / r
    firsts, lasts = [int((s > s[i]).sum()) + 1 for i in at], [int((s >= s[i]).sum()) for i in at]
    return total / max(n_relevant, 1), rank[at], firsts, lasts


class Clock:
    """Times kernels by events of the device, or by the processor's clock where there is none.

    A kernel runs once, and then some times more between two events, so that neither Python nor the start of a
    kernel is part of the time. Kernels write the same result again.
    """

    def __init__(self, device, again=4):
        self.device, self.times, self.events, self.again = device, {}, [], again
        self.is_gpu = isinstance(device, CudaDevice)
        if self.is_gpu:
            device._run = self.run
        else:
            self.inner, device.launch = device.launch, self.launch

    def launch(self, kernel, *arguments):
        begin = time.perf_counter()
        self.inner(kernel, *arguments)
        self.times.setdefault(kernel, []).append(1e3 * (time.perf_counter() - begin))

    def run(self, function, grid, threads, arguments):
        cupy = self.device._cupy
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        function(grid, (threads,), arguments)
        begin.record()
        for _ in range(self.again):
            function(grid, (threads,), arguments)
        end.record()
        self.events.append((function.name, begin, end))

    def read(self):
        """Return ms of every launch since the last call, by kernel."""
        if self.is_gpu:
            self.device.synchronize()
            for kernel, begin, end in self.events:
                ms = self.device._cupy.cuda.get_elapsed_time(begin, end) / self.again
                self.times.setdefault(kernel, []).append(ms)
            self.events = []
        found, self.times = self.times, {}
        return found

    def stop(self):
        """Take the clock out of the device again."""
        self.read()
        if self.is_gpu:
            del self.device._run
        else:
            self.device.launch = self.inner


def median_ms(clock, kernel, call, repeats):
    """Return the ms of one call spent in a kernel: the median over some calls, after one that is not counted."""
    call()
    clock.read()
    found = []
    for _ in range(repeats):
        call()
        found.append(sum(clock.read()[kernel]))
    return float(np.median(found))


def wall_ms(call, repeats):
    """Return the median wall time of a call, in ms."""
    call()
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(found))


def relative(found, expected):
    """Return the greatest error, relative to the greatest number expected."""
    greatest = max(np.abs(expected).max(initial=0.0), 1e-300)
    return float(np.abs(np.asarray(found) - expected).max(initial=0.0) / greatest)


def step_correctness(device, sizes):
    """Compare every result with the oracle."""
    found = {}
    for K in sizes["rankers"]:
        starts, scores, marks, n_relevant, query_weights = ragged(K, sizes["oracle"], K, sizes["long"])
        labels, tuning = (marks, n_relevant, query_weights), Tuning(long=sizes["long"])
        shard = upload(starts, scores, *labels, device=device, tuning=tuning)
        weights = np.random.default_rng(1).dirichlet(np.ones(K), 5)
        weights[1] = np.eye(K)[0]
        spans = list(itertools.pairwise(starts))

        def per_query(function, labels, counts, w, *rest, scores=scores, spans=spans):
            return [function(scores[a:b], labels[a:b], counts[q], w, *rest) for q, (a, b) in enumerate(spans)]

        for smooth_j in (False, True):
            expected = [per_query(oracle, marks, n_relevant, w, BETA, smooth_j) for w in weights]
            values = np.array([[row[0] for row in one] for one in expected])
            gradients = np.array([[row[1] for row in one] for one in expected])
            hessians = np.array([np.tensordot(query_weights, [row[2] for row in one], 1) for one in expected])
            mean_gradients = (gradients * query_weights[:, None]).sum(axis=1)
            name = f"K={K} smooth_j={smooth_j}"
            v0, _ = shard.smooth(weights, BETA, smooth_j=smooth_j)
            v1, g1 = shard.smooth(weights, BETA, order=1, smooth_j=smooth_j)
            sums = shard.smooth_sums(weights, BETA, order=2, smooth_j=smooth_j)
            sums1 = shard.smooth_sums(weights, BETA, order=1, smooth_j=smooth_j)
            g2 = shard.smooth(weights, BETA, order=1, smooth_j=smooth_j)[1]
            sums2 = shard.smooth_sums(weights, BETA, order=2, smooth_j=smooth_j)
            found[name] = {
                "value": relative(v0, values),
                "value with gradient": relative(v1, values),
                "gradient per query": relative(g1, gradients),
                "gradient, worst query": float(
                    (np.abs(g1 - gradients).max(axis=2) / np.maximum(np.abs(gradients).max(axis=2), 1e-3)).max()
                ),
                "mean value": relative(sums.value, (values * query_weights).sum(axis=1)),
                "mean gradient": relative(sums.gradient, mean_gradients),
                "mean gradient, order 1": relative(sums1.gradient, mean_gradients),
                "mean hessian": relative(sums.hessian, hessians),
                "same bits again": bool(np.array_equal(g1, g2) and np.array_equal(sums.hessian, sums2.hessian)),
            }
        exact = [per_query(exact_oracle, marks, n_relevant, w) for w in weights]
        ranks = shard.ranks(weights, ties=True)
        columns = [[np.concatenate([row[i] for row in one]) for one in exact] for i in (1, 2, 3)]
        chosen = np.array([2, 0, 5, 5, 7])
        picked, thin = shard.select(chosen), shard.take_rankers([K - 1, 0])
        two = np.ascontiguousarray(scores[:, [K - 1, 0]])
        again = upload(starts, two, *labels, device=device, tuning=tuning)
        others = np.roll(marks, 3)
        counts = np.array([others[a:b].sum() for a, b in spans])
        relabelled = shard.relabel(others, counts)
        fused = [(scores[a:b].astype(np.float64) * weights[0]).sum(axis=1) for a, b in spans]
        precision = [[row[0] for row in one] for one in exact]
        least, cuda._LEAST_STAGED = cuda._LEAST_STAGED, 0
        staged = upload(starts, scores, *labels, device=device, tuning=tuning)
        cuda._LEAST_STAGED = least
        thin_gradient, again_gradient = (one.smooth(weights[:, :2], BETA, order=1)[1] for one in (thin, again))
        ties_equal = np.array_equal(ranks.first, columns[1]) and np.array_equal(ranks.last, columns[2])
        found[f"K={K} exact"] = {
            "average precision equal": bool(np.array_equal(shard.exact_ap(weights), precision)),
            "staged upload equal": bool(
                np.array_equal(device.get(staged.table.scores), device.get(shard.table.scores))
            ),
            "ranks equal": bool(np.array_equal(ranks.rank, columns[0])),
            "tied ranks equal": bool(ties_equal),
            "select equal": bool(
                np.array_equal(picked.exact_ap(weights), shard.exact_ap(weights)[:, chosen])
                and np.array_equal(
                    picked.smooth(weights, BETA, order=1)[1], shard.smooth(weights, BETA, order=1)[1][:, chosen]
                )
            ),
            "take_rankers equal": bool(np.array_equal(thin_gradient, again_gradient)),
            "relabel": relative(
                relabelled.smooth(weights, BETA)[0],
                [[row[0] for row in per_query(oracle, others, counts, w, BETA)] for w in weights],
            ),
            "float64 source": relative(
                upload(starts, scores.astype(np.float64), marks, n_relevant, device=device).exact_ap(weights),
                precision,
            ),
            "variances": relative(shard.variances(weights[0]), [s.var() if len(s) else 0.0 for s in fused]),
        }
    bad = [
        (name, what, value)
        for name, row in found.items()
        for what, value in row.items()
        if (value is False) or (value is not True and not value < 1e-5)
    ]
    return {"errors": found, "above 1e-5 or unequal": bad}


def step_bandwidth(device, _sizes):
    """Measure copies and reads of device memory."""
    if not isinstance(device, CudaDevice):
        return {}
    cupy = device._cupy
    there = cupy.zeros(800_000_000, cupy.float32)
    other = cupy.empty_like(there)
    found = {}
    for name, call, n in (
        ("copy", functools.partial(cupy.copyto, other, there), 2),
        ("sum", there.sum, 1),
        ("max", there.max, 1),
    ):
        times = []
        for _ in range(8):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end))
        found[f"{name}, TB/s"] = n * 3.2e9 / min(times[2:]) / 1e9
    del there, other, call
    cupy.get_default_memory_pool().free_all_blocks()
    return found


EXPLICIT = Tuning(team=8, long=8192, min_blocks=1, stream=False)
"""Nothing is left to the rules of `genm.scale.cuda`, which are made of these measurements."""
TUNINGS = [
    replace(EXPLICIT, warps=warps, unroll=unroll, min_blocks=min_blocks, vec=vec, stream=stream, group=group)
    for warps, unroll, min_blocks, vec, stream, group in [
        (4, 1, 1, 0, False, 4),
        (4, 1, 1, 0, True, 4),
        (4, 1, 5, 0, True, 4),
        (4, 1, 6, 0, True, 4),
        (4, 2, 1, 0, True, 4),
        (4, 2, 4, 0, True, 4),
        (8, 1, 1, 0, True, 4),
        (8, 1, 3, 0, True, 4),
        (2, 1, 1, 0, True, 4),
        (4, 1, 1, 2, True, 4),
        (4, 2, 1, 2, True, 4),
        (4, 4, 1, 2, True, 4),
        (4, 1, 8, 2, True, 4),
        (1, 1, 1, 0, True, 4),
    ]
] + [replace(EXPLICIT, team=team, long=1, stream=True) for team in (2, 4, 8)]


def step_times(device, sizes):
    """Time the passes over 100,000 x 1,000 x 8 scores for several numbers of relevant documents and tunings."""
    clock = Clock(device)
    n_queries, n_documents, K = sizes["large"]
    begin = time.perf_counter()
    starts, scores, rows = make_scores(n_queries, n_documents, K, 15)
    found = {"seconds to make the data": time.perf_counter() - begin, "bytes": scores.nbytes, "passes": []}
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(K), 8)
    marks = {n: marks_of(starts, rows, n) for n in (1, 2, 4, 8, 15)}
    begin = time.perf_counter()
    shard = upload(starts, scores, marks[1], np.full(n_queries, 1), device=device)
    device.get(shard.table.scores[:8])
    found["seconds to upload"] = time.perf_counter() - begin
    print(f"data {found['seconds to make the data']:.2f} s, upload {found['seconds to upload']:.2f} s", flush=True)
    best = {}

    def note(what, n, tuning, call, kernel="smooth"):
        try:
            ms = median_ms(clock, kernel, call, sizes["repeats"])
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            clock.read()
            return
        row = {"pass": what, "R": n, "ms": ms, "TB/s": scores.nbytes / ms / 1e9, "tuning": str(tuning)}
        found["passes"].append(row)
        if ms < best.get((what, n), (1e9, None))[0]:
            best[what, n] = ms, tuning
        print(f"{what:28s} R={n:<2d} {ms:8.3f} ms {row['TB/s']:6.2f} TB/s  {tuning}", flush=True)

    shards = {n: shard.relabel(marks[n], np.full(n_queries, n)) for n in marks}
    for n in (1, 2):
        for tuning in TUNINGS[: sizes["tunings"]]:
            own = replace(shards[n], tuning=tuning)
            note("gradient", n, tuning, lambda own=own: own._smooth_rows(weights[:1], BETA, 1))
    for n in (1, 2):
        for tuning in (TUNINGS[0], TUNINGS[1], best.get(("gradient", n), (0, TUNINGS[0]))[1]):
            own = replace(shards[n], tuning=tuning)
            note("value", n, tuning, lambda own=own: own._smooth_rows(weights[:1], BETA, 0))
            note("exact", n, tuning, lambda own=own: own.exact_ap(weights[:1]), "rank")
            note("hessian", n, tuning, lambda own=own: own._smooth_rows(weights[:1], BETA, 2))
    for n in (4, 8, 15):
        for group in (2, 3, 4):
            for min_blocks in (1, 3, 4):
                tuning = replace(EXPLICIT, group=group, min_blocks=min_blocks)
                own = replace(shards[n], tuning=tuning)
                note("gradient", n, tuning, lambda own=own: own._smooth_rows(weights[:1], BETA, 1))
        note("exact", n, Tuning(), lambda own=shards[n]: own.exact_ap(weights[:1]), "rank")
        note("hessian", n, Tuning(), lambda own=shards[n]: own._smooth_rows(weights[:1], BETA, 2))
    for n in (1, 2):
        own = replace(shards[n], tuning=best.get(("gradient", n), (0, Tuning()))[1])
        for W in (2, 4, 8):
            some = weights[:W]
            note(f"gradient, W={W}", n, own.tuning, lambda own=own, some=some: own._smooth_rows(some, BETA, 1))
            note(f"value, W={W}", n, own.tuning, lambda own=own, some=some: own._smooth_rows(some, BETA, 0))
            note(f"exact, W={W}", n, own.tuning, lambda own=own, some=some: own.exact_ap(some), "rank")
        clock.read()
        own.smooth_sums(weights[:1], BETA, order=1)
        found[f"ms of every kernel of smooth_sums, R={n}"] = clock.read()
    clock.stop()
    for n in (1, 2):
        own = replace(shards[n], tuning=best.get(("gradient", n), (0, Tuning()))[1])
        calls = {
            "smooth_sums": lambda own=own: own.smooth_sums(weights[:1], BETA, order=1),
            "exact_ap": lambda own=own: own.exact_ap(weights[:1]),
            "smooth per query": lambda own=own: own.smooth(weights[:1], BETA, order=1),
        }
        for name, call in calls.items():
            found[f"wall ms of {name}, R={n}"] = wall_ms(call, sizes["repeats"])
        gradients = [own.smooth_sums(weights[:1], BETA, order=1).gradient for _ in range(5)]
        found[f"same bits again, R={n}"] = all(np.array_equal(gradients[0], one) for one in gradients)
    found["best"] = {f"{what} R={n}": (ms, str(tuning)) for (what, n), (ms, tuning) in best.items()}
    try:
        if isinstance(device, CudaDevice):
            found["triton"] = compare_with_triton(device, shards[1], weights[0], n_documents)
            print("triton", found["triton"], flush=True)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
    return found


def step_rules(device, sizes):
    """Time the passes over 100,000 x 1,000 x 8 scores as the rules of `genm.scale.cuda` compile them."""
    clock = Clock(device)
    n_queries, n_documents, K = sizes["large"]
    starts, scores, rows = make_scores(n_queries, n_documents, K, 15)
    weights = np.random.default_rng(0).dirichlet(np.ones(K), 4)
    shard, found = None, {}
    for n in (1, 2, 4, 8, 15):
        marks, counts = marks_of(starts, rows, n), np.full(n_queries, n)
        shard = shard.relabel(marks, counts) if shard else upload(starts, scores, marks, counts, device=device)
        calls = {
            "value": ("smooth", functools.partial(shard._smooth_rows, weights[:1], BETA, 0)),
            "gradient": ("smooth", functools.partial(shard._smooth_rows, weights[:1], BETA, 1)),
            "gradient of 4 weight vectors": ("smooth", functools.partial(shard._smooth_rows, weights, BETA, 1)),
            "hessian": ("smooth", functools.partial(shard._smooth_rows, weights[:1], BETA, 2)),
            "exact": ("rank", functools.partial(shard.exact_ap, weights[:1])),
            "exact of 4 weight vectors": ("rank", functools.partial(shard.exact_ap, weights)),
        }
        for name, (kernel, call) in calls.items():
            found[f"{name}, R={n}, ms"] = ms = median_ms(clock, kernel, call, sizes["repeats"])
            print(f"{name:30s} R={n:<2d} {ms:8.3f} ms", flush=True)
    clock.stop()
    return found


def compare_with_triton(device, shard, weights, n_documents):
    """Time the same pass in Triton on the same scores."""
    from benchmarks._cuda_triton import time_smooth

    sharp = device._cupy.asarray((weights * BETA * np.log2(np.e)).astype(np.float32))
    ms, times, sums = time_smooth(shard.table.scores, shard.labels.scores, sharp, n_documents, shard.n_queries)
    value, gradient = shard.smooth(weights[None], BETA, order=1)
    R = 0.5 + sums[:, 0].astype(np.float64)
    return {
        "ms": ms,
        "ms by warps": times,
        "value": relative(1.0 / R, value[0]),
        "gradient": relative(-BETA * sums[:, 1:] / R[:, None] ** 2, gradient[0]),
    }


def step_shapes(device, sizes):
    """Time gradient and Hessian for other shapes."""
    clock, found = Clock(device), []
    for n_queries, n_documents, K in sizes["shapes"]:
        starts, scores, rows = make_scores(n_queries, n_documents, K, 2)
        shard = upload(starts, scores, marks_of(starts, rows, 1), np.full(n_queries, 1), device=device)
        weights = np.full((1, K), 1.0 / K)
        explicit = EXPLICIT, replace(EXPLICIT, stream=True), replace(EXPLICIT, unroll=2)
        for tuning in (Tuning(), *explicit, replace(EXPLICIT, team=4, long=1)):
            own = replace(shard, tuning=tuning)
            for order in (1, 2) if K <= 16 else (1,):
                try:
                    ms = median_ms(clock, "smooth", functools.partial(own._smooth_rows, weights, BETA, order), 5)
                except Exception:  # noqa: BLE001
                    traceback.print_exc()
                    continue
                shape = f"{n_queries} x {n_documents} x {K}"
                rate = scores.nbytes / ms / 1e9
                found.append({"shape": shape, "order": order, "ms": ms, "TB/s": rate, "tuning": str(tuning)})
                print(f"{shape:24s} order {order} {ms:8.3f} ms {rate:6.2f} TB/s  {tuning}", flush=True)
    clock.stop()
    return found


def step_fit(device, sizes):
    """Fit 100,000 queries end to end: from arrays in memory to weights."""
    n_queries, n_documents, K = sizes["large"]
    starts, scores, rows = make_scores(n_queries, n_documents, K, 2)
    found = {}
    optimiser = load_optimiser(found)
    for n in (1, 2):
        marks = marks_of(starts, rows, n)
        for turn in ("first", "second"):  # the first one compiles kernels, unless they are on disk
            row, begin = {}, time.perf_counter()
            shard = upload(starts, scores, marks, np.full(n_queries, n), device=device)
            device.get(shard.table.scores[:8])
            row["seconds to upload"] = time.perf_counter() - begin
            beta = 20.0 / float(np.sqrt(np.median(shard.variances(np.full(K, 1.0 / K)))))
            row["seconds to beta"] = time.perf_counter() - begin
            n_calls = 0

            def gradient(w, shard=shard, beta=beta):
                nonlocal n_calls
                n_calls += 1
                sums = shard.smooth_sums(w[None], beta, order=1)
                return float(sums.value[0]) / shard.total_weight, sums.gradient[0] / shard.total_weight

            single = shard.exact_ap(np.eye(K)).mean(axis=1)
            begins = np.full(K, 1.0 / K), 0.5 * np.eye(K)[single.argmax()] + 0.5 / K
            ends = [optimiser(gradient, start, tol=1e-6, max_iter=100) for start in begins]
            exact = [float(shard.exact_ap(end.alpha[None]).mean()) for end in ends]
            row |= {
                "seconds": time.perf_counter() - begin,
                "gradients": n_calls,
                "beta": beta,
                "weights": [end.alpha.tolist() for end in ends],
                "MAP": exact,
                "MAP of uniform weights": float(shard.exact_ap(np.full((1, K), 1.0 / K)).mean()),
                "iterations": [end.n_iter for end in ends],
                "converged": [end.converged for end in ends],
            }
            found[f"R={n}, {turn}"] = row
            print(f"fit R={n} {turn}:", row, flush=True)
            del shard
    return found


def step_autofit(device, sizes):
    """Fit 100,000 queries by the default method, its inner cross-validation included: from arrays to weights."""
    from genm.learn import AutoFuser, NewtonFuser
    from genm.learn.cuda import CudaProblem

    n_queries, n_documents, K = sizes["large"]
    starts, scores, rows = make_scores(n_queries, n_documents, K, 2)
    found, names = {}, [f"r{k}" for k in range(K)]
    for n in (1, 2):
        marks, counts = marks_of(starts, rows, n), np.full(n_queries, n)
        # the first one compiles kernels of the GPU and of the CPU, unless they are on disk
        for turn, fuser in (
            ("first", AutoFuser()),
            ("second", AutoFuser()),
            ("newton", NewtonFuser(starts=[[1] * K])),
        ):
            begin = time.perf_counter()
            problem = CudaProblem.from_shard(upload(starts, scores, marks, counts, device=device), names)
            problem.value(np.full(K, 1.0 / K))
            ready = time.perf_counter() - begin
            fuser.fit_problem(problem)
            row = {
                "seconds to upload, beta and the first value": ready,
                "seconds": time.perf_counter() - begin,
                "weights": fuser.weights_.tolist(),
                "MAP": problem.exact(fuser.weights_),
                "objective": fuser.objective_,
                "converged": fuser.converged_,
            }
            found[f"R={n}, {turn}"] = row
            print(f"autofit R={n} {turn}:", row, flush=True)
    return found


def load_optimiser(found):
    """Return genm's own optimiser; without numba its small kernels run as plain Python."""
    if importlib.util.find_spec("numba") is None:
        parallel, lanes = types.ModuleType("genm._math.parallel"), types.ModuleType("genm._math.lanes")
        parallel.kernel, parallel.part = (lambda f: f), (lambda *_, **__: lambda f: f)
        parallel.over_ranges = parallel.over_items = None
        for name in ("fill", "load", "store", "power_of_two"):
            setattr(lanes, name, None)
        sys.modules["genm._math.parallel"], sys.modules["genm._math.lanes"] = parallel, lanes
        found["optimiser"] = "quasi_newton, with numpy's eigenvalues (no numba here)"
    else:
        found["optimiser"] = "quasi_newton"
    from genm._math import linear_algebra
    from genm._math.simplex_optimizers import quasi_newton

    if importlib.util.find_spec("numba") is None:

        def jacobi(A, V):
            values, V[:] = np.linalg.eigh(A)
            A[:] = np.diag(values)

        linear_algebra.rotate_to_diagonal = jacobi  # which takes milliseconds as plain Python
    return quasi_newton


def step_upload(device, _sizes):
    """Time ways to copy 3.2 GB to the device."""
    if not isinstance(device, CudaDevice):
        return {}
    cupy, found = device._cupy, {}
    block = np.ones(1 << 28, np.float32)  # 1 GB
    there = cupy.empty(block.size, cupy.float32)

    def timed(name, call):
        times = []
        for _ in range(3):
            device.synchronize()
            begin = time.perf_counter()
            call()
            device.synchronize()
            times.append(time.perf_counter() - begin)
        found[name + ", GB/s"] = block.nbytes / min(times) / 1e9
        print(name, found[name + ", GB/s"], flush=True)

    timed("pageable", lambda: there.set(block))
    for megabytes in (16, 64):
        for threads in (1, 4, 8):
            n = megabytes << 18
            memory = [cupy.cuda.alloc_pinned_memory(4 * n) for _ in range(2)]
            buffers = [np.frombuffer(m, np.float32, n) for m in memory]
            events = [cupy.cuda.Event() for _ in range(2)]
            stream = cupy.cuda.Stream(non_blocking=True)

            def staged(n=n, threads=threads, buffers=buffers, events=events, stream=stream):
                with ThreadPoolExecutor(threads) as pool:
                    for i, first in enumerate(range(0, block.size, n)):
                        buffer, event = buffers[i % 2], events[i % 2]
                        event.synchronize()
                        part = block[first : first + n]
                        cuts = np.linspace(0, n, threads + 1).astype(int)
                        pieces = [slice(a, b) for a, b in itertools.pairwise(cuts)]
                        list(pool.map(lambda p, to=buffer, of=part: np.copyto(to[p], of[p]), pieces))
                        there[first : first + n].set(buffer, stream=stream)
                        event.record(stream)
                stream.synchronize()

            timed(f"pinned, {megabytes} MB, {threads} threads", staged)
    return found


def step_start(device, _sizes):
    """Time a process that finds the device and compiles: with an empty cache of kernels, and with a full one."""
    if not isinstance(device, CudaDevice):
        return {}
    code = (
        "import time; t=time.perf_counter(); from benchmarks.cuda_kernels import *; d=CudaDevice()\n"
        "d.zeros((1,),np.float32); d.synchronize(); a=time.perf_counter()-t\n"
        "s=upload(np.array([0,100]),np.random.rand(100,8).astype('f4'),np.arange(100)<1,np.array([1]),device=d)\n"
        "s.variances(np.ones(8)/8); s.smooth_sums(np.ones((1,8))/8,20.0,order=1); s.exact_ap(np.ones((1,8))/8)\n"
        "print(a, time.perf_counter()-t)"
    )
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("empty cache of kernels", "full cache"):
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=ROOT,
                env={**os.environ, "CUPY_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=False,
            )
            found[name] = done.stdout.split() or done.stderr[-2000:]
    return found


GPU_SIZES = {
    "oracle": 150,
    "long": 9000,
    "rankers": (8, 3, 13),
    "large": (100_000, 1_000, 8),
    "repeats": 15,
    "tunings": len(TUNINGS),
    "shapes": [(1_000_000, 100, 4), (100_000, 1_000, 4), (50_000, 1_000, 16), (25_000, 1_000, 32), (500, 7_000, 4)],
}
CPU_SIZES = {
    "oracle": 9,
    "long": 180,
    "rankers": (3,),
    "large": (12, 100, 8),
    "repeats": 1,
    "tunings": 1,
    "shapes": [(5, 40, 4)],
}
STEPS = {
    "correctness": step_correctness,
    "bandwidth": step_bandwidth,
    "times": step_times,
    "rules": step_rules,
    "fit": step_fit,
    "autofit": step_autofit,
    "upload": step_upload,
    "shapes": step_shapes,
    "start": step_start,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write everything that was found to this file")
    parser.add_argument("--only", default=",".join(STEPS), help="steps, with commas")
    parser.add_argument("--emulate", action="store_true", help="on the CPU, at small sizes")
    options = parser.parse_args()
    found = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
    for package in ("numba", "scipy", "polars", "cupy", "torch", "triton"):
        found[package] = importlib.util.find_spec(package) is not None
    if options.emulate:
        sys.path.append(str(ROOT / "tests" / "scale"))
        from cuda_on_cpu import CpuDevice

        def make_device():
            return CpuDevice(Path(tempfile.mkdtemp()))
    else:
        make_device = CudaDevice
        try:
            device = CudaDevice()
        except GenmError as error:
            print(f"skipped: {error}")
            return
        cupy = device._cupy
        found |= {"device": device.name, "cupy": cupy.__version__, "runtime": cupy.cuda.runtime.runtimeGetVersion()}
    print(found, flush=True)
    device = make_device()
    for name in options.only.split(","):
        begin = time.perf_counter()
        try:
            found[name] = STEPS[name](device, CPU_SIZES if options.emulate else GPU_SIZES)
        except Exception:  # noqa: BLE001
            found[name] = traceback.format_exc()
            print(found[name], flush=True)
        print(f"== {name}: {time.perf_counter() - begin:.1f} s", flush=True)
        if name == "correctness":
            print(json.dumps(found[name], indent=1), flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(found, indent=1, default=str), encoding="utf-8")
    for name in ("bandwidth", "upload", "start"):
        print(name, json.dumps(found.get(name), default=str))
    times = found.get("times")
    if isinstance(times, dict):
        print(json.dumps({key: value for key, value in times.items() if key != "passes"}, indent=1, default=str))


if __name__ == "__main__":
    main()
