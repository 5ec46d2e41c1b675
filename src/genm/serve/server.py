"""Starting the service: where it listens, whom it lets in, and how long it waits for slow clients."""

import asyncio
import gc
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from genm.errors import InputError, MissingExtraError
from genm.model import load_model
from genm.serve.app import create_app
from genm.serve.automatic_relearning import DEFAULT_REST, AutomaticRelearning
from genm.serve.engine import Engine
from genm.serve.http import Limits
from genm.serve.learner import Rules
from genm.serve.relearning import LearningProcess
from genm.serve.security import Tokens, is_loopback
from genm.serve.service import Service
from genm.serve.store import existing_store, open_store

if TYPE_CHECKING:
    from genm.serve.telemetry import Telemetry

_OBJECTS_PER_COLLECTION = 20_000
"""New containers after which the garbage collector runs; lists of 4 x 1,000 rows and their answer have 6,500."""

_SWITCH_INTERVAL = 0.001
"""Seconds after which a thread that works lets another one run."""

HEADER_SECONDS = 10.0
"""A client that has not sent its headers within this time is cut off."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve."""

    model: str | None = None
    """The model file; None goes on with the store's."""
    store: str | None = None
    """A SQLite file or postgresql://...; the model's name with .sqlite if it is not given."""
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: str | None = None
    certificate: str | None = None
    private_key: str | None = None
    hosts: tuple[str, ...] = ()
    """Further names under which the service may be called."""
    limits: Limits = field(default_factory=Limits)
    rules: Rules | None = None
    relearn_every: float = DEFAULT_REST
    """The least number of seconds between two times that the service learns from its stored feedback by itself; 0
    never does."""
    telemetry: str | None = None
    """The address of an OpenTelemetry collector; None makes no spans."""


def store_place(settings: Settings) -> str:
    """Return where the store is."""
    if settings.store is not None:
        return settings.store
    if settings.model is None or settings.model == "-":
        raise InputError("--store: expected the place of the store, because no model file is named.")
    return str(Path(settings.model).with_suffix(".sqlite"))


def check_settings(settings: Settings) -> Tokens | None:
    """Refuse settings that are not safe; returns the tokens, None where none are needed."""
    if (settings.certificate is None) != (settings.private_key is None):
        raise InputError("--tls-cert and --tls-key: expected both or none.")
    return tokens_for(settings.host, settings.tokens)


def tokens_for(host: str, path: str | None) -> Tokens | None:
    """Return the tokens of a file, None without one; an address that other machines can reach needs a token."""
    tokens = None if path is None else Tokens(path)
    if tokens is not None and not len(tokens):
        raise InputError(
            f"--tokens {path}: expected at least one token; found none. "
            f"Make one with: genm serve token add NAME --tokens {path}"
        )
    if tokens is None and not is_loopback(host):
        raise InputError(
            f"--host {host}: expected --tokens FILE, because other machines can reach this address. "
            f"Make a token with: genm serve token add NAME --tokens FILE"
        )
    return tokens


def stored_rules(settings: Settings) -> Rules | None:
    """Return the rules of the store, None where there is no store yet."""
    place = store_place(settings)
    if not place.startswith(("postgresql://", "postgres://")) and not Path(place).exists():
        return None
    with existing_store(place) as store, store.snapshot() as session:
        event = session.last_event("rules")
    return None if event is None else msgspec.json.decode(event.body, type=Rules)


def serve(settings: Settings, ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve until a signal stops it; whatever was acknowledged is on disk.

    `ready` is called with the address once requests are answered.
    """
    tokens = check_settings(settings)
    telemetry = None if settings.telemetry is None else _telemetry(settings.telemetry)
    model = None if settings.model is None else load_model(settings.model)
    engine = Engine(open_store(store_place(settings)))
    engine.start(model, settings.rules)
    learn, automatic = LearningProcess(), None
    try:
        service = Service(engine, learn)
        service.warm_up()
        if settings.relearn_every > 0.0:
            automatic = AutomaticRelearning(engine, learn, rest=settings.relearn_every)
            service.automatic = automatic
            automatic.start()
        hosts = ("127.0.0.1", "localhost", "::1", settings.host, *settings.hosts)
        app = create_app(
            service, tokens=tokens, hosts=tuple(dict.fromkeys(hosts)), limits=settings.limits, telemetry=telemetry
        )
        with short_pauses():
            listen(
                app,
                settings.host,
                settings.port,
                certificate=settings.certificate,
                private_key=settings.private_key,
                ready=ready,
            )
    finally:
        if automatic is None:
            learn.stop()
        else:
            automatic.stop(learn.stop)
        engine.stop()
        if telemetry is not None:
            telemetry.close()


@contextmanager
def short_pauses() -> Iterator[None]:
    """Keep requests from waiting long for the garbage collector or for other threads.

    What was loaded before the first request is left out of collections: a full one would visit 98,000 objects, and
    all requests would wait for it. The objects of one request are freed without the collector; its search for
    cycles among them took 5 to 9 % of a request with 4 lists of 1,000 rows.

    While the writer learns, it lets the thread that answers requests run after Python's switch interval. With the
    usual 5 ms a small request took 7 to 12 ms beside a busy thread, with 1 ms 1.4 ms (medians, busy machine).
    """
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *threshold[1:])
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
        gc.unfreeze()


def _telemetry(url: str) -> "Telemetry":
    try:
        from genm.serve.telemetry import telemetry_to
    except ImportError:
        raise MissingExtraError("--telemetry", "serve,telemetry") from None
    return telemetry_to(url)


def listen(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    certificate: str | None,
    private_key: str | None,
    ready: Callable[[str], None],
) -> None:
    """Answer requests until a signal comes; `ready` is called with the address once they are answered."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=TimedProtocol,
        ws="none",
        lifespan="on",
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        limit_concurrency=2048,
        backlog=2048,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
    )
    try:
        _Server(config, ready).run()
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"--host {host} --port {port}: {error}.") from error


class _Server(uvicorn.Server):
    """Tells when it listens, and on which port."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            scheme = "https" if self.config.ssl_certfile else "http"
            self._ready(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")


class TimedProtocol(HttpToolsProtocol):
    """HTTP that cuts off clients whose headers do not come."""

    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the headers."""
        super().connection_made(transport)
        self._wait_for_headers()

    def on_message_begin(self) -> None:
        """Wait for the headers of a further request."""
        super().on_message_begin()
        self._wait_for_headers()

    def on_headers_complete(self) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        self._stop_waiting()
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
