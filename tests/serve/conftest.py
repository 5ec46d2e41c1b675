"""A service over a throw-away store, called in this process."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("msgspec", reason="needs the extra serve")
pytest.importorskip("httpx", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
import uvicorn
from export.conftest import installed_tools, ordinary_user, packaged_tools
from serve.cases import model
from starlette.testclient import TestClient

from genm.serve.app import Limits, create_app
from genm.serve.engine import Engine, Feedback
from genm.serve.learner import Rules
from genm.serve.security import Tokens
from genm.serve.server import TimedProtocol
from genm.serve.service import Service
from genm.serve.store import SqliteStore


class Running:
    """A started service and a client of it."""

    def __init__(self, path, given=None, rules=None, tokens=None, limits=None):
        self.engine = Engine(SqliteStore(path))
        self.engine.start(given or model(), rules or Rules(influence=None))
        self.service = Service(self.engine)
        app = create_app(self.service, tokens=tokens, hosts=("testserver",), limits=limits or Limits())
        self.http = TestClient(app, raise_server_exceptions=False)

    def post(self, path, body, **options):
        content = body if isinstance(body, bytes | str) else msgspec.json.encode(body)
        headers = {"content-type": "application/json", **options.pop("headers", {})}
        return self.http.post(path, content=content, headers=headers, **options)

    def feedback(self, *events):
        return self.post("/v1/feedback", {"events": list(events)})


class Live:
    """A service on a port of its own."""

    def __init__(self, path, given, tokens=None, limits=None, max_ap_loss=1.0):
        self.engine = Engine(SqliteStore(path))
        self.engine.start(given, Rules(influence=None, max_ap_loss=max_ap_loss, prior_queries=2))
        self.service = Service(self.engine)
        app = create_app(self.service, tokens=tokens, hosts=("127.0.0.1",), limits=limits or Limits())
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        config = uvicorn.Config(
            app, http=TimedProtocol, ws="none", log_level="warning", timeout_graceful_shutdown=1
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def feedback(self, *events):
        lessons = [self.engine.lessons.prepare(event, ("test",), "event", {}) for event in events]
        work = Feedback(lessons)
        self.engine.submit(work)
        return work.done.result(30)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)
        self.engine.stop()


@pytest.fixture
def live(tmp_path):
    running = []

    def start(given=None, **options):
        running.append(Live(tmp_path / "store.sqlite", given or model(), **options))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def start(tmp_path):
    running = []

    def make(**options):
        running.append(Running(options.pop("path", tmp_path / "store.sqlite"), **options))
        return running[-1]

    yield make
    for one in running:
        one.engine.stop()


@pytest.fixture
def service(start):
    return start()


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path / "tokens.json")


@pytest.fixture(scope="session")
def postgresql():
    """A throw-away PostgreSQL server; gives a function that makes an empty database and returns its address."""
    psycopg = pytest.importorskip("psycopg", reason="needs the extra postgresql")
    if os.environ.get("GENM_TESTS_POSTGRESQL") == "none":
        pytest.skip("PostgreSQL is hidden: GENM_TESTS_POSTGRESQL is none")
    tools = [*installed_tools(), *packaged_tools()]
    if not tools:
        pytest.skip("PostgreSQL is not installed, neither the system's nor pgserver's")
    user, home = ordinary_user(), Path(tempfile.mkdtemp(prefix="genm-pg"))  # a short path: it holds the socket
    if user is not None:
        shutil.chown(home, user)
    data = home / "data"

    def call(*words):
        done = subprocess.run(words, capture_output=True, text=True, user=user, check=False, cwd="/")
        assert done.returncode == 0, done.stderr

    try:
        try:
            call(tools[0] / "initdb", "-D", data, "-A", "trust", "-U", "genm", "--no-sync", "-E", "UTF8")
        except PermissionError:
            pytest.skip(f"PostgreSQL refuses root, and {user} may not enter {tools[0]}")
        options = f"-k {home} -c listen_addresses= -c fsync=off"
        command = [tools[0] / "pg_ctl", "-D", data, "-o", options, "-l", home / "log", "-w", "start"]
        subprocess.run(command, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)
        address = f"postgresql://genm@/{{}}?host={home}"
        n_made = 0

        def make():
            nonlocal n_made
            n_made += 1
            with psycopg.connect(address.format("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE d{n_made}")
            return address.format(f"d{n_made}")

        yield make
        call(tools[0] / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
