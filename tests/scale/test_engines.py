"""Engines: all of them give the same bits, and fits from a table give the weights of fits in memory."""

import itertools
import os
import signal
import warnings
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import QuickExact, made_up
from scale.tables import table_of
from thread_counts import use_threads

import genm
from genm.errors import ConvergenceWarning, InputError
from genm.fuse import rule_scores
from genm.learn import AutoFuser, BarrierFuser, BoostFuser, CotrainFuser, ExactFuser, NewtonFuser, OnlineFuser
from genm.learn.table import TableProblem, TableQueries
from genm.learn.table_fit import fit_table, settings_for
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


@pytest.fixture(scope="module")
def fewer():
    """Fewer and shorter queries, for learners that take hundreds of passes."""
    return made_up(3, n_queries=12, n_docs=40)


@pytest.fixture(scope="module")
def fewer_table(fewer, tmp_path_factory):
    return table_of(fewer, tmp_path_factory.mktemp("fewer"), n_shards=3)


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


def test_weights_do_not_depend_on_the_learning_curve(table):
    def fitted(curve):
        fuser = AutoFuser(repeats=1)
        settings = settings_for(fuser, table)
        with TableQueries(table, ThreadEngine(table, settings), settings) as queries:
            return fit_table(fuser, queries, curve=curve)

    with_curve, without = fitted(curve=True), fitted(curve=False)
    assert without.weights_.tobytes() == with_curve.weights_.tobytes()
    assert without.held_out_ == with_curve.held_out_
    assert without.history_ == []
    assert not hasattr(without, "objective_")


def test_exact_values_beside_smoothed_ones_are_left_out_on_demand(table):
    settings = Settings(dtype="float64")
    for order in (0, 1, 2):
        asked = Request("smooth", (0.5, 0.3, 0.2), beta=8.0, order=order)
        ((exact, *others),), *_ = ThreadEngine(table, settings).evaluate([asked])
        ((zero, *same),), *_ = ThreadEngine(table, settings).evaluate([replace(asked, with_exact=False)])
        assert exact > 0.0
        assert zero == 0.0
        assert same_bits([[others]], [[same]])


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


NEAR = (
    CotrainFuser(),
    CotrainFuser(trust=1.0, max_iter=6),
    CotrainFuser(trust=1.0, free=True, starts=[(1.0, 0.0, 1.0)], schedule="paper", max_iter=3),
    CotrainFuser(labels="threshold", threshold=0.8),
    ExactFuser(n_climbs=1, n_random=1),
    ExactFuser(measure="P@5", n_climbs=1, n_random=0),
)
"""Fusers whose sums are taken in another order than in memory, whatever the number of shards."""


@pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")
@pytest.mark.parametrize("fuser", NEAR, ids=repr)
def test_cotraining_and_exact_lines_give_the_weights_of_a_fit_in_memory(fuser, fewer, fewer_table):
    here, there = fuser.clone().fit(fewer), learned(fuser.clone(), fewer_table)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0.0, atol=1e-8)
    assert there.objective_ == pytest.approx(here.objective_, abs=1e-12)
    if isinstance(fuser, ExactFuser):
        assert there.best_value_ == pytest.approx(here.best_value_, abs=1e-12)
        np.testing.assert_allclose(there.plateau_.low, here.plateau_.low, atol=2.0**-11)
        np.testing.assert_allclose(there.plateau_.high, here.plateau_.high, atol=2.0**-11)
    else:
        np.testing.assert_allclose(there.quality_.overlap, here.quality_.overlap, atol=1e-12)
        assert there.quality_.specificity.tolist() == here.quality_.specificity.tolist()


@settings(max_examples=6, deadline=None)
@given(
    fuser=st.sampled_from((*NEAR, NewtonFuser(starts=[(1.0, 1.0, 1.0)]))),
    memory=st.sampled_from((0, 8_000, 2**30)),
    threads=st.sampled_from(("1", "3")),
    marks=st.lists(st.booleans(), min_size=12, max_size=12).filter(lambda marks: sum(marks) > 3),
)
def test_bits_of_every_learner_do_not_depend_on_memory_or_threads(fewer_table, fuser, memory, threads, marks):
    """The exact fuser begins at simple weights: those that other learners find take nine tenths of its passes."""
    table = fewer_table
    chosen, own = np.flatnonzero(marks), settings_for(fuser, table)

    def fitted(**options):
        with TableQueries(table, ThreadEngine(table, own, **options), own) as queries:
            return fit_table(fuser.clone(), queries, chosen)

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", ConvergenceWarning)
        patch.setattr(ExactFuser, "_starts", QuickExact._starts)
        whole = fitted()
        use_threads(patch, threads)
        other = fitted(memory=memory)
    assert other.weights_.tobytes() == whole.weights_.tobytes()
    assert other.history_ == whole.history_


def test_lines_are_cut_finer_until_few_swaps_are_left(table, aligned, monkeypatch):
    monkeypatch.setattr(ExactFuser, "_starts", QuickExact._starts)  # lines are what is tested, from any start
    exact = ExactFuser(n_climbs=1, n_random=0)
    whole = learned(exact.clone(), table)
    monkeypatch.setattr("genm._math.exact.line_parts.MOST_SWAPS", 20)
    monkeypatch.setattr("genm._math.exact.line_parts.MOST_SPANS", 2)
    finer = learned(exact.clone(), table)
    np.testing.assert_allclose(finer.weights_, whole.weights_, rtol=0.0, atol=1e-9)
    assert finer.best_value_ == whole.best_value_


def test_other_methods_say_that_a_table_does_not_do(table):
    with pytest.raises(InputError, match=r"method \(--method\) enm: it needs all aligned runs in memory"):
        learned(BoostFuser(), table)
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


@pytest.fixture(scope="module")
def alone(table):
    """Return the bits of the answer to a request that is asked alone; each is computed once."""

    @cache
    def bits(request):
        answers = ThreadEngine(table, Settings()).evaluate([request])
        return [a.tobytes() for a in combine(request, [shard[0] for shard in answers])]

    return bits


@settings(max_examples=15)
@given(st.data())
def test_bits_do_not_depend_on_order_threads_or_company(table, alone, data):
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
        ours = combine(request, [found[i][r] for i in range(5)])
        assert [a.tobytes() for a in ours] == alone(request)


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


def measured(table, request, **settings):
    """Return the answer of the whole table to one request about every query."""
    answers = ThreadEngine(table, Settings(**settings)).evaluate([request])
    return combine(request, [shard[0] for shard in answers])[0]


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Queries without weight, without relevant documents, without documents; gaps; as many rows as rankers."""
    aligned = made_up(8, n_queries=12, n_docs=30)
    lengths = [3, 30, 1, 0, 3, 30, 30, 3, 2, 30, 30, 5]
    kept = np.concatenate([np.arange(n) + q * 30 for q, n in enumerate(lengths)])
    retrieved = aligned.retrieved[kept] & (np.random.default_rng(0).random((len(kept), 3)) < 0.8)
    retrieved[~retrieved.any(axis=1), 0] = True
    relevance = np.where(np.arange(len(kept)) % 3 == 0, np.arange(len(kept)) % 2, aligned.relevance[kept])
    starts = np.concatenate(([0], np.cumsum(lengths)))
    relevance[starts[5] : starts[6]] = 0
    some = replace(
        aligned,
        starts=starts,
        doc=aligned.doc[kept],
        raw=np.where(retrieved, aligned.raw[kept], 0.0),
        retrieved=retrieved,
        scores=aligned.scores[kept],
        relevance=relevance.astype(np.int32),
        unretrieved_starts=np.arange(13),
        unretrieved=np.ones(12, np.int32),
        query_weights=np.array([1.0, 2.0, 0.0, 1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 0.5, 1.0, 1.0]),
    )
    some = genm.align.renormalize(some, "minmax")
    return some, table_of(some, tmp_path_factory.mktemp("uneven"), n_shards=4)


@pytest.mark.parametrize("kept_for", ["", "nDCG@10"])
@pytest.mark.parametrize("measure", ["AP", "AP(rel=2)", "Judged@10", "Judged@2", "nDCG@10", "P@5"])
def test_measures_of_every_query_are_those_of_the_evaluation_in_memory(uneven, measure, kept_for):
    aligned, table = uneven
    weights = (0.2, 0.5, 0.3)
    found = measured(table, Request("measure", weights, measure=measure, per_query=True), measure=kept_for)
    evaluated = genm.evaluate.evaluate_aligned(aligned, np.array(weights), measure)
    assert found.tolist() == evaluated.values[:, 0].tolist()


@pytest.mark.parametrize("measure", ["AP", "nDCG@10"])
def test_rivals_are_those_of_the_evaluation_in_memory(uneven, measure):
    aligned, table = uneven
    for name in aligned.rankers:
        alone = genm.align.select_rankers(aligned, [name])
        evaluated = genm.evaluate.evaluate_aligned(alone, np.ascontiguousarray(alone.raw[:, 0]), measure).values[
            :, 0
        ]
        found = measured(table, Request("ranker", ranker=name, measure=measure, per_query=True))
        assert found.tolist() == evaluated.tolist(), name
    evaluated = genm.evaluate.evaluate_aligned(aligned, rule_scores(aligned, "rrf"), measure).values[:, 0]
    assert measured(table, Request("rrf", measure=measure, per_query=True)).tolist() == evaluated.tolist()


def test_what_is_asked_ahead_is_answered_in_the_first_pass(table):
    engine, asked = ThreadEngine(table, Settings()), []
    evaluate = engine.evaluate
    engine.evaluate = lambda requests: asked.append(list(requests)) or evaluate(requests)
    ahead = [Request("rrf", measure="AP", per_query=True), Request("ranker", ranker="r1", measure="AP")]
    with TableQueries(table, engine, Settings(), ahead=ahead) as queries:
        found = queries.evaluate([ahead[1], Request("exact", (1.0, 0.0, 0.0)), ahead[0]])
    assert asked == [[Request("survey"), *ahead], [Request("exact", (1.0, 0.0, 0.0))]]
    for request, answer in zip([ahead[1], ahead[0]], [found[0], found[2]], strict=True):
        assert answer[0].tolist() == measured(table, request).tolist()


@pytest.mark.parametrize("request_", REQUESTS[:5], ids=lambda one: one.kind)
def test_a_shard_without_selected_queries_is_not_read(table, request_):
    first = tuple(b"\xff" if i == 0 else bytes(1) for i in range(5))
    asked = replace(request_, queries=first)
    read = []
    engine = ThreadEngine(table, Settings(), memory=0)
    engine._table = SimpleNamespace(read_columns=lambda i, **_: read.append(i) or table.read_columns(i))
    unread = engine.evaluate([asked])
    assert read == [0]
    whole = replace(asked, queries=None)
    reading = ThreadEngine(table, Settings()).evaluate([asked, whole])  # the second needs all shards
    assert same_bits(unread, [answers[:1] for answers in reading])


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    aligned = made_up(9, n_queries=160, n_docs=40)
    return aligned, table_of(aligned, tmp_path_factory.mktemp("many"), n_shards=8)


class TestSample:
    """`auto` on many queries begins with some of them; here 30 queries are many."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr("genm.learn.table.MOST_AT_ONCE", 30)
        monkeypatch.setattr("genm.learn.table.SAMPLED", 40)
        monkeypatch.setattr("genm.learn.table.FEWEST_SHARDS", 3)

    def test_it_comes_from_shards_spread_over_the_table(self, many):
        with TableQueries(many[1], ThreadEngine(many[1], Settings()), Settings()) as queries:
            problem = TableProblem(queries)
            sample = problem.sample()
            of_shard = np.searchsorted(queries.ends, problem.kept[sample], side="right") - 1
            assert np.unique(of_shard).tolist() == [0, 2, 5]
            assert (np.diff(sample) > 0).all()
            assert 30 < len(sample) <= 40
            assert problem.select(np.arange(30)).sample() is None

    @pytest.mark.parametrize(
        "fuser", [AutoFuser(repeats=1), AutoFuser(repeats=1, signs="any"), AutoFuser(repeats=1, measure="nDCG@10")]
    )
    def test_the_weights_reach_what_a_search_on_all_queries_reaches(self, many, fuser, monkeypatch):
        aligned, table = many
        sampled = learned(fuser.clone(), table, memory=2**30)
        assert learned(fuser.clone(), table, memory=0).weights_.tobytes() == sampled.weights_.tobytes()
        monkeypatch.setattr("genm.learn.table.MOST_AT_ONCE", 10**6)
        whole = learned(fuser.clone(), table)
        measure = str(fuser.measure)
        here, there = (
            genm.evaluate.evaluate_aligned(aligned, one.learned_, measure).values.mean() for one in (sampled, whole)
        )
        assert here > there - (0.002 if fuser.measure == "AP" else 0.005)  # a direct search ends where it ends
        assert 0.0 < sampled.held_out_ < 1.0
        assert sampled.history_ != whole.history_
