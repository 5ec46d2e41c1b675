"""Servers that the tests start: on loopback, at a free port, in a folder of their own, stopped at the end."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engines.downloads import Unavailable

_STARTING = 120.0
_STOPPING = 20.0


def free_port() -> int:
    """Return a port of loopback that nothing listens on now."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def serving(
    command: Sequence[str | Path], log: Path, ready: str, *, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the block ends; it is up when `ready` (an address) answers.

    Its standard input stays open: a server that ends with its input does not outlive a killed test process.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=environment,
        )
    try:
        _wait(process, log, ready)
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        try:
            process.wait(_STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", log: Path, ready: str) -> None:
    end = time.monotonic() + _STARTING
    while time.monotonic() < end:
        if process.poll() is not None:
            tail = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["nothing was printed"]
            raise Unavailable(f"the server ended with {process.returncode}: {tail[0][:200]}")
        try:
            with urllib.request.urlopen(ready, timeout=5):
                return
        except OSError:  # not listening yet, or an error status while it loads
            pass
        time.sleep(0.2)
    raise Unavailable(f"the server did not answer within {_STARTING:g} s")


def call(address: str, method: str = "GET", body: object = None, kind: str = "application/json") -> Any:
    """Send a request and return the JSON of the answer; an error status fails with what the server said."""
    data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    request = urllib.request.Request(address, data, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{method} {address}: {error.code} {error.read()[:2000]!r}") from None
