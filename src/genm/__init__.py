"""genm: learn how to blend your rankers.

The names below and the packages are imported when they are first used, so that `import genm` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from genm.version import __version__

if TYPE_CHECKING:
    from genm import cache as cache
    from genm import collections as collections
    from genm import explain as explain
    from genm import export as export
    from genm import plotting as plotting
    from genm import rankers as rankers
    from genm import report as report
    from genm import reproduce as reproduce
    from genm.align import Aligned, align_runs
    from genm.errors import GenmError
    from genm.evaluate import compare_runs, evaluate_run
    from genm.fuse import fuse_runs
    from genm.learn import fit
    from genm.model import Model, load_model, save_model
    from genm.normalizers import Normalizer
    from genm.read import read_qrels, read_run, write_run
    from genm.records import Qrels, Run

__all__ = [
    "Aligned",
    "GenmError",
    "Model",
    "Normalizer",
    "Qrels",
    "Run",
    "__version__",
    "align_runs",
    "compare_runs",
    "evaluate_run",
    "fit",
    "fuse_runs",
    "load_model",
    "read_qrels",
    "read_run",
    "save_model",
    "write_run",
]

_HOMES = {
    "Aligned": "genm.align",
    "GenmError": "genm.errors",
    "Model": "genm.model",
    "Normalizer": "genm.normalizers",
    "Qrels": "genm.records",
    "Run": "genm.records",
    "align_runs": "genm.align",
    "compare_runs": "genm.evaluate",
    "evaluate_run": "genm.evaluate",
    "fit": "genm.learn",
    "fuse_runs": "genm.fuse",
    "load_model": "genm.model",
    "read_qrels": "genm.read",
    "read_run": "genm.read",
    "save_model": "genm.model",
    "write_run": "genm.read",
}
_PACKAGES = frozenset({
    "align", "cache", "collections", "evaluate", "evidence", "explain", "export", "learn", "model", "normalizers",
    "plotting", "rankers", "read", "report", "reproduce",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return import_module(f"genm.{name}")
    raise AttributeError(f"module 'genm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
