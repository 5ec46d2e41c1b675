"""The whole is divided among the rankers, and every figure is one that can be computed by hand from the subsets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up
from spreads import alike

from genm.align import Aligned, align_runs, select_rankers
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.explain import SubsetValues, measure_worth

AP = parse_measure("AP")


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from(["auto", "enm"]))
def test_shares_sum_to_the_whole(seed, method):
    worth = measure_worth(made_up(seed, n_queries=8, n_docs=30), method=method, folds=3)
    assert sum(part.shapley.value for part in worth.rankers) == pytest.approx(worth.value)
    for part in worth.rankers:
        assert part.shapley.low <= part.shapley.high
        assert part.loss.joint_low <= part.loss.value <= part.loss.joint_high
        assert part.sampling_error == 0.0


def test_figures_are_those_of_the_subsets():
    aligned = made_up(1, n_queries=15)
    worth = measure_worth(aligned, seed=3)
    values = SubsetValues(aligned, measure=AP, seed=3)
    v = {subset: values.mean(subset) for subset in range(8)}
    first = worth.rankers[0]
    assert first.alone == pytest.approx(v[1])
    assert first.loss.value == pytest.approx(v[7] - v[6])
    by_hand = v[1] / 3 + (v[3] - v[2]) / 6 + (v[5] - v[4]) / 6 + (v[7] - v[6]) / 3
    assert first.shapley.value == pytest.approx(by_hand)
    assert (worth.value, worth.n_subsets, worth.n_orders) == (pytest.approx(v[7]), 7, None)


def doubled(aligned: Aligned) -> Aligned:
    """The same runs with the first ranker a second time, under another name."""
    from dataclasses import replace

    columns = [0, 1, 2, 0]
    return replace(
        aligned,
        rankers=(*aligned.rankers, "twin"),
        raw=np.ascontiguousarray(aligned.raw[:, columns]),
        retrieved=np.ascontiguousarray(aligned.retrieved[:, columns]),
        scores=np.ascontiguousarray(aligned.scores[:, columns]),
        normalizers=tuple(aligned.normalizers[k] for k in columns),
        depths=tuple(aligned.depths[k] for k in columns),
    )


def test_a_ranker_given_twice_is_worth_the_same_twice_and_nothing_is_lost_without_one():
    aligned = doubled(made_up(8, n_queries=30))
    worth, values = measure_worth(aligned), SubsetValues(aligned, measure=AP)
    first, *_, twin = worth.rankers
    assert twin.alone == first.alone
    apart = {
        others: values.mean(others | 0b1000) - values.mean(others | 0b0001) for others in (0b010, 0b100, 0b110)
    }
    by_hand = (apart[0b010] + apart[0b100]) / 6 + apart[0b110] / 3  # orders of the others before one twin, not both
    assert twin.shapley.value - first.shapley.value == pytest.approx(by_hand)
    for others in apart:
        assert alike(values.per_query(others | 0b1000), values.per_query(others | 0b0001))
    assert alike(values.per_query(0b1111), values.per_query(0b0111))
    assert twin.loss.value == pytest.approx(values.mean(0b1111) - values.mean(0b0111))
    assert ("r0", "twin") in worth.agreement.alike()


@pytest.mark.parametrize("method", ["auto", "enm"])
def test_a_ranker_that_returns_nothing_is_worth_nothing(method):
    whole = made_up(4, n_queries=12)
    from genm.fuse import fuse_runs
    from genm.ids import Ids
    from genm.records import Qrels, Run

    runs = {name: fuse_runs(select_rankers(whole, [name]), [1.0], name=name) for name in ("r0", "r1")}
    empty = Run("mute", Ids.of([]), Ids.of([]), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    rows = whole.relevance > 0
    starts = np.concatenate(([0], np.cumsum(rows)))[whole.starts]
    qrels = Qrels(whole.queries, whole.docs, starts, whole.doc[rows], whole.relevance[rows])
    aligned = align_runs({**runs, "mute": empty}, qrels)
    worth, values = measure_worth(aligned, method=method), SubsetValues(aligned, method=method, measure=AP)
    mute = worth.rankers[2]
    assert mute.alone == 0.0
    added = {others: values.mean(others | 0b100) - values.mean(others) for others in (0b01, 0b10, 0b11)}
    assert mute.shapley.value == pytest.approx((added[0b01] + added[0b10]) / 6 + added[0b11] / 3)
    assert mute.loss.value == pytest.approx(added[0b11])
    for others in added:
        assert alike(values.per_query(others | 0b100), values.per_query(others))


def test_sampled_orders_come_close_to_all_subsets():
    aligned = made_up(2, quality=(1.0, 0.7, 0.5, 0.2), n_queries=20)
    exact, sampled = measure_worth(aligned), measure_worth(aligned, orders=40)
    assert (sampled.n_orders, sampled.exhaustive) == (40, None)
    assert sum(part.shapley.value for part in sampled.rankers) == pytest.approx(sampled.value)
    for one, other in zip(exact.rankers, sampled.rankers, strict=True):
        assert 0.0 < other.sampling_error < 0.05
        assert other.shapley.value == pytest.approx(one.shapley.value, abs=4.5 * other.sampling_error)
        assert other.loss == one.loss


def test_documents_that_leave_with_their_ranker_count(short_lists):
    worth = measure_worth(short_lists, folds=3)
    assert sum(part.shapley.value for part in worth.rankers) == pytest.approx(worth.value)


def test_options_are_read():
    aligned = made_up(1, n_queries=15)
    usual = measure_worth(aligned)
    wide = measure_worth(aligned, confidence=0.5)
    other = measure_worth(aligned, measure="nDCG@10", level=1, folds=3, seed=5)
    assert wide.rankers[0].shapley.low > usual.rankers[0].shapley.low
    assert (str(other.measure), other.folds) == ("nDCG@10", 3)
    assert other.value != usual.value


def test_refusals():
    aligned = made_up(1, n_queries=6)
    with pytest.raises(InputError, match=r"1 ranker \(r0\): expected at least 2"):
        measure_worth(select_rankers(aligned, ["r0"]))
    with pytest.raises(InputError, match="1 judged query: expected at least 2"):
        measure_worth(aligned.select(np.array([0])))
    with pytest.raises(InputError, match="carry no judgments"):
        measure_worth(made_up(1, labelled=False))
    with pytest.raises(InputError, match="confidence: expected a number between 0 and 1"):
        measure_worth(aligned, confidence=95)
    with pytest.raises(InputError, match="margin: expected a number from 0 on"):
        measure_worth(aligned, margin=-1)
    for orders in (2, 7):
        with pytest.raises(InputError, match="orders: expected an even number from 4 on"):
            measure_worth(aligned, orders=orders)
