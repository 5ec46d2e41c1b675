"""The engine on Dask: the bits of threads, whatever dies. Longer shows are in `python -m benchmarks.scale`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from problems import made_up
from scale.tables import table_of

import genm
from genm.errors import EngineError, InputError
from genm.learn import NewtonFuser
from genm.learn.table import TableQueries
from genm.learn.table_fit import fit_table, settings_for
from genm.scale import ClusterAddress, DaskEngine, Request, ThreadEngine

# Dask warns of files and connections that are still open when a killed worker's place is taken
pytestmark = [pytest.mark.needs("distributed"), pytest.mark.filterwarnings("ignore")]

FUSER = NewtonFuser(starts=[(1.0, 1.0, 1.0)], max_iter=3)  # 14 passes instead of 96: each is a round of messages


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return table_of(made_up(3, n_queries=23, n_docs=70), tmp_path_factory.mktemp("table"), n_shards=7)


@pytest.fixture(scope="module")
def engine(table):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genm.scale.cluster._WAIT_FOR_WORKERS", 600)  # seconds; a busy machine starts them slowly
        found = DaskEngine(table, settings_for(FUSER, table), ClusterAddress("local:2"), memory=2**20)
        yield found
        found.close()


def learned(table, engine):
    with TableQueries(table, engine, settings_for(FUSER, table)) as queries:
        return fit_table(FUSER.clone(), queries)


class KillsWorkers:
    """An engine that kills a worker before some of its passes."""

    def __init__(self, engine, passes):
        self.engine, self.passes, self.n_passes, self.n_killed = engine, passes, 0, 0

    def evaluate(self, requests):
        self.n_passes += 1
        if self.n_passes in self.passes:
            os.kill(self.engine.workers.pids[0], signal.SIGKILL)
            self.n_killed += 1
        return self.engine.evaluate(requests)


def test_weights_have_the_same_bits_although_workers_are_killed(table, engine):
    whole = learned(table, ThreadEngine(table, settings_for(FUSER, table)))
    killing = KillsWorkers(engine, passes={4})  # in every pass: python -m benchmarks.scale
    found = learned(table, killing)
    assert killing.n_killed == 1
    assert found.weights_.tobytes() == whole.weights_.tobytes()
    assert found.history_ == whole.history_


def test_only_loopback_is_bound(engine):
    addresses = [engine.client.scheduler.address, *engine.client.scheduler_info(n_workers=-1)["workers"]]
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)


def test_errors_of_a_worker_are_those_of_the_library(engine):
    with pytest.raises(InputError, match="weights must be 3 finite numbers"):
        engine.evaluate([Request("exact", (1.0, np.nan, 0.0))])


def test_no_scheduler_is_said_so(table, monkeypatch):
    monkeypatch.setattr("genm.scale.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(EngineError, match=r"tcp://127.0.0.1:9: expected a Dask scheduler; found none that answers"):
        genm.train(table, cluster="tcp://127.0.0.1:9")


KILLS_ITSELF = """
import os, signal, sys, time
import genm
from genm.scale.engines import ThreadEngine

evaluate, n_passes = ThreadEngine.evaluate, 0

def few(self, requests, shards=None):
    global n_passes
    n_passes += 1
    if n_passes == 6:
        time.sleep(1.1)  # the checkpoint is written once a second
    if n_passes == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return evaluate(self, requests, shards)

ThreadEngine.evaluate = few
genm.train(genm.scale.ScoreTable.open(sys.argv[1]), folds=2, checkpoint=sys.argv[2])
"""


def test_a_killed_client_resumes_to_the_same_bits(tmp_path):
    table = table_of(made_up(4, n_queries=12, n_docs=40), tmp_path / "table", n_shards=3)
    checkpoint = tmp_path / "checkpoint.json"
    killed = subprocess.run(
        [sys.executable, "-c", KILLS_ITSELF, str(tmp_path / "table"), str(checkpoint)],
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = genm.train(table, folds=2, checkpoint=checkpoint)
    assert [note.code for note in resumed.notes if note.code == "resumed"]
    whole = genm.train(table, folds=2)
    assert resumed.fuser.weights_.tobytes() == whole.fuser.weights_.tobytes()
    assert resumed.evidence.held_out.weights.tobytes() == whole.evidence.held_out.weights.tobytes()


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Make an authority and one certificate for all sides, by the commands of docs/scale.md."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    authority = ("-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=ca")
    openssl(folder, "req", "-x509", "-days", "30", *new_key, *authority)
    openssl(folder, "req", *new_key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=genm")
    signed = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", "30")
    openssl(folder, "x509", "-req", "-in", "request.pem", *signed, "-out", "cert.pem")
    return folder


def address_in(told):
    """Wait until a scheduler has written the whole of its file, and return the address there."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return json.loads(told.read_text(encoding="utf-8"))["address"]
        except (OSError, ValueError):  # there is no file yet, or half of it
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def encrypted(certificates):
    """Start a scheduler and a worker that speak TLS alone, and return the scheduler's address."""
    names = {"--tls-ca-file": "ca.pem", "--tls-cert": "cert.pem", "--tls-key": "key.pem"}
    files = [part for flag, name in names.items() for part in (flag, str(certificates / name))]
    told = certificates / "scheduler.json"
    flags = ["--host", "127.0.0.1", "--no-dashboard", *files]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--protocol", "tls", "--port", "0"]
    processes = [subprocess.Popen([*command, "--scheduler-file", str(told), *flags], **quiet)]
    try:
        address = address_in(told)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        processes.append(subprocess.Popen([*worker, *flags], **quiet))
        yield address
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_that_speaks_tls_gives_the_same_bits(table, certificates, encrypted):
    where = ClusterAddress(encrypted, *(str(certificates / name) for name in ("ca.pem", "cert.pem", "key.pem")))
    assert encrypted.startswith("tls://127.0.0.1:")
    engine = DaskEngine(table, settings_for(FUSER, table), where)
    found = learned(table, engine)
    engine.close()
    whole = learned(table, ThreadEngine(table, settings_for(FUSER, table)))
    assert found.weights_.tobytes() == whole.weights_.tobytes()


def test_a_cluster_that_speaks_tls_refuses_others(table, certificates, encrypted, monkeypatch):
    monkeypatch.setattr("genm.scale.cluster.CONNECT_SECONDS", 2)
    with pytest.raises(EngineError, match="found none that answers"):
        genm.train(table, cluster=encrypted.replace("tls://", "tcp://"))
    stranger = certificates / "stranger"
    stranger.mkdir()
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(stranger, "req", "-x509", *new_key, "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=stranger")
    files = (str(certificates / "ca.pem"), str(stranger / "cert.pem"), str(stranger / "key.pem"))
    with pytest.raises(EngineError, match="Check the address, the network and the certificates"):
        genm.train(table, cluster=ClusterAddress(encrypted, *files))
