"""A service over a throw-away store, called in this process."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("msgspec", reason="needs the extra serve")
pytest.importorskip("httpx", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
from export.conftest import installed_tools, ordinary_user, packaged_tools
from serve.cases import model
from starlette.testclient import TestClient

from genm.serve.app import Limits, create_app
from genm.serve.engine import Engine
from genm.serve.learner import Rules
from genm.serve.security import Tokens
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
