"""A PostgreSQL server for the tests that run the exported statement, if this machine has one."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Psql = Callable[[str], list[list[str]]]


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if "\t" in line]


@pytest.fixture(scope="session")
def psql_with_vector() -> Iterator[Psql]:
    """Run SQL on a server that has pgvector; gives the rows of the answer."""
    pgserver = pytest.importorskip("pgserver", reason="pgserver (PostgreSQL with pgvector) is not installed")
    home = Path(tempfile.mkdtemp(prefix="genm-pg"))
    home.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(home)
    try:
        yield lambda sql: rows_of(
            server.psql("\\set QUIET on\n\\pset format unaligned\n\\pset fieldsep '\\t'\n\\t\n" + sql)
        )
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def psql() -> Iterator[Psql]:
    """Run SQL on a plain server that lives as long as the tests; gives the rows of the answer."""
    found = shutil.which("initdb") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))), None)
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    if user is not None and user not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("PostgreSQL has no user of its own here")
    tools, home = Path(found).resolve().parent, Path(tempfile.mkdtemp(prefix="genm-pg"))  # short: it holds a socket
    if user is not None:
        shutil.chown(home, user)
    data, log = home / "data", home / "log"
    options = f"-k {home} -c listen_addresses= -c fsync=off"

    def call(*words: str, text: str | None = None) -> str:
        done = subprocess.run(words, input=text, capture_output=True, text=True, user=user, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    call(str(tools / "initdb"), "-D", str(data), "-A", "trust", "-U", "genm", "--no-sync")
    subprocess.run(
        [tools / "pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start"],
        check=True,
        user=user,
        cwd="/",
        stdout=subprocess.DEVNULL,
    )
    try:
        command = [str(tools / "psql"), "-h", str(home), "-U", "genm", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
        yield lambda sql: rows_of(call(*command, "-qAt", "-F", "\t", text=sql))
    finally:
        call(str(tools / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(home, ignore_errors=True)
