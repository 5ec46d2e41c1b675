"""Where events, versions and aliases are kept: one interface, SQLite as the embedded default.

An event and the weights that it leads to are written in one transaction, and nobody is told before it is on disk.
Tables only grow; the two rows of `aliases` are all that ever changes.

| table | holds |
|---|---|
| events | the log: a gapless sequence of bodies, each with its unique key and what became of it |
| versions | weights and the state of learning after an event; never changed |
| aliases | which version is the champion, and which one learning goes on from |
| comparisons | what the clicks on interleaved lists said |
| audit | who did what as an administrator |
"""

import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from genm.errors import MissingExtraError, StoreError

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of the log."""

    sequence: int
    request: int
    """The sequence of the first event that came in the same request."""
    key: str
    kind: str
    """model, rules, judgments, clicks, interleaved, weights, relearn or rollback."""
    clients: str
    """JSON list of the names whose influence the event uses."""
    received: int
    """Milliseconds since 1970."""
    body: bytes
    digest: bytes
    version: int
    outcome: str
    ap: float | None
    moved: int


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of the weights."""

    version: int
    parent: int | None
    sequence: int
    created: int
    reason: str
    weights: str
    """JSON list, in the order of the model's rankers."""
    state: str | None
    """JSON object of the online state; null as long as no stream has begun."""
    promoted: int
    recent_ap: float | None
    champion_recent_ap: float | None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Which of two versions the clicks on one interleaved list preferred: 1 the first, -1 the second, 0 neither."""

    sequence: int
    first: int
    second: int
    credit: int


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One action of an administrator."""

    at: int
    actor: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log ends."""

    sequence: int
    n_versions: int
    champion: int
    current: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What an event that is stored was answered."""

    key: str
    digest: bytes
    sequence: int
    version: int
    outcome: str


def _columns(row: type) -> str:
    return ", ".join(field.name for field in fields(row))


_values_of_event, _values_of_version, _values_of_comparison, _values_of_audit = (
    attrgetter(*(field.name for field in fields(row))) for row in (EventRow, VersionRow, ComparisonRow, AuditRow)
)
"""The values of a row in the order of its columns: `dataclasses.astuple` makes deep copies, which takes longer."""


_EVENT, _VERSION = _columns(EventRow), _columns(VersionRow)
SETTING_KINDS = ("model", "rollback", "weights")
"""Events by which a person sets the weights."""
_SETTING = f"kind IN {SETTING_KINDS!r}"
_LEARNED = "outcome = 'learned'"
_JUDGED = "ap IS NOT NULL"
_HAS_SOMETHING_TO_LEARN = f"({_JUDGED} OR {_LEARNED})"
_IS_NO_FEEDBACK = "kind NOT IN ('judgments', 'clicks', 'interleaved')"
"""The two conditions of indexes: a query that repeats one of them to the letter may use its index."""

INDEXES = (
    "DROP INDEX IF EXISTS judged_events",
    "DROP INDEX IF EXISTS actions",
    f"CREATE INDEX IF NOT EXISTS lessons ON events (sequence) WHERE {_HAS_SOMETHING_TO_LEARN}",
    f"CREATE INDEX IF NOT EXISTS changes ON events (kind, sequence) WHERE {_IS_NO_FEEDBACK}",
    "CREATE INDEX IF NOT EXISTS moving_events ON events (received) WHERE moved > 0",
    "CREATE INDEX IF NOT EXISTS compared ON comparisons (first, second, sequence)",
)
"""Made when a store is opened, after its tables. A store of an older release loses two that these replace."""

TABLES: dict[str, str] = {
    "meta": "name, value",
    "events": _EVENT,
    "versions": _VERSION,
    "aliases": "name, version",
    "comparisons": _columns(ComparisonRow),
    "audit": _columns(AuditRow),
}


class Session:
    """Reads and writes inside one transaction."""

    def __init__(self, connection: Any, marker: str) -> None:
        self._connection, self._marker = connection, marker

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        cursor = self._connection.execute(sql.replace("?", self._marker), values)
        return list(cursor.fetchall()) if cursor.description else []

    def write(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows."""
        if not rows:
            return
        marks = ", ".join([self._marker] * len(rows[0]))
        sql = f"INSERT INTO {table} ({TABLES[table]}) VALUES ({marks})"  # noqa: S608 (names of our own)
        cursor = self._connection.cursor()
        cursor.executemany(sql, rows)

    def head(self) -> Head | None:
        """Return where the log ends, or None before the first event."""
        last = self.rows("SELECT MAX(sequence) FROM events")[0][0]
        if last is None:
            return None
        number = self.rows("SELECT MAX(version) FROM versions")[0][0]
        aliases = dict(self.rows("SELECT name, version FROM aliases"))
        return Head(last, number, aliases["champion"], aliases["current"])

    def answers(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Return what the events with these keys were answered, as far as they are stored."""
        found, wanted = {}, list(keys)
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            marks = ", ".join("?" * len(part))
            sql = f"SELECT key, digest, sequence, version, outcome FROM events WHERE key IN ({marks})"  # noqa: S608
            for key, digest, *others in self.rows(sql, *part):
                found[key] = Answer(key, bytes(digest), *others)
        return found

    def add_events(self, events: Sequence[EventRow]) -> None:
        """Append to the log."""
        self.write("events", list(map(_values_of_event, events)))

    def add_versions(self, versions: Sequence[VersionRow]) -> None:
        """Add versions."""
        self.write("versions", list(map(_values_of_version, versions)))

    def add_comparisons(self, comparisons: Sequence[ComparisonRow]) -> None:
        """Add what interleaved lists said."""
        self.write("comparisons", list(map(_values_of_comparison, comparisons)))

    def add_audit(self, rows: Sequence[AuditRow]) -> None:
        """Note actions of an administrator."""
        self.write("audit", list(map(_values_of_audit, rows)))

    def point(self, *, champion: int, current: int) -> None:
        """Set the aliases."""
        for name, version in (("champion", champion), ("current", current)):
            sql = "UPDATE aliases SET version = ? WHERE name = ?"
            self._connection.execute(sql.replace("?", self._marker), (version, name))

    def events(self, after: int = 0, limit: int = 1000) -> list[EventRow]:
        """Return the events after a sequence number, the oldest first."""
        sql = f"SELECT {_EVENT} FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?"  # noqa: S608
        return _events(self.rows(sql, after, limit))

    def newest_events(self, limit: int) -> list[EventRow]:
        """Return the newest events, the newest first."""
        return _events(self.rows(f"SELECT {_EVENT} FROM events ORDER BY sequence DESC LIMIT ?", limit))  # noqa: S608

    def first_event(self, kind: str) -> EventRow | None:
        """Return the first event of a kind."""
        return self._change("kind = ?", "ASC", kind)

    def last_event(self, kind: str) -> EventRow | None:
        """Return the newest event of a kind."""
        return self._change("kind = ?", "DESC", kind)

    def last_setting(self) -> EventRow | None:
        """Return the newest event by which a person set the weights: the model, a rollback, or given weights."""
        return self._change(_SETTING, "DESC")

    def _change(self, condition: str, order: str, *values: str) -> EventRow | None:
        """Return the first event under a condition, of those that are no feedback."""
        which = f"{_IS_NO_FEEDBACK} AND {condition} ORDER BY sequence {order} LIMIT 1"
        return next(iter(_events(self.rows(f"SELECT {_EVENT} FROM events WHERE {which}", *values))), None)  # noqa: S608

    def n_learned(self, after: int, most: int) -> int:
        """Return how many events after a sequence number the stream has learned from; it counts up to `most`."""
        which = f"{_HAS_SOMETHING_TO_LEARN} AND {_LEARNED} AND sequence > ?"
        newest = f"SELECT 1 AS one FROM events WHERE {which} LIMIT ?"  # noqa: S608
        return int(self.rows(f"SELECT COUNT(*) FROM ({newest}) AS newest", after, most)[0][0])  # noqa: S608

    def newest_feedback(self, after: int, limit: int, *, only_learned: bool, most_bytes: int) -> list[int]:
        """Return the sequence numbers of the newest events with something to learn from, the oldest first.

        They are what the stream has learned from, or all judged queries. The newest one always counts, older ones
        as long as the bodies together have at most `most_bytes`.
        """
        which = f"{_HAS_SOMETHING_TO_LEARN} AND {_LEARNED if only_learned else _JUDGED} AND sequence > ?"
        sql = f"SELECT sequence, LENGTH(body) FROM events WHERE {which} ORDER BY sequence DESC LIMIT ?"  # noqa: S608
        found, total = list[int](), 0
        for sequence, size in self.rows(sql, after, limit):
            total += size
            if found and total > most_bytes:
                break
            found.append(sequence)
        return found[::-1]

    def events_of(self, sequences: Sequence[int]) -> list[EventRow]:
        """Return some events, the oldest first."""
        marks = ", ".join("?" * len(sequences))
        sql = f"SELECT {_EVENT} FROM events WHERE sequence IN ({marks}) ORDER BY sequence"  # noqa: S608
        return _events(self.rows(sql, *sequences))

    def judged_events(self, limit: int) -> list[EventRow]:
        """Return the newest judged queries, the oldest of them first."""
        which = f"{_HAS_SOMETHING_TO_LEARN} AND {_JUDGED} ORDER BY sequence DESC LIMIT ?"
        return _events(self.rows(f"SELECT {_EVENT} FROM events WHERE {which}", limit))[::-1]  # noqa: S608

    def ap_values(self, limit: int) -> list[tuple[int, float]]:
        """Return the newest AP values with their sequence numbers, the oldest of them first."""
        which = f"{_HAS_SOMETHING_TO_LEARN} AND {_JUDGED} ORDER BY sequence DESC LIMIT ?"
        rows = self.rows(f"SELECT sequence, ap FROM events WHERE {which}", limit)  # noqa: S608
        return [(sequence, ap) for sequence, ap in rows][::-1]

    def movements(self, minutes: int) -> list[tuple[str, int, int]]:
        """Return (clients, minute, billionths moved) over the last minutes in which anything moved."""
        last = self.rows("SELECT MAX(received) FROM events WHERE moved > 0")[0][0]
        if last is None:
            return []
        sql = (
            "SELECT clients, received / 60000, SUM(moved) FROM events "
            "WHERE moved > 0 AND received >= ? GROUP BY clients, received / 60000"
        )
        rows = self.rows(sql, (last // 60_000 - minutes) * 60_000)
        return [(clients, int(minute), int(moved)) for clients, minute, moved in rows]

    def version(self, number: int) -> VersionRow | None:
        """Return one version."""
        rows = self.rows(f"SELECT {_VERSION} FROM versions WHERE version = ?", number)  # noqa: S608
        return VersionRow(*rows[0]) if rows else None

    def versions(self, limit: int, before: int | None = None) -> list[VersionRow]:
        """Return versions, the newest first, those before a number if one is given."""
        sql = f"SELECT {_VERSION} FROM versions WHERE version < ? ORDER BY version DESC LIMIT ?"  # noqa: S608
        return [VersionRow(*row) for row in self.rows(sql, before or 2**62, limit)]

    def credits(self, first: int, second: int) -> list[int]:
        """Return the credits of a pair of versions, the oldest first."""
        sql = "SELECT credit FROM comparisons WHERE first = ? AND second = ? ORDER BY sequence"
        return [row[0] for row in self.rows(sql, first, second)]

    def pairs(self) -> list[tuple[int, int, int]]:
        """Return the pairs of versions that were compared, and on how many lists."""
        sql = "SELECT first, second, COUNT(*) FROM comparisons GROUP BY first, second ORDER BY first, second"
        return [(first, second, n) for first, second, n in self.rows(sql)]

    def audit(self, limit: int) -> list[AuditRow]:
        """Return the newest actions of administrators, the newest first."""
        rows = self.rows("SELECT at, actor, action, detail FROM audit ORDER BY at DESC LIMIT ?", limit)
        return [AuditRow(*row) for row in rows]


def _events(rows: Iterable[tuple[Any, ...]]) -> list[EventRow]:
    return [replace(EventRow(*row), body=bytes(row[6]), digest=bytes(row[7])) for row in rows]


class Store(ABC):
    """A place that keeps what was acknowledged. One thread writes; any thread reads."""

    marker: ClassVar[str]
    """What stands for a value in SQL."""
    schema: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def place(self) -> str:
        """Return where it is, for messages."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Return what `open_store` opens it by; it may hold a password."""

    @abstractmethod
    def open(self) -> None:
        """Connect, and make the tables where there are none."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    @abstractmethod
    def transaction(self) -> "TransactionContext":
        """Return a context that gives the only writing session there is; leaving it makes all durable.

        Any failure of the database is a StoreError, and then nothing was written or nobody knows: the caller must
        acknowledge nothing and read the state anew.
        """

    @abstractmethod
    def snapshot(self) -> "TransactionContext":
        """Return a context that gives a session which reads one consistent state."""

    def follow(self, changed: Callable[[], None]) -> None:  # noqa: B027 (most stores have one writer)
        """Call `changed` whenever others have written; a store with one writer never does."""

    @contextmanager
    def alone_in_relearning(self) -> Iterator[bool]:
        """Give a context, and whether no other replica learns anew meanwhile; a store with one writer has none."""
        yield True

    def check_schema(self, session: Session) -> None:
        """Refuse a store of another version."""
        found = dict(session.rows("SELECT name, value FROM meta")).get("schema")
        if found != str(SCHEMA_VERSION):
            raise StoreError(
                f"{self.place}: expected a store of version {SCHEMA_VERSION}; found {found}. "
                f"Use the genm release that wrote it."
            )


TransactionContext = Any


class SqliteStore(Store):
    """One file, written through a log that is flushed to disk before anybody is told."""

    marker = "?"
    schema = (
        "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS events (sequence INTEGER PRIMARY KEY, request INTEGER NOT NULL, "
        "key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, clients TEXT NOT NULL, received INTEGER NOT NULL, "
        "body BLOB NOT NULL, digest BLOB NOT NULL, version INTEGER NOT NULL, outcome TEXT NOT NULL, ap REAL, "
        "moved INTEGER NOT NULL) STRICT",
        "CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, parent INTEGER, "
        "sequence INTEGER NOT NULL, created INTEGER NOT NULL, reason TEXT NOT NULL, weights TEXT NOT NULL, "
        "state TEXT, promoted INTEGER NOT NULL, recent_ap REAL, champion_recent_ap REAL) STRICT",
        "CREATE TABLE IF NOT EXISTS aliases (name TEXT PRIMARY KEY, version INTEGER NOT NULL) "
        "STRICT, WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS comparisons (sequence INTEGER PRIMARY KEY, first INTEGER NOT NULL, "
        "second INTEGER NOT NULL, credit INTEGER NOT NULL) STRICT",
        "CREATE TABLE IF NOT EXISTS audit (at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, "
        "detail TEXT NOT NULL) STRICT",
    )

    def __init__(self, path: str | Path, *, alone: bool = True) -> None:
        """Name the file; `alone` keeps other services from the same file."""
        self.path, self.alone = Path(path), alone
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._lock: sqlite3.Connection | None = None
        self._reading = threading.Lock()

    @property
    def place(self) -> str:
        """Return the path."""
        return str(self.path)

    @property
    def address(self) -> str:
        """Return the path, from the root."""
        return str(self.path.absolute())

    def open(self) -> None:
        """Open the file, alone if wanted, and make the tables."""
        try:
            if self.alone and self._lock is None:
                self._lock = self._take_lock()
            self._refuse_other_database()
            self._writer = self._connect()
            self._reader = self._connect()
            with self.transaction() as session:
                for statement in (*self.schema, *INDEXES):
                    session.rows(statement)
                session.rows("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", str(SCHEMA_VERSION))
                self.check_schema(session)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):  # the second from a damaged schema
                raise StoreError(f"{self.place}: expected a store that can be written; {error}.") from error
            raise

    def _refuse_other_database(self) -> None:
        """Refuse a database of another program before anything is written to it."""
        if not self.path.is_file():
            return
        with closing(sqlite3.connect(self.path, timeout=30.0)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not {"meta", "events", "versions"} <= tables:
            raise StoreError(
                f"{self.place}: expected a store of genm serve, or a new file; found another SQLite database. Name "
                "another file."
            )

    def _take_lock(self) -> sqlite3.Connection:
        """Hold a file beside the store locked; the system lets go of it when the process ends, however it ends."""
        lock = sqlite3.connect(f"{self.path}-lock", timeout=0.0, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("PRAGMA journal_mode=MEMORY")
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if "locked" not in str(error):
                raise
            raise StoreError(
                f"{self.place}: another service has this store open. Stop it first, or use another --store."
            ) from None
        return lock

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the file and let go of the lock."""
        for connection in (self._writer, self._reader, self._lock):
            if connection is not None:
                connection.close()
        self._writer = self._reader = self._lock = None

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Write: the log is on disk when the context is left."""
        if self._writer is None:
            self._reopen()
        writer = self._writer
        assert writer is not None
        try:
            writer.execute("BEGIN IMMEDIATE")
            yield Session(writer, self.marker)
            writer.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            # After a failed flush nobody knows what is on disk: let go of the connection and read anew.
            self._drop_connections()
            raise StoreError(f"{self.place}: expected a store that can be written; {error}.") from error
        except BaseException:
            writer.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Read one consistent state."""
        with self._reading:
            if self._reader is None:
                self._reopen()
            reader = self._reader
            assert reader is not None
            try:
                reader.execute("BEGIN")
                try:
                    yield Session(reader, self.marker)
                finally:
                    reader.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreError(f"{self.place}: expected a store that can be read; {error}.") from error

    def _drop_connections(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except sqlite3.Error:
                return

    def _reopen(self) -> None:
        if not self.path.exists():
            raise StoreError(f"{self.place}: expected the store; the file is gone. Restore a backup.")
        try:
            if self._writer is None:
                self._writer = self._connect()
            if self._reader is None:
                self._reader = self._connect()
        except sqlite3.Error as error:
            raise StoreError(f"{self.place}: expected a store that can be opened; {error}.") from error


def open_store(place: str, *, alone: bool = True) -> Store:
    """Return the store at a place: a file, or the address of a PostgreSQL database."""
    if place.startswith(("postgresql://", "postgres://")):
        try:
            from genm.serve.postgresql import PostgresStore
        except ImportError:
            raise MissingExtraError("a store in PostgreSQL", "serve,postgresql") from None
        return PostgresStore(place)
    return SqliteStore(place, alone=alone)


@contextmanager
def existing_store(place: str) -> Iterator[Store]:
    """Open a store that exists, beside a service that may be using it."""
    if not place.startswith(("postgresql://", "postgres://")) and not Path(place).is_file():
        raise StoreError(f"{place}: expected a store; there is no such file.")
    store = open_store(place, alone=False)
    store.open()
    try:
        yield store
    finally:
        store.close()


def copy_store(source: Store, target: Store) -> int:
    """Copy one state of a store into an empty one, of whatever kind; returns the number of events."""
    with source.snapshot() as old, target.transaction() as new:
        if new.head() is not None:
            raise StoreError(f"{target.place}: expected an empty store; found events. Choose another place.")
        for table, columns in TABLES.items():
            if table == "meta":
                continue
            if table == "events":
                _copy_events(old, new)
            else:
                new.write(table, old.rows(f"SELECT {columns} FROM {table}"))  # noqa: S608
        head = old.head()
    return 0 if head is None else head.sequence


def _copy_events(old: Session, new: Session) -> None:
    after = 0
    while part := old.events(after, 1000):
        new.add_events(part)
        after = part[-1].sequence


def copy_to(source: Store, place: str) -> int:
    """Copy a store to a new place, alone there; returns the number of events."""
    if not place.startswith(("postgresql://", "postgres://")) and Path(place).exists():
        raise StoreError(f"{place}: expected a new file; found one. Move it away first, or choose another name.")
    target = open_store(place)
    target.open()
    try:
        return copy_store(source, target)
    finally:
        target.close()


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000
