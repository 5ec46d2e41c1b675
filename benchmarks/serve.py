"""The service beside a JSON echo on the same stack, in one run: fusions and durable feedback per second.

The echo decodes the same body and encodes it again; it bounds what any service in this stack can do. Rounds of the
two take turns, so that a busy machine slows both. The server is kept on one core where the system allows it. Wall
clock figures (per second, median, p99) are worth something on an idle machine only; the load is in the result. CPU
figures hold on a busy machine too, beside the echo's in the same run: a core that others share is slower.

    python -m benchmarks.serve --seconds 3 --rounds 3
    python -m benchmarks.serve --requests 1000000     # memory and descriptors over many requests
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from starlette.types import ASGIApp

from benchmarks._bars import hold
from genm.model import Model, save_model
from genm.normalizers import Normalizer
from genm.serve.app import create_app
from genm.serve.engine import Engine, Feedback
from genm.serve.http import Limits
from genm.serve.learner import Lesson, Rules
from genm.serve.messages import FeedbackEvent
from genm.serve.server import short_pauses
from genm.serve.service import Service
from genm.serve.store import SqliteStore

RANKERS = ("bm25", "dense", "sparse", "rerank")
WHILE_LEARNING = "fuse, columns, while one client sends judgments"


def make_model() -> Model:
    return Model(RANKERS, (0.25,) * 4, (Normalizer(),) * 4, (None,) * 4, "given", "AP")


def make_lists(draw: random.Random, depth: int, pool: int) -> dict:
    return {
        name: [(f"doc-{doc:07}", round(draw.random() * 20, 4)) for doc in draw.sample(range(pool), depth)]
        for name in RANKERS
    }


def as_columns(runs: dict) -> dict:
    return {
        name: {"doc_ids": [doc for doc, _ in rows], "scores": [score for _, score in rows]}
        for name, rows in runs.items()
    }


def request_bytes(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """A plain socket: the client must not be what is measured."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def send(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        data = self.rest
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head, parts, size = data[:end], [data[end + 4 :]], len(data) - end - 4
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n", 1)[0])
        while size < length:
            parts.append(self._more())
            size += len(parts[-1])
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError((head + b"".join(parts))[:500].decode())
        return b"".join(parts)[:length]

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 18)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


def cpu_seconds(process: subprocess.Popen, *, of_children: bool = False) -> float:
    """Return the processor time of a process, in all its threads; or of processes that it started and ended."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[13:15] if of_children else fields[11:13])) / os.sysconf("SC_CLK_TCK")


class Round(NamedTuple):
    """What one round measured."""

    per_second: float
    median_ms: float
    p99_ms: float
    cpu_ms: float
    """Processor time of the server for one request: a busy machine changes it less than it does the others."""


def load(process: subprocess.Popen, port: int, requests: list[bytes], seconds: float, n_connections: int) -> Round:
    """Send requests for some time."""
    times: list[float] = []
    lock = threading.Lock()
    stop_at = time.perf_counter() + seconds

    def work(number: int) -> None:
        connection, own, i = Connection(port), [], number
        while (begun := time.perf_counter()) < stop_at:
            connection.send(requests[i % len(requests)])
            own.append(time.perf_counter() - begun)
            i += 1
        connection.socket.close()
        with lock:
            times.extend(own)

    begun, cpu = time.perf_counter(), cpu_seconds(process)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(n_connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    cpu_ms = 1000 * (cpu_seconds(process) - cpu) / len(times)
    times.sort()
    return Round(len(times) / took, 1000 * times[len(times) // 2], 1000 * times[int(0.99 * len(times))], cpu_ms)


ECHO = """
import msgspec, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from genm.serve.server import TimedProtocol
decoder, encoder = msgspec.json.Decoder(), msgspec.json.Encoder()
async def echo(request):
    return Response(encoder.encode(decoder.decode(await request.body())), media_type="application/json")
config = uvicorn.Config(Starlette(routes=[Route("/", echo, methods=["POST"])]), port=int(sys.argv[1]),
                        http=TimedProtocol, log_level="warning", access_log=False)
uvicorn.Server(config).run()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(arguments: list[str], port: int, core: int | None):
    """Start a server process and wait until it listens."""
    process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.DEVNULL)
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            if process.poll() is not None:
                raise RuntimeError("the server did not start")
            time.sleep(0.1)
        if core is not None:
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), {core})
        yield process
    finally:
        process.terminate()
        process.wait(30)


async def call(app: ASGIApp, body: bytes) -> None:
    """Send one fuse request to the application itself."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict] = []

    async def receive() -> dict:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: dict) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    address = {"path": "/v1/fuse", "raw_path": b"/v1/fuse", "root_path": "", "query_string": b"", "scheme": "http"}
    await app(
        {"type": "http", "method": "POST", "http_version": "1.1", "headers": headers, **address}, receive, send
    )
    if sent[0]["status"] != 200:
        raise RuntimeError(str(sent)[:500])


def in_a_row(folder: Path, n_requests: int) -> dict:
    """Processor time of eight fuse requests in a row, without HTTP: what waits on one core at eight connections.

    Other processes do not change it, so it says on a busy machine what would stop requests on a quiet one.
    """
    engine = Engine(SqliteStore(folder / "in-a-row.sqlite"))
    engine.start(make_model(), Rules(influence=None))
    service = Service(engine)
    service.warm_up()
    app = create_app(service, tokens=None, hosts=("127.0.0.1",), limits=Limits(rate=0.0))
    draw = random.Random(1)
    lists = [make_lists(draw, 1000, 3000) for _ in range(20)]

    async def measure(bodies: list[bytes]) -> list[float]:
        times = []
        for number in range(n_requests):
            begun = time.thread_time()
            await call(app, bodies[number % len(bodies)])
            times.append(1000 * (time.thread_time() - begun))
        return times

    found = {}
    with short_pauses():
        for name, form in (("rows", dict), ("columns", as_columns)):
            times = asyncio.run(measure([msgspec.json.encode({"runs": form(one)}) for one in lists]))
            eight = sorted(sum(times[at : at + 8]) for at in range(len(times) - 7))
            found[name] = {
                "median ms of one": round(statistics.median(times), 2),
                "p99 ms of eight": round(eight[int(0.99 * len(eight))], 1),
                "greatest ms of eight": round(eight[-1], 1),
            }
    engine.stop()
    return found


Target = tuple[subprocess.Popen, int]
"""A server and its port."""


@contextlib.contextmanager
def learning(port: int):
    """Send judged queries all the while, one request after the other."""
    bodies, stop = feedback_bodies(200, 20, start=500_000), threading.Event()

    def work() -> None:
        connection = Connection(port)
        for body in bodies:
            if stop.is_set():
                break
            connection.send(request_bytes("/v1/feedback", body))
        connection.socket.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def fusing(options: argparse.Namespace, service: Target, echo: Target) -> dict:
    draw = random.Random(1)
    lists = [make_lists(draw, 1000, 3000) for _ in range(20)]
    rows = [msgspec.json.encode({"runs": one}) for one in lists]
    columns = [msgspec.json.encode({"runs": as_columns(one)}) for one in lists]
    cases = {
        "echo": (echo, [request_bytes("/", body) for body in rows]),
        "fuse, rows": (service, [request_bytes("/v1/fuse", body) for body in rows]),
        "fuse, columns": (service, [request_bytes("/v1/fuse", body) for body in columns]),
    }
    found: dict[str, list[Round]] = {name: [] for name in (*cases, WHILE_LEARNING)}
    for target, requests in cases.values():
        load(*target, requests, 0.5, 2)
    for _ in range(options.rounds):
        for name, (target, requests) in cases.items():
            found[name].append(load(*target, requests, options.seconds, 8))
        with learning(service[1]):
            found[WHILE_LEARNING].append(load(*service, cases["fuse, columns"][1], options.seconds, 8))
    middle = {
        name: Round(*(statistics.median(values) for values in zip(*rounds, strict=True)))
        for name, rounds in found.items()
    }
    echoed, by_rows = middle["echo"], middle["fuse, rows"]
    return {
        name: {
            "per second": round(one.per_second, 1),
            "of echo": round(one.per_second / echoed.per_second, 3),
            "of rows": round(one.per_second / by_rows.per_second, 3),
            "median ms": round(one.median_ms, 1),
            "p99 ms": round(one.p99_ms, 1),
            "p99 of echo's": round(one.p99_ms / echoed.p99_ms, 2),
            "CPU ms per request": round(one.cpu_ms, 3),
            "per CPU second": round(1000 / one.cpu_ms),
            "CPU, of echo": round(echoed.cpu_ms / one.cpu_ms, 3),
            "CPU, of rows": round(by_rows.cpu_ms / one.cpu_ms, 3),
        }
        for name, one in middle.items()
    }


def feedback_bodies(n: int, size: int, start: int = 0) -> list[bytes]:
    draw = random.Random(2)
    bodies = []
    for number in range(start, start + n):
        events = []
        for i in range(size):
            runs = make_lists(draw, 10, 30)
            relevant = {f"doc-{doc:07}": 1 for doc in draw.sample(range(30), 3)}
            key = f"{number}-{i}-{draw.random()}"
            events.append({"key": key, "query_id": "q", "runs": as_columns(runs), "judgments": relevant})
        bodies.append(msgspec.json.encode({"events": events}))
    return bodies


def http_feedback(options: argparse.Namespace, process: subprocess.Popen, port: int) -> dict:
    """Eight clients, batches of 100 small judged queries, learned from and on disk before each answer."""
    size, per_client = 100, options.batches
    bodies = [feedback_bodies(per_client, size, 1000 * client) for client in range(8)]

    def work(own: list[bytes]) -> None:
        connection = Connection(port)
        for body in own:
            connection.send(request_bytes("/v1/feedback", body))
        connection.socket.close()

    begun, cpu, learning = time.perf_counter(), cpu_seconds(process), cpu_seconds(process, of_children=True)
    threads = [threading.Thread(target=work, args=(own,)) for own in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, cpu = time.perf_counter() - begun, cpu_seconds(process) - cpu
    learning = cpu_seconds(process, of_children=True) - learning
    n = 8 * per_client * size
    return {
        "events": n,
        "seconds": round(took, 1),
        "per second": round(n / took),
        "per CPU second": round(n / cpu),
        "CPU seconds of processes that learned anew": round(learning, 1),
    }


def store_only(folder: Path, n_batches: int) -> dict:
    """Eight threads hand over batches of 100 events with nothing to learn from: keys, digests, rows, flush."""
    rules = Rules(influence=None)
    engine = Engine(SqliteStore(folder / "store-only.sqlite"))
    engine.start(make_model(), rules)
    draw = random.Random(3)
    runs = msgspec.convert(as_columns(make_lists(draw, 10, 30)), dict)
    batches = [
        [
            Lesson(FeedbackEvent(f"{client}-{b}-{i}", "q", runs, judgments={"x": 0}), "judgments", ("x",), rules)
            for i in range(100)
        ]
        for client in range(8)
        for b in range(n_batches)
    ]

    def work(client: int) -> None:
        for b in range(n_batches):
            one = Feedback(batches[client * n_batches + b])
            engine.submit(one)
            one.done.result(60)

    begun = time.perf_counter()
    threads = [threading.Thread(target=work, args=(client,)) for client in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    commits = engine.n_commits
    engine.stop()
    n = 800 * n_batches
    return {"events": n, "per second": round(n / took), "events per flush": round(n / commits)}


def endurance(port: int, process: subprocess.Popen, n_requests: int) -> dict:
    """Memory and descriptors over many small requests: nine fusions, then one event that is learned from."""
    runs = make_lists(random.Random(4), 10, 30)
    fuse = request_bytes("/v1/fuse", msgspec.json.encode({"runs": runs}))
    relevant = {runs["bm25"][0][0]: 1}

    def sizes() -> tuple[float, int]:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        n_open = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, n_open

    def work(part: int, client: int, n: int) -> None:
        connection = Connection(port)
        for number in range(n):
            request = fuse
            if number % 10 == 9:
                event = {"key": f"{part}-{client}-{number}", "query_id": "q", "runs": runs, "judgments": relevant}
                request = request_bytes("/v1/feedback", msgspec.json.encode({"events": [event]}))
            connection.send(request)
        connection.socket.close()

    def spread(part: int, n: int) -> None:
        threads = [threading.Thread(target=work, args=(part, client, n // 8)) for client in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.5)

    spread(0, max(2000, n_requests // 10))
    measured = [sizes()]
    for part in range(1, 11):
        spread(part, n_requests // 10)
        measured.append(sizes())
        print(f"{part * n_requests // 10:,} requests: {measured[-1]}", file=sys.stderr, flush=True)
    before, after = measured[0], measured[-1]
    return {
        "requests": n_requests,
        "memory MB": [round(memory, 1) for memory, _ in measured],
        "memory ratio": round(after[0] / before[0], 4),
        "descriptors": [before[1], after[1]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=10, help="batches of 100 events for each of 8 clients")
    parser.add_argument("--requests", type=int, default=0, help="small requests over which memory is watched")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    core = cores[-1] if len(cores) > 1 else None
    if core is not None:
        os.sched_setaffinity(0, set(cores[:-1]))
    result: dict = {"python": sys.version.split()[0], "cores": len(cores), "load": os.getloadavg()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(make_model(), folder / "model.json")
        (folder / "echo.py").write_text(ECHO)
        service_port, echo_port = free_port(), free_port()
        run = ["-m", "genm", "serve", str(folder / "model.json"), "--port", str(service_port)]
        run += ["--rate", "0", "--influence", "0"]
        with (
            server(run, service_port, core) as process,
            server([str(folder / "echo.py"), str(echo_port)], echo_port, core) as echo,
        ):
            if options.requests:
                result["endurance"] = endurance(service_port, process, options.requests)
            else:
                result["fusing 4 x 1000"] = fusing(options, (process, service_port), (echo, echo_port))
                result["feedback over HTTP"] = http_feedback(options, process, service_port)
        if not options.requests:
            if core is not None:
                os.sched_setaffinity(0, set(cores))
            result["fusing, eight in a row, CPU"] = in_a_row(folder, 750)
            result["feedback, store only"] = store_only(folder, options.batches)
    result["load at the end"] = os.getloadavg()
    print(json.dumps(result, indent=2))
    if not options.requests:
        hold_bars(result)


def hold_bars(result: dict) -> None:
    """Hold the figures to the bars of the service."""
    fused, waits = result["fusing 4 x 1000"], f"wall clock, load {result['load'][0]:.1f}: needs an idle machine"
    rows, columns = fused["fuse, rows"], fused["fuse, columns"]
    hold("/v1/fuse, rows, CPU beside an echo's", rows["CPU, of echo"], 350 / 555, at_least=True)
    hold("/v1/fuse, columns, CPU beside rows'", columns["CPU, of rows"], 1.5, at_least=True)
    for name in ("fuse, rows", "fuse, columns", WHILE_LEARNING):
        hold(f"p99 at 8 connections: {name}", fused[name]["p99 ms"], 50, unit="ms", note=waits)
    stored, sent = result["feedback, store only"], result["feedback over HTTP"]
    hold("durable events, store only, per second", stored["per second"], 15_000, unit="", at_least=True, note=waits)
    hold("durable events over HTTP, per second", sent["per second"], 5_000, unit="", at_least=True, note=waits)
    hold("the same per CPU second of the server", sent["per CPU second"], 5_000, unit="", at_least=True)


if __name__ == "__main__":
    main()
