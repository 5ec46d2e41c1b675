"""The store in PostgreSQL, shared by several replicas.

Any replica takes feedback. The one that writes holds an advisory lock for the length of its transaction, first
reads what others have added to the log, and then learns: at every moment there is one learner, and when it dies the
server releases its lock at once. Lock and writes belong to one transaction of one connection, so a learner that has
lost its lock, because it hung or its connection broke, can no longer write. The other replicas are told of new
versions by LISTEN and NOTIFY.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import LockNotAvailable

from genm.errors import StoreError
from genm.serve.store import INDEXES, SCHEMA_VERSION, Session, Store

_LOCK = 0x67656E6D  # "genm"
_RELEARNING_LOCK = _LOCK + 1
_CHANNEL = "genm_log"
_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "application_name": "genm serve",
}
"""A connection whose other end is gone is noticed within seconds."""

IDLE_MS = 8000
"""A writer that hangs in its transaction loses it, and its lock, after this time; others wait no longer."""

_SESSION = (
    "SET synchronous_commit = on",
    "SET lock_timeout = '20s'",
    "SET tcp_keepalives_idle = 3",
    "SET tcp_keepalives_interval = 2",
    "SET tcp_keepalives_count = 2",
)

_END_HUNG_WRITER = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND (classid, objid, objsubid) = (0, %s, 1) "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - %s * interval '1 ms'"
)
"""Ends the connection that holds the lock while the server has been waiting for its client all the time."""


class PostgresStore(Store):
    """Tables in a PostgreSQL database, in the schema that the address's search_path names first."""

    marker = "%s"
    schema = (
        "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS events (sequence BIGINT PRIMARY KEY, request BIGINT NOT NULL, "
        "key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, clients TEXT NOT NULL, received BIGINT NOT NULL, "
        "body BYTEA NOT NULL, digest BYTEA NOT NULL, version BIGINT NOT NULL, outcome TEXT NOT NULL, "
        "ap DOUBLE PRECISION, moved BIGINT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS versions (version BIGINT PRIMARY KEY, parent BIGINT, "
        "sequence BIGINT NOT NULL, created BIGINT NOT NULL, reason TEXT NOT NULL, weights TEXT NOT NULL, "
        "state TEXT, promoted INTEGER NOT NULL, recent_ap DOUBLE PRECISION, champion_recent_ap DOUBLE PRECISION)",
        "CREATE TABLE IF NOT EXISTS aliases (name TEXT PRIMARY KEY, version BIGINT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS comparisons (sequence BIGINT PRIMARY KEY, first BIGINT NOT NULL, "
        "second BIGINT NOT NULL, credit INTEGER NOT NULL)",
        "CREATE TABLE IF NOT EXISTS audit (at BIGINT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, "
        "detail TEXT NOT NULL)",
    )

    def __init__(self, address: str) -> None:
        self._given = address
        self._address = make_conninfo(address, **_OPTIONS)
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None
        self._reading = threading.Lock()
        self._listener: threading.Thread | None = None
        self._stopped = threading.Event()

    @property
    def place(self) -> str:
        """Return host and database; never the password."""
        parts = conninfo_to_dict(self._address)
        return f"postgresql://{parts.get('host') or 'local'}/{parts.get('dbname') or ''}"

    @property
    def address(self) -> str:
        """Return the address as it was given, with the password if it has one."""
        return self._given

    def open(self) -> None:
        """Connect, and make the tables where there are none."""
        self._stopped.clear()
        with self.transaction() as session:
            for statement in (*self.schema, *INDEXES):
                session.rows(statement)
            session.rows("INSERT INTO meta VALUES ('schema', ?) ON CONFLICT (name) DO NOTHING", str(SCHEMA_VERSION))
            self.check_schema(session)

    def close(self) -> None:
        """Disconnect."""
        self._stopped.set()
        if self._listener is not None:
            self._listener.join()
            self._listener = None
        self._drop_connections()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._address, autocommit=True)
        for statement in (*_SESSION, f"SET idle_in_transaction_session_timeout = {IDLE_MS}"):
            connection.execute(statement)
        connection.autocommit = False
        # whatever the database's default: what is read after the wait for the lock must be what is stored by then
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        return connection

    def _drop_connections(self) -> None:
        for connection in (self._writer, self._reader):
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    connection.close()
        self._writer = self._reader = None

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Write alone: what other replicas write waits for the lock."""
        try:
            if self._writer is None:
                self._writer = self._connect()
            with self._writer.transaction():
                self._take_lock(self._writer)
                yield Session(self._writer, self.marker)
                self._writer.execute(f"NOTIFY {_CHANNEL}")
        except (psycopg.Error, OSError) as error:
            self._drop_connections()
            raise StoreError(f"{self.place}: expected a store that can be written; {_text(error)}.") from error

    def _take_lock(self, writer: psycopg.Connection[Any]) -> None:
        """Wait for the lock, and end the connection of a writer that hangs with it.

        The server itself ends one that is idle in its transaction, but not one that stopped halfway through a
        series of statements, which does not count as idle.
        """
        if writer.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone() == (True,):
            return
        try:
            with writer.transaction():  # a savepoint: the transaction goes on if the wait fails
                writer.execute(f"SET LOCAL lock_timeout = {IDLE_MS}")
                writer.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        except LockNotAvailable:
            with psycopg.connect(self._address, autocommit=True) as connection:
                connection.execute(_END_HUNG_WRITER, (_LOCK, IDLE_MS))
            writer.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Read one consistent state."""
        with self._reading:
            try:
                if self._reader is None:
                    self._reader = self._connect()
                    self._reader.isolation_level = IsolationLevel.REPEATABLE_READ
                    self._reader.read_only = True
                with self._reader.transaction():
                    yield Session(self._reader, self.marker)
            except (psycopg.Error, OSError) as error:
                reader, self._reader = self._reader, None
                if reader is not None:
                    with contextlib.suppress(psycopg.Error):
                        reader.close()
                raise StoreError(f"{self.place}: expected a store that can be read; {_text(error)}.") from error

    @contextmanager
    def alone_in_relearning(self) -> Iterator[bool]:
        """Give a context, and whether no other replica learns anew meanwhile; the lock ends with the connection."""
        try:
            with psycopg.connect(self._address, autocommit=True) as connection:
                row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_RELEARNING_LOCK,)).fetchone()
                yield row == (True,)
        except (psycopg.Error, OSError) as error:
            raise StoreError(f"{self.place}: expected a store that can be read; {_text(error)}.") from error

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever any replica has written, and after a lost connection is back."""
        self._listener = threading.Thread(target=self._listen, args=(changed,), name="genm-listener", daemon=True)
        self._listener.start()

    def _listen(self, changed: Callable[[], None]) -> None:
        while not self._stopped.is_set():
            try:
                with psycopg.connect(self._address, autocommit=True) as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    changed()
                    while not self._stopped.is_set():
                        if any(True for _ in connection.notifies(timeout=0.5, stop_after=1)):
                            changed()
            except (psycopg.Error, OSError):
                self._stopped.wait(1.0)


def _text(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
