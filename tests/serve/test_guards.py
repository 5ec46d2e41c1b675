"""The guards: drift is found and not imagined, rates are limited, influence is counted by the hour."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import numpy as np

from genm.serve.guards import NANO, Influence, RequestRate, latest_change, moved_distance


def test_drift_is_found_where_the_mean_falls():
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.normal(0.6, 0.1, 200), rng.normal(0.4, 0.1, 100)))
    assert abs(latest_change(values) - 200) < 15


def test_drift_is_not_imagined():
    rng = np.random.default_rng(2)
    assert sum(latest_change(rng.normal(0.5, 0.2, 300)) is not None for _ in range(200)) <= 2
    assert latest_change([0.5] * 9) is None
    assert latest_change([0.5] * 100) is None


def test_distance_is_total_variation_rounded_up():
    assert moved_distance(np.array([0.5, 0.5]), np.array([0.75, 0.25])) == NANO // 4
    assert moved_distance(np.array([0.5, 0.5]), np.array([0.5, 0.5 + 1e-12])) == 1


def test_influence_is_forgotten_after_an_hour():
    influence, hour = Influence(), 3_600_000
    influence.add(["x", "y"], 0, 5)
    influence.add(["x"], 60_000, 7)
    assert influence.used("x", 60_000) == 12
    assert influence.used("y", 60_000) == 5
    assert influence.used("x", hour) == 7
    assert influence.used("x", hour + 60_000) == 0
    assert influence.allows(["x"], 60_000, NANO - 12, 1.0)
    assert not influence.allows(["x"], 60_000, NANO - 11, 1.0)
    assert influence.allows(["x"], 60_000, NANO, None)
    influence.add(["z"], 3 * hour, 1)
    assert influence.used("x", 60_000) == 0  # pruned


def test_a_client_may_send_twice_its_rate_at_once_and_then_waits():
    rate = RequestRate(2.0)
    assert [rate.wait("x", 0.0) for _ in range(4)] == [0.0] * 4
    assert rate.wait("x", 0.0) == pytest.approx(0.5)
    assert rate.wait("y", 0.0) == 0.0
    assert rate.wait("x", 0.5) == 0.0
    assert RequestRate(0.0).wait("x", 0.0) == 0.0
