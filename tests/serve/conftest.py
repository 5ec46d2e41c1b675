"""Fixtures of the service's tests. They import inside, because the extra serve may be missing."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from report.visits import browser

__all__ = ["browser"]


@pytest.fixture(scope="module")
def context(browser):
    """One context for all tests, because each is a process. Every service has a port, so a storage, of its own."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def live(tmp_path):
    from serve.cases import model
    from serve.running import Live

    running = []

    def start(given=None, **options):
        running.append(Live(tmp_path / "store.sqlite", given or model(), **options))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def start(tmp_path):
    from serve.running import Running

    running = []

    def make(**options):
        running.append(Running(options.pop("path", tmp_path / "store.sqlite"), **options))
        return running[-1]

    yield make
    for one in running:
        one.engine.stop()


@pytest.fixture
def service(start):
    return start()


@pytest.fixture
def tokens(tmp_path):
    from genm.serve.security import Tokens

    return Tokens(tmp_path / "tokens.json")


@pytest.fixture(scope="session")
def postgresql():
    """A throw-away PostgreSQL server; gives a function that makes an empty database and returns its address."""
    psycopg = pytest.importorskip("psycopg", reason="needs the extra postgresql")
    if os.environ.get("GENM_TESTS_POSTGRESQL") == "none":
        pytest.skip("PostgreSQL is hidden: GENM_TESTS_POSTGRESQL is none")
    from export.conftest import installed_tools, ordinary_user, packaged_tools, words_for_user

    tools = [*installed_tools(), *packaged_tools()]
    if not tools:
        pytest.skip("PostgreSQL is not installed, neither the system's nor pgserver's")
    user, home = ordinary_user(), Path(tempfile.mkdtemp(prefix="genm-pg"))  # a short path: it holds the socket
    if user is not None:
        shutil.chown(home, user)
    data = home / "data"

    as_user = words_for_user(user)

    def call(*words):
        done = subprocess.run([*as_user, *words], capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr

    try:
        if subprocess.run(
            [*as_user, tools[0] / "initdb", "--version"], capture_output=True, check=False
        ).returncode:
            pytest.skip(f"PostgreSQL refuses root, and {user} may not enter {tools[0]}")
        call(tools[0] / "initdb", "-D", data, "-A", "trust", "-U", "genm", "--no-sync", "-E", "UTF8")
        options = f"-k {home} -c listen_addresses= -c fsync=off"
        command = [*as_user, tools[0] / "pg_ctl", "-D", data, "-o", options, "-l", home / "log", "-w", "start"]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)
        address = f"postgresql://genm@/{{}}?host={home}"
        n_made = 0

        def make():
            nonlocal n_made
            n_made += 1
            with psycopg.connect(address.format("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE d{n_made}")
            return address.format(f"d{n_made}")

        yield make
        call(tools[0] / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
