"""The GPU: its kernels run on the CPU, and are compared with the kernels of the CPU on the same float32 scores.

`scale.cuda_on_cpu` compiles the kernels' own file by g++. What needs a real GPU skips where there is none.
"""

import itertools
import pickle
import subprocess
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up
from scale.cuda_on_cpu import COMPILER, CpuDevice
from scale.tables import table_of
from typer.testing import CliRunner

import genm
from genm._math.average_precision import exact_ap, smooth_ap
from genm._math.tiles import build_tiles, mean, take
from genm.cli.app import app
from genm.errors import EngineError, GenmError, InputError, MissingExtraError
from genm.learn import AutoFuser, BarrierFuser, NewtonFuser, OnlineFuser
from genm.learn.cuda import CudaProblem
from genm.learn.objectives import Problem
from genm.learn.table import TableQueries
from genm.learn.table_fit import fit_table, settings_for
from genm.scale import ClusterAddress, Request, Settings, ThreadEngine, cluster, cuda, open_engine
from genm.scale.cuda import CudaDevice, Tuning, find_device, upload
from genm.scale.cuda_shard import CudaShard

pytestmark = pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")
BETA = 30.0
WEIGHTS = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.2, 0.2, 0.6]])
LONG = 100


@pytest.fixture(scope="module")
def device(request, tmp_path_factory):
    """Return a device whose kernels are compiled once, or in every session where pytest keeps no cache."""
    if COMPILER is None:
        pytest.skip("g++ is not installed, which compiles the CUDA kernels for the CPU")
    kept = getattr(request.config, "cache", None)
    return CpuDevice(tmp_path_factory.mktemp("kernels") if kept is None else kept.mkdir("cuda_on_cpu"))


@pytest.fixture
def gpu(device, monkeypatch):
    """Have "cuda" name the device that runs on the CPU."""
    monkeypatch.setattr(cuda, "_device_of", lambda number: device)
    return device


@pytest.fixture(scope="module")
def aligned():
    """Queries with 2 relevant documents, in scores that float32 holds; those of the first query have no row."""
    found = made_up(4, n_queries=8, n_docs=40, n_relevant=2)
    relevance = found.relevance.copy()
    relevance[: found.starts[1]] = 0
    scores = found.scores.astype(np.float32).astype(np.float64)
    return replace(found, relevance=relevance, scores=scores, query_weights=np.arange(8.0))


def ragged(seed):
    """Return float32 scores with ties: queries of all lengths, 0 to 5 relevant documents, some without a row."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate((rng.permutation([LONG + 30, 0, 1]), rng.integers(2, 70, 4)))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    scores = rng.random((starts[-1], 3))
    scores = np.where(rng.random((starts[-1], 1)) < 0.5, scores.round(1), scores).astype(np.float32)
    equal = np.flatnonzero(rng.random(starts[-1] - 1) < 0.3)
    scores[equal] = scores[equal + 1]
    relevant = np.zeros(starts[-1], np.bool_)
    for q, size in enumerate(sizes):
        wanted = (
            3 if size >= LONG else int(rng.integers(0, 6))
        )  # long queries have several: fewer kernels to compile
        relevant[starts[q] + rng.permutation(size)[:wanted]] = True
    counts = np.add.reduceat(np.append(relevant, False), starts[:-1]) * (sizes > 0)
    return starts, scores, relevant, counts + rng.integers(0, 2, len(sizes)), rng.random(len(sizes))


def ranks_by_sorting(starts, scores, relevant, weights):
    """Return rank, first and last rank of the relevant rows."""
    found = []
    for low, high in itertools.pairwise(starts):
        fused = np.zeros(high - low)
        for k in range(scores.shape[1]):
            fused = fused + weights[k] * scores[low:high, k].astype(np.float64)
        order = np.argsort(-fused, kind="stable")
        rank = np.empty(high - low, np.int64)
        rank[order] = np.arange(1, high - low + 1)
        own = np.flatnonzero(relevant[low:high])
        found += [(rank[row], (fused > fused[row]).sum() + 1, (fused >= fused[row]).sum()) for row in own]
    return np.array(found).reshape(-1, 3).T


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_kernels_agree_with_those_of_the_cpu(device, seed):
    """Exact values to the bit; smoothed ones to 1e-5 of the greatest, on any lengths, labels and ties."""
    starts, scores, relevant, n_relevant, query_weights = ragged(seed)
    tuning = Tuning(group=2, long=LONG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "_LEAST_MIDDLE", 0)  # several warps for every query with one relevant document
        shard = upload(starts, scores, relevant, n_relevant, query_weights, device=device, tuning=tuning)
        shard._launches()
    tiles = build_tiles(starts, scores.astype(np.float64), relevant, n_relevant, query_weights)
    assert shard.exact_ap(WEIGHTS[:2]).tolist() == [exact_ap(tiles, one).tolist() for one in WEIGHTS[:2]]
    values, gradients = shard.smooth(WEIGHTS[:1], BETA, order=1)
    expected = smooth_ap(tiles, WEIGHTS[0], BETA, order=1)
    np.testing.assert_allclose(values[0], expected.value, rtol=1e-5)
    np.testing.assert_allclose(gradients[0], expected.gradient, rtol=0, atol=1e-5 * scale_of(expected.gradient))
    sums = shard.smooth_sums(WEIGHTS[2:], BETA, order=2, smooth_j=True)
    expected = smooth_ap(tiles, WEIGHTS[2], BETA, order=2, smooth_j=True)
    total = tiles.total_weight
    for found, mine in (
        (sums.value[0], mean(tiles, expected.value)),
        (sums.gradient[0], mean(tiles, expected.gradient)),
        (sums.hessian[0], expected.hessian),
    ):
        np.testing.assert_allclose(found / total, mine, rtol=0, atol=1e-5 * scale_of(mine))
    chosen = np.random.default_rng(seed).integers(0, len(starts) - 1, 5)
    part = shard.select(chosen)
    assert part.exact_ap(WEIGHTS[:2]).tolist() == exact_rows(tiles, chosen)
    again = shard.smooth(WEIGHTS[:1], BETA, order=1)
    assert (again[0].tobytes(), again[1].tobytes()) == (values.tobytes(), gradients.tobytes())
    variances = [s.var() if len(s) else 0.0 for s in np.split(scores.astype(np.float64) @ WEIGHTS[0], starts[1:-1])]
    np.testing.assert_allclose(shard.variances(WEIGHTS[0]), variances, rtol=1e-9, atol=1e-15)


def scale_of(array):
    return max(float(np.abs(array).max(initial=0.0)), 1e-12)


def exact_rows(tiles, chosen):
    return [exact_ap(take(tiles, chosen), one).tolist() for one in WEIGHTS[:2]]


def test_ranks_and_those_that_ties_could_give(device):
    starts, scores, relevant, n_relevant, _ = ragged(5)
    shard = upload(starts, scores, relevant, n_relevant, device=device, tuning=Tuning(group=1))
    found = shard.ranks(WEIGHTS[:1], ties=True)
    expected = ranks_by_sorting(starts, scores, relevant, WEIGHTS[0])
    assert [found.rank[0].tolist(), found.first[0].tolist(), found.last[0].tolist()] == expected.tolist()
    assert (found.first < found.last).any()


def test_scores_that_float32_cannot_hold_are_refused(device):
    for wrong in (np.nan, np.inf, 1e31):
        with pytest.raises(InputError, match="scores: expected finite numbers below 1e\\+30 on a GPU"):
            upload(np.array([0, 2]), np.array([[1.0], [wrong]]), np.array([True, False]), np.ones(1), device=device)


def test_a_problem_on_a_gpu_is_that_of_the_cpu(device, aligned):
    here, there = Problem(aligned), CudaProblem(aligned, device=device)
    assert there.beta == pytest.approx(here.beta, rel=1e-6)
    assert (there.kept.tolist(), there.n_set_aside) == (here.kept.tolist(), here.n_set_aside)
    assert there.query_weights.tolist() == here.query_weights.tolist()
    some = np.array([3, 1, 1])
    marks = np.roll(aligned.relevance > 0, 1)
    pairs = [
        (here, there, WEIGHTS[0]),
        (here.select(some), there.select(some), WEIGHTS[2]),
        (here.with_beta(3.0), there.with_beta(3.0), WEIGHTS[0]),
        (here.with_labels(marks), there.with_labels(marks), WEIGHTS[0]),
        (here.with_rankers([2, 0]), there.with_rankers([2, 0]), np.array([0.7, 0.3])),
    ]
    for one, other, weights in pairs:
        assert other.rankers == one.rankers
        assert other.exact_per_query(weights).tolist() == one.exact_per_query(weights).tolist()
        assert other.exact(weights) == one.exact(weights)
        for mine, theirs in zip(other.gradient(weights), one.gradient(weights), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    assert there.value(WEIGHTS[0]) == pytest.approx(here.value(WEIGHTS[0]), rel=1e-6)
    for mine, theirs in zip(there.derivatives(WEIGHTS[0]), here.derivatives(WEIGHTS[0]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5 * scale_of(theirs))
    mine, theirs = there.gradients_at(WEIGHTS[0])(some), here.gradients_at(WEIGHTS[0])(some)
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="it learns from one query at a time, on the CPU"):
        OnlineFuser().fit_problem(there)


FUSERS = (
    (NewtonFuser(starts=[(1.0, 1.0, 1.0)]), 1e-5),
    (BarrierFuser(starts=[(1.0, 1.0, 1.0)]), 1e-4),  # it stops short of the optimum, at a point that rounding moves
    (AutoFuser(repeats=1, folds=3), 1e-5),
    (AutoFuser(signs="any", repeats=1, folds=2), 1e-5),
)


@pytest.mark.parametrize(("fuser", "tolerance"), FUSERS, ids=repr)
def test_fusers_learn_the_weights_of_the_cpu(fuser, tolerance, device, aligned):
    here, there = fuser.clone(), fuser.clone()
    here.fit_problem(Problem(aligned, beta=10.0))
    there.fit_problem(CudaProblem(aligned, beta=10.0, device=device))
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=tolerance, atol=1e-5)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
    again = fuser.clone().fit_problem(CudaProblem(aligned, beta=10.0, device=device))
    assert again.weights_.tobytes() == there.weights_.tobytes()
    assert again.history_ == there.history_


def test_a_problem_of_scores_that_are_on_the_gpu_already(device, aligned):
    labels = aligned.relevance > 0, aligned.n_relevant(1), aligned.query_weights
    shard = upload(aligned.starts, aligned.scores, *labels, device=device)
    problem = CudaProblem.from_shard(shard, aligned.rankers)
    expected = CudaProblem(aligned, device=device)
    assert problem.beta == expected.beta
    assert problem.gradient(WEIGHTS[0])[1].tolist() == expected.gradient(WEIGHTS[0])[1].tolist()
    with pytest.raises(InputError, match="rankers: expected 3 names, one for each column; found 2"):
        CudaProblem.from_shard(shard, ["a", "b"])
    none = shard.relabel(np.zeros(len(aligned.doc), np.bool_))
    with pytest.raises(InputError, match="no query has a relevant document"):
        CudaProblem.from_shard(none, aligned.rankers)


REQUESTS = (
    Request("smooth", (0.5, 0.3, 0.2), beta=8.0, order=1),
    Request("smooth", (0.2, 0.3, 0.5), beta=8.0, order=2, total=17.0),
    Request("smooth", (0.2, 0.3, 0.5), beta=8.0, order=1, per_query=True),
    Request("exact", (1.0, 0.0, 0.0)),
    Request("exact", (1.0, 0.0, 0.0), per_query=True),
    Request("measure", (0.2, 0.3, 0.5), measure="nDCG@10", per_query=True),
    Request("smooth", (0.5, 0.3, 0.2), beta=8.0, order=1, queries=(b"\xa0", b"\x50")),
    Request("exact", (0.5, 0.3, 0.2), queries=(b"\x00", b"\x50")),
    Request("survey"),
)


@pytest.fixture(scope="module")
def table(aligned, tmp_path_factory):
    return table_of(aligned, tmp_path_factory.mktemp("table"), n_shards=2, dtype="float32")


def test_shards_on_a_gpu_answer_as_those_of_the_cpu(gpu, table):
    here = ThreadEngine(table, Settings(dtype="float32")).evaluate(REQUESTS)
    engine = ThreadEngine(table, Settings(device="cuda"))
    there = engine.evaluate(REQUESTS)
    for one, other in zip(here, there, strict=True):
        for request, mine, theirs in zip(REQUESTS, other, one, strict=True):
            for found, expected in zip(mine, theirs, strict=True):
                assert found.shape == expected.shape, request
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5, err_msg=str(request))
    assert engine.n_bytes == sum(shard.nbytes for shard in engine._kept.values()) > 0
    assert all(isinstance(shard, CudaShard) for shard in engine._kept.values())
    read_again = ThreadEngine(table, Settings(device="cuda"), memory=0)
    alone = [read_again.evaluate([request]) for request in REQUESTS]
    for r in range(len(REQUESTS)):  # no bit depends on what else is asked, or on whether a shard was kept
        bits = [[a.tobytes() for a in shard[r]] for shard in there]
        assert bits == [[a.tobytes() for a in shard[0]] for shard in alone[r]]


def test_a_table_is_learned_from_on_a_gpu(gpu, table):
    found = {}
    for place in ("cpu", "cuda"):
        fuser = NewtonFuser(starts=[(1.0, 1.0, 1.0)], beta=10.0)
        chosen = settings_for(fuser, table, place)
        with TableQueries(table, open_engine(table, chosen), chosen) as queries:
            found[place] = fit_table(fuser, queries).weights_
    np.testing.assert_allclose(found["cuda"], found["cpu"], rtol=1e-5, atol=1e-5)


def test_each_worker_takes_a_gpu_of_its_own(gpu, table, monkeypatch):
    """Workers that genm starts are numbered; one after the last GPU takes the first again."""
    taken = []
    monkeypatch.setattr(cuda, "_device_of", lambda number: taken.append(number) or gpu)
    monkeypatch.setattr(cluster, "n_devices", lambda: 2)
    distributed = types.ModuleType("distributed")
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    answers = []
    for name in (0, 1, 2):
        distributed.get_worker = lambda name=name: types.SimpleNamespace(name=name)
        each = Settings(device=cluster.ONE_GPU_EACH)
        answers.append(cluster.evaluate_block(table, each, [0, 1], list(REQUESTS[:1]), None))
    assert set(taken[: len(taken) // 2]) == {0, 1}
    assert answers[0][0][0][0].tobytes() == answers[1][0][0][0].tobytes() == answers[2][0][0][0].tobytes()
    cluster._engines.clear()


class NoDevice(Exception):
    """What CuPy raises without a driver."""


def fake_cupy(count):
    """Return a CuPy that finds so many GPUs; below 0: no driver."""

    def get_count():
        if count < 0:
            raise NoDevice("cudaErrorNoDevice")
        return count

    runtime = types.SimpleNamespace(getDeviceCount=get_count, CUDARuntimeError=NoDevice)
    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(runtime=runtime)
    return module


def test_what_is_missing_is_said(aligned, monkeypatch):
    monkeypatch.setattr(cuda, "_device_of", CudaDevice)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"CuPy.*pip install 'genm\[cuda\]'") as caught:
        CudaProblem(aligned)
    copy = pickle.loads(pickle.dumps(caught.value))  # as it comes from a worker
    assert str(copy) == str(caught.value)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(-1))
    with pytest.raises(InputError, match=r"expected an NVIDIA GPU and its driver; found none .*nvidia-smi"):
        CudaProblem(aligned)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(2))
    with pytest.raises(InputError, match=r"GPU 2: expected one of 0 to 1; found 2 GPUs.*CUDA_VISIBLE_DEVICES"):
        CudaProblem(aligned, device="cuda:2")
    for wrong in ("gpu", "cuda:", "cuda:x", "cuda:-1"):
        with pytest.raises(InputError, match='expected "cpu", "cuda" or "cuda:NUMBER"'):
            find_device(wrong)


def test_more_rankers_than_a_hessian_has_registers_for(device, aligned, monkeypatch):
    problem = CudaProblem(aligned, device=device)
    monkeypatch.setattr(cuda, "MOST_HESSIAN_RANKERS", 2)
    with pytest.raises(InputError, match=r"3 rankers: expected at most 2 for second derivatives on a GPU.*auto"):
        problem.derivatives(WEIGHTS[0])


def test_the_command_line_takes_a_device(table, monkeypatch):
    asked = []

    def refuse(table, settings, **_):
        asked.append(settings.device)
        raise EngineError("asked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genm.training.open_engine", refuse)
        for device in ("cuda:1", "cpu"):
            result = CliRunner().invoke(app, ["fit", "--table", table.path, "--device", device])
            assert (result.exit_code, "asked" in result.output) == (2, True)
    assert asked == ["cuda:1", "cpu"]
    monkeypatch.setattr(cuda, "_device_of", CudaDevice)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"genm\[cuda\]"):
        genm.train(table, device="cuda")
    with pytest.raises(InputError, match='expected "cpu", "cuda" or "cuda:NUMBER"'):
        genm.train(table, device="gpu", cluster=ClusterAddress("tls://example.org:8786"))
    with pytest.raises(InputError, match=r"device \(--device\) cuda: the method online learns on the CPU"):
        genm.train(table, method="online", device="cuda")
    with pytest.raises(InputError, match=r"device \(--device\) belongs to a table"):
        genm.train({"a": made_up(1)}, device="cuda")


def test_the_module_needs_numpy_and_cupy_alone():
    """It runs where the rest of the package is not installed."""
    code = "import sys; import genm.scale.cuda; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "scipy", "polars", "pyarrow", "msgspec", "narwhals", "zstandard", "distributed"}
    assert not heavy & set(done.stdout.split())
    assert {"numpy", "genm"} <= set(done.stdout.split())


def test_a_real_gpu_agrees_with_the_cpu(aligned, monkeypatch):
    try:
        CudaDevice()
    except GenmError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(cuda, "_LEAST_STAGED", 0)
    here, there = Problem(aligned, beta=10.0), CudaProblem(aligned, beta=10.0)
    assert there.exact_per_query(WEIGHTS[0]).tolist() == here.exact_per_query(WEIGHTS[0]).tolist()
    np.testing.assert_allclose(there.gradient(WEIGHTS[0])[1], here.gradient(WEIGHTS[0])[1], rtol=1e-5, atol=1e-6)
    weights = [AutoFuser(repeats=1).fit_problem(one).weights_ for one in (here, there)]
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-5, atol=1e-5)
