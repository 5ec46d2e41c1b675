"""genm: learn how to fuse your rankers.

The names below and the packages are imported when they are first used, so that `import genm` costs next to nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import takes so long that Ctrl-C in it would show a traceback

if TYPE_CHECKING:
    from genm import cache as cache
    from genm import collections as collections
    from genm import connect as connect
    from genm import explain as explain
    from genm import export as export
    from genm import grouping as grouping
    from genm import judge as judge
    from genm import plotting as plotting
    from genm import rankers as rankers
    from genm import report as report
    from genm import reproduce as reproduce
    from genm import scale as scale
    from genm.align import Aligned, align_runs
    from genm.errors import GenmError
    from genm.evaluate import Comparison, Evaluation, compare_runs, evaluate_run, evaluate_runs, parse_measures
    from genm.evidence import cross_validate
    from genm.fuse import fuse_runs
    from genm.learn import (
        AutoFuser,
        BarrierFuser,
        BoostFuser,
        CotrainFuser,
        ExactFuser,
        ExpectedFuser,
        NewtonFuser,
        OnlineFuser,
        fit,
    )
    from genm.model import Model, load_model, save_model
    from genm.normalizers import Normalizer
    from genm.read import read_qrels, read_run, write_run
    from genm.records import Qrels, Run
    from genm.training import Trained, train
    from genm.version import __version__

    evaluate = evaluate_run
    fuse = fuse_runs

__all__ = [
    "Aligned",
    "AutoFuser",
    "BarrierFuser",
    "BoostFuser",
    "Comparison",
    "CotrainFuser",
    "Evaluation",
    "ExactFuser",
    "ExpectedFuser",
    "GenmError",
    "Model",
    "NewtonFuser",
    "Normalizer",
    "OnlineFuser",
    "Qrels",
    "Run",
    "Trained",
    "__version__",
    "align_runs",
    "compare_runs",
    "cross_validate",
    "evaluate",
    "evaluate_run",
    "evaluate_runs",
    "fit",
    "fuse",
    "fuse_runs",
    "load_model",
    "parse_measures",
    "read_qrels",
    "read_run",
    "save_model",
    "train",
    "write_run",
]

_HOMES = {
    "genm.align": ("Aligned", "align_runs"),
    "genm.errors": ("GenmError",),
    "genm.evaluate": (
        "Comparison",
        "Evaluation",
        "compare_runs",
        "evaluate_run",
        "evaluate_runs",
        "parse_measures",
    ),
    "genm.evidence": ("cross_validate",),
    "genm.fuse": ("fuse_runs",),
    "genm.learn": (
        "AutoFuser",
        "BarrierFuser",
        "BoostFuser",
        "CotrainFuser",
        "ExactFuser",
        "ExpectedFuser",
        "NewtonFuser",
        "OnlineFuser",
        "fit",
    ),
    "genm.model": ("Model", "load_model", "save_model"),
    "genm.normalizers": ("Normalizer",),
    "genm.read": ("read_qrels", "read_run", "write_run"),
    "genm.records": ("Qrels", "Run"),
    "genm.training": ("Trained", "train"),
    "genm.version": ("__version__",),
}
_PACKAGES = frozenset({
    "align", "cache", "client", "collections", "connect", "evaluate", "evidence", "explain", "export", "fuse",
    "grouping", "judge",
    "learn", "model", "normalizers", "plotting", "rankers", "read", "report", "reproduce", "scale", "serve",
    "training",
})  # fmt: skip
"""Modules that an attribute loads. `genm.evaluate` and `genm.fuse` can be called too: see `genm._callable`."""


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    if name in _PACKAGES:
        return import_module(f"genm.{name}")
    raise AttributeError(f"module 'genm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
