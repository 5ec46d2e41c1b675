"""PostgreSQL with pgvector: SQL through psycopg, in read-only transactions."""

import threading
from typing import Any
from urllib.parse import urlsplit

from genm.connect.access import Access, load_library
from genm.connect.engine import Engine, Hit, Page
from genm.connect.engines.sqlite import row_hit
from genm.connect.http import one_sentence, unreachable
from genm.connect.templates import Statement, Template, Values, read_sql_template
from genm.errors import EngineError, InputError

_LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})


class Pgvector(Engine):
    """A database; the address is `postgresql://user@host:port/database`, the index the table that is watched.

    Every statement returns the document's id, its score (higher is better) and, if wanted, its text.
    """

    name = "pgvector"
    extra = "postgresql"
    has_pages = False

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        if not access.address.startswith(("postgresql:", "postgres:")):
            raise InputError(
                f"address: expected postgresql://user@host:port/database; found {access.address!r:.60}. "
                "Nothing is guessed."
            )
        if access.proxy or access.headers:
            raise InputError(
                "proxy: expected none, since PostgreSQL does not speak HTTP; leave proxy and headers out."
            )
        self._library = load_library("psycopg", "PostgreSQL", self.extra)
        self._local = threading.local()
        self._open: list[Any] = []
        self._lock = threading.Lock()

    def read_template(self, template: Template, place: str) -> Statement:
        """Take a SELECT with `$query`, `$words`, `$vector::vector` and `LIMIT $depth`."""
        return read_sql_template(template, place, "%({})s")

    def page(self, template: Statement, values: Values, start: int, size: int) -> Page:  # noqa: ARG002
        """Run the statement."""
        bound: dict[str, Any] = {name: getattr(values, name) for name in template.names - {"words", "vector"}}
        if "vector" in template.names:
            bound["vector"] = str(values.of("vector", f"{self.name} template"))
        if "words" in template.names:
            if not values.words:
                return Page([])
            bound["words"] = " | ".join(f"'{word}'" for word in values.words)
        return Page([_plain_hit(row_hit(row, self.name)) for row in self._rows(template.text, bound, size + 1)])

    def _rows(self, text: str, bound: dict[str, Any], most: int) -> list[Any]:
        try:
            with self._connection().cursor() as cursor:
                cursor.execute(text, bound)
                rows: list[Any] = cursor.fetchmany(most)
                return rows
        except self._library.errors.QueryCanceled:
            raise EngineError(
                f"{self.name}: expected an answer within {self.access.timeout:g} s; found none. Raise the timeout.",
                retry=True,
            ) from None
        except (self._library.OperationalError, self._library.InterfaceError) as error:
            self._forget()
            said = self.access.redacted(" ".join(str(error).split()))
            if any(words in said for words in ("authentication failed", "does not exist", "no password supplied")):
                raise EngineError(f"{self.name}: {said}. Check address and credentials.", fatal=True) from None
            raise unreachable(self.name, said) from None
        except self._library.Error as error:
            raise EngineError(f"{self.name}: {one_sentence(str(error))}. See the statement.") from None

    def _connection(self) -> Any:
        """Return this thread's connection."""
        if getattr(self._local, "connection", None) is None:
            settings = f"-c statement_timeout={round(1000 * self.access.timeout)}"
            connection = self._library.connect(
                self.access.address,
                autocommit=True,
                connect_timeout=max(2, round(self.access.timeout)),
                options=f"-c default_transaction_read_only=on {settings}",
                **self._secure(),
            )
            for name, value in dict(self.access.options.get("settings", {})).items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
            with self._lock:
                self._open.append(connection)
            self._local.connection = connection
        return self._local.connection

    def _secure(self) -> dict[str, Any]:
        """Return credentials, and TLS that checks the server unless it is on this machine."""
        given: dict[str, Any] = {"user": self.access.user, "password": self.access.password}
        parts = urlsplit(self.access.address)
        if "sslmode" not in parts.query:
            local = (parts.hostname or "") in _LOCAL
            given["sslmode"] = "prefer" if local or not self.access.verify else "verify-full"
            if given["sslmode"] == "verify-full":
                given["sslrootcert"] = self.access.ca or "system"
        given |= {"sslcert": self.access.cert, "sslkey": self.access.key} if self.access.cert else {}
        return {name: value for name, value in given.items() if value is not None}

    def _forget(self) -> None:
        self._local.connection = None

    def state(self) -> str | None:
        """Return how many rows of the table were written; None without a table."""
        if not self.access.index:
            return None
        rows = self._rows(
            "SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_all_tables WHERE relid = to_regclass(%(table)s)",
            {"table": self.access.index},
            1,
        )
        if not rows:
            raise EngineError(f"{self.name}: expected the table {self.access.index}; found none.", fatal=True)
        return "{} rows inserted, {} updated, {} deleted".format(*rows[0])

    def version(self) -> str | None:
        """Return the version of the server."""
        return str(self._rows("SHOW server_version", {}, 1)[0][0])

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._local = threading.local()


def _plain_hit(hit: Hit) -> Hit:
    """Return a hit whose score is a float where the database gave a numeric."""
    is_numeric = type(hit.score).__name__ == "Decimal"
    return hit._replace(score=float(hit.score)) if is_numeric else hit
