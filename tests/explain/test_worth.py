"""The whole is divided among the rankers, and every figure is one that can be computed by hand from the subsets."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up
from spreads import alike

from genm.align import Aligned, align_runs, select_rankers
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.explain import SubsetValues, explain_model, gains_by_query, measure_worth, model_losses
from genm.explain.worth import (
    growing_sets,
    sampled_factors,
    sampled_orders,
    sampled_values,
    shapley_factors,
    shapley_values,
)
from genm.learn import BoostFuser
from genm.learn.auto import AutoFuser
from genm.model import load_model, save_model

AP = parse_measure("AP")

N_QUERIES = 3


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
    with pytest.raises(InputError, match="margin: expected a number of at least 0"):
        measure_worth(aligned, margin=-1)
    for orders in (2, 7):
        with pytest.raises(InputError, match="orders: expected an even number from 4 to"):
            measure_worth(aligned, orders=orders)


def game(n_players: int, seed: int):
    """Any game at all: a worth for every set of players, query by query."""
    table = np.random.default_rng(seed).normal(size=(1 << n_players, N_QUERIES))
    return lambda members: table[members]


def by_definition(n_players, worth):
    """The mean over all orders of what each player adds."""
    values, orders = np.zeros((n_players, N_QUERIES)), list(permutations(range(n_players)))
    for order in orders:
        members = 0
        for player in order:
            values[player] += (worth(members | 1 << player) - worth(members)) / len(orders)
            members |= 1 << player
    return values


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_equal_to_all_orders(n_players, seed):
    worth = game(n_players, seed)
    assert np.allclose(shapley_values(n_players, worth), by_definition(n_players, worth))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.integers(0, 10**6))
def test_everything_is_shared_out(n_players, seed):
    worth = game(n_players, seed)
    whole = worth((1 << n_players) - 1) - worth(0)
    assert np.allclose(shapley_values(n_players, worth).sum(axis=0), whole)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_who_adds_nothing_gets_nothing_and_changes_nothing(n_players, seed):
    inner = game(n_players, seed)
    low = (1 << n_players) - 1
    values = shapley_values(n_players + 1, lambda members: inner(members & low))
    assert np.allclose(values[n_players], 0.0)
    assert np.allclose(values[:n_players], shapley_values(n_players, inner))


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_who_adds_the_same_gets_the_same(n_players, seed):
    inner = game(n_players, seed)

    def twins(members):  # the last two players stand in for each other
        last = 1 << n_players - 1
        other = 1 << n_players
        return inner(members & ~other | (last if members & other else 0))

    values = shapley_values(n_players + 1, twins)
    assert np.allclose(values[n_players], values[n_players - 1])


def test_values_of_sums_are_sums_of_values():
    one, other = game(4, 1), game(4, 2)
    both = shapley_values(4, lambda members: 2.0 * one(members) - other(members))
    assert np.allclose(both, 2.0 * shapley_values(4, one) - shapley_values(4, other))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_factors_of_the_worths_give_the_values(n_players, seed):
    worth = game(n_players, seed)
    orders = sampled_orders(n_players, 6, seed)
    exact, sampled = shapley_values(n_players, worth), sampled_values(n_players, worth, orders).mean(axis=0)
    for factors, values in ((shapley_factors(n_players), exact), (sampled_factors(n_players, orders), sampled)):
        for own, value in zip(factors, values, strict=True):
            assert np.allclose(sum(factor * worth(members) for members, factor in own.items()), value)
            assert sum(own.values()) == pytest.approx(0.0, abs=1e-12)


def test_a_case_worked_by_hand():
    """A left glove and two right ones: a pair is worth 1, so the left glove gets 2/3."""
    worth = {0: 0, 1: 0, 2: 0, 4: 0, 3: 1, 5: 1, 6: 0, 7: 1}
    values = shapley_values(3, lambda members: np.float64(worth[members]))
    assert values == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def test_orders_come_with_their_reverse():
    orders = sampled_orders(6, 10, seed=3)
    assert len(orders) == 10
    for there, back in zip(orders[::2], orders[1::2], strict=True):
        assert sorted(there) == list(range(6))
        assert there.tolist() == back.tolist()[::-1]
    assert [list(growing_sets(np.array([1, 0])))] == [[(1, 0, 2), (0, 2, 3)]]


def test_sampling_shares_everything_out_and_comes_close():
    worth = game(5, 9)
    exact = shapley_values(5, worth)
    errors = []
    for n_orders in (20, 2000):
        added = sampled_values(5, worth, sampled_orders(5, n_orders, seed=0))
        assert np.allclose(added.sum(axis=1), worth(31) - worth(0))
        errors.append(np.abs(added.mean(axis=0) - exact).max())
        told = added.std(axis=0, ddof=1) / np.sqrt(len(added))
        assert (np.abs(added.mean(axis=0) - exact) < 4.5 * told).all()
    assert errors[1] < errors[0] / 3


@pytest.fixture(scope="module")
def fitted():
    aligned = made_up(4, n_queries=12)
    return BoostFuser().fit(aligned).to_model(), aligned


def test_the_models_own_measure_and_method_are_used(fitted):
    model, aligned = fitted
    found = explain_model(model, aligned, folds=2, seed=3)
    worth = measure_worth(aligned, method="enm", measure="AP", folds=2, seed=3)
    assert (found.worth.method, str(found.worth.measure), found.notes) == ("enm", "AP", ())
    assert [part.shapley for part in found.worth.rankers] == [part.shapley for part in worth.rankers]
    gains = gains_by_query(aligned, model.weights, worth.measure)
    assert found.gains.gain.tolist() == gains.gain.tolist()


def test_another_measure_and_method_may_be_given(fitted):
    model, aligned = fitted
    found = explain_model(replace(model, method="given"), aligned, measure="RR", method="auto", folds=2)
    assert (found.worth.method, str(found.worth.measure), found.notes) == ("auto", "RR", ())
    with pytest.raises(InputError, match=r"method 'enm' maximises AP, not RR\(rel=2\)"):
        explain_model(replace(model, relevance_level=2), aligned, measure="RR", folds=2)


def test_a_method_that_cannot_be_learned_again_is_replaced_and_noted(fitted):
    model, aligned = fitted
    found = explain_model(replace(model, method="given"), aligned, folds=2)
    assert found.worth.method == "auto"
    assert [note.text for note in found.notes] == [
        "the model's method 'given' cannot be learned again; subsets are learned by 'auto'."
    ]


def test_a_model_of_any_sign_is_explained_with_weights_of_any_sign(tmp_path):
    aligned = made_up(6, quality=(0.8, 0.6, -0.7), n_queries=24)
    model = AutoFuser(signs="any").fit(aligned).to_model()
    assert model.signs == "any"
    assert min(model.weights) < 0.0
    worth = explain_model(model, aligned, folds=3).worth
    assert worth.value == measure_worth(aligned, folds=3, signs="any").value
    assert worth.value > measure_worth(aligned, folds=3).value
    assert worth.rankers[2].loss.value > 0.0
    losses = model_losses(model, aligned, folds=3)
    assert [part.loss for part in losses.rankers] == [part.loss for part in worth.rankers]
    assert explain_model(model, aligned, folds=3, method="newton").worth.method == "newton"


def test_the_signs_are_known_though_all_weights_are_positive(tmp_path):
    aligned = made_up(6, n_queries=24)
    model = AutoFuser(signs="any").fit(aligned).to_model()
    assert min(model.weights) >= 0.0
    save_model(model, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").signs == "any"
    assert AutoFuser().fit(aligned).to_model().signs == "positive"
