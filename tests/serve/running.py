"""Services for the tests: called in this process, or listening on a port of their own."""

import socket
import threading
import time

import msgspec
import uvicorn
from serve.cases import model
from starlette.testclient import TestClient

from genm.serve.app import create_app
from genm.serve.engine import Engine, Feedback
from genm.serve.http import Limits
from genm.serve.learner import Rules
from genm.serve.relearning import learn_anew
from genm.serve.server import TimedProtocol
from genm.serve.service import Service
from genm.serve.store import SqliteStore


class Running:
    """A started service and a client of it."""

    def __init__(self, path, given=None, rules=None, tokens=None, limits=None, telemetry=None):
        self.engine = Engine(SqliteStore(path))
        self.engine.start(given or model(), rules or Rules(influence=None))
        self.service = Service(self.engine, lambda order: learn_anew(self.engine.store, order))
        app = create_app(
            self.service, tokens=tokens, hosts=("testserver",), limits=limits or Limits(), telemetry=telemetry
        )
        self.http = TestClient(app, raise_server_exceptions=False)

    def post(self, path, body, **options):
        content = body if isinstance(body, bytes | str) else msgspec.json.encode(body)
        headers = {"content-type": "application/json", **options.pop("headers", {})}
        return self.http.post(path, content=content, headers=headers, **options)

    def feedback(self, *events):
        return self.post("/v1/feedback", {"events": list(events)})


class Live:
    """A service on a port of its own."""

    def __init__(self, path, given, tokens=None, limits=None, max_ap_loss=1.0, influence=None):
        self.engine = Engine(SqliteStore(path))
        self.engine.start(given, Rules(influence=influence, max_ap_loss=max_ap_loss, prior_queries=2))
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
        self.thread.join(60)
        assert not self.thread.is_alive(), "the service did not stop"
        self.engine.stop()
