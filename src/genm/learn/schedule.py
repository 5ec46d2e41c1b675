"""How long the steps of stochastic ascent are."""

from typing import Literal, get_args

from genm.errors import InputError

Schedule = Literal["paper", "adaptive"]
"""paper: 1/t, Section 4.2's choice; adaptive: shrinking with the size of the gradients met so far."""

STRIDE = 0.25
"""The adaptive schedule's first step, as a share of the simplex's edge."""


def check_schedule(schedule: str) -> Schedule:
    """Return the schedule if there is one of that name."""
    if schedule == "paper":
        return "paper"
    if schedule == "adaptive":
        return "adaptive"
    raise InputError(f"schedule={schedule!r}: expected one of {', '.join(get_args(Schedule))}.")


def check_free(*, free: bool, schedule: str) -> None:
    """Refuse free weights where every step is led back to the simplex."""
    if free and schedule != "paper":
        raise InputError('free=True: expected schedule="paper"; the adaptive steps stay on the simplex.')
