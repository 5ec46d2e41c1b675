"""SQLite: FTS5 for words and sqlite-vec for vectors, asked in SQL through Python's own sqlite3.

Some builds of Python cannot load extensions; there apsw, which has a SQLite of its own, is used if installed.
"""

import json
import sqlite3
import threading
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page, joined_text
from genm.connect.templates import Statement, Template, Values, read_sql_template
from genm.errors import EngineError, InputError, MissingExtraError

_BUSY = ("locked", "busy")


class Sqlite(Engine):
    """A database file, opened for reading only; the address is its path.

    Every statement returns the document's id, its score (higher is better) and, if wanted, its text.
    """

    name = "sqlite"
    extra = "sqlite"
    has_pages = False

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._path = Path(access.address).expanduser()
        if not self._path.is_file():
            raise InputError(f"address: expected the file of an SQLite database; found none at {self._path}.")
        self._local = threading.local()
        self._open: list[Any] = []
        self._apsw = None if hasattr(sqlite3.Connection, "enable_load_extension") else _apsw()
        self._error = sqlite3.Error if self._apsw is None else self._apsw.Error

    def read_template(self, template: Template, place: str) -> Statement:
        """Take a SELECT with `$query`, `$words`, `$vector` and `LIMIT $depth`."""
        return read_sql_template(template, place, ":{}")

    def page(self, template: Statement, values: Values, start: int, size: int) -> Page:  # noqa: ARG002
        """Run the statement."""
        bound: dict[str, Any] = {name: getattr(values, name) for name in template.names - {"words", "vector"}}
        if "vector" in template.names:
            bound["vector"] = json.dumps(values.of("vector", f"{self.name} template"))
        if "words" in template.names:
            if not values.words:
                return Page([])
            bound["words"] = " OR ".join(f'"{word}"' for word in values.words)
        try:
            # Closing ends the read at once: an open one keeps the application's writers out.
            with closing(self._connection().execute(template.text, bound)) as cursor:
                rows = list(islice(cursor, size + 1))
        except (sqlite3.Error, UnicodeError, self._error) as error:  # text that is no UTF-8, or cannot become it
            busy = any(word in str(error) for word in _BUSY)
            advice = "See the statement."
            if "fts5" in str(error):
                advice = "Use MATCH $words, which quotes every word."
            elif "vec0" in str(error) or "vec_" in str(error):
                advice = "Install it with: pip install 'genm[sqlite]'."
            raise EngineError(f"{self.name}: query {values.query_id!r}: {error}. {advice}", retry=busy) from None
        return Page([row_hit(row, self.name) for row in rows])

    def state(self) -> str | None:
        """Return size and time of the last change of the database and of its log."""
        paths = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        found = [path.stat() for path in paths if path.exists()]
        return "; ".join(f"{status.st_size} bytes at {status.st_mtime_ns}" for status in found)

    def version(self) -> str | None:
        """Return the version of the library."""
        return sqlite3.sqlite_version if self._apsw is None else str(self._apsw.sqlite_lib_version())

    def _connection(self) -> Any:
        """Return this thread's connection."""
        if not hasattr(self._local, "connection"):
            connection = self._opened()
            self._open.append(connection)
            self._local.connection = connection
        return self._local.connection

    def _opened(self) -> Any:
        """Open the file for reading only, with sqlite-vec where it is installed: words alone do not need it."""
        if self._apsw is not None:
            connection: Any = self._apsw.Connection(str(self._path), flags=self._apsw.SQLITE_OPEN_READONLY)
            connection.set_busy_timeout(round(1000 * self.access.timeout))
        else:
            connection = sqlite3.connect(
                f"{self._path.resolve().as_uri()}?mode=ro",
                uri=True,
                timeout=self.access.timeout,
                check_same_thread=False,  # each thread has its own; the last one closes them all
            )
        if hasattr(connection, "enable_load_extension"):
            try:
                path = load_library("sqlite_vec", "sqlite-vec", self.extra).loadable_path()
            except MissingExtraError:
                return connection
            connection.enable_load_extension(True)  # noqa: FBT003
            connection.load_extension(path)
            connection.enable_load_extension(False)  # noqa: FBT003
        return connection

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._local = threading.local()


def _apsw() -> Any:
    try:
        return load_library("apsw", "sqlite-vec", Sqlite.extra)
    except MissingExtraError:
        return None


def row_hit(row: tuple[Any, ...], name: str) -> Hit:
    """Return the document of a row: its id, its score and perhaps its text."""
    if len(row) not in (2, 3):
        raise EngineError(
            f"{name}: expected two columns, the document's id and its score, or a third with its text; found "
            f"{len(row)}. Write SELECT id, score ... in this order."
        )
    return Hit(row[0], row[1], joined_text(row[2:]))
