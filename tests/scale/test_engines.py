"""Engines: all of them give the same bits, and fits from a table give the weights of fits in memory."""

import itertools
import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up
from scale.tables import table_of

from genm.errors import InputError
from genm.learn import AutoFuser, BarrierFuser, ExactFuser, NewtonFuser, OnlineFuser
from genm.learn.table import TableProblem, TableQueries, fit_table, settings_for
from genm.scale.engines import ProcessEngine, ThreadEngine, blocks_of_shards, usable_memory
from genm.scale.evaluation import Request, Settings, combine, tree_sum

REQUESTS = (
    Request("smooth", (0.5, 0.3, 0.2), beta=8.0, order=1),
    Request("smooth", (0.2, 0.3, 0.5), beta=8.0, order=2, total=17.0),
    Request("exact", (1.0, 0.0, 0.0)),
    Request("exact", (1.0, 0.0, 0.0), per_query=True),
    Request("measure", (0.2, 0.3, 0.5), measure="nDCG@10", per_query=True),
    Request("ranker", ranker="r1", measure="AP"),
    Request("rrf", measure="AP"),
    Request("survey"),
)


@pytest.fixture(scope="module")
def aligned():
    return made_up(3, n_queries=23, n_docs=70)


@pytest.fixture(scope="module")
def table(aligned, tmp_path_factory):
    return table_of(aligned, tmp_path_factory.mktemp("table"), n_shards=5)


def learned(fuser, table, **options):
    settings = settings_for(fuser, table)
    with TableQueries(table, ThreadEngine(table, settings, **options), settings) as queries:
        return fit_table(fuser, queries)


def same_bits(one, other) -> bool:
    return [[[a.tobytes() for a in arrays] for arrays in shard] for shard in one] == [
        [[a.tobytes() for a in arrays] for arrays in shard] for shard in other
    ]


FUSERS = (
    AutoFuser(repeats=2),
    AutoFuser(signs="any", repeats=1),
    AutoFuser(measure="nDCG@10", repeats=1),
    NewtonFuser(starts=[(1.0, 1.0, 1.0), (1.0, 0.0, 1.0)]),
    NewtonFuser(smooth_j=True, anneal=(0.5,), starts=[(1.0, 1.0, 1.0)]),
    BarrierFuser(starts=[(1.0, 1.0, 1.0)]),
    OnlineFuser(max_iter=3, tol=1.0),
)


@pytest.mark.parametrize("fuser", FUSERS, ids=repr)
def test_a_table_of_one_shard_gives_the_bits_of_a_fit_in_memory(fuser, aligned, tmp_path):
    one = table_of(aligned, tmp_path, n_shards=1)
    here, there = fuser.clone().fit(aligned), learned(fuser.clone(), one)
    assert there.weights_.tobytes() == here.weights_.tobytes()
    assert there.beta_ == here.beta_
    assert there.objective_ == here.objective_
    assert there.history_ == here.history_


# a direct search compares values that are often equal, and may take another of equally good weights
@pytest.mark.parametrize("fuser", [fuser for fuser in FUSERS if "nDCG" not in repr(fuser)], ids=repr)
def test_a_table_of_several_shards_gives_the_weights_of_a_fit_in_memory(fuser, aligned, table):
    here, there = fuser.clone().fit(aligned), learned(fuser.clone(), table)
    # sums over shards differ in the last digit, which a search on a flat top turns into some 1e-9
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0.0, atol=1e-8)


def test_other_methods_say_that_a_table_does_not_do(table):
    with pytest.raises(InputError, match=r"method \(--method\) exact: it needs all aligned runs in memory"):
        learned(ExactFuser(), table)
    with pytest.raises(InputError, match="a table is read under one normaliser"):
        learned(AutoFuser(normalize="auto"), table)


def test_shards_beyond_the_memory_are_read_again_and_change_nothing(table):
    everything, nothing = ThreadEngine(table, Settings()), ThreadEngine(table, Settings(), memory=0)
    whole = everything.evaluate(REQUESTS)
    shard = 70 * 5 * 3 * 8  # of 23 queries in 5 shards, each has 4 or 5
    some = ThreadEngine(table, Settings(), memory=3 * shard)
    for engine in (nothing, some, everything):
        assert same_bits(engine.evaluate(REQUESTS), whole)
        assert same_bits(engine.evaluate(REQUESTS[:2]), [answers[:2] for answers in whole])
    assert (everything.n_kept, nothing.n_kept) == (5, 0)
    assert 0 < some.n_kept < 5


@settings(max_examples=15)
@given(st.data())
def test_bits_do_not_depend_on_order_threads_or_company(table, data):
    """Threads, the order in which shards are finished, and what else is asked in the pass make no difference."""
    requests = data.draw(st.permutations(REQUESTS))
    marks = data.draw(st.lists(st.booleans(), min_size=23, max_size=23))
    ends = np.cumsum([0, *table.shard_queries])
    packed = tuple(np.packbits(marks[a:b]).tobytes() for a, b in itertools.pairwise(ends))
    asked = [*requests, Request("smooth", (0.5, 0.3, 0.2), beta=8.0, order=1, queries=packed)]
    engine = ThreadEngine(table, Settings(), memory=data.draw(st.sampled_from((0, 30_000, 2**30))))
    order = data.draw(st.permutations(range(5)))
    found = dict(zip(order, engine.evaluate(asked, order), strict=True))
    for r, request in enumerate(asked):
        alone = ThreadEngine(table, Settings()).evaluate([request])
        ours = combine(request, [found[i][r] for i in range(5)])
        assert [a.tobytes() for a in ours] == [a.tobytes() for a in combine(request, [a[0] for a in alone])]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_the_tree_adds_neighbours_first(values):
    def halves(part):  # the same tree, written from the top
        if len(part) == 1:
            return part[0]
        size = 1
        while 2 * size < len(part):
            size *= 2
        return halves(part[:size]) + halves(part[size:])

    assert tree_sum([np.float64(value) for value in values]) == halves(values)


def test_processes_give_the_same_bits_and_are_started_again_after_a_kill(table):
    whole = ThreadEngine(table, Settings()).evaluate(REQUESTS)
    with ProcessEngine(table, Settings(), n_workers=2) as engine:
        assert same_bits(engine.evaluate(REQUESTS), whole)
        os.kill(engine.pids[0], signal.SIGKILL)
        assert same_bits(engine.evaluate(REQUESTS), whole)
        with pytest.raises(InputError, match="beta=-1"):
            engine.evaluate([Request("smooth", (1.0, 0.0, 0.0), beta=-1.0)])


def test_jobs_share_passes_and_errors_reach_their_caller(table):
    settings = Settings()
    engine = ThreadEngine(table, settings)
    n_passes = []
    evaluate = engine.evaluate
    engine.evaluate = lambda requests: n_passes.append(len(requests)) or evaluate(requests)
    with TableQueries(table, engine, settings) as queries:
        problem = TableProblem(queries)
        found = queries.lockstep(problem.exact, list(np.eye(3)))
        assert n_passes == [1, 3]
        assert found == [problem.exact(one) for one in np.eye(3)]

        def nested(k: int) -> list[float]:
            if k == 2:
                raise InputError("no third job")
            return queries.lockstep(problem.exact, list(np.eye(3)))

        assert queries.lockstep(nested, [0, 1]) == [found, found]
        assert n_passes[-1] == 6
        with pytest.raises(InputError, match="no third job"):
            queries.lockstep(nested, [0, 1, 2])
        with pytest.raises(InputError, match="weights must be 3 finite numbers"):
            problem.value(np.ones(2))


def test_blocks_cover_all_shards_in_order():
    for n_shards in range(1, 12):
        for n_blocks in range(1, 15):
            blocks = blocks_of_shards(n_shards, n_blocks)
            assert list(itertools.chain(*blocks)) == list(range(n_shards))
            assert len(blocks) == min(n_shards, n_blocks)
            assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    assert usable_memory() > 0
