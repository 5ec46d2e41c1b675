"""The service as it is started: by the command line, with TLS, with slow clients, and stopped by a signal."""

import gc
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import httpx
import msgspec
from serve.cases import judged, model, sqlite_driver
from typer.testing import CliRunner

from genm.cli.app import app
from genm.client import Client
from genm.model import save_model
from genm.serve import server
from genm.serve.http import Limits
from genm.serve.store import existing_store

PATIENCE = 60.0
"""Seconds to wait for a service on a busy machine: its first answer loads the kernels."""


def genm(*words):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(word) for word in words], prog_name="genm")


class Process:
    """`genm serve` in a process of its own."""

    def __init__(self, *words, cwd):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "genm", "serve", *map(str, words), "--port", "0"],
            stderr=subprocess.PIPE, text=True, cwd=cwd,
        )  # fmt: skip
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"serving on (\S+);", line):
                self.url = found[1]
                return
        raise AssertionError("".join(said))

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@pytest.fixture
def folder(tmp_path):
    save_model(model(), tmp_path / "model.json")
    return tmp_path


def test_serving_stopping_and_going_on(folder):
    one = Process("model.json", "--influence", "0", cwd=folder)
    try:
        assert genm("weights", "--url", one.url).output.startswith("version 1 (the champion), 0 queries seen")
        sent = {"events": [{"key": "k", "query_id": "q", "runs": judged(1).runs, "judgments": judged(1).judgments}]}
        assert httpx.post(f"{one.url}/v1/feedback", json=sent, timeout=PATIENCE).json()["events"][0]["version"] == 2
        busy = genm("serve", "run", "--store", folder / "model.sqlite")
        assert busy.exit_code == 2
        assert "another service has this store open" in busy.output
    finally:
        code = one.stop()
    assert code in (143, -signal.SIGTERM)
    again = Process("--store", "model.sqlite", cwd=folder)
    try:
        assert httpx.get(f"{again.url}/v1/weights", timeout=PATIENCE).json()["version"] == 2
        rolled = genm("rollback", "1", "--url", again.url, "--format", "json")
        assert '"version": 1' in rolled.output
        assert (
            "weight\tbm25\t0.5"
            in genm("weights", "--url", again.url, "--set", "bm25=2,dense=1,sparse=1", "--format", "tsv").output
        )
        refused = genm("rollback", "99", "--url", again.url)
        assert refused.exit_code == 2
        assert "genm: service:" in refused.output
    finally:
        again.stop(signal.SIGKILL)
    checked = genm("serve", "check", "--store", folder / "model.sqlite")
    assert checked.exit_code == 0, checked.output
    assert "model.sqlite" in checked.output


@pytest.fixture
def files(tmp_path):
    """Judgments and runs of three queries, and a judged query that no run holds, as words of the command."""
    events = [judged(number) for number in range(3)]
    (tmp_path / "qrels").write_text(
        "".join(f"{e.query_id} 0 {doc} {grade}\n" for e in events for doc, grade in e.judgments.items())
        + "q99 0 d01 1\n",
        encoding="utf-8",
    )
    words = ["--qrels", tmp_path / "qrels"]
    for name in model().rankers:
        lines = [f"{e.query_id} Q0 {doc} 0 {score} x\n" for e in events for doc, score in e.runs[name]]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
        words.append(f"{name}={tmp_path / name}")
    return words


def test_files_are_sent_once(live, files):
    service = live()
    for _ in range(2):
        done = genm("feedback", "--url", service.url, *files, "--format", "tsv")
        assert done.exit_code == 0, done.output
        assert "learned\t3" in done.output
        assert "1 judged queries are missing from a run" in done.output
        assert service.engine.status.sequence == 5


def test_files_are_sent_in_parts_that_the_service_takes(live, files):
    service = live(limits=Limits(max_body=1500))
    done = genm("feedback", "--url", service.url, *files, "--format", "tsv")
    assert done.exit_code == 0, done.output
    assert "learned\t3" in done.output
    assert service.engine.status.sequence == 5


def test_a_query_that_is_larger_than_the_service_takes_is_named(live, files):
    done = genm("feedback", "--url", live(limits=Limits(max_body=300)).url, *files)
    assert done.exit_code == 2
    assert "genm: service: query 'q0': " in done.output
    assert "413: body: expected at most 300 bytes" in done.output


def test_a_query_that_the_service_refuses_is_named(live, files):
    path = Path(str(files[1]).replace("qrels", "dense"))
    path.write_text(path.read_text(encoding="utf-8") + f"q2 Q0 {'d' * 600} 0 0.1 x\n", encoding="utf-8")
    service = live()
    done = genm("feedback", "--url", service.url, *files)
    assert done.exit_code == 2
    assert "genm: service: query 'q2': " in done.output
    assert "422: body.events[2]" in done.output
    assert service.engine.status.sequence == 2  # all of a request, or nothing


def test_fractions_as_grades_are_read_by_a_rule(live, files):
    path = files[1]
    path.write_text(re.sub(r" 1$", " 0.9", path.read_text(encoding="utf-8"), flags=re.M), encoding="utf-8")
    service = live()
    refused = genm("feedback", "--url", service.url, *files)
    assert "expected a whole number as relevance; found 0.9" in refused.output
    done = genm("feedback", "--url", service.url, *files, "--grades", "from=0.5", "--format", "tsv")
    assert done.exit_code == 0, done.output
    assert "grade 0.9 became 1 by the rule from=0.5" in done.output
    assert "learned\t3" in done.output


def test_what_is_repaired_is_said(live, files):
    path = Path(str(files[1]).replace("qrels", "dense"))
    path.write_text(path.read_text(encoding="utf-8") + "broken line\n", encoding="utf-8")
    done = genm("feedback", "--url", live().url, *files, "--lenient")
    assert done.exit_code == 0, done.output
    assert re.search(r"note: .*dense", done.output), done.output


def test_events_beyond_the_influence_of_a_client_are_told(live, files):
    service = live(influence=1e-9)
    done = genm("feedback", "--url", service.url, *files)
    assert done.exit_code == 0, done.output
    assert "note: 3 events were stored without moving the weights" in done.output


def test_it_learns_from_all_feedback_by_itself_and_stops_while_it_does(folder):
    one = Process("model.json", "--relearn-every", "0.1", "--influence", "0", cwd=folder)
    with Client(one.url, retries=0) as client:
        client.feedback([msgspec.to_builtins(judged(number)) for number in range(12)])
        stop_at = time.monotonic() + PATIENCE
        while (versions := client.versions())["versions"][0]["reason"] != "relearn":
            assert time.monotonic() < stop_at, "it did not learn by itself"
            time.sleep(0.1)
        assert versions["champion"] == versions["latest"] == 3
        assert "genm_relearned_total 1" in httpx.get(f"{one.url}/metrics").text
        client.feedback([msgspec.to_builtins(judged(50))])
    assert one.stop() in (143, -signal.SIGTERM)
    assert genm("serve", "check", "--store", folder / "model.sqlite").exit_code == 0


def test_check_backup_and_restore(tmp_path):
    driver = sqlite_driver(tmp_path / "store.sqlite")
    driver.feedback(judged(1))
    assert genm("serve", "backup", "--store", tmp_path / "store.sqlite", "-o", tmp_path / "b.sqlite").exit_code == 0
    driver.stop()
    assert genm("serve", "restore", tmp_path / "b.sqlite", "--store", tmp_path / "new.sqlite").exit_code == 0
    there = genm("serve", "restore", tmp_path / "b.sqlite", "--store", tmp_path / "new.sqlite")
    assert "expected a new file; found one" in there.output
    with sqlite3.connect(tmp_path / "new.sqlite") as connection:
        connection.execute("UPDATE versions SET weights = '[1.0,0.0,0.0]' WHERE version = 2")
    connection.close()
    broken = genm("serve", "check", "--store", tmp_path / "new.sqlite")
    assert broken.exit_code == 2
    assert "the replay differs" in broken.output
    refused = genm("serve", "restore", tmp_path / "new.sqlite", "--store", tmp_path / "other.sqlite")
    assert "expected a sound backup" in refused.output
    assert "no such file" in genm("serve", "check", "--store", tmp_path / "none.sqlite").output


def test_tokens_by_the_command_line(tmp_path):
    path = tmp_path / "tokens.json"
    made = genm("serve", "token", "add", "team", "--role", "fuse", "--tokens", path)
    assert made.output.startswith("genm_")
    assert genm("serve", "token", "list", "--tokens", path, "--format", "tsv").output == "team\tfuse\tno\n"
    assert (
        "expected one of fuse, feedback, admin"
        in genm("serve", "token", "add", "x", "--role", "king", "--tokens", path).output
    )
    assert genm("serve", "token", "withdraw", "team", "--tokens", path).exit_code == 0
    assert genm("serve", "token", "list", "--tokens", path, "--format", "json").output == "[]\n"


def test_a_service_that_others_can_reach_needs_tokens(folder):
    refused = genm("serve", folder / "model.json", "--host", "0.0.0.0")
    assert refused.exit_code == 2
    assert "expected --tokens FILE" in refused.output


def test_a_client_that_sends_no_headers_is_cut_off(live, monkeypatch):
    usual = server.HEADER_SECONDS
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    service = live()
    host, port = service.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.sendall(b"POST /v1/fuse HTTP/1.1\r\nhost: x\r\nx-slow")
        begun = time.monotonic()
        assert connection.recv(100) == b""
        assert time.monotonic() - begun < usual


def test_a_client_that_sends_its_body_slowly_is_cut_off(live):
    service = live(limits=Limits(body_seconds=0.3))
    host, port = service.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        head = f"POST /v1/fuse HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        connection.sendall(f"{head}content-length: 1000\r\n\r\n".encode() + b'{"runs')
        answer = b""
        while part := connection.recv(4096):
            answer += part
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"code":"slow"' in answer
    assert httpx.get(f"{service.url}healthz", timeout=PATIENCE).status_code == 200


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, to make a certificate")
def test_https(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
         "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    one = Process("model.json", "--tls-cert", "cert.pem", "--tls-key", "key.pem", cwd=folder)
    try:
        assert one.url.startswith("https://")
        with Client(one.url, verify=str(folder / "cert.pem"), retries=0) as client:
            assert client.weights()["version"] == 1
    finally:
        one.stop()


def test_the_extra_is_named_where_it_is_missing(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("genm.serve.server")]:
        monkeypatch.delitem(sys.modules, name)
    refused = genm("serve", folder / "model.json")
    assert refused.exit_code == 2
    assert "pip install 'genm[serve]'" in refused.output


def test_a_full_disk_is_a_503(folder):
    """A limit on the size of files stands for a full disk, in a process of its own."""
    if os.name != "posix":
        pytest.skip("needs limits on the size of files")
    code = (
        "import resource, signal, sys\n"
        "sys.dont_write_bytecode = True  # Python keeps bytecode that was cut short\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from genm.cli.main import run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
        "sys.argv = ['genm', 'serve', 'model.json', '--port', '0', '--influence', '0']\n"
        "run()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        url = None
        for line in process.stderr:
            if found := re.search(r"serving on (\S+);", line):
                url = found[1]
                break
        acknowledged, statuses = [], []
        for number in range(30):
            if statuses[-3:] == [503] * 3:
                break
            runs = {
                name: [[f"{name}-{number}-{i:04}" * 3, float(i)] for i in range(200)] for name in model().rankers
            }
            body = {"events": [{"key": f"k{number}", "query_id": "q", "runs": runs, "judgments": {"x": 1}}]}
            answer = httpx.post(f"{url}/v1/feedback", json=body, timeout=PATIENCE)
            statuses.append(answer.status_code)
            if answer.status_code == 200:
                acknowledged.append(f"k{number}")
        assert set(statuses) == {200, 503}
        assert httpx.get(f"{url}/readyz", timeout=PATIENCE).status_code == 503
        assert httpx.get(f"{url}/v1/weights", timeout=PATIENCE).status_code == 200
    finally:
        process.kill()
        process.communicate()
    with existing_store(str(folder / "model.sqlite")) as store, store.snapshot() as session:
        assert set(session.answers(f"k{number}" for number in range(30))) >= set(acknowledged)


def test_the_garbage_collector_and_the_switch_interval_are_left_as_they_were():
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    try:
        gc.set_threshold(700, 10, 10)
        with server.short_pauses():
            assert sys.getswitchinterval() == pytest.approx(0.001)
            assert gc.get_threshold() == (20_000, 10, 10)
            assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == (700, 10, 10)
        assert gc.get_freeze_count() == 0
        assert sys.getswitchinterval() == pytest.approx(interval)
    finally:
        gc.set_threshold(*before)
        gc.freeze()  # conftest.py has done so, to spare the tests that follow
