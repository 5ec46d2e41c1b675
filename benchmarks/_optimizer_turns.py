"""Every optimiser in a process of its own, with a limit on its time, and the tables of one run."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from genm.align import Aligned
from genm.evaluate import parse_measure
from genm.evidence.crossval import measure_queries
from genm.learn.objectives import fold_of_queries

Array = NDArray[np.float64]
Optimizer = Callable[[Aligned], Array]
Facts = dict[str, object]

AP = parse_measure("AP")
OVER, NOT_TRIED = "over the limit", "not tried"


def one_after_the_other(
    learn_on: Callable[[str], Optimizer | None],
    tiny: Aligned,
    collections: dict[str, Aligned],
    *,
    limit: float,
    seed: int,
) -> Iterator[Facts]:
    """Yield what an optimiser reaches on each collection: its training, its held-out MAP, its time.

    A process that needs longer than the limit for a collection is ended and another goes on with the next one.
    """
    todo = [name for name in collections if learn_on(name) is not None]
    for name in collections:
        if name not in todo:
            yield {"collection": name, "result": NOT_TRIED}
    context = multiprocessing.get_context("fork")  # collections are loaded once and inherited
    while todo:
        ours, theirs = context.Pipe()
        child = context.Process(target=_go_on, args=(theirs, learn_on, tiny, collections, list(todo), seed))
        child.start()
        theirs.close()
        try:
            yield {"warmed_up_in_s": ours.recv() if ours.poll(limit) else None}
            while todo:
                if not ours.poll(limit):
                    yield {"collection": todo.pop(0), "result": OVER, "limit_s": limit}
                    break
                yield {"collection": todo.pop(0), **ours.recv()}
        except EOFError:  # it ended before its time
            child.join()
            yield {"collection": todo.pop(0) if todo else "", "result": f"ended with status {child.exitcode}"}
        finally:
            child.kill()
            child.join()


def _go_on(
    told: Connection,
    learn_on: Callable[[str], Optimizer | None],
    tiny: Aligned,
    collections: dict[str, Aligned],
    todo: list[str],
    seed: int,
) -> None:
    """Warm up on something tiny, then do one collection after the other; runs in the child."""
    os.environ.pop("GENM_THREADS", None)  # see `load` of the benchmark
    begun, first = time.perf_counter(), learn_on(todo[0])
    missing = ""
    try:
        if first is not None:
            first(tiny)
    except ImportError as error:
        missing = str(error)
    told.send(round(time.perf_counter() - begun, 1))
    for name in todo:
        learn = None if missing else learn_on(name)
        told.send({"result": f"left out: {missing}"} if learn is None else _measure(collections[name], learn, seed))


def _measure(aligned: Aligned, learn: Optimizer, seed: int) -> Facts:
    wall, cpu = time.perf_counter(), time.process_time()
    weights = learn(aligned)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    n = len(aligned.queries)
    fold, held = fold_of_queries(n, 2, seed), np.zeros(n)
    for f in range(2):
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        held[outside] = measure_queries(aligned.select(outside), learn(aligned.select(inside)), AP)
    return {
        "train": round(float(measure_queries(aligned, weights, AP).mean()), 4),
        "held_out": round(float(held.mean()), 4),
        "cpu_s": round(cpu, 2),
        "wall_s": round(wall, 2),
        "weights": (weights / np.abs(weights).sum()).round(3).tolist(),
    }


def tables(found: dict[str, list[Facts]], collections: list[str]) -> list[str]:
    """Return the run as two tables in Markdown: MAP in training and held out, and times."""
    head = ["| | " + " | ".join("M" if name == "merged" else name.upper() for name in collections) + " |"]
    head.append("| --- |" + " --- |" * len(collections))
    values, times = [*head], [*head]
    for label, facts in found.items():
        at = {str(one["collection"]): one for one in facts if "collection" in one}
        cells = [at.get(name, {}) for name in collections]
        values.append(f"| {label} | " + " | ".join(_value_cell(one) for one in cells) + " |")
        times.append(f"| {label} | " + " | ".join(_time_cell(one) for one in cells) + " |")
    return [*values, "", *times]


def _value_cell(one: Facts) -> str:
    if "train" not in one:
        return _why(one)
    return " / ".join(f"{one[name]:.4f}".removeprefix("0") for name in ("train", "held_out"))


def _time_cell(one: Facts) -> str:
    return f"{one['cpu_s']:.1f} ({one['wall_s']:.1f})" if "train" in one else _why(one)


def _why(one: Facts) -> str:
    found = str(one.get("result", NOT_TRIED))
    return "-" if found == NOT_TRIED else found
