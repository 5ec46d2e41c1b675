"""A local server that plays a language model: slow, wrong, hostile or busy on demand."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


def completion(content, **usage):
    if not isinstance(content, str):
        content = json.dumps(content)
    return {"choices": [{"message": {"role": "assistant", "content": content}}], "usage": usage}


def graded(grade, confidence=0.9, reason="because"):
    return completion(
        {"grade": grade, "confidence": confidence, "reason": reason}, prompt_tokens=100, completion_tokens=10
    )


class Endpoint:
    """A server that answers what a function says, and keeps what it was asked."""

    def __init__(self):
        self.asked, self.headers, self.answer = [], [], lambda task, n: graded(2)
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):
                body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
                with lock:
                    self.asked.append(body)
                    self.headers.append({name.lower(): value for name, value in handler.headers.items()})
                    n = len(self.asked)
                found = self.answer(json.loads(body["messages"][1]["content"]), n)
                status, extra, content = found if isinstance(found, tuple) else (200, {}, found)
                content = content if isinstance(content, bytes) else json.dumps(content).encode()
                handler.send_response(status)
                for name, value in {**extra, "content-length": str(len(content))}.items():
                    handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def endpoint():
    endpoint = Endpoint()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()
