"""Search engines and frameworks that a model can be exported to: one module for each.

A new engine is one new module here. It declares `TARGETS`, its ways of fusing, and `PLACE`, a number that orders
the engines in lists; `targets` finds it.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from genm.errors import ExportError
from genm.export.target import Target


@cache
def targets() -> Mapping[str, Target]:
    """Return every target that a model can be exported to, by name."""
    engines = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    engines.sort(key=lambda engine: int(engine.PLACE))
    return MappingProxyType({target.name: target for engine in engines for target in engine.TARGETS})


def find_target(name: str) -> Target:
    """Return the target of that name, or say which there are."""
    found = targets().get(name)
    if found is None:
        raise ExportError(f"expected a target of {', '.join(targets())}; found {name!r:.60}.")
    return found
