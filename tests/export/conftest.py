"""A PostgreSQL server for the tests that run the exported statement, if this machine has one."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

Psql = Callable[[str], list[list[str]]]


@pytest.fixture(scope="session")
def psql() -> Iterator[Psql]:
    """Run SQL on a server that lives as long as the tests; gives the rows of the answer."""
    if os.environ.get("GENM_TESTS_POSTGRESQL") == "none":
        pytest.skip("PostgreSQL is hidden: GENM_TESTS_POSTGRESQL is none")
    tools = [*installed_tools(), *packaged_tools()]
    if not tools:
        pytest.skip("PostgreSQL is not installed, neither the system's nor pgserver's")
    with server(tools[0]) as run:
        yield run


@pytest.fixture(scope="session")
def psql_with_vector(psql: Psql) -> Iterator[Psql]:
    """The same on a server that has pgvector."""
    available = "SELECT name, 'here' FROM pg_available_extensions WHERE name = 'vector';\n"
    if psql(available):
        yield psql
        return
    tools = packaged_tools()
    if not tools:
        pytest.skip("PostgreSQL has no pgvector here: neither the system's package nor pgserver is installed")
    with server(tools[0]) as run:
        yield run


def installed_tools() -> list[Path]:
    """Where the system keeps PostgreSQL's programs, newest first; Debian does not put them on the path."""
    found = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4]), reverse=True)
    return [Path(path).resolve().parent for path in ([found] if found else []) + [*debian]]


def packaged_tools() -> list[Path]:
    """Where the pgserver package keeps them; it brings pgvector."""
    spec = importlib.util.find_spec("pgserver")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "pginstall" / "bin"
    return [folder] if (folder / "initdb").exists() else []


@contextmanager
def server(tools: Path) -> Iterator[Psql]:
    """Start a throw-away server on a socket of its own and stop it again."""
    user = ordinary_user()
    home = Path(tempfile.mkdtemp(prefix="genm-pg"))  # a short path: it holds the socket
    if user is not None:
        shutil.chown(home, user)
    data, log = home / "data", home / "log"
    as_user = words_for_user(user)

    def call(*words: str | Path, text: str | None = None) -> str:
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        if subprocess.run([*as_user, tools / "initdb", "--version"], capture_output=True, check=False).returncode:
            pytest.skip(f"PostgreSQL refuses root, and {user} may not enter {tools}")
        call(*as_user, tools / "initdb", "-D", data, "-A", "trust", "-U", "genm", "--no-sync", "-E", "UTF8")
        options = f"-k {home} -c listen_addresses= -c fsync=off"
        command = [*as_user, tools / "pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start"]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)
        psql = [tools / "psql", "-X", "-h", home, "-U", "genm", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
        try:
            yield lambda sql: rows_of(call(*psql, "-qAt", "-F", "\t", text=sql))
        finally:
            call(*as_user, tools / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def words_for_user(user: str | None) -> list[str]:
    """Return what to put before a command so that this user runs it.

    Not `subprocess.run(user=...)`: Python forks for it, and a fork stops in the handlers of a client that runs
    threads, such as Milvus's.
    """
    return [] if user is None else ["runuser", "-u", user, "--"]


def ordinary_user() -> str | None:
    """Whom to run the server as: it refuses root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if "\t" in line]
