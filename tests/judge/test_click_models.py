"""Click models: each finds the parameters of clicks that it made itself, and positions bias none of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.judge.click_models import MODELS, ShownLists, coec, dbn, harvest, pbm

ATTRACTION = np.array([0.9, 0.6, 0.3, 0.1, 0.5, 0.2])


def shuffled(n_lists: int, seed: int) -> np.ndarray:
    """Lists of six documents in random order: every document was shown at every position."""
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(6) for _ in range(n_lists)])


def lists_of(pair: np.ndarray, clicked: np.ndarray) -> ShownLists:
    return ShownLists(pair, clicked, np.ones(len(pair)), 6)


@pytest.fixture(scope="module")
def by_position() -> ShownLists:
    rng, pair = np.random.default_rng(1), shuffled(4000, 0)
    looked = rng.random(pair.shape) < 1.0 / np.arange(1, 7)
    return lists_of(pair, looked & (rng.random(pair.shape) < ATTRACTION[pair]))


@pytest.fixture(scope="module")
def by_network() -> ShownLists:
    rng, pair = np.random.default_rng(2), shuffled(4000, 3)
    attracted = rng.random(pair.shape) < ATTRACTION[pair]
    leaves = (attracted & (rng.random(pair.shape) < ATTRACTION[pair])) | (rng.random(pair.shape) < 0.2)
    return lists_of(pair, attracted & (np.cumsum(leaves, axis=1) - leaves == 0))


def test_harvested_positions_are_the_true_ones(by_position: ShownLists) -> None:
    assert harvest(by_position) == pytest.approx(1.0 / np.arange(1, 7), abs=0.05)


@pytest.mark.parametrize("harvesting", [True, False])
def test_pbm_finds_its_parameters(by_position: ShownLists, harvesting: bool) -> None:
    found = pbm(by_position, harvesting=harvesting)
    assert found.value == pytest.approx(ATTRACTION, abs=0.06)
    assert found.examination == pytest.approx(1.0 / np.arange(1, 7), abs=0.06)
    assert found.harvested is harvesting
    assert (found.error < 0.03).all()


def test_dbn_finds_its_parameters(by_network: ShownLists) -> None:
    found = dbn(by_network)
    assert found.value == pytest.approx(ATTRACTION**2, abs=0.06)  # satisfaction is as likely as attraction
    assert np.all(np.diff(found.examination) < 0)


def test_positions_do_not_decide() -> None:
    """A good document shown low gets a higher value than a poor one shown high, where click rates have it worse."""
    rng = np.random.default_rng(4)
    pair = np.tile(np.array([3, 2, 4, 1, 5, 0]), (3000, 1))
    pair[rng.random(3000) < 0.2] = [0, 1, 2, 3, 4, 5]
    looked = rng.random(pair.shape) < 1.0 / np.arange(1, 7)
    lists = lists_of(pair, looked & (rng.random(pair.shape) < ATTRACTION[pair]))
    rate = lists.by_pair(lists.repeated() * lists.clicked) / lists.by_pair(lists.repeated())
    found = pbm(lists)
    assert abs(found.value[0] - 0.9) < abs(rate[0] - 0.9)
    assert found.value[0] > found.value[4] > found.value[3]


def test_one_order_leaves_nothing_to_harvest() -> None:
    pair = np.tile(np.arange(6), (500, 1))
    assert harvest(lists_of(pair, np.zeros(pair.shape, bool))) is None


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 2**31), st.integers(1, 20))
def test_values_are_shares_whatever_is_clicked(model: str, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    pair = np.array([rng.permutation(6) for _ in range(n)])
    pair[:, 4:][rng.random((n, 2)) < 0.5] = -1
    clicked = (rng.random(pair.shape) < rng.random()) & (pair >= 0)
    found = MODELS[model](ShownLists(pair, clicked, rng.integers(1, 50, n).astype(float), 6))
    assert ((found.value >= 0) & (found.value <= 1)).all()
    assert (found.evidence >= 0).all()
    assert np.isfinite(found.error).all()


def test_counts_are_the_same_as_repeated_lists(by_position: ShownLists) -> None:
    some = ShownLists(by_position.pair[:50], by_position.clicked[:50], np.full(50, 3.0), 6)
    tripled = lists_of(np.tile(by_position.pair[:50], (3, 1)), np.tile(by_position.clicked[:50], (3, 1)))
    for model in (coec, dbn, pbm):
        assert model(some).value == pytest.approx(model(tripled).value)
