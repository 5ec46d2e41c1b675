"""`genm.train(table)` and `genm fit --table`: figures, checkpoints, refusals."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from problems import QuickExact, made_up
from scale.tables import table_of
from typer.testing import CliRunner

import genm
from genm.cli.app import app
from genm.errors import EngineError, InputError, ModelError
from genm.evidence import evidence_path, load_evidence
from genm.learn import AutoFuser, CotrainFuser, ExactFuser, NewtonFuser, OnlineFuser
from genm.learn.table import TableProblem, TableQueries
from genm.learn.table_fit import fit_table, settings_for
from genm.scale import Checkpoint, Request, Settings, ThreadEngine, checkpoint_path


@pytest.fixture(scope="module")
def aligned():
    return made_up(5, n_queries=20, n_docs=40)


@pytest.fixture(scope="module")
def folder(aligned, tmp_path_factory):
    place = tmp_path_factory.mktemp("table")
    table_of(aligned, place, n_shards=3)
    return place


@pytest.fixture
def table(folder):
    return genm.scale.ScoreTable.open(folder)


@pytest.fixture(scope="module")
def trained(folder):
    return genm.train(genm.scale.ScoreTable.open(folder), folds=3, repeats=1)


def test_a_table_gives_the_evidence_of_a_fit_in_memory(trained, aligned):
    here = genm.train(aligned, folds=3, repeats=1)
    np.testing.assert_allclose(trained.fuser.weights_, here.fuser.weights_, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(trained.evidence.held_out.weights, here.evidence.held_out.weights, atol=1e-9)
    assert trained.evidence.held_out.per_query.tolist() == here.evidence.held_out.per_query.tolist()
    assert trained.evidence.held_out.fold.tolist() == here.evidence.held_out.fold.tolist()
    for name in here.evidence.singles:
        assert trained.evidence.singles[name].tolist() == here.evidence.singles[name].tolist()
    for name in here.evidence.rules:
        assert trained.evidence.rules[name].tolist() == here.evidence.rules[name].tolist()
    assert trained.evidence.train.tolist() == here.evidence.train.tolist()
    assert trained.evidence.gains == here.evidence.gains
    assert trained.evidence.unjudged == here.evidence.unjudged
    assert trained.verdict == here.verdict
    assert trained.evidence.query_ids == here.evidence.query_ids


def test_current_weights_are_one_more_rival(table, aligned):
    current = {"r0": 1.0, "r2": 1.0}
    here = genm.train(aligned, folds=2, method="newton", starts=[(1, 1, 1)], current=current).evidence
    there = genm.train(table, folds=2, method="newton", starts=[(1, 1, 1)], current=current).evidence
    assert there.rules[genm.evidence.CURRENT].tolist() == here.rules[genm.evidence.CURRENT].tolist()


def test_what_needs_runs_in_memory_says_so(trained, tmp_path):
    assert trained.aligned is None
    assert trained.losses() is None
    with pytest.raises(InputError, match="learned from a table, which is not in memory"):
        trained.report(tmp_path / "report.html")
    path = tmp_path / "model.json"
    trained.save(path)
    assert load_evidence(evidence_path(path)).evidence.gains == trained.evidence.gains
    assert trained.fuse(made_up(6, n_queries=2)).queries


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "expected"}, "it needs all aligned runs in memory"),
        ({"method": "exact", "certify": True}, r"certify \(--certify\): the proof needs all lists in memory"),
        ({"method": "exact", "device": "cuda"}, "the method exact learns on the CPU"),
        ({"method": "cotrain", "device": "cuda"}, "the method cotrain learns on the CPU"),
        ({"normalize": "auto"}, "a table is read under one normaliser"),
        ({"depth": 10}, r"depth \(--depth\): a table has its own lists"),
        ({"per_query": True}, r"per_query \(--per-query\): a table has its own lists"),
        ({"memory": "lots"}, r"memory \(--memory\) 'lots': expected a size such as 500MB"),
        ({"cluster": "tcp://example.org:8786"}, "found tcp://, which neither encrypts nor asks who connects"),
        ({"cluster": "http://x:1"}, "expected local:N, tls://HOST:PORT"),
        ({"cluster": "local:0"}, "expected local:N with N from 1 on"),
    ],
)
def test_refusals(table, options, message):
    with pytest.raises(InputError, match=message):
        genm.train(table, **options)


def test_refusals_of_a_table_where_there_is_none(aligned, tmp_path):
    with pytest.raises(InputError, match=r"memory \(--memory\) belongs to a table"):
        genm.train(aligned, memory="2GB")
    unjudged = table_of(made_up(5, n_queries=4, labelled=False), tmp_path, n_shards=2)
    with pytest.raises(InputError, match=r"method \(--method\) auto learns from judgments"):
        genm.train(unjudged, method="auto")
    with pytest.raises(InputError, match="carries no judgments"):
        TableQueries(unjudged, ThreadEngine(unjudged, Settings()), Settings())
    with pytest.raises(InputError, match="carries no judgments"):
        ThreadEngine(unjudged, Settings()).evaluate([Request("survey")])


def test_a_table_without_judgments_is_learned_from_without_labels(tmp_path):
    unjudged = made_up(5, n_queries=14, labelled=False)
    table = table_of(unjudged, tmp_path / "table", n_shards=3)
    found = genm.train(table)
    here = genm.learn.CotrainFuser().fit(genm.align.renormalize(unjudged, "zscore"))
    np.testing.assert_allclose(found.fuser.weights_, here.weights_, rtol=0.0, atol=1e-12)
    assert found.model.normalizers == here.normalizers_
    assert (found.evidence, found.verdict) == (None, genm.train(unjudged).verdict)
    assert "no-judgments" in [note.code for note in found.notes]
    found.save(tmp_path / "model.json")
    assert genm.load_model(tmp_path / "model.json").weights == found.model.weights
    as_told = genm.train(table, normalize="max")
    assert {one.kind for one in as_told.model.normalizers} == {"max"}


@pytest.mark.parametrize(
    ("method", "options"), [("cotrain", {"trust": 1.0}), ("exact", {"n_climbs": 1, "n_random": 0})]
)
def test_other_methods_give_the_evidence_of_a_fit_in_memory(table, aligned, method, options, monkeypatch):
    # test_engines.py has exact search from the weights of smoothed fusers, on a table and in memory
    monkeypatch.setattr(ExactFuser, "_starts", QuickExact._starts)
    here, there = (genm.train(source, method=method, folds=2, **options) for source in (aligned, table))
    np.testing.assert_allclose(there.fuser.weights_, here.fuser.weights_, rtol=0.0, atol=1e-9)
    held_out = [one.evidence.held_out for one in (here, there)]
    np.testing.assert_allclose(held_out[1].per_query, held_out[0].per_query, rtol=0.0, atol=1e-9)
    assert there.verdict == here.verdict


class Interrupted:
    """An engine that fails before a pass, as often as is asked for."""

    def __init__(self, engine, n_passes):
        self.engine, self.n_left = engine, n_passes

    def evaluate(self, requests):
        if self.n_left == 0:
            raise EngineError("the cluster has gone")
        self.n_left -= 1
        return self.engine.evaluate(requests)


@pytest.mark.parametrize(
    "fuser",
    [
        AutoFuser(repeats=1, folds=3),
        NewtonFuser(starts=[(1, 1, 1)]),
        OnlineFuser(max_iter=2, tol=1.0),
        CotrainFuser(trust=1.0, max_iter=5),
    ],
    ids=repr,
)
def test_a_fit_resumes_after_any_pass_to_the_same_bits(fuser, table, tmp_path):
    settings = settings_for(fuser, table)
    engine = ThreadEngine(table, settings)

    def learn(n_passes, path):
        checkpoint = Checkpoint(path, table=table.digest, options={"method": fuser.method}, interval=0.0)
        failing = Interrupted(engine, n_passes)
        with TableQueries(table, failing, settings, checkpoint=checkpoint) as queries:
            return fit_table(fuser.clone(), queries), n_passes - failing.n_left

    whole, n_whole = learn(1000, tmp_path / "whole.json")
    path = tmp_path / "checkpoint.json"
    n_failures = 0
    while True:
        try:  # passes with long answers are always asked again
            resumed, _ = learn(12, path)
        except EngineError:
            n_failures += 1
            assert n_failures < 100
            continue
        break
    assert resumed.weights_.tobytes() == whole.weights_.tobytes()
    assert resumed.history_ == whole.history_
    assert n_failures > 0 or n_whole <= 12
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["format"], document["table"]) == ("genm-checkpoint", table.digest)
    assert len(document["weights"]) == 3


def test_a_checkpoint_of_something_else_is_not_used(table, tmp_path):
    path = tmp_path / "c.json"
    Checkpoint(path, table="one", options={"seed": 0}).save()
    assert Checkpoint(path, table="two", options={"seed": 0}).mismatch == "it belongs to another table"
    other = Checkpoint(path, table="one", options={"seed": 1})
    assert other.mismatch == "it belongs to a fit with other options (seed)"
    assert Checkpoint(path, table="one", options={"seed": 0}).mismatch == ""
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match='expected "format": "genm-checkpoint"'):
        Checkpoint(path)
    Checkpoint(path.with_name("d.json"), table="other").save()
    found = genm.train(table, folds=2, method="newton", starts=[(1, 1, 1)], checkpoint=path.with_name("d.json"))
    assert [note.code for note in found.notes if "checkpoint" in note.code] == ["checkpoint-unused"]
    again = genm.train(table, folds=2, method="newton", starts=[(1, 1, 1)], checkpoint=path.with_name("d.json"))
    assert "resumed" in [note.code for note in again.notes]
    assert again.fuser.weights_.tobytes() == found.fuser.weights_.tobytes()


def test_the_command_writes_the_model_and_removes_the_checkpoint(folder, trained, tmp_path):
    path = tmp_path / "model.json"
    arguments = ["fit", "--table", str(folder), "--folds", "3", "-o", str(path), "--format", "json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["weights"] == dict(zip(("r0", "r1", "r2"), genm.load_model(path).weights, strict=True))
    assert genm.load_model(path).fingerprint == genm.scale.ScoreTable.open(folder).digest
    assert not checkpoint_path(path).exists()
    assert evidence_path(path).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected runs, or a table by --table; found neither"),
        (["a.trec", "--table", "t"], "expected runs, or a table by --table; found both"),
        (["a.trec", "--memory", "2GB"], "--memory belongs to a table"),
        (["--table", "t", "--tls-ca", "ca.pem"], "--tls-ca belongs to --cluster tls://HOST:PORT"),
        (["--table", "t", "--memory", "2 apples"], "expected a size such as 500MB or 2GB"),
        (["--table", "no-such-table"], "expected a score table"),
    ],
)
def test_the_command_refuses(arguments, message):
    done = CliRunner().invoke(app, ["fit", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_searches_at_the_same_time_remember_exact_means_in_turn():
    problem = object.__new__(TableProblem)
    problem.beta, problem.smooth_j, problem.total, problem._exact = 1.0, False, 2.0, {}
    problem.ask = lambda weights, **_: [np.float64(weights[0]), np.float64(1.0), np.ones(1)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda i: problem.gradient(np.array([float(i)])), range(20_000)))
    finally:
        sys.setswitchinterval(interval)
    assert len(problem._exact) == 64
    assert all(value == np.frombuffer(key)[0] / 2.0 for key, value in problem._exact.items())
