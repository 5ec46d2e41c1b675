"""Modules that can be called: `genm.evaluate(...)` and `genm.fuse(...)` beside `from genm.evaluate import ...`.

`genm.evaluate` is a package and `genm.fuse` a module, and both are also the verb that a user types first. Python
binds a submodule to its name on the parent whenever it is imported, after the submodule has run. So a function of
that name on `genm` would be there or not, depending on what was imported before. A module that can be called is the
same object under every import, in every order.
"""

import sys
from collections.abc import Callable
from inspect import signature
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let the module of this name be called as the function is."""

    class CallableModule(ModuleType):
        """A module that passes calls on to one of its functions."""

        __signature__ = signature(function)

        def __call__(self, *args: Any, **options: Any) -> Any:
            """Call the function."""
            return function(*args, **options)

    sys.modules[name].__class__ = CallableModule
