"""How the parts of a kernel are compiled: functions that only other compiled functions call.

They need no way in from Python, which halves the time to compile them. Never call one from Python: there is
nothing there to call.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from genm._math.parallel import kept

F = TypeVar("F", bound=Callable[..., Any])


def part() -> Callable[[F], F]:
    """Compile a part of a kernel."""
    return kept(no_cpython_wrapper=True, no_cfunc_wrapper=True)
