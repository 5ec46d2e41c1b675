"""Learning from score tables: growth, memory, deaths of workers, the online stream.

python -m benchmarks.scale growth          # CPU over shards; the exponent should be at most 1.05
python -m benchmarks.scale memory          # a table four times the limit of address space is fitted
python -m benchmarks.scale fit             # genm fit of QUERIES x 1,000 x 8 from Parquet
python -m benchmarks.scale kills --fits 20 # kill -9 of a worker before every pass
python -m benchmarks.scale silent          # a stopped worker; the fit continues after worker-ttl
python -m benchmarks.scale dropped         # packets of a worker are dropped; needs root and iproute2
python -m benchmarks.scale scheduler       # the scheduler is killed, and the fit resumed
python -m benchmarks.scale online          # queries per second of CPU from a table, peak memory
python -m benchmarks.scale stream          # 10^6 queries that are made as they are learned from: memory stays
"""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import genm
from benchmarks._bars import hold
from benchmarks._tables import planted_shard, planted_weights, write_planted
from genm.errors import ConvergenceWarning, EngineError
from genm.learn import NewtonFuser, OnlineFuser
from genm.learn.table import TableProblem, TableQueries
from genm.learn.table_fit import fit_table, settings_for
from genm.scale import ClusterAddress, DaskEngine, ThreadEngine


def fitted(table, engine, fuser):
    with TableQueries(table, engine, settings_for(fuser, table)) as queries:
        return fit_table(fuser.clone(), queries)


def newton(n_rankers):
    return NewtonFuser(starts=[np.ones(n_rankers)])


def growth(folder, options):
    """Fit tables of 4, 8, 16 and 32 shards; everything stays in memory."""
    rows = []
    for n_shards in (4, 4, 8, 16, 32):  # the first loads the kernels
        n_queries = options.queries * n_shards
        place = str(folder / f"t{n_shards}")
        table = write_planted(place, n_queries, 100, 4, shard_rows=options.queries * 100)
        # as many iterations on every table: how many are needed does not depend on the size
        fuser = NewtonFuser(starts=[np.ones(4)], tol=0.0, min_iter=5, max_iter=5)
        engine, begun = ThreadEngine(table, settings_for(fuser, table)), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted(table, engine, fuser)
        cpu = time.process_time() - begun
        rows.append({"shards": table.n_shards, "queries": n_queries, "cpu_s": cpu})
        shutil.rmtree(place)
    del rows[0]
    x, y = (np.log([row[name] for row in rows]) for name in ("shards", "cpu_s"))
    return {"rows": rows, "exponent": float(np.polyfit(x, y, 1)[0])}


LIMITED = """
import json, resource, sys
import genm
from genm.cli.warmup import compile_learning
from genm.learn.table_fit import fit_table  # libraries are loaded and kernels compiled before the limit is set
compile_learning()
table = genm.scale.ScoreTable.open(sys.argv[1])
table.read_shard(0, doc_ids=False)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
trained = genm.train(table, method="newton", starts=[[1.0] * len(table.rankers)], folds=2, memory=int(sys.argv[3]))
print(json.dumps({"weights": trained.fuser.weights_.tolist(), "verdict": trained.verdict,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))
"""


def memory(folder, options):
    """Fit, under a limit of address space, a table whose scores take four times as much as may be allocated."""
    table = write_planted(str(folder / "t"), options.queries * 40, 100, 8, shard_rows=options.queries * 40)
    scores = table.n_rows * 8 * 8  # float64, as they are while a shard is read
    limit = scores // 4
    arguments = [str(folder / "t"), str(limit), str(limit // 8)]
    # the stacks of threads and the arenas of malloc count as address space, used or not
    environment = {**os.environ, "GENM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = ["sh", "-c", 'ulimit -s 1024; exec "$@"', "sh", sys.executable, "-c", LIMITED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        return {"scores_mb": scores >> 20, "limit_mb": limit >> 20, "failed": done.stderr[-2000:]}
    return {"scores_mb": scores >> 20, "limit_mb": limit >> 20, **json.loads(done.stdout)}


def fit(folder, options):
    """Run genm fit --table, evidence included, on QUERIES x 1,000 x 8."""
    write_planted(str(folder / "t"), options.queries, 1000, 8)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    arguments = ["fit", "--table", str(folder / "t"), "-o", str(folder / "model.json"), "--format", "json"]
    done = subprocess.run([sys.executable, "-m", "genm", *arguments], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall, weights = time.monotonic() - begun, json.loads(done.stdout)["weights"]
    whole = options.queries == SIZES["fit"]
    what, note = "genm fit of 100,000 x 1,000 x 8 from Parquet", f"CPU {cpu:.0f} s; the bar is for two free cores"
    hold(f"{what}: wall", wall if whole else None, 60, unit="s", note=note)
    hold(f"{what}: memory", after.ru_maxrss / 1e6 if whole else None, 6, unit="GB")
    return {
        "queries": options.queries,
        "cpu_s": cpu,
        "wall_s": wall,
        "peak_mb": after.ru_maxrss // 1024,
        "weights": weights,
    }


class Killing:
    """An engine of which a worker is killed, or stopped, before every pass."""

    def __init__(self, engine, how, passes=None):
        self.engine, self.how, self.passes, self.n_passes, self.n_hit = engine, how, passes, 0, 0

    def evaluate(self, requests):
        self.n_passes += 1
        if self.passes is None or self.n_passes in self.passes:
            pids = self.engine.workers.pids
            if pids:
                os.kill(pids[self.n_passes % len(pids)], self.how)
                self.n_hit += 1
        return self.engine.evaluate(requests)


def few_iterations():
    """Return a fuser of three Newton iterations: a fit of about ten passes."""
    return NewtonFuser(starts=[np.ones(4)], tol=0.0, min_iter=3, max_iter=3)


def kills(folder, options):
    """Kill a worker before every pass of each fit; all fits must give the same bits."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    fuser = few_iterations()
    table = write_planted(str(folder / "t"), options.queries, 100, 4, shard_rows=options.queries * 10)
    settings = settings_for(fuser, table)
    whole = fitted(table, ThreadEngine(table, settings), fuser)
    equal, n_killed, n_passes, begun = 0, 0, 0, time.monotonic()
    engine = DaskEngine(table, settings, ClusterAddress("local:2"))
    for number in range(options.fits):
        killing = Killing(engine, signal.SIGKILL)
        found = fitted(table, killing, fuser)
        equal += found.weights_.tobytes() == whole.weights_.tobytes() and found.history_ == whole.history_
        n_killed, n_passes = n_killed + killing.n_hit, n_passes + killing.n_passes
        print(f"fit {number + 1}: {killing.n_hit} kills in {killing.n_passes} passes", file=sys.stderr, flush=True)
    engine.close()
    hold("fits with a worker killed in every pass: same bits", equal, options.fits, unit="fits", at_least=True)
    seconds = time.monotonic() - begun
    return {"fits": options.fits, "equal": equal, "killed": n_killed, "passes": n_passes, "wall_s": seconds}


def silent(folder, options):
    """Stop a worker, which then keeps its connection and says nothing; it counts as dead after worker-ttl."""
    table = write_planted(str(folder / "t"), options.queries, 100, 4, shard_rows=options.queries * 10)
    whole = fitted(table, ThreadEngine(table, settings_for(newton(4), table)), newton(4))
    engine = DaskEngine(
        table, settings_for(newton(4), table), ClusterAddress("local:2"), worker_ttl=f"{options.ttl}s"
    )
    begun = time.monotonic()
    stopping = Killing(engine, signal.SIGSTOP, passes={3})
    found = fitted(table, stopping, newton(4))
    waited = time.monotonic() - begun
    equal = found.weights_.tobytes() == whole.weights_.tobytes()
    engine.close()
    return {"equal": equal, "stopped": stopping.n_hit, "wall_s": waited, "ttl_s": options.ttl}


IN_NAMESPACE = """
import json, sys, time
from pathlib import Path
import warnings
from benchmarks.scale import few_iterations, fitted
from genm.errors import ConvergenceWarning
from genm.learn.table_fit import settings_for
from genm.scale import ClusterAddress, DaskEngine, ScoreTable

warnings.simplefilter("ignore", ConvergenceWarning)
folder, address = Path(sys.argv[1]), sys.argv[2]
table, fuser = ScoreTable.open(folder / "t"), few_iterations()
engine, evaluate = DaskEngine(table, settings_for(fuser, table), ClusterAddress(address)), DaskEngine.evaluate
seconds = []

def watched(self, requests):
    if len(seconds) == 2:
        (folder / "ready").touch()  # then the packets of a worker are dropped
        while not (folder / "dropped").exists():
            time.sleep(0.01)
    begun = time.monotonic()
    found = evaluate(self, requests)
    seconds.append(time.monotonic() - begun)
    return found

DaskEngine.evaluate = watched
n_workers = len(engine.client.scheduler_info(n_workers=-1)["workers"])
found = fitted(table, engine, fuser)
print(json.dumps({"weights": found.weights_.tobytes().hex(), "pass_s": seconds, "workers": n_workers}))
"""


def dropped(folder, options):
    """Drop all packets to and from a worker in a network namespace of its own; needs root and iproute2.

    Links stay up and no connection is closed: each side sends to an address that nobody has.
    """
    table = write_planted(str(folder / "t"), options.queries, 100, 4, shard_rows=options.queries * 10)
    warnings.simplefilter("ignore", ConvergenceWarning)
    whole = fitted(table, ThreadEngine(table, settings_for(few_iterations(), table)), few_iterations())
    here, there = f"genm-a{os.getpid()}", f"genm-b{os.getpid()}"
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{options.ttl}s"}
    environment |= {"DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False"}
    environment |= {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}

    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def start(namespace, *command):
        inside = ["ip", "netns", "exec", namespace, sys.executable, "-m", *command]
        return subprocess.Popen(inside, env=environment, stderr=subprocess.DEVNULL)

    processes = []
    try:
        for name in (here, there):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "genm0", "netns", here, "type", "veth", "peer", "name", "genm1", "netns", there)
        for name, link, own in ((here, "genm0", "10.231.0.1/24"), (there, "genm1", "10.231.0.2/24")):
            ip("-n", name, "addr", "add", own, "dev", link)
            ip("-n", name, "link", "set", link, "up")
        listen = ["--host", "0.0.0.0", "--port", "8786", "--no-dashboard"]
        processes.append(start(here, "distributed.cli.dask_scheduler", *listen))
        time.sleep(8)
        flags = ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
        worker = "distributed.cli.dask_worker"
        processes.append(start(here, worker, "tcp://127.0.0.1:8786", "--host", "127.0.0.1", *flags))
        processes.append(start(there, worker, "tcp://10.231.0.1:8786", "--host", "10.231.0.2", *flags))
        time.sleep(10)
        client = [sys.executable, "-c", IN_NAMESPACE, str(folder), "tcp://127.0.0.1:8786"]
        running = subprocess.Popen(
            ["ip", "netns", "exec", here, *client], stdout=subprocess.PIPE, text=True, env=environment
        )
        processes.append(running)
        while not (folder / "ready").exists() and running.poll() is None:
            time.sleep(0.05)
        for name, link, other in ((here, "genm0", "10.231.0.2"), (there, "genm1", "10.231.0.1")):
            nobody = ("lladdr", "02:00:00:00:00:99", "nud", "permanent")
            ip("-n", name, "neigh", "replace", other, "dev", link, *nobody)
        (folder / "dropped").touch()
        found = json.loads(running.communicate(timeout=600)[0])
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for name in (here, there):
            subprocess.run(["ip", "netns", "del", name], check=False)
    equal = found.pop("weights") == whole.weights_.tobytes().hex()
    hold("a worker whose packets are dropped: same bits", float(equal), 1, unit="fits", at_least=True)
    return {"equal": equal, "ttl_s": options.ttl, **found}


def _started(*command):
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "30s"}
    return subprocess.Popen([sys.executable, "-m", *command], env=environment, stderr=subprocess.DEVNULL)


def scheduler(folder, options):
    """Kill the scheduler in the middle of a fit, start another, and give the same call again."""
    table = write_planted(str(folder / "t"), options.queries, 100, 4, shard_rows=options.queries * 10)
    settings = {"method": "newton", "starts": [[1.0] * 4], "folds": 2}
    whole = genm.train(table, **settings)
    port, checkpoint = 20_000 + os.getpid() % 20_000, folder / "checkpoint.json"
    address = f"tcp://127.0.0.1:{port}"

    def cluster():
        listen = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        first = _started("distributed.cli.dask_scheduler", *listen)
        time.sleep(5)
        flags = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
        return [first, *(_started("distributed.cli.dask_worker", address, *flags) for _ in range(2))]

    processes = cluster()

    def kill_when_begun():
        while not checkpoint.exists():
            time.sleep(0.01)
        processes[0].kill()

    threading.Thread(target=kill_when_begun, daemon=True).start()
    failed = ""
    try:
        genm.train(table, cluster=address, checkpoint=checkpoint, **settings)
    except EngineError as error:
        failed = str(error)
    for process in processes:
        process.kill()
    processes = cluster()
    resumed = genm.train(table, cluster=address, checkpoint=checkpoint, **settings)
    for process in processes:
        process.kill()
    equal = resumed.fuser.weights_.tobytes() == whole.fuser.weights_.tobytes()
    return {"failed": failed, "equal": equal, "notes": [note.text for note in resumed.notes]}


def online(folder, options):
    """Stream a table of QUERIES x 100 x 4 once, in batches of 32, with one thread."""
    os.environ["GENM_THREADS"] = "1"
    rows = []
    for n_queries in (options.queries, 4 * options.queries):
        place = str(folder / f"t{n_queries}")
        table = write_planted(place, n_queries, 100, 4, shard_rows=1_000_000)
        fuser = OnlineFuser(batch=32, max_iter=1)
        settings = settings_for(fuser, table)
        problem = TableProblem(TableQueries(table, ThreadEngine(table, settings, memory=0), settings))
        fuser._begin(problem.beta, np.full(4, 0.25))
        begun = time.process_time()
        problem.pass_over(fuser)
        cpu = time.process_time() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        rows.append({"queries": n_queries, "per_s": n_queries / cpu, "peak_mb": peak})
        shutil.rmtree(place)
    return {"rows": rows}


MARKS = (0.1, 0.5, 1.0)
"""After which parts of the stream memory is read."""
CHUNK = 2_000


def stream(folder, options):
    """Learn from QUERIES queries of 4 x 100 in batches of 32, with one thread; each is made, seen and forgotten."""
    del folder
    os.environ["GENM_THREADS"] = "1"
    fuser = OnlineFuser(batch=32)
    fuser.partial_fit(planted_shard(0, CHUNK, 100, 4, seed=(1, 0)))  # loads the kernels
    learning, rows, marks = 0.0, [], [int(mark * options.queries) for mark in MARKS]
    for first in range(0, options.queries, CHUNK):
        chunk = planted_shard(first, min(CHUNK, options.queries - first), 100, 4, seed=(0, first))
        begun = time.process_time()
        fuser.partial_fit(chunk)
        learning += time.process_time() - begun
        while marks and first + CHUNK >= marks[0]:
            seen = marks.pop(0)
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            rows.append(
                {"queries": seen, "per_s": seen / learning, "rss_mb": pages * resource.getpagesize() / 2**20}
            )
    hold("online stream: queries of 4 x 100 per s and core", rows[-1]["per_s"], 20_000, unit="/s", at_least=True)
    hold("online stream: memory at the end over that at a tenth", rows[-1]["rss_mb"] / rows[0]["rss_mb"], 1.05)
    return {"rows": rows, "weights": fuser.weights_.tolist(), "planted": planted_weights(4).tolist()}


SHOWS = {
    "growth": growth, "memory": memory, "fit": fit, "kills": kills, "silent": silent, "dropped": dropped,
    "scheduler": scheduler,
    "online": online, "stream": stream,
}  # fmt: skip
SIZES = {"growth": 2000, "memory": 1000, "fit": 100_000, "online": 100_000, "stream": 1_000_000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("show", choices=SHOWS)
    parser.add_argument("--queries", type=int, help="how large: see each show")
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--ttl", type=int, default=30)
    parser.add_argument("--folder", default=None, help="where tables are written")
    options = parser.parse_args()
    options.queries = options.queries or SIZES.get(options.show, 200)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = SHOWS[options.show](Path(folder), options)
    print(json.dumps({"show": options.show, "cores": os.cpu_count(), **found}, indent=1))


if __name__ == "__main__":
    main()
