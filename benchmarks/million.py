"""A table of 10^6 queries x 1,000 x 8, made by a generator and fitted by one and by two local workers.

    python -m benchmarks.million                               # 16 cores, 31 GB of disk, about 60 GB of memory
    python -m benchmarks.million --queries 20000 --documents 100 --threads 1

The table is written once; those of a tenth and three tenths of its queries are its first shards, linked. Each is
fitted by three Newton iterations, as many on every table, with the same number of threads for each worker: two
workers do the work of one in half the time if nothing is lost. Starting the processes and loading kernels does not
count. Weights must have the same bits everywhere. What does not fit into `--seconds` is left out, and said.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks._bars import hold, print_table
from benchmarks._tables import write_planted
from genm.errors import ConvergenceWarning
from genm.learn import NewtonFuser
from genm.learn.table import TableQueries
from genm.learn.table_fit import fit_table, settings_for
from genm.scale import ClusterAddress, DaskEngine, ProcessEngine, Request, TableWriter, ThreadEngine
from genm.scale.engines import blocks_of_shards

PARTS = (0.1, 0.3, 1.0)


def few_iterations(n_rankers):
    return NewtonFuser(starts=[np.ones(n_rankers)], tol=0.0, min_iter=3, max_iter=3)


def first_shards(table, folder, part):
    """Return a table of the first shards of another one; files are linked, not copied."""
    n_shards = max(1, round(part * table.n_shards))
    if n_shards == table.n_shards:
        return table
    writer = TableWriter(str(folder), table.rankers, normalize="none", dtype=table.dtype)
    for shard in table.shards[:n_shards]:
        os.link(Path(table.path) / shard.file, folder / shard.file)
        writer.append(shard, np.ones(len(table.rankers), np.bool_))
    return writer.finish()


def peak_mb(pid):
    """Return the most memory that a process has had, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    return 0


def cpu_s(pid):
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def engine_of(kind, table, settings, n_workers, options):
    """Return an engine whose workers have as many threads each, whatever their number."""
    memory = int(options.memory * 2**30)
    os.environ["GENM_THREADS"] = str(options.threads if kind == "dask" else options.threads * n_workers)
    if kind == "dask":
        return DaskEngine(table, settings, ClusterAddress(f"local:{n_workers}"), memory=memory // n_workers)
    if kind == "cuda":
        return ThreadEngine(table, settings)
    return ProcessEngine(table, settings, n_workers=n_workers, memory=memory)


def fit(kind, table, n_workers, options):
    """Fit once; return seconds, weights and memory."""
    fuser = few_iterations(len(table.rankers))
    settings = settings_for(fuser, table, "cuda" if kind == "cuda" else None)
    engine = engine_of(kind, table, settings, n_workers, options)
    try:
        engine.evaluate([warm_up(table, n_workers)])
        pids = engine.workers.pids if kind == "dask" else [os.getpid()] if kind == "cuda" else engine.pids
        begun, cpu = time.monotonic(), sum(map(cpu_s, pids))
        with TableQueries(table, engine, settings) as queries:
            read = time.monotonic() - begun
            fitted = fit_table(fuser, queries)
        seconds = time.monotonic() - begun
        cpu = sum(map(cpu_s, pids)) - cpu
        peaks = [peak_mb(pid) for pid in pids]
    finally:
        engine.close()
    return {
        "engine": kind, "workers": n_workers, "shards": table.n_shards, "queries": table.n_queries,
        "seconds": round(seconds, 2), "first_pass_s": round(read, 2),
        "cpu_s": round(cpu, 2), "worker_peak_mb": peaks,
        "client_peak_mb": peak_mb(os.getpid()), "weights": fitted.weights_.tobytes().hex(),
    }  # fmt: skip


def plan(options):
    """Return what to fit, the most important first: (engine, part of the table, workers)."""
    todo = [("processes", part, 2) for part in PARTS] + [("processes", part, 1) for part in reversed(PARTS)]
    if options.dask:
        todo.append(("dask", PARTS[0], 2))
    if options.cuda:
        todo += [("cuda", part, 1) for part in PARTS]
    return todo


def conclude(rows):
    """Hold what was found to the bars."""
    by_key = {(row["engine"], row["shards"], row["workers"]): row["seconds"] for row in rows}
    two = [row for row in rows if (row["engine"], row["workers"]) == ("processes", 2)]
    found = {}
    if len(two) > 1:
        x, y = (np.log([row[name] for row in two]) for name in ("shards", "seconds"))
        found["exponent"] = float(np.polyfit(x, y, 1)[0])
        hold("two workers: exponent of time over shards", found["exponent"], 1.05, unit="")
    shared = [
        (shards, seconds / (2.0 * by_key["processes", shards, 2]))
        for (kind, shards, n_workers), seconds in by_key.items()
        if (kind, n_workers) == ("processes", 1) and ("processes", shards, 2) in by_key
    ]
    if shared:
        found["efficiency"] = dict(shared)
        hold("two workers: efficiency on the largest table", max(shared)[1], 0.85, unit="", at_least=True)
        cpu = {(row["shards"], row["workers"]): row["cpu_s"] for row in rows if row["engine"] == "processes"}
        found["cpu_of_one_over_two"] = {shards: cpu[shards, 1] / max(cpu[shards, 2], 1e-9) for shards, _ in shared}
    on_cpu = {}
    for row in rows:
        if row["engine"] != "cuda":  # a GPU rounds otherwise
            on_cpu.setdefault(row["shards"], set()).add(row["weights"])
    found["same_bits"] = all(len(bits) == 1 for bits in on_cpu.values())
    hold("the same bits for any engine and number of workers", float(found["same_bits"]), 1, unit="", at_least=True)
    return found


def warm_up(table, n_workers):
    """Return a request about one query of each worker, for which it loads the kernels."""
    first = {block[0] for block in blocks_of_shards(table.n_shards, 2 * n_workers)}
    marks = (bytes([128 * (i in first)]) + bytes((n - 1) // 8) for i, n in enumerate(table.shard_queries))
    weights = (1.0 / len(table.rankers),) * len(table.rankers)
    return Request("smooth", weights, beta=1.0, order=2, queries=tuple(marks))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rankers", type=int, default=8)
    parser.add_argument("--relevant", type=int, default=5)
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="of each worker")
    parser.add_argument("--memory", type=float, default=60.0, help="GB for shards, of all workers together")
    parser.add_argument(
        "--shard-rows", type=int, default=None, help="rows of a shard; about 1.4 million by default"
    )
    parser.add_argument("--seconds", type=float, default=460.0, help="what does not fit into this time is left out")
    parser.add_argument("--folder", default=None, help="where the table is written")
    parser.add_argument(
        "--dask", action=argparse.BooleanOptionalAction, default=find_spec("distributed") is not None
    )
    parser.add_argument("--cuda", action="store_true", help="fit on a GPU as well")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    begun, rows, left_out = time.monotonic(), [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        whole = write_planted(
            str(folder / "whole"), options.queries, options.documents, options.rankers, relevant=options.relevant,
            shard_rows=options.shard_rows,
        )  # fmt: skip
        made = time.monotonic() - begun
        size = shutil.disk_usage(folder)
        print(
            f"{whole}: made in {made:.0f} s, {whole.n_bytes / 1e9:.1f} GB; {size.free / 1e9:.0f} GB free",
            flush=True,
        )
        fit("processes", write_planted(str(folder / "small"), 20, 300, options.rankers), 1, options)  # compiles
        tables = {part: first_shards(whole, folder / f"part-{part}", part) for part in PARTS}
        per_shard = 0.0  # seconds of one worker, by the fits so far
        for kind, part, n_workers in plan(options):
            likely = per_shard * tables[part].n_shards / n_workers
            if time.monotonic() - begun + likely > options.seconds:
                left_out.append(f"{kind}, {tables[part].n_shards} shards, {n_workers} workers")
                continue
            rows.append(fit(kind, tables[part], n_workers, options))
            if kind != "cuda":
                per_shard = max(per_shard, rows[-1]["seconds"] * n_workers / tables[part].n_shards)
            print(json.dumps({**rows[-1], "weights": rows[-1]["weights"][:16]}), flush=True)
    found = {
        **conclude(rows), "left_out": left_out, "table_s": made, "seconds": time.monotonic() - begun,
        "threads_per_worker": options.threads, "cores": os.cpu_count(), "rows": rows,
    }  # fmt: skip
    print(json.dumps({name: value for name, value in found.items() if name != "rows"}, indent=1))
    packages = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
    print("packages:", ", ".join(name for name in packages if not name.startswith("_")))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    print_table()


if __name__ == "__main__":
    main()
