"""Schedules are known by name, and free weights go with one of them only."""

import pytest

from genm.errors import InputError
from genm.learn.schedule import check_free, check_schedule


def test_known_names_come_back() -> None:
    assert [check_schedule(name) for name in ("paper", "adaptive")] == ["paper", "adaptive"]


def test_others_are_refused_with_the_names() -> None:
    with pytest.raises(InputError, match="'wild': expected one of paper, adaptive"):
        check_schedule("wild")


def test_free_weights_go_with_the_printed_steps_only() -> None:
    check_free(free=True, schedule="paper")
    check_free(free=False, schedule="adaptive")
    with pytest.raises(InputError, match="stay on the simplex"):
        check_free(free=True, schedule="adaptive")
