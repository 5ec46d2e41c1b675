"""A service over a throw-away store, called in this process."""

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("msgspec", reason="needs the extra serve")
pytest.importorskip("httpx", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
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
