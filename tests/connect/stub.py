"""A local HTTP server that plays search engines: answers are scripted by the test, requests are kept."""

import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Reply:
    """What the server sends: a status, a body and headers; `delay` seconds late."""

    def __init__(self, body, status=200, headers=None, delay=0.0, kind="application/json"):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.delay = status, delay
        self.headers = {"content-type": kind, **(headers or {})}


class Stub:
    """The server's address, what it was asked, and the function that answers: `(method, path, body) -> Reply`."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.headers = []
        self.lock = threading.Lock()
        self.address = ""

    def bodies(self, ending):
        """Return the bodies sent to paths with this ending, in their order."""
        return [body for _, path, body in self.requests if path.partition("?")[0].endswith(ending)]


@contextmanager
def serving(answer, certificate=None):
    """Serve on a free port of the loopback interface until the block ends."""
    stub = Stub(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            size = int(self.headers.get("content-length") or 0)
            content = self.rfile.read(size)
            body = json.loads(content) if content else None
            with stub.lock:
                stub.requests.append((self.command, self.path, body))
                stub.headers.append(dict(self.headers.items()))
            reply = stub.answer(self.command, self.path, body)
            if reply.delay:
                stopped.wait(reply.delay)
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True  # the client has gone: it waited too long

        do_GET = do_POST = do_PUT = handle_any

        def log_message(self, *_):
            pass

    stopped = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    stub.address = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
    try:
        yield stub
    finally:
        stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
